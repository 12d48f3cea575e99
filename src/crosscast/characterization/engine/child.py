"""Run a kernel in a child process, so that whatever it does ends there.

Parent and child share files in memory: the kernel's library, a page for progress and faults, the
results, what the kernel prints, and the buffers.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.characterization.engine.arguments import Memory
from crosscast.characterization.engine.faults import Fault, explain
from crosscast.characterization.engine.job import describe_job, group_counts
from crosscast.characterization.engine.print_records import printed
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.characterization.options import MOST_THREADS, Options, Progress
from crosscast.errors import EnvironmentFault, KernelFault, KernelTimeout
from crosscast.kernel import Launch

__all__ = ["RunResult", "run_in_child"]

_WORKER = Path(__file__).with_name("worker.py")
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.05
_REPORT_S = 0.2
_STATUS_WORDS = 16
_WORDS_A_THREAD = 8
_STATUS_BYTES = 8 * (_STATUS_WORDS + _WORDS_A_THREAD * MOST_THREADS)
_FAULT, _RUN_NS, _REDUCE_NS, _OVERFLOW, _CPU_NS = 1, 11, 12, 13, 14
"""Words of the status page."""


@dataclass(frozen=True)
class RunResult:
    """What a run left.

    Parameters
    ----------
    words
        Records of what was counted.
    run_s, cpu_s
        Seconds that running took, and that its threads computed, added up.
    reduce_s
        Seconds that adding up the counters took.
    printed
        What the kernel printed.
    overflow
        A counter may have overflowed.
    """

    words: npt.NDArray[np.uint64]
    run_s: float
    cpu_s: float
    reduce_s: float
    printed: str
    overflow: bool


def run_in_child(
    launch: Launch, memory: Memory, made: Instrumented, library: bytes, options: Options, threads: int
) -> RunResult:
    """Run a launch.

    Parameters
    ----------
    launch
        The launch.
    memory
        Its buffers and arguments; the buffers are changed.
    made
        The instrumented kernel.
    library
        Its machine code.
    options
        How to run.
    threads
        Threads that run work-groups.

    Raises
    ------
    KernelFault
        If the kernel fails, or takes too long.
    EnvironmentFault
        If the child cannot be started.
    """
    with (
        _memory_file("crosscast-kernel", library) as library_fd,
        _memory_file("crosscast-status", nbytes=_STATUS_BYTES) as status_fd,
        _memory_file("crosscast-result") as result_fd,
        _memory_file("crosscast-printf") as print_fd,
        mmap.mmap(status_fd, _STATUS_BYTES) as status,
    ):
        job = describe_job(launch, memory, made, threads)
        job |= {"library_fd": library_fd, "status_fd": status_fd}
        job["words"] |= {"result_fd": result_fd, "print_fd": print_fd}
        descriptors = [library_fd, status_fd, result_fd, print_fd, *(p.shared.fd for p in memory.placed)]
        code, errors = _execute(job, descriptors, _Watch(launch, options, threads, status))
        words = _read_status(status, _STATUS_WORDS)
        if code:
            raise _failure(code, errors, words, launch, memory, made)
        return RunResult(
            words=np.fromfile(f"/proc/self/fd/{result_fd}", np.uint64),
            run_s=words[_RUN_NS] / 1e9,
            cpu_s=words[_CPU_NS] / 1e9,
            reduce_s=words[_REDUCE_NS] / 1e9,
            printed=printed(Path(f"/proc/self/fd/{print_fd}").read_bytes(), made.lowering.print_calls),
            overflow=bool(words[_OVERFLOW]),
        )


@contextmanager
def _memory_file(name: str, content: bytes = b"", nbytes: int = 0) -> Iterator[int]:
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        if nbytes:
            os.truncate(fd, nbytes)
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        yield fd
    finally:
        os.close(fd)


def _read_status(status: mmap.mmap, count: int) -> list[int]:
    return [int(word) for word in np.frombuffer(status, np.uint64, count)]


@dataclass(frozen=True)
class _Watch:
    """Watches a child while it runs."""

    launch: Launch
    options: Options
    threads: int
    status: mmap.mmap

    def wait(self, child: subprocess.Popen[bytes]) -> None:
        """Wait for the child to end; report progress, and raise where it takes too long."""
        start = reported = time.perf_counter()
        pause = _SHORTEST_PAUSE_S
        while child.poll() is None:
            try:
                child.wait(pause)
            except subprocess.TimeoutExpired:
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            now = time.perf_counter()
            if now - start > self.options.timeout_s:
                raise KernelTimeout(
                    f"{self.launch.kernel.name}: did not end within {self.options.timeout_s:g} s "
                    "(the time limit)"
                )
            if self.options.progress and now - reported >= _REPORT_S:
                reported = now
                self.options.progress(self._progress(now - start))

    def _progress(self, elapsed_s: float) -> Progress:
        words = _read_status(self.status, _STATUS_WORDS + _WORDS_A_THREAD * self.threads)
        done = sum(words[_STATUS_WORDS::_WORDS_A_THREAD])
        return Progress(done, math.prod(group_counts(self.launch)), elapsed_s)


def _execute(job: dict[str, Any], descriptors: list[int], watch: _Watch) -> tuple[int, str]:
    """Start the child and wait for it; return its exit code and what it wrote to standard error."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=descriptors,
        start_new_session=True,
        env={},
    )
    assert child.stdin is not None
    assert child.stderr is not None
    try:
        child.stdin.write(json.dumps(job).encode())
        child.stdin.close()
        watch.wait(child)
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        errors = child.stderr.read().decode(errors="replace").strip()
        child.stderr.close()
    return child.returncode, errors


def _failure(
    code: int, errors: str, words: list[int], launch: Launch, memory: Memory, made: Instrumented
) -> KernelFault | EnvironmentFault:
    name = launch.kernel.name
    if words[_FAULT]:
        return KernelFault(explain(Fault.from_words(words), launch, memory, made))
    if code < 0:
        return KernelFault(f"{name}: the process that ran the kernel was killed by signal {-code}")
    detail = f": {errors.splitlines()[-1]}" if errors else ""
    return EnvironmentFault(f"{name}: the process that runs kernels failed to start (code {code}{detail})")
