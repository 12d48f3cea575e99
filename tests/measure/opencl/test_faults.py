"""What OpenCL's errors become."""

import pyopencl as cl
import pytest
from cl_errors import cl_error

from crosscast.errors import DeviceFault, LaunchError
from crosscast.measure.opencl import opencl_faults


@pytest.mark.parametrize(
    ("code", "kind", "reason"),
    [
        (cl.status_code.DEVICE_NOT_AVAILABLE, DeviceFault, "the device failed or was lost"),
        (-9999, DeviceFault, "the device failed or was lost"),
        (cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, DeviceFault, "not enough memory"),
        (cl.status_code.OUT_OF_RESOURCES, DeviceFault, "not enough memory"),
        (cl.status_code.INVALID_WORK_GROUP_SIZE, LaunchError, "does not fit the kernel"),
        (cl.status_code.INVALID_KERNEL_ARGS, LaunchError, "does not fit the kernel"),
    ],
)
def test_an_error_becomes_a_sentence_with_device_and_work(code: int, kind: type, reason: str) -> None:
    with pytest.raises(kind) as caught, opencl_faults("pocl:0", "lud"):
        raise cl_error(code)
    assert str(caught.value).startswith("lud on pocl:0: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), opencl_faults("pocl:0", "lud"):
        raise ZeroDivisionError
