"""The function that runs one work-group: each segment for every work-item in order, then the next.

Or by turns, where work-items do not all stand at the same cut (see `warps`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import context, instrumented
from crosscast.characterization.instrumentation.builtin_calls import WORDS
from crosscast.characterization.instrumentation.instrumented import Instrumented, Switches
from crosscast.characterization.instrumentation.memory_layout import UNIFORM_STEP
from crosscast.characterization.instrumentation.prelude import WORK_ITEM_LOOP
from crosscast.characterization.instrumentation.regions import is_barrier
from crosscast.characterization.instrumentation.row_code import SLICE

STATES_BYTES = 8 * WORDS * context.MAX_ITEMS
"""Where the states of work-items stand, behind their arguments; and behind these, branch histories."""
PAST_BYTES = STATES_BYTES + 8 * context.MAX_ITEMS


def group_function(function: ir.Function, made: Instrumented, switches: Switches) -> str:
    """IR of ``cc_group(ptr context)``."""
    # A kernel may name its arguments as this function names what it computes.
    parameters = [
        each if each.name.startswith("%cc.") else replace(each, name=f"%cc.value{place}")
        for place, each in enumerate(function.parameters)
    ]
    prologue = instrumented.load(parameters, switches)
    if made.cut_codes:
        return _turn_functions(parameters, made, prologue, switches.warp)
    count = "i32" if made.narrow else "i64"
    rows = ["define void @cc_group(ptr %cc.ctx) nounwind {", "cc.start:"]
    rows += [
        *prologue,
        f"  %cc.acc = alloca [{max(made.counters, 1)} x {count}]",
        f"  %cc.past = alloca [{max(made.histories, 1)} x i64]",
        f"  store [{max(made.counters, 1)} x {count}] zeroinitializer, ptr %cc.acc",
        f"  %cc.sums = alloca [{max(made.counters, 1)} x i64]",
        f"  store [{max(made.counters, 1)} x i64] zeroinitializer, ptr %cc.sums",
    ]
    for number in range(made.histories):
        rows += [
            f"  %cc.past{number} = getelementptr i64, ptr %cc.past, i64 {number}",
            f"  store i64 1, ptr %cc.past{number}",
        ]
    sizes = [str(n) if switches.uniform else f"%cc.size{d}" for d, n in enumerate(switches.local_size)]
    rows += [f"  %cc.xy = mul i64 {sizes[0]}, {sizes[1]}", f"  %cc.items = mul i64 %cc.xy, {sizes[2]}"]
    for segment in made.segments:
        rows += [f"  %cc.all{segment.number} = alloca i32", f"  %cc.any{segment.number} = alloca i32"]
    rows.append("  br label %segment0")
    for segment in made.segments:
        rows += _run_segment(parameters, made, segment.number, sizes)
    rows += ["end:", *_flush(made), "  ret void", "}"]
    return "\n".join(rows)


def _loop(n: str, size: list[str], body: Callable[[str], list[str]], following: str, split: str) -> list[str]:
    """A loop over the work-items of a segment in order, dimension 0 fastest, then go to block `following`.

    If `split` computes a bound, the innermost loop is divided there.
    """
    rows = [f"  br label %loopz{n}"]
    enter, leave = f"br label %loopx{n}", f"doney{n}"
    end = size[0]
    if split:
        rows = [
            f"  %bound{n} = {split}",
            f"  %inside{n} = icmp ult i64 %bound{n}, {size[0]}",
            f"  %end{n} = select i1 %inside{n}, i64 %bound{n}, i64 {size[0]}",
            f"  %some{n} = icmp ne i64 %end{n}, 0",
            *rows,
        ]
        enter, leave, end = f"br i1 %some{n}, label %loopx{n}, label %rest{n}", f"rest{n}", f"%end{n}"
    rows += [
        f"loopz{n}:",
        f"  %z{n} = phi i64 [ 0, %segment{n} ], [ %z{n}.next, %donez{n} ]",
        f"  %row{n} = mul i64 %z{n}, %cc.xy",
        f"  br label %loopy{n}",
        f"loopy{n}:",
        f"  %y{n} = phi i64 [ 0, %loopz{n} ], [ %y{n}.next, %doney{n} ]",
        f"  %line{n} = mul i64 %y{n}, {size[0]}",
        f"  %first{n} = add i64 %row{n}, %line{n}",
        f"  {enter}",
        *_along(n, "", ("0", f"loopy{n}"), end, body, leave),
    ]
    if split:
        rows += [f"rest{n}:", f"  br i1 %inside{n}, label %loopx{n}.rest, label %doney{n}"]
        rows += _along(n, ".rest", (f"%bound{n}", f"rest{n}"), size[0], body, f"doney{n}")
    return [
        *rows,
        f"doney{n}:",
        f"  %y{n}.next = add nuw nsw i64 %y{n}, 1",
        f"  %y{n}.more = icmp ult i64 %y{n}.next, {size[1]}",
        f"  br i1 %y{n}.more, label %loopy{n}, label %donez{n}",
        f"donez{n}:",
        f"  %z{n}.next = add nuw nsw i64 %z{n}, 1",
        f"  %z{n}.more = icmp ult i64 %z{n}.next, {size[2]}",
        f"  br i1 %z{n}.more, label %loopz{n}, label %{following}",
    ]


def _along(
    n: str, part: str, first: tuple[str, str], end: str, body: Callable[[str], list[str]], leave: str
) -> list[str]:
    """The loop along dimension 0 from the value `first`, which comes from a block, to before `end`."""
    x = f"%x{n}{part}"
    return [
        f"loopx{n}{part}:",
        f"  {x} = phi i64 [ {first[0]}, %{first[1]} ], [ {x}.next, %loopx{n}{part} ]",
        f"  %wi{n}{part} = add i64 %first{n}, {x}",
        *body(part),
        f"  {x}.next = add nuw nsw i64 {x}, 1",
        f"  {x}.more = icmp ult i64 {x}.next, {end}",
        f"  br i1 {x}.more, label %loopx{n}{part}, label %{leave}, !llvm.loop !{WORK_ITEM_LOOP}",
    ]


def _run_segment(
    parameters: list[ir.Parameter], made: Instrumented, number: int, sizes: list[str]
) -> list[str]:
    """Run a segment for every work-item, then go to the one that all of them go on to."""
    segment, n = made.segments[number], str(number)
    following = sorted(set(segment.exits.values())) or [0]  # an endless loop has none
    several = len(following) > 1
    if segment.once:
        sizes = ["1", "1", "1"]

    def body(part: str) -> list[str]:
        ids = [f"%x{n}{part}", f"%y{n}", f"%z{n}"]
        values = instrumented.listed(ids, f"%wi{n}{part}", parameters)
        values += f", i1 {str(bool(part)).lower()}" * bool(split)
        call = f"  %next{n}{part} = call i32 @cc.segment{n}({values})"
        return [call, *(_compare_exits(n, part) if several else [])]

    split = instrumented.listed(["0", "0", "0"], "0", parameters)
    split = f"call i64 @cc.segment{n}.split({split}, i1 false)" if number in made.splits else ""
    rows = [f"segment{n}:", *_record(made, number, sizes)]
    if several:
        rows += [f"  store i32 -1, ptr %cc.all{n}", f"  store i32 0, ptr %cc.any{n}"]
    rows += _loop(n, sizes, body, f"after{n}", split)
    rows += [f"after{n}:", *_after_segment(made, number)]
    return rows + (_choose(made, number, following) if several else _go_on(made, number, following[0]))


def _record(made: Instrumented, number: int, sizes: list[str]) -> list[str]:
    """Record the rows of accesses; first, as the segment overwrites what these accesses depend on."""
    rows: list[str] = []
    for k, _ in enumerate(made.group_slices[number]):
        description = f"getelementptr ({SLICE}, ptr @cc.segment{number}.slices, i64 {k})"
        extent = ", ".join(f"i64 {n}" for n in sizes)
        rows.append(f"  call void @cc_record(ptr %cc.ctx, ptr {description}, {extent})")
    return rows


def _compare_exits(n: str, part: str) -> list[str]:
    """Note whether all work-items go on to the same segment."""
    rows = []
    for name, operation in (("all", "and"), ("any", "or")):
        value = f"%{name}{n}{part}"
        rows += [
            f"  {value}.old = load i32, ptr %cc.{name}{n}",
            f"  {value}.new = {operation} i32 {value}.old, %next{n}{part}",
            f"  store i32 {value}.new, ptr %cc.{name}{n}",
        ]
    return rows


def _choose(made: Instrumented, number: int, following: list[int]) -> list[str]:
    """Go to the segment that all work-items go on to; not all is a fault."""
    n = str(number)
    rows = [
        f"  %all{n}.end = load i32, ptr %cc.all{n}",
        f"  %any{n}.end = load i32, ptr %cc.any{n}",
        f"  %same{n} = icmp eq i32 %all{n}.end, %any{n}.end",
        f"  br i1 %same{n}, label %uniform{n}, label %diverged{n}",
        f"diverged{n}:",
        f"  call void @cc_diverged(ptr %cc.ctx, i32 %all{n}.end, i32 %any{n}.end)",
        "  unreachable",
        f"uniform{n}:",
        f"  switch i32 %any{n}.end, label %end [",
        *(f"    i32 {target}, label %go{n}.{target}" for target in following),
        "  ]",
    ]
    for target in following:
        rows += [f"go{n}.{target}:", *_go_on(made, number, target)]
    return rows


def _after_segment(made: Instrumented, number: int) -> list[str]:
    """Count the work-items that entered, and fold the rows of branch outcomes into the histories."""
    rows = [
        f"  %entries{number}.at = getelementptr i8, ptr %cc.counts, i64 {8 * number}",
        f"  %entries{number}.old = load i64, ptr %entries{number}.at",
        f"  %entries{number}.new = add i64 %entries{number}.old, %cc.items",
        f"  store i64 %entries{number}.new, ptr %entries{number}.at",
    ]
    rows += _gather(made, number)
    if made.segments[number].once:
        rows.append("  call void @cc_fold_lead(ptr %cc.ctx, i64 %cc.items)")
    for fold, branches in (("cell", made.cells[number]), ("row", made.rows[number])):
        for branch in branches:
            name = f"%fold{number}.{fold}{branch}"
            rows += [
                f"  {name}.h = getelementptr i8, ptr %cc.histories, i64 {context.HISTORY_BYTES * branch}",
                f"  {name}.r = getelementptr i8, ptr %cc.outcomes, i64 {context.ROW_BYTES * branch}",
                f"  call void @cc_fold_{fold}(ptr {name}.h, ptr {name}.r, i64 %cc.items)",
            ]
    return rows


def _go_on(made: Instrumented, number: int, target: int) -> list[str]:
    """After a segment: log the instruction counts that are complete, then go to the next one."""
    bits = 32 if made.narrow else 64
    segments = made.segments
    rows = []
    cutter = segments[target].after if target else None
    collective = cutter is not None and not is_barrier(cutter)
    goes_on = collective or segments[number].once
    if len(segments) > 1 and not goes_on:
        rows.append(
            f"  call void @cc_fold_piece{bits}(ptr %cc.ctx, i64 %cc.items, i{bits} {int(target > 0)})"
        )
    if target == 0 and made.even_total is None:
        wide = 64 if len(segments) > 1 else bits
        rows.append(f"  call void @cc_fold{wide}(ptr %cc.totals_log, ptr %cc.total, i64 %cc.items)")
    if collective:
        operation, type_ = made.collective_codes[target]
        rows.append(f"  call void @cc_collective(ptr %cc.ctx, i32 {operation}, i32 {type_}, i64 %cc.items)")
    rows += _hand_on(made, number, target)
    return [*rows, f"  br label %{f'segment{target}' if target else 'end'}"]


def _hand_on(made: Instrumented, number: int, target: int) -> list[str]:
    """Let the uniform values that left a segment be those that enter the next one."""
    rows = []
    segment = made.segments[number]
    saved = {
        c.name: c for label, to in segment.exits.items() if to == target for c in segment.save.get(label, [])
    }
    for position, carried in enumerate(c for c in saved.values() if c.uniform):
        name = f"%hand{number}.{target}.{position}"
        offset = made.live.offsets[carried.name]
        rows += [
            f"  {name}.from = getelementptr i8, ptr %cc.live, i64 {offset + UNIFORM_STEP}",
            f"  {name}.to = getelementptr i8, ptr %cc.live, i64 {offset}",
            f"  {name}.v = load {carried.type}, ptr {name}.from",
            f"  store {carried.type} {name}.v, ptr {name}.to",
        ]
    return rows


def _gather(made: Instrumented, number: int) -> list[str]:
    """Add what one run of a segment counted to the group's sums, which are wide enough for many runs."""
    count = "i32" if made.narrow else "i64"
    rows = []
    for counter in made.counters_of[number]:
        name = f"%gather{number}.{counter}"
        extend = f"zext i32 {name}.v to i64" if made.narrow else f"add i64 {name}.v, 0"
        rows += [
            f"  {name}.a = getelementptr {count}, ptr %cc.acc, i64 {counter}",
            f"  {name}.v = load {count}, ptr {name}.a",
            f"  store {count} 0, ptr {name}.a",
            f"  {name}.w = {extend}",
            f"  {name}.s = getelementptr i64, ptr %cc.sums, i64 {counter}",
            f"  {name}.o = load i64, ptr {name}.s",
            f"  {name}.n = add i64 {name}.o, {name}.w",
            f"  store i64 {name}.n, ptr {name}.s",
        ]
    return rows


