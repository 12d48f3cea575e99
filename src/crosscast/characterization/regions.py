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

__all__ = ["Carried", "Segment", "Segments", "cut", "is_barrier", "is_collective"]

_CHEAP = frozenset(
    "getelementptr trunc zext sext bitcast addrspacecast ptrtoint inttoptr "
    "add sub mul shl lshr ashr and or xor alloca".split()
)
_IDENTITIES = frozenset(
    "get_global_id get_local_id get_group_id get_local_size get_enqueued_local_size get_global_size "
    "get_num_groups get_global_offset get_work_dim get_global_linear_id get_local_linear_id".split()
)


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
        The barrier or collective before it, ``None`` for segment 0.
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
    flow = {label: block.terminator.successors for label, block in function.blocks.items()}
    full = {label: [*flow[label], *([crossings[label]] if label in crossings else [])] for label in flow}
    live = graph.live_in(function.blocks, full)
    definitions = {i.result: i for i in [*function.instructions(), *cutters.values()] if i.result}
    uniform = find_uniform(function.blocks, full, [p.name for p in function.parameters])
    crossing: set[str] = set().union(*(live[root] for root in roots[1:])) & definitions.keys()
    cheap = _recomputable(crossing, definitions, {p.name for p in function.parameters})
    carried = {
        name: Carried(name, definitions[name].type, sizes[definitions[name].type][0], name in uniform.values)
        for name in sorted(crossing - cheap.keys())
    }
    numbers = {label: number for number, label in enumerate(roots)}
    segments = []
    for number, root in enumerate(roots):
        segment = _segment(function, flow, crossings, numbers, number, root)
        wanted = set(live[root]) if number else set()
        segment.after = cutters.get(root)
        if segment.after is not None:
            wanted.discard(segment.after.result or "")
        segment.restore = [carried[n] for n in sorted(wanted & carried.keys())]
        segment.recompute = _chain(wanted & cheap.keys(), cheap)
        for label, following in segment.exits.items():
            if following:
                result = cutters[roots[following]].result or ""
                needed = sorted((live[roots[following]] & carried.keys()) - {result})
                segment.save[label] = [carried[n] for n in needed]
        _resolve_redefinitions(segment)
        segments.append(segment)
    return Segments(segments, list(carried.values()), uniform)


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
    crossing: set[str], definitions: dict[str, ir.Instruction], given: set[str]
) -> dict[str, ir.Instruction]:
    """Values among `definitions` that are cheap functions of ids, sizes and arguments.

    Only those that some value in `crossing` is, or is computed from, are returned.
    """
    known: dict[str, bool] = {name: True for name in given}

    def cheap(name: str, depth: int) -> bool:
        if name not in known:
            definition = definitions.get(name)
            known[name] = False  # a circle is not cheap
            known[name] = (
                definition is not None
                and depth < 12
                and (definition.opcode in _CHEAP or called_builtin(definition) in _IDENTITIES)
                and all(
                    cheap(used, depth + 1)
                    for used in definition.uses()
                    if used in definitions or used in given
                )
            )
        return known[name]

    chosen = {name for name in crossing if cheap(name, 0)}
    pending = list(chosen)
    while pending:
        for used in definitions[pending.pop()].uses():
            if used in definitions and used not in chosen:
                chosen.add(used)
                pending.append(used)
    return {name: definitions[name] for name in chosen}


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
