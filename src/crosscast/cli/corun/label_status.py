"""What is being done, for people who wait."""

from __future__ import annotations

import sys
import time

from crosscast.cli.progress import StatusLine
from crosscast.units import format_seconds

__all__ = ["LabelStatus"]


class LabelStatus(StatusLine):
    """Says on standard error what is being done, and for how long everything takes so far."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._start = time.monotonic()

    def __call__(self, label: str) -> None:
        """Show what is being done if it is time to."""
        elapsed_s = time.monotonic() - self._start
        if self.is_due(elapsed_s):
            self.show(f"{label}, {format_seconds(elapsed_s)} so far")