def _flush(made: Instrumented) -> list[str]:
    """Add the group's sums to the thread's counters."""
    rows = []
    for number in range(len(made.segments), made.edge_counters):
        name = f"%flush{number}"
        rows += [
            f"  {name}.a = getelementptr i64, ptr %cc.sums, i64 {number}",
            f"  {name}.v = load i64, ptr {name}.a",
            f"  {name}.c = getelementptr i8, ptr %cc.counts, i64 {8 * number}",
            f"  {name}.o = load i64, ptr {name}.c",
            f"  {name}.n = add i64 {name}.o, {name}.v",
            f"  store i64 {name}.n, ptr {name}.c",
        ]
    return rows


def slice_tables(made: Instrumented) -> list[str]:
    """Descriptions of all slices: those of the launch for the runtime, the others segment by segment."""
    rows = []
    for number, slices in enumerate(made.group_slices):
        if slices:
            table = f"[{len(slices)} x {SLICE}] [{', '.join(slices)}]"
            rows.append(f"@cc.segment{number}.slices = internal constant {table}")
    launch = [*made.launch_slices, f"{SLICE} zeroinitializer"]
    rows.append(f"@cc_launch_slices = hidden constant [{len(launch)} x {SLICE}] [{', '.join(launch)}]")
    return rows


