"""Small IR functions that instrumented code calls, and the alias scopes that keep it fast.

All are inlined. The scopes tell LLVM that counters, data and bookkeeping never overlap, without
which it could not keep anything in registers.
"""

from __future__ import annotations

from crosscast.characterization.instrumentation import context
from crosscast.characterization.instrumentation.accesses import PointerClass

_FIRST_NODE = 1_000_000
WORK_ITEM_LOOP = 999_980
"""Metadata node of loops over work-items: they are not to be unrolled before LLVM has vectorized them."""


class Scopes:
    """Alias scopes of one kernel: a scope a kind of memory, each apart from all others."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._counters: dict[str, PointerClass] = {}
        self._small: dict[str, PointerClass] = {}

    def attach(self, name: str) -> str:
        """Metadata to append to a load or store in memory `name`."""
        number = self._numbers.setdefault(name, len(self._numbers))
        node = _FIRST_NODE + 3 * number
        return f", !alias.scope !{node + 1}, !noalias !{node + 2}"

    def counter(self, cls: PointerClass) -> str:
        """Name of the function that counts an access to a class whose counters may spill."""
        name = f"cc.count{cls.number}"
        self._counters[name] = cls
        return name

    def small_counter(self, cls: PointerClass) -> str:
        """Name of the function that counts an access to a class that has small counters."""
        name = f"cc.count_small{cls.number}"
        self._small[name] = cls
        return name

    def functions(self) -> str:
        """IR of the functions that count where a counter may have to spill first."""
        functions = [self._count(name, cls) for name, cls in self._counters.items()]
        return "\n".join(functions + [self._count_small(name, cls) for name, cls in self._small.items()])

    def _count_small(self, name: str, cls: PointerClass) -> str:
        bits, scope = 8 * cls.granule, self.attach(f"counter{cls.number}")
        amount = 2 if cls.scattered == 3 else 1
        # Just one addition to memory, so that the processor sees far ahead to the next cache misses.
        return (
            f"define internal void @{name}(ptr %p, ptr %from, i64 %beyond, i64 %small, i64 %shift) "
            "alwaysinline nounwind {\n"
            "enter:\n"
            "  %at = ptrtoint ptr %from to i64\n"
            "  %quarter = lshr i64 %at, 2\n"
            "  %place = add i64 %quarter, %small\n"
            "  %base = inttoptr i64 %place to ptr\n"
            "  %c = getelementptr i8, ptr %base, i64 %beyond\n"
            f"  %old = load i8, ptr %c{scope}\n"
            f"  %new = add i8 %old, {amount}\n"
            f"  store i8 %new, ptr %c{scope}\n"
            f"  %full = icmp ult i8 %new, {amount}\n"
            "  br i1 %full, label %spill, label %done, !prof !999990\n"
            "spill:\n"
            "  %wide = getelementptr i8, ptr %p, i64 %shift\n"
            f"  %before = load i{bits}, ptr %wide, align {cls.granule}{scope}\n"
            f"  %after = add i{bits} %before, 256\n"
            f"  %flagged = or i{bits} %after, {cls.scattered << (bits - 2)}\n"
            f"  store i{bits} %flagged, ptr %wide, align {cls.granule}{scope}\n"
            "  br label %done\n"
            "done:\n"
            "  ret void\n}"
        )

    def _count(self, name: str, cls: PointerClass) -> str:
        bits = 8 * cls.granule
        scope = self.attach(f"counter{cls.number}")
        head = (
            f"define internal void @{name}(ptr %ctx, ptr %p, i64 %shift, i{bits} %flags, i{bits} %amount) "
            "alwaysinline nounwind {\n"
            "enter:\n"
            "  %c = getelementptr i8, ptr %p, i64 %shift\n"
            f"  %old = load i{bits}, ptr %c, align {cls.granule}{scope}\n"
        )
        most = (1 << (bits - 2)) - 1
        return head + (
            f"  %low = and i{bits} %old, {most}\n"
            f"  %near = icmp ugt i{bits} %low, {most - 2}\n"
            "  br i1 %near, label %spill, label %add, !prof !999990\n"
            "spill:\n"
            f"  %left = call i64 @cc_spill(ptr %ctx, ptr %c, i32 {cls.granule})\n"
            f"  %less = trunc i64 %left to i{bits}\n"
            "  br label %add\n"
            "add:\n"
            f"  %now = phi i{bits} [ %old, %enter ], [ %less, %spill ]\n"
            f"  %sum = add i{bits} %now, %amount\n"
            f"  %new = or i{bits} %sum, %flags\n"
            f"  store i{bits} %new, ptr %c, align {cls.granule}{scope}\n"
            "  ret void\n}"
        )

    def metadata(self) -> str:
        """Definitions of the scopes; to be written last."""
        domain = _FIRST_NODE - 1
        loop = WORK_ITEM_LOOP
        rows = [
            f"!{loop} = distinct !{{!{loop}, !{loop + 1}}}",
            f'!{loop + 1} = !{{!"llvm.loop.unroll.disable"}}',
        ]
        rows += [
            f"!{domain} = distinct !{{!{domain}}}",
            '!999990 = !{!"branch_weights", i32 1, i32 10000}',
            '!999991 = !{!"branch_weights", i32 10000, i32 1}',
        ]
        scopes = [_FIRST_NODE + 3 * number for number in self._numbers.values()]
        for node in scopes:
            others = ", ".join(f"!{other}" for other in scopes if other != node)
            rows += [
                f"!{node} = distinct !{{!{node}, !{domain}}}",
                f"!{node + 1} = !{{!{node}}}",
                f"!{node + 2} = !{{{others}}}",
            ]
        return "\n".join(rows)


def helpers(scopes: Scopes) -> str:
    """IR of the helpers that do not depend on the kernel."""
    history, counts = scopes.attach("history"), scopes.attach("counts")
    return f"""\
