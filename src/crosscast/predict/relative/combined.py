"""The model that is taken where none is named: times of profiles, and a blend for counters of devices."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.predict.relative.blend.model import Blend
from crosscast.predict.relative.by_times import ByTimes, are_profiles
from crosscast.predict.relative.model import RelativePredictor
from crosscast.predict.relative.observations import Vectors

__all__ = ["Combined"]


@dataclass(frozen=True)
class Combined:
    """`crosscast.predict.relative.by_times` for profiles, `crosscast.predict.relative.blend` for counters."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "combined"

    def fit(self, vectors: Vectors, seed: int) -> RelativePredictor:
        """Fit the one for what the rows are.

        Raises
        ------
        InputError
            If nothing that was counted differs between the runs.
        MissingExtraError
            If scikit-learn or SciPy is not installed.
        """
        if are_profiles(vectors.observations) and vectors.described:
            return ByTimes().fit(vectors, seed)
        return Blend().fit(vectors, seed)