def _turn_functions(
    parameters: list[ir.Parameter], made: Instrumented, prologue: list[str], warp: int
) -> str:
    """IR of ``cc_group(ptr context)`` for a kernel that runs by turns.

    It leaves it to the runtime which segment comes next for which lanes, and gives it a function that runs
    one segment for those of some work-items whose turn it is.
    """
    count = len(made.cut_codes)
    words = ", ".join(f"i32 {word}" for code in [*made.cut_codes, (0, 0, 0, 0)] for word in code)
    rows = [
        "declare void @cc_by_turns(ptr, ptr, ptr, i64, i64)",
        f"@cc.cuts = internal constant [{4 * count + 4} x i32] [{words}]",
        "define void @cc_group(ptr %cc.ctx) nounwind {",
        "  call void @cc_by_turns(ptr %cc.ctx, ptr @cc.turn, ptr @cc.cuts, "
        f"i64 {warp}, i64 {made.histories})",
        "  ret void",
        "}",
        "define internal void @cc.turn(ptr %cc.ctx, i32 %cc.number, i64 %cc.from, i64 %cc.to) nounwind {",
        "cc.start:",
        *prologue,
        f"  %cc.items.at = getelementptr i8, ptr %cc.ctx, i64 {context.slot('items')}",
        "  %cc.items = load i64, ptr %cc.items.at",
        "  %cc.xy = mul i64 %cc.size0, %cc.size1",
        f"  %cc.states = getelementptr i8, ptr %cc.warps, i64 {STATES_BYTES}",
        f"  %cc.past = getelementptr i8, ptr %cc.warps, i64 {PAST_BYTES}",
        f"  %cc.acc = alloca [{max(made.counters, 1)} x i64]",
        f"  store [{max(made.counters, 1)} x i64] zeroinitializer, ptr %cc.acc",
        "  switch i32 %cc.number, label %end [",
        *(f"    i32 {number}, label %segment{number}" for number in range(count)),
        "  ]",
    ]
    for number in range(count):
        rows += _turn(str(number), parameters, made.counters_of[number])
    return "\n".join([*rows, "end:", "  ret void", "}"])


