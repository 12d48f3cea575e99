"""Code that records the strided accesses of one segment (see `strided`), before and behind its loops.

A slice is a function of one work-item or iteration: it computes the address, and the values to check. It
is called for the first, the second and the last of them; if the check fails, for each.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.branch_code import OnEdges, SegmentEditor
from crosscast.characterization.instrumentation.code import Code
from crosscast.characterization.instrumentation.emission import (
    SLICE_PARAMETERS,
    Emission,
    Frame,
    formal,
    load_for_slice,
)
from crosscast.characterization.instrumentation.plan import Plan
from crosscast.characterization.instrumentation.segments import Segment
from crosscast.characterization.instrumentation.strided import (
    IntegerComparison,
    Kind,
    LoopFinder,
    Reach,
    StridedAccess,
    StridedFinder,
    StridedLoop,
    find_split,
    joined,
    without_promises,
)
from crosscast.characterization.instrumentation.sub_groups import RUNS

_MOST_ACCESSES, _MOST_CHECKS = 20, 40  # the runtime's capacity
_FEWEST = 16  # not worthwhile for smaller work-groups
SLICE_TYPE = "{ ptr, i64, i64, i64, i64, i64, ptr, i64 }"
"""LLVM type of a slice's description, `struct slice` of the runtime."""
_REACHED, _ATOMS, _ADDRESSES = range(3)
"""Results of a slice: whether it reached the accesses, bits of comparisons, the addresses; then checks."""
_UNSIGNED = frozenset({"ult", "ule", "ugt", "uge"})
_Record = tuple[int, int, int]
"""Stream of an access in a loop, its number as a strided one, and its flags."""


class _Slice(Code):
    """Text of a function that computes the addresses of one work-item or iteration, to ``%cc.results``."""

    def __init__(self, emission: Emission, accesses: int) -> None:
        super().__init__(emission.names)
        self._lowering = emission.lowering
        self.first_check = _ADDRESSES + accesses
        self.positive = [False] * self.first_check  # Whether each result is to be unsigned

    def results(self) -> list[str]:
        """Return the code that initializes the results to 0; it precedes the rest, but is written last."""
        addresses = (
            f"%cc.r{k} = getelementptr i64, ptr %cc.results, i64 {k}" for k in range(len(self.positive))
        )
        return [
            text for k, address in enumerate(addresses) for text in (address, f"store i64 0, ptr %cc.r{k}")
        ]

    def instruction(self, original: ir.Instruction, extension: str | None = None) -> None:
        """Add an instruction without its promises, and optionally keep its result as a check."""
        copy = without_promises(original)
        self.do(*(part.render() for part in self._lowering.lower(copy)))
        if extension and original.result:
            self.check(original.result, extension)

    def check(self, value: str, extension: str, *, positive: bool = False) -> None:
        """Store a value as a check, widened to 64 bits."""
        operation, type_ = extension.split(" ")
        wide = value if type_ == "i64" else self.value(f"{operation} {type_} {value} to i64")
        self.store("i64", wide, f"%cc.r{len(self.positive)}")
        self.positive.append(positive)

    def atom(self, comparison: IntegerComparison) -> None:
        """Append the bits of a comparison: whether the first side is less, and whether both are equal."""
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
        """Store the addresses."""
        self.store("i64", 1, f"%cc.r{_REACHED}")
        for number, instruction in enumerate(instructions, _ADDRESSES):
            (access,) = instruction.accesses
            address = self.value(f"ptrtoint {access.pointer_type} {access.pointer} to i64")
            self.store("i64", address, f"%cc.r{number}")


