"""Strided accesses: accesses at equal distances, which are recorded together instead of one by one.

Neighbouring work-items, and iterations of an innermost loop, often access addresses at equal distances. If an
address is computed from ids, arguments and loop counters by affine operations, the first, the second and the
last address determine all of them: the runtime records base, stride and number. The same holds for the
corners of a plane of work-items, of a work-group or of the whole launch.

Conditions are checked when they are recorded. Additions and multiplications by constants preserve equal
distances even if they wrap around. Extensions to 64 bits need a check: if the results are at equal distances
for the first, the second and the last work-item or iteration, none in between has wrapped. All work-items
must take the same path: of two linear values, one is less than the other (or equal to it) on a range if it is
so for the first and the last. If a check fails, the range is divided.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.graph import IDENTITIES, PURE
from crosscast.characterization.instrumentation.inline import called_builtin
from crosscast.characterization.instrumentation.segments import Segment, slot_name

Reach = Literal["loop", "group", "launch"]
"""Range of a strided access: iterations of a loop, work-items of a work-group, or of the launch."""
Kind = Literal["same", "linear"]
"""Change of a value along these: constant, or linear."""

_INTEGERS = ("i8", "i16", "i32", "i64")
_PREDICATE = re.compile(r"icmp (?:samesign )?(\w+) ")
_PROMISES = re.compile(r"\b(?:nuw|nsw|nusw|exact|disjoint|nneg|inbounds|samesign) ")


class IntegerComparison(NamedTuple):
    """A comparison of integers."""

    predicate: str
    type: str
    a: str
    b: str

    @classmethod
    def of(cls, instruction: ir.Instruction) -> IntegerComparison | None:
        """Return the comparison of an instruction; ``None`` if it does not compare integers."""
        match = _PREDICATE.match(instruction.text)
        if match is None or instruction.operands[0].type not in _INTEGERS:
            return None
        a, b = instruction.operands
        return cls(match[1], a.type, a.value, b.value)


def _condition(end: ir.Instruction) -> str:
    """Return the condition of a conditional branch; empty for other terminators."""
    return end.operands[0].value if end.opcode == "br" and end.operands[0].type == "i1" else ""


class Analysis:
    """Analysis of the change of values from one work-item or iteration to the next."""

    def __init__(
        self,
        definitions: Mapping[str, ir.Instruction],
        known: Mapping[str, Kind | None],
        reach: Reach = "loop",
    ) -> None:
        self._definitions, self._known, self._reach = definitions, known, reach
        self._kinds: dict[str, Kind | None] = {}
        # Values that must be at equal distances, by name, with their extension to 64 bits
        self._extended: dict[str, str] = {}

    def value(self, value: str) -> Kind | None:
        """Return the change of a value; ``None`` if unknown."""
        if not value.startswith("%"):
            return "same" if "%" not in value else None
        if value in self._known:
            return self._known[value]
        if self._reach == "loop" and value not in self._definitions:
            return "same"
        if value not in self._kinds:
            self._kinds[value] = None  # for cycles
            definition = self._definitions.get(value)
            if definition is not None:
                self._kinds[value] = self._instruction(definition)
        return self._kinds[value]

    def needs(self, *values: str) -> tuple[dict[str, ir.Instruction], dict[str, str]]:
        """Return the instructions that compute some values, in order, and the checks among them."""
        needed: dict[str, ir.Instruction] = {}
        seen: set[str] = set()
        pending = [(value, False) for value in reversed(values)]
        while pending:
            value, complete = pending.pop()
            definition = self._definitions.get(value)
            if complete and definition:
                needed[value] = definition
            elif definition and value not in seen and value not in self._known:
                seen.add(value)
                pending.append((value, True))
                pending += ((used, False) for used in sorted(definition.uses(), reverse=True))
        return needed, {name: self._extended[name] for name in needed if name in self._extended}

    def _instruction(self, i: ir.Instruction) -> Kind | None:
        if i.opcode == "phi":
            if self._reach == "loop":
                return None  # it depends on the path of the iteration
            kinds = [self.value(value) for value, _ in i.incoming]
            return None if None in kinds else "linear" if "linear" in kinds else "same"
        if name := called_builtin(i):
            return self._identity(name, i) if name in IDENTITIES else None
        if i.opcode not in PURE:
            return None
        kinds = [self.value(used) for used in sorted(i.uses())]
        if None in kinds:
            return None
        return "linear" if "linear" in kinds and self._keeps_distances(i) else _same_if(kinds)

    def _identity(self, name: str, call: ir.Instruction) -> Kind | None:
        if self._reach == "loop":
            return "same"
        if name in ("get_global_linear_id", "get_local_linear_id", "get_global_id", "get_local_id"):
            if self._reach == "launch" and "local" in name:
                return None
            if name.endswith("linear_id"):
                return "linear"
            dimension = call.operands[0].value
            return ("linear" if dimension in ("0", "1") else "same") if dimension.isdigit() else None
        changes = name in ("get_group_id", "get_local_size")
        return None if changes and self._reach == "launch" else "same"

    def _keeps_distances(self, i: ir.Instruction) -> bool:
        if i.opcode == "getelementptr":
            return all(o.type == "i64" or self.value(o.value) == "same" for o in i.operands[2:])
        if i.opcode in ("bitcast", "addrspacecast", "ptrtoint", "inttoptr", "freeze"):
            return i.type.startswith("ptr") or i.type == "i64" or i.opcode == "freeze"
        if i.opcode == "select":
            return self.value(i.operands[0].value) == "same"
        if i.type not in _INTEGERS:
            return False
        a, b = i.operands[0].value, i.operands[-1].value
        if i.opcode in ("sext", "zext"):
            return i.operands[0].type in _INTEGERS and self._checks(i, i.opcode)
        if i.opcode == "mul":
            return "same" in (self.value(a), self.value(b))
        if i.opcode == "shl":
            return b.isdigit()
        if i.opcode in ("ashr", "lshr"):
            # Two shifts there and back extend the low bits.
            inner = self._definitions.get(a)
            same = inner is not None and inner.opcode == "shl" and inner.operands[1].value == b
            return same and b.isdigit() and self._checks(i, "sext" if i.opcode == "ashr" else "zext")
        return i.opcode in ("add", "sub", "trunc") or " disjoint " in i.text

    def _checks(self, i: ir.Instruction, extension: str) -> Literal[True]:
        assert i.result
        self._extended[i.result] = f"{extension} {i.type}"
        return True

    def atoms(self, value: str) -> list[IntegerComparison] | None:
        """Return the non-constant comparisons that decide a condition; ``None`` if unknown."""
        if self.value(value) == "same":
            return []
        definition = self._definitions.get(value)
        if definition is None or definition.opcode not in ("icmp", "and", "or", "xor", "select", "freeze"):
            return None
        if definition.opcode == "icmp":
            comparison = IntegerComparison.of(definition)
            return None if comparison is None or None in map(self.value, comparison[2:]) else [comparison]
        if definition.type != "i1":
            return None
        comparisons: list[IntegerComparison] = []
        for used in sorted(definition.uses()):
            more = self.atoms(used)
            if more is None:
                return None
            comparisons += more
        return comparisons


def _same_if(kinds: list[Kind | None]) -> Kind | None:
    return None if "linear" in kinds else "same"


def without_promises(instruction: ir.Instruction) -> ir.Instruction:
    """Return an instruction that is defined for all operands, as slices are executed speculatively."""
    copy = instruction.copy()
    copy.counted = False
    if copy.opcode == "or" and " disjoint " in copy.text:
        copy.text = "add" + copy.text.removeprefix("or")
    if copy.opcode not in ("call", "phi"):
        copy.text = _PROMISES.sub("", copy.text)
    return copy


@dataclass(frozen=True)
class StridedAccess:
    """Accesses of one block at equal distances between neighbouring work-items."""

    label: str  # Its block
    instructions: list[ir.Instruction]  # The loads and stores
    blocks: dict[str, str]  # Blocks on the path to it; for one before a loop, with the loop's successor
    needed: dict[str, ir.Instruction]
    atoms: dict[str, list[IntegerComparison]]  # Comparisons that decide the path, by block
    checks: dict[str, str]
    reach: Reach = "group"

    def slice_blocks(
        self, segment: Segment
    ) -> Iterator[tuple[str, list[ir.Instruction], ir.Instruction | None]]:
        """Yield label, instructions and end of each block; no end for the access's block."""
        by_label: dict[str, list[tuple[int, ir.Instruction]]] = {}
        for name, original in self.needed.items():
            if position := segment.definitions.get(name):
                by_label.setdefault(position[0], []).append((position[1], original))
        passed = self._passed(segment, by_label)
        for label in segment.blocks:
            if label not in self.blocks or label in passed:
                continue
            slice_instructions = []
            for _, original in sorted(by_label.get(label, []), key=lambda item: item[0]):
                copy = without_promises(original)
                copy.incoming = [(v, p) for v, p in copy.incoming if p in self.blocks]
                slice_instructions.append(copy)
            end = None
            if label != self.label:
                end = segment.blocks[label].terminator.copy()
                for successor in end.successors:
                    behind = self._behind(label, successor)
                    while behind in passed:
                        behind = passed[behind]
                    end.retarget(successor, behind)
            yield label, slice_instructions, end

    def _behind(self, label: str, successor: str) -> str:
        """Return the block at which the slice continues after one, for one of its successors."""
        behind = self.blocks[label] or successor
        return behind if behind in self.blocks else "%cc.exit"

    def _passed(self, segment: Segment, computed: Collection[str]) -> dict[str, str]:
        """Return the block at which the slice continues instead of each that does nothing.

        Blocks that compute something stay, as do those from which a phi takes a value.
        """
        sources = {label for i in self.needed.values() for _, label in i.incoming}
        staying = {self.label, segment.entry, *sources, *computed}
        passed: dict[str, str] = {}
        for label in self.blocks:
            successors = segment.blocks[label].terminator.successors
            if label not in staying and len(successors) == 1:
                passed[label] = self._behind(label, successors[0])
        return passed


