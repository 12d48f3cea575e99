"""What kernels of public collections do, and small ones do not: each was refused or wrong once."""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.errors import KernelFault, KernelTimeout, LaunchError
from crosscast.kernel import Kernel
from support.examples import one_in
from support.launching import LEVELS, launch, zeros
from support.refusals import refusals

every_level = pytest.mark.parametrize("level", one_in(3, LEVELS))
_TRIPLE = np.dtype([("a", "i4"), ("b", "i4"), ("c", "i4")])


# -- functions


def test_what_drivers_only_warn_of_is_no_error() -> None:
    source = """kernel void k(global float2 *x, global int *o) {
      global float4 *wide = x;
      int at = &o[3];
      o[get_global_id(0)] = wide[0].w + 0 * at;
    }"""
    out = zeros(2)
    launch(source, 2, 1, np.arange(4, dtype=np.float32), out)
    assert out.tolist() == [3, 3]


# -- structures by value


@every_level
def test_a_kernel_with_structures_by_value_is_built_more_than_once(level: str) -> None:
    source = """typedef struct { int a, b, c; } T;
    int sum(T t) { t.a += 1; return t.a + t.b; }
    kernel void k(global int *o, T x, T y) {
      int i = get_global_id(0);
      if (i < x.b) o[i] = sum(x) + sum(y) + x.a;
    }"""
    x, y = np.array([(1, 6, 3)], _TRIPLE), np.array([(10, 20, 30)], _TRIPLE)
    found = []
    for check in (False, True, False):
        out = zeros(8)
        profile = launch(source, 8, 4, out, x, y, options=[level], check_bounds=check)
        assert out.tolist() == [40] * 6 + [0] * 2
        found.append(profile.metrics)
    assert found[0] == found[1] == found[2]


# -- switch


@every_level
def test_cases_fall_through_beside_barriers(level: str) -> None:
    source = """kernel void k(global int *o, int n) {
      int i = get_global_id(0), a = i + 1;
      for (int j = 0; j < 4; j++)
        switch (barrier(1), n + j) {
          case 1: case 2: a += i * a; barrier(1);
          case 3: case 4: a ^= 0x55; break;
          case 9: a -= 3;
        }
      o[i] = a;
    }"""
    for n in (0, 1, 2, 7):
        out, a = zeros(8), np.arange(1, 9)
        launch(source, 8, 4, out, np.int32(n), options=[level])
        for case in range(n, n + 4):
            a += np.arange(8) * a * (case in (1, 2)) - 3 * (case == 9)
            a ^= 0x55 * (1 <= case <= 4)
        assert out.tolist() == a.tolist()


@every_level
def test_a_switch_with_a_default_picks_addresses_in_local_memory(level: str) -> None:
    source = """kernel void k(global int *o, int n) {
      local int s[4][8], t[8];
      int l = get_local_id(0);
      for (int r = 0; r < 4; r++) s[r][l] = 10 * r + l;
      t[l] = -l;
      barrier(CLK_LOCAL_MEM_FENCE);
      local int *p;
      switch (n) { case 0: case 5: p = s[1]; break; case 1: case 2: p = &s[2][1]; break; default: p = t; }
      o[get_global_id(0)] = p[l % 4];
    }"""
    for n, first in ((0, 10), (5, 10), (1, 21), (2, 21), (7, 0)):
        out = zeros(8)
        launch(source, 8, 8, out, np.int32(n), options=[level])
        step = -1 if n == 7 else 1
        assert out.tolist() == [first + step * (i % 4) for i in range(8)]


# -- without optimization


@every_level
def test_constant_addresses_in_local_memory_stand_inside_one_another(level: str) -> None:
    source = """kernel void k(global int *o) {
      local int t[4][17];
      int l = get_local_id(0);
      t[l][l] = l;
      barrier(CLK_LOCAL_MEM_FENCE);
      int s = 0, *p = &s;
      p[0] += t[0][0] + 10 * t[1][1] + 100 * t[2][2] + 1000 * t[3][3];
      t[3][3] += 1;
      o[l] = s;
    }"""
    out = zeros(4)
    launch(source, 4, 4, out, options=[level])
    assert out.tolist() == [3210, 4210, 5210, 6210]


# -- loops


@every_level
@refusals("body")
def test_an_endless_loop_ends_at_the_time_limit(level: str, body: str) -> None:
    source = f"kernel void k(global int *a) {{ {body} }}"
    with pytest.raises(KernelTimeout, match=r"0.5 s \(the time limit\)"):
        launch(source, 8, 4, zeros(8), options=[level], timeout_s=0.5, threads=2)


_NEVER = "for (int i = 0; i < 2 + l; i++) { t[l] += i; if (l >= get_local_size(0)) barrier(1); }"
_LEAVE = "for (int i = 0; i < 9; i++) { if (i == 1 && (l == 0 || l == 1)) break; barrier(1); t[l] = i + 7; }"
_FIRST_GROUP = "if (get_global_id(0) < 2) { barrier(1); t[l] = 9; }"


