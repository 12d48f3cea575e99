"""Power of runs that may be shorter than the counter's steps."""

import random

import pytest
from made_meters import SteadyMeter

from crosscast.measure.regions.history import Metering, Pool, total_w


def pool_of(resolution_s: float, meters: int = 1) -> tuple[Pool, Metering]:
    metering = Metering([SteadyMeter(1.0, resolution_s=resolution_s) for _ in range(meters)])
    return Pool(metering), metering


def test_a_long_run_has_its_own_power() -> None:
    pool, _ = pool_of(0.001)
    assert pool.add(2.0, ((100.0,),)) == {"package-0": 50.0}
    assert pool.add(1.0, ((100.0,),)) == {"package-0": 100.0}


@pytest.mark.parametrize(("share", "runs"), [(9, 1), (8, 2), (4, 5), (1, 67)])
def test_short_runs_have_it_after_as_many_as_bring_the_standard_error_to_5_percent(
    share: float, runs: int
) -> None:
    pool, _ = pool_of(0.001)
    found = [pool.add(share * 0.001, ((1.0,),)) for _ in range(runs)]
    assert found[:-1] == [None] * (runs - 1)
    assert found[-1] is not None
    assert found[-1]["package-0"] == pytest.approx(1000 / share)


@pytest.mark.parametrize("run_s", [0.0003, 0.001, 0.005, 0.02])
def test_the_power_is_as_near_as_is_said(run_s: float) -> None:
    """A counter in steps of a millisecond that draws 80 W, read by runs with pauses of any length."""
    random.seed(3)
    pool, _ = pool_of(0.001)
    now_s = 0.0
    found: list[float] = []
    while len(found) < 200:
        now_s += random.random()
        steps = int((now_s + run_s) / 0.001) - int(now_s / 0.001)
        now_s += run_s
        powers_w = pool.add(run_s, ((80.0 * steps * 0.001,),))
        if powers_w:
            found.append(powers_w["package-0"])
    errors = [power_w / 80 - 1 for power_w in found]
    assert abs(sum(errors) / len(errors)) < 0.012
    assert (sum(error**2 for error in errors) / len(errors)) ** 0.5 < 0.06


def test_a_meter_that_stands_still_is_given_up_and_never_tells_0_w() -> None:
    pool, metering = pool_of(0.001, meters=2)
    assert pool.add(0.09, ((0.0,), (5.0,))) is None
    assert metering.works
    assert pool.add(0.09, ((0.0,), (5.0,))) is None
    assert metering.reasons == ["steady: the counters stood still for 0.18 s"]
    assert metering.read()[0] is None
    assert metering.works
    assert pool.add(1.0, (None, (5.0,))) == {"package-0": 5.0}


def test_runs_before_a_meter_failed_are_not_mixed_with_those_after() -> None:
    pool, _ = pool_of(0.1, meters=2)
    assert pool.add(0.8, ((800.0,), (800.0,))) is None
    assert pool.add(0.8, (None, (8.0,))) is None
    found = pool.add(0.8, (None, (8.0,)))
    assert found is not None
    assert found["package-0"] == pytest.approx(10.0)


def test_a_run_of_no_time_has_no_power() -> None:
    pool, _ = pool_of(0.0)
    assert pool.add(0.0, ((1.0,),)) is None


@pytest.mark.parametrize(
    ("powers_w", "domains", "total"),
    [
        ({"package-0": 1.0, "package-1": 2.0}, None, 3.0),
        ({"psys": 9.0, "package-0": 1.0}, None, 1.0),
        ({"psys": 9.0}, None, 9.0),
        ({"package-0": 1.0, "package-0/dram": 5.0, "gpu": 4.0}, None, 5.0),
        ({"gpu": 4.0}, ["package-0", "gpu"], None),
        ({}, [], None),
    ],
)
def test_parts_are_not_added_to_what_they_are_parts_of(
    powers_w: dict[str, float], domains: list[str] | None, total: float | None
) -> None:
    assert total_w(powers_w, powers_w if domains is None else domains) == total
