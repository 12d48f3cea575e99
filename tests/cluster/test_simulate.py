"""Simulated schedules: equal to a plain simulator's, and held to the laws of queues."""

import copy
import ctypes
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from crosscast.cluster import Bound, Completion, Jobs, Machine, Policy, Preferred, Schedule, simulator
from crosscast.cluster.simulate import load_simulator, simulate
from crosscast.cluster.simulator import engine, is_jit_cached, jit_cached, planning
from crosscast.cluster.simulator.engine import advance, choices_of
from crosscast.errors import InputError, MissingExtraError
from support.brute_force import Plain
from support.cluster import Case, jobs_of, made_case
from support.examples import one_in
from support.refusals import refusal, refusals

ONE = [Machine("one", 4)]


def simulated(case: Case) -> Schedule:
    return simulate(case.jobs, case.machines, policy=case.policy, placement=case.placement)


def assert_as_plain(case: Case, seed: int) -> None:
    plain = Plain(case.jobs, case.machines, case.policy, case.placement).simulate()
    schedule, jobs = simulated(case), range(len(case.jobs))
    columns = (schedule.machine, schedule.start_s, schedule.end_s)
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    assert found == [(plain.runs[job].machine, plain.runs[job].start, plain.runs[job].end) for job in jobs], (
        seed
    )
    reserved = [plain.reserved.get(job, np.nan) for job in jobs]
    np.testing.assert_array_equal(schedule.reserved_s, reserved, str(seed))


@pytest.mark.parametrize("first", one_in(8, range(0, 2000, 250)))
def test_schedules_equal_those_of_a_plain_simulator(first: int) -> None:
    for seed in range(first, first + 250):
        assert_as_plain(made_case(seed), seed)


def test_long_queues_equal_those_of_a_plain_simulator() -> None:
    # Deep enough for trees with several levels.
    for seed in range(12):
        case = made_case(seed, most_jobs=150)
        jobs = replace(case.jobs, submit_s=np.floor(case.jobs.submit_s / 50))
        assert_as_plain(replace(case, jobs=jobs), seed)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("failure", [None, RuntimeError("no compiled object")])
def test_an_interrupt_in_a_callback_is_raised_and_failures_as_they_are(
    error: type[BaseException], failure: Exception | None
) -> None:
    hook = sys.unraisablehook

    def interrupted() -> None:
        raise error

    with pytest.raises(error), simulator.interruptible():
        ctypes.CFUNCTYPE(None)(interrupted)()
        if failure is not None:
            raise failure
    with pytest.raises(RuntimeError, match="no compiled object"), simulator.interruptible():
        raise RuntimeError("no compiled object")
    assert sys.unraisablehook is hook


JOBS = jobs_of((0, 4, 1), (0, 5, 1), (0, 1, 1))
TWO = [Machine("left", 4), Machine("right", 8)]


PLACEMENTS: dict[str, Any] = {"bound": Bound, "preferred": Preferred, "completion": Completion}


@refusals("sizes kind cells message")
def test_what_cannot_be_simulated_is_refused(sizes: list[int], kind: str, cells: Any, message: str) -> None:
    machines = [Machine(f"m{size}", size) for size in sizes]
    placement = PLACEMENTS[kind](np.array(cells)) if kind else None
    assert message in refusal(simulate, JOBS, machines, placement=placement)


@pytest.mark.parametrize(
    ("columns", "policy", "message"),
    [
        (3, Policy(), "jobs: run_s: expected times on 1 or 2 machines, found 3"),
        (1, Policy("fcfs", "best"), "policy: backfill: expected one of fcfs, "),  # type: ignore[arg-type]
        (1, Policy(None), "policy: queue: expected one of fcfs, "),  # type: ignore[arg-type]
    ],
)
def test_times_of_other_machines_and_unknown_orders_are_refused(
    columns: int, policy: Policy, message: str
) -> None:
    jobs = replace(JOBS, run_s=np.ones((3, columns)))
    said = refusal(simulate, jobs, TWO, policy=policy, placement=Bound(np.ones(3, np.int64)))
    assert said.startswith(message)


def test_a_job_does_not_start_where_it_does_not_run() -> None:
    run_s = np.array([[np.inf, 1.0]])
    jobs = Jobs(np.array([7]), np.zeros(1), np.ones(1, np.int64), run_s, np.ones((1, 1)))
    assert simulate(jobs, TWO, placement=Preferred(np.array([[0, 1]]))).machine.tolist() == [1]
    assert simulate(jobs, TWO, placement=Completion(np.array([[1.0, 9.0]]))).machine.tolist() == [1]
    with pytest.raises(InputError, match=r"job 7: expected .* on which it runs, found none .*bound to left"):
        simulate(jobs, TWO, placement=Bound(np.array([0])))


