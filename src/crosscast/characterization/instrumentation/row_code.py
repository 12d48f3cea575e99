"""Code that records the rows of accesses of one segment (`rows` says which), before and behind its loops.

A slice is a function of one place in a row: it computes the address there, and what has to be checked. It is
called for the first, the second and the last place; where the check fails, for each of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph, instrumented
from crosscast.characterization.instrumentation.branch_code import SegmentEditor
from crosscast.characterization.instrumentation.instrumented import Frame, Shared
from crosscast.characterization.instrumentation.regions import Segment
from crosscast.characterization.instrumentation.rows import (
    Kind,
    LoopRow,
    Reach,
    Row,
    find_loop_row,
    find_row,
    find_split,
    joined,
    without_promises,
)

_MOST_ACCESSES, _MOST_CHECKS = 20, 40  # as the runtime has room for
_FEWEST = 16  # smaller work-groups make their rows not worth while
SLICE = "{ ptr, i64, i64, i64, i64, i64 }"
"""LLVM type of a slice's description, `struct slice` of the runtime."""
_REACHED, _ATOMS, _ADDRESSES = range(3)
"""What a slice returns: whether it got to the accesses, bits of comparisons, the addresses; then checks."""
_UNSIGNED = frozenset({"ult", "ule", "ugt", "uge"})


class _Slice:
    """Text of a function that computes one place of a row."""

    def __init__(self, shared: Shared, accesses: int) -> None:
        self._shared = shared
        self._serial = 0
        self.first_check = _ADDRESSES + accesses
        self.positive = [False] * self.first_check  # Whether each returned value is to be unsigned

    @property
    def type(self) -> str:
        """LLVM type of what it returns."""
        return f"{{ {', '.join(['i64'] * len(self.positive))} }}"

    def slots(self) -> list[str]:
        """Stack slots of what it returns; to be written last."""
        return [
            row
            for k in range(len(self.positive))
            for row in (f"  %cc.r{k} = alloca i64", f"  store i64 0, ptr %cc.r{k}")
        ]

    def result(self) -> list[str]:
        """Return all slots."""
        rows, whole = [], "poison"
        for k in range(len(self.positive)):
            rows += [
                f"  %cc.v{k} = load i64, ptr %cc.r{k}",
                f"  %cc.w{k} = insertvalue {self.type} {whole}, i64 %cc.v{k}, {k}",
            ]
            whole = f"%cc.w{k}"
        return [*rows, f"  ret {self.type} {whole}"]

    def stores(self) -> list[str]:
        """Write all slots to where the caller wants them."""
        return [
            row
            for k in range(len(self.positive))
            for row in (
                f"  %cc.v{k} = load i64, ptr %cc.r{k}",
                f"  %cc.w{k} = getelementptr i64, ptr %cc.results, i64 {k}",
                f"  store i64 %cc.v{k}, ptr %cc.w{k}",
            )
        ]

    def _new(self) -> str:
        self._serial += 1
        return f"%cc.s{self._serial}"

    def instruction(self, original: ir.Instruction, extension: str | None) -> list[str]:
        """An instruction without its promises, and its result kept to be checked."""
        copy = without_promises(original)
        lowered = self._shared.lowering.lower(copy) if copy.opcode == "call" else [copy]
        rows = [part.render() for part in lowered]
        assert original.result
        return [*rows, *(self.check(original.result, extension) if extension else [])]

    def check(self, value: str, extension: str, *, positive: bool = False) -> list[str]:
        """Keep a value, widened to 64 bits."""
        operation, type_ = extension.split(" ")
        number, wide = len(self.positive), value
        self.positive.append(positive)
        rows = []
        if type_ != "i64":
            wide = self._new()
            rows.append(f"  {wide} = {operation} {type_} {value} to i64")
        return [*rows, f"  store i64 {wide}, ptr %cc.r{number}"]

    def atom(self, match: re.Match[str]) -> list[str]:
        """Append to the bits whether a comparison's first side is less, and whether both are equal."""
        predicate, type_, a, b = match.groups()
        unsigned = predicate in _UNSIGNED
        extension = f"{'zext' if unsigned else 'sext'} {type_}"
        less, equal, both, wide, old, moved, new = (self._new() for _ in range(7))
        rows = [row for side in (a, b) for row in self.check(side, extension, positive=unsigned)]
        return [
            *rows,
            f"  {less} = icmp {'ult' if unsigned else 'slt'} {type_} {a}, {b}",
            f"  {equal} = icmp eq {type_} {a}, {b}",
            f"  {both} = select i1 {equal}, i64 2, i64 0",
            f"  {wide} = zext i1 {less} to i64",
            f"  {old} = load i64, ptr %cc.r{_ATOMS}",
            f"  {moved} = shl i64 {old}, 2",
            f"  {new}.x = or i64 {moved}, {both}",
            f"  {new} = or i64 {new}.x, {wide}",
            f"  store i64 {new}, ptr %cc.r{_ATOMS}",
        ]

    def reach(self, instructions: Sequence[ir.Instruction]) -> list[str]:
        """Keep the addresses."""
        rows = [f"  store i64 1, ptr %cc.r{_REACHED}"]
        for number, instruction in enumerate(instructions, _ADDRESSES):
            (access,) = instruction.accesses
            place = self._new()
            rows += [
                f"  {place} = ptrtoint {access.pointer_type} {access.pointer} to i64",
                f"  store i64 {place}, ptr %cc.r{number}",
            ]
        return rows


