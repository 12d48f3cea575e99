"""What every model of configurations can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["ConfigurationModel", "ConfigurationPredictor"]


class ConfigurationPredictor(Protocol):
    """A fitted model."""

    @property
    def space(self) -> Space:
        """The configurations that it predicts."""
        ...

    @property
    def samples(self) -> tuple[int, ...]:
        """The configurations at which it wants a new kernel to be run first, by their places."""
        ...

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power of one kernel at every configuration.

        Parameters
        ----------
        observed
            Its runs: those at the sample configurations, and others if there are more.

        Raises
        ------
        InputError
            If a run at a sample configuration is missing.
        """
        ...


class ConfigurationModel(Protocol):
    """A way to learn a `ConfigurationPredictor`."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> ConfigurationPredictor:
        """Learn from kernels.

        Parameters
        ----------
        surfaces
            The training kernels; what they lack is NaN.
        samples
            The configurations at which new kernels will have been run.
        seed
            Start of all random numbers.

        Raises
        ------
        InputError
            If there is too little to learn from.
        """
        ...
