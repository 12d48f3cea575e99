"""A member of a bag, seen from the one that measures the bag."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosscast.errors import CrosscastError, DeviceFault, MissingExtraError
from crosscast.measure.answering_process import AnsweringProcess, heard, raised
from crosscast.measure.child import OUT_OF_BOUNDS
from crosscast.measure.corun.settings import CoRunSettings
from crosscast.measure.corun.window import Span
from crosscast.measure.jobs import SessionJob, render_job
from crosscast.measure.settings import Settings
from crosscast.measure.subjects import LaunchFile, Microbenchmark, Subject

__all__ = ["Member", "hear", "hear_all"]

_WORKER = "crosscast.measure.corun.worker"


class Member:
    """An application in a process of its own, which gets ready when it is made.

    Parameters
    ----------
    subject
        What runs.
    device
        Id of the device.
    settings
        How it warms up, and whether the CPU's events are counted.
    environment
        Environment of its process.
    """

    def __init__(
        self, subject: Subject, device: str, settings: CoRunSettings, environment: Mapping[str, str]
    ) -> None:
        self.label = _label(subject)
        how = Settings(
            min_runs=1,
            min_time_s=0.0,
            warmups=settings.warmups,
            timeout_s=settings.timeout_s,
            sensor="none",
            counters=settings.counters,
        )
        self.process = AnsweringProcess(_WORKER, environment)
        self.process.tell(render_job(SessionJob(subject, device, how)) + "\n")
        self.awaited = True
        """Whether it has still to answer."""
        self.answer: Any = None
        """What it answered last."""
        self.failure: str | None = None
        """Why it failed; its process is killed then."""
        self.memory_bytes: int | None = None
        """What the application takes, once that is known."""
        self.jobs: list[Span] = []
        """Its jobs in the loop of this bag."""
        self.cpu_s: list[float] = []
        """CPU time of each, in seconds."""

    def order(self, do: str, **how: Any) -> None:
        """Tell what to do next; a member that has failed is told nothing."""
        if self.failure is None:
            self.process.tell(json.dumps({"do": do, **how}) + "\n")
            self.awaited = True

    def hear(self, line: bytes | None) -> None:
        """Take a line of its process, or that there will be none.

        Raises
        ------
        MissingExtraError
            If this machine lacks a part that the application needs.
        """
        if self.failure is not None:
            return
        if line is None:
            self.fail(self.process.crash(self.label, OUT_OF_BOUNDS))
            return
        said = json.loads(line)
        if "error" in said:
            error = raised(said["error"], said["message"], said["extra"])
            if isinstance(error, MissingExtraError):
                raise error
            self.fail(error)
        elif "jobs" in said:
            self.jobs += [Span(start, end) for start, end, _ in said["jobs"]]
            self.cpu_s += [cpu_s for _, _, cpu_s in said["jobs"]]
        else:
            self.answer, self.awaited = said["answer"], False

    def fail(self, error: CrosscastError) -> None:
        """Let it be a member that has failed."""
        self.failure, self.awaited = str(error), False
        self.process.kill()

    def begin(self) -> None:
        """Begin a bag: take what it said of itself when it was ready, and forget the jobs of the last one."""
        if self.memory_bytes is None and self.failure is None:
            self.memory_bytes = int(self.answer["memory_bytes"])
        self.jobs, self.cpu_s = [], []


def hear(members: Sequence[Member], end: float, until: Callable[[], bool] = lambda: False) -> None:
    """Hear what members say until all have answered or failed, something else is so, or the time is over.

    Parameters
    ----------
    members
        Those to hear.
    end
        When the time is over, by `time.monotonic`.
    until
        Asked whenever somebody said something.
    """
    awaited = {member.process: member for member in members if member.awaited}
    for process, line in heard(list(awaited), end):
        awaited[process].hear(line)
        if until() or not any(member.awaited for member in awaited.values()):
            return


def hear_all(members: Sequence[Member], timeout_s: float) -> None:
    """Hear members until all have answered; those that do not in time fail."""
    hear(members, time.monotonic() + timeout_s)
    for member in members:
        if member.awaited:
            member.fail(
                DeviceFault(f"{member.label}: did not answer within {timeout_s:g} s (the time limit)")
            )


def _label(subject: Subject) -> str:
    """Name of what runs, without its folder."""
    if isinstance(subject, LaunchFile):
        return Path(subject.path).stem
    if isinstance(subject, Microbenchmark):
        return f"microbenchmark {subject.level}"
    return f"{Path(subject.name).name} {subject.size}"
