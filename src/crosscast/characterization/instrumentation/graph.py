"""Graph algorithms on control flow, and which values are the same for all work-items that run in step.

Loops, liveness, where execution counters have to stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.inline import called_builtin

Edge = tuple[str, str]
EXIT = ""
"""Node that stands for leaving the graph."""

Graph = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Loop:
    """A strongly connected part of the graph, and how deep it is nested (1 = outermost)."""

    blocks: frozenset[str]
    depth: int


def find_loops(graph: Graph) -> list[Loop]:
    """Find all loops, outer ones before those inside them.

    A loop is a strongly connected component; those inside it are found after its headers' incoming
    back edges are taken away, so irreducible control flow is covered too.
    """
    before = _reversed(graph)
    found: list[Loop] = []
    pending: list[tuple[frozenset[str], frozenset[Edge], int]] = [(frozenset(graph), frozenset(), 1)]
    while pending:
        nodes, cut, depth = pending.pop()
        for part in _components(graph, nodes, cut):
            inside = {(u, v) for u in part for v in graph[u] if v in part and (u, v) not in cut}
            if not inside:
                continue
            found.append(Loop(part, depth))
            headers = {v for v in part if any(u not in part for u in before[v])}
            headers |= {v for u, v in cut if u in part and v in part}
            if not headers or headers == part:
                headers = {min(part)}
            cut_here = cut | {(u, v) for u, v in inside if v in headers}
            pending.append((part, frozenset(cut_here), depth + 1))
    return sorted(found, key=lambda loop: loop.depth)


def _reversed(graph: Graph) -> dict[str, list[str]]:
    """Predecessors of each block."""
    predecessors: dict[str, list[str]] = {label: [] for label in graph}
    for label, successors in graph.items():
        for successor in successors:
            predecessors[successor].append(label)
    return predecessors


def _components(graph: Graph, nodes: frozenset[str], cut: frozenset[Edge]) -> list[frozenset[str]]:
    """Tarjan's strongly connected components of a part of the graph, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    components = []
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, _next_nodes(graph, root, nodes, cut))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, _next_nodes(graph, successor, nodes, cut)))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cutoff = stack.index(node)
                    components.append(frozenset(stack[cutoff:]))
                    on_stack.difference_update(stack[cutoff:])
                    del stack[cutoff:]
    return components


def _next_nodes(graph: Graph, node: str, nodes: frozenset[str], cut: frozenset[Edge]) -> Iterator[str]:
    return (s for s in graph[node] if s in nodes and (node, s) not in cut)


def innermost(loops: Sequence[Loop]) -> dict[str, Loop]:
    """Innermost loop of each block that is in one."""
    return {label: loop for loop in loops for label in sorted(loop.blocks)}


def live_in(
    blocks: Mapping[str, ir.Block], graph: Graph, extra: Mapping[str, set[str]]
) -> dict[str, set[str]]:
    """Local values that each block needs from before it (a phi's values are needed by the predecessor)."""
    needed: dict[str, set[str]] = {}
    defined: dict[str, set[str]] = {}
    at_end: dict[str, set[str]] = {label: set() for label in blocks}
    for label, block in blocks.items():
        needed[label], defined[label] = set(extra.get(label, ())), set()
        for instruction in block.instructions:
            for value, predecessor in instruction.incoming:
                if predecessor in at_end:
                    at_end[predecessor].update(ir.LOCAL.findall(value))
            needed[label] |= instruction.uses() - defined[label]
            if instruction.result:
                defined[label].add(instruction.result)
    live = {label: set(values) for label, values in needed.items()}
    changed = True
    while changed:
        changed = False
        for label in reversed(list(blocks)):
            out = at_end[label].union(*(live[s] for s in graph[label])) - defined[label]
            if not out <= live[label]:
                live[label] |= out
                changed = True
    return live


@dataclass(frozen=True)
class Placement:
    """Which edges to count, and what the other edges' counts are."""

    counted: list[Edge]  # Edges that need a counter
    # Executions of each block, as coefficients of the counters (by position in `counted`); the coefficient at
    # -1 is that of the number of entries into the graph
    blocks: dict[str, dict[int, int]]


