"""Experiments: the least work of machines, drawn workloads, placements and policies compared."""

import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest
from scipy.stats import t as student

from crosscast.cluster.experiment import (
    PlacementSummary,
    Setup,
    draw_types,
    interarrival_of_load,
    least_makespan_s,
    least_work_s,
    mean_of,
    run_experiment,
    submissions,
)
from crosscast.cluster.job_types import JobShape, JobTypes, held_out_jobs
from crosscast.cluster.jobs import Jobs, Machine, Policy, Schedule, read_machines
from crosscast.cluster.metrics import QueuedJobs, compare_policies, jain_index
from crosscast.cluster.placements import PLACEMENTS, Workload, type_workload
from crosscast.data.sources import import_source
from crosscast.errors import InputError, MissingExtraError
from crosscast.evaluation.relative.evaluation import held_out_predictions
from crosscast.prediction.relative.nichols2024 import LogMean
from crosscast.prediction.relative.observed import vectors_of
from support.cluster import jobs_of
from support.refusals import refusals
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


def test_types_are_drawn_equally_often_with_replacement() -> None:
    places = draw_types(7, 70_000, np.random.default_rng(1))
    assert set(places.tolist()) == set(range(7))
    assert chisquare(np.bincount(places)).pvalue > 0.001


def test_jobs_are_submitted_after_exponential_times_the_first_at_once() -> None:
    submit_s = submissions(20_000, 4.0, np.random.default_rng(1))
    assert submit_s[0] == 0
    assert kstest(np.diff(submit_s), "expon", args=(0, 4.0)).pvalue > 0.001
    # A batch is submitted at once.
    assert not submissions(10, 0.0, np.random.default_rng(1)).any()


ALL = tuple(PLACEMENTS)


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


def test_all_placements_have_the_workload_of_the_seed() -> None:
    schedules: dict[tuple[str, int], Schedule] = {}
    run_experiment(
        types_of_experiment(),
        Setup(("random", "exact"), 100, [1, 2], interarrival_s=3.0),
        keep=lambda name, seed, schedule: schedules.update({(name, seed): schedule}),
    )
    assert set(schedules) == {(name, seed) for name in ("random", "exact") for seed in (1, 2)}
    for seed in (1, 2):
        one, other = schedules["random", seed].jobs, schedules["exact", seed].jobs
        np.testing.assert_array_equal(one.submit_s, other.submit_s)
        np.testing.assert_array_equal(one.run_s, other.run_s)
    first, second = schedules["random", 1], schedules["random", 2]
    assert first.jobs.submit_s.tolist() != second.jobs.submit_s.tolist()
    assert first.machine.tolist() != second.machine.tolist()


def test_a_model_that_is_never_wrong_places_as_exact_times_do() -> None:
    names = ("model", "exact", "completion", "exact-completion")
    found = run_experiment(types_of_experiment(noise=0.0), Setup(names, 150, [0])).results
    model, exact, completion, bound = (each.outcomes[0].metrics for each in found)
    assert model == exact
    assert completion.makespan_s == pytest.approx(bound.makespan_s)


def test_no_placement_is_done_before_the_least_makespan() -> None:
    found = run_experiment(types_of_experiment(), Setup(ALL, 300, [0, 1, 2]))
    assert found.least_makespan_s is not None
    for each in found.results:
        assert each.makespan_s.value >= found.least_makespan_s.value


def test_shares_on_the_fastest_machine_and_work_are_counted_over_jobs() -> None:
    kept: list[Schedule] = []
    types = types_of_experiment()
    found = run_experiment(
        types, Setup(("random",), 120, [0]), keep=lambda name, seed, schedule: kept.append(schedule)
    ).results[0]
    on_fastest, work, least = 0, 0.0, 0.0
    for procs, run_s, place in zip(kept[0].jobs.procs, kept[0].jobs.run_s, kept[0].machine, strict=True):
        on_fastest += run_s[place] == min(run_s)
        work += procs * run_s[place]
        least += procs * min(run_s)
    assert found.on_fastest == pytest.approx(on_fastest / 120)
    assert found.work_over_least == pytest.approx(work / least)


