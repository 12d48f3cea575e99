"""Reads just outside of a buffer, which devices do not mind: the run ends, and the profile says how far."""

import numpy as np
import pytest

import crosscast
from crosscast import Kernel, Profile
from crosscast.characterization.run import Options, characterize_launch
from crosscast.errors import KernelFault
from crosscast.kernel import Launch
from crosscast.profile import doubts
from support.refusals import refusals

N = 256
SOURCE = """kernel void k(global const int *a, global int *o, global const int *x, int n) {{
  int i = get_global_id(0);
  {body}
}}"""


def launch(body: str, index: int = 0) -> Launch:
    kernel = Kernel.from_source(SOURCE.format(body=body), "k")
    x = np.zeros(N, np.int32)
    x[77] = index
    return Launch(kernel, (N,), (32,), (np.ones(N, np.int32), np.zeros(N, np.int32), x, np.int32(N)))


def beyond(profile: Profile) -> dict[str, tuple[int, int]]:
    found = profile.launch.get("read_beyond", {})
    return {name: (far["before"], far["behind"]) for name, far in found.items()}


READS = {
    "the next one": ("o[i] = a[i + 1];", 0, (0, 4)),
    "the one before": ("o[i] = a[i - 1];", 0, (4, 0)),
    "both neighbours": ("o[i] = a[i - 2] + a[i] + a[i + 3];", 0, (8, 12)),
    "a loop": ("for (int k = 0; k <= n; k++) o[i] += a[k];", 0, (0, 4)),
    "an index": ("o[i] = a[x[i]];", N + 9, (0, 40)),
    "an index before": ("o[i] = a[x[i]];", -9, (36, 0)),
    "another page": ("o[i] = a[i + 1024 * 9];", 0, (0, 4 * 1024 * 9)),
    "a last row": ("o[i] = a[i + (i / 32 == n / 32 - 1 ? 32 : 0)];", 0, (0, 128)),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", READS)
def test_reads_beside_a_buffer_are_told_and_zeros_and_checks_refuse_them(name: str, threads: int) -> None:
    body, index, far = READS[name]
    asked = launch(body, index)
    with pytest.raises(KernelFault, match=r"k: out-of-bounds read of 4 bytes by work-item \d+ in line 3"):
        crosscast.characterize(launch(body, index), threads=threads, check_bounds=True)
    profile = crosscast.characterize(asked, threads=threads)
    assert beyond(profile) == {"a": far}
    (said, *_) = doubts(profile.launch)
    assert " of a, where a device may have anything: zeros were read" in said
    if name == "the next one":
        assert np.asarray(asked.args[1]).tolist() == [1] * (N - 1) + [0]


def test_counts_are_those_of_a_larger_buffer() -> None:
    read, whole = launch("o[i] = a[i + 1];"), launch("o[i] = a[i + 1];")
    whole = Launch(whole.kernel, (N,), (32,), (np.ones(N + 1, np.int32), *whole.args[1:]))
    found, larger = crosscast.characterize(read), crosscast.characterize(whole)
    for count in ("total_instruction_count", "total_reads", "global_accesses", "total_writes"):
        assert found.metrics[count] == larger.metrics[count]
    assert found.launch["sub_groups"] == larger.launch["sub_groups"]
    assert "read_beyond" not in larger.launch
    assert doubts(larger.launch) == []


def test_a_pointer_to_any_memory_is_told_too() -> None:
    source = """kernel void k(global const int *a, global int *o, int own_one) {
      private int own[2] = {1, 2};
      const int *p = a;
      if (own_one) p = own;
      o[get_global_id(0)] = p[get_global_id(0) + 2];
    }"""
    kernel = Kernel.from_source(source, "k", standard="2.0")
    profile = crosscast.characterize(kernel, 8, 8, [np.ones(8, np.int32), np.zeros(8, np.int32), np.int32(0)])
    assert set(beyond(profile)) == {"a"}


@refusals("body index")
def test_writes_and_what_is_far_are_refused(body: str, index: int) -> None:
    with pytest.raises(KernelFault, match=r"k: .*accessed memory that is not its own: .*--check-bounds"):
        crosscast.characterize(launch(body, index))


def test_some_work_groups_say_it_too() -> None:
    source = (
        "kernel void k(global const int *a, global int *o) { int i = get_global_id(0); o[i] = a[i + 5]; }"
    )
    args = (np.ones(1 << 14, np.int32), np.zeros(1 << 14, np.int32))
    asked = Launch(Kernel.from_source(source, "k"), (1 << 14,), (32,), args)
    assert beyond(characterize_launch(asked, options=Options(sample_groups=60))) == {"a": (0, 20)}
