"""Launches as regions, on a real device."""

from itertools import count
from typing import Any

import numpy as np
import pyopencl as cl
import pytest

import crosscast
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.measure.opencl import devices
from crosscast.measure.regions.history import History, RegionKey, RegionRun
from crosscast.measure.regions.recorder import Metering
from support.measuring import SteadySensor

SOURCE = """
kernel void add(global int *a, int b) { a[get_global_id(0)] += b; }
kernel void spin(global int *a, int n) { for (int i = 0; i < n; i++) a[0] = a[0] * 3 + i; }
"""
SLOW = Configuration("node", {"core_clock_hz": 1e9})


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


def test_a_launch_runs_the_kernel_and_is_recorded(device: Device) -> None:
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


def test_times_are_those_of_the_kernel_and_grow_with_its_work(device: Device) -> None:
    queue = crosscast.ProfiledQueue(device.queue, history=History(), sensors="none")
    for steps in (1_000, 100_000_000):
        event = queue.launch(device.spin, (1,), None, device.buffer, np.int32(steps))
    (short,), (long,) = (queue.history.runs(key) for key in queue.history.keys("spin"))
    # Ten thousand times the work; on a busy machine the short one mostly waits.
    assert long.duration_s > 2 * short.duration_s
    if device.queue.properties & cl.command_queue_properties.PROFILING_ENABLE:
        assert long.duration_s == pytest.approx((event.profile.end - event.profile.start) * 1e-9)


def test_work_that_was_enqueued_before_is_not_counted(device: Device) -> None:
    queue = crosscast.ProfiledQueue(device.queue, history=History(), sensors="none")
    # So long that a small launch is shorter on a busy machine too.
    device.spin(device.queue, (1,), None, device.buffer, np.int32(100_000_000))
    queue.launch(device.add, (64,), None, device.buffer, np.int32(1))
    queue.launch(device.spin, (1,), None, device.buffer, np.int32(100_000_000))
    assert one_run(queue.history, "add").duration_s < one_run(queue.history, "spin").duration_s / 2


def test_sizes_and_arguments_tell_launches_apart(device: Device) -> None:
    queue = crosscast.ProfiledQueue(device.queue, history=History(), sensors="none")
    launches: list[tuple[int, tuple[int] | None, int]] = [
        (64, (16,), 1),
        (32, (16,), 1),
        (64, (8,), 1),
        (64, None, 1),
        (64, (16,), 2),
        (64, (16,), 1),
    ]
    for size, group, value in launches:
        queue.launch(device.add, (size,), group, device.buffer, np.int32(value))
    counts = [len(queue.history.runs(key)) for key in queue.history.keys("add")]
    assert counts == [2, 1, 1, 1, 1]


def test_a_launch_that_does_not_fit_is_pyopencls_own_error_and_a_run_that_failed(device: Device) -> None:
    queue = crosscast.ProfiledQueue(device.queue, history=History(), sensors="none")
    with pytest.raises(cl.LogicError):
        queue.launch(device.add, (64,), (1 << 20,), device.buffer, np.int32(1))
    (key,) = queue.history.keys()
    assert [run.failure for run in queue.history.runs(key, failed=True)] == ["LogicError"]


def test_everything_else_goes_to_the_queue(device: Device) -> None:
    queue = crosscast.ProfiledQueue(device.queue)
    queue.finish()
    assert queue.device == device.queue.device
    assert queue.queue is device.queue
    with pytest.raises(AttributeError, match="no_such_thing"):
        queue.no_such_thing()


def test_a_selector_chooses_for_each_launch(device: Device) -> None:
    class Chooser:
        told: list[RegionRun] = []  # noqa: RUF012

        def configuration(self, key: RegionKey) -> Configuration | None:
            return SLOW if key.name == "add" else None

        def observed(self, key: RegionKey, run: RegionRun) -> None:
            self.told.append(run)

    applied: list[Any] = []
    words: dict[str, Any] = {
        "history": History(),
        "sensors": Metering([SteadySensor(7.0, clock=count().__next__)]),
    }
    queue = crosscast.ProfiledQueue(device.queue, selector=Chooser(), apply=applied.append, **words)
    for kernel in (device.add, device.add, device.spin):
        queue.launch(kernel, (1,), None, device.buffer, np.int32(1))
    assert applied == [SLOW, None]
    assert [run.configuration for run in Chooser.told] == [SLOW, SLOW, None]
    with pytest.raises(InputError, match="expected a selector or a configuration"):
        crosscast.ProfiledQueue(device.queue, selector=Chooser(), configuration=SLOW)