_PLACES = {"cc.first": "0", "cc.second": "%cc.one", "cc.last": "%cc.end"}
"""Results of the slice of a loop, by the iteration that each is of."""


@dataclass(frozen=True)
class _Recorder:
    """Writes the functions that record accesses of a loop, around their slice."""

    name: str  # Of the function
    formal: str  # Its parameters, but for the number of iterations
    slice: _Slice
    sites: list[int]  # Number of each access's rows for the runtime; the next is that of their parts
    flags: list[int]  # As the runtime wants them

    def functions(self) -> list[str]:
        """Record the row, or its places one by one."""
        return [*self._whole(), *self._one_by_one()]

    def _at(self, result: str, place: str) -> str:
        """Call the slice."""
        arguments = self.formal.replace("i64 %cc.place", f"i64 {place}")
        return f"  %{result} = call {self.slice.type} @{self.name}.at({arguments})"

    def _calls(self, part: int, steps: str) -> list[str]:
        """Let the runtime record each access."""
        return [
            f"  call void @cc_row(ptr %cc.ctx, i32 {site + part}, i32 {flags}, i64 %cc.first.{k}, "
            f"{steps.format(step=f'%cc.step{k}')})"
            for k, (site, flags) in enumerate(zip(self.sites, self.flags, strict=True), _ADDRESSES)
        ]

    def _whole(self) -> list[str]:
        return [
            f"define internal void @{self.name}({self.formal}, i64 %cc.n) alwaysinline nounwind {{",
            "cc.start:",
            "  %cc.any = icmp ne i64 %cc.n, 0",
            "  br i1 %cc.any, label %cc.compute, label %cc.done",
            "cc.compute:",
            "  %cc.end = sub i64 %cc.n, 1",
            "  %cc.many = icmp ne i64 %cc.n, 1",
            "  %cc.one = zext i1 %cc.many to i64",
            *(self._at(name, place) for name, place in _PLACES.items()),
            *self._compare(),
            "  br i1 %cc.even, label %cc.record, label %cc.parts, !prof !999991",
            "cc.record:",
            *self._calls(0, "i64 {step}, i64 %cc.n"),
            "  br label %cc.done",
            "cc.parts:",
            f"  call void @{self.name}.parts({self.formal}, i64 %cc.n)",
            "  br label %cc.done",
            *("cc.done:", "  ret void", "}"),
        ]

    def _one_by_one(self) -> list[str]:
        """Record the places of what is not even."""
        return [
            f"define internal void @{self.name}.parts({self.formal}, i64 %cc.n) noinline cold nounwind {{",
            *("cc.start:", "  br label %cc.loop"),
            "cc.loop:",
            "  %cc.i = phi i64 [ 0, %cc.start ], [ %cc.next, %cc.loop ]",
            self._at("cc.first", "%cc.i"),
            *(
                f"  %cc.first.{k} = extractvalue {self.slice.type} %cc.first, {k}"
                for k in range(self.slice.first_check)
            ),
            *self._calls(1, "i64 0, i64 1"),
            "  %cc.next = add i64 %cc.i, 1",
            "  %cc.more = icmp ult i64 %cc.next, %cc.n",
            "  br i1 %cc.more, label %cc.loop, label %cc.done",
            *("cc.done:", "  ret void", "}"),
        ]

    def _compare(self) -> list[str]:
        """Check the slice's results at some places; `%cc.even` says whether all is even."""
        rows = [
            f"  %{name}.{k} = extractvalue {self.slice.type} %{name}, {k}"
            for name in _PLACES
            for k in range(len(self.slice.positive))
        ]
        for k in range(_ADDRESSES, self.slice.first_check):
            rows.append(f"  %cc.step{k} = sub i64 %cc.second.{k}, %cc.first.{k}")
        ok = "true"
        for k in range(self.slice.first_check, len(self.slice.positive)):
            c = f"%cc.check{k}"
            rows += [
                f"  {c}.d = sub i64 %cc.second.{k}, %cc.first.{k}",
                f"  {c}.m = mul i64 {c}.d, %cc.end",
                f"  {c}.e = add i64 %cc.first.{k}, {c}.m",
                f"  {c}.even = icmp eq i64 {c}.e, %cc.last.{k}",
                f"  {c}.ok = and i1 {ok}, {c}.even",
            ]
            ok = f"{c}.ok"
        return [*rows, f"  %cc.even = and i1 {ok}, true"]


