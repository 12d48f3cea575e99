"""Experiments: the least work of machines, drawn workloads, placements and policies compared."""

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

from crosscast.cluster.experiment import (
    Experiment,
    Setup,
    draw_types,
    interarrival_of_load,
    least_makespan_s,
    least_work_s,
    mean_of,
    run_experiment,
    submissions,
)
from crosscast.cluster.job_types import JobShape, held_out_jobs
from crosscast.cluster.jobs import Jobs, Machine, Policy, Schedule, read_machines
from crosscast.cluster.metrics import QueuedJobs, compare_policies, jain_index
from crosscast.cluster.placements import PLACEMENTS, Workload, type_workload
from crosscast.data.sources import import_source
from crosscast.errors import InputError, MissingExtraError
from crosscast.evaluation.relative.evaluation import held_out_predictions
from crosscast.prediction.relative.nichols2024 import LogMean
from crosscast.prediction.relative.observed import vectors_of
from support.cluster import jobs_of
from support.refusals import refusal, refusals
from support.shared import shared_data

INF = np.inf


def types_of(run_s: list[list[float]], procs: list[int], sizes: list[int]) -> Workload:
    times = np.array(run_s)
    jobs = replace(jobs_of(*[(0, each, 0) for each in procs]), run_s=times, estimate_s=times)
    machines = tuple(Machine(f"m{place}", size) for place, size in enumerate(sizes))
    return Workload(jobs, machines, np.zeros(len(times), dtype=np.bool_))


def test_a_job_that_runs_on_one_machine_only_is_done_there_and_the_longest_cannot_be_cut() -> None:
    types = types_of([[INF, 5.0], [1.0, 1.0]], [1, 1], [4, 1])
    assert least_work_s(types, np.array([3, 4])) == pytest.approx(15)
    types = types_of([[100.0, 90.0], [1.0, 1.0]], [1, 1], [50, 50])
    assert least_work_s(types, np.array([1, 1])) < 2
    assert least_makespan_s(types, np.array([1, 1])) == 90
    assert least_makespan_s(types, np.array([0, 1])) == 1
    assert least_work_s(types_of([[0.0]], [1], [2]), np.array([5])) == 0


@given(
    st.lists(st.tuples(*[st.integers(1, 9)] * 3, st.integers(1, 2)), min_size=1, max_size=5),
    st.lists(st.integers(2, 4), min_size=3, max_size=3),
)
def test_no_way_to_share_jobs_has_less_work(jobs: list[tuple[int, int, int, int]], sizes: list[int]) -> None:
    run_s = [[float(time) for time in job[:3]] for job in jobs]
    procs = [job[3] for job in jobs]
    least = least_work_s(types_of(run_s, procs, sizes), np.ones(len(jobs), dtype=np.int64))
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
        least_work_s(types_of([[1.0]], [1], [1]), np.array([1]))
    with pytest.raises(MissingExtraError, match=r"an interval over seeds needs .*'crosscast\[cluster\]'"):
        mean_of([1.0, 2.0])


def test_types_are_drawn_equally_often_and_submitted_after_exponential_times_the_first_at_once() -> None:
    rng = np.random.default_rng(1)
    counts = np.bincount(draw_types(7, 70_000, rng))
    assert len(counts) == 7
    assert chisquare(counts).pvalue > 0.001
    submit_s = submissions(20_000, 4.0, rng)
    assert submit_s[0] == 0
    assert kstest(np.diff(submit_s), "expon", args=(0, 4.0)).pvalue > 0.001
    # A batch is submitted at once.
    assert not submissions(10, 0.0, rng).any()


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


def test_a_model_that_is_never_wrong_places_as_exact_times_do() -> None:
    names = ("model", "exact", "completion", "exact-completion")
    found = run_experiment(types_of_experiment(noise=0.0), Setup(names, 150, [0])).results
    model, exact, completion, bound = (each.outcomes[0].metrics for each in found)
    assert model == exact
    assert completion.makespan_s == pytest.approx(bound.makespan_s)


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


@refusals("changed message")
def test_what_cannot_be_compared_is_refused(changed: dict[str, object], message: str) -> None:
    setup = replace(Setup(("user",), 5, [0]), **changed)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        run_experiment(replace(types_of_experiment(), predicted_s=None), setup)


@pytest.mark.parametrize("load", [0.0, -1.0, np.nan, INF])
def test_a_load_is_above_zero(load: float) -> None:
    assert "load: expected a number above 0, found" in refusal(
        interarrival_of_load, types_of_experiment(), load
    )


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
