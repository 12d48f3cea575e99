"""Jobs for the process that measures, as JSON: what it is asked, and what it answers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from crosscast.measure.settings import Settings
from crosscast.measure.subjects import LaunchFile, Subject, SuiteProblem

__all__ = ["DescribeJob", "Job", "SessionJob", "read_job", "render_job"]


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


@dataclasses.dataclass(frozen=True)
class DescribeJob:
    """Measure what describes a device.

    Parameters
    ----------
    device
        Id of the device.
    """

    device: str


Job = SessionJob | DescribeJob


def render_job(job: Job) -> str:
    """A job as JSON."""
    fields = dataclasses.asdict(job)
    if isinstance(job, SessionJob):
        fields["subject"] = {"kind": type(job.subject).__name__, **fields["subject"]}
    return json.dumps({"job": type(job).__name__, **fields})


def read_job(text: str) -> Job:
    """A job that `render_job` wrote."""
    fields: dict[str, Any] = json.loads(text)
    if fields.pop("job") == DescribeJob.__name__:
        return DescribeJob(**fields)
    return SessionJob(
        subject=_subject(fields["subject"]),
        device=fields["device"],
        settings=Settings(**fields["settings"]),
        repeat=fields["repeat"],
    )


def _subject(fields: Mapping[str, Any]) -> Subject:
    given = {name: value for name, value in fields.items() if name != "kind"}
    return LaunchFile(**given) if fields["kind"] == LaunchFile.__name__ else SuiteProblem(**given)
