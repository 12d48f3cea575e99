"""What runs bags: a crew, or in tests something that answers in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from crosscast.measure.corun.bag_run import BagRun
from crosscast.measure.corun.work import Work

__all__ = ["BagRunner"]


class BagRunner(Protocol):
    """Measures bags on one device, as `crosscast.measure.corun.crew.Crew` does."""

    def run(self, works: Sequence[Work], /) -> BagRun:
        """Measure a bag; a bag of one is a solo run."""
