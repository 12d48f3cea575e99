"""Branch histories, footprints and barriers against the trace of the same program in Python.

Work-groups that wait for each other run one after another, and all of them.
"""

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.characterization.run import Options, characterize_launch
from crosscast.errors import KernelTimeout, LaunchError
from crosscast.kernel import Kernel, Launch
from support import random_kernels
from support.examples import one_in
from support.reference import branch_metrics, memory_metrics, published_entropies, same_metrics


@pytest.mark.parametrize("seed", one_in(8, range(16)))
def test_random_kernels_have_the_metrics_of_their_trace(seed: int) -> None:
    made = random_kernels.make(seed)
    trace, output, barriers = made.run()
    expected: dict[str, float | None] = {
        **memory_metrics(trace.reads, trace.writes),
        **branch_metrics(trace.outcomes),
        "total_barriers_hit": barriers,
    }
    for text in (made.source, " ".join(made.source.split())):
        kernel, args = Kernel.from_source(text, "k", standard=made.standard, options=["-O0"]), made.inputs()
        options = Options(threads=1 + seed % 3, published=text != made.source)
        profile = characterize_launch(
            Launch(kernel, made.global_size, made.local_size, args), options=options
        )
        np.testing.assert_array_equal(args[1], output)
        assert same_metrics(profile.metrics, expected) == {}
    # Branches on one line share a history in the published tool.
    rows = {name: value for name, _, value in profile.published}
    assert rows["Total Unique Branch Instructions"] == (1 if trace.together else 0)
    assert (rows["Yokota Branch Entropy"], rows["Average Linear Branch Entropy"]) == pytest.approx(
        published_entropies([trace.together.values()]), rel=1e-11, abs=1e-12
    )


BLOCKS, THREADS = 24, 32

WAITING = {
    "one thread polls": "if (t == 0 && b) while (flag[b - 1] == 0) { } __syncthreads();",
    "the block polls together": "__shared__ int ready; do { if (t == 0) ready = b ? flag[b - 1] : 1;"
    " __syncthreads(); } while (!ready);",
    "it sleeps between": "if (t == 0 && b) while (flag[b - 1] == 0) __nanosleep(20); __syncthreads();",
    "it looks back": "int at = b - 1; if (t == 0) while (at >= 0) { if (flag[at]) at--; } __syncthreads();",
    "a fence between": "if (t == 0 && b) while (plain[b - 1] == 0) __threadfence(); __syncthreads();",
    "an atomic polls": "if (t == 0 && b) while (atomicAdd(plain + b - 1, 0) == 0); __syncthreads();",
    "a word decides": "int done = !b; while (!done) { if (flag[b - 1] > 0) done = 1; } __syncthreads();",
}
NOT_WAITING = {
    "volatile rows": "for (int k = 0; k < 8; k++) in[i] += flag[k + 100];",
    "a condition in a loop": "for (int k = 0; k < 8; k++) if (flag[k + 100] > 3) in[i] += k;",
    "a queue of work": "while (atomicAdd(plain + 100, 1) < 40) in[i] += 1;",
    "until it succeeds": "int a, *p = plain + 100; do a = *p; while (atomicCAS(p, a, a + 1) != a);",
    "no loop": "if (flag[b + 100] == 0) in[i] += 1;",
    "shared memory": "volatile __shared__ int s[32]; s[t] = t; while (s[t] > 40) { }",
}


def launch_of(body: str, blocks: int = BLOCKS) -> Launch:
    source = (
        "__global__ void chain(float *in, volatile int *flag) {"
        " int t = threadIdx.x, b = blockIdx.x, i = b * blockDim.x + t; int *plain = (int *)flag;"
        f"\n{body}\n in[i] *= 2; __threadfence(); __syncthreads(); if (t == 0) flag[b] = 1; }}"
    )
    arguments = np.ones(blocks * THREADS, np.float32), np.zeros(blocks + 128, np.int32)
    return Launch.on_grid(Kernel.from_source(source, "chain", form="cuda"), blocks, THREADS, arguments)


@pytest.mark.parametrize("body", WAITING.values(), ids=WAITING)
def test_groups_that_wait_run_in_order_with_the_same_counts_on_any_threads(body: str) -> None:
    profiles = [characterize(launch_of(body), threads=threads, timeout_s=30) for threads in (1, 2)]
    assert profiles[0].metrics == profiles[1].metrics
    assert profiles[0].launch == profiles[1].launch
    assert profiles[1].launch["threads"] == 1
    assert profiles[1].launch["groups_wait"] == "line 2"


@pytest.mark.parametrize("body", NOT_WAITING.values(), ids=NOT_WAITING)
def test_a_loop_whose_exit_depends_on_nothing_of_others_does_not_wait(body: str) -> None:
    launch = characterize(launch_of(body), threads=2).launch
    assert "groups_wait" not in launch
    # What an atomic returns depends on the order of groups.
    assert launch["threads"] == (1 if "atomic" in body else 2)


def test_groups_that_wait_are_not_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = launch_of(WAITING["one thread polls"])
    sentence = r"chain: work-groups wait for each other \(line 2\), so that none can be left out"
    with pytest.raises(LaunchError, match=rf"{sentence}: expected no --sample-groups"):
        characterize(launch, sample_groups=6)
    with pytest.raises(LaunchError, match=r"over the memory limit of 1000 bytes; work-groups wait"):
        characterize_launch(launch, options=Options(memory_limit=1000, sample_groups="auto"))
    monkeypatch.setattr("crosscast.characterization.run._MOST_MEMORY", 1000)
    assert "sampled" not in characterize(launch, sample_groups="auto").launch


def test_a_group_that_waits_for_a_later_one_ends_at_the_time_limit_with_the_reason() -> None:
    launch = launch_of("if (t == 0) while (flag[(b + 1) % gridDim.x] == 0) { } __syncthreads();", 2)
    with pytest.raises(KernelTimeout, match=r"work-groups wait .*: one must not wait for a later one"):
        characterize(launch, timeout_s=0.5)
