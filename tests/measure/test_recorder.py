"""Regions as programs write them, on the host and on a queue; their counters, sensors and powers."""

import errno
import logging
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import crosscast
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.host_state import Counters, CounterValue
from crosscast.measure.opencl import devices
from crosscast.measure.regions import History, RegionKey, RegionRun
from crosscast.measure.regions.recorder import Metering, metering_of
from support.measuring import FakePerf, SteadySensor

SLOW, FAST = Configuration("node", {"core_clock_hz": 1e9}), Configuration("node", {"core_clock_hz": 2e9})


class ListChooser:
    """Chooses what a list says, and notes what it is told."""

    def __init__(self, *choices: Configuration | None) -> None:
        self.choices = list(choices)
        self.asked: list[RegionKey] = []
        self.told: list[RegionRun] = []

    def configuration(self, key: RegionKey) -> Configuration | None:
        self.asked.append(key)
        return self.choices.pop(0)

    def observed(self, key: RegionKey, run: RegionRun) -> None:
        assert key == run.key
        self.told.append(run)


pytestmark = pytest.mark.usefixtures("own_process")


def test_a_block_is_recorded_with_its_time_and_energy() -> None:
    times = iter([9.0, 10.0, 12.0])
    metering = Metering([SteadySensor(30.0, 5.0, clock=lambda: next(times))])
    with crosscast.profiled("stencil", arguments=(np.zeros((4, 4)), 64), sensors=metering) as run:
        assert run.recorded is None
    assert (run.key.name, run.key.arguments) == ("stencil", ("float64[4x4]", "64"))
    recorded = run.recorded
    assert recorded is not None and recorded.metered_s is not None
    assert run.history.runs(run.key) == (recorded,)
    assert 0 < recorded.duration_s <= recorded.metered_s < 10
    assert recorded.energy_j == {"package-0": 60.0, "package-1": 10.0}
    assert recorded.power_w == pytest.approx(70 / recorded.metered_s)
    assert recorded.powers_w["package-0"] == pytest.approx(60 / recorded.metered_s)
    assert recorded.failure is None
    with crosscast.profiled("a", sensors="none") as run:
        pass
    assert run.recorded is not None
    assert (run.recorded.metered_s, run.recorded.power_w, dict(run.recorded.energy_j)) == (None, None, {})


def test_places_tell_runs_apart_and_name_no_files() -> None:
    with crosscast.profiled("a") as one:
        pass
    with ExitStack() as stack:
        two = stack.enter_context(crosscast.profiled("a"))
    function = test_places_tell_runs_apart_and_name_no_files
    line = function.__code__.co_firstlineno
    sites = [f"{__name__}.{function.__name__}:{line + offset}" for offset in (1, 4)]
    assert [*one.key.site, *two.key.site] == sites


def test_each_call_of_a_decorated_function_is_a_run_and_a_wrong_one_is_none() -> None:
    history = History()

    @crosscast.profiled("scale", history=history)
    def scale(values: Any, factor: int = 2, *, label: str = "x") -> Any:
        """Multiply."""
        return values * factor

    assert scale.__doc__ == "Multiply."
    for _ in range(3):
        assert scale(np.ones(2)).tolist() == [2, 2]
    call: Callable[..., Any] = scale
    with pytest.raises(TypeError, match="missing a required argument: 'values'"):
        call()
    scale(np.ones(2), factor=2)
    scale(np.ones(2), 3)
    scale(np.ones(3))
    found: dict[tuple[str, ...], int] = {}
    for key in history.keys("scale"):
        found[key.arguments] = found.get(key.arguments, 0) + len(history.runs(key))
    assert found == {("float64[2]", "2", "x"): 4, ("float64[2]", "3", "x"): 1, ("float64[3]", "2", "x"): 1}


def test_functions_that_run_in_turns_with_others_are_refused() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def coroutine() -> None: ...

    async def both() -> AsyncIterator[int]:
        yield 1

    functions: list[Callable[..., Any]] = [generator, coroutine, both]
    for function in functions:
        with pytest.raises(InputError, match=rf"found the coroutine or generator .*{function.__name__}: pro"):
            crosscast.profiled("a")(function)


