"""What a launch asks of compute units, in cases that are small enough to count by hand."""

from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast import Kernel, Local


def geometry(source: str, global_size: Any, local_size: Any, *args: Any, **more: Any) -> dict[str, Any]:
    kernel = Kernel.from_source(source, "k", **more)
    found = crosscast.characterize(kernel, global_size=global_size, local_size=local_size, args=list(args))
    counted: dict[str, Any] = found.launch["geometry"]
    return counted


PLAIN = "kernel void k(global float *a) { a[get_global_linear_id()] += 1; }"


@pytest.mark.parametrize(
    ("global_size", "local_size", "groups", "of_32", "of_64"),
    [
        ((1024,), (256,), 4, 32, 16),
        ((30, 5), (3, 5), 10, 10, 10),
        ((48,), (48,), 1, 2, 1),
        ((100,), (64,), 2, 2 + 2, 1 + 1),
        ((20, 10), (16, 8), 4, 4 + 1 + 1 + 1, 2 + 1 + 1 + 1),
        ((8, 8, 8), (8, 8, 2), 4, 16, 8),
    ],
)
def test_sub_groups_are_of_whole_work_groups(
    global_size: tuple[int, ...], local_size: tuple[int, ...], groups: int, of_32: int, of_64: int
) -> None:
    found = geometry(PLAIN, global_size, local_size, np.zeros(1024, np.float32), standard="2.0")
    assert found["groups"] == groups
    assert found["group_items"] == np.prod(local_size)
    assert (found["sub_groups_32"], found["sub_groups_64"]) == (of_32, of_64)


def test_local_memory_is_as_declared() -> None:
    source = """kernel void k(global float *a, local float *l, local int *m) {
      local float s[3]; local double t[5];
      int i = get_local_id(0);
      s[i % 3] = a[i]; t[i % 5] = i; l[i] = 1; m[i] = 2;
      barrier(CLK_LOCAL_MEM_FENCE);
      a[i] = s[0] + t[0] + l[0] + m[0];
    }"""
    found = geometry(source, 8, 8, np.zeros(8, np.float32), Local(100), Local(32))
    assert found["local_bytes"] == {"static": 12 + 40, "arguments": 132}
    none = geometry(PLAIN, 8, 8, np.zeros(8, np.float32), standard="2.0")
    assert none["local_bytes"] == {"static": 0, "arguments": 0}
    source = """extern __shared__ float t[];
      __global__ void k(float *a) { __shared__ float s[4];
        s[threadIdx.x % 4] = a[threadIdx.x]; t[threadIdx.x] = 1; __syncthreads();
        a[threadIdx.x] = t[0] + s[1]; }"""
    kernel = Kernel.from_source(source, "k", form="cuda")
    launch = crosscast.Launch.on_grid(kernel, 1, 8, (np.zeros(8, np.float32),), shared=64)
    shared = crosscast.characterize(launch).launch["geometry"]["local_bytes"]
    assert shared == {"static": 16, "arguments": 64}


@pytest.mark.parametrize(
    ("body", "registers"),
    [
        # An id and an address are 64 bits; a value is there at the same time as the address.
        ("a[get_global_id(0)] = 1;", 2),
        ("a[get_global_id(0)] += 1;", 2 + 1),
        ("float4 x = vload4(0, a); vstore4(x, 1, a);", 4),
        # Four values live across the barrier, and behind it the address to which the first one goes.
        ("float p = a[0], q = a[1], r = a[2], s = a[3]; barrier(1); a[8] = p; a[9] = q * r; a[10] = s;", 6),
    ],
)
def test_registers_are_the_most_values_that_live_at_once(body: str, registers: int) -> None:
    source = f"kernel void k(global float *a) {{ {body} }}"
    found = geometry(source, 1, 1, np.zeros(16, np.float32), options=["-O3"])
    assert found["registers"] == registers
    assert found["private_bytes"] == 0


def test_private_arrays_are_counted_apart() -> None:
    body = "int t[10]; for (int i = 0; i < 10; i++) t[(i * a[i]) % 10] = i; a[0] = t[a[3]];"
    source = f"kernel void k(global int *a) {{ {body} }}"
    assert geometry(source, 1, 1, np.ones(16, np.int32))["private_bytes"] == 40


