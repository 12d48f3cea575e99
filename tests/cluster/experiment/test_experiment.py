"""Experiments: the same workload for all placements, means over seeds, and bounds that hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from crosscast.cluster.experiment import Setup, interarrival_of_load, mean_of, run_experiment
from crosscast.cluster.jobs import Jobs, Machine, Policy, Schedule
from crosscast.cluster.placements import PLACEMENTS, Workload
from crosscast.errors import InputError

ALL = tuple(PLACEMENTS)


def types_of(count: int = 12, *, noise: float = 0.3) -> Workload:
    """Types on two CPU machines and a GPU machine, where some run ten times faster."""
    rng = np.random.default_rng(3)
    gpu = np.arange(count) % 2 == 0
    run_s = rng.uniform(5, 50, (count, 1)) * np.where(gpu[:, None], [1.0, 0.8, 0.1], [1.0, 0.8, 2.0])
    vector = run_s / run_s.max(axis=1, keepdims=True)
    guess = vector * np.exp(rng.normal(0, noise, vector.shape))
    jobs = Jobs(np.arange(1, count + 1), np.zeros(count), rng.integers(1, 4, count), run_s, run_s)
    machines = (Machine("a", 16), Machine("b", 8), Machine("g", 6, has_gpu=True))
    return Workload(jobs, machines, gpu, guess, guess * (run_s / guess)[:, :1])


def test_a_seed_gives_the_same_results_and_another_one_others() -> None:
    setup = Setup(ALL, 200, [4])
    first, again = (run_experiment(types_of(), setup).results for _ in range(2))
    other = run_experiment(types_of(), replace(setup, seeds=[5])).results
    for one, same, else_ in zip(first, again, other, strict=True):
        assert one.outcomes[0].metrics == same.outcomes[0].metrics
        assert one.makespan_s != else_.makespan_s


def test_all_placements_have_the_workload_of_the_seed() -> None:
    schedules: dict[tuple[str, int], Schedule] = {}
    run_experiment(
        types_of(),
        Setup(("random", "oracle"), 100, [1, 2], interarrival_s=3.0),
        keep=lambda name, seed, schedule: schedules.update({(name, seed): schedule}),
    )
    assert set(schedules) == {(name, seed) for name in ("random", "oracle") for seed in (1, 2)}
    for seed in (1, 2):
        one, other = schedules["random", seed].jobs, schedules["oracle", seed].jobs
        np.testing.assert_array_equal(one.submit_s, other.submit_s)
        np.testing.assert_array_equal(one.run_s, other.run_s)
    first, second = schedules["random", 1], schedules["random", 2]
    assert first.jobs.submit_s.tolist() != second.jobs.submit_s.tolist()
    assert first.machine.tolist() != second.machine.tolist()


def test_a_placement_does_not_depend_on_which_others_are_compared() -> None:
    alone = run_experiment(types_of(), Setup(("random",), 80, [1])).results[0]
    last = run_experiment(types_of(), Setup(("user", "random"), 80, [1])).results[1]
    assert alone.outcomes[0].metrics == last.outcomes[0].metrics


def test_a_model_that_is_never_wrong_is_the_oracle() -> None:
    names = ("model", "oracle", "completion", "oracle-completion")
    found = run_experiment(types_of(noise=0.0), Setup(names, 150, [0])).results
    model, oracle, completion, bound = (each.outcomes[0].metrics for each in found)
    assert model == oracle
    assert completion.makespan_s == pytest.approx(bound.makespan_s)


def test_no_placement_is_done_before_the_least_makespan() -> None:
    found = run_experiment(types_of(), Setup(ALL, 300, [0, 1, 2]))
    assert found.least_makespan_s is not None
    for each in found.results:
        assert each.makespan_s.value >= found.least_makespan_s.value


def test_shares_on_the_fastest_machine_and_work_are_counted_over_jobs() -> None:
    kept: list[Schedule] = []
    types = types_of()
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
    found = {
        each.placement: each
        for each in run_experiment(types_of(), Setup(("user", "oracle", "model"), 60, [1, 2, 3])).results
    }
    spans = {name: [run.metrics.makespan_s for run in each.outcomes] for name, each in found.items()}
    for name, each in found.items():
        low, high = student.interval(0.95, 2, np.mean(spans[name]), np.std(spans[name], ddof=1) / np.sqrt(3))
        assert each.makespan_s.interval == pytest.approx((low, high))
    ratios = [one / other - 1 for one, other in zip(spans["model"], spans["user"], strict=True)]
    assert found["model"].against["user"].value == pytest.approx(np.mean(ratios))
    assert set(found["model"].against) == {"user", "oracle"}
    assert set(found["oracle"].against) == {"user"}


def test_one_seed_says_nothing_of_others() -> None:
    found = run_experiment(types_of(), Setup(("user",), 20, [7])).results[0]
    assert found.makespan_s.interval is None
    assert found.to_dict()["makespan_interval"] is None
    assert mean_of([5.0]).value == 5.0


def test_predicted_estimates_change_what_is_backfilled_and_not_how_long_jobs_run() -> None:
    kept: list[Schedule] = []
    for estimates in ("exact", "predicted"):
        setup = Setup(("round-robin",), 200, [0], estimates=estimates)
        run_experiment(types_of(noise=1.0), setup, keep=lambda name, seed, schedule: kept.append(schedule))
    exact, predicted = kept
    np.testing.assert_array_equal(exact.jobs.run_s, predicted.jobs.run_s)
    np.testing.assert_array_equal(exact.machine, predicted.machine)
    assert exact.start_s.tolist() != predicted.start_s.tolist()


def test_rows_are_taken_as_they_are_where_nothing_is_drawn() -> None:
    kept: list[Schedule] = []
    types = types_of(3)
    setup = Setup(("user",), None, [0], submit_s=np.array([0.0, 4.0, 4.0]))
    found = run_experiment(types, setup, keep=lambda name, seed, schedule: kept.append(schedule))
    assert found.least_makespan_s is None
    np.testing.assert_array_equal(kept[0].jobs.run_s, types.jobs.run_s)
    assert kept[0].jobs.submit_s.tolist() == [0.0, 4.0, 4.0]


def test_a_load_below_one_keeps_queues_short_and_above_one_does_not() -> None:
    waits = []
    for load in (0.3, 3.0):
        between_s = interarrival_of_load(types_of(), load)
        setup = Setup(("oracle-completion",), 2000, [0], interarrival_s=between_s)
        waits.append(run_experiment(types_of(), setup).results[0].mean_wait_s)
    assert waits[0] < 1
    assert waits[1] > 100


def test_progress_tells_of_each_simulation() -> None:
    told: list[tuple[int, int, str]] = []
    setup = Setup(("user", "random"), 5, [0, 1])
    run_experiment(types_of(), setup, progress=lambda *words: told.append(words))
    assert told == [(1, 4, "user"), (2, 4, "random"), (3, 4, "user"), (4, 4, "random")]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"jobs": 0}, "count: expected 1 to 100,000,000 jobs, found 0"),
        ({"jobs": -4}, "count: expected 1 to 100,000,000 jobs, found -4"),
        ({"jobs": 10**12}, "count: expected 1 to 100,000,000 jobs"),
        ({"placements": ("best",)}, "placement: expected one of .*, found 'best'"),
        ({"placements": ()}, "experiment: expected at least one placement and one seed, found none"),
        ({"seeds": []}, "experiment: expected at least one placement and one seed, found none"),
        ({"seeds": [-1]}, "seed: expected at least 0, found -1"),
        ({"interarrival_s": -1.0}, "interarrival: expected a time of at least 0 s, found -1"),
        ({"interarrival_s": float("nan")}, "interarrival: expected a time of at least 0 s, found nan"),
    ],
)
def test_what_cannot_be_compared_is_refused(changed: dict[str, object], message: str) -> None:
    setup = replace(Setup(("user",), 5, [0]), **changed)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=message):
        run_experiment(types_of(), setup)


@pytest.mark.parametrize("load", [0.0, -1.0, float("nan"), float("inf")])
def test_a_load_is_above_zero(load: float) -> None:
    with pytest.raises(InputError, match="load: expected a number above 0, found"):
        interarrival_of_load(types_of(), load)


def test_predicted_estimates_need_predictions() -> None:
    types = replace(types_of(), predicted_s=None)
    with pytest.raises(InputError, match="estimates: expected jobs with predicted times, found none"):
        run_experiment(types, Setup(("user",), 5, [0], estimates="predicted"))


def test_the_policy_is_that_of_the_setup() -> None:
    spans = [
        run_experiment(types_of(), Setup(("random",), 200, [0], policy=policy)).results[0].makespan_s.value
        for policy in (Policy(), Policy(backfill=None))
    ]
    assert spans[0] < spans[1]
