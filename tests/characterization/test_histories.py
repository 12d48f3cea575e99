"""Branch histories, footprints and barriers against the trace of the same program in Python.

Work-groups that wait for each other run one after another, and all of them.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import characterize, run
from crosscast.characterization.instrumentation import branch_code as histories
from crosscast.characterization.instrumentation import graph, plan
from crosscast.characterization.run import Options, characterize_launch
from crosscast.errors import KernelTimeout, LaunchError
from crosscast.kernel import Kernel, Launch
from crosscast.profile import Profile
from support import random_kernels
from support.examples import one_in
from support.launching import launch, zeros
from support.random_kernels import RandomKernel
from support.reference import branch_metrics, memory_metrics, published_entropies, same_metrics


def _profile(random_kernel: RandomKernel, level: str, threads: int = 1, one_line: bool = False) -> Profile:
    source = random_kernel.source
    text = " ".join(source.split()) if one_line else source
    kernel = Kernel.from_source(text, "k", standard=random_kernel.standard, options=[level])
    args = random_kernel.inputs()
    given = Launch(kernel, random_kernel.global_size, random_kernel.local_size, args)
    options = run.Options(threads=threads, published=one_line)
    profile = run.characterize_launch(given, options=options)
    np.testing.assert_array_equal(args[1], random_kernel.run()[1])
    return profile


@pytest.mark.parametrize("seed", one_in(2, range(16)))
def test_random_kernels_have_the_metrics_of_their_trace(seed: int) -> None:
    random_kernel = random_kernels.make(seed)
    trace, _, barriers = random_kernel.run()
    expected: dict[str, float | None] = {
        **memory_metrics(trace.reads, trace.writes),
        **branch_metrics(trace.outcomes),
        "total_barriers_hit": barriers,
    }
    found = _profile(random_kernel, "-O0", threads=1 + seed % 3).metrics
    assert same_metrics(found, expected) == {}


@pytest.mark.parametrize("seed", one_in(3, range(100, 106)))
def test_branches_on_one_line_share_a_history_in_the_published_tool(seed: int) -> None:
    random_kernel = random_kernels.make(seed)
    trace, _, _ = random_kernel.run()
    rows = {name: value for name, _, value in _profile(random_kernel, "-O0", one_line=True).published}
    assert rows["Total Unique Branch Instructions"] == (1 if trace.together else 0)
    assert (rows["Yokota Branch Entropy"], rows["Average Linear Branch Entropy"]) == pytest.approx(
        published_entropies([trace.together.values()]), rel=1e-11, abs=1e-12
    )


def _record_each(patch: pytest.MonkeyPatch) -> None:
    planned = histories.plan_branches

    def each(*args: Any, **more: Any) -> list[dict[str, histories.BranchPlan]]:
        plain = histories.BranchPlan("each")
        plans = planned(*args, **more)
        return [{b: p if p.way == "lead" else plain for b, p in plan.items()} for plan in plans]

    patch.setattr(plan, "plan_branches", each)


def _nothing_uniform(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(graph, "find_uniform", lambda blocks, *_: graph.Uniformity(set(), set(blocks)))


@pytest.mark.parametrize(
    ("slow", "seed"),
    one_in(7, product((_record_each, _nothing_uniform), range(200, 207))),
)
def test_shortcuts_change_no_metric(
    slow: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_kernel = random_kernels.make(seed)
    level = "-O3" if seed > 204 else "-Oz"
    quick = _profile(random_kernel, level).metrics
    slow(monkeypatch)
    run._build.cache_clear()
    assert _profile(random_kernel, level).metrics == quick
    run._build.cache_clear()


# -- branches of every kind, written out


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("int s = 0; for (int j = 0; j < n; j++) s += j; o[i] = s;", [([True] * 1000 + [False]) * 15] * 10),
        ("if (i % 2) o[i] = 1;", [[False, True] * 7 + [False], [True, False] * 7 + [True]] * 5),
        ("switch (i % 3) { case 0: o[i] = 4; break; case 1: o[i] = 9; break; default: o[i] = -i; }", None),
    ],
    ids=["a long loop saturates its history", "groups with fewer outcomes than a window", "a switch"],
)
def test_branches_written_out(body: str, expected: list[list[bool]] | None) -> None:
    source = f"kernel void k(global int *o, int n) {{ int i = get_global_id(0); {body} }}"
    found = launch(source, 150, 15, zeros(150), np.int32(1000), options=["-O0"]).metrics
    outcomes = {} if expected is None else {"branch": dict(enumerate(expected))}
    assert same_metrics(found, branch_metrics(outcomes)) == {}


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
