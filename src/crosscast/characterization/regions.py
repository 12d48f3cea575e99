"""Cut a kernel at its barriers into segments that run from one barrier to the next.

A segment has one entry (the kernel's start, or what follows a barrier) and leaves at the barriers
it can reach, or returns. Running a segment for every work-item of a work-group before the next one
starts is a barrier, without a stack per work-item. What a work-item carries across a barrier is
kept in memory, in one array per value; values that are cheap functions of ids and arguments are
computed again instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crosscast.characterization import graph, ir
from crosscast.characterization.inline import called_builtin
from crosscast.characterization.uniformity import Uniformity, find_uniform

__all__ = ["IDENTITIES", "Carried", "Segment", "Segments", "cut", "is_barrier", "is_collective"]

_CHEAP = frozenset(
    "getelementptr trunc zext sext bitcast addrspacecast ptrtoint inttoptr "
    "add sub mul shl lshr ashr and or xor icmp select alloca".split()
)
_LONGEST_CHAIN = 12
IDENTITIES = frozenset(
    "get_global_id get_local_id get_group_id get_local_size get_enqueued_local_size get_global_size "
    "get_num_groups get_global_offset get_work_dim get_global_linear_id get_local_linear_id".split()
)
"""Work-item functions: cheap, and without effect on memory."""


def is_barrier(instruction: ir.Instruction) -> bool:
    """Whether an instruction is a work-group barrier."""
    return called_builtin(instruction) in ("barrier", "work_group_barrier")


def is_collective(instruction: ir.Instruction) -> bool:
    """Whether an instruction is a work-group collective such as ``work_group_reduce_add``."""
    name = called_builtin(instruction)
    return name.startswith("work_group_") and not name.startswith("work_group_barrier")


@dataclass(frozen=True)
class Carried:
    """A value kept in memory across barriers; once a work-group if it is uniform."""

    name: str
    type: str
    nbytes: int
    uniform: bool


@dataclass
class Segment:
    """A part of the kernel between barriers.

    Parameters
    ----------
    number
        Its number; 0 starts the kernel.
    entry
        Label where it starts.
    blocks
        Its own copies of the blocks.
    exits
        For each block that leaves it: the segment that follows, 0 for the end of the work-item.
    after
        The barrier or collective before it; ``None`` for segment 0, and after one that ran once.
    once
        It is run once for all work-items of a group, because they would all do the same.
    restore
        Carried values that it loads at its start.
    save
        Carried values to store at each leaving block.
    recompute
        Instructions that compute again, at its start, what need not be carried.
    slots
        Type of each value that lives in a stack slot, because it enters the segment and is also
        defined in it.
    """

    number: int
    entry: str
    blocks: dict[str, ir.Block]
    exits: dict[str, int]
    after: ir.Instruction | None = None
    once: bool = False
    restore: list[Carried] = field(default_factory=list)
    save: dict[str, list[Carried]] = field(default_factory=dict)
    recompute: list[ir.Instruction] = field(default_factory=list)
    slots: dict[str, str] = field(default_factory=dict)

    def successors(self) -> dict[str, list[str]]:
        """Control flow inside the segment."""
        return {
            label: [] if label in self.exits else block.terminator.successors
            for label, block in self.blocks.items()
        }


@dataclass(frozen=True)
class Segments:
    """All segments of a kernel, everything they carry, and what is uniform."""

    segments: list[Segment]
    carried: list[Carried]
    uniform: Uniformity


def cut(function: ir.Function, sizes: dict[str, tuple[int, int]]) -> Segments:
    """Cut a flattened kernel into segments.

    Parameters
    ----------
    function
        A kernel without calls of defined functions; it is taken apart.
    sizes
        Size and alignment of each type.
    """
    roots, crossings, cutters = _split_at_barriers(function)
    names = [p.name for p in function.parameters]
    once: set[str] = set()
    if len(roots) > 1:
        full = _flow_across(function, crossings)
        uniform = find_uniform(function.blocks, full, names)
        cheap = _recomputable(_definitions(function, cutters), set(names), uniform.values)
        once = _cut_leads(function, roots, crossings, cutters, uniform, cheap)
    flow = {label: block.terminator.successors for label, block in function.blocks.items()}
    full = _flow_across(function, crossings)
    uniform = find_uniform(function.blocks, full, names)
    definitions = _definitions(function, cutters)
    cheap = _recomputable(definitions, set(names), uniform.values)
    live, needed = _needed(function, full, roots, cheap, definitions)
    carried = {
        name: Carried(name, definitions[name].type, sizes[definitions[name].type][0], name in uniform.values)
        for name in sorted(set().union(*needed.values()))
    }
    numbers = {label: number for number, label in enumerate(roots)}
    segments = []
    for number, root in enumerate(roots):
        segment = _segment(function, flow, crossings, numbers, number, root)
        wanted = set(live[root]) if number else set()
        segment.after = cutters.get(root)
        segment.once = root in once
        if segment.after is not None:
            wanted.discard(segment.after.result or "")
        segment.restore = [carried[n] for n in sorted(needed.get(root, set()) & wanted)]
        segment.recompute = _chain(wanted & cheap.keys(), cheap)
        for label, following in segment.exits.items():
            if following:
                cutter = cutters.get(roots[following])
                result = (cutter.result if cutter is not None else "") or ""
                segment.save[label] = [carried[n] for n in sorted(needed[roots[following]] - {result})]
        _resolve_redefinitions(segment)
        segments.append(segment)
    return Segments(segments, list(carried.values()), uniform)


def _definitions(
    function: ir.Function, cutters: dict[str, ir.Instruction]
) -> dict[str, ir.Instruction]:
    return {i.result: i for i in [*function.instructions(), *cutters.values()] if i.result}


def _flow_across(function: ir.Function, crossings: dict[str, str]) -> dict[str, list[str]]:
    """Successors of each block, across barriers too."""
    return {
        label: [crossings[label]] if label in crossings else block.terminator.successors
        for label, block in function.blocks.items()
    }


def _cut_leads(
    function: ir.Function,
    roots: list[str],
    crossings: dict[str, str],
    cutters: dict[str, ir.Instruction],
    uniform: Uniformity,
    cheap: dict[str, ir.Instruction],
) -> set[str]:
    """Let what all work-items do alike at the start of a segment be a segment of its own, run once.

    Typically these are the counters and conditions of loops with barriers in them. Without them
    what follows has fewer branches, so that LLVM can run several work-items at a time.

    Returns
    -------
    set
        Where the segments start that run once.
    """
    leads: dict[str, list[str]] = {}
    for root in roots:
        cutter = cutters.get(root)
        if cutter is not None and not is_barrier(cutter):
            continue  # its piece of the work-item goes on across the collective
        lead = _lead(function, root, crossings, uniform, cheap)
        if any(len(function.blocks[b].terminator.successors) > 1 for b in lead):
            leads[root] = lead
    while rejected := {r for r in leads if not _may_lead(function, r, roots, leads, crossings)}:
        for root in rejected:
            del leads[root]
    edges = {
        (u, v): None
        for lead in leads.values()
        for u in lead
        for v in function.blocks[u].terminator.successors
        if v not in lead
    }
    for source, target in edges:
        _cut_edge(function, source, target, roots, crossings)
    return set(leads)


def _may_lead(
    function: ir.Function,
    root: str,
    roots: list[str],
    leads: dict[str, list[str]],
    crossings: dict[str, str],
) -> bool:
    """Whether a segment's lead can be run once without changing what is recorded."""
    lead = leads[root]
    after = [v for u in lead for v in function.blocks[u].terminator.successors if v not in lead]
    rest = _reachable(function, after, crossings)
    branches = {function.blocks[b].terminator.branch for b in lead} - {None}
    if rest & set(lead) or branches & {function.blocks[b].terminator.branch for b in rest}:
        return False  # the same branch would be recorded in two places, out of order
    # The blocks of the lead are cut for every segment that has them.
    return all(
        set(lead) & _reachable(function, [other], crossings) <= set(leads.get(other, ()))
        for other in roots
    )


