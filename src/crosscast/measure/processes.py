"""Jobs for the process that measures, as JSON: what it is asked, and what it answers."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, Any, Protocol

from crosscast import errors
from crosscast.errors import CrosscastError, DeviceFault, MissingExtraError
from crosscast.measure.subjects import LaunchFile, Microbenchmark, Settings, Subject, SuiteProblem

Report = Callable[[int, float], None]
"""Called now and then with the runs so far and the seconds that they took."""


@dataclasses.dataclass(frozen=True)
class SessionJob:
    """Measure something."""

    subject: Subject  # What to measure
    device: str  # Id of the device
    settings: Settings  # How
    repeat: int = 0  # Number of this process among those that measure the same

    @property
    def label(self) -> str:
        """What it is about, for messages."""
        return self.device


@dataclasses.dataclass(frozen=True)
class DescribeJob:
    """Measure what describes a device."""

    device: str  # Id of the device

    @property
    def label(self) -> str:
        """What it is about, for messages."""
        return self.device


@dataclasses.dataclass(frozen=True)
class CharacterizeJob:
    """Make the profiles of an application."""

    subject: SuiteProblem  # The application
    timeout_s: float  # Longest time of a launch, in seconds

    @property
    def label(self) -> str:
        """What it is about, for messages."""
        return f"{self.subject.name} {self.subject.size}"


@dataclasses.dataclass(frozen=True)
class MixJob:
    """Count the instructions of all launches of a run by class."""

    subject: SuiteProblem | LaunchFile  # An application, or a launch file
    timeout_s: float  # Longest time of a launch, in seconds

    @property
    def label(self) -> str:
        """What it is about, for messages."""
        if isinstance(self.subject, LaunchFile):
            return self.subject.path
        return f"{self.subject.name} {self.subject.size}"


Job = SessionJob | DescribeJob | CharacterizeJob | MixJob


def render_job(job: Job) -> str:
    """A job as JSON."""
    fields = dataclasses.asdict(job)
    if not isinstance(job, DescribeJob):
        fields["subject"] = {"kind": type(job.subject).__name__, **fields["subject"]}
    return json.dumps({"job": type(job).__name__, **fields})


def read_job(text: str) -> Job:
    """A job that `render_job` wrote."""
    fields: dict[str, Any] = json.loads(text)
    kind = fields.pop("job")
    if "subject" in fields:
        fields["subject"] = _subject(fields["subject"])
    if kind == CharacterizeJob.__name__:
        return CharacterizeJob(**fields)
    if kind == MixJob.__name__:
        return MixJob(**fields)
    if kind == DescribeJob.__name__:
        return DescribeJob(**fields)
    return SessionJob(**{**fields, "settings": Settings(**fields["settings"])})


def _subject(fields: Mapping[str, Any]) -> Subject:
    given = {name: value for name, value in fields.items() if name != "kind"}
    return _SUBJECTS[fields["kind"]](**given)


_SUBJECTS = {kind.__name__: kind for kind in (LaunchFile, Microbenchmark, SuiteProblem)}


_PR_SET_PDEATHSIG = 1


class Send(Protocol):
    """Sends a line."""

    def __call__(self, **fields: Any) -> None:
        """Send fields as a line of JSON."""


@contextmanager
def answering(parent: int) -> Iterator[Send]:
    """Answer a process while a ``with`` block runs, and end with it, even if it is killed.

    Errors of Crosscast are answers, ``{"error": …, "message": …, "extra": …}``, and end the block. Import
    what takes long inside of it: the other process may be killed meanwhile.
    """
    _end_with(parent)
    sys.excepthook = _complain
    # A kernel that crashes is no reason to write this process's memory to a file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

        def send(**fields: Any) -> None:
            answers.write(json.dumps(fields) + "\n")
            answers.flush()

        try:
            yield send
        except CrosscastError as error:
            # Of a part that is missing, also how to get it.
            extra = getattr(error, "extra", None)
            send(error=type(error).__name__, message=str(error), extra=extra)
        except MemoryError:
            send(
                error="DeviceFault", message="this machine has not enough memory for the problem", extra=None
            )


def _complain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say what a driver with a mistake raised, and at last, in the line that is shown, where."""
    from crosscast.suite.registry import place_in_driver

    sys.__excepthook__(kind, error, trace)
    said = " ".join(str(error).split())
    print(f"{kind.__name__}: {said}{place_in_driver(trace)}", file=sys.stderr)


def _end_with(parent: int) -> None:
    """Let this process end with the one that wants the answer, even if that is killed."""
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before the line above.
        os.kill(os.getpid(), signal.SIGKILL)


_CHUNK = 1 << 16
_MOST_COMPLAINTS = 1 << 16
_LAST_WORDS_S = 10.0
"""Time from the last that a process can say to its end."""


