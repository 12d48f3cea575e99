"""The function that runs a work-group whose work-items do not all stand at the same cut; see `warps`."""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import context, signature
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.characterization.instrumentation.warps import WORDS

STATES_BYTES = 8 * WORDS * context.MAX_ITEMS
"""Where the states of work-items stand, behind their arguments; and behind these, branch histories."""
PAST_BYTES = STATES_BYTES + 8 * context.MAX_ITEMS


def turn_functions(parameters: list[ir.Parameter], made: Instrumented, prologue: list[str], warp: int) -> str:
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
        f"  %goes{n} = call i32 @cc.segment{n}({signature.actual(parameters, n)})",
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
