"""The 18 fields of a line of the Standard Workload Format 2.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["FIELDS", "NAMES", "Kind", "SwfField"]

Kind = Literal["time", "procs", "amount", "number"]
"""Seconds, processors, anything else that is measured, and numbers that stand for something.

Of times and processors, and of nothing else, negative numbers other than −1 are refused; elsewhere they are
missing, too. Processors and numbers are whole.
"""

_KIBIBYTE = 1024


@dataclass(frozen=True)
class SwfField:
    """A field.

    Parameters
    ----------
    name
        Name of its column in a `Trace`, with the unit that it has there.
    title
        What the standard calls it, for messages.
    kind
        What its numbers are.
    unit
        How many of the column's units are one of the file's.
    """

    name: str
    title: str
    kind: Kind
    unit: int = 1

    @property
    def is_whole(self) -> bool:
        """Whether its numbers have no fraction."""
        return self.kind in ("procs", "number")

    @property
    def is_strict(self) -> bool:
        """Whether no number but −1 may be negative."""
        return self.kind in ("time", "procs")


FIELDS = (
    SwfField("job", "job number", "number"),
    SwfField("submit_s", "submit time", "time"),
    SwfField("wait_s", "wait time", "time"),
    SwfField("run_s", "run time", "time"),
    SwfField("procs", "allocated processors", "procs"),
    SwfField("cpu_s", "average CPU time", "time"),
    SwfField("memory_bytes", "used memory", "amount", _KIBIBYTE),
    SwfField("requested_procs", "requested processors", "procs"),
    SwfField("requested_s", "requested time", "time"),
    SwfField("requested_memory_bytes", "requested memory", "amount", _KIBIBYTE),
    SwfField("status", "status", "number"),
    SwfField("user", "user", "number"),
    SwfField("group", "group", "number"),
    SwfField("executable", "executable", "number"),
    SwfField("queue", "queue", "number"),
    SwfField("partition", "partition", "number"),
    SwfField("preceding_job", "preceding job", "number"),
    SwfField("think_s", "think time", "time"),
)
"""In the order of the file. Memory is per processor."""

NAMES = tuple(field.name for field in FIELDS)
"""Their columns."""
