"""Jobs that share processors: small cases that can be drawn, tables, the command, and what is refused."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster.jobs import Jobs, Machine, PlacedJobs, Policy
from crosscast.cluster.metrics import metrics_of, processor_seconds, rectangles
from crosscast.cluster.power import kinds_of_jobs, power_metrics
from crosscast.cluster.rules import Rules
from crosscast.cluster.sharing import Sharing, Slowdowns, read_slowdowns, sharing_for, sharing_metrics
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import SharingPolicy, Site, constant_budget, most_draw
from support.cluster import jobs_of, trace_of_kinds
from support.commands import Command, Output
from support.examples import examples
from support.refusals import refusal

SIMULATE = Command.of("simulate policies")
ONE = [Machine("gpu", 1)]


def exact(*jobs: tuple[float, float]) -> Jobs:
    """Jobs of (submission, time) on one processor."""
    return jobs_of(*[(submit_s, 1, run_s) for submit_s, run_s in jobs])


@pytest.mark.parametrize("policy", ["never", "always", "threshold", "gain", "oracle"])
def test_policies_go_by_what_they_know_and_who_does_not_fit_does_not_share(policy: SharingPolicy) -> None:
    true, predicted = np.array([[1.0, 4.0], [4.0, 1.0]]), np.array([[1.0, 1.5], [1.5, 1.0]])
    jobs = exact((0, 4), (0, 4))
    together = policy in ("always", "threshold", "gain")
    for slowdowns, ends in ((true, [16, 16] if together else [4, 8]), (np.full((2, 2), np.inf), [4, 8])):
        known = Slowdowns(("a", "b"), slowdowns, predicted)
        found = sharing_for(policy, known, np.array([0, 1]), 2.0, 0.0, 2)
        schedule = simulate(jobs, ONE, sharing=found)
        assert schedule.end_s.tolist() == ends
        assert sharing_metrics(schedule, 2.0).broken_promises == (1.0 if ends == [16, 16] else 0.0)


def test_processors_that_are_shared_are_used_once() -> None:
    two, beside = [Machine("gpu", 2)], np.full((1, 1), 1.5)
    jobs = exact((0, 10), (0, 10), (20, 5))
    schedule = simulate(jobs, two, sharing=Sharing(np.zeros(3, np.int64), beside, beside))
    alone = simulate(jobs, two)
    assert alone.seat is None
    assert metrics_of(schedule).utilisation == metrics_of(alone).utilisation == 0.5
    jobs = exact((0, 10), (0, 10), (0, 10), (1, 6))
    schedule = simulate(jobs, two, sharing=Sharing(np.zeros(4, np.int64), beside, beside))
    assert schedule.seat is not None
    assert schedule.seat.tolist() == [0, 1, 0, 1]
    ends = [schedule.end_s[[0, 2]].max(), schedule.end_s[[1, 3]].max()]
    assert processor_seconds(schedule).sum() == sum(ends) < schedule.ran_s.sum()
    drawn = rectangles(schedule, 0)
    assert (drawn.job.tolist(), drawn.first.tolist()) == ([0, 1, 2, 3], [0, 1, 0, 1])


HEAD = "kind,beside,slowdown,predicted_slowdown\n"


def test_a_table_has_all_pairs(tmp_path: Path) -> None:
    path = tmp_path / "slowdowns.csv"
    path.write_text(HEAD + "a,a,1.5,1.6\na,b,2,2\nb,a,3,3\nb,b,,1\n")
    found = read_slowdowns(path)
    assert found.kinds == ("a", "b")
    assert found.true.tolist() == [[1.5, 2], [3, np.inf]]
    assert found.predicted is not None
    assert found.predicted.tolist() == [[1.6, 2], [3, 1]]
    assert kinds_of_jobs(found.kinds, ["b", "a"], 2, 0)[0].tolist() == [1, 0]


def test_what_cannot_be_shared_is_refused() -> None:
    kind, one = np.zeros(1, np.int64), np.ones((1, 1))
    for most in (1, 9):
        assert f"sharing: most: expected 2 to 8 jobs, found {most}" in refusal(Sharing, kind, one, one, most)
    said = refusal(sharing_for, "gain", Slowdowns(("a",), one), kind, 2.0, 0.0, 2)
    assert "gain: expected a table with predicted slowdowns, found none" in said
    said = refusal(simulate, exact((0, 1), (0, 1)), ONE, sharing=Sharing(kind, one, one))
    assert "sharing: kind: expected 2 kinds" in said


@pytest.mark.parametrize(
    ("cap_w", "together"), [(100.0, False), (153.0, False), (154.0, True), (np.inf, True)]
)
def test_jobs_that_share_keep_to_the_cap_of_their_processors_together(cap_w: float, together: bool) -> None:
    # Each adds 90 W to 10 W of an idle processor: beside each other, at a speed of 0.8, they draw 154 W.
    machine = Machine("gpu", 1, idle_w=10.0, cap_w=cap_w)
    one = np.full((1, 1), 1.25)
    sharing = Sharing(np.zeros(2, np.int64), one, one)
    budget = constant_budget(1e6)
    jobs = replace(exact((0, 4), (0, 4)), power_w=np.full(2, 100.0))
    schedule = simulate(jobs, [machine], site=Site(budget=budget), sharing=sharing)
    assert schedule.end_s.tolist() == ([5, 5] if together else [4, 8])
    found = power_metrics(schedule, budget)
    assert found.peak_w == (154.0 if together else 100.0)
    assert found.energy_kwh * 3.6e6 == pytest.approx(10 * schedule.end_s.max() + 2 * 90 * 4)


def test_jobs_that_share_draw_no_more_than_an_active_processor() -> None:
    machine, one = Machine("gpu", 1, idle_w=10.0, active_w=100.0, cap_w=100.0), np.full((1, 1), 1.25)
    sharing, budget = Sharing(np.zeros(2, np.int64), one, one), constant_budget(100)
    schedule = simulate(exact((0, 4), (0, 4)), [machine], site=Site(budget=budget), sharing=sharing)
    assert schedule.end_s.tolist() == [5, 5]
    found = power_metrics(schedule, budget)
    assert (found.peak_w, found.mean_w, found.within_budget) == (100, 100, 1)


@pytest.mark.parametrize(("heaviest", "most"), [(170_000, 180_000), (200_000, 200_000)])
def test_processors_draw_their_active_power_or_that_of_their_heaviest_job(heaviest: int, most: int) -> None:
    machine = Machine("gpu", 2, idle_w=10.0, active_w=100.0)
    jobs = replace(exact((0, 4), (0, 4)), procs=np.array([2, 2]))
    found = most_draw(PlacedJobs(jobs, [machine], np.zeros(2, np.int64)), np.array([90_000, heaviest]))
    assert found.tolist() == [most, most]


@examples(60)
@given(st.integers(0, 2**31), st.booleans())
def test_jobs_that_share_take_the_energy_of_their_work_within_the_budget(seed: int, active: bool) -> None:
    rng = np.random.default_rng(seed)
    kinds, count = int(rng.integers(1, 4)), int(rng.integers(2, 12))
    extra_w = rng.integers(1, 60, count).astype(float)
    jobs = exact(*zip(np.sort(rng.integers(0, 9, count)), rng.integers(1, 20, count), strict=True))
    jobs = replace(jobs, power_w=None if active else 10.0 + extra_w)
    machine = Machine("gpu", 3, idle_w=10.0, active_w=80.0 if active else None)
    budget = constant_budget(30.0 + float(rng.integers(70, 200)))
    true = rng.choice([1.0, 1.5, 2.0, 8.0], (kinds, kinds))
    given: dict[str, Any] = {
        "sharing": Sharing(rng.integers(0, kinds, count), true, true, int(rng.integers(2, 4)), limit=1e9),
        "policy": Policy(conservative=bool(rng.integers(2))),
        "rules": Rules(release_s=jobs.submit_s + rng.integers(0, 9, count)),
    }
    schedule = simulate(jobs, [machine], site=Site(budget=budget), **given)
    found = power_metrics(schedule, budget)
    assert found.within_budget == 1
    joules = found.energy_kwh * 3.6e6 - 30 * float(schedule.end_s.max() - jobs.submit_s[0])
    if active:
        assert found.peak_w <= 30 + 3 * 70
        assert joules <= 70 * jobs.run_s.sum() + 1e-6
    else:
        assert joules == pytest.approx((extra_w * jobs.run_s[:, 0]).sum(), rel=1e-4)


def test_the_command_compares_sharing_with_and_without_power(capsys: Output, tmp_path: Path) -> None:
    trace, site = trace_of_kinds(tmp_path, 20, 2, asked_s=900), tmp_path / "site.toml"
    (tmp_path / "pairs.csv").write_text(HEAD + "1,1,1.9,1.9\n1,2,1.1,1.2\n2,1,1.1,1.2\n2,2,1.9,1.9\n")
    (tmp_path / "options.csv").write_text("kind,power_w,slowdown\n1,100,1\n2,90,1\n")
    machine = "[[machine]]\nname = 'm'\nprocs = 4\nidle_w = 10\n"
    shares = "[sharing]\nslowdowns = 'pairs.csv'\nlimit = 1.5\n"
    site.write_text(machine + shares + "policies = ['never', 'gain']\n")
    words = (trace, "--machines", site)
    results = SIMULATE.answer(capsys, *words, "--policy", "easy,conservative")["results"]
    expected = [*product(["easy", "conservative"], ["never", "gain"])]
    assert [(each["policy"], each["sharing"]) for each in results] == expected
    assert results[1]["makespan_s"] < 0.7 * results[0]["makespan_s"]
    for each in results:
        assert (each["broken_promises"], each["over_request"]) == (0, 0)
        assert each["utilisation"] <= 1
    site.write_text(machine + shares + "most = 9\n")
    assert "sharing: most: expected at most 8 jobs, found 9" in SIMULATE.refusal(capsys, *words)
    power = "[power]\nbudget_w = 450\noptions = 'options.csv'\n"
    site.write_text(machine + power + shares + "policies = ['oracle']\n")
    shown = SIMULATE.text(capsys, *words, "--figures", tmp_path / "figures")
    assert "easy, power full, sharing oracle" in shown
    assert (tmp_path / "figures" / "timeline.png").exists()