def test_threads_leave_a_region_that_they_share_each_their_own_run() -> None:
    region = crosscast.profiled("a", history=History())
    all_inside = threading.Barrier(3)

    def work(number: int) -> bool:
        with region as run:
            all_inside.wait()
            time.sleep(0.01 * number)  # The first to enter need not be the first to leave.
        return run.recorded is not None

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, range(3))) == [True] * 3
    assert len({run.started_s for run in region.history.runs(region.history.keys()[0])}) == 3


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_exceptions_pass_and_their_run_is_no_sample(kind: type[BaseException]) -> None:
    chooser, history = ListChooser(SLOW, SLOW), History()
    metering = Metering([SteadySensor(1.0)])

    @crosscast.profiled("call", history=history, selector=chooser, sensors=metering)
    def call() -> None:
        raise kind

    with pytest.raises(kind):
        call()
    with pytest.raises(kind), crosscast.profiled("b", history=history, selector=chooser, sensors=metering):
        raise kind
    for name in ("call", "b"):
        (key,) = history.keys(name)
        assert not history.runs(key)
        (run,) = history.runs(key, failed=True)
        assert (run.failure, run.power_w) == (kind.__name__, None)
    assert (len(chooser.asked), chooser.told) == (2, [])


def test_a_configuration_is_applied_when_it_or_the_function_is_another_one() -> None:
    applied: list[Configuration | None] = []
    chooser = ListChooser(None, SLOW, SLOW, FAST, None, None)
    for _ in range(6):
        with crosscast.profiled("a", selector=chooser, apply=applied.append, sensors="none"):
            pass
    assert applied == [None, SLOW, FAST, None]
    knobs: tuple[list[Configuration | None], ...] = ([], [])
    for knob in (*knobs, *knobs):
        with crosscast.profiled("a", configuration=SLOW, apply=knob.append, sensors="none") as run:
            assert run.configuration == SLOW
        assert run.history.runs(run.key, SLOW)[-1] == run.recorded
    assert knobs == ([SLOW, SLOW], [SLOW, SLOW])


@pytest.mark.parametrize("configuration", [None, SLOW])
def test_what_cannot_be_applied_is_tried_again(configuration: Configuration | None) -> None:
    tries: list[Configuration | None] = []
    history = History()

    def apply(configuration: Configuration | None) -> None:
        tries.append(configuration)
        if len(tries) < 3:
            raise PermissionError("only root may")

    for number in range(4):
        with ExitStack() as stack:
            if number < 2:
                stack.enter_context(pytest.raises(PermissionError))
            with crosscast.profiled("a", configuration=configuration, apply=apply, history=history):
                pass
        assert len(history) == max(number - 1, 0)
    assert tries == [configuration] * 3


def test_a_sensor_that_fails_costs_its_energy_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    good, bad = SteadySensor(1.0), SteadySensor(2.0)
    bad.domains = ("gpu",)
    metering, chooser = Metering([bad, good]), ListChooser(*[None] * 5)
    with caplog.at_level(logging.WARNING, "crosscast"):
        for number in range(5):
            with crosscast.profiled("a", selector=chooser, sensors=metering):
                # In the middle of the second run.
                bad.fails = number >= 1
                good.fails = number >= 3
    one = {"package-0"}
    assert [set(run.energy_j) for run in chooser.told] == [{"gpu"} | one, one, one, set(), set()]
    assert [run.power_w is None for run in chooser.told] == [False, True, True, True, True]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "regions have no energy of gpu from now on",
        "regions have no energy of package-0 from now on",
    ]


def test_a_selector_without_any_sensor_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    chooser = ListChooser(None, None)
    with caplog.at_level(logging.WARNING, "crosscast"):
        with crosscast.profiled("a", sensors=Metering([])):
            pass
        metering = Metering([], ["rapl: this machine shows no energy counters"])
        for _ in range(2):
            with crosscast.profiled("a", selector=chooser, sensors=metering):
                pass
    assert [record.getMessage() for record in caplog.records] == [
        "no sensor tells the power of regions, so no configuration can be chosen by it: "
        "rapl: this machine shows no energy counters"
    ]
    assert [run.power_w for run in chooser.told] == [None] * 2


def test_counters_are_recorded_where_the_machine_has_them() -> None:
    with crosscast.profiled("a", counters=("task_clock_s", "page_faults")) as run:
        sum(range(100_000))
    assert run.recorded is not None
    counters = run.recorded.counters
    assert counters.keys() <= {"task_clock_s", "page_faults"}
    assert counters.get("task_clock_s", 1) > 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ({"name": ""}, "name: expected a text, found ''"),
        ({"name": print}, "name: expected a text, found <built-in function print>"),
        ({"arguments": np.zeros(3)}, "arguments of a: expected a tuple of them, found one of type ndarray"),
        (
            {"selector": ListChooser(), "configuration": SLOW},
            "expected a selector or a configuration, found bo",
        ),
        ({"counters": "cycles"}, "counters: expected a list of names, found 'cycles'"),
        ({"counters": ["flops"]}, "counters: expected some of cycles, .*, found 'flops'"),
        # This at entry.
        ({"sensors": "watts"}, "found 'watts'"),
    ],
)
def test_a_wrong_argument_is_named(words: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint), crosscast.profiled(**({"name": "a"} | words)):
        pass


