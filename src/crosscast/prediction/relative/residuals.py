"""Residuals of relative vectors, by the device with the counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.prediction.intervals import CONFORMAL, Residuals, check_numbers, most_level
from crosscast.prediction.serialization import Array


@dataclass(frozen=True, eq=False)
class RelativeResiduals(Residuals):
    """Out-of-fold residuals of ``n`` vectors of ``d`` devices."""

    method = CONFORMAL

    # Logarithm of the predicted over the true entry, both relative to the slowest device of their vector.
    log_error: Annotated[Reals, Array("n d", least=1)]
    source: Annotated[Integers, Array("n", low=0)]  # Index of the device with the counters
    sources: Annotated[tuple[str, ...], Array("s")]

    def check(self) -> None:
        """Raise InputError for groups and sources without a residual."""
        super().check()
        check_numbers("source", self.source, self.sources)

    @classmethod
    def of(cls, group: Sequence[str], source: Sequence[str], log_error: Reals) -> RelativeResiduals:
        """Residuals, each with the names of its group and of the device with the counters."""
        (groups, of_group), (sources, of_source) = (
            np.unique(np.array(names), return_inverse=True) for names in (group, source)
        )
        return cls(log_error, of_group, tuple(groups.tolist()), of_source, tuple(sources.tolist()))

    def rows(self, chosen: Flags) -> RelativeResiduals:
        """The residuals of a mask."""
        groups = [self.groups[number] for number in self.group[chosen]]
        sources = [self.sources[number] for number in self.source[chosen]]
        return self.of(groups, sources, self.log_error[chosen])

    def of_source(self, source: str) -> RelativeResiduals:
        """The residuals of runs that were counted on a device; all residuals if there are none."""
        known = source in self.sources
        return self.rows(self.source == self.sources.index(source)) if known else self

    def relative_errors(self, base: int | None) -> Reals:
        """Errors of times relative to a device, ``(n, d)``."""
        return np.asarray(self.log_error - (0.0 if base is None else self.log_error[:, [base]]))

    def half_width(self, level: float, base: int | None) -> Reals:
        """Half-widths of intervals, in logarithms, ``(d,)``."""
        return self.quantile(np.abs(self.relative_errors(base)), level)

    @property
    def most_level(self) -> float:
        """The highest level of an interval with these groups."""
        return most_level(len(self.groups))
