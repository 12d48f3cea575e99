"""Kernels on PoCL, in a process of their own: whatever they do ends there."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import numpy as np

from crosscast.kernel import Argument, Launch, Local, Program

_LIMIT_S = 60.0


class NativeError(Exception):
    """PoCL refused a program, failed on it, or took too long."""


class NativeRuns:
    """Runs launches on PoCL; ends one that takes longer than its limit, and starts anew after a crash."""

    def __init__(self, limit_s: float = _LIMIT_S) -> None:
        self._limit_s = limit_s
        self._cache = tempfile.TemporaryDirectory(prefix="crosscast-pocl-")
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()
        self._cache.cleanup()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._cache.name), daemon=True)
        self._process.start()
        theirs.close()

    def builds(self, program: Program) -> bool:
        """Whether PoCL builds a program."""
        try:
            self._ask(program)
        except NativeError:
            return False
        return True

    def _ask(self, program: Program, *launch: Any) -> Any:
        """Answer of the process to one request; a new process takes its place where there is none."""
        self._connection.send((program.content.decode(errors="replace"), program.options, *launch))
        answered = False
        try:
            if not self._connection.poll(self._limit_s):
                raise NativeError(f"did not end within {self._limit_s:g} s")
            answer = self._connection.recv()
            answered = True
        except (EOFError, ConnectionError) as error:
            raise NativeError("PoCL crashed") from error
        finally:
            if not answered:
                self._process.kill()
                self._process.join()
                self._start()
        if isinstance(answer, str):
            raise NativeError(answer)
        return answer

    def run(self, launch: Launch) -> None:
        """Run a launch, whose arrays hold the output afterwards; `NativeError` if PoCL does not."""
        program = launch.kernel.program
        answer = self._ask(
            *(program, launch.kernel.name, launch.global_size, launch.local_size, launch.args),
        )
        arrays = [a for a in launch.args if isinstance(a, np.ndarray)]
        for array, content in zip(arrays, answer, strict=True):
            array[...] = content


def _serve(connection: Connection, cache: str) -> None:
    os.environ |= {"POCL_CACHE_DIR": cache, "PYOPENCL_NO_CACHE": "1", "PYOPENCL_COMPILER_OUTPUT": "0"}
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    import pyopencl as cl

    from crosscast.measure.opencl import devices

    device = devices()[0].handle
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    built: dict[Any, Any] = {}
    while True:
        source, options, *launch = connection.recv()
        key = (source, tuple(options))
        try:
            if key not in built:
                built.clear()
                built[key] = cl.Program(context, source).build(list(options))
            connection.send(_run(cl, queue, built[key], *launch) if launch else [])
        except (cl.Error, ValueError, TypeError) as error:
            connection.send(f"{type(error).__name__}: {str(error)[:2000]}")


def _run(
    cl: Any,
    queue: Any,
    program: Any,
    name: str,
    global_size: Sequence[int],
    local_size: Sequence[int],
    args: Sequence[Argument],
) -> list[Any]:
    kernel, context = cl.Kernel(program, name), queue.context
    buffers = []
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    for position, argument in enumerate(args):
        if isinstance(argument, np.ndarray):
            buffers.append((argument, cl.Buffer(context, flags, hostbuf=argument)))
            kernel.set_arg(position, buffers[-1][1])
        elif isinstance(argument, Local):
            kernel.set_arg(position, cl.LocalMemory(argument.nbytes))
        else:
            kernel.set_arg(
                position, np.frombuffer(argument, np.uint8) if isinstance(argument, bytes) else argument
            )
    cl.enqueue_nd_range_kernel(queue, kernel, global_size, local_size)
    found = []
    for array, buffer in buffers:
        content = np.empty_like(array)
        cl.enqueue_copy(queue, content, buffer)
        found.append(content)
    return found