# Launches


SOURCE = """
kernel void add(global int *a, int b) { a[get_global_id(0)] += b; }
kernel void spin(global int *a, int n) { for (int i = 0; i < n; i++) a[0] = a[0] * 3 + i; }
"""


class Device:
    """A queue, kernels and a buffer of 64 whole numbers."""

    def __init__(self, profiling: bool) -> None:
        handle = devices()[0].handle
        self.context = cl.Context([handle])
        wanted: Any = cl.command_queue_properties.PROFILING_ENABLE if profiling else 0
        self.queue = cl.CommandQueue(self.context, handle, properties=wanted)
        program = cl.Program(self.context, SOURCE).build()
        self.add, self.spin = cl.Kernel(program, "add"), cl.Kernel(program, "spin")
        self.buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 256)
        cl.enqueue_fill_buffer(self.queue, self.buffer, np.zeros(1, np.int32), 0, 256)

    def values(self) -> list[int]:
        found = np.empty(64, np.int32)
        cl.enqueue_copy(self.queue, found, self.buffer)
        return [int(value) for value in found]


@pytest.fixture(scope="module", params=[True, False], ids=["profiling", "no profiling"])
def device(request: pytest.FixtureRequest) -> Device:
    return Device(request.param)


def one_run(history: History, name: str) -> RegionRun:
    (key,) = history.keys(name)
    (run,) = history.runs(key)
    return run


def test_a_launch_runs_the_kernel_and_is_recorded_and_all_else_goes_to_the_queue(device: Device) -> None:
    queue = crosscast.ProfiledQueue(
        device.queue, history=History(), sensors=Metering([SteadySensor(7.0, clock=count().__next__)])
    )
    before = device.values()
    event = queue.launch(device.add, (64,), (16,), device.buffer, np.int32(5))
    assert event.command_execution_status == cl.command_execution_status.COMPLETE
    assert device.values() == [value + 5 for value in before]
    run = one_run(queue.history, "add")
    assert run.key.arguments == ("(64)", "(16)", "Buffer[256 B]", "int32 5")
    assert run.key.site[0].startswith(f"{__name__}.test_a_launch_runs")
    assert run.energy_j == {"package-0": 7.0}
    assert run.metered_s is not None
    assert 0 < run.duration_s <= run.metered_s
    assert run.power_w == pytest.approx(7 / run.metered_s)
    assert (queue.device, queue.queue) == (device.queue.device, device.queue)
    with pytest.raises(AttributeError, match="no_such_thing"):
        queue.no_such_thing()


def test_times_are_those_of_the_kernel_and_not_of_what_was_enqueued_before(device: Device) -> None:
    queue = crosscast.ProfiledQueue(device.queue, history=History(), sensors="none")
    # So long that a small launch is shorter on a busy machine too.
    device.spin(device.queue, (1,), None, device.buffer, np.int32(100_000_000))
    queue.launch(device.add, (64,), None, device.buffer, np.int32(1))
    event = queue.launch(device.spin, (1,), None, device.buffer, np.int32(100_000_000))
    long = one_run(queue.history, "spin")
    assert one_run(queue.history, "add").duration_s < long.duration_s / 2
    if device.queue.properties & cl.command_queue_properties.PROFILING_ENABLE:
        assert long.duration_s == pytest.approx((event.profile.end - event.profile.start) * 1e-9)


def test_sizes_and_arguments_tell_launches_apart_and_one_that_does_not_fit_has_failed(device: Device) -> None:
    queue = crosscast.ProfiledQueue(device.queue, history=History(), sensors="none")
    group = (16,)
    launches = [(64, group, 1), (32, group, 1), (64, (8,), 1), (64, None, 1), (64, group, 2), (64, group, 1)]
    for size, local, value in launches:
        queue.launch(device.add, (size,), local, device.buffer, np.int32(value))
    assert [len(queue.history.runs(key)) for key in queue.history.keys("add")] == [2, 1, 1, 1, 1]
    with pytest.raises(cl.LogicError):
        queue.launch(device.spin, (64,), (1 << 20,), device.buffer, np.int32(1))
    (key,) = queue.history.keys("spin")
    assert [run.failure for run in queue.history.runs(key, failed=True)] == ["LogicError"]


# Counters, sensors, and the power that runs tell together


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
