"""Code that records the rows of accesses of one segment (`rows` says which), before and behind its loops.

A slice is a function of one place in a row: it computes the address there, and what has to be checked. It is
called for the first, the second and the last place; where the check fails, for each of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph, instrumented
from crosscast.characterization.instrumentation.branch_code import OnEdges, SegmentEditor
from crosscast.characterization.instrumentation.context import Code
from crosscast.characterization.instrumentation.instrumented import Frame, Instrumented
from crosscast.characterization.instrumentation.regions import Segment
from crosscast.characterization.instrumentation.rows import (
    Comparison,
    Kind,
    LoopRow,
    Reach,
    Row,
    RowFinder,
    find_loop_row,
    find_split,
    joined,
    without_promises,
)
from crosscast.characterization.instrumentation.sub_groups import RUNS

_MOST_ACCESSES, _MOST_CHECKS = 20, 40  # as the runtime has room for
_FEWEST = 16  # smaller work-groups make their rows not worth while
SLICE = "{ ptr, i64, i64, i64, i64, i64, ptr, i64 }"
"""LLVM type of a slice's description, `struct slice` of the runtime."""
_REACHED, _ATOMS, _ADDRESSES = range(3)
"""What a slice returns: whether it got to the accesses, bits of comparisons, the addresses; then checks."""
_UNSIGNED = frozenset({"ult", "ule", "ugt", "uge"})


class _Slice(Code):
    """Text of a function that computes one place of a row, and writes it to ``%cc.results``."""

    def __init__(self, shared: Instrumented, accesses: int) -> None:
        super().__init__(shared.names)
        self._lowering = shared.lowering
        self.first_check = _ADDRESSES + accesses
        self.positive = [False] * self.first_check  # Whether each result is to be unsigned

    def results(self) -> list[str]:
        """Where the results go, 0 at first; to stand before the rest, but to be written last."""
        places = (
            f"%cc.r{k} = getelementptr i64, ptr %cc.results, i64 {k}" for k in range(len(self.positive))
        )
        return [text for k, place in enumerate(places) for text in (place, f"store i64 0, ptr %cc.r{k}")]

    def instruction(self, original: ir.Instruction, extension: str | None = None) -> None:
        """An instruction without its promises, and its result kept to be checked."""
        copy = without_promises(original)
        self.do(*(part.render() for part in self._lowering.lower(copy)))
        if extension and original.result:
            self.check(original.result, extension)

    def check(self, value: str, extension: str, *, positive: bool = False) -> None:
        """Keep a value, widened to 64 bits."""
        operation, type_ = extension.split(" ")
        wide = value if type_ == "i64" else self.value(f"{operation} {type_} {value} to i64")
        self.store("i64", wide, f"%cc.r{len(self.positive)}")
        self.positive.append(positive)

    def atom(self, comparison: Comparison) -> None:
        """Append to the bits whether the first side is less, and whether both are equal."""
        predicate, type_, a, b = comparison
        unsigned = predicate in _UNSIGNED
        for side in (a, b):
            self.check(side, f"{'zext' if unsigned else 'sext'} {type_}", positive=unsigned)
        less = self.value(f"icmp {'ult' if unsigned else 'slt'} {type_} {a}, {b}")
        bits = self.value(f"select i1 {less}, i64 1, i64 0")
        bits = self.value(f"select i1 {self.value(f'icmp eq {type_} {a}, {b}')}, i64 2, i64 {bits}")
        moved = self.value(f"shl i64 {self.load('i64', f'%cc.r{_ATOMS}')}, 2")
        self.store("i64", self.value(f"or i64 {moved}, {bits}"), f"%cc.r{_ATOMS}")

    def reach(self, instructions: Sequence[ir.Instruction]) -> None:
        """Keep the addresses."""
        self.store("i64", 1, f"%cc.r{_REACHED}")
        for number, instruction in enumerate(instructions, _ADDRESSES):
            (access,) = instruction.accesses
            place = self.value(f"ptrtoint {access.pointer_type} {access.pointer} to i64")
            self.store("i64", place, f"%cc.r{number}")


