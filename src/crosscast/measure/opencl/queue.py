"""A queue on an OpenCL device, which times every launch and every copy."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.errors import CompileError, LaunchError, UnsupportedError
from crosscast.kernel import Argument, Image, Local, Program, Sampler
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.opencl.faults import opencl_faults
from crosscast.measure.opencl.library import cl
from crosscast.suite.arguments import NO_BUFFER, expect_arguments

__all__ = ["OpenCLQueue", "RunTimes", "duration_s"]

_NS_PER_S = 1e9
_START, _END = cl.profiling_info.START, cl.profiling_info.END


class RunTimes(NamedTuple):
    """What one run of an application took.

    Parameters
    ----------
    kernels_s
        Time on the device of each invocation, by kernel, in order.
    transfer_s
        Time on the device of all copies.
    host_s
        Time on the host, from the first command to the end of the last.
    started_s
        When it started, in seconds since 1970-01-01 UTC.
    """

    kernels_s: dict[str, list[float]]
    transfer_s: float
    host_s: float
    started_s: float


class OpenCLQueue:
    """An in-order queue with profiling; arrays stand for buffers of their size.

    Parameters
    ----------
    device
        Where to run.
    program
        OpenCL C.
    arrays
        Arrays that stand for buffers, which must live as long as the queue.

    Raises
    ------
    UnsupportedError
        If the program is not OpenCL C.
    CompileError
        If the device's compiler refuses it.
    DeviceFault
        If the device has not enough memory.
    """

    def __init__(self, device: OpenCLDevice, program: Program, arrays: Sequence[npt.NDArray[Any]]) -> None:
        if program.form != "opencl-c":
            raise UnsupportedError(
                f"{program.label}: measuring needs OpenCL C, which the device's own compiler reads; "
                f"found {program.form}"
            )
        self._arrays = list(arrays)
        with opencl_faults(device.id, program.label):
            self._context = cl.Context([device.handle])
            profiling = cl.command_queue_properties.PROFILING_ENABLE
            self._queue = cl.CommandQueue(self._context, device.handle, properties=profiling)
            self._program = _built(self._context, device, program)
            self._buffers = _Buffers({id(array): self._buffer(array) for array in arrays})
        self._kernels: dict[str, Any] = {}
        self._launches: list[tuple[str, Any]] = []
        self._copies: list[Any] = []

    def write(self, *arrays: npt.NDArray[Any]) -> None:
        """Copy arrays to their buffers."""
        for array in arrays:
            self._copies.append(cl.enqueue_copy(self._queue, self._buffers[id(array)], array))

    def read(self, *arrays: npt.NDArray[Any]) -> None:
        """Copy buffers into their arrays."""
        for array in arrays:
            self._copies.append(cl.enqueue_copy(self._queue, array, self._buffers[id(array)]))

    def launch(
        self, kernel: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *args: Argument
    ) -> None:
        """Enqueue a launch."""
        entry = self._kernels.get(kernel)
        if entry is None:
            entry = self._kernels[kernel] = self._kernel(kernel)
        buffers = self._buffers
        try:
            given = [buffers.get(id(arg)) or _value(kernel, arg) for arg in args]
            self._launches.append((kernel, entry(self._queue, global_size, local_size, *given)))
        except TypeError:
            # What pyopencl and `_value` say of a wrong argument; looked at here, where time is not measured.
            expect_arguments(kernel, args, self._arrays, entry.num_args)
            raise

    def complete(self, run: Callable[[OpenCLQueue], None]) -> None:
        """Run something on this queue, and wait until it has ended.

        Errors of OpenCL are left to the caller's `opencl_faults`.
        """
        self._launches = []
        self._copies = []
        run(self)
        self._queue.finish()

    def timed(self, run: Callable[[OpenCLQueue], None]) -> RunTimes:
        """Run something on this queue and say what it took.

        Called in the measuring loop, so errors of OpenCL are left to the caller's `opencl_faults`.
        """
        launches = self._launches = []
        copies = self._copies = []
        started, start = time.time(), time.perf_counter()
        run(self)
        self._queue.finish()
        host = time.perf_counter() - start
        times: dict[str, list[float]] = {}
        for kernel, event in launches:
            times.setdefault(kernel, []).append(duration_s(event))
        return RunTimes(times, sum(map(duration_s, copies)), host, started)

    def spoil(self) -> None:
        """Fill all buffers with bytes that no run leaves behind, so that results must be made anew."""
        for buffer in self._buffers.values():
            cl.enqueue_fill_buffer(self._queue, buffer, np.full(1, 0xA5, np.uint8), 0, buffer.size)
        self._queue.finish()

    def _buffer(self, array: npt.NDArray[Any]) -> Any:
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(array.nbytes, 1))

    def _kernel(self, name: str) -> Any:
        try:
            return cl.Kernel(self._program, name)
        except cl.LogicError as error:
            there = ", ".join(kernel.function_name for kernel in self._program.all_kernels())
            raise LaunchError(f"kernel {name!r}: expected one of {there}") from error


class _Buffers(dict[int, Any]):
    """Buffers by the `id` of their array."""

    def __missing__(self, array: int) -> Any:
        raise LaunchError(NO_BUFFER)


def _built(context: Any, device: OpenCLDevice, program: Program) -> Any:
    options = [*program.options, f"-cl-std=CL{program.standard}"]
    with warnings.catch_warnings(), _include_folder(program) as folder:
        options += ["-I", folder] if folder else []
        # pyopencl warns of what a compiler says; it is in the error if it matters.
        warnings.simplefilter("ignore")
        try:
            return cl.Program(context, program.content.decode()).build(options, [device.handle])
        except cl.RuntimeError as error:
            log = _log(error)
            raise CompileError(f"{program.label}: the compiler of {device.id} refuses it: {log}") from error


@contextmanager
def _include_folder(program: Program) -> Iterator[str | None]:
    """Folder of the source, by a name that compilers take: options cannot hold spaces (PoCL)."""
    folder = None if program.path is None else str(program.path.parent.absolute())
    if folder is None or " " not in folder:
        yield folder
        return
    with TemporaryDirectory() as temporary:
        link = Path(temporary) / "include"
        link.symlink_to(folder)
        yield str(link)


def _log(error: Exception) -> str:
    """What the compiler says, in a line; pyopencl's copy of the source is removed."""
    text, _, saved = str(error).partition("\n(source saved as ")
    if saved:
        Path(saved.rstrip(")")).unlink(missing_ok=True)
    return " ".join(text.split())


def _value(kernel: str, arg: Argument) -> Any:
    if isinstance(arg, np.generic):
        return arg
    if isinstance(arg, Local):
        return cl.LocalMemory(arg.nbytes)
    if isinstance(arg, Image | Sampler):
        raise UnsupportedError(f"{kernel}: images and samplers are not measured")
    if isinstance(arg, bytes):
        return np.frombuffer(arg, np.uint8)
    if arg is not None:
        raise TypeError(type(arg))
    return arg


def duration_s(event: Any) -> float:
    """Time on the device of an event that has ended, of a queue with profiling, in seconds."""
    # Not through event.profile, which takes longer: this is in the measuring loop.
    ask = event.get_profiling_info
    return float((ask(_END) - ask(_START)) / _NS_PER_S)