_MOST_BLOCKS = 1000


@dataclass(frozen=True)
class _AddressPath:
    """Path to a block, and its conditions."""

    blocks: dict[str, str]
    conditions: list[str]
    atoms: dict[str, list[IntegerComparison]]


class StridedFinder:
    """Finds the strided accesses of a segment outside of all loops."""

    def __init__(self, segment: Segment, loops: list[graph.Loop], known: Mapping[str, Kind | None]) -> None:
        self._segment = segment
        self._flow = segment.successors()
        self._predecessors = graph.reverse(self._flow)
        self._branching = {
            label for label, block in segment.blocks.items() if len(block.terminator.successors) > 1
        }
        outermost = [loop for loop in loops if not any(loop.blocks < other.blocks for other in loops)]
        self._loops = {block: loop for loop in outermost for block in loop.blocks}
        # Strided accesses outside of loops may depend on definitions outside of loops only.
        outside = (b.instructions for label, b in segment.blocks.items() if label not in self._loops)
        again = [i for i in segment.recompute if i.result not in segment.slots]
        definitions = {i.result: i for each in (again, *outside) for i in each if i.result and i.text}
        definitions |= {name: i for name, i in _loaded(segment, self._flow).items() if name in definitions}
        self._analyses: dict[Reach, Analysis] = {
            reach: Analysis(definitions, known, reach) for reach in ("launch", "group")
        }
        self._paths: dict[tuple[str, Reach], _AddressPath | None] = {}
        self._before: dict[frozenset[str], set[str] | None] = {}

    def find(self, label: str, access: ir.Instruction, *, copied: bool = False) -> StridedAccess | None:
        """Return an access as a strided one, of the widest reach; ``None`` if it is not strided.

        If other segments have copies of the access, it is recorded with them by group.
        """
        # In very large kernels the search takes longer than it saves.
        if len(self._segment.blocks) > _MOST_BLOCKS:
            return None
        reaches: tuple[Reach, ...] = ("group",) if self._segment.number or copied else ("launch", "group")
        for reach in reaches:
            strided = self._find_along(label, access, reach)
            # Division of ranges pays off once per launch, not for each work-group.
            if strided is not None and (reach == "launch" or not any(strided.atoms.values())):
                return strided
        return None

    def _find_along(self, label: str, access: ir.Instruction, reach: Reach) -> StridedAccess | None:
        analysis = self._analyses[reach]
        (memory,) = access.accesses
        if analysis.value(memory.pointer) is None:
            return None
        if (label, reach) not in self._paths:
            self._paths[label, reach] = self._path(label, analysis)
        path = self._paths[label, reach]
        if path is None:
            return None
        needed, checks = analysis.needs(*path.conditions, memory.pointer)
        if any(before not in path.blocks for i in needed.values() for _, before in i.incoming):
            return None
        return StridedAccess(label, [access], path.blocks, needed, path.atoms, checks, reach)

    def _path(self, label: str, analysis: Analysis) -> _AddressPath | None:
        """Return the path to a block, if all its conditions are known."""
        blocks = self._path_to(label)
        if blocks is None:
            return None
        path = _AddressPath(blocks, [], {})
        for block in blocks:
            if block == label or blocks[block] or block not in self._branching:
                continue
            end = self._segment.blocks[block].terminator
            condition = _condition(end)
            atoms = analysis.atoms(condition) if condition else []
            if atoms is None or (not condition and any(analysis.value(v) != "same" for v in end.uses())):
                return None
            path.conditions.extend(sorted(end.uses()))
            path.atoms[block] = atoms
        return path

    def _path_to(self, label: str) -> dict[str, str] | None:
        """Return the blocks on paths to a block outside of loops.

        Loops on the path are skipped: the block before one continues at the loop's successor.
        """
        blocks = {label: ""}
        pending = [label]
        while pending:
            block = pending.pop()
            for before in self._predecessors[block]:
                if before not in self._loops:
                    if before not in blocks:
                        blocks[before] = ""
                        pending.append(before)
                    continue
                entered = self._blocks_before(self._loops[before])
                if entered is None:
                    return None
                for outside in entered:
                    if blocks.get(outside, block) != block:
                        return None
                    if outside not in blocks:
                        pending.append(outside)
                    blocks[outside] = block
        return blocks

    def _blocks_before(self, loop: graph.Loop) -> set[str] | None:
        """Return the blocks before a loop that a path may skip; ``None`` if it may not."""
        if loop.blocks not in self._before:
            segment, flow = self._segment, self._flow
            targets = {t for b in loop.blocks for t in flow[b] if t not in loop.blocks}
            entered = {p for b in loop.blocks for p in self._predecessors[b] if p not in loop.blocks}
            is_skipped = (
                len(targets) == 1
                and not loop.blocks & segment.exits.keys()
                and segment.entry not in loop.blocks
                and all(len(flow[label]) < 2 and label not in self._loops for label in entered)
            )
            self._before[loop.blocks] = entered if is_skipped else None
        return self._before[loop.blocks]


