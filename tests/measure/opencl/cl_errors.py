"""Errors of OpenCL, as its library raises them."""

import pyopencl as cl


def cl_error(code: int, routine: str = "clFinish", kind: type[Exception] = cl.RuntimeError) -> Exception:
    """An error with a code of OpenCL."""
    return kind(cl._cl._ErrorRecord(msg="", code=code, routine=routine))
