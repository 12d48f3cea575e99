"""Rules of a site: priorities, limits, preemption and predicted times, by laws, by hand, and as files say."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cli import main
from crosscast.cluster.jobs import Jobs, Machine, Policy, Schedule
from crosscast.cluster.power import power_metrics
from crosscast.cluster.rules import Priority, Rules
from crosscast.cluster.sharing import Sharing
from crosscast.cluster.simulate import simulate
from crosscast.cluster.simulator.ranking import count_use, start_ranking
from crosscast.cluster.site import constant_budget
from crosscast.errors import InputError
from support.commands import Output
from support.examples import examples
from support.refusals import refusal, refusals

ONE = [Machine("one", 4, idle_w=0, active_w=10)]
MULTIFACTOR = Policy("multifactor", "multifactor")


def jobs_of(*rows: tuple[float, int, float, float]) -> Jobs:
    """Jobs of (submission, processors, time, request), of user 0."""
    submit_s, procs, run_s, estimate_s = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    return Jobs(
        np.arange(len(rows)) + 1,
        submit_s,
        procs.astype(np.int64),
        run_s[:, None],
        estimate_s[:, None],
        user=np.zeros(len(rows), np.int64),
        users=("ann",),
    )


def run(jobs: Jobs, rules: Rules, policy: Policy | None = None) -> Schedule:
    return simulate(jobs, ONE, policy=policy or Policy(), rules=rules)


def starts(jobs: Jobs, rules: Rules, policy: Policy | None = None) -> list[float]:
    found: list[float] = run(jobs, rules, policy).start_s.tolist()
    return found


def test_who_has_used_less_than_its_share_comes_first() -> None:
    # Both have half of the machine. The first account has used all of it when the others wait.
    jobs = jobs_of((0, 4, 10, 10), (1, 4, 10, 10), (2, 4, 10, 10))
    priority = Priority(np.zeros(3), np.array([0, 0, 1]), np.array([0.5, 0.5]), fair_share=1000)
    assert starts(jobs, Rules(priority=priority), MULTIFACTOR) == [0, 20, 10]
    # With an eighth and seven eighths, it is the other way round as soon as both have run.
    jobs = jobs_of((0, 4, 10, 10), (1, 4, 10, 10), (1, 4, 10, 10), (1, 4, 10, 10))
    priority = Priority(np.zeros(4), np.array([0, 1, 1, 0]), np.array([0.125, 0.875]), fair_share=1000)
    assert starts(jobs, Rules(priority=priority), MULTIFACTOR) == [0, 10, 20, 30]


@examples(50)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8), st.sampled_from([3.0, 50.0, float("inf")]))
def test_what_was_used_does_not_depend_on_when_it_is_counted(steps: list[float], half_life_s: float) -> None:
    priority = Priority(np.zeros(1), np.zeros(1, np.int64), np.ones(1), half_life_s=half_life_s)
    often, once = (start_ranking(Rules(priority=priority), 1) for _ in range(2))
    count = getattr(count_use, "py_func", count_use)
    for ranking in (often, once):
        ranking.procs[0] = 3
    for time_s in np.cumsum(steps).tolist():
        count(often, time_s)
    count(once, float(np.cumsum(steps)[-1]))
    np.testing.assert_allclose(often.used, once.used, rtol=1e-9)
    if half_life_s == np.inf:
        np.testing.assert_allclose(once.used, 3 * sum(steps))


@examples(60)
@given(st.integers(0, 2**31))
def test_limits_hold_at_each_moment(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 25))
    rows = zip(
        np.cumsum(rng.integers(0, 4, count)).tolist(),
        rng.integers(1, 4, count).tolist(),
        rng.integers(1, 12, count).tolist(),
        rng.integers(1, 15, count).tolist(),
        strict=True,
    )
    jobs = jobs_of(*rows)
    rules = Rules(
        group=rng.integers(-1, 2, count),
        most=rng.integers(1, 3, 2),
        partition=rng.integers(-1, 1, count),
        partition_procs=np.array([3]),
    )
    schedule = run(jobs, rules, Policy(conservative=bool(rng.random() < 0.5)))
    assert rules.group is not None
    assert rules.most is not None
    for time in schedule.start_s.tolist():
        runs = (schedule.start_s <= time) & (time < schedule.end_s)
        assert jobs.procs[runs & (rules.partition == 0)].sum() <= 3
        for group, most in enumerate(rules.most.tolist()):
            assert np.count_nonzero(runs & (rules.group == group)) <= most


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


def test_times_are_predicted_by_a_users_last_two_jobs() -> None:
    # Both took 2 s; the last one passes the head by that, which it would not by its request.
    jobs = jobs_of((0, 4, 2, 9), (2, 4, 2, 9), (10, 3, 5, 5), (11, 4, 2, 2), (11, 1, 3, 90))
    jobs = replace(jobs, user=np.array([0, 0, 1, 1, 0]), users=("ann", "bob"))
    assert starts(jobs, Rules()) == [0, 2, 10, 15, 17]
    assert starts(jobs, Rules(forecast_s=np.full(5, np.nan))) == [0, 2, 10, 15, 11]


def test_orders_by_area_go_by_predicted_times_and_processors() -> None:
    # The third runs longer than the second, on a quarter of its processors.
    jobs = jobs_of((0, 4, 10, 10), (1, 4, 3, 100), (2, 1, 5, 100))
    rules = Rules(forecast_s=np.array([10.0, 3.0, 5.0]))
    assert starts(jobs, rules, Policy("smallest-area", "smallest-area")) == [0, 15, 10]
    assert starts(jobs, rules, Policy("shortest", "shortest")) == [0, 10, 13]


def test_a_prediction_that_was_too_short_grows_but_not_above_the_request() -> None:
    # Forecast are 2 s of 200: the head is to start after 2, 62 and 200 s.
    jobs = jobs_of((0, 3, 200, 200), (1, 4, 5, 5), (2, 1, 50, 50), (3, 1, 100, 100))
    forecast_s = np.array([2.0, np.nan, np.nan, np.nan])
    schedule = run(jobs, Rules(forecast_s=forecast_s))
    # From 2 s on, the first should run until 62 s: there is time for one of 50 s; then until 200 s.
    assert schedule.start_s.tolist() == [0, 200, 2, 62]
    assert schedule.reserved_s[1] == 2


MACHINE = "[[machine]]\nname = 'm'\nprocs = 4\n"
PARTITIONS = (
    MACHINE + "[[partition]]\nname = '1'\nprocs = 3\ntime_limit = '1h'\nmost_jobs = 1\n"
    "[[partition]]\nname = '2'\ntier = 2\n"
)
LINE = "{job} {submit} -1 {run} {procs} -1 -1 {procs} {asked} -1 1 {user} {group} -1 {queue} {part} -1 -1"


def trace(folder: Path, **changed: object) -> str:
    """Six jobs of two users, accounts, queues and partitions; the first may be another one."""
    lines = []
    for job in range(6):
        cells: dict[str, object] = {"job": job + 1, "submit": job, "run": 60, "procs": 2, "asked": 90}
        cells |= {"user": 1 + job % 2, "group": 1 + job % 2, "queue": 1 + job // 3, "part": 1 + job // 3}
        lines.append(LINE.format(**(cells | (changed if job == 0 else {}))))
    path = folder / "jobs.swf"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def answered(capsys: Output, path: str, site: Path, *words: str) -> list[dict[str, object]]:
    assert main(["simulate", "policies", path, "--machines", str(site), "--json", *words]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["results"]
    return found


def test_a_file_has_partitions_preemption_priorities_and_forecasts(capsys: Output, tmp_path: Path) -> None:
    site, path = tmp_path / "site.toml", trace(tmp_path)
    (tmp_path / "forecasts.csv").write_text("job,predicted_s\n1,50\n99,1\n")
    site.write_text(
        "preemption = 'partition'\n"
        + PARTITIONS
        + "[priority]\nage = 10\nfair_share = 100\npartition = 5\nhalf_life = '2d'\nfavor_small = true\n"
        "[priority.shares]\n1 = 2\n2 = 1\n[walltime]\nforecasts = 'forecasts.csv'\n"
    )
    words = ("--priority", "fcfs,multifactor", "--estimates", "requested,predicted")
    found = answered(capsys, path, site, *words)
    assert [(each["queue"], each["predicted"]) for each in found] == [
        ("fcfs", False),
        ("multifactor", False),
        ("fcfs", True),
        ("multifactor", True),
    ]
    assert all(each["stopped_runs"] and each["lost"] for each in found)
    assert main(["simulate", "policies", path, "--machines", str(site), *words]) == 0
    out = capsys.readouterr().out
    assert "easy, queue multifactor, predicted times" in out
    assert "stopped runs" in out


def test_jobs_of_partitions_go_to_their_machines(capsys: Output, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    text = MACHINE + "[[machine]]\nname = 'n'\nprocs = 2\n"
    text += "[[partition]]\nname = '1'\nmachine = 'n'\n[[partition]]\nname = '2'\nmachine = 'm'\n"
    site.write_text(text)
    (found,) = answered(capsys, trace(tmp_path), site)
    machines = found["machines"]
    assert isinstance(machines, list)
    assert [(each["machine"], each["jobs"]) for each in machines] == [("m", 3), ("n", 3)]
    site.write_text("placement = 'random'\n" + text)
    assert main(["simulate", "policies", trace(tmp_path), "--machines", str(site)]) == 2
    assert "placement: jobs go to the machines of partitions; leave it out" in capsys.readouterr().err


def test_quality_of_service_says_who_may_be_stopped(capsys: Output, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    qualities = "[[qos]]\nname = '1'\n[[qos]]\nname = '2'\npriority = 3\npreempts = ['1']\n"
    site.write_text("preemption = 'qos'\n" + MACHINE + qualities + "[priority]\nqos = 10\n")
    (found,) = answered(capsys, trace(tmp_path), site, "--priority", "multifactor")
    assert found["stopped_runs"] == 2


@refusals("text changed words sentence")
def test_what_a_site_cannot_have_is_one_sentence(
    capsys: Output, tmp_path: Path, text: str, changed: dict[str, object], words: list[str], sentence: str
) -> None:
    site = tmp_path / "site.toml"
    site.write_text(text.replace("PARTITIONS", PARTITIONS).replace("MACHINE\n", MACHINE))
    assert main(["simulate", "policies", trace(tmp_path, **changed), "--machines", str(site), *words]) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


@refusals("text sentence")
def test_wrong_forecasts_are_one_sentence(capsys: Output, tmp_path: Path, text: str, sentence: str) -> None:
    site = tmp_path / "site.toml"
    site.write_text(MACHINE + "[walltime]\nforecasts = 'f.csv'\n")
    (tmp_path / "f.csv").write_text(text)
    words = ["simulate", "policies", trace(tmp_path), "--machines", str(site), "--estimates", "predicted"]
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


def test_sharing_does_not_go_with_preemption_or_predictions() -> None:
    one = np.ones((1, 1))
    jobs = jobs_of((0, 1, 1, 1))
    sharing = Sharing(np.zeros(1, np.int64), one, one)
    for rules, what in (
        (Rules(forecast_s=np.ones(1)), "predicted times"),
        (Rules(kind=np.zeros(1, np.int64), preempts=np.zeros((1, 1), np.bool_)), "preemption"),
    ):
        with pytest.raises(InputError, match=f"sharing: expected jobs without {what}, found both"):
            simulate(jobs, ONE, sharing=sharing, rules=rules)
    assert "rules: rank: expected 1 numbers" in refusal(run, jobs, Rules(rank=np.zeros(2, np.int64)))
