"""Executed instructions, by work-item and between barriers, of IR whose instructions are numbered.

Operations and bytes of a launch, counted exactly, in cases that are small enough to count by hand.
"""

from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.kernel import Argument, Kernel
from crosscast.profile import MetricValue
from support.launching import launch, zeros

_HEAD = """target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-n8:16:32:64-G1"
target triple = "spir64-unknown-unknown"
declare spir_func i64 @_Z12get_local_idj(i32)
declare spir_func i64 @_Z13get_global_idj(i32)
declare spir_func void @_Z7barrierj(i32) convergent
"""


def _metrics(body: str, items: int, group: int, *args: Argument, **more: Any) -> dict[str, MetricValue]:
    kernel = Kernel.from_ir(_HEAD + body, "k")
    return dict(crosscast.characterize(kernel, items, group, args, threads=1, **more).metrics)


_BARRIER = """
define spir_func i32 @twice(i32 %x) {
  %y = shl i32 %x, 1
  ret i32 %y
}
define spir_kernel void @k(ptr addrspace(1) %o) {
entry:
  %g = call spir_func i64 @_Z13get_global_idj(i32 0)
  %l = call spir_func i64 @_Z12get_local_idj(i32 0)
  %x = trunc i64 %l to i32
  %few = icmp ult i32 %x, 1
  br i1 %few, label %then, label %join
then:
  %t = call spir_func i32 @twice(i32 %x)
  br label %join
join:
  %v = phi i32 [ %t, %then ], [ %x, %entry ]
  call spir_func void @_Z7barrierj(i32 1)
  %p = getelementptr i32, ptr addrspace(1) %o, i64 %g
  store i32 %v, ptr addrspace(1) %p, align 4
  ret void
}
"""


def test_pieces_between_barriers_leave_out_the_barrier_call() -> None:
    out = zeros(8)
    found = _metrics(_BARRIER, 8, 4, out)
    # Before the barrier 6 instructions, or 10 with the helper's call, two instructions and the jump;
    # then the barrier; then 3.
    totals, pieces = [14, 10, 10, 10] * 2, [10, 6, 6, 6, 3, 3, 3, 3] * 2
    assert found["total_instruction_count"] == sum(totals) == 88
    assert (found["min_ipt"], found["max_ipt"], found["median_ipt"]) == (10, 14, 10)
    assert (found["min_itb"], found["max_itb"], found["median_itb"]) == (3, 10, np.median(pieces))
    assert found["load_imbalance"] == 4
    assert found["total_barriers_hit"] == 8
    assert found["barriers_per_instruction"] == pytest.approx((8 + 8) / sum(totals))
    assert out.tolist() == [0, 1, 2, 3] * 2
    # 26 calls, 10 branches and returns, two shifts and 8 of each other: 8 opcodes reach ceil(79.2).
    assert found["opcode"] == 8


def test_a_barrier_in_a_loop_cuts_a_piece_each_time() -> None:
    body = """
define spir_kernel void @k(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call spir_func void @_Z7barrierj(i32 1)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
    found = _metrics(body, 6, 3, np.int32(5))
    # br phi | add icmp br phi (4 times) | add icmp br ret
    pieces = [2, 4, 4, 4, 4, 4]
    assert found["total_instruction_count"] == 6 * (sum(pieces) + 5)
    assert (found["min_itb"], found["max_itb"], found["median_itb"]) == (2, 4, 4)
    assert found["total_barriers_hit"] == 30
    assert found["unique_branches"] == 1


def test_widths_are_those_of_results() -> None:
    body = """