class StridedCode:
    """Finds and records the strided accesses of one segment."""

    def __init__(self, segment: Segment, emission: Emission) -> None:
        self._segment, self._emission, self._plan = segment, emission, emission.plan
        self._strided: list[StridedAccess] = []
        self._open: dict[tuple[str, Reach], int] = {}  # By block: the last of its strided accesses
        self._descriptions: dict[Reach, list[str]] = {"group": [], "launch": []}
        self._in_loops: dict[str, StridedLoop] = {}
        options = self._plan.options
        if options.counts and not (segment.once or options.check_bounds):
            self._find()

    @property
    def apart(self) -> set[int]:
        """Identities of the instructions that are recorded here."""
        strided: list[StridedAccess | StridedLoop] = [*self._strided, *self._in_loops.values()]
        return {id(i) for each in strided for i in each.instructions}

    def slices(self, reach: Reach) -> list[str]:
        """Return the descriptions of slices of a reach, as constants; `functions` makes them."""
        return self._descriptions[reach]

    def _find(self) -> None:
        plan, segment, loops = self._plan, self._segment, self._segment.loops
        inner = graph.innermost(loops)
        items = math.prod(plan.options.local_size[:2])
        flow = segment.successors()
        finder = StridedFinder(segment, loops, _known(segment, plan))
        in_loops: dict[int, LoopFinder] = {}
        for label, block in segment.blocks.items():
            for instruction in block.instructions:
                if len(instruction.accesses) != 1 or instruction.opcode not in ("load", "store"):
                    continue
                if plan.class_of(instruction.accesses[0]).memory in ("dynamic", "private"):
                    continue
                loop = inner.get(label)
                if loop is None and not plan.per_warp:
                    copied = instruction.accesses[0].site in plan.copied
                    strided = finder.find(label, instruction, copied=copied)
                    if strided and (strided.reach == "launch" or items >= _FEWEST):
                        self._add(strided)
                elif loop and not any(other.blocks < loop.blocks for other in loops):
                    if id(loop) not in in_loops:
                        in_loops[id(loop)] = LoopFinder(segment, flow, loop)
                    more = in_loops[id(loop)].find(label, instruction)
                    if more and self._free(more) is not None:
                        old = self._in_loops.get(label)
                        self._in_loops[label] = joined(old, more) if old else more

    def _add(self, strided: StridedAccess) -> None:
        """Join it with the last one of its block if the results fit; otherwise begin another."""
        last = self._open.get((strided.label, strided.reach))
        combined = strided if last is None else joined(self._strided[last], strided)
        if last is not None and _has_room(combined):
            self._strided[last] = combined
        elif _has_room(strided):
            self._open[strided.label, strided.reach] = len(self._strided)
            self._strided.append(strided)

    def _free(self, strided: StridedLoop) -> list[tuple[str, str]] | None:
        """Return types and names of the outside values of a loop's slice; ``None`` if one is unknown."""
        parameters = {p.name for p in self._plan.parameters}
        used = {name for i in strided.needed.values() for name in i.uses()}
        pointers = [access.pointer for i in strided.instructions for access in i.accesses]
        texts = [*pointers, *(text for _, *values in strided.inductions.values() for text in values)]
        used |= {text for text in texts if text.startswith("%")}
        free = sorted(used - parameters - strided.needed.keys() - strided.inductions.keys())
        typed = [(self._types.get(name, ""), name) for name in free]
        return typed if all(type_ for type_, _ in typed) else None

    @functools.cached_property
    def _types(self) -> dict[str | None, str]:
        types = {i.result: i.type for b in self._segment.blocks.values() for i in b.instructions}
        types |= {i.result: i.type for i in self._segment.recompute}
        return types | {carried.name: carried.type for carried in self._segment.restore}

    def functions(self) -> list[str]:
        """Return the IR of all functions."""
        texts = [text for n, strided in enumerate(self._strided) for text in self._slice(n, strided)]
        for number, in_loop in enumerate(self._in_loops.values()):
            texts += self._loop(number, in_loop, self._free(in_loop) or [])
        return texts

    def record_loops(self, editor: SegmentEditor) -> OnEdges:
        """Count the iterations of each loop, and record its strided accesses on every edge out of it."""
        on_edges: OnEdges = []
        for number, (label, strided) in enumerate(self._in_loops.items()):
            length = editor.slot("times", "i64")
            editor.at_start(label, editor.increment(length, "i64"))
            parameters = self._formal(self._free(strided) or [])
            for edge in editor.out_of(strided.loop):
                code = Code(self._emission.names)
                times = code.load("i64", length)
                code.do(f"call void @{self._name('loop', number)}({parameters}, i64 {times})")
                code.store("i64", 0, length)
                on_edges.append((edge, code.texts))
        return on_edges

    def _formal(self, free: Sequence[tuple[str, str]], *more: str) -> str:
        """Return the parameters of a function that records a loop."""
        return ", ".join([formal(self._plan.parameters), *map(" ".join, free), *more])

    def _name(self, kind: str, number: int) -> str:
        return f"cc.segment{self._segment.number}.{kind}{number}"

    def _sites(self, instructions: Sequence[ir.Instruction]) -> list[tuple[int, int]]:
        """Return the number of each access, of which the next is that of its parts, and its flags."""
        sites = []
        for instruction in instructions:
            (access,) = instruction.accesses
            is_local = self._plan.class_of(access).memory == "local"
            flags = (access.kind != "write") + 2 * (access.kind != "read") + 4 * is_local
            sites.append((self._emission.number_strided(), flags))
        return sites

    def _slice(self, number: int, strided: StridedAccess) -> list[str]:
        emission, segment = self._emission, self._segment
        name, code = self._name("slice", number), _Slice(emission, len(strided.instructions))
        for label, kept, end in strided.slice_blocks(segment):
            code.do(f"{label[1:]}:")
            code.do(*(ir.render_phi(i, label, segment.blocks) for i in kept if i.opcode == "phi"))
            for i in kept:
                if i.opcode != "phi":
                    code.instruction(i, strided.checks.get(i.result or ""))
            for comparison in strided.atoms.get(label, ()):
                code.atom(comparison)
            if end is None:
                code.reach(strided.instructions)
            code.do("br label %cc.exit" if end is None else end.render())
        code.do("cc.exit:")
        computed = {i.result for i in segment.recompute}
        for value, extension in strided.checks.items():
            if value in computed:
                code.check(value, extension)
        sites, checked = self._sites(strided.instructions), code.positive[code.first_check :]
        words = [
            *(len(sites), len(checked), sum(bit << k for k, bit in enumerate(checked)), sites[0][0]),
            sum(flags << 3 * k for k, (_, flags) in enumerate(sites)),
        ]
        self._descriptions[strided.reach].append(
            f"{SLICE_TYPE} {{ ptr @{name}, {', '.join(f'i64 {word}' for word in words)}, ptr @{name}.sites, "
            f"i64 {segment.order[strided.label]} }}"
        )
        accessed = [i.accesses[0].site for i in strided.instructions]
        emission.recording.apart.update(accessed)
        numbers = ", ".join(f"i64 {site}" for site in accessed)
        return [
            f"@{name}.sites = internal constant [{len(strided.instructions)} x i64] [{numbers}]",
            f"define internal void @{name}({SLICE_PARAMETERS}) nounwind {{",
            "cc.start:",
            *load_for_slice(self._plan.parameters, self._plan.options),
            *(*code.results(), *Frame(segment, emission).prologue(), *code.texts),
            *("ret void", "}"),
        ]

    def _loop(self, number: int, strided: StridedLoop, free: Sequence[tuple[str, str]]) -> list[str]:
        name, code = self._name("loop", number), _Slice(self._emission, len(strided.instructions))
        for phi, start, step in strided.inductions.values():
            _advance(code, phi, start, step)
        for value, definition in strided.needed.items():
            if value not in strided.inductions:
                code.instruction(definition, strided.checks.get(value))
        code.reach(strided.instructions)
        parameters = self._formal(free, "i64 %cc.place", "ptr %cc.results")
        number, order = self._segment.number, self._segment.order[strided.label]
        records = [
            (self._emission.recording.record(number, i.accesses[0].site, RUNS, order), *site)
            for i, site in zip(strided.instructions, self._sites(strided.instructions), strict=True)
        ]
        return [
            f"define internal void @{name}.at({parameters}) alwaysinline nounwind {{",
            *("cc.start:", *code.results(), *code.texts, "ret void", "}"),
            *self._record_whole(name, free, code, records),
            *self._record_parts(name, free, code, records),
        ]

    def _record_whole(
        self, name: str, free: Sequence[tuple[str, str]], slice_: _Slice, records: Sequence[_Record]
    ) -> list[str]:
        """Record a loop's accesses from three of its iterations, if the checks are equidistant."""
        start, code = Code(self._emission.names), Code(self._emission.names)
        iterations = []
        for iteration in ("0", "%cc.one", "%cc.end"):
            results = start.value(f"alloca [{len(slice_.positive)} x i64]")
            code.do(f"call void @{name}.at({self._formal(free, f'i64 {iteration}', f'ptr {results}')})")
            iterations.append(
                [code.load("i64", code.at(results, k, "i64")) for k in range(len(slice_.positive))]
            )
        even, (first, second, _) = "true", iterations
        for a, b, last in list(zip(*iterations, strict=True))[slice_.first_check :]:
            far = code.value(f"mul i64 {code.value(f'sub i64 {b}, {a}')}, %cc.end")
            is_even = code.value(f"icmp eq i64 {code.value(f'add i64 {a}, {far}')}, {last}")
            even = code.value(f"and i1 {even}, {is_even}")
        code.do(f"br i1 {even}, label %cc.record, label %cc.parts, !prof !999991", "cc.record:")
        accesses = zip(records, first[_ADDRESSES:], second[_ADDRESSES:], strict=False)
        for (stream, site, flags), a, b in accesses:
            step = code.value(f"sub i64 {b}, {a}")
            self._emission.recording.append_run(code, stream, a, step, "%cc.n")
            code.do(_add_strided(site, flags, a, step, "%cc.n"))
        parameters = self._formal(free, "i64 %cc.n")
        return [
            f"define internal void @{name}({parameters}) alwaysinline nounwind {{",
            *("cc.start:", *start.texts),
            "%cc.any = icmp ne i64 %cc.n, 0",
            *("br i1 %cc.any, label %cc.compute, label %cc.done", "cc.compute:"),
            "%cc.end = sub i64 %cc.n, 1",
            "%cc.many = icmp ne i64 %cc.n, 1",
            "%cc.one = zext i1 %cc.many to i64",
            *(*code.texts, "br label %cc.done"),
            *("cc.parts:", f"call void @{name}.parts({parameters})", "br label %cc.done"),
            *("cc.done:", "ret void", "}"),
        ]

    def _record_parts(
        self, name: str, free: Sequence[tuple[str, str]], slice_: _Slice, records: Sequence[_Record]
    ) -> list[str]:
        """Record a loop's iterations one by one."""
        code = Code(self._emission.names)
        code.do(f"call void @{name}.at({self._formal(free, 'i64 %cc.i', 'ptr %cc.results')})")
        for k, (stream, site, flags) in enumerate(records, _ADDRESSES):
            address = code.load("i64", code.at("%cc.results", k, "i64"))
            self._emission.recording.append_run(code, stream, address, "0", "1")
            code.do(_add_strided(site + 1, flags, address, "0", "1"))
        parameters = self._formal(free, "i64 %cc.n")
        return [
            f"define internal void @{name}.parts({parameters}) noinline cold nounwind {{",
            f"cc.start:\n%cc.results = alloca [{len(slice_.positive)} x i64]\nbr label %cc.loop",
            "cc.loop:\n%cc.i = phi i64 [ 0, %cc.start ], [ %cc.next, %cc.loop ]",
            *code.texts,
            "%cc.next = add i64 %cc.i, 1",
            "%cc.more = icmp ult i64 %cc.next, %cc.n",
            "br i1 %cc.more, label %cc.loop, label %cc.done",
            *("cc.done:", "ret void", "}"),
        ]