def _loaded(segment: Segment, flow: graph.Graph) -> dict[str, ir.Instruction]:
    """Return loads of slots, outside of loops, as copies: of what enters the segment, or what it computes."""
    copies: dict[str, ir.Instruction] = {}
    for name, type_ in segment.slots.items():
        defined, _ = segment.definitions[name]
        elsewhere = graph.reachable(flow, [segment.entry], [defined]) - {defined}  # Without the definition
        behind = graph.reachable(flow, flow[defined])
        for label, block in segment.blocks.items():
            is_defined = label not in elsewhere and label != defined
            for i in block.instructions:
                is_defined |= i.result == name and bool(i.text)
                if i.opcode != "load" or i.counted or not i.text.endswith(f" {slot_name(name)}"):
                    continue
                if is_defined or label not in behind:
                    value = name if is_defined else segment.entering(name)
                    text = f"bitcast {type_} {value} to {type_}"
                    copies[str(i.result)] = ir.Instruction(text, "bitcast", type_, i.result, counted=False)
    return copies


_CASTS = ("sext", "zext", "trunc")
_MOST_BEFORE = 50
_INCLUSIVE = ("ule", "sle", "ugt", "sgt")
_SWAPPED = str.maketrans("lg", "gl")


@dataclass(frozen=True)
class Split:
    """Bound of local ids in the first branch of a segment."""

    type: str
    value: str
    inclusive: bool  # The work-item whose id is the value behaves as those before it
    comparison: ir.Instruction
    behind: bool  # Its result for greater ids
    needed: list[ir.Instruction]  # Instructions that compute the value


