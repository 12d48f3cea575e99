"""Measuring processes: their jobs, each a line of JSON, and their answers, lines with rows of tables."""

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
from typing import IO, Any, TypedDict

import msgspec

from crosscast import errors
from crosscast.errors import CrosscastError, DeviceFault, InputError, MissingExtraError
from crosscast.measure.subjects import LaunchFile, Settings, Subject, SuiteProblem

Row = dict[str, Any]
"""Cells by column of a table's schema."""

Report = Callable[[int, float], None]
"""Called repeatedly with the runs so far and their seconds."""


class SessionJob(msgspec.Struct, frozen=True, tag=True):
    """Measure a subject."""

    subject: Subject
    device: str  # Id of the device
    settings: Settings
    repeat: int = 0  # Number of this process among repeats


class CoRunJob(msgspec.Struct, frozen=True, tag=True):
    """Prepare a subject, then run it by orders (`crosscast.measure.session.CoRunner`)."""

    subject: Subject
    device: str  # Id of the device
    warmups: int  # Runs before, not recorded
    counters: bool  # Whether to count events of the CPU


class DescribeJob(msgspec.Struct, frozen=True, tag=True):
    """Measure the row of a device in the table of devices."""

    device: str  # Id of the device


class CharacterizeJob(msgspec.Struct, frozen=True, tag=True):
    """Characterize an application of the suite."""

    subject: SuiteProblem
    timeout_s: float  # Time limit of a launch in seconds


class InstructionMixJob(msgspec.Struct, frozen=True, tag=True):
    """Count the instructions of all launches of a run by class."""

    subject: SuiteProblem | LaunchFile
    timeout_s: float  # Time limit of a launch in seconds


Job = SessionJob | DescribeJob | CharacterizeJob | InstructionMixJob
"""Jobs with a single answer."""


def label_of(job: Job) -> str:
    """Return the label of a job, for messages."""
    return job.device if isinstance(job, SessionJob | DescribeJob) else job.subject.label


def render_job(job: Job | CoRunJob) -> str:
    """Return a job as a line of JSON."""
    return msgspec.json.encode(job).decode() + "\n"


def read_job(line: str) -> Job | CoRunJob:
    """Parse a job that `render_job` wrote."""
    job: Job | CoRunJob = msgspec.json.decode(line, type=Job | CoRunJob)
    return job


_PR_SET_PDEATHSIG = 1


Send = Callable[..., None]
"""Sends its keyword arguments as a line of JSON."""


@contextmanager
def answering(parent: int) -> Iterator[Send]:
    """Answer a parent process during a ``with`` block, and end with it, even if it is killed.

    Errors of Crosscast are sent as ``{"error": …, "arguments": …}``, and end the block. Slow imports belong
    inside of it, as the parent may be killed meanwhile.
    """
    end_with(parent)
    sys.excepthook = _report_exception
    # No core dumps of kernels that crash.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

        def send(**fields: object) -> None:
            answers.write(json.dumps(fields) + "\n")
            answers.flush()

        try:
            yield send
        except CrosscastError as error:
            # A missing extra also has the advice to install it.
            missing = isinstance(error, MissingExtraError)
            arguments = error.__reduce__()[1] if missing else [str(error)]
            about = {"where": error.where, "field": error.field} if isinstance(error, InputError) else {}
            send(error=type(error).__name__, arguments=arguments, **about)
        except MemoryError:
            send(error="DeviceFault", arguments=["this machine has not enough memory for the problem"])


def _report_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an exception of a driver; the last line, which is shown, has its location in the driver."""
    from crosscast.suite.application import place_in_driver

    sys.__excepthook__(kind, error, trace)
    text = " ".join(str(error).split())
    print(f"{kind.__name__}: {text}{place_in_driver(trace)}", file=sys.stderr)


def end_with(parent: int) -> None:
    """Let this process end with its parent, even if that is killed."""
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        # The parent ended before the line above.
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
        """Wait for the next line; ``None`` at the end."""
        while b"\n" not in self._held:
            chunk = os.read(self._descriptor, _CHUNK)
            if not chunk:
                return None
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return line.decode()

    def next(self) -> dict[str, Any] | None:
        """Wait for the next order; ``None`` at the end."""
        line = self.line()
        return None if line is None else dict(json.loads(line))

    def waiting(self) -> bool:
        """Whether an order or the end is waiting; fast, as it is called after every run."""
        return bool(self._held) or bool(self._poll.poll(0))


_MOST_STDERR_BYTES = 1 << 16
_EXIT_S = 10.0
"""Longest time from the end of a process's output to its exit."""

_LEAVE_S = 1.0  # Longest time from a process's answer to its exit, after which it is killed
_WORKER = "crosscast.measure.worker"


