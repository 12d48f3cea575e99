"""Jobs for the process that measures, as JSON: what it is asked, and what it answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

from crosscast.measure.settings import Settings
from crosscast.measure.subjects import LaunchFile, Microbenchmark, Subject, SuiteProblem

__all__ = [
    "CharacterizeJob",
    "DescribeJob",
    "Job",
    "MixJob",
    "Report",
    "SessionJob",
    "read_job",
    "render_job",
]


Report = Callable[[int, float], None]
"""Called now and then with the runs so far and the seconds that they took."""


@dataclasses.dataclass(frozen=True)
class SessionJob:
    """Measure something.

    Parameters
    ----------
    subject
        What to measure.
    device
        Id of the device.
    settings
        How.
    repeat
        Number of this process among those that measure the same.
    """

    subject: Subject
    device: str
    settings: Settings
    repeat: int = 0

    @property
    def label(self) -> str:
        """What it is about, for messages."""
        return self.device


@dataclasses.dataclass(frozen=True)
class DescribeJob:
    """Measure what describes a device.

    Parameters
    ----------
    device
        Id of the device.
    """

    device: str

    @property
    def label(self) -> str:
        """What it is about, for messages."""
        return self.device


@dataclasses.dataclass(frozen=True)
class CharacterizeJob:
    """Make the profiles of an application.

    Parameters
    ----------
    subject
        The application.
    timeout_s
        Longest time of a launch, in seconds.
    """

    subject: SuiteProblem
    timeout_s: float

    @property
    def label(self) -> str:
        """What it is about, for messages."""
        return f"{self.subject.name} {self.subject.size}"


@dataclasses.dataclass(frozen=True)
class MixJob:
    """Count the instructions of all launches of a run by class.

    Parameters
    ----------
    subject
        An application, or a launch file.
    timeout_s
        Longest time of a launch, in seconds.
    """

    subject: SuiteProblem | LaunchFile
    timeout_s: float

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
