"""The physical model as a point model: the mean of its variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.grid import Grid, Profiles
from crosscast.predict.kinds import kinds_of
from crosscast.predict.physical.fitting import Data, Prices, fit_prices, standardized
from crosscast.predict.physical.quantities import Quantities, quantities_of
from crosscast.predict.physical.terms import TERMS, VARIANTS, Variant, amounts, bends, loads, masks
from crosscast.predict.state import kept_integers, kept_reals
from crosscast.predict.weights import application_weights

__all__ = ["Physical", "PhysicalPredictor"]


def _form(variant: Variant) -> tuple[bool, float]:
    """What of a variant decides its terms' quantities."""
    return variant.barriers, variant.most_transactions


_LAUNCH = TERMS.index("launch")
_FORMS = {_form(variant): variant for variant in VARIANTS}


@dataclass(frozen=True)
class _Kind:
    """Devices that differ in nothing but their prices.

    Parameters
    ----------
    columns
        Their numbers.
    gpu
        Whether they are GPUs.
    bends
        For each variant, by how much each bend changes the logarithm of each term, of shape ``(b, t)``.
    prices
        For each variant, the prices, of shape ``(t, number of these devices)``.
    """

    columns: Integers
    gpu: bool
    bends: tuple[Reals, ...]
    prices: tuple[Reals, ...]


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
        total = np.zeros((len(profiles), len(self.gpu)))
        for columns, work, prices in self._products(quantities_of(profiles)):
            total[:, columns] += np.log(work @ prices)
        return total / len(VARIANTS)

    def log_time_and_launch_share(self, quantities: Quantities) -> tuple[Reals, Reals]:
        """Logarithms of times, and the share of them that the launch takes, of shape ``(n, d)`` each."""
        total, share = (np.zeros((len(quantities.instructions), len(self.gpu))) for _ in range(2))
        for columns, work, prices in self._products(quantities):
            time = work @ prices
            total[:, columns] += np.log(time)
            share[:, columns] += work[:, [_LAUNCH]] * prices[_LAUNCH] / time
        return total / len(VARIANTS), share / len(VARIANTS)

    def _products(self, quantities: Quantities) -> Iterator[tuple[Integers, Reals, Reals]]:
        """Columns of devices, quantities and prices there, whose product is the time, for each variant."""
        bent = standardized(bends(quantities), self.centre, self.scale)
        # Devices of a kind share everything but their prices, which leaves them a product of matrices.
        for kind in self._kinds:
            works = {form: amounts(quantities, kind.gpu, variant) for form, variant in _FORMS.items()}
            for variant, strengths, prices in zip(VARIANTS, kind.bends, kind.prices, strict=True):
                yield kind.columns, works[_form(variant)] * np.exp(bent @ strengths), prices

    @cached_property
    def _kinds(self) -> tuple[_Kind, ...]:
        """The devices by whether they are GPUs and by how the bends act on them."""
        marks = np.vstack([self.gpu[None, :], self.acts.reshape(-1, len(self.gpu))])
        _, number = np.unique(marks, axis=1, return_inverse=True)
        kinds = []
        for columns in (np.flatnonzero(number == kind) for kind in range(int(number.max()) + 1)):
            acts = self.acts[:, :, columns[0]]
            kinds.append(
                _Kind(
                    columns,
                    bool(self.gpu[columns[0]]),
                    tuple(prices.bends[:, None] * acts for prices in self.prices),
                    tuple(np.exp(prices.terms[:, columns]) for prices in self.prices),
                )
            )
        return tuple(kinds)

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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        gpu = kept_integers(state, "gpu", 1, (0, 2)).astype(bool)
        centre, acts = kept_reals(state, "centre", 1), kept_reals(state, "acts", 3)
        scale, terms, strengths = (
            kept_reals(state, name, axes) for name, axes in (("scale", 1), ("terms", 3), ("bends", 2))
        )
        v, t, d, b = len(VARIANTS), len(TERMS), len(gpu), len(centre)
        if not (
            acts.shape == (b, t, d)
            and scale.shape == (b,)
            and (scale > 0).all()
            and terms.shape == (v, t, d)
            and strengths.shape == (v, b)
        ):
            raise InputError(
                f"model: expected prices of {v} variants of {t} terms on {d} devices with {b} bends, found "
                f"shapes {terms.shape}, {strengths.shape} and {acts.shape}"
            )
        return cls(gpu, acts, centre, scale, tuple(map(Prices, terms, strengths)))


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
        acts, bent = masks(grid.devices), standardized(raw, centre, scale)
        weights, groups = application_weights(grid.profiles), kinds_of(grid.devices)
        data = {
            form: Data(
                loads=loads(quantities, gpu, variant),
                bends=bent,
                masks=acts,
                log_time=grid.log_time,
                weights=weights,
                groups=groups,
            )
            for form, variant in _FORMS.items()
        }
        prices = tuple(fit_prices(data[_form(variant)], variant.robustness) for variant in VARIANTS)
        return PhysicalPredictor(gpu, acts, centre, scale, prices)
