"""Placements: to which machine each job goes, and that it can run there."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.cluster.jobs import Machine
from crosscast.cluster.placements import PLACEMENTS, Workload, without_choice
from crosscast.errors import InputError
from support.cluster import jobs_of
from support.examples import examples
from support.refusals import refusal

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


def test_what_cannot_be_placed_is_refused() -> None:
    for name in ("model", "model-near", "completion"):
        said = refusal(placed, name, workload([[1.0] * 4]))
        assert said.startswith(f"placement: {name}: expected jobs with predicted")
    with pytest.raises(InputError, match=r"jobs: job 2: .* its 3 processors, found none of a \(4\), b \(2\)"):
        workload([[1.0] * 4, [INF, 1.0, INF, INF]], procs=[1, 3])
