"""What was forecast of kernels that were held out, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """Forecasts of ``n`` kernels at a size on ``d`` devices, and the measured times.

    All times are natural logarithms of seconds, of shape ``(n, d)``.

    Parameters
    ----------
    application
        Application of each kernel, of length ``n``.
    measured
        Measured medians; not a number where not measured.
    centre
        Predicted medians.
    low, high
        Limits of the intervals.
    scored
        Cells whose errors count: those held out, of shape ``(n, d)``.
    known
        Cells whose measured times the model was told, of shape ``(n, d)``.
    rows
        Number of each kernel in its grid, of shape ``(n,)``.
    """

    application: tuple[str, ...]
    measured: Reals
    centre: Reals
    low: Reals
    high: Reals
    scored: Flags
    known: Flags
    rows: Integers

    def __post_init__(self) -> None:
        """Check the shapes."""
        shape = self.measured.shape
        arrays = (self.centre, self.low, self.high, self.scored, self.known)
        if not (
            len(shape) == 2
            and len(self.application) == len(self.rows) == shape[0]
            and all(array.shape == shape for array in arrays)
        ):
            shapes = [array.shape for array in (self.measured, *arrays)]
            raise InputError(
                f"outcome: expected a name a kernel and arrays of one shape (n, d), found "
                f"{len(self.application)} names and shapes {shapes}"
            )

    @property
    def counted(self) -> Flags:
        """Cells whose errors count and that were measured, of shape ``(n, d)``."""
        counted: Flags = self.scored & np.isfinite(self.measured)
        return counted

    def on(self, device: int) -> Outcome:
        """The same with the cells of one device alone counted."""
        scored = np.zeros_like(self.scored)
        scored[:, device] = self.scored[:, device]
        return replace(self, scored=scored)
