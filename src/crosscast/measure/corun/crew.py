"""Runs mixes on a device: processes that stay ready, and how they share it."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import msgspec

from crosscast.errors import InputError, UnsupportedError
from crosscast.measure import host_state
from crosscast.measure.corun.mix_run import (
    CoRunnerProcess,
    CoRunnerRun,
    CoRunSettings,
    MixRun,
    hear_all,
    measure_mix,
)
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.processes import Report
from crosscast.measure.sensors import open_sensor
from crosscast.measure.subjects import Subject


@dataclass(frozen=True)
class Work:
    """Jobs of one application: a job is a number of its runs."""

    subject: Subject  # What runs
    runs: int | None = None  # Runs in a job; `None` for the fewest that take `CoRunSettings.round_s` alone

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise InputError(f"runs: expected at least 1, found {self.runs}")


class MixRunner(Protocol):
    """Measures mixes on one device, as `crosscast.measure.corun.crew.Crew` does."""

    def run(self, works: Sequence[Work], /) -> MixRun:
        """Measure a mix; a mix of one is a solo run."""


_FOLDER = "CUDA_MPS_PIPE_DIRECTORY"
_DEFAULT_FOLDER = "/tmp/nvidia-mps"
_CONTROL = "control"


def sharing(
    device: str, threads: int | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, str | int]:
    """How processes share a device, and what each is limited to: settings for the configuration of a mix.

    On NVIDIA, kernels of several processes run at the same time only through the Multi-Process Service
    (MPS); else the processes take turns. Elsewhere there is one way, of which nothing need be said.
    """
    limits: dict[str, str | int] = {} if threads is None else {"threads": threads}
    if not device.startswith("nvidia:"):
        return limits
    folder = Path(environment.get(_FOLDER) or _DEFAULT_FOLDER)
    return {"sharing": "mps" if mps_runs(folder) else "time-slicing", **limits}


def mps_runs(folder: Path) -> bool:
    """Whether a control daemon of MPS listens in a folder; nothing is asked of it."""
    control = folder / _CONTROL
    try:
        mode = control.stat().st_mode
        if stat.S_ISSOCK(mode):
            return _accepts(control)
        return stat.S_ISFIFO(mode) and _is_read(control)
    except OSError:
        return False


def _accepts(path: Path) -> bool:
    """Whether anybody listens on a socket, which one that was left behind does not."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as client:
            client.settimeout(1.0)
            try:
                client.connect(str(path))
            except OSError as error:
                if error.errno == errno.EPROTOTYPE:
                    continue
                # Somebody else's, or busy: it is there.
                return error.errno in (errno.EACCES, errno.EPERM, errno.EAGAIN)
            return True
    return False


def _is_read(path: Path) -> bool:
    """Whether anybody has a pipe open for reading."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM)
    return True


_MOST = 32
_SHARE_OF_MEMORY = 0.5
"""What processes may take together before those that wait are ended."""
_THREADS = ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT")
"""Variables that limit PoCL's threads: up to version 4, and since."""
_KEY = tuple[str, int]


