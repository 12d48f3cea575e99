"""The best fixed configuration: one for all kernels and caps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags
from crosscast.choose.evaluation.cases import Integers, Weighting, cases_of
from crosscast.choose.limit import within_cap
from crosscast.choose.walk import Chooser, Walk
from crosscast.errors import InputError
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["Fixed"]


@dataclass(frozen=True)
class Fixed:
    """Always takes the configuration with the best score over the training kernels, each under its own caps.

    The score is that of the evaluation: the mean of performance relative to the oracle with violations
    counting 0. Where that configuration cannot be taken, the one with the next best score is.

    Parameters
    ----------
    name
        Its name.
    weighting
        How the kernels of a program are weighted: see `cases_of`.
    """

    name: str = "fixed"
    weighting: Weighting = "time"
    baseline: bool = True

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Rank the configurations; see `Method.fit`.

        Raises
        ------
        InputError
            If no training kernel was run at the sample configurations and has two on its frontier.
        """
        cases = cases_of(surfaces, samples, weighting=self.weighting)
        if not len(cases):
            raise InputError(f"{surfaces.label}: expected training kernels under caps, found none")
        within = within_cap(surfaces.power_w[cases.kernel], cases.power_cap[:, None])
        performance = cases.oracle_time_s[:, None] / surfaces.time_s[cases.kernel]
        scores = cases.share @ np.where(within, performance, 0.0)
        return _FixedChooser(np.argsort(-scores, kind="stable"))


@dataclass(frozen=True)
class _FixedChooser:
    best_first: Integers
    uses_budget: bool = False

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        yield int(self.best_first[available[self.best_first]][0])
