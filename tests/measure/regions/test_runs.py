"""What a program can read of its runs."""

import pytest
from made_runs import run_of

from crosscast.configuration import Configuration
from crosscast.measure.regions.key import RegionKey, Runs

A, B = RegionKey("a"), RegionKey("b", ("3",))
SLOW, FAST = Configuration("node", {"core_clock_hz": 1e9}), Configuration("node", {"core_clock_hz": 2e9})


def test_runs_are_found_by_key_and_configuration() -> None:
    runs = Runs()
    one, two = run_of(A, configuration=SLOW), run_of(A, configuration=FAST)
    for run in (one, run_of(B), two):
        runs.add(run)
    assert (len(runs), runs.keys(), runs.keys("b")) == (3, (A, B), (B,))
    assert runs.runs(A) == (one, two)
    assert runs.runs(A, FAST) == (two,)
    assert runs.last(A) == two


def test_a_run_that_failed_is_no_sample() -> None:
    runs = Runs()
    runs.add(run_of(A, 1.0))
    failed = run_of(A, 99.0, failure="ValueError", power_w=1.0, metered_s=1.0)
    runs.add(failed)
    assert (runs.mean_time_s(A), runs.mean_power_w(A), runs.last(A)) == (1.0, None, run_of(A, 1.0))
    assert runs.runs(A, failed=True)[-1] == failed


def test_means_are_over_what_is_known() -> None:
    runs = Runs()
    runs.add(run_of(A, 1.0, power_w=100.0, metered_s=1.0))
    runs.add(run_of(A, 3.0, power_w=20.0, metered_s=3.0))
    runs.add(run_of(A, 2.0, configuration=FAST))
    assert runs.mean_time_s(A) == 2.0
    assert runs.mean_power_w(A) == pytest.approx(40)
    assert (runs.mean_time_s(A, FAST), runs.mean_power_w(A, FAST)) == (2.0, None)


def test_a_key_without_runs_has_no_means() -> None:
    runs = Runs()
    assert (runs.runs(A), runs.last(A), runs.mean_time_s(A), runs.mean_power_w(A)) == ((), None, None, None)


def test_only_the_last_runs_and_keys_are_kept_if_so_asked() -> None:
    runs = Runs(kept=2, keys=2)
    for time_s in (1.0, 2.0, 3.0):
        runs.add(run_of(A, time_s))
    assert runs.mean_time_s(A) == 2.5
    runs.add(run_of(B))
    runs.add(run_of(RegionKey("c")))
    assert runs.keys() == (B, RegionKey("c"))
