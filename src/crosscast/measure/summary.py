"""The published summary of records: statistics over runs of the mean time of an invocation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crosscast.tables.arrow import Table
from crosscast.tables.cells import cells_of
from crosscast.tables.library import pc

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


def summaries(records: Table) -> list[KernelSummary]:
    """Summarize the records of one application on one device, kernel by kernel.

    Parameters
    ----------
    records
        Table of records.
    """
    cells = cells_of(records)
    times, counts = cells.times, cells.times.counts
    invocations = np.bincount(cells.numbers, weights=pc.list_value_length(records.column("time_s")))
    return [
        KernelSummary(
            kernel,
            runs=int(counts[cell]),
            invocations=int(invocations[cell]),
            median_s=float(times.quantile(0.5)[cell]),
            mean_s=float(times.mean()[cell]),
            min_s=float(times.least()[cell]),
            max_s=float(times.most()[cell]),
            sd_s=float(times.sd()[cell]) if counts[cell] > 1 else None,
        )
        for cell, kernel in enumerate(cells.keys.column("kernel").to_pylist())
    ]
