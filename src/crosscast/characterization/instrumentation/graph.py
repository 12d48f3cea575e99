"""Graph algorithms on control flow, and uniform values of work-items.

Loops, liveness, and placement of execution counters.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.inline import called_builtin

Edge = tuple[str, str]
EXIT = ""
"""Node that stands for leaving the graph."""

Graph = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Loop:
    """A strongly connected part of the graph, its nesting depth (1 = outermost), and where it is entered."""

    blocks: frozenset[str]
    depth: int
    headers: frozenset[str]


def reachable(graph: Graph, starts: Iterable[str], ends: Collection[str] = ()) -> set[str]:
    """Return the blocks reachable from `starts`, these included, on paths that stop at `ends`."""
    reached: set[str] = set()
    pending = list(starts)
    while pending:
        label = pending.pop()
        if label not in reached:
            reached.add(label)
            if label not in ends:
                pending.extend(graph[label])
    return reached


def reverse(graph: Graph) -> dict[str, list[str]]:
    """Return the predecessors of each block."""
    predecessors: dict[str, list[str]] = {label: [] for label in graph}
    for label, successors in graph.items():
        for successor in successors:
            predecessors[successor].append(label)
    return predecessors


def _postorder(graph: Graph, roots: Iterable[str]) -> list[str]:
    """Return the blocks reachable from `roots` in postorder."""
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


def find_loops(graph: Graph) -> list[Loop]:
    """Find all loops, outer ones before those inside them.

    A loop is a strongly connected component; those inside it are found after its headers' incoming
    back edges are removed, so that irreducible control flow is covered.
    """
    before = reverse(graph)
    loops: list[Loop] = []
    pending: list[tuple[Graph, int]] = [(graph, 1)]
    while pending:
        inside, depth = pending.pop()
        for part in _components(inside):
            if len(part) == 1 and part.isdisjoint(inside[min(part)]):
                continue
            headers = frozenset(v for v in part if not part.issuperset(before[v]))
            if not headers or headers == part:
                headers = frozenset({min(part)})
            loops.append(Loop(part, depth, headers))
            pending.append(
                ({u: [v for v in inside[u] if v in part and v not in headers] for u in part}, depth + 1)
            )
    return sorted(loops, key=lambda loop: loop.depth)


def _components(graph: Graph) -> list[frozenset[str]]:
    """Return the strongly connected components of a graph, by Kosaraju's algorithm."""
    predecessors = reverse(graph)
    done: set[str] = set()
    components = []
    for root in reversed(_postorder(graph, sorted(graph))):
        if root not in done:
            components.append(frozenset(reachable(predecessors, [root], done) - done))
            done |= components[-1]
    return components


def innermost(loops: Sequence[Loop]) -> dict[str, Loop]:
    """Return the innermost loop of each block in a loop."""
    return {label: loop for loop in loops for label in sorted(loop.blocks)}