def _lead(
    function: ir.Function,
    root: str,
    crossings: dict[str, str],
    uniform: Uniformity,
    cheap: dict[str, ir.Instruction],
) -> list[str]:
    """Blocks from the start of a segment on that compute nothing but uniform values."""
    lead: list[str] = []
    pending = [root]
    while pending:
        label = pending.pop()
        block = function.blocks[label]
        if label in lead or label in crossings or not block.terminator.successors:
            continue
        if label in uniform.parted or not all(
            _belongs_to_lead(i, uniform, cheap) for i in block.instructions
        ):
            continue
        lead.append(label)
        pending.extend(block.terminator.successors)
    return lead


def _belongs_to_lead(
    instruction: ir.Instruction, uniform: Uniformity, cheap: dict[str, ir.Instruction]
) -> bool:
    if not instruction.text:
        return True
    if instruction.opcode in ("br", "switch"):
        return instruction.uses() <= uniform.values
    # What diverges but is cheap is computed again where it is needed.
    return instruction.result in uniform.values or instruction.result in cheap


def _reachable(function: ir.Function, starts: list[str], crossings: dict[str, str]) -> set[str]:
    reached: set[str] = set()
    pending = list(starts)
    while pending:
        label = pending.pop()
        if label not in reached:
            reached.add(label)
            if label not in crossings:
                pending.extend(function.blocks[label].terminator.successors)
    return reached