@every_level
@pytest.mark.parametrize(
    ("body", "local_size", "expected"),
    [
        (_NEVER, (4, 1), [1, 4, 8, 13, 5, 8, 12, 17]),
        (_LEAVE, (2, 1), [7] * 8),
        (_FIRST_GROUP, (2, 1), [9, 9, 2, 3, 4, 5, 6, 7]),
        # In work-groups of another shape only some of the work-items reach the barrier.
        (_NEVER, (2, 2), None),
        (_LEAVE, (4, 1), None),
        (_FIRST_GROUP, (4, 1), None),
    ],
)
def test_a_barrier_may_depend_on_what_is_the_same_in_the_group(
    level: str, body: str, local_size: tuple[int, int], expected: list[int] | None
) -> None:
    source = f"""kernel void k(global int *o) {{
      local int t[4];
      int g = get_global_id(0) + get_global_id(1) * get_global_size(0);
      int l = get_local_id(0) + get_local_id(1) * get_local_size(0);
      t[l] = g;
      {body}
      o[g] = t[l];
    }}"""
    out = zeros(8)
    fault = pytest.raises(KernelFault, match="not reached by all") if expected is None else nullcontext()
    with fault:
        launch(source, (8 // local_size[1], local_size[1]), local_size, out, options=[level])
        assert out.tolist() == expected


# -- buffers without elements


@pytest.mark.parametrize("size", [0, 4])
def test_a_buffer_may_be_empty_if_the_kernel_does_not_use_it(size: int) -> None:
    out, p = zeros(1), zeros(size)
    launch("kernel void k(global int *o, global int *p) { o[0] = 3; }", 1, 1, out, p)
    assert out[0] == 3
    if not size:
        with pytest.raises(LaunchError, match=r"argument 1 .* at least one element, as the kernel accesses"):
            launch("kernel void k(global int *o, global int *p) { o[0] = p[0]; }", 1, 1, out, p)


# -- IR that nobody compiled

_IR = """target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256"
target triple = "spir64-unknown-unknown"
%s
"""
_CALLS = """
define i32 @twice(i32 %x) noinline {
  %add = add i32 %x, %x
  ret i32 %add
}
define spir_kernel void @k(ptr addrspace(1) %out) {
  %add.i1 = call i32 @twice(i32 3)
  %add.i2 = call i32 @twice(i32 %add.i1)
  store i32 %add.i2, ptr addrspace(1) %out
  ret void
}"""
_DOTS = """
define spir_kernel void @k(ptr addrspace(1) %o) {
  %1 = call i32 @f(i32 4)
  %.1 = mul i32 %1, 10
  %2 = add i32 %.1, %1
  store i32 %2, ptr addrspace(1) %o
  ret void
}
define i32 @f(i32 %x) {
  %1 = add i32 %x, 1
  ret i32 %1
}"""
_STUB = """
define spir_kernel void @k(ptr addrspace(1) %o) {
  call spir_func void @__clang_ocl_kern_imp_k(ptr addrspace(1) %o)
  ret void
}
define internal spir_func void @__clang_ocl_kern_imp_k(ptr addrspace(1) %o) {
  store i32 7, ptr addrspace(1) %o, align 4
  ret void
}"""
_NUMBERS = """
@0 = addrspace(2) constant i32 7
@1 = addrspace(2) constant i32 9
define spir_func i32 @2(ptr addrspace(2) %x) {
  %v = load i32, ptr addrspace(2) %x
  ret i32 %v
}
define spir_kernel void @k(ptr addrspace(1) %o) {
  %a = call spir_func i32 @2(ptr addrspace(2) @0)
  %b = call spir_func i32 @2(ptr addrspace(2) @1)
  %s = sub i32 %b, %a
  store i32 %s, ptr addrspace(1) %o
  ret void
}"""


@pytest.mark.parametrize(
    ("text", "left", "instructions"),
    [(_CALLS, 12, 8), (_DOTS, 55, 7), (_STUB, 7, 2), (_NUMBERS, 2, 9)],
    ids=["names of inlined copies", "a dot and a number", "the stub does not count", "globals by number"],
)
def test_names_in_ir_are_those_that_llvm_gives(text: str, left: int, instructions: int) -> None:
    out = zeros(1)
    profile = crosscast.characterize(Kernel.from_ir(_IR % text, "k"), 1, 1, [out])
    assert (out[0], profile.metrics["total_instruction_count"]) == (left, instructions)


@pytest.mark.parametrize(
    ("type_", "dtype"), [("i8", np.int8), ("i16", np.int16), ("i32", np.int32), ("i64", np.int64)]
)
@pytest.mark.parametrize("instruction", ["atomicrmw volatile add", "load atomic"])
def test_atomics_of_ir_access_the_bytes_of_their_type(type_: str, dtype: Any, instruction: str) -> None:
    nbytes = np.dtype(dtype).itemsize

    def kernel(offset: int) -> Kernel:
        atomic = f"{instruction} ptr addrspace(1) %p, {type_} 1 monotonic"
        if instruction == "load atomic":
            atomic = f"{instruction} {type_}, ptr addrspace(1) %p monotonic, align {nbytes}"
        place = f"%p = getelementptr i8, ptr addrspace(1) %a, i64 {offset}"
        head = "define spir_kernel void @k(ptr addrspace(1) %a)"
        return Kernel.from_ir(_IR % f"{head} {{\n  {place}\n  %old = {atomic}\n  ret void\n}}", "k")

    buffer, writes = zeros(3, dtype), 8 * instruction.startswith("atomicrmw")
    for check in (False, True):
        profile = crosscast.characterize(kernel(2 * nbytes), 8, 4, [buffer], check_bounds=check)
        assert (profile.metrics["total_reads"], profile.metrics["total_writes"]) == (8, writes)
    assert buffer.tolist() == [0, 0, 2 * writes]
    with pytest.raises(KernelFault, match=f" of {nbytes} bytes by work-item"):
        crosscast.characterize(kernel(3 * nbytes), 1, 1, [buffer], check_bounds=True)
