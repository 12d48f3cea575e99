"""Accesses that `test_sub_groups` does not interpret, against lists written down in Python.

Distinct bytes of a launch are those of sets of bytes, however wide its accesses are.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast import Kernel, Local
from crosscast.devices.catalogue import device_named
from crosscast.devices.roofline import verdicts_of
from crosscast.profile import Profile
from support.examples import one_in
from support.launching import launch, local_ints, zeros
from support.reference import Address, memory_metrics, same_metrics


def _check(profile: Profile, reads: Sequence[Address], writes: Sequence[Address], **others: Any) -> None:
    assert same_metrics(profile.metrics, {**memory_metrics(reads, writes), **others}) == {}


def test_halves_stored_as_vectors_are_one_event() -> None:
    source = """kernel void k(global half *o, global const half *a) {
      int i = get_global_id(0);
      vstore_half4(vload_half4(i, a), i, o);
      vstorea_half3(vloada_half3(i, a), i, o);
    }"""
    profile = launch(source, 4, 2, zeros(16, np.float16), zeros(16, np.float16))
    addresses = [8 * i for i in range(4)] * 2
    _check(profile, [("a", b) for b in addresses], [("o", b) for b in addresses])


# -- atomics


@pytest.mark.parametrize("space", ["global", "local"])
@pytest.mark.parametrize("level", ["-Oz", "-O0"])
def test_a_compare_exchange_that_fails_is_only_a_read(space: str, level: str) -> None:
    source = f"""kernel void k(volatile {space} int *b, global int *o) {{
      int i = get_local_id(0);
      if (i == 0) {{ b[0] = 1; b[1] = 5; }}
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      o[i] = atomic_cmpxchg(&b[i % 2], i, i + 2);
    }}"""
    out = zeros(8)
    argument = zeros(2) if space == "global" else local_ints(2)
    profile = launch(source, 8, 8, argument, out, options=[level])
    memory, reads, old = [1, 5], [], []
    writes: list[Address] = [("b", 0), ("b", 4)]
    for i in range(8):
        reads.append(("b", i % 2 * 4))
        writes.append(("o", 4 * i))
        old.append(memory[i % 2])
        if memory[i % 2] == i:
            memory[i % 2] = i + 2
            writes.append(("b", i % 2 * 4))
    assert out.tolist() == old
    assert len(writes) > 10
    _check(profile, reads, writes)


@pytest.mark.parametrize("pointer", ["global atomic_int *", "atomic_int *"])
@pytest.mark.parametrize("level", ["-Oz", "-O0"])
def test_c11_atomics_read_write_or_do_both(pointer: str, level: str) -> None:
    source = f"""void work(volatile {pointer}c, int i) {{
      int expected = i;
      atomic_load(c);
      atomic_store(c + 1, i);
      atomic_fetch_or(c + 2, i);
      atomic_exchange(c + 3, i);
      atomic_compare_exchange_strong(c + 4, &expected, i + 2);
    }}
    kernel void k(global atomic_int *c) {{ work(c, get_global_id(0)); }}"""
    c = zeros(5)
    profile = launch(source, 8, 8, c, standard="2.0", options=[level])
    reads = [("c", 4 * n) for n in (0, 2, 3, 4)] * 8
    writes = [("c", 4 * n) for n in (1, 2, 3)] * 8 + [("c", 16)] * 4
    assert c.tolist() == [0, 7, 7, 7, 8]
    _check(profile, reads, writes)


# -- copies


@pytest.mark.parametrize(("type_", "nbytes"), [("uchar", 1), ("int", 4), ("float3", 16), ("double2", 16)])
def test_an_async_copy_is_an_event_an_element_a_side(type_: str, nbytes: int) -> None:
    source = f"""kernel void k(global {type_} *o, global const {type_} *a) {{
      local {type_} t[8];
      event_t e = async_work_group_strided_copy(t, a + get_group_id(0), 8, 2, 0);
      wait_group_events(1, &e);
      e = async_work_group_copy(o + 8 * get_group_id(0), t, 8, 0);
      wait_group_events(1, &e);
    }}"""
    out, a = zeros(32 * nbytes, np.uint8), np.arange(20 * nbytes).astype(np.uint8)
    dtype = {"uchar": np.uint8, "int": np.int32, "float3": np.float32, "double2": np.float64}[type_]
    profile = launch(source, 16, 4, out.view(dtype), a.view(dtype))
    each, local = [*product(range(4), range(8))], [("t", nbytes * n) for n in range(8)] * 4
    reads: list[Address] = [*(("a", nbytes * (group + 2 * n)) for group, n in each), *local]
    writes: list[Address] = [*(("o", nbytes * (8 * group + n)) for group, n in each), *local]
    _check(profile, reads, writes, global_accesses=0, local_accesses=0)
    elements = a.reshape(20, nbytes)
    expected = np.concatenate([elements[group : group + 16 : 2] for group in range(4)])
    np.testing.assert_array_equal(out.reshape(32, nbytes), expected)


# -- counters


def test_counters_do_not_overflow() -> None:
    source = "kernel void k(volatile global uchar *b, int n) { for (int i = 0; i < n; i++) b[i % 3] = b[5]; }"
    profile = launch(source, 10, 2, zeros(8, np.uint8), np.int32(1000), threads=2)
    writes: list[Address] = [("b", i % 3) for i in range(1000)]
    _check(profile, [("b", 5)] * 10_000, writes * 10, local_memory_address_entropy_3=0)
    source = "kernel void k(volatile global short *b, int n) { for (int i = 0; i < n; i++) b[0] += 1; }"
    profile = launch(source, 4, 1, zeros(4, np.int16), np.int32(20_000))
    _check(profile, [("b", 0)] * 80_000, [("b", 0)] * 80_000)


def test_unaligned_accesses_of_ir_count_by_their_first_byte() -> None:
    text = """target datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-n8:16:32:64-G1"