def _add_strided(site: int, flags: int, base: str, stride: str, number: str) -> str:
    arguments = f"i32 {site}, i32 {flags}, i64 {base}, i64 {stride}, i64 {number}"
    return f"call void @cc.add_strided(ptr %cc.ctx, {arguments})"


def _has_room(strided: StridedAccess) -> bool:
    atoms = sum(map(len, strided.atoms.values()))
    return len(strided.instructions) <= _MOST_ACCESSES and len(strided.checks) + 2 * atoms <= _MOST_CHECKS


def _known(segment: Segment, plan: Plan) -> dict[str, Kind | None]:
    """Values that enter a segment the same for all work-items."""
    restored = [segment.entering(each.name) for each in segment.restore if each.uniform]
    names = [*(p.name for p in plan.parameters), *restored]
    return dict.fromkeys(names, "same")


SMALLEST_SPLIT = 32
MOST_SPLIT = 200
"""Worthwhile divisions: least work-items of a loop, and most instructions of a segment."""


def split_function(segment: Segment, emission: Emission) -> list[str]:
    """Return a function that computes where the loop over work-items is divided; nothing if it is not.

    Those behind, for which the segment's `%cc.rest` is true, all take the same way at the first branch.
    """
    size = sum(len(block.instructions) for block in segment.blocks.values())
    # Values that are equal in a layer of work-items may differ between layers.
    along, _, layers = emission.plan.options.local_size
    if along < SMALLEST_SPLIT or layers > 1 or size > MOST_SPLIT:
        return []
    if segment.once or segment.slots or emission.plan.per_warp:
        return []
    split = find_split(segment, _known(segment, emission.plan))
    if split is None:
        return []
    code, frame = _Slice(emission, 0), Frame(segment, emission)
    for instruction in split.needed:
        code.instruction(instruction)
    extension = "zext" if split.type != "i64" else "bitcast"
    bound = code.value(f"{extension} {split.type} {split.value} to i64")
    below = code.value(f"icmp ne i64 {bound}, -1")
    more = code.value(f"select i1 {below}, i64 {int(split.inclusive)}, i64 0")
    code.do(f"ret i64 {code.value(f'add i64 {bound}, {more}')}", "}")
    compared, comparison = emission.names.unique("c"), split.comparison
    instructions = next(b.instructions for b in segment.blocks.values() if comparison in b.instructions)
    instructions.insert(instructions.index(comparison), ir.added(f"{compared} = {comparison.text}"))
    comparison.text = f"select i1 %cc.rest, i1 {str(split.behind).lower()}, i1 {compared}"
    return [
        frame.header("i64", f"cc.segment{segment.number}.split", divided=True),
        *("cc.start:", *frame.prologue(), f"{segment.entry[1:]}:", *code.texts),
    ]


def _advance(code: Code, phi: ir.Instruction, start: str, step: str) -> None:
    """Compute a loop's counter, `%cc.place` iterations after its start."""
    type_ = "i64" if phi.type.startswith("ptr") else phi.type
    offset = "%cc.place" if type_ == "i64" else code.value(f"trunc i64 %cc.place to {type_}")
    by = code.value(f"mul {type_} {offset}, {step}")
    pointer = f"getelementptr i8, {phi.type} {start}, i64 {by}"
    code.do(f"{phi.result} = {pointer if phi.type.startswith('ptr') else f'add {type_} {start}, {by}'}")
