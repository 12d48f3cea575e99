"""The formulas: metrics from counts, one module a category, as defined in ``docs/metrics.md``."""

from __future__ import annotations

from crosscast.characterization.engine.counts import Counts
from crosscast.characterization.metrics import compute, control, memory, parallelism
from crosscast.profile import METRICS, MetricValue

__all__ = ["compute_metrics"]


def compute_metrics(counts: Counts, work_groups: int) -> dict[str, MetricValue]:
    """Compute all metrics of a launch, in the order of `METRICS`.

    Parameters
    ----------
    counts
        What the run counted.
    work_groups
        Number of work-groups.
    """
    values: dict[str, MetricValue] = {
        **compute.metrics(counts),
        **parallelism.metrics(counts, work_groups),
        **memory.metrics(counts),
        **control.metrics(counts),
    }
    return {metric.name: values[metric.name] for metric in METRICS}