class RowCode:
    """Finds and records the rows of one segment."""

    def __init__(self, segment: Segment, loops: list[graph.Loop], shared: Shared) -> None:
        self._segment, self._shared = segment, shared
        self._rows: dict[tuple[str, Reach], Row] = {}
        self._descriptions: dict[Reach, list[str]] = {"group": [], "launch": []}
        self._loop_rows: dict[str, LoopRow] = {}
        if not (segment.once or segment.slots or shared.switches.check_bounds):
            self._find(loops)

    @property
    def apart(self) -> set[int]:
        """Identities of the instructions that are recorded here."""
        rows: list[Row | LoopRow] = [*self._rows.values(), *self._loop_rows.values()]
        return {id(i) for row in rows for i in row.instructions}

    def slices(self, reach: Reach) -> list[str]:
        """Descriptions of the slices of some reach, as constants; `functions` makes them."""
        return self._descriptions[reach]

    def _find(self, loops: list[graph.Loop]) -> None:
        shared, segment = self._shared, self._segment
        inner = graph.innermost(loops)
        items = math.prod(shared.switches.local_size[:2])
        flow = segment.successors()
        known: dict[str, Kind | None] = {p.name: "same" for p in shared.parameters}
        known |= {carried.name: "same" for carried in segment.restore if carried.uniform}
        for label, block in segment.blocks.items():
            for instruction in block.instructions:
                if len(instruction.accesses) != 1 or instruction.opcode not in ("load", "store"):
                    continue
                if shared.class_of(instruction.accesses[0]).place in ("dynamic", "private"):
                    continue
                loop = inner.get(label)
                if loop is None and not shared.by_turns:
                    row = find_row(segment, loops, label, instruction, known)
                    if row and (row.reach == "launch" or items >= _FEWEST):
                        self._add(row)
                elif loop and not any(other.blocks < loop.blocks for other in loops):
                    more = find_loop_row(segment, flow, loop, label, instruction)
                    if more and self._free(more) is not None:
                        old = self._loop_rows.get(label)
                        self._loop_rows[label] = joined(old, more) if old else more

    def _add(self, row: Row) -> None:
        """Add a row to those of its block, as far as their results have room."""
        key = row.label, row.reach
        whole = joined(self._rows[key], row) if key in self._rows else row
        atoms = sum(map(len, whole.atoms.values()))
        if len(whole.instructions) <= _MOST_ACCESSES and len(whole.checks) + 2 * atoms <= _MOST_CHECKS:
            self._rows[key] = whole

    def _free(self, row: LoopRow) -> list[tuple[str, str]] | None:
        """Types and names of values that a loop's slice needs from outside; ``None`` if one is unknown."""
        types = {i.result: i.type for b in self._segment.blocks.values() for i in b.instructions}
        types |= {i.result: i.type for i in self._segment.recompute}
        types |= {carried.name: carried.type for carried in self._segment.restore}
        given = {p.name for p in self._shared.parameters}
        used = {name for i in row.needed.values() for name in i.uses()}
        pointers = [access.pointer for i in row.instructions for access in i.accesses]
        texts = [*pointers, *(text for _, *values in row.inductions.values() for text in values)]
        used |= {text for text in texts if text.startswith("%")}
        free = sorted(used - given - row.needed.keys() - row.inductions.keys())
        found = [(types.get(name, ""), name) for name in free]
        return found if all(type_ for type_, _ in found) else None

    def functions(self) -> list[str]:
        """IR of all functions."""
        rows = [text for number, row in enumerate(self._rows.values()) for text in self._row(number, row)]
        for number, loop_row in enumerate(self._loop_rows.values()):
            rows += self._loop_row(number, loop_row, self._free(loop_row) or [])
        return rows

    def record_loops(self, editor: SegmentEditor) -> list[tuple[graph.Edge, list[str]]]:
        """Count the iterations of each loop, and record its rows on every edge out of it."""
        on_edges: list[tuple[graph.Edge, list[str]]] = []
        formal = instrumented.formal(self._shared.parameters)
        for number, (label, row) in enumerate(self._loop_rows.items()):
            length = editor.slot("times", "i64")
            editor.at_start(label, editor.increment(length, "i64"))
            free = [f"{type_} {name}" for type_, name in self._free(row) or []]
            arguments = ", ".join([formal, "i64 0", *free])
            for source in sorted(row.loop.blocks):
                targets = [t for t in editor.flow[source] if t not in row.loop.blocks]
                if source in self._segment.exits:
                    targets.append(graph.EXIT)
                for target in targets:
                    times = self._shared.names.unique("n")
                    code = [
                        f"{times} = load i64, ptr {length}",
                        f"call void @{self._name('loop', number)}({arguments}, i64 {times})",
                        f"store i64 0, ptr {length}",
                    ]
                    on_edges.append(((source, target), code))
        return on_edges

    def _name(self, kind: str, number: int) -> str:
        return f"cc.segment{self._segment.number}.{kind}{number}"

    def _flags(self, instructions: Sequence[ir.Instruction]) -> list[int]:
        flags = []
        for instruction in instructions:
            (access,) = instruction.accesses
            is_local = self._shared.class_of(access).place == "local"
            flags.append((access.kind != "write") + 2 * (access.kind != "read") + 4 * is_local)
        return flags

    def _sites(self, instructions: Sequence[ir.Instruction]) -> list[int]:
        return [self._shared.counters.for_row() for _ in instructions]

    def _row(self, number: int, row: Row) -> list[str]:
        shared, segment = self._shared, self._segment
        name, slice_ = self._name("row", number), _Slice(shared, len(row.instructions))
        body: list[str] = []
        for label, kept, end in row.rows(segment):
            body.append(f"{label[1:]}:")
            body += [ir.render_phi(i, label, segment.blocks) for i in kept if i.opcode == "phi"]
            others = [i for i in kept if i.opcode != "phi"]
            body += [text for i in others for text in slice_.instruction(i, row.checks.get(i.result or ""))]
            body += [text for match in row.atoms.get(label, ()) for text in slice_.atom(match)]
            body += slice_.reach(row.instructions) if end is None else [end.render()]
            body += ["  br label %cc.exit"] if end is None else []
        computed = {i.result for i in segment.recompute}
        early = [text for v, ext in row.checks.items() if v in computed for text in slice_.check(v, ext)]
        sites, flags = self._sites(row.instructions), self._flags(row.instructions)
        checked = slice_.positive[slice_.first_check :]
        words = [
            *(len(sites), len(checked), sum(bit << k for k, bit in enumerate(checked)), sites[0]),
            sum(flag << 3 * k for k, flag in enumerate(flags)),
        ]
        self._descriptions[row.reach].append(
            f"{SLICE} {{ ptr @{name}, {', '.join(f'i64 {word}' for word in words)} }}"
        )
        return [
            f"define internal void @{name}({instrumented.SLICE}) nounwind {{",
            "cc.start:",
            *instrumented.load_all(shared.parameters, shared.switches),
            *(*slice_.slots(), *Frame(segment, shared).prologue(), *body),
            *("cc.exit:", *early, *slice_.stores(), "  ret void", "}"),
        ]

    def _loop_row(self, number: int, row: LoopRow, free: Sequence[tuple[str, str]]) -> list[str]:
        shared = self._shared
        name, slice_ = self._name("loop", number), _Slice(shared, len(row.instructions))
        body: list[str] = []
        for phi, start, step in row.inductions.values():
            body += _advance(phi, start, step)
        for value, definition in row.needed.items():
            if value not in row.inductions:
                body += slice_.instruction(definition, row.checks.get(value))
        body += slice_.reach(row.instructions)
        outside = [f"{type_} {value}" for type_, value in free]
        formal = ", ".join([instrumented.formal(shared.parameters), "i64 %cc.place", *outside])
        rows = [
            f"define internal {slice_.type} @{name}.at({formal}) alwaysinline nounwind {{",
            *("cc.start:", *slice_.slots(), *body, *slice_.result(), "}"),
        ]
        sites, flags = self._sites(row.instructions), self._flags(row.instructions)
        return [*rows, *_Recorder(name, formal, slice_, sites, flags).functions()]