def live(
    blocks: Mapping[str, ir.Block], graph: Graph, extra: Mapping[str, set[str]]
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the values live into each block, and out of it, as are a phi's values of the predecessor."""
    live: dict[str, set[str]] = {}
    defined: dict[str, set[str]] = {}
    at_end: dict[str, set[str]] = {label: set() for label in blocks}
    for label, block in blocks.items():
        live[label], defined[label] = set(extra.get(label, ())), set()
        for instruction in block.instructions:
            for value, predecessor in instruction.incoming:
                if predecessor in at_end and value.startswith("%"):
                    at_end[predecessor].add(value)
            if instruction.opcode != "phi":
                live[label] |= instruction.uses() - defined[label]
            if instruction.result:
                defined[label].add(instruction.result)
    changed = True
    while changed:
        changed = False
        for label in reversed(list(blocks)):
            at_end[label].update(*(live[s] for s in graph[label]))
            if not (through := at_end[label] - defined[label]) <= live[label]:
                live[label] |= through
                changed = True
    return live, at_end


@dataclass(frozen=True)
class Placement:
    """Edges to count, and executions of blocks by these counts."""

    counted: list[Edge] = field(default_factory=list)  # Edges that need a counter
    # Executions of each block, as coefficients of the counters (by position in `counted`); the coefficient at
    # -1 is that of the number of entries into the graph
    blocks: dict[str, dict[int, int]] = field(default_factory=dict)


def place_counters(graph: Graph, entry: str, leaving: set[str], depth: Mapping[str, int]) -> Placement:
    """Choose the fewest and least executed edges whose counts determine those of all blocks.

    Knuth's method: the edges outside a spanning tree of the graph are counted; flow conservation
    gives the rest. Edges deep in loops go into the tree first.
    """
    edges = [(u, v) for u, successors in graph.items() for v in successors]
    # A graph without exit is an endless loop, which the time limit ends.
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

    times: dict[str, Counter[int]] = {node: Counter() for node in tree}
    surplus: dict[str, Counter[int]] = {node: Counter() for node in tree}  # inflow minus outflow

    def let_flow(edge: Edge, terms: Mapping[int, int]) -> None:
        for number, count in terms.items():
            surplus[edge[0]][number] -= count
            surplus[edge[1]][number] += count
            times[edge[1]][number] += count

    times[entry][-1] = surplus[entry][-1] = 1
    for number, edge in enumerate(counted):
        let_flow(edge, {number: 1})
    up: dict[str, Edge] = {}  # the edge of each node towards the root of the tree
    order = [EXIT]
    for node in order:
        for neighbour, edge in tree[node]:
            if neighbour != EXIT and neighbour not in up:
                up[neighbour] = edge
                order.append(neighbour)
    for node in reversed(order[1:]):  # from the leaves on, whose other edges are known
        sign = 1 if up[node][0] == node else -1
        let_flow(up[node], {number: sign * count for number, count in surplus[node].items()})
    blocks = {label: {n: count for n, count in times[label].items() if count} for label in graph}
    return Placement(counted, blocks)


def immediate_postdominators(graph: Graph) -> dict[str, str]:
    """Return the immediate postdominator of each block, if it has one.

    Cooper, Harvey & Kennedy's algorithm on the reversed graph.
    """
    order = _postorder(reverse(graph), [label for label in graph if not graph[label]])
    number = {label: position for position, label in enumerate([*order, EXIT])}
    after: dict[str, str] = {EXIT: EXIT}

    def meet(a: str, b: str) -> str:
        while a != b:
            if number[a] < number[b]:
                a = after[a]
            else:
                b = after[b]
        return a

    changed = True
    while changed:
        changed = False
        for label in reversed(order):
            known = [successor for successor in graph[label] or [EXIT] if successor in after]
            chosen = known[0]
            for successor in known[1:]:
                chosen = meet(chosen, successor)
            if after.get(label) != chosen:
                after[label] = chosen
                changed = True
    return {label: block for label, block in after.items() if EXIT not in (label, block)}


def in_order(graph: Graph, entry: str) -> list[str]:
    """Return the blocks in program order: each behind its predecessors, a loop before its successors."""
    depth = {label: loop.depth for label, loop in innermost(find_loops(graph)).items()}
    # Blocks that are visited first end up last: the exits of loops.
    sorted_ = {u: sorted(after, key=lambda v: depth.get(v, 0)) for u, after in graph.items()}
    return _postorder(sorted_, [entry])[::-1]


def positions(graph: Graph, entry: str, loops: Sequence[Loop]) -> dict[str, int]:
    """Return the position of each block in program order; all blocks of an outermost loop share one."""
    order: dict[str, int] = {}
    outer = {label: loop for loop in loops if loop.depth == 1 for label in loop.blocks}
    for index, label in enumerate(in_order(graph, entry)):
        for member in outer[label].blocks if label in outer else (label,):
            order.setdefault(member, index)
    return order


PURE = frozenset(
    "add sub mul udiv sdiv urem srem shl lshr ashr and or xor icmp fcmp select trunc zext sext fpext fptrunc "
    "fadd fsub fmul fdiv frem fneg uitofp sitofp fptoui fptosi bitcast addrspacecast ptrtoint inttoptr "
    "getelementptr freeze extractelement insertelement shufflevector extractvalue insertvalue".split()
)
"""Operations that depend on their operands only and have no side effect."""
_LAUNCH_CALLS = frozenset(
    "get_local_size get_enqueued_local_size get_global_size get_num_groups get_global_offset "
    "get_work_dim".split()
)
_UNIFORM_CALLS = _LAUNCH_CALLS | {"get_group_id"}


@dataclass(frozen=True)
class Uniformity:
    """Uniformity of values and control flow among the work-items of a group."""

    values: set[str]  # Names of uniform values
    parted: set[str]  # Blocks that some work-items may run less often than others

    def decides_for_all(self, block: ir.Block) -> bool:
        """Whether all work-items that reach a segment take the same branch at the end of a block."""
        return block.label not in self.parted and block.terminator.uses() <= self.values


def find_uniform(blocks: Mapping[str, ir.Block], flow: Graph, parameters: Collection[str]) -> Uniformity:
    """Find the values that are uniform in a work-group, and the blocks under divergent branches."""
    return _find_uniform(blocks, flow, parameters, _UNIFORM_CALLS, (), of_turns=False)


def find_shared(
    blocks: Mapping[str, ir.Block], flow: Graph, parameters: Collection[str], loads: Collection[str]
) -> Uniformity:
    """Find the values that are the same, turn by turn, for all work-items of a launch which compute them.

    Among them are the results of `loads` of such addresses. The blocks are those whose turns are not of one
    iteration.
    """
    return _find_uniform(blocks, flow, parameters, _LAUNCH_CALLS, loads, of_turns=True)


def find_repeated(blocks: Mapping[str, ir.Block], flow: Graph, parameters: Collection[str]) -> Uniformity:
    """Find the values that are the same in all work-groups of one size, for each place in the group.

    The blocks are those that a work-item may run less often than one at its place in another group.
    """
    return _find_uniform(blocks, flow, parameters, _LAUNCH_CALLS | {"get_local_id"}, (), of_turns=False)


def _find_uniform(
    blocks: Mapping[str, ir.Block],
    flow: Graph,
    parameters: Collection[str],
    calls: Set[str],
    loads: Collection[str],
    *,
    of_turns: bool,
) -> Uniformity:
    divergent: set[str] = set()
    after = immediate_postdominators(flow)
    spread: set[str] = set()  # blocks whose divergent branches have been followed
    joins: set[str] = set()  # blocks whose phis diverge
    parted: set[str] = set()
    # Dependences of each value that may be uniform.
    depends: dict[str, list[tuple[str, frozenset[str], bool]]] = {label: [] for label in blocks}
    for label, block in blocks.items():
        for i in block.instructions:
            follows = i.opcode in PURE or i.opcode == "phi" or called_builtin(i) in calls
            if i.result and (follows or i.result in loads):
                depends[label].append((i.result, i.uses(), i.opcode == "phi"))
            elif i.result:
                divergent.add(i.result)
    changed = True
    while changed:
        changed = False
        for label, block in blocks.items():
            for result, used, is_phi in depends[label]:
                if result not in divergent and (
                    (is_phi and label in joins) or not used.isdisjoint(divergent)
                ):
                    divergent.add(result)
                    changed = True
            if label not in spread and len(flow[label]) > 1 and block.terminator.uses() & divergent:
                spread.add(label)
                end = after.get(label, "")
                reached = reachable(flow, flow[label], (end,))
                # Of turns, phis diverge where ways meet, and in loops that work-items leave apart.
                joins |= reached if not of_turns or label in reached else _meeting(flow, label, end)
                if not of_turns or label in reachable(flow, flow[label]):
                    parted |= reached - {end}
                changed = True
    defined = {i.result for b in blocks.values() for i in b.instructions if i.result}
    return Uniformity((defined - divergent) | set(parameters), parted)


def _meeting(flow: Graph, label: str, end: str) -> set[str]:
    """Return the blocks where several ways from a branch to its end meet."""
    ways = Counter(block for start in set(flow[label]) for block in reachable(flow, (start,), (end,)))
    return {block for block, count in ways.items() if count > 1}


IDENTITIES = frozenset(
    "get_global_id get_local_id get_group_id get_local_size get_enqueued_local_size get_global_size "
    "get_num_groups get_global_offset get_work_dim get_global_linear_id get_local_linear_id".split()
)
"""Work-item functions: cheap, and without side effect."""

_CHEAP = frozenset(
    "getelementptr trunc zext sext bitcast addrspacecast ptrtoint inttoptr "
    "add sub mul shl lshr ashr and or xor icmp select alloca".split()
)
_LONGEST_CHAIN = 12

Definitions = dict[str, ir.Instruction]


def recomputable(definitions: Definitions, inputs: set[str], uniform: set[str]) -> Definitions:
    """Return the definitions of values to recompute.

    A uniform value that is not a function of ids and arguments only is not among them: it is carried,
    once per work-group.
    """
    cheap: Definitions = {}
    for leaves in (inputs, inputs | uniform):
        for name in definitions:
            if name not in cheap and (name not in uniform or leaves is inputs):
                cheap.update(_trial(name, definitions, leaves, cheap))
    return cheap


def _trial(name: str, definitions: Definitions, leaves: set[str], cheap: Definitions) -> Definitions:
    """Return a value and its inputs, if all of them are cheap; else nothing."""
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
    """Return the values that are not cheap, from which the cheap ones among `values` are computed."""
    needs = {name: [*instruction.uses()] for name, instruction in cheap.items()}
    return reachable(defaultdict(list, needs), values & cheap.keys()) - cheap.keys()


def chain(wanted: set[str], cheap: Definitions) -> list[ir.Instruction]:
    """Return copies of the instructions that compute `wanted`, in dependence order."""
    needs: dict[str, list[str]] = {}
    pending = roots = sorted(wanted & cheap.keys())
    while pending := [name for name in pending if name not in needs]:
        needs |= {name: sorted(cheap[name].uses() & cheap.keys()) for name in pending}
        pending = [used for name in pending for used in needs[name]]
    copies = [cheap[name].copy() for name in _postorder(needs, roots)]
    for copy in copies:
        copy.counted = False
    return copies