def test_without_numba_one_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("crosscast.cluster.simulator")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'crosscast\[cluster\]'"):
        simulate(jobs_of((0, 1, 1)), ONE)


def twice(number: int) -> int:
    return 2 * number


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_it_is_kept_with_other_things_that_are(cache: Path) -> None:
    first = jit_cached(twice)
    # Its own setting is left alone.
    assert numba.config.CACHE_DIR == ""  # type: ignore[attr-defined]
    assert not is_jit_cached(first)
    assert first(4) == 8
    assert is_jit_cached(first)
    assert len([*cache.glob("crosscast/simulator/*/*/*.nbi")]) == 1
    # The next process finds it there.
    again = jit_cached(twice)
    assert is_jit_cached(again)
    assert again(4) == 8
    assert not again.stats.cache_misses  # type: ignore[attr-defined]


def test_where_nothing_can_be_written_it_compiles_too(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    def without_folder(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    njit = numba.njit
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    assert jit_cached(twice)(4) == 8
    monkeypatch.setattr(simulator._NUMBA, "njit", without_folder)
    function = jit_cached(twice)
    assert not is_jit_cached(function)
    assert function(4) == 8


MADE = jobs_of(*[(job, *row) for job, row in enumerate([(3, 4), (4, 2), (1, 3), (1, 9), (2, 0), (3, 5)])])


def test_a_simulation_that_pauses_is_the_same_and_changes_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    before, whole = copy.deepcopy(MADE), simulate(MADE, ONE)
    monkeypatch.setattr(engine, "_POINTS", 1)
    told: list[str] = []
    paused = simulate(MADE, ONE, progress=told.append)
    np.testing.assert_array_equal(paused.start_s, whole.start_s)
    assert told[0] == "1 of 6 jobs have been submitted"
    assert told[-1] == "6 of 6 jobs have been submitted"
    for name, array in vars(before).items():
        np.testing.assert_array_equal(getattr(MADE, name), array)


# Compiling the simulator of plans takes most of a minute.
@pytest.mark.parametrize("conservative", one_in(2, [False, True]))
def test_few_jobs_are_the_same_without_compiling(monkeypatch: pytest.MonkeyPatch, conservative: bool) -> None:
    cases = [case for case in map(made_case, range(60)) if isinstance(case.placement, Bound)]
    policies = [Policy(conservative=True)] if conservative else [Policy("shortest"), Policy(backfill=None)]
    runs = [replace(case, policy=policy) for case in cases for policy in policies]
    load_simulator(10**6, policies)
    schedules = list(map(simulated, runs))
    monkeypatch.setattr(simulator, "is_jit_cached", lambda _: False)
    for module, name in ((engine, "advance"), (planning, "advance_plan")):
        function = getattr(module, name)
        assert simulator.suited(function, 10, 10, None) is not function
        assert simulator.suited(function, 11, 10, None) is function
    for first, second in zip(schedules, map(simulated, runs), strict=True):
        for name in ("start_s", "end_s", "reserved_s", "machine"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_it_is_compiled_once_for_all_kinds_of_arrays() -> None:
    simulate(MADE, ONE)
    signatures = list(advance.signatures)  # type: ignore[attr-defined]
    read_only = MADE.submit_s.copy()
    read_only.flags.writeable = False
    whole = np.broadcast_to(np.array([[3]]), (6, 1))
    for jobs in (
        replace(MADE, submit_s=read_only),
        replace(MADE, submit_s=np.arange(12.0)[::2]),
        replace(MADE, run_s=whole, estimate_s=whole),
        replace(MADE, procs=np.ones(6, np.int32)),
        replace(MADE, run_s=np.asfortranarray(np.ones((6, 1), np.float32))),
    ):
        simulate(jobs, ONE)
    assert list(advance.signatures) == signatures  # type: ignore[attr-defined]


def test_trees_stay_balanced_as_jobs_come_and_go() -> None:
    # Jobs of one width wait behind a wide head; every second one is short enough to pass it.
    count = 10_000
    jobs = jobs_of((0, 1, 5e5), (0, 2, 1), *[(0, 1, 1 if job % 2 else 1e6) for job in range(2, count)])
    machines, procs = [Machine("one", 2)], jobs.procs
    placement = choices_of(jobs, machines, Bound(np.zeros(count, np.int64)))
    state = engine._start_state(jobs, machines, Policy(), placement)
    rank = getattr(simulator._rank, "py_func", simulator._rank)
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
