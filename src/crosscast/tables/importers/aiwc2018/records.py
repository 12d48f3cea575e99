"""Records and sessions of the published data: one record for each kernel and run that was timed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from crosscast.units import microseconds

__all__ = ["record_rows", "session_rows"]

_DEFAULTS = "{}"
_SECOND_OF_A_RUN = 100
"""More than any run number of the source."""


def record_rows(
    runtimes: Iterable[Mapping[str, Any]], invocations: Mapping[tuple[str, str, str], int]
) -> Iterator[dict[str, Any]]:
    """Rows of the table of records.

    Parameters
    ----------
    runtimes
        Rows of the source, in its order.
    invocations
        Characterized invocations of each application, kernel and size.
    """
    seen: defaultdict[tuple[Any, ...], int] = defaultdict(int)
    for row in runtimes:
        kernel = (row["application"], row["kernel"], row["size"])
        earlier = seen[*kernel, row["device"], row["run"]]
        seen[*kernel, row["device"], row["run"]] += 1
        yield {
            "application": row["application"],
            "kernel": row["kernel"],
            "size": row["size"],
            "device": row["device"],
            "configuration": _DEFAULTS,
            "repeat": 0,
            "run": row["run"] - 1 + earlier * _SECOND_OF_A_RUN,
            "invocations": invocations.get(kernel),
            "time_s": [microseconds(row["kernel_time_us"])],
        }


def session_rows(runtimes: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the table of sessions: one for each application, size and device."""
    kernels: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in runtimes:
        session = (row["application"], row["size"], row["device"])
        kernels[session].add(row["kernel"])
    for (application, size, device), names in kernels.items():
        yield {
            "application": application,
            "size": size,
            "device": device,
            "configuration": _DEFAULTS,
            "repeat": 0,
            "kernels": sorted(names),
        }
