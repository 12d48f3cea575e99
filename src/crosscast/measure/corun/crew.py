"""Crews: processes of applications that stay ready, and the way in which they share a device."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Protocol

import msgspec

from crosscast.data.environment import memory_bytes
from crosscast.errors import InputError, UnsupportedError
from crosscast.measure.corun import (
    CoRunnerProcess,
    CoRunSettings,
    JobWork,
    Mixing,
    MixRun,
    await_answers,
    run_of,
)
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.processes import Report
from crosscast.measure.sensors import open_sensor


class MixRunner(Protocol):
    """Interface of `Crew`: measures mixes on one device."""

    def run(self, works: Sequence[JobWork], /) -> MixRun:
        """Measure a mix; a mix of one is an isolated run."""


_MPS_FOLDER, _DEFAULT_MPS_FOLDER = "CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"


def sharing(
    device: str, threads: int | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, str | int]:
    """Return the sharing of a device and the limits of processes: settings for the configuration of a mix.

    On NVIDIA, kernels of several processes run concurrently only through the Multi-Process Service (MPS);
    otherwise they are time-sliced. Other devices have one way of sharing, which is no setting.
    """
    limits: dict[str, str | int] = {} if threads is None else {"threads": threads}
    if not device.startswith("nvidia:"):
        return limits
    folder = Path(environment.get(_MPS_FOLDER) or _DEFAULT_MPS_FOLDER)
    return {"sharing": "mps" if mps_runs(folder) else "time-slicing", **limits}


def mps_runs(folder: Path) -> bool:
    """Whether a control daemon of MPS listens in a folder; no command is sent."""
    control = folder / "control"
    try:
        mode = control.stat().st_mode
        if stat.S_ISSOCK(mode):
            return _accepts(control)
        return stat.S_ISFIFO(mode) and _is_read(control)
    except OSError:
        return False


def _accepts(path: Path) -> bool:
    """Whether a process listens on a socket, which may be stale."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as client:
            client.settimeout(1.0)
            try:
                client.connect(str(path))
            except OSError as error:
                if error.errno == errno.EPROTOTYPE:
                    continue
                # Another user's, or busy: it listens.
                return error.errno in (errno.EACCES, errno.EPERM, errno.EAGAIN)
            return True
    return False


def _is_read(path: Path) -> bool:
    """Whether a process has a pipe open for reading."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM)
    return True


_MOST_PROCESSES = 32
_SHARE_OF_MEMORY = 0.5
"""Share of memory from which on idle processes are ended."""
_THREADS = ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT")
"""Environment variables that limit PoCL's threads: up to version 4, and since."""
_Key = tuple[str, int]


