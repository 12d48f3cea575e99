"""Work-groups that wait for each other run one after another, and all of them."""

import numpy as np
import pytest

from crosscast.characterization import characterize
from crosscast.characterization.run import Options, characterize_launch
from crosscast.errors import KernelTimeout, LaunchError
from crosscast.kernel import Kernel, Launch

BLOCKS, THREADS = 24, 32

WAITING = {
    "one thread polls": "if (t == 0 && b) while (flag[b - 1] == 0) { } __syncthreads();",
    "the block polls together": "__shared__ int ready; do { if (t == 0) ready = b ? flag[b - 1] : 1;"
    " __syncthreads(); } while (!ready);",
    "it sleeps between": "if (t == 0 && b) while (flag[b - 1] == 0) __nanosleep(20); __syncthreads();",
    "it looks back": "int at = b - 1; if (t == 0) while (at >= 0) { if (flag[at]) at--; } __syncthreads();",
    "a fence between": "if (t == 0 && b) while (plain[b - 1] == 0) __threadfence(); __syncthreads();",
    "a word decides": "int done = !b; while (!done) { if (flag[b - 1] > 0) done = 1; } __syncthreads();",
}
NOT_WAITING = {
    "volatile rows": "for (int k = 0; k < 8; k++) in[i] += flag[k + 100];",
    "a condition in a loop": "for (int k = 0; k < 8; k++) if (flag[k + 100] > 3) in[i] += k;",
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


@pytest.mark.parametrize("body", NOT_WAITING.values(), ids=NOT_WAITING)
def test_a_loop_whose_exit_depends_on_nothing_of_others_does_not_wait(body: str) -> None:
    assert characterize(launch_of(body), threads=2).launch["threads"] == 2


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
