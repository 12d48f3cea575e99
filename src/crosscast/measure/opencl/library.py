"""pyopencl, or the sentence that says how to get it."""

from __future__ import annotations

from crosscast.errors import MissingExtraError

try:
    import pyopencl as cl
except ImportError as error:
    raise MissingExtraError("opencl", "measuring on OpenCL devices") from error

__all__ = ["cl"]