class Crew(AbstractContextManager["Crew"]):
    """Runs mixes, with a process for each application.

    Processes stay ready for later mixes with the same applications. The least recently used ones are ended if
    there are too many, or if they take more than half of the memory; all of them at the end of the ``with``
    block.
    """

    def __init__(self, device: OpenCLDevice, settings: CoRunSettings | None = None) -> None:
        self.device = device
        self.settings = settings or CoRunSettings()
        self._most = _MOST_PROCESSES
        self._limits = _limits(device, self.settings.threads)
        self._sensor = open_sensor(self.settings.sensor, device.type, device.pci_bus_id)
        self._processes: dict[_Key, CoRunnerProcess] = {}
        self._counted: dict[str, int] = {}

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self._end(list(self._processes))

    def run(self, works: Sequence[JobWork], report: Report = lambda runs, elapsed_s: None) -> MixRun:
        """Measure a mix; a mix of one is an isolated run."""
        if not works:
            raise InputError.of(field="works", expected="a co-runner at least", found="none")
        with ExitStack() as undo:
            # An interrupted mix leaves its co-runners in an unknown state.
            undo.callback(self.close)
            mix = self._run(works, report)
            undo.pop_all()
        return mix

    def _run(self, works: Sequence[JobWork], report: Report) -> MixRun:
        keys = _keys(works)
        co_runners = self._ready(keys, works)
        runs = self._runs(keys, works, co_runners)
        shared = sharing(self.device.id, self.settings.threads)
        if any(co_runner.failure for co_runner in co_runners):
            pairs = zip(co_runners, runs, strict=True)
            mix = MixRun(tuple(run_of(each, number, {}, None) for each, number in pairs), sharing=shared)
        else:
            counted = [number for number in runs if number is not None]
            mix = Mixing(co_runners, counted, self.settings).measured(self._sensor, shared, report)
        self._end(key for key in keys if self._processes[key].failure)
        self._end_idle(keys)
        return mix

    def _ready(self, keys: Sequence[_Key], works: Sequence[JobWork]) -> list[CoRunnerProcess]:
        """Return the processes, ready or failed, and mark them as most recently used."""
        co_runners = self._started(keys, works)
        if self.device.type != "cpu" and any(co_runner.failure for co_runner in co_runners):
            # Idle processes hold memory of the device, which these may have lacked.
            self._end([key for key in self._processes if key not in keys])
            self._end([key for key in keys if self._processes[key].failure])
            co_runners = self._started(keys, works)
        return co_runners

    def _started(self, keys: Sequence[_Key], works: Sequence[JobWork]) -> list[CoRunnerProcess]:
        environment = {**os.environ, **self._limits}
        for key, work in zip(keys, works, strict=True):
            if key in self._processes and not self._processes[key].process.runs:
                self._end([key])
            co_runner = self._processes.pop(key, None)
            self._processes[key] = co_runner or CoRunnerProcess(
                work.subject, self.device.id, self.settings, environment
            )
        co_runners = [self._processes[key] for key in keys]
        await_answers(co_runners, self.settings.timeout_s)
        for co_runner in co_runners:
            co_runner.begin()
        return co_runners

    def _runs(
        self, keys: Sequence[_Key], works: Sequence[JobWork], co_runners: Sequence[CoRunnerProcess]
    ) -> list[int | None]:
        """Return the runs in a job of each co-runner: given, or else counted, one after another."""
        for (subject, _), work, co_runner in zip(keys, works, co_runners, strict=True):
            if work.runs is None and subject not in self._counted and co_runner.failure is None:
                co_runner.order("count", seconds=self.settings.round_s)
                await_answers([co_runner], self.settings.timeout_s)
                if co_runner.failure is None:
                    self._counted[subject] = msgspec.convert(co_runner.answer, int)
        return [
            work.runs or self._counted.get(subject) for (subject, _), work in zip(keys, works, strict=True)
        ]

    def _end_idle(self, needed: Sequence[_Key]) -> None:
        for key in list(self._processes):
            if key not in needed and (len(self._processes) > self._most or self._is_full()):
                self._end([key])

    def _is_full(self) -> bool:
        """Whether processes take too much memory to keep idle ones."""
        host_bytes = sum(_resident_bytes(co_runner.process.pid) for co_runner in self._processes.values())
        device_bytes = sum(co_runner.memory_bytes or 0 for co_runner in self._processes.values())
        host_limit, device_limit = memory_bytes(), int(self.device.handle.global_mem_size)
        return host_bytes > _SHARE_OF_MEMORY * host_limit or device_bytes > _SHARE_OF_MEMORY * device_limit

    def _end(self, keys: Iterable[_Key]) -> None:
        for key in list(keys):
            self._processes.pop(key).process.end()


def _limits(device: OpenCLDevice, threads: int | None) -> Mapping[str, str]:
    """Return environment variables that limit the threads of a device."""
    if threads is None:
        return {}
    if not device.id.startswith("pocl:") or device.type != "cpu" or "/" in device.id:
        raise UnsupportedError.of(
            where="threads",
            expected="a CPU device of PoCL, whose threads can be limited",
            found=repr(device.id),
        )
    if threads > device.compute_units:
        raise InputError.of(
            field="threads", expected=f"at most {device.compute_units} ({device.id})", found=f"{threads}"
        )
    return dict.fromkeys(_THREADS, str(threads))


def _keys(works: Sequence[JobWork]) -> list[_Key]:
    """Return the keys of co-runners: their subject, and their number among those of the same subject."""
    keys: list[_Key] = []
    for work in works:
        subject = msgspec.json.encode(work.subject, order="deterministic").decode()
        keys.append((subject, sum(known == subject for known, _ in keys)))
    return keys


def _resident_bytes(process: int) -> int:
    """Return the resident memory of a process; 0 if the system does not show it."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