define internal void @cc.leave_loop(ptr %h, i64 %n, i64 %stay) alwaysinline nounwind {{
  %lastp = getelementptr i8, ptr %h, i64 8
  %steadyp = getelementptr i8, ptr %h, i64 16
  %repeatsp = getelementptr i8, ptr %h, i64 24
  %last = load i64, ptr %lastp{history}
  %steady = load i64, ptr %steadyp{history}
  %same = icmp eq i64 %last, %n
  %is = icmp ne i64 %steady, 0
  %quick = and i1 %same, %is
  br i1 %quick, label %again, label %slow
again:
  %r = load i64, ptr %repeatsp{history}
  %s = add i64 %r, 1
  store i64 %s, ptr %repeatsp{history}
  ret void
slow:
  call void @cc_leave_loop(ptr %h, i64 %n, i64 %stay)
  ret void
}}
define internal void @cc.end_run(ptr %h, i64 %n, i64 %stay) alwaysinline nounwind {{
  %none = icmp eq i64 %n, 0
  br i1 %none, label %done, label %some
some:
  call void @cc_end_run(ptr %h, i64 %n, i64 %stay)
  ret void
done:
  ret void
}}
define internal void @cc.count_by(ptr %ctx, i64 %at, i64 %amount) alwaysinline nounwind {{
  %pp = getelementptr i8, ptr %ctx, i64 {context.slot("counts")}
  %p = load ptr, ptr %pp
  %c = getelementptr i8, ptr %p, i64 %at
  %n = load i64, ptr %c{counts}
  %m = add i64 %n, %amount
  store i64 %m, ptr %c{counts}
  ret void
}}
define internal void @cc.count_if(ptr %ctx, i64 %at, i1 %yes) alwaysinline nounwind {{
  %amount = zext i1 %yes to i64
  call void @cc.count_by(ptr %ctx, i64 %at, i64 %amount)
  ret void
}}
define internal i64 @cc.pick(i32 %d, i64 %a, i64 %b, i64 %c, i64 %other) alwaysinline nounwind {{
  %is0 = icmp eq i32 %d, 0
  %is1 = icmp eq i32 %d, 1
  %is2 = icmp eq i32 %d, 2
  %x = select i1 %is2, i64 %c, i64 %other
  %y = select i1 %is1, i64 %b, i64 %x
  %z = select i1 %is0, i64 %a, i64 %y
  ret i64 %z
}}
define internal i64 @cc.small_sum(i64 %a, i64 %b) alwaysinline nounwind {{
  %x = trunc nuw nsw i64 %a to i32
  %y = trunc nuw nsw i64 %b to i32
  %s = add nuw nsw i32 %x, %y
  %z = zext nneg i32 %s to i64
  ret i64 %z
}}
define internal i64 @cc.pick_sum(i32 %d, i64 %a, i64 %b, i64 %c, i64 %x, i64 %y, i64 %z) \
alwaysinline nounwind {{
  %s0 = add i64 %a, %x
  %s1 = add i64 %b, %y
  %s2 = add i64 %c, %z
  %s = call i64 @cc.pick(i32 %d, i64 %s0, i64 %s1, i64 %s2, i64 0)
  ret i64 %s
}}
define internal i64 @cc.linear(i64 %g0, i64 %l0, i64 %i0, i64 %n0, i64 %g1, i64 %l1, i64 %i1, i64 %n1, \
i64 %g2, i64 %l2, i64 %i2, i64 %n2) alwaysinline nounwind {{
  %a0 = mul i64 %g0, %l0
  %x0 = add i64 %a0, %i0
  %a1 = mul i64 %g1, %l1
  %x1 = add i64 %a1, %i1
  %a2 = mul i64 %g2, %l2
  %x2 = add i64 %a2, %i2
  %p = mul i64 %x2, %n1
  %q = add i64 %p, %x1
  %r = mul i64 %q, %n0
  %s = add i64 %r, %x0
  ret i64 %s
}}
declare i64 @cc_spill(ptr, ptr, i32) cold
declare void @cc_leave_loop(ptr, i64, i64)
declare void @cc_end_run(ptr, i64, i64)
declare void @cc_row(ptr, i32, i32, i64, i64, i64)
declare void @cc_record(ptr, ptr, i64, i64, i64)
declare void @cc_count_dynamic(ptr, ptr, i32, i32)
declare void @cc_check(ptr, ptr, i64, i32, i32, i64)
declare void @cc_fold_row(ptr, ptr, i64)
declare void @cc_lead_outcome(ptr, i32, i32)
declare void @cc_fold_lead(ptr, i64)
declare void @cc_fold_cell(ptr, ptr, i64)
declare void @cc_fold_piece32(ptr, i64, i32)
declare void @cc_fold_piece64(ptr, i64, i64)
declare void @cc_fold32(ptr, ptr, i64)
declare void @cc_fold64(ptr, ptr, i64)
declare void @cc_diverged(ptr, i32, i32) noreturn cold
declare void @cc_assertion(ptr, i32, i64) cold
declare void @cc_collective(ptr, i32, i32, i64)
declare void @cc_async_copy(ptr, ptr, ptr, i64, i64, i64, i64, i32, i32)
declare void @cc_printf(ptr, i32, ptr, i64)
declare ptr @cc_to_space(ptr, ptr, i32)
declare i32 @cc_fence_of(ptr, ptr)
"""
