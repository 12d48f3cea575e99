"""How far many fits are, and how many to do at the same time."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from crosscast.cli.progress import StatusLine, time_left

if TYPE_CHECKING:
    from crosscast.evaluation.processes import State

__all__ = ["FitStatus", "processors"]


class FitStatus(StatusLine):
    """Says on standard error how much is done, and how long the rest will take.

    Parameters
    ----------
    noun
        What is counted, in the plural.
    """

    def __init__(self, noun: str = "fits") -> None:
        super().__init__(sys.stderr)
        self._noun = noun

    def __call__(self, state: State) -> None:
        """Show the state if it is time to."""
        if self.is_due(state.elapsed_s):
            left = time_left(state.left_s)
            self.show(f"{state.done} of {state.total} {self._noun}, {left}: {state.label}")


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