class AnsweringProcess:
    """A Python process that runs a module, which answers by `crosscast.measure.processes`."""

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        self._child = subprocess.Popen(
            # Not with the modules of the current folder, which may have the names of others.
            [sys.executable, "-P", "-m", module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # Ctrl-C is for the process that started it, which then ends it.
            start_new_session=True,
        )
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._rest = bytearray()
        self._complaints = bytearray()
        self.lines: deque[bytes] = deque()
        """Lines that nobody has taken yet."""
        self.streams: list[IO[bytes]] = [self._child.stdout, self._child.stderr]
        """What it has not closed yet."""

    @property
    def pid(self) -> int:
        """Its id."""
        return self._child.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def tell(self, text: str) -> None:
        """Write to its standard input; a process that died already says why elsewhere."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write(text.encode())
            self._child.stdin.flush()

    def hang_up(self) -> None:
        """Tell that nothing more will be told."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.close()

    def read(self, stream: IO[bytes]) -> bool:
        """Take what a stream holds, and wait if that is nothing; tell whether the stream goes on."""
        chunk = os.read(stream.fileno(), _CHUNK)
        if not chunk:
            self.streams.remove(stream)
        elif stream is self._child.stderr:
            self._complaints += chunk
            del self._complaints[:-_MOST_COMPLAINTS]
        else:
            # Looked through only when a line ends: an answer may be hundreds of megabytes.
            self._rest += chunk
            if b"\n" in chunk:
                *lines, self._rest = self._rest.split(b"\n")
                self.lines.extend(map(bytes, lines))
        return bool(chunk)

    def crash(self, label: str, hint: str = "") -> DeviceFault:
        """What to say of a process that closed its output without an answer."""
        try:
            code = self._child.wait(_LAST_WORDS_S)
        except subprocess.TimeoutExpired:
            return DeviceFault(f"{label}: the process that measured closed its output and did not end")
        lines = self._complaints.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        said = hint if code == -signal.SIGSEGV else ""
        return DeviceFault(f"{label}: the process that measured {how}{last}{said}")

    def kill(self) -> None:
        """Kill it; what it said before can still be heard."""
        self._child.kill()

    def end(self) -> None:
        """Kill it, and wait until it has ended."""
        self.kill()
        self.hang_up()
        self._child.wait()
        for stream in (self._child.stdout, self._child.stderr):
            assert stream is not None
            stream.close()
        self.streams.clear()


def heard(
    processes: Sequence[AnsweringProcess], end: float
) -> Iterator[tuple[AnsweringProcess, bytes | None]]:
    """Lines that processes answer, each with its process, and none when one has closed its output."""
    with selectors.DefaultSelector() as selector:
        for process in processes:
            for stream in process.streams:
                selector.register(stream, selectors.EVENT_READ, process)
            yield from _taken(process)
        while selector.get_map():
            ready = selector.select(max(end - time.monotonic(), 0))
            # A process that says something at all times must not be listened to for ever.
            if not ready or time.monotonic() > end:
                return
            for key, _ in ready:
                if not key.data.read(key.fileobj):
                    selector.unregister(key.fileobj)
                yield from _taken(key.data)


def _taken(process: AnsweringProcess) -> Iterator[tuple[AnsweringProcess, bytes | None]]:
    while process.lines:
        yield process, process.lines.popleft()
    if not process.streams:
        yield process, None


class _MissingThere(MissingExtraError):
    """A part that the process lacks, in its own words."""

    def __init__(self, message: str, extra: str) -> None:
        CrosscastError.__init__(self, message)
        self.extra = extra


def raised(name: str, message: str, extra: str | None) -> CrosscastError:
    """The error that a process answered."""
    if extra is not None:
        return _MissingThere(message, extra)
    kind = getattr(errors, name, DeviceFault)
    return kind(message) if issubclass(kind, CrosscastError) else DeviceFault(message)


_WORKER = "crosscast.measure.worker"

OUT_OF_BOUNDS = "; crosscast characterize ... --check-bounds finds accesses that are out of bounds"
"""What to add to a segmentation fault."""


def run_job(job: Job, timeout_s: float, report: Report = lambda runs, elapsed_s: None) -> dict[str, Any]:
    """Run a job and return its answer."""
    child = AnsweringProcess(_WORKER)
    try:
        child.tell(render_job(job))
        child.hang_up()
        for _, line in heard([child], time.monotonic() + timeout_s):
            if line is None:
                raise child.crash(job.label, OUT_OF_BOUNDS if isinstance(job, SessionJob) else "")
            said = json.loads(line)
            if "error" in said:
                raise raised(said["error"], said["message"], said["extra"])
            if "answer" in said:
                return dict(said["answer"])
            report(said["runs"], said["elapsed_s"])
        raise DeviceFault(f"{job.label}: did not end within {timeout_s:g} s (the time limit)")
    finally:
        child.end()