def place_counters(graph: Graph, entry: str, leaving: set[str], depth: Mapping[str, int]) -> Placement:
    """Choose the fewest and least executed edges whose counts determine those of all blocks.

    Knuth's method: the edges outside a spanning tree of the graph are counted; flow conservation
    gives the rest. Edges deep in loops go into the tree first.
    """
    edges = [(u, v) for u, successors in graph.items() for v in successors]
    # A graph that nothing leaves is a loop without an end: only the time limit ends it.
    edges += [(u, EXIT) for u in sorted(leaving or {entry})]
    edges.sort(key=lambda e: -min(depth.get(e[0], 0), depth.get(e[1], 0)))
    tree: dict[str, list[tuple[str, Edge]]] = {EXIT: [], **{label: [] for label in graph}}
    group = {node: node for node in tree}

    def find(node: str) -> str:
        while group[node] != node:
            group[node] = group[group[node]]
            node = group[node]
        return node

    counted: list[Edge] = []
    for edge in edges:
        a, b = find(edge[0]), find(edge[1])
        if a == b:
            counted.append(edge)
            continue
        group[a] = b
        tree[edge[0]].append((edge[1], edge))
        tree[edge[1]].append((edge[0], edge))

    spanning = _Tree(tree)
    flow: dict[Edge, dict[int, int]] = {edge: {} for edge in edges}
    chords = [*enumerate(counted), (-1, (EXIT, entry))]
    for number, (source, target) in chords:
        if number >= 0:
            flow[source, target][number] = 1
        for edge, sign in spanning.path(target, source):
            flow[edge][number] = flow[edge].get(number, 0) + sign
    blocks: dict[str, dict[int, int]] = {label: {} for label in graph}
    blocks[entry][-1] = 1
    for (_, target), terms in flow.items():
        if target != EXIT:
            for number, sign in terms.items():
                blocks[target][number] = blocks[target].get(number, 0) + sign
    return Placement(counted, {b: {n: c for n, c in t.items() if c} for b, t in blocks.items()})


class _Tree:
    """A spanning tree, seen from the node that stands for leaving."""

    def __init__(self, neighbours: Mapping[str, list[tuple[str, Edge]]]) -> None:
        self._depth = {EXIT: 0}
        self._up: dict[str, tuple[str, Edge]] = {}  # The next node towards the root, and the edge to it
        pending = [EXIT]
        while pending:
            node = pending.pop()
            for neighbour, edge in neighbours[node]:
                if neighbour not in self._depth:
                    self._depth[neighbour] = self._depth[node] + 1
                    self._up[neighbour] = (node, edge)
                    pending.append(neighbour)

    def path(self, start: str, goal: str) -> list[tuple[Edge, int]]:
        """Edges from `start` to `goal`: +1 where walked along their direction, -1 against it."""
        path = []
        while start != goal:
            if self._depth[start] >= self._depth[goal]:
                above, edge = self._up[start]
                path.append((edge, 1 if edge == (start, above) else -1))
                start = above
            else:
                above, edge = self._up[goal]
                path.append((edge, 1 if edge == (above, goal) else -1))
                goal = above
        return path


def immediate_postdominators(graph: Graph) -> dict[str, str]:
    """Block that every path from a block to the end passes first; absent where there is none.

    Cooper, Harvey & Kennedy's algorithm on the reversed graph.
    """
    predecessors = _reversed(graph)
    order = _postorder(predecessors, [label for label in graph if not graph[label]])
    number = {label: position for position, label in enumerate(order)}
    number[EXIT] = len(order)
    after: dict[str, str] = {EXIT: EXIT}
    changed = True
    while changed:
        changed = False
        for label in reversed(order):
            chosen: str | None = None
            for successor in graph[label] or [EXIT]:
                if successor in after:
                    chosen = successor if chosen is None else _meet(chosen, successor, after, number)
            if chosen is not None and after.get(label) != chosen:
                after[label] = chosen
                changed = True
    return {label: block for label, block in after.items() if label != EXIT and block != EXIT}


def _meet(a: str, b: str, after: Mapping[str, str], number: Mapping[str, int]) -> str:
    while a != b:
        while number[a] < number[b]:
            a = after[a]
        while number[b] < number[a]:
            b = after[b]
    return a


def _postorder(graph: Graph, roots: Sequence[str]) -> list[str]:
    order: list[str] = []
    seen: set[str] = set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        work = [(root, iter(graph[root]))]
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in seen:
                    seen.add(successor)
                    work.append((successor, iter(graph[successor])))
                    break
            else:
                order.append(node)
                work.pop()
    return order


def in_order(graph: Graph, entry: str) -> list[str]:
    """Blocks as a program runs them: each behind those that lead to it, a loop before what follows it."""
    depth = {label: loop.depth for label, loop in innermost(find_loops(graph)).items()}
    # What is visited first ends up last: the ways out of loops.
    sorted_ = {u: sorted(after, key=lambda v: depth.get(v, 0)) for u, after in graph.items()}
    return _postorder(sorted_, [entry])[::-1]


PURE = frozenset(
    "add sub mul udiv sdiv urem srem shl lshr ashr and or xor icmp fcmp select trunc zext sext fpext fptrunc "
    "fadd fsub fmul fdiv frem fneg uitofp sitofp fptoui fptosi bitcast addrspacecast ptrtoint inttoptr "
    "getelementptr freeze extractelement insertelement shufflevector extractvalue insertvalue".split()
)
"""Operations that depend on their operands alone and have no effect."""
_UNIFORM_CALLS = frozenset(
    "get_group_id get_local_size get_enqueued_local_size get_global_size get_num_groups "
    "get_global_offset get_work_dim".split()
)