define spir_kernel void @k(ptr addrspace(1) %o) {
  %v = load <4 x float>, ptr addrspace(1) %o, align 16
  %w = fadd <4 x float> %v, %v
  %h = shufflevector <4 x float> %w, <4 x float> %w, <8 x i32> zeroinitializer
  %e = extractelement <8 x float> %h, i32 5
  store float %e, ptr addrspace(1) %o, align 16
  ret void
}
"""
    found = _metrics(body, 2, 1, zeros(4, np.float32))
    widths = np.array([4, 4, 8, 1, 1, 1])
    assert found["max_simd_width"] == 8
    assert found["mean_simd_width"] == pytest.approx(widths.mean())
    assert found["sd_simd_width"] == pytest.approx(widths.std())
    assert found["instructions_per_operand"] == pytest.approx(6 / widths.sum())


def test_markers_do_not_count() -> None:
    body = """
declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
define spir_kernel void @k(ptr addrspace(1) %o) {
  %p = alloca i32, align 4
  call void @llvm.lifetime.start.p0(ptr %p)
  store i32 7, ptr %p, align 4
  %v = load i32, ptr %p, align 4
  call void @llvm.lifetime.end.p0(ptr %p)
  store i32 %v, ptr addrspace(1) %o, align 4
  ret void
}
"""
    out = zeros(1)
    assert _metrics(body, 1, 1, out)["total_instruction_count"] == 5
    assert out[0] == 7


def test_a_collective_ends_no_piece() -> None:
    source = "kernel void k(global int *o) { o[get_global_id(0)] = work_group_reduce_add(2); }"
    found = launch(source, 8, 4, zeros(8), standard="2.0").metrics
    assert found["total_barriers_hit"] == 0
    assert found["min_itb"] == found["max_itb"] == found["max_ipt"]


def test_a_crowded_loop_is_counted_exactly() -> None:
    source = """kernel void k(global int *o, int n) {
      int s = 0;
      for (int i = 0; i < n; i++) s ^= s * 3 + i;
      o[0] = s;
    }"""
    few, many, more = (
        launch(source, 2, 1, zeros(1), np.int32(n)).metrics["total_instruction_count"] or 0
        for n in (10, 110, 3_000_010)
    )
    assert more == few + (many - few) * 30_000


ITEMS = 64
_CASES: list[tuple[str, str, dict[str, int]]] = [
    ("a[i] = a[i] - 3;", "float", {"flops_single": 1, "global_bytes": 8}),
    ("a[i] = 3 / a[i];", "float", {"flops_single": 1, "global_bytes": 8}),
    ("a[i] = a[i] * a[i] + 2;", "float", {"flops_single": 2, "global_bytes": 8}),
    ("a[i] = fma(a[i], 2.0f, 3.0f);", "float", {"flops_single": 2, "global_bytes": 8}),
    ("a[i] = -a[i];", "float", {"global_bytes": 8}),
    ("a[i] = exp(a[i]);", "float", {"function_elements": 1, "global_bytes": 8}),
    ("a[i] = a[i] + a[i];", "float4", {"flops_single": 4, "global_bytes": 32}),
    ("a[i] = a[i] * 2;", "double", {"flops_double": 1, "global_bytes": 16}),
    ("a[i] = 3 * a[i] + 1;", "int", {"global_bytes": 8}),
    ("atomic_add(a, 1);", "int", {"global_bytes": 8}),
    (
        "local float t[16]; t[get_local_id(0)] = c[i % 4]; barrier(1); a[i] = t[15 - get_local_id(0)];",
        "float",
        {"global_bytes": 4, "constant_bytes": 4, "local_bytes": 8},
    ),
]


@pytest.mark.parametrize(("body", "type_", "each"), _CASES)
def test_operations_and_bytes_of_a_work_item(body: str, type_: str, each: dict[str, int]) -> None:
    source = f"kernel void k(global {type_} *a, constant float *c) {{ size_t i = get_global_id(0); {body} }}"
    dtype = {"double": np.float64, "int": np.int32}.get(type_, np.float32)
    found = launch(source, ITEMS, 16, np.ones((ITEMS, 4), dtype), np.ones(4, np.float32))
    counted = dict(found.launch["work"])
    assert sum(counted.pop("instructions").values()) == found.metrics["total_instruction_count"]
    assert counted == {name: ITEMS * count for name, count in each.items()}
