"""Correct predicted times by the errors on measured launches of similar work.

Launches of similar work have similar errors of the physical terms. They are a Gaussian process over traits of
a launch's work, with a covariance that falls with distance (Rasmussen and Williams 2006, *Gaussian Processes
for Machine Learning*, ch. 2 and 4.2): near a measured launch the correction is that launch's error, far from
all of them it is zero. Errors on devices of one kind are more strongly correlated than on others, and smaller
where memory takes the time, as its rate is known best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.device import Device
from crosscast.prediction.serialization import Array, Stored
from crosscast.prediction.time.terms import has_own_rates
from crosscast.prediction.time.work import TRAITS

_SHARED = np.array([[1.0, 0.3, 0.3, 0.0], [0.3, 1.0, 0.6, 0.0], [0.3, 0.6, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
"""Correlation of the errors of one launch on CPUs, GPUs of Nvidia, other GPUs, and CPUs of measured rates."""

_OF_MEMORY = 0.5
"""Size of the errors of times that are all of memory, over that of times without.

The likelihood of the errors on published times is highest for this of 1, 0.5, 0.25 and 0.1.
"""

_RANGE = 0.5
"""Distance over which errors fall to 1/e of their covariance.

The likelihood of the errors on training data is highest for 2, as kernels of one application are
neighbours. But then errors of FFTs made streams, stencils and multiply-adds of other sources 1.3 times too
slow (``python -m benchmarks.published_kernels``).
"""
_SIMILAR = 6.0
"""Range over which launches are similar enough for errors of one size, over that of the errors themselves."""
_VARIANCES = (0.02, 0.05, 0.1, 0.2)
_NOISES = (0.02, 0.05, 0.1)
_STARTS = (_RANGE, 0.1, np.full(len(_SHARED), 0.05))
_SWEEPS = 2
_LEAST_NOISE = 0.01
_LARGEST = 1.5
_MOST_OF_APPLICATION = 25


def kind_number(device: Device) -> int:
    """Number of a device's row in `_SHARED`."""
    if device.kind == "cpu":
        return 3 if has_own_rates(device) else 0
    return 1 if device.vendor == "Nvidia" else 2


@dataclass(frozen=True, eq=False)
class Correction(Stored, kind="correction"):
    """Errors of ``n`` launches on kinds of devices, ``g`` in all, and the covariance that spreads them."""

    names: Annotated[tuple[str, ...], Array("n")]  # Of the launches, for people
    traits: Annotated[Reals, Array(f"n {len(TRAITS)}")]
    launch: Annotated[Integers, Array("g", low=0, below="n")]
    side: Annotated[Integers, Array("g", low=0, below=len(_SHARED))]
    memory: Annotated[Reals, Array("g", low=0, high=1)]  # Share of memory in the times
    errors: Annotated[Reals, Array("g")]  # Measured less predicted logarithms
    counts: Annotated[Reals, Array("g", above=0)]  # Number of times of which each is the median
    range: Annotated[float, Array(above=0)]  # Distance of traits over which covariance falls to 1/e
    variance: Annotated[float, Array(above=0)]
    # Variance of the errors of single times, by kind of device
    noise: Annotated[Reals, Array(str(len(_SHARED)), above=0)]

    def _covariance(self, reach: float) -> Reals:
        """Covariance ``(g, g)`` of the errors, of launches whose covariance falls to 1/e over a distance."""
        sizes = _sizes(self.memory)
        fall = np.exp(self.distances(self.traits)[self.launch][:, self.launch] / -reach)
        shared = self.variance * _SHARED[self.side[:, None], self.side]
        covariance = fall * (shared * sizes) * sizes[:, None]
        covariance[np.diag_indices(len(covariance))] += _LEAST_NOISE + self.noise[self.side] / self.counts
        return covariance

    def log_likelihood(self) -> float:
        """Logarithm of the likelihood of the errors, but for a constant."""
        covariance = self._covariance(self.range)
        weights = np.linalg.solve(covariance, self.errors)
        return float(-0.5 * self.errors @ weights - 0.5 * np.linalg.slogdet(covariance)[1])

    @cached_property
    def _of_kinds(self) -> list[tuple[Integers, Reals, Reals]]:
        """For each kind of device the launches whose errors say something of it, and what they say.

        Weights, of which the sum over the launches, each times its fall with distance, is the correction; and
        a matrix, of which the product with these on both sides is the share of the variance explained.
        """
        weights = np.linalg.solve(self._covariance(self.range), self.errors)
        inverse = np.linalg.inv(self._covariance(_SIMILAR * self.range))
        of_kinds = []
        for correlation in _SHARED:
            known = np.argsort(self.launch, kind="stable")
            known = known[correlation[self.side[known]] > 0]
            launches, first = np.unique(self.launch[known], return_index=True)
            amounts = self.variance * correlation[self.side[known]] * _sizes(self.memory[known])
            products = inverse[known][:, known] * amounts * amounts[:, None] / self.variance
            explained = np.add.reduceat(np.add.reduceat(products, first, axis=0), first, axis=1)
            of_kinds.append((launches, np.add.reduceat(amounts * weights[known], first), explained))
        return of_kinds

    def distances(self, traits: Reals) -> Reals:
        """Distances ``(m, n)`` of launches of some traits, ``(m, len(TRAITS))``, from the known ones."""
        known = self.traits
        squares = (traits**2).sum(axis=1)[:, None] + (known**2).sum(axis=1) - 2 * traits @ known.T
        distances: Reals = np.sqrt(np.maximum(squares, 0.0))
        return distances

    def of(self, distances: Reals, kinds: Integers, memory: Reals) -> tuple[Reals, Reals]:
        """Logarithms to add to those of times ``(m, d)`` of launches at some distances on kinds ``(d,)``.

        Also the share of the errors' variance that known launches explain, from 0 to 1. `memory` is its share
        in each time, ``(m, d)``.
        """
        shift, explained = np.zeros((2, len(distances), len(_SHARED)))
        if len(self.launch):
            ranges = distances / -self.range
            fall, similar = np.exp(ranges), np.exp(ranges / _SIMILAR)
            for kind in set(kinds.tolist()):
                launches, weights, products = self._of_kinds[kind]
                near = similar[:, launches]
                shift[:, kind] = fall[:, launches] @ weights
                explained[:, kind] = (near @ products * near).sum(axis=1)
        return shift[:, kinds] * _sizes(memory), np.minimum(np.maximum(explained, 0.0), 1.0)[:, kinds]

    def with_launches(self, other: Correction) -> Correction:
        """Correction with the launches of both, and the covariance of this one."""
        return replace(
            self,
            names=(*self.names, *other.names),
            traits=np.concatenate([self.traits, other.traits]),
            launch=np.concatenate([self.launch, other.launch + len(self.names)]),
            side=np.concatenate([self.side, other.side]),
            memory=np.concatenate([self.memory, other.memory]),
            errors=np.concatenate([self.errors, other.errors]),
            counts=np.concatenate([self.counts, other.counts]),
        )

    def nearest(self, distances: Reals) -> tuple[Integers, Reals]:
        """Numbers of the known launches most similar to ``m``, and similarities from 1 to 0."""
        number = distances.argmin(axis=1)
        return number, np.exp(distances[np.arange(len(number)), number] / (-_SIMILAR * self.range))


