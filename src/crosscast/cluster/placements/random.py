"""Random: each job goes to any of the machines."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.placement import Bound
from crosscast.cluster.placements.workload import Workload

__all__ = ["random_machine"]


def random_machine(workload: Workload, generator: np.random.Generator) -> Bound:
    """Bind each job to a machine that is drawn uniformly from those on which it runs (section VII)."""
    allowed = workload.runs_on
    drawn = generator.integers(allowed.sum(axis=1))
    # The machine with as many allowed ones up to it, itself included, as were drawn and one more.
    return Bound(np.argmax(np.cumsum(allowed, axis=1) > drawn[:, None], axis=1))