class RowCode:
    """Finds and records the rows of one segment."""

    def __init__(self, segment: Segment, loops: list[graph.Loop], shared: Instrumented) -> None:
        self._segment, self._shared = segment, shared
        self._rows: list[Row] = []
        self._open: dict[tuple[str, Reach], int] = {}  # By block: the last of its rows
        self._descriptions: dict[Reach, list[str]] = {"group": [], "launch": []}
        self._loop_rows: dict[str, LoopRow] = {}
        if shared.switches.counts and not (segment.once or segment.slots or shared.switches.check_bounds):
            self._find(loops)

    @property
    def apart(self) -> set[int]:
        """Identities of the instructions that are recorded here."""
        rows: list[Row | LoopRow] = [*self._rows, *self._loop_rows.values()]
        return {id(i) for row in rows for i in row.instructions}

    def slices(self, reach: Reach) -> list[str]:
        """Descriptions of the slices of some reach, as constants; `functions` makes them."""
        return self._descriptions[reach]

    def _find(self, loops: list[graph.Loop]) -> None:
        shared, segment = self._shared, self._segment
        inner = graph.innermost(loops)
        items = math.prod(shared.switches.local_size[:2])
        flow = segment.successors()
        finder = RowFinder(segment, loops, _known(segment, shared))
        for label, block in segment.blocks.items():
            for instruction in block.instructions:
                if len(instruction.accesses) != 1 or instruction.opcode not in ("load", "store"):
                    continue
                if shared.class_of(instruction.accesses[0]).place in ("dynamic", "private"):
                    continue
                loop = inner.get(label)
                if loop is None and not shared.by_turns:
                    copied = shared.sub_groups.is_copied(instruction.accesses[0].site)
                    row = finder.find(label, instruction, copied=copied)
                    if row and (row.reach == "launch" or items >= _FEWEST):
                        self._add(row)
                elif loop and not any(other.blocks < loop.blocks for other in loops):
                    more = find_loop_row(segment, flow, loop, label, instruction)
                    if more and self._free(more) is not None:
                        old = self._loop_rows.get(label)
                        self._loop_rows[label] = joined(old, more) if old else more

    def _add(self, row: Row) -> None:
        """Join a row with the last one of its block, as far as its results have room; or begin another."""
        last = self._open.get((row.label, row.reach))
        whole = row if last is None else joined(self._rows[last], row)
        if last is not None and _has_room(whole):
            self._rows[last] = whole
        elif _has_room(row):
            self._open[row.label, row.reach] = len(self._rows)
            self._rows.append(row)

    def _free(self, row: LoopRow) -> list[tuple[str, str]] | None:
        """Types and names of values that a loop's slice needs from outside; ``None`` if one is unknown."""
        given = {p.name for p in self._shared.parameters}
        used = {name for i in row.needed.values() for name in i.uses()}
        pointers = [access.pointer for i in row.instructions for access in i.accesses]
        texts = [*pointers, *(text for _, *values in row.inductions.values() for text in values)]
        used |= {text for text in texts if text.startswith("%")}
        free = sorted(used - given - row.needed.keys() - row.inductions.keys())
        found = [(self._types.get(name, ""), name) for name in free]
        return found if all(type_ for type_, _ in found) else None

    @functools.cached_property
    def _types(self) -> dict[str | None, str]:
        """Types of the segment's values."""
        types = {i.result: i.type for b in self._segment.blocks.values() for i in b.instructions}
        types |= {i.result: i.type for i in self._segment.recompute}
        return types | {carried.name: carried.type for carried in self._segment.restore}

    def functions(self) -> list[str]:
        """IR of all functions."""
        rows = [text for number, row in enumerate(self._rows) for text in self._row(number, row)]
        for number, loop_row in enumerate(self._loop_rows.values()):
            rows += self._loop_row(number, loop_row, self._free(loop_row) or [])
        return rows

    def record_loops(self, editor: SegmentEditor) -> OnEdges:
        """Count the iterations of each loop, and record its rows on every edge out of it."""
        on_edges: OnEdges = []
        for number, (label, row) in enumerate(self._loop_rows.items()):
            length = editor.slot("times", "i64")
            editor.at_start(label, editor.increment(length, "i64"))
            formal = self._formal(self._free(row) or [])
            for edge in editor.out_of(row.loop):
                code = Code(self._shared.names)
                times = code.load("i64", length)
                code.do(f"call void @{self._name('loop', number)}({formal}, i64 {times})")
                code.store("i64", 0, length)
                on_edges.append((edge, code.texts))
        return on_edges

    def _formal(self, free: Sequence[tuple[str, str]], *more: str) -> str:
        """Parameters of a function that records a loop."""
        return ", ".join([instrumented.formal(self._shared.parameters), *map(" ".join, free), *more])

    def _name(self, kind: str, number: int) -> str:
        return f"cc.segment{self._segment.number}.{kind}{number}"

    def _sites(self, instructions: Sequence[ir.Instruction]) -> list[tuple[int, int]]:
        """For each access the number of its rows, of which the next is that of their parts, and its flags."""
        sites = []
        for instruction in instructions:
            (access,) = instruction.accesses
            is_local = self._shared.class_of(access).place == "local"
            flags = (access.kind != "write") + 2 * (access.kind != "read") + 4 * is_local
            sites.append((self._shared.counters.for_row(), flags))
        return sites

    def _row(self, number: int, row: Row) -> list[str]:
        shared, segment = self._shared, self._segment
        name, code = self._name("row", number), _Slice(shared, len(row.instructions))
        for label, kept, end in row.rows(segment):
            code.do(f"{label[1:]}:")
            code.do(*(ir.render_phi(i, label, segment.blocks) for i in kept if i.opcode == "phi"))
            for i in kept:
                if i.opcode != "phi":
                    code.instruction(i, row.checks.get(i.result or ""))
            for comparison in row.atoms.get(label, ()):
                code.atom(comparison)
            if end is None:
                code.reach(row.instructions)
            code.do("br label %cc.exit" if end is None else end.render())
        code.do("cc.exit:")
        computed = {i.result for i in segment.recompute}
        for value, extension in row.checks.items():
            if value in computed:
                code.check(value, extension)
        sites, checked = self._sites(row.instructions), code.positive[code.first_check :]
        words = [
            *(len(sites), len(checked), sum(bit << k for k, bit in enumerate(checked)), sites[0][0]),
            sum(flags << 3 * k for k, (_, flags) in enumerate(sites)),
        ]
        self._descriptions[row.reach].append(
            f"{SLICE} {{ ptr @{name}, {', '.join(f'i64 {word}' for word in words)}, ptr @{name}.sites, "
            f"i64 {segment.order[row.label]} }}"
        )
        numbers = ", ".join(f"i64 {i.accesses[0].site}" for i in row.instructions)
        return [
            f"@{name}.sites = internal constant [{len(row.instructions)} x i64] [{numbers}]",
            f"define internal void @{name}({instrumented.SLICE}) nounwind {{",
            "cc.start:",
            *instrumented.load_all(shared.parameters, shared.switches),
            *(*code.results(), *Frame(segment, shared).prologue(), *code.texts),
            *("ret void", "}"),
        ]

    def _loop_row(self, number: int, row: LoopRow, free: Sequence[tuple[str, str]]) -> list[str]:
        name, code = self._name("loop", number), _Slice(self._shared, len(row.instructions))
        for phi, start, step in row.inductions.values():
            _advance(code, phi, start, step)
        for value, definition in row.needed.items():
            if value not in row.inductions:
                code.instruction(definition, row.checks.get(value))
        code.reach(row.instructions)
        formal = self._formal(free, "i64 %cc.place", "ptr %cc.results")
        sites = self._sites(row.instructions)
        groups, number_ = self._shared.sub_groups, self._segment.number
        order = self._segment.order[row.label]
        places = [groups.record(number_, i.accesses[0].site, RUNS, order) for i in row.instructions]
        return [
            f"define internal void @{name}.at({formal}) alwaysinline nounwind {{",
            *("cc.start:", *code.results(), *code.texts, "ret void", "}"),
            *self._record_whole(name, free, code, sites, places),
            *self._record_parts(name, free, code, sites, places),
        ]

    def _record_whole(
        self,
        name: str,
        free: Sequence[tuple[str, str]],
        slice_: _Slice,
        sites: Sequence[tuple[int, int]],
        places_: Sequence[int],
    ) -> list[str]:
        """Record a loop's rows from three of its places, if what is to be checked is even."""
        start, code = Code(self._shared.names), Code(self._shared.names)
        places = []
        for place in ("0", "%cc.one", "%cc.end"):
            results = start.value(f"alloca [{len(slice_.positive)} x i64]")
            code.do(f"call void @{name}.at({self._formal(free, f'i64 {place}', f'ptr {results}')})")
            places.append([code.load("i64", code.at(results, k, "i64")) for k in range(len(slice_.positive))])
        even, (first, second, _) = "true", places
        for a, b, last in list(zip(*places, strict=True))[slice_.first_check :]:
            far = code.value(f"mul i64 {code.value(f'sub i64 {b}, {a}')}, %cc.end")
            is_even = code.value(f"icmp eq i64 {code.value(f'add i64 {a}, {far}')}, {last}")
            even = code.value(f"and i1 {even}, {is_even}")
        code.do(f"br i1 {even}, label %cc.record, label %cc.parts, !prof !999991", "cc.record:")
        found = zip(sites, places_, first[_ADDRESSES:], second[_ADDRESSES:], strict=False)
        for (site, flags), stream, a, b in found:
            step = code.value(f"sub i64 {b}, {a}")
            self._shared.sub_groups.append_run(code, stream, a, step, "%cc.n")
            code.do(
                f"call void @cc_row(ptr %cc.ctx, i32 {site}, i32 {flags}, i64 {a}, i64 {step}, i64 %cc.n)"
            )
        formal = self._formal(free, "i64 %cc.n")
        return [
            f"define internal void @{name}({formal}) alwaysinline nounwind {{",
            *("cc.start:", *start.texts),
            "%cc.any = icmp ne i64 %cc.n, 0",
            *("br i1 %cc.any, label %cc.compute, label %cc.done", "cc.compute:"),
            "%cc.end = sub i64 %cc.n, 1",
            "%cc.many = icmp ne i64 %cc.n, 1",
            "%cc.one = zext i1 %cc.many to i64",
            *(*code.texts, "br label %cc.done"),
            *("cc.parts:", f"call void @{name}.parts({formal})", "br label %cc.done"),
            *("cc.done:", "ret void", "}"),
        ]

    def _record_parts(
        self,
        name: str,
        free: Sequence[tuple[str, str]],
        slice_: _Slice,
        sites: Sequence[tuple[int, int]],
        places: Sequence[int],
    ) -> list[str]:
        """Record a loop's places one by one."""
        code = Code(self._shared.names)
        code.do(f"call void @{name}.at({self._formal(free, 'i64 %cc.i', 'ptr %cc.results')})")
        for k, (site, flags) in enumerate(sites, _ADDRESSES):
            address = code.load("i64", code.at("%cc.results", k, "i64"))
            self._shared.sub_groups.append_run(code, places[k - _ADDRESSES], address, "0", "1")
            code.do(
                f"call void @cc_row(ptr %cc.ctx, i32 {site + 1}, i32 {flags}, i64 {address}, i64 0, i64 1)"
            )
        formal = self._formal(free, "i64 %cc.n")
        return [
            f"define internal void @{name}.parts({formal}) noinline cold nounwind {{",
            f"cc.start:\n%cc.results = alloca [{len(slice_.positive)} x i64]\nbr label %cc.loop",
            "cc.loop:\n%cc.i = phi i64 [ 0, %cc.start ], [ %cc.next, %cc.loop ]",
            *code.texts,
            "%cc.next = add i64 %cc.i, 1",
            "%cc.more = icmp ult i64 %cc.next, %cc.n",
            "br i1 %cc.more, label %cc.loop, label %cc.done",
            *("cc.done:", "ret void", "}"),
        ]


