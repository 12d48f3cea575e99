"""The physical model as a point model: the mean of its variants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.predict.grid import Grid, Integers, Profiles, Reals
from crosscast.predict.physical.fitting import Data, Prices, fit_prices, standardized
from crosscast.predict.physical.quantities import quantities_of
from crosscast.predict.physical.terms import VARIANTS, bends, loads, masks
from crosscast.predict.weights import application_weights

__all__ = ["Physical", "PhysicalPredictor"]


@dataclass(frozen=True)
class PhysicalPredictor:
    """A fitted physical model.

    Parameters
    ----------
    gpu
        Which of its ``d`` devices are GPUs.
    acts
        Where the bends act, as `masks` gives them.
    centre, scale
        Mean and standard deviation of the bends over the training kernels.
    prices
        Prices of each of `VARIANTS`.
    """

    gpu: Any
    acts: Reals
    centre: Reals
    scale: Reals
    prices: tuple[Prices, ...]

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds, of shape ``(n, d)``.

        Raises
        ------
        InputError
            If a profile lacks a metric.
        """
        quantities = quantities_of(profiles)
        bent = standardized(bends(quantities), self.centre, self.scale)
        total = np.zeros((len(profiles), len(self.gpu)))
        for variant, prices in zip(VARIANTS, self.prices, strict=True):
            total += prices.log_time(loads(quantities, self.gpu, variant), bent, self.acts)
        return total / len(VARIANTS)

    def state(self) -> dict[str, Any]:
        """Arrays from which `from_state` makes it again."""
        return {
            "gpu": self.gpu.astype(np.int64),
            "acts": self.acts,
            "centre": self.centre,
            "scale": self.scale,
            "terms": np.stack([prices.terms for prices in self.prices]),
            "bends": np.stack([prices.bends for prices in self.prices]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> PhysicalPredictor:
        """Make it from its arrays."""
        prices = tuple(
            Prices(terms, strengths) for terms, strengths in zip(state["terms"], state["bends"], strict=True)
        )
        return cls(state["gpu"].astype(bool), state["acts"], state["centre"], state["scale"], prices)


@dataclass(frozen=True)
class Physical:
    """A sum of terms with a price each on each device."""

    name: str = "physical"

    def fit(self, grid: Grid, seed: int) -> PhysicalPredictor:
        """Fit prices; nothing is random, so the seed is not used."""
        quantities = quantities_of(grid.profiles)
        raw = bends(quantities)
        centre, scale = raw.mean(axis=0), raw.std(axis=0) + 1e-9
        gpu = np.array([device.type == "gpu" for device in grid.devices])
        acts = masks(grid.devices)
        prices = []
        for variant in VARIANTS:
            data = Data(
                loads=loads(quantities, gpu, variant),
                bends=standardized(raw, centre, scale),
                masks=acts,
                log_time=grid.log_time,
                weights=application_weights(grid.profiles),
                groups=_groups(grid),
            )
            prices.append(fit_prices(data, variant.robustness))
        return PhysicalPredictor(gpu, acts, centre, scale, tuple(prices))


def _groups(grid: Grid) -> Integers:
    kinds = [(device.type, device.vendor) for device in grid.devices]
    order = {kind: place for place, kind in enumerate(sorted(set(kinds)))}
    return np.array([order[kind] for kind in kinds], dtype=np.int64)
