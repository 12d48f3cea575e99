"""Rules of a site: priorities, limits, preemption and predicted times, by laws, by hand, and as files say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.cluster.jobs import Jobs, Machine, Policy, Schedule
from crosscast.cluster.power import power_metrics
from crosscast.cluster.rules import Rules, heights
from crosscast.cluster.sharing import Sharing
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import constant_budget
from support.cluster import jobs_of, written
from support.commands import Command, Output
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


def test_sharing_does_not_go_with_preemption_or_predictions() -> None:
    one, jobs = np.ones((1, 1)), jobs_of((0, 1, 1, 1))
    sharing = Sharing(np.zeros(1, np.int64), one, one)
    stops = Rules(kind=np.zeros(1, np.int64), preempts=np.zeros((1, 1), np.bool_))
    for rules, what in ((Rules(forecast_s=np.ones(1)), "predicted times"), (stops, "preemption")):
        said = refusal(simulate, jobs, ONE, sharing=sharing, rules=rules)
        assert said == f"sharing: expected jobs without {what}, found both"
    assert "rules: rank: expected 1 numbers" in refusal(run, jobs, Rules(rank=np.zeros(2, np.int64)))