SUMS = """kernel void k(global float *a) {
  local float s[9 * 32]; int i = get_local_id(0);
  for (int j = i; j < 9 * 32; j += 8) s[j] = a[j];
  barrier(CLK_LOCAL_MEM_FENCE);
  float p = 0, q = 0;
  #pragma unroll
  for (int y = 0; y < 7; y++)
    #pragma unroll
    for (int x = 0; x < 7; x++) {
      p += s[32 * y + x + i] * a[7 * y + x];
      BETWEEN;
      q += s[32 * (y + 2) + x + i];
    }
  a[i] = p; a[i + 8] = q;
}"""


def loads_of(source: str) -> tuple[int, int]:
    """Loads of local memory of a work-item, and those of them that repeat another."""
    kernel = Kernel.from_source(source, "k", options=["-O2"])
    found = crosscast.characterize(kernel, global_size=8, local_size=8, args=[np.ones(1024, np.float32)])
    classes = found.launch["instructions"]
    once, again = (sum(classes.get(name, {}).get("local", {}).values()) // 8 for name in ("loads", "reloads"))
    return once + again, again


def test_loads_of_local_memory_again_are_known() -> None:
    assert loads_of(SUMS.replace("BETWEEN", "")) == (98, 5 * 7)  # All rows but two are of both sums


@pytest.mark.parametrize("between", ["s[(int)a[x + 900]] = p", "barrier(CLK_LOCAL_MEM_FENCE)"])
def test_what_may_have_changed_is_not_loaded_again(between: str) -> None:
    assert loads_of(SUMS.replace("BETWEEN", between))[1] == 0


READS = [
    # Parts of a load of sixteen bytes
    ("for (int k = 0; k < n; k++) p += s[16 * i + k];", 4, 100),
    ("for (int k = 4; k < n; k++) p += s[(i & 12) + k];", 4, 96),
    ("for (int k = 0; k < n; k++) p += ((double *)s)[2 * i + k];", 8, 100),
    ("p = s[4 * i] + s[4 * i + 3] * s[4 * i + 1] - s[4 * i + 2];", 4, 4),
    # No such parts
    *((f"for (int k = {first}; k < n; k++) {what}", 4, 0) for first, what in (
        (0, "p += s[16 * k + i];"), (0, "p += s[17 * i + k];"), (1, "p += s[16 * i + k];"),
        (0, "p += s[a[k] < 2 ? k : i];"), (0, "{ p += s[16 * i + k]; s[300] = p; }"),
        (0, "p += ((volatile float *)s)[16 * i + k];"),
    )),
    ("p = s[4 * i] + s[4 * i + 1] + s[4 * i + 2];", 4, 0),
    ("p = s[4 * i] + s[4 * i + 3]; s[1] = p; p += s[4 * i + 1] + s[4 * i + 2];", 4, 0),
]  # fmt: skip
"""What is read of local memory, of elements of so many bytes, and how many loads are parts of another."""
READERS = "".join(
    f"""__global__ void k{number}(float *a, int n) {{
      __shared__ float s[2048]; int i = threadIdx.x; float p = 0;
      for (int j = i; j < 2048; j += 8) s[j] = a[j % 1024];
      __syncthreads();
      {body}
      a[i] = p;
    }}
    """
    for number, (body, *_) in enumerate(READS)
)


@pytest.mark.parametrize("row", READS, ids=lambda row: row[0])
def test_loads_of_local_memory_that_are_parts_of_sixteen_bytes_are_known(row: tuple[str, int, int]) -> None:
    _, nbytes, parts = row
    options = ["-O1", "-fno-unroll-loops"]
    kernel = Kernel.from_source(READERS, f"k{READS.index(row)}", form="cuda", options=options)
    args = (np.ones(1024, np.float32), np.int32(100))
    classes = crosscast.characterize(kernel, 8, 8, args).launch["instructions"]
    assert classes.get("consecutive", {}).get("local", {}) == ({str(nbytes): 8 * parts} if parts else {})


def test_what_a_compiler_keeps_is_loaded_once_and_lives_until_it_is_used_again() -> None:
    kept = geometry(SUMS.replace("BETWEEN", ""), 8, 8, np.ones(1024, np.float32), options=["-O2"])
    # Two rows of seven are loaded before the first is used again, beside two sums and what is added.
    assert 14 <= kept["kept_values"] <= 20
    assert kept["code"] > 200