target triple = "spir64-unknown-unknown"
declare spir_func i64 @_Z13get_global_idj(i32)
define spir_kernel void @k(ptr addrspace(1) %o) {
  %i = call spir_func i64 @_Z13get_global_idj(i32 0)
  %p = getelementptr i8, ptr addrspace(1) %o, i64 %i
  store i32 7, ptr addrspace(1) %p, align 1
  %v = load i64, ptr addrspace(1) %p, align 1
  ret void
}
"""
    buffer = zeros(32, np.uint8)
    profile = crosscast.characterize(Kernel.from_ir(text, "k"), 8, 4, [buffer], threads=1)
    each: list[Address] = [("o", i) for i in range(8)]
    _check(profile, each, each)


_MANY = 1 << 12
_DOES = [*product(("read", "write"), ("float", "double", "int4")), ("add", "float")]
_SPANS = [(0, 1500), (700, 1500), (_MANY, 1), (_MANY, 2), (1000, 40000)]


@pytest.mark.parametrize(("does", "hot_span", "threads"), one_in(9, product(_DOES, _SPANS, [1, 3])))
def test_accesses_that_data_scatter(does: tuple[str, str], hot_span: tuple[int, int], threads: int) -> None:
    (verb, type_), (hot, span) = does, hot_span
    # Some addresses far more often than a byte counts, others rarely, most never.
    x = np.random.default_rng(hot + span).integers(0, span, _MANY).astype(np.int32)
    x[:hot] %= 2
    body = {
        "read": "o[i] = a[x[i]];",
        "write": "a[x[i]] = o[0];",
        "add": "atomic_add((global int *)a + x[i], 1);",
    }[verb]
    parameters = f"global {type_} *o, global {type_} *a, global const int *x"
    source = f"kernel void k({parameters}) {{ int i = get_global_id(0); {body} }}"
    dtype, width = {"float": (np.float32, 1), "double": (np.float64, 1), "int4": (np.int32, 4)}[type_]
    nbytes = width * np.dtype(dtype).itemsize
    out, a = zeros(_MANY * width, dtype), zeros(span * width, dtype)
    profile = launch(source, _MANY, 64, out, a, x, threads=threads)
    index: list[Address] = [("x", 4 * i) for i in range(_MANY)]
    scattered: list[Address] = [("a", nbytes * int(i)) for i in x]
    given: list[Address] = [("o", nbytes * i) for i in range(_MANY)]
    reads = [("o", 0)] * _MANY if verb == "write" else scattered
    _check(profile, [*reads, *index], given if verb == "read" else scattered)


SOURCE = """

