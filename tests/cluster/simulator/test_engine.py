"""The engine: compiled once, the same interpreted, and free to pause at any point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosscast.cluster.jobs import Bound, Jobs, Machine, Policy
from crosscast.cluster.simulate import simulate
from crosscast.cluster.simulator import engine
from crosscast.cluster.simulator import queues as trees
from crosscast.cluster.simulator.engine import advance, choices_of

TIMES = np.array([[4.0], [2.0], [3.0], [9.0], [0.0], [5.0]])
JOBS = Jobs(np.arange(6), np.arange(6.0), np.array([3, 4, 1, 1, 2, 3]), TIMES, TIMES + 1)
MACHINES = [Machine("one", 4)]

INTERPRETED = """
import json, sys
from made_jobs import made_case
from crosscast.cluster.simulate import simulate
starts = []
for seed in range(150):
    case = made_case(seed)
    schedule = simulate(case.jobs, case.machines, policy=case.policy, placement=case.placement)
    starts.append(schedule.start_s.tolist())
json.dump(starts, sys.stdout)
"""


def starts_in_another_process(**variables: str) -> list[list[float]]:
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", INTERPRETED], env=environment, capture_output=True, text=True, check=True
    )
    starts: list[list[float]] = json.loads(done.stdout)
    return starts


def test_interpreted_it_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1])
    from made_jobs import made_case

    starts = []
    for seed in range(150):
        case = made_case(seed)
        schedule = simulate(case.jobs, case.machines, policy=case.policy, placement=case.placement)
        starts.append(schedule.start_s.tolist())
    assert starts_in_another_process(NUMBA_DISABLE_JIT="1") == starts


def test_a_simulation_that_pauses_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = simulate(JOBS, MACHINES)
    monkeypatch.setattr(engine, "_POINTS", 1)
    told: list[str] = []
    paused = simulate(JOBS, MACHINES, progress=told.append)
    np.testing.assert_array_equal(paused.start_s, whole.start_s)
    assert told[0] == "1 of 6 jobs have been submitted"
    assert told[-1] == "6 of 6 jobs have been submitted"


def test_a_person_is_told_that_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate(JOBS, MACHINES)
    told: list[str] = []
    simulate(JOBS, MACHINES, progress=told.append)
    assert not told
    monkeypatch.setattr(engine, "is_kept", lambda _: False)
    simulate(JOBS, MACHINES, progress=told.append)
    assert told == ["compiling the simulator: this is done once, and takes some seconds"]


def test_it_is_compiled_once_for_all_kinds_of_arrays() -> None:
    simulate(JOBS, MACHINES)
    signatures = list(advance.signatures)  # type: ignore[attr-defined]
    read_only = JOBS.submit_s.copy()
    read_only.flags.writeable = False
    whole = np.broadcast_to(np.array([[3]]), (6, 1))
    for jobs in (
        replace(JOBS, submit_s=read_only),
        replace(JOBS, submit_s=np.arange(12.0)[::2]),
        replace(JOBS, run_s=whole, estimate_s=whole),
        replace(JOBS, procs=np.ones(6, np.int32)),
        replace(JOBS, run_s=np.asfortranarray(np.ones((6, 1), np.float32))),
    ):
        simulate(jobs, MACHINES)
    assert list(advance.signatures) == signatures  # type: ignore[attr-defined]


def test_trees_stay_balanced_as_jobs_come_and_go() -> None:
    # Jobs of one width wait behind a wide head; every second one is short enough to pass it.
    count = 10_000
    seconds = np.where(np.arange(count) % 2, 1.0, 1e6)
    seconds[0] = 5e5
    procs = np.where(np.arange(count) == 1, 2, 1)
    jobs = Jobs(np.arange(count), np.zeros(count), procs, seconds[:, None], seconds[:, None])
    machines = [Machine("one", 2)]
    placement = choices_of(jobs, machines, Bound(np.zeros(count, np.int64)))
    state = engine._start_state(jobs, machines, Policy(), placement)
    rank = getattr(trees._rank, "py_func", trees._rank)
    for steps in (1, count // 4, count // 4 - 2):
        advance(state, steps)
        waiting = int(((state.machine < 0) & (procs == 1)).sum())
        below = [(int(state.trees.roots[0]), 1)]
        levels = []
        while below:
            node, level = below.pop()
            levels.append(level)
            for child in (int(state.trees.left[node]), int(state.trees.right[node])):
                if child >= 0:
                    assert rank(node) > rank(child)
                    below.append((child, level + 1))
        assert len(levels) == waiting
        assert max(levels) < 4 * np.log2(waiting)


def test_jobs_are_left_as_they_were() -> None:
    before = [JOBS.submit_s.copy(), JOBS.procs.copy(), JOBS.run_s.copy(), JOBS.estimate_s.copy()]
    simulate(JOBS, MACHINES)
    for array, old in zip((JOBS.submit_s, JOBS.procs, JOBS.run_s, JOBS.estimate_s), before, strict=True):
        np.testing.assert_array_equal(array, old)
