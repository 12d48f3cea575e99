"""Branch histories, footprints and barriers against the trace of the same program in Python."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from crosscast.characterization import run
from crosscast.characterization.instrumentation import branch_code as histories
from crosscast.characterization.instrumentation import graph, plan
from crosscast.kernel import Kernel, Launch
from crosscast.profile import Profile
from support import random_kernels
from support.examples import one_in
from support.launching import ints, launch, zeros
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
    ("slow", "seed", "level"),
    one_in(
        7,
        [
            (slow, seed, "-O3" if seed > 205 else "-Oz")
            for slow in (_record_each, _nothing_uniform)
            for seed in (200, 201, 202, 203, 204, 206, 210)
        ],
    ),
)
def test_shortcuts_change_no_metric(
    slow: Callable[[pytest.MonkeyPatch], None], seed: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random_kernel = random_kernels.make(seed)
    quick = _profile(random_kernel, level).metrics
    slow(monkeypatch)
    run._build.cache_clear()
    assert _profile(random_kernel, level).metrics == quick
    run._build.cache_clear()


# -- branches of every kind, written out


def _check(source: str, outcomes: dict[Any, list[list[bool]]], groups: Sequence[int], *args: Any) -> None:
    found = launch(source, groups[0] * groups[1], groups[1], *args, options=["-O0"]).metrics
    by_group = {branch: dict(enumerate(histories_)) for branch, histories_ in outcomes.items()}
    assert same_metrics(found, branch_metrics(by_group)) == {}


def test_a_long_loop_saturates_its_history() -> None:
    _check(
        "kernel void k(global int *o, int n) {\n  int s = 0;\n"
        "  for (int i = 0; i < n; i++) s += i;\n  o[get_global_id(0)] = s;\n}",
        {"for": [([True] * 1000 + [False]) * 5] * 2},
        (2, 5),
        zeros(10),
        np.int32(1000),
    )


def test_groups_with_fewer_outcomes_than_a_window_add_nothing() -> None:
    source = (
        "kernel void k(global const int *a, global int *o) { int i = get_global_id(0); if (a[i]) o[i] = 1; }"
    )
    metrics = launch(source, 150, 15, ints(150) % 2, zeros(150), options=["-O0"]).metrics
    assert metrics["unique_branches"] == 1
    assert metrics["yokota_branch_entropy"] == 0
    assert metrics["average_linear_branch_entropy"] == 0


def test_a_switch_is_no_conditional_branch() -> None:
    source = """kernel void k(global int *o) {
      int i = get_global_id(0);
      switch (i % 3) { case 0: o[i] = 4; break; case 1: o[i] = 9; break; default: o[i] = -i; }
    }"""
    assert launch(source, 30, 10, zeros(30), options=["-O0"]).metrics["unique_branches"] == 0
