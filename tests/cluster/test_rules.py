"""Rules beside the policy: priorities, limits, preemption, predicted times and sharing of processors."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster import Jobs, Machine, Policy, Schedule
from crosscast.cluster.metrics import metrics_of, sharing_metrics
from crosscast.cluster.resources import power_metrics, processor_seconds, rectangles
from crosscast.cluster.rules import (
    JobNames,
    Rules,
    Sharing,
    Slowdowns,
    heights,
    kinds_of_jobs,
    read_slowdowns,
    rules_of,
    sharing_for,
)
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import SharingPolicy, Site, SiteRules, Weights, constant_budget
from support.cluster import jobs_of, trace_of_kinds, written
from support.commands import Command, Output
from support.examples import examples
from support.refusals import refusal, refusals

SIMULATE = Command.of("simulate policies")
ONE = [Machine("one", 4, idle_w=0, active_w=10)]


def run(jobs: Jobs, rules: Rules, policy: Policy | None = None) -> Schedule:
    return simulate(jobs, ONE, policy=policy or Policy(), rules=rules)


def test_kinds_are_ranked_by_the_longest_chain_of_those_they_may_stop() -> None:
    chain = np.eye(4, k=1, dtype=bool)
    assert heights(chain).tolist() == [3, 2, 1, 0]
    assert heights(chain | np.eye(4, k=2, dtype=bool)).tolist() == [3, 2, 1, 0]
    assert heights(chain & (np.arange(4) < 2)).tolist() == [1, 0, 0, 0]


def test_small_jobs_may_have_the_higher_priority_of_size() -> None:
    jobs, nobody = jobs_of((0, 1, 1), (0, 3, 1)), JobNames(np.full(2, -1), ())
    for favor_small, fixed in ((False, [2.5, 7.5]), (True, [7.5, 2.5])):
        site = SiteRules(Weights(size=10, favor_small=favor_small))
        priority = rules_of(site, jobs, ONE, nobody, nobody, nobody).priority
        assert priority is not None and priority.fixed.tolist() == fixed


STOPS = np.array([[False, False], [True, False]])


@pytest.mark.parametrize("policy", [Policy(), Policy(backfill=None), Policy("fcfs", None, True)])
def test_a_job_is_stopped_for_one_that_may_and_begins_anew(policy: Policy) -> None:
    jobs = jobs_of((0, 2, 10, 10), (1, 2, 10, 10), (2, 2, 3, 3))
    rules = Rules(kind=np.array([0, 0, 1]), preempts=STOPS, rank=np.array([0, 0, 1]))
    schedule = run(jobs, rules, policy)
    assert schedule.start_s.tolist() == [0, 5, 2]
    assert schedule.end_s.tolist() == [10, 15, 5]
    assert schedule.cuts is not None
    assert (schedule.cuts.job.tolist(), schedule.cuts.start_s.tolist()) == ([1], [1])
    # It has drawn power: 2 processors for 10, 10 and 3 s, and for 1 s in vain.
    found = power_metrics(schedule, constant_budget(100))
    assert found.energy_kwh * 3.6e6 == pytest.approx(20 * (10 + 10 + 3 + 1))


def test_orders_by_area_go_by_predicted_times_and_processors() -> None:
    # The third runs longer than the second, on a quarter of its processors.
    jobs = jobs_of((0, 4, 10, 10), (1, 4, 3, 100), (2, 1, 5, 100))
    rules = Rules(forecast_s=np.array([10.0, 3.0, 5.0]))
    by_area = run(jobs, rules, Policy("smallest-area", "smallest-area"))
    assert by_area.start_s.tolist() == [0, 15, 10]
    assert run(jobs, rules, Policy("shortest", "shortest")).start_s.tolist() == [0, 10, 13]


MACHINE = "[[machine]]\nname = 'm'\nprocs = 4\n"
PARTITIONS = (
    MACHINE + "[[partition]]\nname = '1'\nprocs = 3\ntime_limit = '1h'\nmost_jobs = 1\n"
    "[[partition]]\nname = '2'\ntier = 2\n"
)
LINE = "{job} {submit} -1 {run} {procs} -1 -1 {procs} {asked} -1 1 {user} {group} -1 {queue} {part} -1 -1"


def trace(folder: Path, **changed: object) -> Path:
    """Six jobs of two users, accounts, queues and partitions; the first may be another one."""
    lines = []
    for job in range(6):
        cells: dict[str, object] = {"job": job + 1, "submit": job, "run": 60, "procs": 2, "asked": 90}
        cells |= {"user": 1 + job % 2, "group": 1 + job % 2, "queue": 1 + job // 3, "part": 1 + job // 3}
        lines.append(LINE.format(**(cells | (changed if job == 0 else {}))))
    return written(folder, *lines, name="jobs.swf")


def answered(capsys: Output, path: Path, site: Path, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = SIMULATE.answer(capsys, path, "--machines", site, *words)["results"]
    return found


def test_a_file_has_partitions_preemption_priorities_and_forecasts(capsys: Output, tmp_path: Path) -> None:
    site, path = tmp_path / "site.toml", trace(tmp_path)
    (tmp_path / "forecasts.csv").write_text("job,predicted_s\n1,50\n99,1\n")
    site.write_text(
        f"preemption = 'partition'\n{PARTITIONS}[priority]\nage = 10\nfair_share = 100\npartition = 5\n"
        "half_life = '2d'\nfavor_small = true\n[priority.shares]\n1 = 2\n2 = 1\n"
        "[walltime]\nforecasts = 'forecasts.csv'\n"
    )
    words = ("--priority", "fcfs,multifactor", "--estimates", "requested,predicted")
    found = answered(capsys, path, site, *words)
    expected = [(queue, predicted) for predicted in (False, True) for queue in ("fcfs", "multifactor")]
    assert [(each["queue"], each["predicted"]) for each in found] == expected
    assert all(each["stopped_runs"] and each["lost"] for each in found)
    out = SIMULATE.text(capsys, path, "--machines", site, *words)
    assert "easy, queue multifactor, predicted times" in out
    assert "stopped runs" in out


def test_jobs_of_partitions_go_to_their_machines_and_qualities_say_who_may_be_stopped(
    capsys: Output, tmp_path: Path
) -> None:
    site, path = tmp_path / "site.toml", trace(tmp_path)
    text = MACHINE + "[[machine]]\nname = 'n'\nprocs = 2\n"
    text += "[[partition]]\nname = '1'\nmachine = 'n'\n[[partition]]\nname = '2'\nmachine = 'm'\n"
    site.write_text(text)
    (found,) = answered(capsys, path, site)
    assert [(each["machine"], each["jobs"]) for each in found["machines"]] == [("m", 3), ("n", 3)]
    site.write_text("placement = 'random'\n" + text)
    refused = SIMULATE.refusal(capsys, path, "--machines", site)
    assert "placement: jobs go to the machines of partitions; leave it out" in refused
    qualities = "[[qos]]\nname = '1'\n[[qos]]\nname = '2'\npriority = 3\npreempts = ['1']\n"
    site.write_text(f"preemption = 'qos'\n{MACHINE}{qualities}[priority]\nqos = 10\n")
    (found,) = answered(capsys, path, site, "--priority", "multifactor")
    assert found["stopped_runs"] == 2


@refusals("text changed words sentence")
def test_what_a_site_cannot_have_is_one_sentence(
    capsys: Output, tmp_path: Path, text: str, changed: dict[str, object], words: list[str], sentence: str
) -> None:
    site = tmp_path / "site.toml"
    site.write_text(text.replace("PARTITIONS", PARTITIONS).replace("MACHINE\n", MACHINE))
    path = trace(tmp_path, **changed)
    assert sentence in SIMULATE.refusal(capsys, path, "--machines", site, *words)


def test_kinds_are_those_that_jobs_name_and_else_drawn_alike() -> None:
    kind, drawn = kinds_of_jobs(("steep", "flat"), JobNames(np.arange(3), ("flat", "other", "steep")), 0)
    assert (kind[0], kind[2], drawn) == (1, 0, 1)
    nobody = JobNames(np.full(100, -1), ())
    one, again = (kinds_of_jobs(("steep", "flat"), nobody, 3)[0].tolist() for _ in range(2))
    assert one == again


GPU, ALONE = [Machine("gpu", 1)], np.ones((1, 1))


def exact(*jobs: tuple[float, float]) -> Jobs:
    """Jobs of (submission, time) on one processor."""
    return jobs_of(*[(submit_s, 1, run_s) for submit_s, run_s in jobs])


@pytest.mark.parametrize(
    ("policy", "least_gain", "together"),
    [
        ("never", 0.0, False),
        ("always", 0.4, True),
        ("threshold", 0.4, True),
        # At slowdowns of 1.5, both together are a third faster.
        ("gain", 0.3, True),
        ("gain", 0.4, False),
        ("oracle", 0.0, False),
    ],
)
def test_policies_go_by_what_they_know_and_who_does_not_fit_does_not_share(
    policy: SharingPolicy, least_gain: float, together: bool
) -> None:
    true, predicted = np.array([[1.0, 4.0], [4.0, 1.0]]), np.array([[1.0, 1.5], [1.5, 1.0]])
    jobs = exact((0, 4), (0, 4))
    for slowdowns, ends in ((true, [16, 16] if together else [4, 8]), (np.full((2, 2), np.inf), [4, 8])):
        known = Slowdowns(("a", "b"), slowdowns, predicted)
        found = sharing_for(policy, known, np.array([0, 1]), 2.0, least_gain, 2)
        schedule = simulate(jobs, GPU, sharing=found)
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
    assert np.asarray(schedule.seat).tolist() == [0, 1, 0, 1]
    ends = [schedule.end_s[[0, 2]].max(), schedule.end_s[[1, 3]].max()]
    assert processor_seconds(schedule).sum() == sum(ends) < schedule.ran_s.sum()
    drawn = rectangles(schedule, 0)
    assert (drawn.job.tolist(), drawn.first.tolist()) == ([0, 1, 2, 3], [0, 1, 0, 1])


PAIRS = "kind,beside,slowdown,predicted_slowdown\n"


def test_a_table_has_all_pairs(tmp_path: Path) -> None:
    path = tmp_path / "slowdowns.csv"
    path.write_text(PAIRS + "a,a,1.5,1.6\na,b,2,2\nb,a,3,3\nb,b,,1\n")
    found = read_slowdowns(path)
    assert found.kinds == ("a", "b")
    assert found.true.tolist() == [[1.5, 2], [3, np.inf]]
    assert np.asarray(found.predicted).tolist() == [[1.6, 2], [3, 1]]


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
    (tmp_path / "pairs.csv").write_text(PAIRS + "1,1,1.9,1.9\n1,2,1.1,1.2\n2,1,1.1,1.2\n2,2,1.9,1.9\n")
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


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"forecast_s": np.ones(1)}, "sharing: expected jobs without predicted times, found both"),
        (
            {"kind": np.zeros(1, np.int64), "preempts": np.zeros((1, 1), np.bool_)},
            "sharing: expected jobs without preemption, found both",
        ),
        ({"rank": np.zeros(2, np.int64)}, "rules: rank: expected 1 numbers, found (2,)"),
        (
            {"release_s": np.array([-1.0])},
            "rules: release_s: job 1: expected a time from its submission on, 0 s, found -1",
        ),
    ],
)
def test_rules_that_do_not_fit_jobs_or_sharing_are_refused(rules: dict[str, Any], sentence: str) -> None:
    sharing = Sharing(np.zeros(1, np.int64), ALONE, ALONE)
    assert refusal(simulate, exact((0, 1)), GPU, sharing=sharing, rules=Rules(**rules)) == sentence


def test_what_cannot_be_shared_is_refused() -> None:
    kind = np.zeros(1, np.int64)
    for most in (1, 9):
        said = refusal(Sharing, kind, ALONE, ALONE, most)
        assert f"sharing: most: expected 2 to 8 jobs, found {most}" in said
    said = refusal(sharing_for, "gain", Slowdowns(("a",), ALONE), kind, 2.0, 0.0, 2)
    assert "gain: expected a table with predicted slowdowns, found none" in said
    said = refusal(simulate, exact((0, 1), (0, 1)), GPU, sharing=Sharing(kind, ALONE, ALONE))
    assert "sharing: kind: expected 2 kinds" in said