class Crew:
    """Runs mixes; every application of a mix has a process of its own.

    Processes stay ready for later mixes with the same applications. Those that were not needed for longest
    end when there are too many, or when they take more than half of the memory. Ends all at the end of its
    ``with`` block.
    """

    def __init__(
        self, device: OpenCLDevice, settings: CoRunSettings | None = None, *, most: int = _MOST
    ) -> None:
        self.device = device
        self.settings = settings or CoRunSettings()
        self._most = most
        self._limits = _limits(device, self.settings.threads)
        self._sensor = open_sensor(self.settings.sensor, device.type, device.pci_bus_id)
        self._members: dict[_KEY, CoRunnerProcess] = {}
        self._counted: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self._end(list(self._members))

    @property
    def sharing(self) -> dict[str, str | int]:
        """How the device is shared now, and what each application is limited to."""
        return sharing(self.device.id, self.settings.threads)

    def run(self, works: Sequence[Work], report: Report = lambda runs, elapsed_s: None) -> MixRun:
        """Measure a mix; a mix of one is a solo run."""
        if not works:
            raise InputError("works: expected a co-runner at least, found none")
        with ExitStack() as undo:
            # Whoever interrupts a mix leaves its co-runners in the middle of something.
            undo.callback(self.close)
            mix = self._run(works, report)
            undo.pop_all()
        return mix

    def _run(self, works: Sequence[Work], report: Report) -> MixRun:
        keys = _keys(works)
        co_runners = self._ready(keys, works)
        runs = self._runs(keys, works, co_runners)
        if any(co_runner.failure for co_runner in co_runners):
            mix = MixRun(
                tuple(
                    CoRunnerRun(number, memory_bytes=co_runner.memory_bytes, failure=co_runner.failure)
                    for co_runner, number in zip(co_runners, runs, strict=True)
                ),
                sharing=self.sharing,
            )
        else:
            counted = [number for number in runs if number is not None]
            mix = measure_mix(co_runners, counted, self._sensor, self.settings, self.sharing, report)
        self._end(key for key in keys if self._members[key].failure)
        self._end_idle(keys)
        return mix

    def _ready(self, keys: Sequence[_KEY], works: Sequence[Work]) -> list[CoRunnerProcess]:
        """Members that are ready or have failed, which are the most recent ones from now on."""
        co_runners = self._started(keys, works)
        if self.device.type != "cpu" and any(co_runner.failure for co_runner in co_runners):
            # Those that wait hold memory of the device, for want of which these may have failed.
            self._end([key for key in self._members if key not in keys])
            self._end([key for key in keys if self._members[key].failure])
            co_runners = self._started(keys, works)
        return co_runners

    def _started(self, keys: Sequence[_KEY], works: Sequence[Work]) -> list[CoRunnerProcess]:
        environment = {**os.environ, **self._limits}
        for key, work in zip(keys, works, strict=True):
            if key in self._members and not self._members[key].process.runs:
                self._end([key])
            co_runner = self._members.pop(key, None)
            self._members[key] = co_runner or CoRunnerProcess(
                work.subject, self.device.id, self.settings, environment
            )
        co_runners = [self._members[key] for key in keys]
        hear_all(co_runners, self.settings.timeout_s)
        for co_runner in co_runners:
            co_runner.begin()
        return co_runners

    def _runs(
        self, keys: Sequence[_KEY], works: Sequence[Work], co_runners: Sequence[CoRunnerProcess]
    ) -> list[int | None]:
        """Runs in a job of each co-runner: counted, one after another, where they are not given."""
        for (subject, _), work, co_runner in zip(keys, works, co_runners, strict=True):
            if work.runs is None and subject not in self._counted and co_runner.failure is None:
                co_runner.order("count", seconds=self.settings.round_s)
                hear_all([co_runner], self.settings.timeout_s)
                if co_runner.failure is None:
                    self._counted[subject] = int(co_runner.answer)
        return [
            work.runs or self._counted.get(subject) for (subject, _), work in zip(keys, works, strict=True)
        ]

    def _end_idle(self, needed: Sequence[_KEY]) -> None:
        for key in list(self._members):
            if key not in needed and (len(self._members) > self._most or self._is_full()):
                self._end([key])

    def _is_full(self) -> bool:
        """Whether processes take so much memory that none should be kept for later."""
        here = sum(_resident_bytes(co_runner.process.pid) for co_runner in self._members.values())
        there = sum(co_runner.memory_bytes or 0 for co_runner in self._members.values())
        most_here = host_state.memory_bytes()
        most_there = int(self.device.handle.global_mem_size)
        too_much_here = most_here is not None and here > _SHARE_OF_MEMORY * most_here
        return too_much_here or there > _SHARE_OF_MEMORY * most_there

    def _end(self, keys: Iterable[_KEY]) -> None:
        for key in list(keys):
            self._members.pop(key).process.end()


def _limits(device: OpenCLDevice, threads: int | None) -> Mapping[str, str]:
    """Variables for the environment that limit the threads of a device."""
    if threads is None:
        return {}
    if not device.id.startswith("pocl:") or device.type != "cpu" or "/" in device.id:
        raise UnsupportedError(
            f"threads: expected a CPU device of PoCL, whose threads can be limited, found {device.id!r}"
        )
    if threads > device.compute_units:
        raise InputError(f"threads: expected at most {device.compute_units} ({device.id}), found {threads}")
    return dict.fromkeys(_THREADS, str(threads))


def _keys(works: Sequence[Work]) -> list[_KEY]:
    """What tells co-runners apart: their subject, and their number among those of the same subject."""
    keys: list[_KEY] = []
    for work in works:
        subject = msgspec.json.encode(work.subject, order="deterministic").decode()
        keys.append((subject, sum(known == subject for known, _ in keys)))
    return keys


def _resident_bytes(process: int) -> int:
    """Memory that a process takes now; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