def test_means_have_students_intervals_and_differences_are_in_pairs() -> None:
    setup = Setup(("user", "exact", "model"), 60, [1, 2, 3])
    found = {each.placement: each for each in run_experiment(types_of_experiment(), setup).results}
    spans = {name: [run.metrics.makespan_s for run in each.outcomes] for name, each in found.items()}
    for name, each in found.items():
        low, high = student.interval(0.95, 2, np.mean(spans[name]), np.std(spans[name], ddof=1) / np.sqrt(3))
        assert each.makespan_s.interval == pytest.approx((low, high))
    ratios = [one / other - 1 for one, other in zip(spans["model"], spans["user"], strict=True)]
    assert found["model"].against["user"].value == pytest.approx(np.mean(ratios))
    assert set(found["model"].against) == {"user", "exact"}
    assert set(found["exact"].against) == {"user"}


def test_one_seed_says_nothing_of_others() -> None:
    found = run_experiment(types_of_experiment(), Setup(("user",), 20, [7])).results[0]
    assert found.makespan_s.interval is None
    assert found.to_dict()["makespan_interval"] is None
    assert mean_of([5.0]).value == 5.0


def test_predicted_estimates_change_what_is_backfilled_and_not_how_long_jobs_run() -> None:
    kept: list[Schedule] = []
    for estimates in ("exact", "predicted"):
        setup = Setup(("round-robin",), 200, [0], estimates=estimates)
        run_experiment(
            types_of_experiment(noise=1.0), setup, keep=lambda name, seed, schedule: kept.append(schedule)
        )
    exact, predicted = kept
    np.testing.assert_array_equal(exact.jobs.run_s, predicted.jobs.run_s)
    np.testing.assert_array_equal(exact.machine, predicted.machine)
    assert exact.start_s.tolist() != predicted.start_s.tolist()


def test_rows_are_taken_as_they_are_where_nothing_is_drawn() -> None:
    kept: list[Schedule] = []
    types = types_of_experiment(3)
    setup = Setup(("user",), None, [0], submit_s=np.array([0.0, 4.0, 4.0]))
    found = run_experiment(types, setup, keep=lambda name, seed, schedule: kept.append(schedule))
    assert found.least_makespan_s is None
    np.testing.assert_array_equal(kept[0].jobs.run_s, types.jobs.run_s)
    assert kept[0].jobs.submit_s.tolist() == [0.0, 4.0, 4.0]


def test_a_load_below_one_keeps_queues_short_and_above_one_does_not() -> None:
    waits = []
    for load in (0.3, 3.0):
        between_s = interarrival_of_load(types_of_experiment(), load)
        setup = Setup(("exact-completion",), 2000, [0], interarrival_s=between_s)
        waits.append(run_experiment(types_of_experiment(), setup).results[0].mean_wait_s)
    assert waits[0] < 1
    assert waits[1] > 100


def test_progress_tells_of_each_simulation() -> None:
    told: list[tuple[int, int, str]] = []
    setup = Setup(("user", "random"), 5, [0, 1])
    run_experiment(types_of_experiment(), setup, progress=lambda *words: told.append(words))
    assert told == [(1, 4, "user"), (2, 4, "random"), (3, 4, "user"), (4, 4, "random")]


@refusals("changed message")
def test_what_cannot_be_compared_is_refused(changed: dict[str, object], message: str) -> None:
    setup = replace(Setup(("user",), 5, [0]), **changed)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        run_experiment(types_of_experiment(), setup)


@pytest.mark.parametrize("load", [0.0, -1.0, float("nan"), float("inf")])
def test_a_load_is_above_zero_and_predicted_estimates_need_predictions(load: float) -> None:
    with pytest.raises(InputError, match="load: expected a number above 0, found"):
        interarrival_of_load(types_of_experiment(), load)
    types = replace(types_of_experiment(), predicted_s=None)
    with pytest.raises(InputError, match="estimates: expected jobs with predicted times, found none"):
        run_experiment(types, Setup(("user",), 5, [0], estimates="predicted"))


