"""Where a kernel spells out that it reads an id does not change what it costs."""

from typing import Any

import numpy as np
import pytest

import crosscast
from crosscast import Kernel
from crosscast.characterization import run
from crosscast.kernel import Launch
from crosscast.profile import Profile

CUDA = """
__global__ void k(float *a, const float *b, int n) {
  float s = 0;
  BEFORE
  for (int i = 0; i < n; i++) s += b[i * 32 + TX] * BX;
  a[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
"""
OPENCL = """
kernel void k(global float *a, global const float *b, int n) {
  float s = 0;
  BEFORE
  for (int i = 0; i < n; i++) s += b[i * 32 + TX] * BX;
  a[get_global_id(0)] = s;
}
"""
SPELLINGS: dict[str, tuple[str, str, tuple[str, str, str], Any]] = {
    "cuda": ("threadIdx.x", "blockIdx.x", ("int", "tx", "bx"), "cuda"),
    "hip": ("threadIdx.x", "blockIdx.x", ("int", "tx", "bx"), "hip"),
    "opencl": ("get_local_id(0)", "get_group_id(0)", ("size_t", "tx", "bx"), "opencl-c"),
}


def characterized(language: str, *, before: bool) -> tuple[Profile, np.ndarray[Any, Any]]:
    thread, block, (type_, tx, bx), form = SPELLINGS[language]
    text = OPENCL if language == "opencl" else CUDA
    first = f"{type_} {tx} = {thread}, {bx} = {block};" if before else ""
    text = text.replace("BEFORE", first)
    text = text.replace("TX", tx if before else thread).replace("BX", bx if before else block)
    out, data = np.zeros(64, np.float32), np.arange(1024, dtype=np.float32)
    kernel = Kernel.from_source(text, "k", form=form)
    found = crosscast.characterize(kernel, global_size=64, local_size=16, args=[out, data, np.int32(20)])
    return found, out


@pytest.mark.parametrize("language", SPELLINGS)
def test_an_id_in_a_loop_costs_what_it_costs_before_it(language: str) -> None:
    inside, outcome = characterized(language, before=False)
    outside, expected = characterized(language, before=True)
    np.testing.assert_array_equal(outcome, expected)
    # At -O3 code may differ by an instruction of a work-item; an id in the loop would be 20 of them.
    counts = (found.metrics["total_instruction_count"] for found in (inside, outside))
    assert abs(int(next(counts) or 0) - int(next(counts) or 0)) <= (0 if language == "opencl" else 64)


def test_the_published_conventions_count_the_program_as_it_is() -> None:
    source = OPENCL.replace("BEFORE", "").replace("TX", "get_local_id(0)").replace("BX", "get_group_id(0)")
    args = (np.zeros(64, np.float32), np.zeros(1024, np.float32), np.int32(20))
    launch = Launch(Kernel.from_source(source, "k"), (64,), (16,), args)
    own = run.characterize_launch(launch, options=run.Options())
    published = run.characterize_launch(launch, options=run.Options(published=True))
    (least, most), name = (found.metrics for found in (own, published)), "total_instruction_count"
    # Two ids, an address and a conversion in each of 20 iterations, of which one is left.
    assert int(most[name] or 0) - int(least[name] or 0) == 64 * 4 * 19


def test_ids_of_a_dimension_that_a_loop_chooses_stay_in_it() -> None:
    source = """kernel void k(global int *a) {
      int s = 0;
      for (int d = 0; d < 3; d++) s += get_local_id(d) * (d + 1);
      a[get_global_linear_id()] = s;
    }"""
    out = np.zeros(64, np.int32)
    kernel = Kernel.from_source(source, "k", standard="2.0")
    crosscast.characterize(kernel, global_size=(4, 4, 4), local_size=(4, 4, 4), args=[out])
    z, y, x = np.indices((4, 4, 4))
    np.testing.assert_array_equal(out, (x + 2 * y + 3 * z).ravel())
