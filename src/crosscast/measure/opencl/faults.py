"""What OpenCL's errors mean, in Crosscast's exceptions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crosscast.errors import CrosscastError, DeviceFault, LaunchError
from crosscast.measure.opencl.library import cl

__all__ = ["opencl_faults"]

_STATUS = cl.status_code
_LAUNCH = frozenset(
    {
        _STATUS.INVALID_KERNEL_ARGS,
        _STATUS.INVALID_ARG_INDEX,
        _STATUS.INVALID_ARG_VALUE,
        _STATUS.INVALID_ARG_SIZE,
        _STATUS.INVALID_WORK_DIMENSION,
        _STATUS.INVALID_WORK_GROUP_SIZE,
        _STATUS.INVALID_WORK_ITEM_SIZE,
        _STATUS.INVALID_GLOBAL_WORK_SIZE,
        _STATUS.INVALID_GLOBAL_OFFSET,
        _STATUS.INVALID_KERNEL_NAME,
    }
)
_MEMORY = frozenset(
    {
        _STATUS.MEM_OBJECT_ALLOCATION_FAILURE,
        _STATUS.OUT_OF_RESOURCES,
        _STATUS.OUT_OF_HOST_MEMORY,
        _STATUS.INVALID_BUFFER_SIZE,
    }
)


@contextmanager
def opencl_faults(device: str, what: str) -> Iterator[None]:
    """Turn errors of OpenCL into Crosscast's.

    Parameters
    ----------
    device
        Id of the device.
    what
        What is done on it, for the message.

    Raises
    ------
    LaunchError
        If a launch does not fit its kernel or the device.
    DeviceFault
        If the device has not enough memory, failed, or was lost.
    """
    try:
        yield
    except cl.Error as error:
        raise _translated(error, device, what) from error


def _translated(error: cl.Error, device: str, what: str) -> CrosscastError:
    reason = " ".join(str(error).split())
    if error.code in _LAUNCH:
        return LaunchError(f"{what} on {device}: the launch does not fit the kernel or the device ({reason})")
    if error.code in _MEMORY:
        return DeviceFault(f"{what} on {device}: the device has not enough memory or resources ({reason})")
    return DeviceFault(f"{what} on {device}: the device failed or was lost ({reason})")