kernel void windows(global const float *x, global float *y, int step)
{ int i = get_global_id(0); y[i] = dot(vload4(0, x + i * step), (float4)1); }

kernel void scattered(global const float *x, global float *y, global const int *where)
{ int i = get_global_id(0); float4 v = vload4(0, x + where[i]); if (i % 3) vstore2(v.xy, 0, y + where[i]); }

kernel void count(global uint *bins, global const uint *data) { atomic_inc(&bins[data[get_global_id(0)]]); }

kernel void histogram(global const uchar *data, global uint *bins, local uint *own) {
  int i = get_local_id(0);
  own[i] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < 64; k++) atomic_inc(&own[data[get_global_id(0) * 64 + k] % 64]);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&bins[i], own[i]);
}
"""
ITEMS = 2048


def characterized(kernel: str, *args: Any, items: int = ITEMS, **options: Any) -> Profile:
    found = Kernel.from_source(SOURCE, kernel)
    return crosscast.characterize(found, global_size=items, local_size=64, args=list(args), **options)


def distinct(made: Profile) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = made.launch["distinct_bytes"]
    return found


def union(starts: np.ndarray[Any, Any], width: int) -> int:
    return len(np.unique(starts[:, None] + np.arange(width)))


@given(st.lists(st.integers(0, 99), min_size=1, max_size=12), st.integers(1, 4), st.integers(0, 64))
def test_the_most_used_address_of_atomics_is_known(values: list[int], threads: int, unused: int) -> None:
    """An atomic is a read and a write; the data, which all read from other addresses, have no part in it."""
    data = np.resize(np.array(values, np.uint32), ITEMS)
    made = characterized("count", np.zeros(100 + unused, np.uint32), data, threads=threads)
    bins = np.bincount(data)
    found = distinct(made)["atomics"]
    lines = len(np.unique(np.flatnonzero(bins) // 32))
    assert found == {"written": 4 * np.count_nonzero(bins), "lines": lines, "most": 2 * bins.max()}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("step", [0, 1, 2, 3, 4, 5, 9, 70, 300])
def test_windows_that_overlap_count_their_bytes_once(step: int, checked: bool, threads: int) -> None:
    x, y = np.ones(ITEMS * max(step, 1) + 8, np.float32), np.zeros(ITEMS, np.float32)
    made = characterized("windows", x, y, np.int32(step), threads=threads, check_bounds=checked)
    expected = union(4 * step * np.arange(ITEMS), 16)
    assert distinct(made) == {"global": {"read": expected, "written": 4 * ITEMS}}


@pytest.mark.parametrize("extent", [64, 900, 5000, 1 << 15])
def test_accesses_anywhere_count_their_bytes_once(extent: int) -> None:
    random = np.random.default_rng(extent)
    where = random.integers(0, extent, ITEMS).astype(np.int32)
    x, y = np.ones(extent + 4, np.float32), np.zeros(extent + 4, np.float32)
    made = characterized("scattered", x, y, where, threads=1)
    read = union(4 * where, 16) + 4 * ITEMS
    written = union(4 * where[np.arange(ITEMS) % 3 > 0], 8)
    assert distinct(made) == {"global": {"read": read, "written": written}}


def test_local_memory_is_apart() -> None:
    data, bins = np.zeros(ITEMS * 64, np.uint8), np.zeros(64, np.uint32)
    made = characterized("histogram", data, bins, Local(256))
    assert distinct(made) == {
        "global": {"read": ITEMS * 64 + 256, "written": 256},
        "local": {"read": 256, "written": 256},
        "atomics": {"written": 256, "lines": 2, "most": 64},
    }
    # What is read and written is moved twice.
    (verdict,) = verdicts_of([made], [device_named("gtx1080")]).verdicts
    assert verdict.amounts.unique_bytes == ITEMS * 64 + 512 <= verdict.amounts.accessed_bytes