def find_split(segment: Segment, known: Mapping[str, Kind | None]) -> Split | None:
    """Return the bound of local ids of dimension 0 in a segment's first branch, if there is one."""
    flow, label, first = segment.successors(), segment.entry, []
    while (block := segment.blocks[label]) and len(flow[label]) == 1 and label not in segment.exits:
        first += block.instructions
        label = flow[label][0]
        if len(first) > _MOST_BEFORE:
            return None
    first += block.instructions
    definitions = {i.result: i for i in [*segment.recompute, *first] if i.result and i.text}
    decides = definitions.get(_condition(block.terminator))
    comparison = IntegerComparison.of(decides) if decides in first else None
    if decides is None or comparison is None:
        return None
    predicate, type_, a, b = comparison
    if _is_local_id(b, definitions):
        predicate, a, b = predicate.translate(_SWAPPED), b, a
    analysis = Analysis(definitions, known, "group")
    if not _is_local_id(a, definitions) or analysis.value(b) != "same":
        return None
    computed, _ = analysis.needs(b)
    if any(i.opcode == "phi" for i in computed.values()):
        return None
    if predicate in ("eq", "ne") and b != "0":
        return None  # ids on both sides of it take the same path
    needed = [i for i in first if i.result in computed]
    inclusive = predicate in _INCLUSIVE or predicate in ("eq", "ne")
    return Split(type_, b, inclusive, decides, predicate[1:] in ("gt", "ge", "e"), needed)