def _cut_edge(
    function: ir.Function, source: str, target: str, roots: list[str], crossings: dict[str, str]
) -> None:
    number = len(roots)
    leaving = ir.Block(f"%cc.leave{number}", [ir.Instruction("", "cut", counted=False)])
    going_on = ir.Block(
        f"%cc.segment{number}", [ir.Instruction(f"br label {target}", "br", counted=False)]
    )
    function.blocks[source].terminator.retarget(target, leaving.label)
    for phi in function.blocks[target].phis():
        phi.incoming = [(v, going_on.label if p == source else p) for v, p in phi.incoming]
    function.blocks[leaving.label] = leaving
    function.blocks[going_on.label] = going_on
    crossings[leaving.label] = going_on.label
    roots.append(going_on.label)


def _split_at_barriers(
    function: ir.Function,
) -> tuple[list[str], dict[str, str], dict[str, ir.Instruction]]:
    """End a block at each barrier.

    Returns
    -------
    tuple
        Where segments start, what follows each cut block, and what stood before each start.
    """
    roots = [function.entry.label]
    cutters: dict[str, ir.Instruction] = {}
    crossings: dict[str, str] = {}
    ends: dict[str, str] = {}  # a block that was cut ends under another label
    blocks: dict[str, ir.Block] = {}
    for block in function.blocks.values():
        current = block
        blocks[block.label] = current
        rest = block.instructions
        position = 0
        while position < len(rest):
            instruction = rest[position]
            position += 1
            if not (is_barrier(instruction) or is_collective(instruction)):
                continue
            after = ir.Block(f"%cc.segment{len(roots)}", rest[position:])
            ghost = ir.copy_instruction(instruction)
            ghost.text = ""
            end = ir.Instruction("", "cut", counted=False)
            current.instructions = [*rest[: position - 1], ghost, end]
            crossings[current.label] = after.label
            cutters[after.label] = instruction
            roots.append(after.label)
            blocks[after.label] = after
            current, rest, position = after, after.instructions, 0
        if current is not block:
            ends[block.label] = current.label
    function.blocks = blocks
    for block in blocks.values():
        for phi in block.phis():
            phi.incoming = [(value, ends.get(label, label)) for value, label in phi.incoming]
    return roots, crossings, cutters


def _recomputable(
    definitions: dict[str, ir.Instruction], given: set[str], uniform: set[str]
) -> dict[str, ir.Instruction]:
    """Values that are cheap functions of ids, arguments, and uniform values.

    A uniform value that is more than a function of ids and arguments is not among them: it is
    carried, once a work-group.
    """
    cheap: dict[str, ir.Instruction] = {}
    for leaves in (given, given | uniform):
        for name, definition in definitions.items():
            if name not in uniform or leaves is given:
                _try_recomputing(name, definition, definitions, leaves, cheap)
    return cheap


def _try_recomputing(
    name: str,
    definition: ir.Instruction,
    definitions: dict[str, ir.Instruction],
    leaves: set[str],
    cheap: dict[str, ir.Instruction],
) -> None:
    """Add a value, and those that it is computed from, to `cheap` if all of them are."""
    trial: dict[str, ir.Instruction] = {}
    pending = [(name, definition)]
    while pending:
        current, instruction = pending.pop()
        if instruction.opcode not in _CHEAP and called_builtin(instruction) not in IDENTITIES:
            return
        trial[current] = instruction
        if len(trial) > _LONGEST_CHAIN:
            return
        for used in instruction.uses():
            if used in leaves or used in cheap or used in trial or used not in definitions:
                continue
            pending.append((used, definitions[used]))
    cheap.update(trial)


