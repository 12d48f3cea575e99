"""Placements: to which machine each job goes, and that it can run there."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.cluster.jobs import Bound, Completion, Machine, Preferred
from crosscast.cluster.placements import PLACEMENTS, Workload, without_choice
from crosscast.errors import InputError
from support.cluster import jobs_of

INF = np.inf
MACHINES = (Machine("a", 4), Machine("b", 2), Machine("c", 4, has_gpu=True), Machine("d", 4, has_gpu=True))


def workload(
    run_s: Reals | list[list[float]],
    *,
    procs: list[int] | None = None,
    uses_gpu: list[bool] | None = None,
    vector: Reals | list[list[float]] | None = None,
    machines: tuple[Machine, ...] = MACHINES,
) -> Workload:
    times = np.array(run_s, dtype=np.float64)
    jobs = replace(
        jobs_of(*[(0, each, 0) for each in procs or [1] * len(times)]), run_s=times, estimate_s=times
    )
    predicted = None if vector is None else np.array(vector, dtype=np.float64)
    seconds = None if predicted is None else 7 * predicted
    return Workload(jobs, machines, np.array(uses_gpu or [False] * len(times)), predicted, seconds)


def bound(name: str, of: Workload, seed: int = 0) -> list[int]:
    placement = PLACEMENTS[name](of, np.random.default_rng(seed))
    assert isinstance(placement, Bound)
    found: list[int] = placement.machine.tolist()
    return found


def order(name: str, of: Workload) -> list[list[int]]:
    placement = PLACEMENTS[name](of, np.random.default_rng(0))
    assert isinstance(placement, Preferred)
    found: list[list[int]] = placement.order.tolist()
    return found


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Jobs that run on some of the machines, or are too wide for some."""
    count = draw(st.integers(1, 12))
    times = st.sampled_from([1.0, 2.0, 3.0, INF])
    run_s = [[draw(times) for _ in MACHINES] for _ in range(count)]
    for row in run_s:
        row[draw(st.sampled_from([0, 2, 3]))] = 2.0
    procs = [draw(st.integers(1, 4)) for _ in range(count)]
    uses_gpu = [draw(st.booleans()) for _ in range(count)]
    vector = [[draw(st.sampled_from([0.2, 0.5, 1.0])) for _ in MACHINES] for _ in range(count)]
    return workload(run_s, procs=procs, uses_gpu=uses_gpu, vector=vector)


@given(workloads())
@pytest.mark.parametrize("name", ["round-robin", "random", "user"])
def test_a_job_is_bound_to_a_machine_on_which_it_runs(name: str, of: Workload) -> None:
    assert of.runs_on[np.arange(len(of)), bound(name, of)].all()


@given(workloads())
@pytest.mark.parametrize("name", ["model", "exact"])
def test_a_list_has_each_machine_on_which_a_job_runs_once(name: str, of: Workload) -> None:
    for listed, runs in zip(order(name, of), of.runs_on, strict=True):
        known = [place for place in listed if place >= 0]
        assert sorted(known) == np.flatnonzero(runs).tolist()
        assert listed[len(known) :] == [-1] * (len(listed) - len(known))


@given(workloads())
def test_a_list_is_sorted_by_the_predicted_or_the_true_times(of: Workload) -> None:
    assert of.vector is not None
    for name, time in (("model", of.vector), ("exact", of.jobs.run_s)):
        for listed, row in zip(order(name, of), time, strict=True):
            times = [row[place] for place in listed if place >= 0]
            assert times == sorted(times)


@given(workloads())
@pytest.mark.parametrize("name", ["completion", "exact-completion"])
def test_a_completion_has_times_where_a_job_runs_only(name: str, of: Workload) -> None:
    placement = PLACEMENTS[name](of, np.random.default_rng(0))
    assert isinstance(placement, Completion)
    time = of.predicted_s if name == "completion" else of.jobs.run_s
    assert time is not None
    np.testing.assert_array_equal(placement.predicted_s, np.where(of.runs_on, time, INF))


def test_machines_take_turns_whatever_the_jobs_are() -> None:
    assert bound("round-robin", workload([[1.0] * 4] * 6)) == [0, 1, 2, 3, 0, 1]
    # A job that does not run on its turn goes to the next machine that does.
    assert bound("round-robin", workload([[1.0] * 4, [1.0, INF, INF, 1.0]])) == [0, 3]
    assert bound("round-robin", workload([[1.0] * 4, [1.0] * 4], procs=[1, 3])) == [0, 2]


def test_chance_takes_each_machine_about_as_often_and_one_seed_the_same() -> None:
    of = workload(np.where(np.arange(4) == 1, INF, np.ones((3000, 4))))
    first = bound("random", of, 5)
    assert first == bound("random", of, 5)
    assert first != bound("random", of, 6)
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


def test_a_list_begins_with_the_machine_of_the_least_time_of_equal_ones_the_first() -> None:
    of = workload([[4.0, 3.0, 2.0, 1.0]], vector=[[0.5, 0.25, 1.0, 0.75]])
    assert order("model", of) == [[1, 0, 3, 2]]
    assert order("exact", of) == [[3, 2, 1, 0]]
    assert order("exact", workload([[2.0, 1.0, 1.0, 2.0]])) == [[1, 2, 0, 3]]


def test_near_lists_have_no_machine_that_takes_more_than_twice_the_least_time() -> None:
    of = workload(
        [[4.0, 2.0, 1.0, 1.5]] * 2, procs=[1, 3], vector=[[0.2, 0.4, 1.0, 0.41], [0.5, 0.1, 0.9, 1.0]]
    )
    assert order("model-near", of) == [[0, 1, -1, -1], [0, 2, 3, -1]]
    assert order("exact-near", of) == [[2, 3, 1, -1], [2, 3, -1, -1]]


@given(workloads())
def test_a_near_list_is_the_beginning_of_the_whole_one(of: Workload) -> None:
    for name in ("model", "exact"):
        for near, whole in zip(order(f"{name}-near", of), order(name, of), strict=True):
            known = [place for place in near if place >= 0]
            assert known
            assert whole[: len(known)] == known


@pytest.mark.parametrize("name", ["model", "model-near", "completion"])
def test_a_prediction_that_is_missing_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"placement: {name}: expected jobs with predicted"):
        PLACEMENTS[name](workload([[1.0] * 4]), np.random.default_rng(0))


def test_a_job_that_is_wider_than_every_machine_on_which_it_runs_is_refused() -> None:
    with pytest.raises(InputError, match=r"jobs: job 2: .* its 3 processors, found none of a \(4\), b \(2\)"):
        workload([[1.0] * 4, [INF, 1.0, INF, INF]], procs=[1, 3])