def _turn(n: str, parameters: list[ir.Parameter], counters: range) -> list[str]:
    """Run a segment for the work-items whose turn it is, and note where each of them stands then."""
    rows = [
        f"segment{n}:",
        f"  br label %loop{n}",
        f"loop{n}:",
        f"  %wi{n} = phi i64 [ %cc.from, %segment{n} ], [ %wi{n}.next, %next{n} ]",
        f"  %state{n}.at = getelementptr i64, ptr %cc.states, i64 %wi{n}",
        f"  %state{n} = load i64, ptr %state{n}.at",
        f"  %turn{n} = icmp eq i64 %state{n}, {2 * int(n)}",
        f"  br i1 %turn{n}, label %run{n}, label %next{n}",
        f"run{n}:",
        f"  %z{n} = udiv i64 %wi{n}, %cc.xy",
        f"  %in{n} = urem i64 %wi{n}, %cc.xy",
        f"  %y{n} = udiv i64 %in{n}, %cc.size0",
        f"  %x{n} = urem i64 %in{n}, %cc.size0",
        f"  %goes{n} = call i32 @cc.segment{n}({instrumented.actual(parameters, n)})",
        f"  %wide{n} = zext i32 %goes{n} to i64",
        f"  %twice{n} = shl i64 %wide{n}, 1",
        f"  %waits{n} = add i64 %twice{n}, 1",
        f"  store i64 %waits{n}, ptr %state{n}.at",
        f"  br label %next{n}",
        f"next{n}:",
        f"  %wi{n}.next = add nuw nsw i64 %wi{n}, 1",
        f"  %more{n} = icmp ult i64 %wi{n}.next, %cc.to",
        f"  br i1 %more{n}, label %loop{n}, label %done{n}",
        f"done{n}:",
    ]
    for counter in counters:
        name = f"%flush{n}.{counter}"
        rows += [
            f"  {name}.a = getelementptr i64, ptr %cc.acc, i64 {counter}",
            f"  {name}.v = load i64, ptr {name}.a",
            f"  {name}.c = getelementptr i8, ptr %cc.counts, i64 {8 * counter}",
            f"  {name}.o = load i64, ptr {name}.c",
            f"  {name}.n = add i64 {name}.o, {name}.v",
            f"  store i64 {name}.n, ptr {name}.c",
        ]
    return [*rows, "  br label %end"]