class AnsweringProcess:
    """A Python process that runs a module, which answers with lines of JSON."""

    def __init__(self, environment: Mapping[str, str] | None = None, module: str = _WORKER) -> None:
        self._child = subprocess.Popen(
            # Without the modules of the current folder, which may shadow others.
            [sys.executable, "-P", "-m", module, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # Ctrl-C goes to the parent, which then ends it.
            start_new_session=True,
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._input, self._outputs = self._child.stdin, (self._child.stdout, self._child.stderr)
        self._rest, self._stderr = bytearray(), bytearray()
        self.lines: deque[bytes] = deque()  # Those that were not consumed yet
        self.streams: list[IO[bytes]] = [self._child.stdout, self._child.stderr]  # Those that are open

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    @property
    def runs(self) -> bool:
        """Whether it is running."""
        return self._child.poll() is None

    def write(self, text: str) -> None:
        """Write to its standard input; errors of a process that died show elsewhere."""
        with suppress(BrokenPipeError):
            self._input.write(text.encode())
            self._input.flush()

    def close_input(self) -> None:
        """Close its standard input."""
        with suppress(BrokenPipeError):
            self._input.close()

    def read(self, stream: IO[bytes]) -> bool:
        """Read from a stream, waiting if it is empty; return whether it is still open."""
        chunk = os.read(stream.fileno(), _CHUNK)
        if not chunk:
            self.streams.remove(stream)
        elif stream is self._child.stderr:
            self._stderr += chunk
            del self._stderr[:-_MOST_STDERR_BYTES]
        else:
            # Split only when a line ends: an answer may be hundreds of megabytes.
            self._rest += chunk
            if b"\n" in chunk:
                *lines, self._rest = self._rest.split(b"\n")
                self.lines.extend(map(bytes, lines))
        return bool(chunk)

    def crash(self, label: str, hint: str = "") -> DeviceFault:
        """Return the fault of a process that closed its output without an answer."""
        try:
            code = self._child.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            return DeviceFault(f"{label}: the process that measured closed its output and did not end")
        lines = self._stderr.decode(errors="replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        advice = hint if code == -signal.SIGSEGV else ""
        return DeviceFault(f"{label}: the process that measured {how}{last}{advice}")

    def leave(self) -> None:
        """Let it end by itself, if it does soon: a recording of it then knows that it ended."""
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(_LEAVE_S)

    def kill(self) -> None:
        """Kill it; its earlier output can still be read."""
        self._child.kill()

    def end(self) -> None:
        """Kill it, and wait until it has ended."""
        self.kill()
        self.close_input()
        self._child.wait()
        for stream in self._outputs:
            stream.close()
        self.streams.clear()


def messages(
    processes: Sequence[AnsweringProcess], end: float
) -> Iterator[tuple[AnsweringProcess, bytes | None]]:
    """Yield output lines of processes, each with its process; ``None`` when one has closed its output."""
    with selectors.DefaultSelector() as selector:
        for process in processes:
            for stream in process.streams:
                selector.register(stream, selectors.EVENT_READ, process)
            yield from _consume(process)
        while selector.get_map():
            ready = selector.select(max(end - time.monotonic(), 0))
            # A process with endless output must not extend the time.
            if not ready or time.monotonic() > end:
                return
            for key, _ in ready:
                if not key.data.read(key.fileobj):
                    selector.unregister(key.fileobj)
                yield from _consume(key.data)


def _consume(process: AnsweringProcess) -> Iterator[tuple[AnsweringProcess, bytes | None]]:
    while process.lines:
        yield process, process.lines.popleft()
    if not process.streams:
        yield process, None


class Answer(TypedDict, total=False):
    """Answer to a job: the fields of its kind."""

    session: Row  # Of `SessionJob`
    records: list[Row]
    energy: list[Row]
    notes: list[str]
    device: Row  # Of `DescribeJob`
    profiles: list[Row]  # Of `CharacterizeJob`
    mix: dict[str, float]  # Of `InstructionMixJob`: shares of the instructions


def parse_message(line: bytes) -> dict[str, Any]:
    """Parse a line; raise an error that the process sent."""
    message: dict[str, Any] = json.loads(line)
    if "error" not in message:
        return message
    kind = getattr(errors, message["error"], DeviceFault)
    error = (kind if issubclass(kind, CrosscastError) else DeviceFault)(*message["arguments"])
    if isinstance(error, InputError):
        error.where, error.field = message.get("where"), message.get("field")
    raise error


OUT_OF_BOUNDS = "; crosscast characterize ... --check-bounds finds accesses that are out of bounds"
"""Advice after a segmentation fault."""


def run_job(job: Job, timeout_s: float, report: Report = lambda runs, elapsed_s: None) -> Answer:
    """Run a job in a new process and return its answer."""
    child = AnsweringProcess()
    try:
        child.write(render_job(job))
        child.close_input()
        for _, line in messages([child], time.monotonic() + timeout_s):
            if line is None:
                raise child.crash(label_of(job), OUT_OF_BOUNDS if isinstance(job, SessionJob) else "")
            message = parse_message(line)
            if "answer" in message:
                answer: Answer = message["answer"]
                child.leave()
                return answer
            report(message["runs"], message["elapsed_s"])
        raise DeviceFault(f"{label_of(job)}: did not end within {timeout_s:g} s (the time limit)")
    finally:
        child.end()
