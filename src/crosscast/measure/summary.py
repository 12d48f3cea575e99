"""The published summary of records: statistics over runs of the mean time of an invocation."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["KernelSummary", "summaries"]


@dataclass(frozen=True)
class KernelSummary:
    """What the runs of a kernel took.

    Parameters
    ----------
    kernel
        Name of the kernel.
    runs
        Runs that were recorded.
    invocations
        Invocations of all runs together.
    median_s, mean_s, min_s, max_s
        Over the runs, of the mean time of an invocation in a run, in seconds.
    sd_s
        Its standard deviation; ``None`` for a single run.
    """

    kernel: str
    runs: int
    invocations: int
    median_s: float
    mean_s: float
    min_s: float
    max_s: float
    sd_s: float | None

    @property
    def spread(self) -> float | None:
        """Standard deviation over mean; ``None`` if it is not defined."""
        return None if self.sd_s is None or self.mean_s == 0 else self.sd_s / self.mean_s

    def to_dict(self) -> dict[str, Any]:
        """Its fields, for JSON."""
        return asdict(self)


def summaries(records: Iterable[Mapping[str, Any]]) -> list[KernelSummary]:
    """Summarize records of one application on one device, kernel by kernel.

    Parameters
    ----------
    records
        Rows of the table of records.
    """
    runs: dict[str, list[list[float]]] = {}
    for record in records:
        runs.setdefault(record["kernel"], []).append(record["time_s"])
    return [_summary(kernel, times) for kernel, times in runs.items()]


def _summary(kernel: str, runs: list[list[float]]) -> KernelSummary:
    means = [statistics.fmean(times) for times in runs]
    return KernelSummary(
        kernel,
        runs=len(runs),
        invocations=sum(map(len, runs)),
        median_s=statistics.median(means),
        mean_s=statistics.fmean(means),
        min_s=min(means),
        max_s=max(means),
        sd_s=statistics.stdev(means) if len(means) > 1 else None,
    )
