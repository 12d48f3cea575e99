"""Code generation: from a plan to LLVM IR that runs a work-group and counts.

Each segment of the kernel becomes a function of one work-item; `Driver` writes the function that calls each
segment for every work-item in order; or warp by warp, if work-items may be at different cuts (`warps.c`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import (
    CONSTANTS,
    HISTORY_BYTES,
    MAX_ITEMS,
    ROW_BYTES,
    BlockCosts,
    MemoryRegion,
    ParameterLayout,
    ResultLayout,
    slot,
)
from crosscast.characterization.instrumentation.accesses import address_space
from crosscast.characterization.instrumentation.builtin_calls import WORDS, cut_code, is_barrier
from crosscast.characterization.instrumentation.code import WORK_ITEM_LOOP, Code
from crosscast.characterization.instrumentation.emission import Emission, actual, load_arguments
from crosscast.characterization.instrumentation.plan import UNIFORM_STEP, Plan
from crosscast.characterization.instrumentation.segment_code import SegmentCode, write_segment
from crosscast.characterization.instrumentation.segments import Segment
from crosscast.characterization.instrumentation.strided_code import SLICE_TYPE

_STATES_BYTES = 8 * WORDS * MAX_ITEMS
"""Offset of the states of work-items, behind their arguments; branch histories follow."""
_PAST_BYTES = _STATES_BYTES + 8 * MAX_ITEMS


@dataclass(frozen=True)
class Driver:
    """Writes ``cc_group(ptr context)`` and its tables, or ``cc_native`` without counting."""

    emission: Emission
    codes: Sequence[SegmentCode]

    @property
    def plan(self) -> Plan:
        """Plan of the kernel."""
        return self.emission.plan

    def text(self) -> list[str]:
        """Return the text of the function and its tables."""
        plan = self.plan
        # Names of the kernel's arguments may clash with values of this function.
        parameters = [
            parameter
            if parameter.name.startswith("%cc.")
            else replace(parameter, name=f"%cc.value{position}")
            for position, parameter in enumerate(plan.parameters)
        ]
        prologue = load_arguments(parameters, plan.options)
        texts = (self._per_warp if plan.per_warp else self._in_step)(parameters, prologue)
        return [*texts, *self._slice_tables()] if plan.options.counts else texts

    def _slice_tables(self) -> list[str]:
        """Return the descriptions of all slices: those of the launch for the runtime, others by segment."""
        texts = []
        for number, code in enumerate(self.codes):
            if slices := code.group_slices:
                table = f"[{len(slices)} x {SLICE_TYPE}] [{', '.join(slices)}]"
                texts.append(f"@cc.segment{number}.slices = internal constant {table}")
        launch = [text for code in self.codes for text in code.launch_slices]
        launch.append(f"{SLICE_TYPE} zeroinitializer")
        table = f"[{len(launch)} x {SLICE_TYPE}] [{', '.join(launch)}]"
        texts.append(f"@cc_launch_slices = hidden constant {table}")
        return texts

    def _in_step(self, parameters: Sequence[ir.FunctionParameter], prologue: list[str]) -> list[str]:
        """Run each segment for all work-items, then the common next one."""
        plan = self.plan
        counters, type_ = max(self.emission.counters, 1), plan.count_type
        code = Code(self.emission.names)
        code.do(
            *prologue,
            f"%cc.acc = alloca [{counters} x {type_}]",
            f"%cc.past = alloca [{max(plan.histories, 1)} x i64]",
            f"store [{counters} x {type_}] zeroinitializer, ptr %cc.acc",
            f"%cc.sums = alloca [{counters} x i64]",
            f"store [{counters} x i64] zeroinitializer, ptr %cc.sums",
        )
        for number in range(plan.histories):
            code.store("i64", 1, code.at("%cc.past", number, "i64"))
        options = plan.options
        sizes = [str(n) if options.uniform else f"%cc.size{d}" for d, n in enumerate(options.local_size)]
        code.do(f"%cc.xy = mul i64 {sizes[0]}, {sizes[1]}", f"%cc.items = mul i64 %cc.xy, {sizes[2]}")
        for segment in plan.segments:
            code.do(f"%cc.all{segment.number} = alloca i32", f"%cc.any{segment.number} = alloca i32")
        code.do("br label %segment0")
        for segment in plan.segments:
            self._run(segment, parameters, ["1"] * 3 if segment.once else sizes, code)
        code.do("end:")
        for number in (number for segment in plan.segments for number in segment.counters):
            sum_ = code.load("i64", code.at("%cc.sums", number, "i64"))
            code.add_to("i64", code.at("%cc.counts", 8 * number), sum_)
        name = "cc_group" if options.counts else "cc_native"
        return [f"define void @{name}(ptr %cc.ctx) nounwind {{", "cc.start:", *code.texts, "ret void", "}"]

    def _run(
        self, segment: Segment, parameters: Sequence[ir.FunctionParameter], sizes: list[str], code: Code
    ) -> None:
        """Run a segment for every work-item, then continue with the common next one."""
        n = segment.number
        following = sorted(set(segment.exits.values())) or [0]  # an endless loop has none
        code.do(f"segment{n}:")
        # First, as the segment overwrites the inputs of these addresses.
        for k, _ in enumerate(self.codes[n].group_slices):
            description = f"getelementptr ({SLICE_TYPE}, ptr @cc.segment{n}.slices, i64 {k})"
            extent = ", ".join(f"i64 {size}" for size in sizes)
            code.do(f"call void @cc_record(ptr %cc.ctx, ptr {description}, {extent})")
        several = len(following) > 1
        if several:
            code.store("i32", -1, f"%cc.all{n}")
            code.store("i32", 0, f"%cc.any{n}")

        def along(part: str, start: str, origin: str, end: str, leave: str) -> None:
            """Write the loop along dimension 0, from `start` to before `end`, with its body."""
            loop, x = f"loopx{n}{part}", f"%x{n}{part}"
            code.do(f"{loop}:", f"{x} = phi i64 [ {start}, %{origin} ], [ {x}.next, %{loop} ]")
            item = code.value(f"add i64 %first{n}, {x}")
            values = actual((x, f"%y{n}", f"%z{n}"), item, parameters)
            rest = f", i1 {str(bool(part)).lower()}" if self.codes[n].split else ""
            target = code.value(f"call i32 @cc.segment{n}({values}{rest})")
            if several:  # note whether all work-items go on to the same segment
                for operation, slot in (("and", f"%cc.all{n}"), ("or", f"%cc.any{n}")):
                    code.store("i32", code.value(f"{operation} i32 {code.load('i32', slot)}, {target}"), slot)
            _step(code, x, end, loop, f"{leave}, !llvm.loop !{WORK_ITEM_LOOP}")

        enter, main_loop = f"br label %loopx{n}", (sizes[0], f"doney{n}")
        if self.codes[n].split:
            values = actual(["0"] * 3, "0", parameters)
            bound = code.value(f"call i64 @cc.segment{n}.split({values}, i1 false)")
            inside = code.value(f"icmp ult i64 {bound}, {sizes[0]}")
            end = code.value(f"select i1 {inside}, i64 {bound}, i64 {sizes[0]}")
            some = code.value(f"icmp ne i64 {end}, 0")
            enter, main_loop = f"br i1 {some}, label %loopx{n}, label %rest{n}", (end, f"rest{n}")
        code.do(
            f"br label %loopz{n}",
            f"loopz{n}:",
            f"%z{n} = phi i64 [ 0, %segment{n} ], [ %z{n}.next, %donez{n} ]",
            f"%row{n} = mul i64 %z{n}, %cc.xy",
            f"br label %loopy{n}",
            f"loopy{n}:",
            f"%y{n} = phi i64 [ 0, %loopz{n} ], [ %y{n}.next, %doney{n} ]",
            f"%line{n} = mul i64 %y{n}, {sizes[0]}",
            f"%first{n} = add i64 %row{n}, %line{n}",
            enter,
        )
        along("", "0", f"loopy{n}", *main_loop)
        if self.codes[n].split:
            code.do(f"rest{n}:", f"br i1 {inside}, label %loopx{n}.rest, label %doney{n}")
            along(".rest", bound, f"rest{n}", sizes[0], f"doney{n}")
        code.do(f"doney{n}:")
        _step(code, f"%y{n}", sizes[1], f"loopy{n}", f"donez{n}")
        code.do(f"donez{n}:")
        _step(code, f"%z{n}", sizes[2], f"loopz{n}", f"after{n}")
        code.do(f"after{n}:")
        if self.plan.options.counts:
            self._after(segment, code)
        if not several:
            self._go_on(segment, following[0], code)
            return
        all_, any_ = code.load("i32", f"%cc.all{n}"), code.load("i32", f"%cc.any{n}")
        same = code.value(f"icmp eq i32 {all_}, {any_}")
        code.do(
            f"br i1 {same}, label %uniform{n}, label %diverged{n}",
            f"diverged{n}:",
            f"call void @cc_diverged(ptr %cc.ctx, i32 {all_}, i32 {any_})",
            "unreachable",
            f"uniform{n}:",
            *_switch(any_, {number: f"go{n}.{number}" for number in following}),
        )
        for number in following:
            code.do(f"go{n}.{number}:")
            self._go_on(segment, number, code)

    def _after(self, segment: Segment, code: Code) -> None:
        """Count the work-items that entered, and fold the rows of branch outcomes into the histories."""
        plan, number, type_ = self.plan, segment.number, self.plan.count_type
        code.add_to("i64", code.at("%cc.counts", 8 * number), "%cc.items")
        if plan.compares_items:
            code.add_to("i64", code.at("%cc.runs", plan.alike[number], "i64"), 1)
        several = plan.has_several_segments
        if self.emission.recording.of_segment(number) or (several and self.codes[number].group_slices):
            final = int(not several)
            code.do(f"call void @cc_sub_groups(ptr %cc.ctx, i32 {number}, i64 %cc.items, i32 {final})")
        # The group's sums are wide enough for many runs of the segment.
        for counter in segment.counters:
            sum_ = code.at("%cc.acc", counter, type_)
            value = code.load(type_, sum_)
            code.store(type_, 0, sum_)
            wide = code.value(f"zext i32 {value} to i64") if plan.counts_fit_32_bits else value
            code.add_to("i64", code.at("%cc.sums", counter, "i64"), wide)
        if segment.once:
            code.do("call void @cc_fold_lead(ptr %cc.ctx, i64 %cc.items)")
        for way in ("cell", "row"):
            for branch in segment.recorded(way):
                history = code.at("%cc.histories", HISTORY_BYTES * branch)
                outcomes = code.at("%cc.outcomes", ROW_BYTES * branch)
                code.do(f"call void @cc_fold_{way}(ptr {history}, ptr {outcomes}, i64 %cc.items)")

    def _go_on(self, segment: Segment, target: int, code: Code) -> None:
        """After a segment: log complete instruction counts, then go to the next segment."""
        plan = self.plan
        bits = 32 if plan.counts_fit_32_bits else 64
        cutter = plan.segments[target].after if target else None
        collective = cutter is not None and not is_barrier(cutter)
        counts = plan.options.counts
        if counts and plan.has_several_segments and not (collective or segment.once):
            code.do(f"call void @cc_fold_piece{bits}(ptr %cc.ctx, i64 %cc.items, i{bits} {int(target > 0)})")
        if counts and target == 0 and not plan.same_length:
            if plan.has_several_segments:
                code.do("call void @cc_fold_totals(ptr %cc.ctx, i64 %cc.items)")
            else:
                code.do(f"call void @cc_fold{bits}(ptr %cc.totals_log, ptr %cc.total, i64 %cc.items)")
        if collective:
            _, operation, type_ = cut_code(cutter)
            code.do(f"call void @cc_collective(ptr %cc.ctx, i32 {operation}, i32 {type_}, i64 %cc.items)")
        # The uniform values that left a segment are those that enter the next one.
        leaving = (segment.save.get(label, []) for label, to in segment.exits.items() if to == target)
        for carried in {c.name: c for saved in leaving for c in saved if c.uniform}.values():
            offset = plan.live.offsets[carried.name]
            value = code.load(carried.type, code.at("%cc.live", offset + UNIFORM_STEP))
            code.store(carried.type, value, code.at("%cc.live", offset))
        code.do(f"br label %{f'segment{target}' if target else 'end'}")

    def _per_warp(self, parameters: Sequence[ir.FunctionParameter], prologue: list[str]) -> list[str]:
        """Let the runtime choose the next segment of lanes; it calls a function that runs one segment for the
        selected work-items of a range.
        """
        plan = self.plan
        cuts = [(*cut_code(s.after), turn) for s, turn in zip(plan.segments, plan.warp_order, strict=True)]
        words = [f"i32 {word}" for cut in [*cuts, (0, 0, 0, 0)] for word in cut]
        counters = max(self.emission.counters, 1)
        code = Code(self.emission.names)
        code.do(
            *prologue,
            f"%cc.items = load i64, ptr {code.at('%cc.ctx', slot('items'))}",
            "%cc.xy = mul i64 %cc.size0, %cc.size1",
            f"%cc.past = getelementptr i8, ptr %cc.warps, i64 {_PAST_BYTES}",
            f"%cc.acc = alloca [{counters} x i64]",
            f"store [{counters} x i64] zeroinitializer, ptr %cc.acc",
        )
        states = code.at("%cc.warps", _STATES_BYTES)
        code.do(*_switch("%cc.number", {number: f"segment{number}" for number, _ in enumerate(cuts)}))
        for segment in plan.segments:
            self._turn(segment, parameters, states, code)
        return [
            "declare void @cc_run_warps(ptr, ptr, ptr, i64, i64)",
            f"@cc.cuts = internal constant [{len(words)} x i32] [{', '.join(words)}]",
            "define void @cc_group(ptr %cc.ctx) nounwind {",
            "call void @cc_run_warps(ptr %cc.ctx, ptr @cc.turn, ptr @cc.cuts, "
            f"i64 {plan.options.warp}, i64 {plan.histories})",
            *("ret void", "}"),
            "define internal void @cc.turn(ptr %cc.ctx, i32 %cc.number, i64 %cc.from, i64 %cc.to) nounwind {",
            *("cc.start:", *code.texts, "end:", "ret void", "}"),
        ]

    def _turn(
        self, segment: Segment, parameters: Sequence[ir.FunctionParameter], states: str, code: Code
    ) -> None:
        """Run a segment for the selected work-items, and store the state of each."""
        n = segment.number
        code.do(
            f"segment{n}:",
            f"br label %loop{n}",
            f"loop{n}:",
            f"%wi{n} = phi i64 [ %cc.from, %segment{n} ], [ %wi{n}.next, %next{n} ]",
        )
        state = code.at(states, f"%wi{n}", "i64")
        turn = code.value(f"icmp eq i64 {code.load('i64', state)}, {2 * n}")
        code.do(f"br i1 {turn}, label %run{n}, label %next{n}", f"run{n}:")
        z = code.value(f"udiv i64 %wi{n}, %cc.xy")
        rest = code.value(f"urem i64 %wi{n}, %cc.xy")
        y = code.value(f"udiv i64 {rest}, %cc.size0")
        x = code.value(f"urem i64 {rest}, %cc.size0")
        values = actual((x, y, z), f"%wi{n}", parameters)
        target = code.value(f"call i32 @cc.segment{n}({values})")
        twice = code.value(f"shl i64 {code.value(f'zext i32 {target} to i64')}, 1")
        code.store("i64", code.value(f"add i64 {twice}, 1"), state)
        code.do(f"br label %next{n}", f"next{n}:", f"%wi{n}.next = add nuw nsw i64 %wi{n}, 1")
        more = code.value(f"icmp ult i64 %wi{n}.next, %cc.to")
        code.do(f"br i1 {more}, label %loop{n}, label %done{n}", f"done{n}:")
        for counter in segment.counters:
            value = code.load("i64", code.at("%cc.acc", counter, "i64"))
            code.add_to("i64", code.at("%cc.counts", 8 * counter), value)
        code.do("br label %end")


def _step(code: Code, counter: str, end: str, again: str, leave: str) -> None:
    code.do(f"{counter}.next = add nuw nsw i64 {counter}, 1")
    more = code.value(f"icmp ult i64 {counter}.next, {end}")
    code.do(f"br i1 {more}, label %{again}, label %{leave}")


def _switch(value: str, labels: dict[int, str]) -> list[str]:
    cases = [f"i32 {number}, label %{label}" for number, label in labels.items()]
    return [f"switch i32 {value}, label %end [", *cases, "]"]


@dataclass(frozen=True)
class Emitted:
    """Generated code of a kernel."""

    text: str  # IR of all functions
    library_symbols: frozenset[str]  # Called functions of the library of builtins
    layout: ResultLayout


def emit(plan: Plan) -> Emitted:
    """Write the code of a plan, which is not modified."""
    # Code generation modifies blocks.
    plan = replace(plan, segments=[_copied(segment) for segment in plan.segments])
    emission = Emission(plan)
    codes = [write_segment(segment, emission) for segment in plan.segments]
    functions = [code.text for code in codes] + Driver(emission, codes).text()
    text = emission.scopes.complete(functions + emission.recording.functions())
    blocks = [cost for code in codes for cost in code.costs]
    return Emitted(text, frozenset(emission.lowering.library_symbols), _layout(emission, blocks))


def _copied(segment: Segment) -> Segment:
    blocks = {
        label: ir.Block(label, [instruction.copy() for instruction in block.instructions])
        for label, block in segment.blocks.items()
    }
    return replace(segment, blocks=blocks)


def _layout(emission: Emission, blocks: Sequence[BlockCosts]) -> ResultLayout:
    plan, regions = emission.plan, _regions(emission)
    accessed = plan.classes.by_memory()
    cuts = [segment.after for segment in plan.segments]
    same = sum(block.instructions * block.executions.get(0, 0) for block in blocks)
    ways = ("lead", "cell", "row", "run")
    return ResultLayout(
        parameters=[
            ParameterLayout(
                name,
                regions[parameter.name],
                is_buffer=address_space(parameter.type) in (1, 2),
                is_accessed=parameter.name in accessed,
                is_written=parameter.name in plan.sharing.written,
            )
            for name, parameter in zip(plan.source_names, plan.parameters, strict=False)
        ],
        variables=[
            (ir.symbol(name), region)
            for name, region in regions.items()
            if name.startswith("@") and region.size
        ],
        writes_variables=any(name.startswith("@") for name in plan.sharing.written),
        local_regions=[regions[name] for name in plan.local.sizes],
        local_bytes=plan.local.nbytes,
        stack_bytes=plan.private.stack_bytes,
        private_bytes=plan.private.nbytes,
        live_bytes=plan.live.nbytes,
        cut_lines=[0 if cutter is None else cutter.line for cutter in cuts],
        fault_lines=emission.fault_lines,
        print_calls=emission.lowering.print_calls,
        # A group that waits for an earlier one must find it done.
        is_ordered=emission.lowering.is_ordered or plan.waiting is not None,
        per_warp=plan.per_warp,
        counts_fit_32_bits=plan.counts_fit_32_bits,
        blocks=blocks,
        counters=emission.counters,
        strided=emission.strided,
        order_counter=emission.order_counter,
        conditional_writes=emission.conditional_writes,
        histories=plan.histories,
        histories_in_memory=sorted({n for segment in plan.segments for n in segment.recorded(*ways)}),
        histories_repeated=sorted(plan.histories_repeated),
        groups_alike=plan.groups_alike,
        instructions_per_item=same if plan.same_length else None,
        sub_groups=emission.recording.layout(blocks),
    )


def _regions(emission: Emission) -> dict[str, MemoryRegion]:
    """Return the regions of parameters and variables; of buffers without start and size."""
    plan = emission.plan
    classes, counted = plan.classes.by_memory(), plan.classes.members_of(emission.counted)
    regions = {}
    for p in plan.parameters:
        space, cls = address_space(p.type), classes.get(p.name)
        granule = cls.granule if cls else 4
        if space == 3:
            nbytes = plan.local.sizes.get(p.name, 0)
            regions[p.name] = MemoryRegion(p.offset or 0, nbytes, granule, CONSTANTS["LOCAL"])
            continue
        regions[p.name] = MemoryRegion(
            *(0, 0, granule, CONSTANTS["BUFFER"]),
            constant=int(space == 2),
            commutes=plan.sharing.sums.get(p.name, int(p.name in plan.sharing.commuting)),
            counted=int(counted is None or p.name in counted),
            scattered=cls.scattered if cls and not plan.options.checked else 0,
        )
    for v in plan.variables.values():
        if v.address_space != 3:
            granule = classes[v.name].granule if v.name in classes else 4
            constant = int(v.address_space == 2)
            regions[v.name] = MemoryRegion(0, v.nbytes, granule, CONSTANTS["VARIABLE"], constant)
    for name, cls in classes.items():
        if name in regions:
            regions[name] = regions[name]._replace(
                read_bytes=cls.read_bytes, write_bytes=cls.write_bytes, overlaps=cls.overlaps
            )
    return regions