def _needed(
    function: ir.Function,
    flow: dict[str, list[str]],
    roots: list[str],
    cheap: dict[str, ir.Instruction],
    definitions: dict[str, ir.Instruction],
) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Values that are live into each block, and those of them to carry to each segment's start.

    What is computed again needs the values that it is computed from.
    """
    extra: dict[str, set[str]] = {}
    while True:
        live = graph.live_in(function.blocks, flow, extra)
        sources = {root: _sources(live[root], cheap) & definitions.keys() for root in roots[1:]}
        if all(sources[root] <= live[root] for root in roots[1:]):
            return live, {r: (live[r] & definitions.keys()) - cheap.keys() for r in roots[1:]}
        extra = sources


def _sources(values: set[str], cheap: dict[str, ir.Instruction]) -> set[str]:
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


def _chain(wanted: set[str], cheap: dict[str, ir.Instruction]) -> list[ir.Instruction]:
    """Copies of the instructions that compute `wanted`, each after those it uses."""
    ordered: dict[str, ir.Instruction] = {}

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


def _segment(
    function: ir.Function,
    flow: dict[str, list[str]],
    crossings: dict[str, str],
    numbers: dict[str, int],
    number: int,
    root: str,
) -> Segment:
    reached: set[str] = set()
    pending = [root]
    while pending:
        label = pending.pop()
        if label not in reached:
            reached.add(label)
            pending.extend(flow[label])
    blocks: dict[str, ir.Block] = {}
    exits: dict[str, int] = {}
    for label in [root, *(n for n in function.blocks if n in reached and n != root)]:
        block = ir.Block(label, [ir.copy_instruction(i) for i in function.blocks[label].instructions])
        predecessors = {p for p in reached if label in flow[p]}
        for phi in block.phis():
            phi.incoming = [(value, p) for value, p in phi.incoming if p in predecessors]
        if label in crossings:
            exits[label] = numbers[crossings[label]]
        elif not flow[label]:
            exits[label] = 0
        blocks[label] = block
    return Segment(number, root, blocks, exits)


def _resolve_redefinitions(segment: Segment) -> None:
    """Give values that enter a segment and are also defined in it one place in memory.

    LLVM turns these stack slots back into registers and inserts the phis.
    """
    entering = {c.name: c.type for c in segment.restore}
    entering.update({i.result: i.type for i in segment.recompute if i.result})
    if segment.after is not None and segment.after.result:
        entering[segment.after.result] = segment.after.type
    defined = {i.result for b in segment.blocks.values() for i in b.instructions if i.result and i.text}
    for name in sorted(entering.keys() & defined):
        _use_slot(segment, name, entering[name])


def slot_name(name: str) -> str:
    """Name of the stack slot of a value that enters a segment and is defined in it too."""
    return f'{name[:-1]}.cc.slot"' if name.endswith('"') else f"{name}.cc.slot"


def _use_slot(segment: Segment, name: str, type_: str) -> None:
    slot = slot_name(name)
    segment.slots[name] = type_
    serial = 0
    for block in segment.blocks.values():
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            if instruction.opcode != "phi" and name in instruction.uses():
                serial += 1
                fresh = f"{slot}{serial}" if not slot.endswith('"') else f'{slot[:-1]}{serial}"'
                rewritten.append(_load(fresh, type_, slot))
                instruction.text = ir.substitute(instruction.text, lambda n, f=fresh: f if n == name else n)
            rewritten.append(instruction)
            if instruction.result == name and instruction.text:
                store = ir.Instruction(f"store {type_} {name}, ptr {slot}", "store", counted=False)
                rewritten.append(store)
        block.instructions = _phis_first(rewritten)
    for block in segment.blocks.values():
        for phi in block.phis():
            for position, (value, label) in enumerate(phi.incoming):
                if name in ir.LOCAL.findall(value):
                    serial += 1
                    fresh = f"{slot}{serial}" if not slot.endswith('"') else f'{slot[:-1]}{serial}"'
                    segment.blocks[label].instructions.insert(-1, _load(fresh, type_, slot))
                    phi.incoming[position] = (
                        ir.substitute(value, lambda n, f=fresh: f if n == name else n),
                        label,
                    )


def _load(result: str, type_: str, slot: str) -> ir.Instruction:
    return ir.Instruction(f"load {type_}, ptr {slot}", "load", type_, result, counted=False)


def _phis_first(instructions: list[ir.Instruction]) -> list[ir.Instruction]:
    phis = [i for i in instructions if i.opcode == "phi"]
    return phis + [i for i in instructions if i.opcode != "phi"] if phis else instructions