def _has_room(row: Row) -> bool:
    atoms = sum(map(len, row.atoms.values()))
    return len(row.instructions) <= _MOST_ACCESSES and len(row.checks) + 2 * atoms <= _MOST_CHECKS


def _known(segment: Segment, shared: Instrumented) -> dict[str, Kind | None]:
    """Values that enter a segment the same for all work-items."""
    names = [*(p.name for p in shared.parameters), *(each.name for each in segment.restore if each.uniform)]
    return dict.fromkeys(names, "same")


SMALLEST_SPLIT = 32
MOST_SPLIT = 200
"""What it pays off to divide: loops over so many work-items, of segments of so many instructions."""


def split_function(segment: Segment, shared: Instrumented) -> list[str]:
    """Function that tells where the loop over work-items is divided; nothing if it is not.

    Those behind, for which the segment's `%cc.rest` is true, all go one way at the first branch.
    """
    size = sum(len(block.instructions) for block in segment.blocks.values())
    # What is the same for all in a layer of work-items may differ from one to the next.
    along, _, layers = shared.switches.local_size
    if along < SMALLEST_SPLIT or layers > 1 or size > MOST_SPLIT:
        return []
    if segment.once or segment.slots or shared.by_turns:
        return []
    split = find_split(segment, _known(segment, shared))
    if split is None:
        return []
    code, frame = _Slice(shared, 0), Frame(segment, shared)
    for instruction in split.needed:
        code.instruction(instruction)
    extension = "zext" if split.type != "i64" else "bitcast"
    bound = code.value(f"{extension} {split.type} {split.value} to i64")
    below = code.value(f"icmp ne i64 {bound}, -1")
    more = code.value(f"select i1 {below}, i64 {int(split.inclusive)}, i64 0")
    code.do(f"ret i64 {code.value(f'add i64 {bound}, {more}')}", "}")
    found, comparison = shared.names.unique("c"), split.comparison
    instructions = next(b.instructions for b in segment.blocks.values() if comparison in b.instructions)
    instructions.insert(instructions.index(comparison), ir.added(f"{found} = {comparison.text}"))
    comparison.text = f"select i1 %cc.rest, i1 {str(split.behind).lower()}, i1 {found}"
    return [
        frame.header("i64", f"cc.segment{segment.number}.split", divided=True),
        *("cc.start:", *frame.prologue(), f"{segment.entry[1:]}:", *code.texts),
    ]


def _advance(code: Code, phi: ir.Instruction, start: str, step: str) -> None:
    """A loop's counter, so many iterations after its start."""
    type_ = "i64" if phi.type.startswith("ptr") else phi.type
    place = "%cc.place" if type_ == "i64" else code.value(f"trunc i64 %cc.place to {type_}")
    by = code.value(f"mul {type_} {place}, {step}")
    pointer = f"getelementptr i8, {phi.type} {start}, i64 {by}"
    code.do(f"{phi.result} = {pointer if phi.type.startswith('ptr') else f'add {type_} {start}, {by}'}")