@dataclass(frozen=True)
class Uniformity:
    """What is the same for all work-items of a group."""

    values: set[str]  # Names of uniform values
    parted: set[str]  # Blocks that only some of the work-items may run, or not all equally often

    def decides_for_all(self, block: ir.Block) -> bool:
        """Whether all work-items that reach a segment take the same way at the end of a block."""
        return block.label not in self.parted and block.terminator.uses() <= self.values


def find_uniform(blocks: Mapping[str, ir.Block], flow: Graph, parameters: Sequence[str]) -> Uniformity:
    """Find the values that are uniform, and the blocks that diverging branches part."""
    divergent: set[str] = set()
    after = immediate_postdominators(flow)
    spread: set[str] = set()  # blocks whose divergent branches have been followed
    joins: set[str] = set()  # blocks whose phis diverge
    parted: set[str] = set()
    known = set(parameters)
    changed = True
    while changed:
        changed = False
        for label, block in blocks.items():
            for instruction in block.instructions:
                result = instruction.result
                if result is None or result in divergent or result in known:
                    continue
                if _diverges(instruction, divergent, label in joins):
                    divergent.add(result)
                    changed = True
            if label not in spread and len(flow[label]) > 1 and _condition(block) & divergent:
                spread.add(label)
                reached = _between(flow, flow[label], after.get(label))
                joins |= reached
                parted |= reached - {after.get(label, "")}
                changed = True
    defined = {i.result for b in blocks.values() for i in b.instructions if i.result}
    return Uniformity((defined - divergent) | known, parted)


def _diverges(instruction: ir.Instruction, divergent: set[str], at_join: bool) -> bool:
    if instruction.opcode == "phi":
        used = {name for value, _ in instruction.incoming for name in ir.LOCAL.findall(value)}
        return at_join or bool(used & divergent)
    pure = instruction.opcode in PURE or called_builtin(instruction) in _UNIFORM_CALLS
    return not pure or bool(instruction.uses() & divergent)


def _condition(block: ir.Block) -> set[str]:
    return block.terminator.uses()


def _between(flow: Graph, starts: Sequence[str], end: str | None) -> set[str]:
    """Blocks on the way from `starts` to `end`, `end` included."""
    reached: set[str] = set()
    pending = list(starts)
    while pending:
        label = pending.pop()
        if label in reached:
            continue
        reached.add(label)
        if label != end:
            pending.extend(flow[label])
    return reached


IDENTITIES = frozenset(
    "get_global_id get_local_id get_group_id get_local_size get_enqueued_local_size get_global_size "
    "get_num_groups get_global_offset get_work_dim get_global_linear_id get_local_linear_id".split()
)
"""Work-item functions: cheap, and without effect on memory."""

_CHEAP = frozenset(
    "getelementptr trunc zext sext bitcast addrspacecast ptrtoint inttoptr "
    "add sub mul shl lshr ashr and or xor icmp select alloca".split()
)
_LONGEST_CHAIN = 12

Definitions = dict[str, ir.Instruction]


def recomputable(definitions: Definitions, given: set[str], uniform: set[str]) -> Definitions:
    """Definitions of the values to compute again.

    A uniform value that is more than a function of ids and arguments is not among them: it is
    carried, once a work-group.
    """
    cheap: Definitions = {}
    for leaves in (given, given | uniform):
        for name in definitions:
            if name not in cheap and (name not in uniform or leaves is given):
                cheap.update(_trial(name, definitions, leaves, cheap))
    return cheap


def _trial(name: str, definitions: Definitions, leaves: set[str], cheap: Definitions) -> Definitions:
    """A value and those that it is computed from, if all of them are cheap; else nothing."""
    trial: Definitions = {}
    pending = [name]
    while pending:
        current = pending.pop()
        instruction = definitions[current]
        if instruction.opcode not in _CHEAP and called_builtin(instruction) not in IDENTITIES:
            return {}
        trial[current] = instruction
        if len(trial) > _LONGEST_CHAIN:
            return {}
        pending += [
            used
            for used in instruction.uses()
            if used in definitions and not (used in leaves or used in cheap or used in trial)
        ]
    return trial


def sources(values: set[str], cheap: Definitions) -> set[str]:
    """Values that are not cheap, from which the cheap ones among `values` are computed."""
    found: set[str] = set()
    pending = [name for name in values if name in cheap]
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in cheap:
            pending.extend(cheap[name].uses())
        else:
            found.add(name)
    return found


def chain(wanted: set[str], cheap: Definitions) -> list[ir.Instruction]:
    """Copies of the instructions that compute `wanted`, each after those it uses."""
    ordered: Definitions = {}

    def visit(name: str) -> None:
        if name in ordered or name not in cheap:
            return
        for used in sorted(cheap[name].uses()):
            visit(used)
        copy = ir.copy_instruction(cheap[name])
        copy.counted = False
        ordered[name] = copy

    for name in sorted(wanted):
        visit(name)
    return list(ordered.values())
