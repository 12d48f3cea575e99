"""Residuals of relative vectors, by the device that counted."""

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
    source: Annotated[Integers, Array("n", low=0)]  # Number of the device that counted
    sources: Annotated[tuple[str, ...], Array("s")]

    def check(self) -> None:
        """Refuse groups and sources without a residual."""
        super().check()
        check_numbers("source", self.source, self.sources)

    @classmethod
    def of(cls, group: Sequence[str], source: Sequence[str], log_error: Reals) -> RelativeResiduals:
        """Residuals, each with the name of its group and of the device that counted."""
        (groups, of_group), (sources, of_source) = (
            np.unique(np.array(names), return_inverse=True) for names in (group, source)
        )
        return cls(log_error, of_group, tuple(groups.tolist()), of_source, tuple(sources.tolist()))

    def rows(self, chosen: Flags) -> RelativeResiduals:
        """Some of the residuals."""
        groups = [self.groups[number] for number in self.group[chosen]]
        sources = [self.sources[number] for number in self.source[chosen]]
        return self.of(groups, sources, self.log_error[chosen])

    def of_source(self, source: str) -> RelativeResiduals:
        """The residuals of what was counted on a device; all of them if there are none."""
        known = source in self.sources
        return self.rows(self.source == self.sources.index(source)) if known else self

    def relative_errors(self, base: int | None) -> Reals:
        """Errors of times over that on a device, of shape ``(n, d)``."""
        return np.asarray(self.log_error - (0.0 if base is None else self.log_error[:, [base]]))

    def reach(self, level: float, base: int | None) -> Reals:
        """How far intervals reach to both sides, in logarithms, of shape ``(d,)``."""
        return self.quantile(np.abs(self.relative_errors(base)), level)

    @property
    def most_level(self) -> float:
        """The highest probability that an interval can have, by the number of groups."""
        return most_level(len(self.groups))
