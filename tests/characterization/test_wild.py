"""What kernels of public collections do, and small ones do not: each was refused or wrong once."""

from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast.errors import KernelFault, KernelTimeout, LaunchError
from crosscast.kernel import Kernel, Program
from support.examples import one_in
from support.launching import LEVELS, launch, zeros
from support.refusals import refusal, refusals

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


@every_level
def test_names_that_llvm_makes_of_a_dot_and_a_number_are_not_those_of_unnamed_values(level: str) -> None:
    source = """target triple = "spir64-unknown-unknown"
    define spir_kernel void @k(ptr addrspace(1) %o, i32 %n) {
      %1 = add i32 %n, 1
      %.1 = mul i32 %1, 10
      %2 = add i32 %.1, %1
      store i32 %2, ptr addrspace(1) %o
      ret void
    }"""
    out = zeros(1)
    kernel = Kernel(Program(source.encode(), "llvm-ir", options=(level,)), "k")
    crosscast.characterize(crosscast.Launch(kernel, (1,), (1,), (out, np.int32(4))))
    assert out.tolist() == [55]


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


_SWITCH = "switch (n%s) { case 1: case 2: a += i * a; %s case 3: case 4: a ^= 0x55; %s case 9: a -= 3; }"
_BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"


def _switched(n: int, i: int, a: int, *, stops: bool) -> int:
    if n in (1, 2):
        a += i * a
    if n in (1, 2, 3, 4):
        a ^= 0x55
        if stops:
            return a
    return a - 3 if n in (1, 2, 3, 4, 9) else a


@every_level
@pytest.mark.parametrize("inside", ["", _BARRIER])
@pytest.mark.parametrize("stop", ["", "break;"])
@pytest.mark.parametrize("loop", [False, True])
def test_cases_fall_through_beside_barriers(level: str, inside: str, stop: str, loop: bool) -> None:
    body = _BARRIER + _SWITCH % (" + j" if loop else "", inside, stop)
    if loop:
        body = f"for (int j = 0; j < 4; j++) {{ {body} }}"
    source = f"""kernel void k(global int *o, int n) {{
      int i = get_global_id(0), a = i + 1;
      {body}
      o[i] = a;
    }}"""
    for n in (0, 1, 2, 3, 4, 9):
        out = zeros(8)
        launch(source, 8, 4, out, np.int32(n), options=[level])
        expected = []
        for i in range(8):
            a = i + 1
            for j in range(4 if loop else 1):
                a = _switched(n + j, i, a, stops=bool(stop))
            expected.append(a)
        assert out.tolist() == expected, n


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


_GROUP = "int group = get_global_id(0) / get_local_size(0);"
_IN_LOOP = (
    _GROUP
    + """
  for (int i = 0; i < 2; i++) {
    if (group > 0) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (group == 1) { int v = t[0]; barrier(CLK_LOCAL_MEM_FENCE); t[l] += v; }
    } else {
      t[l] += 1;
      barrier(CLK_LOCAL_MEM_FENCE);
      t[l] += 1;
    }
  }"""
)
_NEVER = "for (int i = 0; i < 2 + l; i++) { t[l] += i; if (l >= get_local_size(0)) barrier(1); }"
_LEAVE = "for (int i = 0; i < 9; i++) { if (i == 1 && (l == 0 || l == 1)) break; barrier(1); t[l] = i + 7; }"
_FIRST_GROUP = "if (get_global_id(0) < 2) { barrier(1); t[l] = 9; }"


@every_level
@pytest.mark.parametrize(
    ("body", "local_size", "expected"),
    [
        (_IN_LOOP, (4, 1), [4, 5, 6, 7, 16, 17, 18, 19]),
        (_NEVER, (4, 1), [1, 4, 8, 13, 5, 8, 12, 17]),
        (_LEAVE, (2, 1), [7] * 8),
        (_FIRST_GROUP, (2, 1), [9, 9, 2, 3, 4, 5, 6, 7]),
        # The same in work-groups of another shape: only some of the work-items reach the barrier.
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
    global_size = (8 // local_size[1], local_size[1])
    out = zeros(8)
    if expected is None:
        with pytest.raises(KernelFault, match="not reached by all work-items"):
            launch(source, global_size, local_size, out, options=[level])
        return
    launch(source, global_size, local_size, out, options=[level])
    assert out.tolist() == expected


# -- buffers without elements


@pytest.mark.parametrize(("used", "size"), [(False, 0), (False, 4), (True, 0), (True, 4)])
def test_a_buffer_may_be_empty_if_the_kernel_does_not_use_it(used: bool, size: int) -> None:
    source = f"kernel void k(global int *o, global int *p) {{ o[0] = {'p[0]' if used else '3'}; }}"
    out: Any = zeros(1)
    if used and not size:
        with pytest.raises(LaunchError, match=r"argument 1 .* at least one element, as the kernel accesses"):
            launch(source, 1, 1, out, zeros(size))
        return
    launch(source, 1, 1, out, zeros(size))
    assert out[0] == (0 if used else 3)


# -- IR that nobody compiled

_IR = """target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256"
target triple = "spir64-unknown-unknown"
%s
define spir_kernel void @k(ptr addrspace(1) %%a) {
%s
  ret void
}
"""


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
        return Kernel.from_ir(_IR % ("", f"  {place}\n  %old = {atomic}"), "k")

    buffer, writes = zeros(3, dtype), 8 * instruction.startswith("atomicrmw")
    for check in (False, True):
        profile = crosscast.characterize(kernel(2 * nbytes), 8, 4, [buffer], check_bounds=check)
        assert (profile.metrics["total_reads"], profile.metrics["total_writes"]) == (8, writes)
    assert buffer.tolist() == [0, 0, 2 * writes]
    with pytest.raises(KernelFault, match=f" of {nbytes} bytes by work-item"):
        crosscast.characterize(kernel(3 * nbytes), 1, 1, [buffer], check_bounds=True)


def test_what_only_looks_like_an_intrinsic_is_unresolved() -> None:
    declaration = "declare void @llvm.nothing.p1(ptr addrspace(1))"
    text = _IR % (declaration, "  call void @llvm.nothing.p1(ptr addrspace(1) %a)")
    assert "nothing" in refusal(crosscast.characterize, Kernel.from_ir(text, "k"), 1, 1, [zeros(1)])
