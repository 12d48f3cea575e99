"""Getting an application ready to be measured: warm-ups, and a check of its result."""

from __future__ import annotations

from crosscast.errors import InputError
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.opencl.faults import opencl_faults
from crosscast.measure.opencl.queue import OpenCLQueue, RunTimes
from crosscast.measure.subjects import Loaded
from crosscast.suite.application import check_result

__all__ = ["expect_kernels", "warmed_up"]


def warmed_up(loaded: Loaded, device: OpenCLDevice, warmups: int) -> OpenCLQueue:
    """A queue on which an application ran, with a result that was right, and is spoiled since.

    Parameters
    ----------
    loaded
        What runs.
    device
        Where.
    warmups
        How often; once at least.

    Raises
    ------
    CheckFailed
        If the result is wrong.
    InputError
        If it launches other kernels than it says.
    CompileError
        If the device's compiler refuses the kernels.
    DeviceFault
        If the device fails.
    """
    queue = OpenCLQueue(device, loaded.program, loaded.application.arrays)
    with opencl_faults(device.id, loaded.name):
        for _ in range(max(warmups, 1)):
            expect_kernels(loaded, queue.timed(loaded.application.run))
    check_result(loaded.application)
    with opencl_faults(device.id, loaded.name):
        # Else the next check would pass with what the warm-up left.
        queue.spoil()
    return queue


def expect_kernels(loaded: Loaded, times: RunTimes) -> None:
    """Check that a run launched the kernels that its driver names.

    Raises
    ------
    InputError
        If it launched others.
    """
    launched, named = sorted(times.kernels_s), sorted(loaded.kernels)
    if launched != named or not named:
        raise InputError(
            f"{loaded.name}: expected each run to launch the kernels that its driver names "
            f"({', '.join(named) or 'none'}), found {', '.join(launched) or 'none'}"
        )
