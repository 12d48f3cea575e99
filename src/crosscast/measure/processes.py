"""Processes that measure: what they are asked, in a line of JSON, and what they answer, in several."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import IO, Any, Protocol, TypedDict

import msgspec

from crosscast import errors
from crosscast.data.rows import EnergyRow, RecordRow, SessionRow
from crosscast.errors import CrosscastError, DeviceFault, InputError, MissingExtraError
from crosscast.measure.subjects import LaunchFile, Settings, Subject, SuiteProblem

Report = Callable[[int, float], None]
"""Called now and then with the runs so far and the seconds that they took."""


class SessionJob(msgspec.Struct, frozen=True, tag=True):
    """Measure something."""

    subject: Subject  # What to measure
    device: str  # Id of the device
    settings: Settings  # How
    repeat: int = 0  # Number of this process among those that measure the same


class CoRunJob(msgspec.Struct, frozen=True, tag=True):
    """Get something ready, then run it as orders say (`crosscast.measure.worker.CoRunner`)."""

    subject: Subject  # What to run
    device: str  # Id of the device
    warmups: int  # Runs before, which are not recorded
    counters: bool  # Whether to count events of the CPU


class DescribeJob(msgspec.Struct, frozen=True, tag=True):
    """Measure what describes a device."""

    device: str  # Id of the device


class CharacterizeJob(msgspec.Struct, frozen=True, tag=True):
    """Characterize an application of the suite."""

    subject: SuiteProblem  # Which one, and how large
    timeout_s: float  # Longest time of a launch, in seconds


class InstructionMixJob(msgspec.Struct, frozen=True, tag=True):
    """Count the instructions of all launches of a run by class."""

    subject: SuiteProblem | LaunchFile  # An application, or a launch file
    timeout_s: float  # Longest time of a launch, in seconds


Job = SessionJob | DescribeJob | CharacterizeJob | InstructionMixJob
"""What is answered once."""


def label_of(job: Job) -> str:
    """What a job is about, for messages."""
    return job.device if isinstance(job, SessionJob | DescribeJob) else job.subject.label


def render_job(job: Job | CoRunJob) -> str:
    """A job as a line of JSON."""
    return msgspec.json.encode(job).decode() + "\n"


def read_job(line: str) -> Job | CoRunJob:
    """A job that `render_job` wrote."""
    job: Job | CoRunJob = msgspec.json.decode(line, type=Job | CoRunJob)
    return job


_PR_SET_PDEATHSIG = 1


class Send(Protocol):
    """Sends a line."""

    def __call__(self, **fields: object) -> None:
        """Send fields as a line of JSON."""


@contextmanager
def answering(parent: int) -> Iterator[Send]:
    """Answer a process while a ``with`` block runs, and end with it, even if it is killed.

    Errors of Crosscast are answers, ``{"error": …, "arguments": …}``, and end the block. Import what takes
    long inside of it: the other process may be killed meanwhile.
    """
    end_with(parent)
    sys.excepthook = _complain
    # A kernel that crashes is no reason to write this process's memory to a file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

        def send(**fields: object) -> None:
            answers.write(json.dumps(fields) + "\n")
            answers.flush()

        try:
            yield send
        except CrosscastError as error:
            # Of a part that is missing, also how to get it.
            missing = isinstance(error, MissingExtraError)
            arguments = error.__reduce__()[1] if missing else [str(error)]
            about = {"where": error.where, "field": error.field} if isinstance(error, InputError) else {}
            send(error=type(error).__name__, arguments=arguments, **about)
        except MemoryError:
            send(error="DeviceFault", arguments=["this machine has not enough memory for the problem"])


def _complain(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say what a driver with a mistake raised, and at last, in the line that is shown, where."""
    from crosscast.suite.registry import place_in_driver

    sys.__excepthook__(kind, error, trace)
    text = " ".join(str(error).split())
    print(f"{kind.__name__}: {text}{place_in_driver(trace)}", file=sys.stderr)


def end_with(parent: int) -> None:
    """Let this process end with the one that started it, even if that is killed."""
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # It ended before the line above.
        os.kill(os.getpid(), signal.SIGKILL)


_CHUNK = 1 << 16


class Orders:
    """Orders, each a line of JSON."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = b""
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def line(self) -> str | None:
        """The next line, waited for; ``None`` if there will be none."""
        while b"\n" not in self._held:
            chunk = os.read(self._descriptor, _CHUNK)
            if not chunk:
                return None
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return line.decode()

    def next(self) -> dict[str, Any] | None:
        """The next order, waited for; ``None`` if there will be none."""
        line = self.line()
        return None if line is None else dict(json.loads(line))

    def waiting(self) -> bool:
        """Whether there is one, or there will be none: quick, as it is asked after every run."""
        return bool(self._held) or bool(self._poll.poll(0))


_MOST_COMPLAINTS = 1 << 16
_LAST_WORDS_S = 10.0
"""Time from the last that a process can say to its end."""


_WORKER = "crosscast.measure.worker"


class AnsweringProcess:
    """A Python process that runs a module, which answers lines of JSON."""

    def __init__(self, environment: Mapping[str, str] | None = None, module: str = _WORKER) -> None:
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
        advice = hint if code == -signal.SIGSEGV else ""
        return DeviceFault(f"{label}: the process that measured {how}{last}{advice}")

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


class Answer(TypedDict, total=False):
    """What a job is answered: the fields of its kind."""

    session: SessionRow  # Of `SessionJob`: what its process measured
    records: list[RecordRow]
    energy: list[EnergyRow]
    notes: list[str]
    device: dict[str, object]  # Of `DescribeJob`: row of the table of devices
    profiles: list[dict[str, object]]  # Of `CharacterizeJob`: rows of the table of profiles
    mix: dict[str, float]  # Of `InstructionMixJob`: shares of the instructions


def said(line: bytes) -> dict[str, Any]:
    """What a line says; an error that the process answered is raised here."""
    found: dict[str, Any] = json.loads(line)
    if "error" not in found:
        return found
    kind = getattr(errors, found["error"], DeviceFault)
    error = (kind if issubclass(kind, CrosscastError) else DeviceFault)(*found["arguments"])
    if isinstance(error, InputError):
        error.where, error.field = found.get("where"), found.get("field")
    raise error


OUT_OF_BOUNDS = "; crosscast characterize ... --check-bounds finds accesses that are out of bounds"
"""What to add to a segmentation fault."""


def run_job(job: Job, timeout_s: float, report: Report = lambda runs, elapsed_s: None) -> Answer:
    """Run a job in a process of its own and return its answer."""
    child = AnsweringProcess()
    try:
        child.tell(render_job(job))
        child.hang_up()
        for _, line in heard([child], time.monotonic() + timeout_s):
            if line is None:
                raise child.crash(label_of(job), OUT_OF_BOUNDS if isinstance(job, SessionJob) else "")
            found = said(line)
            if "answer" in found:
                answer: Answer = found["answer"]
                return answer
            report(found["runs"], found["elapsed_s"])
        raise DeviceFault(f"{label_of(job)}: did not end within {timeout_s:g} s (the time limit)")
    finally:
        child.end()