def _is_local_id(value: str, definitions: Mapping[str, ir.Instruction]) -> bool:
    """Whether a value is the local id of dimension 0, of any width."""
    definition = definitions.get(value)
    if definition is None:
        return False
    if definition.opcode in _CASTS:
        a = definition.operands[0]  # 8 bits do not hold an id
        return not {a.type, definition.type} - {"i16", "i32", "i64"} and _is_local_id(a.value, definitions)
    return called_builtin(definition) == "get_local_id" and definition.operands[0].value == "0"


AnyStrided = TypeVar("AnyStrided", "StridedAccess", "StridedLoop")


def joined(a: AnyStrided, b: AnyStrided) -> AnyStrided:
    """Join strided accesses of the same block."""
    return replace(
        a,
        instructions=a.instructions + b.instructions,
        needed=a.needed | b.needed,
        checks=a.checks | b.checks,
    )


@dataclass(frozen=True)
class StridedLoop:
    """Accesses of one block at equal distances between iterations of an innermost loop, once in each."""

    label: str
    instructions: list[ir.Instruction]
    loop: graph.Loop
    needed: dict[str, ir.Instruction]
    inductions: dict[str, tuple[ir.Instruction, str, str]]  # Phi, start and step of each counter of the loop
    checks: dict[str, str]


class LoopFinder:
    """The strided accesses of an innermost loop."""

    def __init__(self, segment: Segment, flow: graph.Graph, loop: graph.Loop) -> None:
        self._flow, self._loop = flow, loop
        headers = [b for b in sorted(loop.blocks) if any(b in flow[p] for p in flow if p not in loop.blocks)]
        self._header = headers[0] if len(headers) == 1 and segment.entry not in loop.blocks else ""
        definitions = {
            i.result: i for b in loop.blocks for i in segment.blocks[b].instructions if i.result and i.text
        }
        known: dict[str, Kind | None] = {}
        self._inductions = {}
        for phi in segment.blocks[self._header].phis() if self._header else ():
            induction = _induction(phi, loop, definitions)
            assert phi.result
            known[phi.result] = "linear" if induction else None
            if induction:
                self._inductions[phi.result] = (phi, *induction)
        self._analysis = Analysis(definitions, known)

    def find(self, label: str, access: ir.Instruction) -> StridedLoop | None:
        """Return an access of a block as a strided one; ``None`` if it is not at equal distances."""
        if not self._header or not _in_each_iteration(self._flow, self._loop, self._header, label):
            return None
        (memory,) = access.accesses
        if self._analysis.value(memory.pointer) is None:
            return None
        needed, checks = self._analysis.needs(memory.pointer)
        # Counters that no address depends on are included.
        return StridedLoop(label, [access], self._loop, needed, self._inductions, checks)


def _in_each_iteration(flow: graph.Graph, loop: graph.Loop, header: str, label: str) -> bool:
    """Whether every iteration from the header back to it passes a block."""
    if label == header:
        return True
    seen, pending = {label}, [header]
    while pending:
        block = pending.pop()
        seen.add(block)
        for successor in flow[block]:
            if successor == header:
                return False
            if successor in loop.blocks and successor not in seen:
                pending.append(successor)
    return True


def _induction(
    phi: ir.Instruction, loop: graph.Loop, definitions: Mapping[str, ir.Instruction]
) -> tuple[str, str] | None:
    """Return start and step of a loop's counter."""
    starts = [value for value, label in phi.incoming if label not in loop.blocks]
    nexts = {value for value, label in phi.incoming if label in loop.blocks}
    if len(starts) != 1 or len(nexts) != 1:
        return None
    following = definitions.get(nexts.pop())
    if following is None:
        return None
    values = [operand.value for operand in following.operands]
    if following.opcode == "getelementptr":
        follows_phi = following.operands[0].type == "i8" and values[1] == phi.result
        return (starts[0], values[2]) if follows_phi and re.fullmatch(r"-?\d+", values[2]) else None
    if following.opcode not in ("add", "sub") or following.type not in _INTEGERS:
        return None
    if following.opcode == "add" and values[1] == phi.result:
        values.reverse()
    if values[0] != phi.result or values[1] == phi.result or values[1] in definitions:
        return None
    if following.opcode == "add":
        return starts[0], values[1]
    return (starts[0], str(-int(values[1]))) if re.fullmatch(r"-?\d+", values[1]) else None