def no_correction() -> Correction:
    """A correction without any known launch: zero everywhere."""
    no_errors, no_indices = np.zeros(0), np.zeros(0, dtype=np.int64)
    no_traits = np.zeros((0, len(TRAITS)))
    return Correction((), no_traits, no_indices, no_indices, no_errors, no_errors, no_errors, *_STARTS)


def fit_correction(
    traits: Reals,
    names: Sequence[tuple[str, str, str]],
    kinds: Integers,
    memory: Reals,
    errors: Reals,
    template: Correction | None = None,
) -> Correction:
    """Fit a correction to errors ``(c,)``, measured less predicted logarithms, of the cells of some launches.

    Traits ``(c, len(TRAITS))`` and names (application, kernel, size) are of the launches, kinds of the
    devices, and the share of memory of the predicted times. Each application contributes a limited number of
    launches, spread in their order, so that none outweighs the others. Range, variance and noise are those of
    the template, or the latter two maximize the likelihood of the errors.
    """
    chosen = _spread(names)
    number = {name: k for k, name in enumerate(chosen)}
    groups: dict[tuple[int, int], list[int]] = {}
    for cell, name in enumerate(names):
        if name in number:
            groups.setdefault((number[name], int(kinds[cell])), []).append(cell)
    if not groups:
        return no_correction()
    first = {launch: cells[0] for (launch, _), cells in groups.items()}
    correction = Correction(
        tuple(f"{application} {kernel} at {size}".strip() for application, kernel, size in chosen),
        np.stack([traits[first[k]] for k in range(len(chosen))]),
        np.array([launch for launch, _ in groups]),
        np.array([kind for _, kind in groups]),
        np.array([np.median(memory[cells]) for cells in groups.values()]),
        np.clip([np.median(errors[cells]) for cells in groups.values()], -_LARGEST, _LARGEST),
        np.array([float(len(cells)) for cells in groups.values()]),
        *(_STARTS if template is None else (template.range, template.variance, template.noise)),
    )
    if template is not None:
        return correction
    for _ in range(_SWEEPS):
        tried = [replace(correction, variance=variance) for variance in _VARIANCES]
        correction = max(tried, key=Correction.log_likelihood)
        for kind in np.unique(correction.side):
            own = np.arange(len(_SHARED)) == kind
            tried = [replace(correction, noise=np.where(own, noise, correction.noise)) for noise in _NOISES]
            correction = max(tried, key=Correction.log_likelihood)
    return correction


def _sizes(memory: Reals) -> Reals:
    """Sizes of errors of times with a share of memory, over those of times without."""
    sizes: Reals = 1.0 - (1.0 - _OF_MEMORY) * memory
    return sizes


def _spread(names: Sequence[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    by_application: dict[str, list[tuple[str, str, str]]] = {}
    for name in sorted(set(names)):
        by_application.setdefault(name[0], []).append(name)
    return [
        launches[len(launches) * k // most]
        for launches in by_application.values()
        for most in (min(len(launches), _MOST_OF_APPLICATION),)
        for k in range(most)
    ]
