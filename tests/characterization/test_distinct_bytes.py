"""Distinct bytes of a launch are those of sets of bytes, however wide its accesses are."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosscast
from crosscast import Kernel, Local
from crosscast.devices.catalogue import device_named
from crosscast.devices.launch_work import amounts_of
from crosscast.devices.roofline import verdicts_of
from crosscast.profile import Profile

SOURCE = """
kernel void saxpy(global const float *x, global float *y) { int i = get_global_id(0); y[i] += 2 * x[i]; }

kernel void copy1(global const uchar *x, global uchar *y) { int i = get_global_id(0); y[i] = x[i]; }
kernel void copy4(global const uchar *x, global uchar *y)
{ int i = get_global_id(0); vstore4(vload4(i, x), i, y); }
kernel void copy16(global const uchar16 *x, global uchar16 *y) { int i = get_global_id(0); y[i] = x[i]; }

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
    assert found == {"written": 4 * np.count_nonzero(bins), "most": 2 * bins.max()}


@pytest.mark.parametrize("name", ["copy1", "copy4", "copy16"])
def test_they_do_not_depend_on_the_width_of_accesses(name: str) -> None:
    data, out = np.zeros(32768, np.uint8), np.zeros(32768, np.uint8)
    made = characterized(name, data, out, items=32768 // int(name.removeprefix("copy")))
    assert distinct(made) == {"global": {"read": 32768, "written": 32768}}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("step", [0, 1, 2, 3, 4, 5, 9, 70, 300])
def test_windows_that_overlap_count_their_bytes_once(step: int, checked: bool, threads: int) -> None:
    x, y = np.ones(ITEMS * max(step, 1) + 8, np.float32), np.zeros(ITEMS, np.float32)
    made = characterized("windows", x, y, np.int32(step), threads=threads, check_bounds=checked)
    expected = union(4 * step * np.arange(ITEMS), 16)
    assert distinct(made) == {"global": {"read": expected, "written": 4 * ITEMS}}


@pytest.mark.parametrize("seed", range(6))
def test_accesses_anywhere_count_their_bytes_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    extent = int(random.integers(64, 1 << 15))
    where = random.integers(0, extent, ITEMS).astype(np.int32)
    x, y = np.ones(extent + 4, np.float32), np.zeros(extent + 4, np.float32)
    made = characterized("scattered", x, y, where, threads=1)
    read = union(4 * where, 16) + 4 * ITEMS
    written = union(4 * where[np.arange(ITEMS) % 3 > 0], 8)
    assert distinct(made) == {"global": {"read": read, "written": written}}


def test_what_is_read_and_written_is_moved_twice() -> None:
    made = characterized("saxpy", np.ones(ITEMS, np.float32), np.ones(ITEMS, np.float32))
    assert distinct(made) == {"global": {"read": 8 * ITEMS, "written": 4 * ITEMS}}
    (verdict,) = verdicts_of([made], [device_named("gtx1080")]).verdicts
    assert verdict.amounts.unique_bytes == 12 * ITEMS
    assert verdict.intensity == pytest.approx(2 / 12)


def test_local_memory_is_apart() -> None:
    data, bins = np.zeros(ITEMS * 64, np.uint8), np.zeros(64, np.uint32)
    made = characterized("histogram", data, bins, Local(256))
    assert distinct(made) == {
        "global": {"read": ITEMS * 64 + 256, "written": 256},
        "local": {"read": 256, "written": 256},
        "atomics": {"written": 256, "most": 64},
    }
    amounts = amounts_of(made)
    assert amounts is not None
    assert amounts.unique_bytes == ITEMS * 64 + 512
    assert amounts.unique_bytes <= amounts.accessed_bytes
