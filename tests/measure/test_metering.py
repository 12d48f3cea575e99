"""What regions read: CPU counters, sensors, and the power that runs tell together."""

import errno
import random
from itertools import count
from pathlib import Path

import pytest

import crosscast
from crosscast.measure.host_state import Counters, CounterValue
from crosscast.measure.regions.history import RegionKey
from crosscast.measure.regions.recorder import Metering, metering_of
from support.measuring import FakePerf, SteadySensor

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


def test_what_was_counted_between_two_readings_is_told_by_event_unless_counters_were_all_taken() -> None:
    counting = Counters(perf=stepping(), events=["instructions", "cache_misses"]).__enter__()
    before = counting.so_far()
    assert before.keys() == {"instructions"}
    threads = len(before["instructions"])
    # Each thread's counter went on by as many steps as there are threads, and counts half of the time.
    assert counting.since(before) == {"instructions": 2 * 10 * threads**2}
    counting = Counters(perf=stepping(), events=["cycles"], threads=[1]).__enter__()
    ((now,),) = counting.so_far().values()
    still = CounterValue(now.value + 10, now.enabled_ns, now.running_ns + 100)
    assert not counting.since({"cycles": [still]})


def test_sensors_of_a_name_are_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "energy.csv"
    path.write_text("domain,time_s,energy_j\ngpu,0,0\ngpu,100,100\n")
    metering = metering_of(f"replay:{path}")
    assert metering_of(f"replay:{path}") is metering is metering_of(metering)
    assert metering.wholes == ["gpu"]


class Pool:
    """Runs of a key, of which the power is asked."""

    def __init__(self, resolution_s: float) -> None:
        self.metering = Metering([SteadySensor(1.0, resolution_s=resolution_s)])
        self.metering._last_j.clear()  # Ends its thread.

    def add(self, time_s: float, **energy_j: float) -> dict[str, float]:
        return dict(self.metering.powers_w((RegionKey("a"), None), time_s, energy_j))


@pytest.mark.parametrize(("share", "runs"), [(2000, 1), (9, 1), (8, 2), (4, 5), (1, 67)])
def test_short_runs_have_a_power_after_as_many_as_make_its_error_5_percent(share: float, runs: int) -> None:
    pool = Pool(0.001)
    # What stands still never tells 0 W.
    found = [pool.add(share * 0.001, cpu=1.0, dram=0.0) for _ in range(runs)]
    assert found == [{}] * (runs - 1) + [{"cpu": pytest.approx(1000 / share)}]
    assert Pool(0.0).add(0.0, cpu=1.0) == {}


@pytest.mark.parametrize("run_s", [0.0003, 0.001, 0.005, 0.02])
def test_the_power_is_as_near_as_is_said(run_s: float) -> None:
    """A counter in steps of a millisecond that draws 80 W, read by runs with pauses of any length."""
    random.seed(3)
    pool = Pool(0.001)
    now_s = 0.0
    found: list[float] = []
    while len(found) < 200:
        now_s += random.random()
        steps = int((now_s + run_s) / 0.001) - int(now_s / 0.001)
        now_s += run_s
        found += pool.add(run_s, cpu=80.0 * steps * 0.001).values()
    errors = [power_w / 80 - 1 for power_w in found]
    assert abs(sum(errors) / len(errors)) < 0.012
    assert (sum(error**2 for error in errors) / len(errors)) ** 0.5 < 0.06


def test_runs_before_a_sensor_failed_are_not_mixed_with_those_after() -> None:
    pool = Pool(0.1)
    assert pool.add(0.8, cpu=800.0, gpu=800.0) == {}
    assert pool.add(0.8, cpu=8.0) == {}
    assert pool.add(0.8, cpu=8.0)["cpu"] == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("powers_w", "total"),
    [
        ({"package-0": 1.0, "package-1": 2.0}, 3.0),
        ({"psys": 9.0, "package-0": 1.0}, 9.0),
        ({"package-0": 1.0, "package-0/dram": 5.0, "gpu": 4.0}, 5.0),
        ({"package-0": 1.0, "gpu": 0.0}, None),
    ],
)
def test_parts_are_not_added_to_what_they_are_parts_of(
    powers_w: dict[str, float], total: float | None
) -> None:
    sensor = SteadySensor(*powers_w.values(), clock=count().__next__)
    sensor.domains = tuple(powers_w)
    with crosscast.profiled("a", sensors=Metering([sensor])) as run:
        pass
    assert run.recorded is not None
    assert run.recorded.energy_j == powers_w
    assert run.recorded.power_w == (total and pytest.approx(total / (run.recorded.metered_s or 0)))
