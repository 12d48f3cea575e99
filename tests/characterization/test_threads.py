"""Work-groups on more threads than the machine has."""

import numpy as np

import crosscast
from crosscast.characterization import run
from crosscast.kernel import Kernel, Launch

SOURCE = """
kernel void k(global uint *a, uint n) {
  uint i = get_global_id(0), s = 0;
  for (uint j = 0; j < n; j++) s = s * 7 + (j ^ i) % 13;
  a[i] = s;
}
"""
ITEMS, STEPS = 2048, 30_000


def test_as_many_threads_as_are_allowed_tell_how_far_they_are() -> None:
    expected, items = np.zeros(ITEMS, np.uint32), np.arange(ITEMS, dtype=np.uint32)
    for step in range(STEPS):
        expected = expected * np.uint32(7) + (np.uint32(step) ^ items) % np.uint32(13)
    out = np.zeros(ITEMS, np.uint32)
    seen: list[run.Progress] = []
    profile = run.characterize_launch(
        Launch(Kernel.from_source(SOURCE, "k"), (ITEMS,), (8,), (out, np.uint32(STEPS))),
        options=run.Options(threads=256, progress=seen.append),
    )
    assert profile.launch["threads"] == 256
    assert (out == expected).all()
    assert seen
    assert all(progress.groups_done <= progress.groups_total == ITEMS // 8 for progress in seen)


def test_what_a_group_does_in_its_local_memory_does_not_keep_groups_on_one_thread() -> None:
    source = """
    kernel void k(global int *out) {
      local int t[64];
      uint l = get_local_id(0);
      if (l < 16) vstore4((int4)(l), l, t);
      barrier(CLK_LOCAL_MEM_FENCE);
      atomic_add(&t[l & 3], 1);
      barrier(CLK_LOCAL_MEM_FENCE);
      out[get_global_id(0)] = t[l];
    }
    """
    kernel = crosscast.Kernel.from_source(source, "k")
    one, two = np.zeros(512, np.int32), np.zeros(512, np.int32)
    alone = crosscast.characterize(kernel, 512, 64, [one], threads=1)
    together = crosscast.characterize(kernel, 512, 64, [two], threads=2)
    assert together.launch["threads"] == 2
    assert together.metrics == alone.metrics
    assert np.array_equal(one, two)
