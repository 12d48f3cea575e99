"""The header of a trace in the Standard Workload Format: comments that say where it is from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["SwfHeader", "header_of"]

# A colon in an address, http://..., ends no name.
_NAMED = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*):(?:\s+(.*)|)$")
_NUMBER = re.compile(r"\d{1,15}\b")


@dataclass(frozen=True)
class SwfHeader:
    """What the comments of a trace say.

    Parameters
    ----------
    fields
        Texts by the names of the standard (``Computer``, ``MaxProcs``, ``Note``, ...), in the order of their
        first lines; those that are there more than once, or go on in the next line, have lines.
    """

    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def max_procs(self) -> int | None:
        """Processors of the computer."""
        return self._number("MaxProcs")

    @property
    def max_nodes(self) -> int | None:
        """Nodes of the computer."""
        return self._number("MaxNodes")

    @property
    def max_run_s(self) -> int | None:
        """Longest run that the system allowed, in seconds."""
        return self._number("MaxRuntime")

    @property
    def unix_start_s(self) -> int | None:
        """When the times of the trace begin, in seconds since 1970 in UTC."""
        return self._number("UnixStartTime")

    @property
    def allow_overuse(self) -> bool | None:
        """Whether jobs may use more than they requested; ``None`` if nothing is said."""
        return {"yes": True, "true": True, "no": False, "false": False}.get(self._word("AllowOveruse"))

    @property
    def preemption(self) -> str | None:
        """``No``, ``Yes``, ``Double`` (a job's parts have lines beside its own) or ``TS`` (time slices)."""
        return self.fields.get("Preemption")

    @property
    def procs(self) -> int | None:
        """What jobs are counted in: processors, else nodes."""
        return self.max_procs or self.max_nodes

    def _word(self, name: str) -> str:
        return (self.fields.get(name, "").lower().split() or [""])[0]

    def _number(self, name: str) -> int | None:
        found = _NUMBER.match(self.fields.get(name, ""))
        return int(found[0]) if found else None

    def lines(self) -> list[str]:
        """The comments, a line each."""
        return [
            f"; {name}: {line}" if line else f"; {name}:"
            for name, text in self.fields.items()
            for line in text.split("\n")
        ]


def header_of(comments: Iterable[str]) -> SwfHeader:
    """Read comments: ``; Name: text``, and lines that go on with the text of the last name.

    Examples
    --------
    >>> header = header_of(["; MaxProcs: 100", "; Note: cleaned,", ";   by job<=14"])
    >>> header.max_procs, header.fields["Note"], header.allow_overuse
    (100, 'cleaned,\\nby job<=14', None)
    """
    fields: dict[str, list[str]] = {}
    last: list[str] | None = None
    for comment in comments:
        text = _printable(comment.strip().removeprefix(";").strip())
        if named := _NAMED.match(text):
            last = fields.setdefault(named[1], [])
            last.append(named[2] or "")
        elif not text:
            last = None
        elif last is not None:
            last.append(text)
    return SwfHeader({name: "\n".join(lines) for name, lines in fields.items()})


def _printable(text: str) -> str:
    """Without what would steer a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
