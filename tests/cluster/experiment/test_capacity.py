"""The least work of machines: a linear program, compared with all ways to share jobs out."""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster.experiment import least_makespan_s, least_work_s, mean_of
from crosscast.cluster.jobs import Jobs, Machine
from crosscast.cluster.placements import Workload
from crosscast.errors import MissingExtraError

INF = np.inf


def types_of(run_s: list[list[float]], procs: list[int], sizes: list[int]) -> Workload:
    times = np.array(run_s)
    jobs = Jobs(np.arange(1, len(times) + 1), np.zeros(len(times)), np.array(procs), times, times)
    machines = tuple(Machine(f"m{place}", size) for place, size in enumerate(sizes))
    return Workload(jobs, machines, np.zeros(len(times), dtype=np.bool_))


def test_two_machines_by_hand() -> None:
    # 12 jobs of 6 s or 3 s on one processor each: 4 on the first and 8 on the second are done in 24 s.
    types = types_of([[6.0, 3.0]], [1], [1, 1])
    assert least_work_s(types, np.array([12])) == pytest.approx(24)
    # With 2 processors, the first takes half of its time: 6 jobs on each.
    assert least_work_s(types_of([[6.0, 3.0]], [1], [2, 1]), np.array([12])) == pytest.approx(18)


def test_a_job_that_runs_on_one_machine_only_is_done_there() -> None:
    types = types_of([[INF, 5.0], [1.0, 1.0]], [1, 1], [4, 1])
    assert least_work_s(types, np.array([3, 4])) == pytest.approx(15)


def test_the_longest_job_cannot_be_cut() -> None:
    types = types_of([[100.0, 90.0], [1.0, 1.0]], [1, 1], [50, 50])
    assert least_work_s(types, np.array([1, 1])) < 2
    assert least_makespan_s(types, np.array([1, 1])) == 90
    assert least_makespan_s(types, np.array([0, 1])) == 1


def test_no_time_is_no_work() -> None:
    assert least_work_s(types_of([[0.0]], [1], [2]), np.array([5])) == 0


@given(
    st.lists(st.tuples(*[st.integers(1, 9)] * 3, st.integers(1, 2)), min_size=1, max_size=5),
    st.lists(st.integers(2, 4), min_size=3, max_size=3),
)
def test_no_way_to_share_whole_jobs_out_has_less_work(
    jobs: list[tuple[int, int, int, int]], sizes: list[int]
) -> None:
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
