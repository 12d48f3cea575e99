"""Placements, the least work of machines, drawn workloads, and placements and policies compared."""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest
from scipy.stats import t as student

from crosscast.arrays import Reals
from crosscast.cluster import Jobs, Machine, Policy, Schedule, read_machines
from crosscast.cluster.experiment import (
    Experiment,
    Setup,
    interarrival_of_load,
    least_makespan_s,
    least_work_s,
    mean_of,
    run_experiment,
)
from crosscast.cluster.job_types import JobShape, held_out_jobs
from crosscast.cluster.metrics import QueuedJobs, compare_policies, jain_index
from crosscast.cluster.placements import PLACEMENTS, Workload, type_workload, without_choice
from crosscast.data.sources import import_source
from crosscast.errors import MissingExtraError
from crosscast.evaluation.relative.evaluation import held_out_predictions
from crosscast.prediction.relative.nichols2024 import LogMean
from crosscast.prediction.relative.observed import vectors_of
from support.cluster import jobs_of
from support.examples import examples
from support.refusals import refusal
from support.shared import shared_data

INF = np.inf
MACHINES = (Machine("a", 4), Machine("b", 2), Machine("c", 4, has_gpu=True), Machine("d", 4, has_gpu=True))


def workload(
    run_s: Reals | list[list[float]],
    *,
    procs: list[int] | None = None,
    uses_gpu: list[bool] | None = None,
    vector: list[list[float]] | None = None,
    machines: tuple[Machine, ...] = MACHINES,
) -> Workload:
    times = np.array(run_s, dtype=np.float64)
    jobs = replace(
        jobs_of(*[(0, each, 0) for each in procs or [1] * len(times)]), run_s=times, estimate_s=times
    )
    predicted = None if vector is None else np.array(vector, dtype=np.float64)
    seconds = None if predicted is None else 7 * predicted
    return Workload(jobs, machines, np.array(uses_gpu or [False] * len(times)), predicted, seconds)


def of_sizes(*sizes: int) -> tuple[Machine, ...]:
    return tuple(Machine(f"m{number}", size) for number, size in enumerate(sizes))


def placed(name: str, of: Workload, seed: int = 0) -> Any:
    return PLACEMENTS[name](of, np.random.default_rng(seed))