SMALLEST_SPLIT = 32
MOST_SPLIT = 200
"""What it pays off to divide: loops over so many work-items, of segments of so many instructions."""


def split_function(segment: Segment, shared: Shared) -> str:
    """Function that tells where the loop over work-items is divided; empty if it is not.

    Those behind, for which the segment's `%cc.rest` is true, all go one way at the first branch.
    """
    size = sum(len(block.instructions) for block in segment.blocks.values())
    along, _, layers = (
        shared.switches.local_size
    )  # what is the same in a layer may differ from one to the next
    if along < SMALLEST_SPLIT or layers > 1 or size > MOST_SPLIT:
        return ""
    if segment.once or segment.slots or shared.by_turns:
        return ""
    known: dict[str, Kind | None] = {p.name: "same" for p in shared.parameters}
    known |= {carried.name: "same" for carried in segment.restore if carried.uniform}
    split = find_split(segment, known)
    if split is None:
        return ""
    slice_, frame = _Slice(shared, 0), Frame(segment, shared)
    extension = "zext" if split.type != "i64" else "bitcast"
    rows = [
        frame.header("i64", f"cc.segment{segment.number}.split", divided=True),
        *("cc.start:", *frame.prologue(), f"{segment.entry[1:]}:"),
        *(text for i in split.needed for text in slice_.instruction(i, None)),
        f"  %cc.bound = {extension} {split.type} {split.value} to i64",
        "  %cc.below = icmp ne i64 %cc.bound, -1",
        f"  %cc.more = select i1 %cc.below, i64 {int(split.inclusive)}, i64 0",
        "  %cc.end = add i64 %cc.bound, %cc.more",
        *("  ret i64 %cc.end", "}"),
    ]
    found = shared.names.unique("c")
    original = split.comparison
    label = next(label for label, block in segment.blocks.items() if original in block.instructions)
    instructions = segment.blocks[label].instructions
    place = instructions.index(original)
    instructions.insert(place, ir.added(f"{found} = {original.text}"))
    original.text = f"select i1 %cc.rest, i1 {str(split.behind).lower()}, i1 {found}"
    return "\n".join(rows)


def _advance(phi: ir.Instruction, start: str, step: str) -> list[str]:
    """A loop's counter, so many iterations after its start."""
    name = (
        f"{phi.result}.cc.by" if not (phi.result or "").endswith('"') else f'{(phi.result or "")[:-1]}.cc.by"'
    )
    if phi.type.startswith("ptr"):
        return [
            f"  {name} = mul i64 %cc.place, {step}",
            f"  {phi.result} = getelementptr i8, {phi.type} {start}, i64 {name}",
        ]
    narrow = name.replace(".cc.by", ".cc.at")
    convert = f"trunc i64 %cc.place to {phi.type}" if phi.type != "i64" else "add i64 %cc.place, 0"
    return [
        f"  {narrow} = {convert}",
        f"  {name} = mul {phi.type} {narrow}, {step}",
        f"  {phi.result} = add {phi.type} {start}, {name}",
    ]
