"""The blend: trees that know how kernels resemble each other, and sums that know what work costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.relative.blend.preference import BRIEF, FULL, Effort, FittedPreference, fit_preference
from crosscast.predict.relative.blend.sums import FittedSums, fit_sums
from crosscast.predict.relative.blend.training_rows import TrainingRows, training_rows
from crosscast.predict.relative.observations import Observations, Vectors, check_runs, relative_to_slowest
from crosscast.predict.state import kept_integers, kept_reals

__all__ = ["Blend", "BlendPredictor", "Mix"]

_FOLDS = 8
"""Parts of the kernels that are left out in turn."""


@dataclass(frozen=True)
class Mix:
    """How trees and sums are mixed.

    Parameters
    ----------
    share
        Share of the sums in the mean of the logarithms.
    anchored
        Whether the sums take a run's own time on its source.
    """

    share: float
    anchored: bool


_UNTOLD = Mix(0.5, True)
"""Where too few kernels are there to leave some out, or neither errs."""


@dataclass(frozen=True, eq=False)
class BlendPredictor:
    """A fitted blend.

    Parameters
    ----------
    preference
        The trees.
    sums
        The sums of work; ``None`` if the counters tell of no work.
    mix
        How the two are mixed.
    """

    preference: FittedPreference
    sums: FittedSums | None
    mix: Mix

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors, of shape ``(r, d)``; the largest entry of a row is 1."""
        log = self.preference.log_relative(observations)
        if self.sums is not None:
            log = _mixed(
                log, self.sums.log_relative(observations, anchored=self.mix.anchored), self.mix.share
            )
        return relative_to_slowest(np.exp(log))

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of runs that it does not look at: neither they nor what they mean were in the training."""
        return self.preference.unknown_counters(observations)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        sums = {} if self.sums is None else self.sums.state()
        mix = {"share": np.array([self.mix.share]), "anchored": np.array([self.mix.anchored], dtype=np.int64)}
        return {**self.preference.state(), **sums, **mix}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> BlendPredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or parts are of other numbers of devices.
        """
        preference, share = FittedPreference.from_state(state), kept_reals(state, "share", 1)
        anchored = kept_integers(state, "anchored", 1, (0, 2))
        if len(share) != 1 or not 0 <= share[0] <= 1:
            raise InputError(f"model: share: expected one number from 0 to 1, found {share.tolist()}")
        if len(anchored) != 1:
            raise InputError(f"model: anchored: expected one integer, found {anchored.tolist()}")
        has_sums = share[0] > 0 or "prices" in state
        sums = FittedSums.from_state(state) if has_sums else None
        devices = preference.grown.value.shape[1]
        if sums is not None and len(sums.devices) != devices:
            raise InputError(f"model: prices: expected {devices} devices, found {len(sums.devices)}")
        return cls(preference, sums, Mix(float(share[0]), bool(anchored[0])))


def _mixed(trees: Reals, sums: Reals, share: float) -> Reals:
    """The weighted mean; the trees alone where the sums know nothing of a run."""
    known = np.isfinite(sums).all(axis=1, keepdims=True)
    return np.where(known, (1 - share) * trees + share * np.where(known, sums, 0.0), trees)


@dataclass(frozen=True)
class Blend:
    """Trees on intensities and sums of work, mixed as serves groups that were left out of the training rows.

    The share of the sums, and whether they take a run's own time, are found by leaving kernels out of the
    training rows.

    Parameters
    ----------
    effort
        How many trees predict.
    brief
        How many trees are grown for each part of the kernels that is left out.
    """

    effort: Effort = FULL
    brief: Effort = BRIEF

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "blend"

    def fit(self, vectors: Vectors, seed: int) -> BlendPredictor:
        """Fit it.

        Raises
        ------
        InputError
            If there is no run, or nothing that was counted differs between the runs.
        MissingExtraError
            If scikit-learn, SciPy or XGBoost is not installed.
        """
        check_runs(self.name, vectors)
        rows = training_rows(vectors)
        preference, sums = _parts(rows, seed, self.effort)
        return BlendPredictor(
            preference, sums, Mix(0.0, False) if sums is None else _best_mix(rows, seed, self.brief)
        )


def _parts(rows: TrainingRows, seed: int, effort: Effort) -> tuple[FittedPreference, FittedSums | None]:
    seen, devices = rows.vectors.observations, rows.vectors.devices
    return (
        fit_preference(rows, seed, effort),
        fit_sums(seen, devices, rows.log_time, rows.weights),
    )


def _best_mix(rows: TrainingRows, seed: int, effort: Effort) -> Mix:
    """Weigh the parts by how well each does by itself on groups that were left out.

    Weights go with the inverse of the squared error, as of two independent measurements. The share with the
    least error of the mean itself would be chosen by the luck of a few kernels.
    """
    groups = _groups(rows.vectors.observations, seed)
    errors: list[list[float]] = []
    for group in range(int(groups.max()) + 1):
        inside, outside = np.flatnonzero(groups != group), np.flatnonzero(groups == group)
        if not len(inside):
            break
        try:
            preference, sums = _parts(rows.rows(inside), seed, effort)
        except InputError:
            # Nothing differs between the few runs that are left: they tell nothing of the mix.
            continue
        if sums is not None:
            errors += _errors(preference, sums, rows.rows(outside))
    if not errors:
        return _UNTOLD
    trees, anchored, free = np.mean(errors, axis=0).tolist()
    sums_alone = min(anchored, free)
    total = trees**2 + sums_alone**2
    return Mix(trees**2 / total, anchored <= free) if total > 0 else _UNTOLD


def _errors(preference: FittedPreference, sums: FittedSums, held: TrainingRows) -> list[list[float]]:
    """Mean absolute errors of the trees, the anchored sums and the free ones, where sums tell something."""
    seen = held.vectors.observations
    free = sums.log_relative(seen, anchored=False)
    told = np.isfinite(free).all(axis=1)
    if not told.any():
        return []
    logs = (preference.log_relative(seen), sums.log_relative(seen, anchored=True), free)
    known, weights = held.vectors.vector[told], held.weights[told]
    wrong = [np.abs(relative_to_slowest(np.exp(log[told])) - known).mean(axis=1) for log in logs]
    return [[float(np.average(each, weights=weights)) for each in wrong]]


def _groups(seen: Observations, seed: int) -> Integers:
    """A number for each row, the same for all of a kernel; kernels are dealt to the numbers by chance."""
    kernels = list(zip(seen.application, seen.kernel, strict=True))
    known = sorted(set(kernels))
    dealt = np.random.default_rng(seed).permutation(len(known)) % _FOLDS
    number = dict(zip(known, dealt.tolist(), strict=True))
    return np.array([number[kernel] for kernel in kernels], dtype=np.int64)