def jobs() -> Jobs:
    """On 5 processors: the second waits for the first, and the third and fourth may pass it."""
    rows = (0, 3, 4), (0, 4, 2), (0, 1, 3), (0, 1, 9)
    return jobs_of(*rows, user=np.array([0, 0, 1, 1]), users=("ann", "bob"))


def test_a_result_for_each_policy_in_their_order() -> None:
    kept: list[tuple[str, Schedule]] = []
    runs = [QueuedJobs(policy, jobs()) for policy in (Policy(backfill=None), Policy())]
    found = compare_policies(
        runs, [Machine("one", 5)], keep=lambda label, schedule: kept.append((label, schedule))
    )
    assert [each.label for each in found] == ["fcfs", "easy"]
    assert [each.metrics.makespan_s for each in found] == [15.0, 9.0]
    assert [label for label, _ in kept] == ["fcfs", "easy"]
    assert [schedule.start_s.tolist() for _, schedule in kept] == [[0, 4, 4, 6], [0, 4, 0, 0]]
    assert [user.mean_wait_s for user in found[1].users] == [2.0, 0.0]


def test_sizes_are_by_powers_of_two_and_fairness_over_users() -> None:
    (found,) = compare_policies([QueuedJobs(Policy(), jobs())], [Machine("one", 5)])
    assert [(each.least_procs, each.most_procs, each.jobs) for each in found.sizes] == [(1, 1, 2), (3, 4, 2)]
    assert [each.mean_wait_s for each in found.sizes] == [0, 2]
    assert found.fairness == pytest.approx(
        jain_index([each.average_bounded_slowdown for each in found.users])
    )
    assert jain_index([3.0, 1.0]) == pytest.approx(16 / 20)


EXAMPLE = Path(__file__).parents[2] / "examples" / "four-clusters.toml"
PLACEMENTS_EXPERIMENT_REAL = ("user", "model", "exact", "exact-near", "exact-completion")


@pytest.fixture(scope="module")
def types() -> JobTypes:
    vectors = vectors_of(import_source("aiwc2018", shared_data("aiwc2018")))
    held_out = held_out_predictions(vectors, LogMean(), "leave-application-out")
    return held_out_jobs(held_out, JobShape(job_procs=(1, 1, 2), job_s=600.0))


@pytest.fixture(scope="module")
def machines() -> list[Machine]:
    if not EXAMPLE.exists():
        pytest.skip("no checkout")
    return read_machines(EXAMPLE)


def placed(types: JobTypes, machines: list[Machine]) -> dict[str, PlacementSummary]:
    found = run_experiment(type_workload(types, machines), Setup(PLACEMENTS_EXPERIMENT_REAL, 50_000, [1]))
    return {each.placement: each for each in found.results}


@pytest.mark.system
def test_all_kernels_at_all_sizes_are_types_of_jobs(types: JobTypes) -> None:
    assert len(types) == 3 * 104
    assert len(types.devices) == 15


@pytest.mark.system
@pytest.mark.parametrize("nodes", [None, 1354])
def test_in_a_batch_a_model_beats_users_and_is_near_exact_times_though_it_sees_no_counter(
    types: JobTypes, machines: list[Machine], nodes: int | None
) -> None:
    if nodes is not None:
        machines = [replace(machine, procs=nodes) for machine in machines]
    model = placed(types, machines)["model"]
    assert model.against["user"].value < -0.15
    assert abs(model.against["exact"].value) < 0.05
    assert model.on_fastest < 0.5


@pytest.mark.system
def test_with_slow_cpus_and_fast_gpus_exact_times_themselves_lose_to_users_unless_it_waits(
    types: JobTypes, machines: list[Machine]
) -> None:
    devices = ("knl", "xeon_es-2697v2", "gtx1080ti", "titanx")
    unlike = [
        replace(machine, procs=1354, device=device) for machine, device in zip(machines, devices, strict=True)
    ]
    found = placed(types, unlike)
    assert found["exact"].against["user"].value > 0.8
    assert found["exact-near"].against["user"].value < -0.3
    assert found["exact-completion"].against["user"].value < -0.3
