"""What regions read: background threads, counters, meters, and the power that runs tell together."""

import errno
import logging
import os
import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from crosscast.errors import InputError
from crosscast.measure.cpu_counters import CounterValue
from crosscast.measure.regions.metering import (
    Metering,
    OpenCounters,
    Pool,
    counters_of,
    difference,
    metering_of,
    total_w,
)
from support.measuring import FORKS, FakePerf, SteadyMeter
from support.refusals import refusal

pytestmark = pytest.mark.usefixtures("own_process")


def stepping() -> FakePerf:
    """Counters that run half of the time, and go on by a step at each reading; cache events are not there."""
    steps = count(1)

    def answer(event: int, thread: int) -> CounterValue:
        now = next(steps)
        return CounterValue(10 * now, 200 * now, 100 * now)

    perf = FakePerf(answer, dict.fromkeys(((0, 2), (0, 3)), errno.ENOENT))
    perf.enable = lambda descriptor: None  # type: ignore[method-assign]
    return perf


def test_what_was_counted_between_two_readings_is_told_by_event() -> None:
    counting = OpenCounters(["instructions", "cache_misses"], stepping())
    before, after = counting.read(), counting.read()
    assert before.keys() == {"instructions"}
    threads = len(before["instructions"])
    # Each thread's counter went on by as many steps as there are threads, and counts half of the time.
    assert difference(before, after) == {"instructions": 2 * 10 * threads**2}


def test_counters_that_were_all_taken_are_absent() -> None:
    before, after = {"cycles": [CounterValue(5, 100, 50)]}, {"cycles": [CounterValue(5, 300, 50)]}
    assert not difference(before, after)


def test_an_unknown_counter_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"counters: expected some of cycles, .*, found 'flops'"):
        counters_of(("cycles", "flops"))


def test_counters_that_somebody_closed_are_said_once_and_absent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def closed(descriptor: int) -> CounterValue:
        raise OSError(9, "Bad file descriptor")

    perf = stepping()
    counting = OpenCounters(["cycles"], perf)
    before = counting.read()
    monkeypatch.setattr(perf, "read", closed)
    with caplog.at_level(logging.WARNING, "crosscast"):
        assert not difference(before, counting.read())
        assert not difference(counting.read(), counting.read())
    assert [record.getMessage() for record in caplog.records] == [
        "regions have no CPU counters from now on: Bad file descriptor"
    ]


def test_meters_of_a_name_are_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "energy.csv"
    path.write_text("domain,time_s,energy_j\ngpu,0,0\ngpu,100,100\n")
    metering = metering_of(f"replay:{path}")
    assert metering_of(f"replay:{path}") is metering
    assert metering_of(metering) is metering
    assert metering.domains == ("gpu",)


@FORKS
def test_a_forked_process_opens_its_own() -> None:
    metering = metering_of("none")
    child = os.fork()
    if child == 0:
        os._exit(1 if metering_of("none") is metering else 0)
    assert os.waitpid(child, 0)[1] == 0


def test_a_name_that_is_none_is_refused_each_time() -> None:
    for _ in range(2):
        assert "found 'watts'" in refusal(metering_of, "watts")


def pool_of(resolution_s: float, meters: int = 1) -> tuple[Pool, Metering]:
    metering = Metering([SteadyMeter(1.0, resolution_s=resolution_s) for _ in range(meters)])
    return Pool(metering), metering


def test_a_list_of_names_is_refused_in_a_sentence() -> None:
    names: Any = ["rapl", "nvml"]
    told = refusal(metering_of, names)
    expected = "the name of a sensor, auto for all that work, or a sensor with read_j() and domains"
    assert told == f"sensors: expected {expected}, found list"


def test_a_long_run_has_its_own_power() -> None:
    pool, _ = pool_of(0.001)
    assert pool.add(2.0, ((100.0,),)) == {"package-0": 50.0}
    assert pool.add(1.0, ((100.0,),)) == {"package-0": 100.0}


@pytest.mark.parametrize(("share", "runs"), [(9, 1), (8, 2), (4, 5), (1, 67)])
def test_short_runs_have_it_after_as_many_as_make_the_error_5_percent(share: float, runs: int) -> None:
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
        ({"psys": 9.0, "package-0": 1.0}, None, 9.0),
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