def bound(name: str, of: Workload, seed: int = 0) -> list[int]:
    found: list[int] = placed(name, of, seed).machine.tolist()
    return found


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Jobs that run on some of the machines, or are too wide for some."""
    count = draw(st.integers(1, 12))
    run_s = [[draw(st.sampled_from([1.0, 2.0, 3.0, INF])) for _ in MACHINES] for _ in range(count)]
    for row in run_s:
        row[draw(st.sampled_from([0, 2, 3]))] = 2.0
    procs = [draw(st.integers(1, 4)) for _ in range(count)]
    uses_gpu = [draw(st.booleans()) for _ in range(count)]
    vector = [[draw(st.sampled_from([0.2, 0.5, 1.0])) for _ in MACHINES] for _ in range(count)]
    return workload(run_s, procs=procs, uses_gpu=uses_gpu, vector=vector)


@given(workloads())
@examples(100, 50)
def test_jobs_go_where_they_run_sorted_by_the_predicted_or_the_true_times(of: Workload) -> None:
    assert of.vector is not None and of.predicted_s is not None
    for name in ("round-robin", "random", "user"):
        assert of.runs_on[np.arange(len(of)), bound(name, of)].all()
    for name, time in (("model", of.vector), ("exact", of.jobs.run_s)):
        for listed, row, runs in zip(placed(name, of).order.tolist(), time, of.runs_on, strict=True):
            known = [place for place in listed if place >= 0]
            assert sorted(known) == np.flatnonzero(runs).tolist()
            assert listed[len(known) :] == [-1] * (len(listed) - len(known))
            assert np.all(np.diff(row[known]) >= 0)
    for name, time_s in (("completion", of.predicted_s), ("exact-completion", of.jobs.run_s)):
        found = placed(name, of).predicted_s
        np.testing.assert_array_equal(found, np.where(of.runs_on, time_s, INF))


def test_machines_take_turns_whatever_the_jobs_are() -> None:
    assert bound("round-robin", workload([[1.0] * 4] * 6)) == [0, 1, 2, 3, 0, 1]
    # A job that does not run on its turn goes to the next machine that does.
    assert bound("round-robin", workload([[1.0] * 4, [1.0, INF, INF, 1.0]])) == [0, 3]
    assert bound("round-robin", workload([[1.0] * 4, [1.0] * 4], procs=[1, 3])) == [0, 2]


def test_chance_takes_each_machine_about_as_often_and_one_seed_the_same() -> None:
    of = workload(np.where(np.arange(4) == 1, INF, np.ones((3000, 4))))
    first = bound("random", of, 5)
    assert first == bound("random", of, 5) != bound("random", of, 6)
    counts = np.bincount(first, minlength=4)
    assert counts[1] == 0
    assert counts[[0, 2, 3]].min() > 900


def test_users_take_turns_among_all_machines_where_their_kind_is_missing_and_it_is_said() -> None:
    of = workload([[1.0, 1.0]] * 3, uses_gpu=[True, False, True], machines=MACHINES[:2])
    assert bound("user", of) == [0, 0, 1]
    # An experiment draws many jobs of each type.
    expected = "user: there is no machine with a GPU: 2 of the 3 types of jobs go to those without"
    assert without_choice(of) == expected
    gpu = workload([[1.0] * 4] * 2, uses_gpu=[True, True])
    assert without_choice(gpu) == "user: all jobs are for GPUs: users take no machine of the other kind"
    assert without_choice(workload([[1.0] * 4] * 2, uses_gpu=[True, False])) is None


def test_a_list_begins_with_the_least_time_and_a_near_one_ends_at_twice_that() -> None:
    of = workload(
        [[4.0, 2.0, 1.0, 1.5]] * 2, procs=[1, 3], vector=[[0.2, 0.4, 1.0, 0.41], [0.5, 0.1, 0.9, 1.0]]
    )
    lists = {name: placed(name, of).order.tolist() for name in ("model", "model-near", "exact-near")}
    assert lists == {
        "model": [[0, 1, 3, 2], [0, 2, 3, -1]],
        "model-near": [[0, 1, -1, -1], [0, 2, 3, -1]],
        "exact-near": [[2, 3, 1, -1], [2, 3, -1, -1]],
    }
    assert placed("exact", workload([[2.0, 1.0, 1.0, 2.0]])).order.tolist() == [[1, 2, 0, 3]]


def test_a_job_that_fits_nowhere_is_refused() -> None:
    said = refusal(workload, [[1.0] * 4, [INF, 1.0, INF, INF]], procs=[1, 3])
    assert said.startswith(
        "jobs: job 2: expected a machine on which it runs that has its 3 processors, found"
    )


def test_a_job_that_runs_on_one_machine_only_is_done_there_and_the_longest_cannot_be_cut() -> None:
    types = workload([[INF, 5.0], [1.0, 1.0]], machines=of_sizes(4, 1))
    assert least_work_s(types, np.array([3, 4])) == pytest.approx(15)
    types = workload([[100.0, 90.0], [1.0, 1.0]], machines=of_sizes(50, 50))
    assert least_work_s(types, np.array([1, 1])) < 2
    assert least_makespan_s(types, np.array([1, 1])) == 90
    assert least_makespan_s(types, np.array([0, 1])) == 1
    assert least_work_s(workload([[0.0]], machines=of_sizes(2)), np.array([5])) == 0


@given(
    st.lists(st.tuples(*[st.integers(1, 9)] * 3, st.integers(1, 2)), min_size=1, max_size=5),
    st.lists(st.integers(2, 4), min_size=3, max_size=3),
)
def test_no_way_to_share_jobs_has_less_work(jobs: list[tuple[int, int, int, int]], sizes: list[int]) -> None:
    run_s = [[float(time) for time in job[:3]] for job in jobs]
    procs = [job[3] for job in jobs]
    least = least_work_s(
        workload(run_s, procs=procs, machines=of_sizes(*sizes)), np.ones(len(jobs), dtype=np.int64)
    )
    whole = min(
        max(
            sum(procs[job] * run_s[job][place] for job, own in enumerate(shares) if own == place) / size
            for place, size in enumerate(sizes)
        )
        for shares in product(range(3), repeat=len(jobs))
    )
    assert least <= whole + 1e-9
    # Cutting jobs saves no more than a machine's share of each machine's last job.
    longest = max(procs[job] * max(run_s[job]) for job in range(len(jobs))) / min(sizes)
    assert whole <= least + 3 * longest


def test_without_scipy_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("scipy.optimize", "scipy.sparse", "scipy.special"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"the least makespan needs .*'crosscast\[cluster\]'"):
        least_work_s(workload([[1.0]], machines=of_sizes(1)), np.array([1]))
    with pytest.raises(MissingExtraError, match=r"an interval over seeds needs .*'crosscast\[cluster\]'"):
        mean_of([1.0, 2.0])


def types_of_experiment(count: int = 12, *, noise: float = 0.3) -> Workload:
    """Types on two CPU machines and a GPU machine, where some run ten times faster."""
    rng = np.random.default_rng(3)
    gpu = np.arange(count) % 2 == 0
    run_s = rng.uniform(5, 50, (count, 1)) * np.where(gpu[:, None], [1.0, 0.8, 0.1], [1.0, 0.8, 2.0])
    vector = run_s / run_s.max(axis=1, keepdims=True)
    guess = vector * np.exp(rng.normal(0, noise, vector.shape))
    jobs = Jobs(np.arange(1, count + 1), np.zeros(count), rng.integers(1, 4, count), run_s, run_s)
    machines = (Machine("a", 16), Machine("b", 8), Machine("g", 6, has_gpu=True))
    return Workload(jobs, machines, gpu, guess, guess * (run_s / guess)[:, :1])


Schedules = dict[tuple[str, int], Schedule]


def compared(setup: Setup, types: Workload | None = None, **more: Any) -> tuple[Experiment, Schedules]:
    """An experiment, with all schedules by placement and seed."""
    kept: Schedules = {}

    def keep(name: str, seed: int, schedule: Schedule) -> None:
        kept[name, seed] = schedule

    return run_experiment(types or types_of_experiment(), setup, keep=keep, **more), kept


def test_types_are_drawn_equally_often_and_submitted_after_exponential_times_the_first_at_once() -> None:
    types = types_of_experiment(7)
    jobs = compared(Setup(("user",), 7000, [1], interarrival_s=4.0), types)[1]["user", 1].jobs
    counts = np.unique(jobs.run_s[:, 0], return_counts=True)[1]
    assert len(counts) == 7
    assert chisquare(counts).pvalue > 0.001
    assert jobs.submit_s[0] == 0
    assert kstest(np.diff(jobs.submit_s), "expon", args=(0, 4.0)).pvalue > 0.001
    said = refusal(run_experiment, types, Setup(("user",), 0, [0]))
    assert said == "jobs: expected 1 to 100,000,000 jobs, found 0"


def test_all_placements_have_the_workload_of_the_seed() -> None:
    told: list[tuple[int, int, str]] = []
    setup = Setup(("random", "exact"), 100, [1, 2], interarrival_s=3.0)
    kept = compared(setup, progress=lambda *words: told.append(words))[1]
    assert told == [(1, 4, "random"), (2, 4, "exact"), (3, 4, "random"), (4, 4, "exact")]
    for seed in (1, 2):
        one, other = kept["random", seed].jobs, kept["exact", seed].jobs
        np.testing.assert_array_equal(one.submit_s, other.submit_s)
        np.testing.assert_array_equal(one.run_s, other.run_s)
    first, second = kept["random", 1], kept["random", 2]
    assert first.jobs.submit_s.tolist() != second.jobs.submit_s.tolist()
    assert first.machine.tolist() != second.machine.tolist()


def test_placements_are_summed_up_over_seeds_and_jobs_and_compared_in_pairs() -> None:
    whole, kept = compared(Setup(tuple(PLACEMENTS), 120, [0, 1, 2]))
    found = {each.placement: each for each in whole.results}
    spans = {name: [run.metrics.makespan_s for run in each.outcomes] for name, each in found.items()}
    assert whole.least_makespan_s is not None
    for name, each in found.items():
        low, high = student.interval(0.95, 2, np.mean(spans[name]), np.std(spans[name], ddof=1) / np.sqrt(3))
        assert each.makespan_s.interval == pytest.approx((low, high))
        assert each.makespan_s.value >= whole.least_makespan_s.value
        shares, works = [], []
        for seed in range(3):
            jobs, machine = kept[name, seed].jobs, kept[name, seed].machine
            own, least = jobs.run_s[np.arange(120), machine], jobs.run_s.min(axis=1)
            shares.append(np.count_nonzero(own == least) / 120)
            works.append((jobs.procs * own).sum() / (jobs.procs * least).sum())
        assert each.on_fastest == pytest.approx(np.mean(shares))
        assert each.work_over_least == pytest.approx(np.mean(works))
    ratios = [one / other - 1 for one, other in zip(spans["model"], spans["user"], strict=True)]
    assert found["model"].against["user"].value == pytest.approx(np.mean(ratios))
    assert set(found["model"].against) == {"user", "exact"}
    assert set(found["exact"].against) == {"user"}


def test_predicted_estimates_change_what_is_backfilled_and_not_how_long_jobs_run() -> None:
    exact, predicted = (
        compared(Setup(("user",), 200, [0], estimates=each), types_of_experiment(noise=1.0))[1]["user", 0]
        for each in ("exact", "predicted")
    )
    np.testing.assert_array_equal(exact.jobs.run_s, predicted.jobs.run_s)
    np.testing.assert_array_equal(exact.machine, predicted.machine)
    assert exact.start_s.tolist() != predicted.start_s.tolist()


def test_rows_are_taken_as_they_are_where_nothing_is_drawn_and_one_seed_says_nothing_of_others() -> None:
    types = types_of_experiment(3)
    found, kept = compared(Setup(("user",), None, [0], submit_s=np.array([0.0, 4.0, 4.0])), types)
    assert found.least_makespan_s is None
    jobs = kept["user", 0].jobs
    np.testing.assert_array_equal(jobs.run_s, types.jobs.run_s)
    assert jobs.submit_s.tolist() == [0.0, 4.0, 4.0]
    assert found.results[0].makespan_s.interval is None


def test_a_load_below_one_keeps_queues_short_and_above_one_does_not() -> None:
    waits = []
    for load in (0.3, 3.0):
        between_s = interarrival_of_load(types_of_experiment(), load)
        setup = Setup(("exact-completion",), 2000, [0], interarrival_s=between_s)
        waits.append(run_experiment(types_of_experiment(), setup).results[0].mean_wait_s)
    assert waits[0] < 1
    assert waits[1] > 100


def test_a_result_for_each_policy_in_their_order_by_users_and_sizes() -> None:
    # On 5 processors the second waits for the first, and the third and fourth may pass it.
    rows = (0, 3, 4), (0, 4, 2), (0, 1, 3), (0, 1, 9)
    jobs = jobs_of(*rows, user=np.array([0, 0, 1, 1]), users=("ann", "bob"))
    kept: list[tuple[str, list[float]]] = []
    found = compare_policies(
        [QueuedJobs(policy, jobs) for policy in (Policy(backfill=None), Policy())],
        [Machine("one", 5)],
        keep=lambda label, schedule: kept.append((label, schedule.start_s.tolist())),
    )
    assert kept == [("fcfs", [0, 4, 4, 6]), ("easy", [0, 4, 0, 0])]
    assert [(each.label, each.metrics.makespan_s) for each in found] == [("fcfs", 15.0), ("easy", 9.0)]
    assert [user.mean_wait_s for user in found[1].users] == [2.0, 0.0]
    sizes = [(each.least_procs, each.most_procs, each.jobs, each.mean_wait_s) for each in found[1].sizes]
    assert sizes == [(1, 1, 2, 0), (3, 4, 2, 2)]
    # Slowdowns of times below 10 s are 1.
    assert found[1].fairness == 1
    assert jain_index([3.0, 1.0]) == pytest.approx(16 / 20)


EXAMPLE = Path(__file__).parents[2] / "examples" / "four-clusters.toml"
UNLIKE = ("knl", "xeon_es-2697v2", "gtx1080ti", "titanx")


@pytest.mark.system
@pytest.mark.skipif(not EXAMPLE.exists(), reason="no checkout")
def test_on_published_times_a_model_beats_users_in_a_batch_though_it_sees_no_counter() -> None:
    vectors = vectors_of(import_source("aiwc2018", shared_data("aiwc2018")))
    held_out = held_out_predictions(vectors, LogMean(), "leave-application-out")
    types = held_out_jobs(held_out, JobShape(job_procs=(1, 1, 2), job_s=600.0))
    # All kernels at all sizes are types of jobs.
    assert (len(types), len(types.devices)) == (3 * 104, 15)
    given = read_machines(EXAMPLE)
    alike = [replace(machine, procs=1354) for machine in given]
    unlike = [replace(machine, device=device) for machine, device in zip(alike, UNLIKE, strict=True)]
    names = ("user", "model", "exact", "exact-near", "exact-completion")
    batch, same, other = (
        {each.placement: each for each in run_experiment(type_workload(types, machines), setup).results}
        for setup in [Setup(names, 50_000, [1])]
        for machines in (given, alike, unlike)
    )
    for found in (batch, same):
        assert found["model"].against["user"].value < -0.15
        assert abs(found["model"].against["exact"].value) < 0.05
        assert found["model"].on_fastest < 0.5
    # With slow CPUs and fast GPUs, exact times themselves lose to users unless it waits.
    assert other["exact"].against["user"].value > 0.8
    assert other["exact-near"].against["user"].value < -0.3
    assert other["exact-completion"].against["user"].value < -0.3
