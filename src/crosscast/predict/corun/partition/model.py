"""A model of parts: how a job of a mix would do alone on parts of the GPU, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.partition.blend import LearnedBlend
from crosscast.predict.corun.partition.constant import LearnedConstant
from crosscast.predict.corun.partition.features import feature_count, features_of
from crosscast.predict.corun.partition.forest import LearnedForest
from crosscast.predict.corun.partition.learner import Amount, Learned, Learner, Rows
from crosscast.predict.corun.partition.left_out import Jobs, folds_within
from crosscast.predict.state import kept_names, kept_reals
from crosscast.predict.stored import arrays_of
from crosscast.tables.corun.mixes import Mixes

__all__ = ["FittedPartition", "PartitionModel", "PartitionPrediction"]

_EVERY = 1 << 40
_WHOLE: Mapping[Jobs, Amount] = {
    "known jobs": Amount(100, _EVERY, 2000),
    # Trees and kernels that know fewer members are as good where the job is new.
    "new job": Amount(50, 4000, 2000),
}
_WITHIN: Mapping[Jobs, Amount] = {
    "known jobs": Amount(30, _EVERY, 1000),
    "new job": Amount(20, 1500, 800),
}
_SLACK = 1e-9
"""By rounding, a prediction of 1 may be below a time of 1."""

_FORMS = {kind.form: kind for kind in (LearnedBlend, LearnedConstant, LearnedForest)}


@dataclass(frozen=True, eq=False)
class PartitionPrediction:
    """What is predicted of ``r`` members on ``s`` sizes of parts.

    Parameters
    ----------
    centre
        Relative time alone on a part of each size, over that on the part on which it is slowest, of shape
        ``(r, s)``.
    low, high
        Limits of its interval.
    """

    centre: Reals
    low: Reals
    high: Reals


@dataclass(frozen=True)
class PartitionModel:
    """A way to learn, chosen and calibrated for what will be asked about.

    Parameters
    ----------
    learner
        The way.
    jobs
        ``known jobs`` if mixes of jobs that are known from others will be asked about: then sets of jobs are
        left out within training. ``new job``: then jobs are, with all mixes that they are in. By what is
        left out, the learner's choices are made, and intervals are as wide as its errors are.
    """

    learner: Learner
    jobs: Jobs = "new job"

    @property
    def name(self) -> str:
        """Name on the command line, and in tables."""
        return self.learner.name

    def fit(self, mixes: Mixes, seed: int) -> FittedPartition:
        """Fit it to mixes.

        Parameters
        ----------
        mixes
            Mixes to learn from; those that are no jobs are not learned, but are others to those that are.
        seed
            Start of all random numbers.

        Raises
        ------
        InputError
            If there is too little to learn from, or to leave out.
        MissingExtraError
            If scikit-learn is not installed.
        """
        judged = mixes.judged
        features = np.full((*judged.shape, feature_count(len(mixes.levels))), np.nan)
        features[judged] = features_of(mixes.shared, judged)

        def rows(chosen: Flags) -> Rows:
            return Rows(features[chosen], len(mixes.levels), mixes.alone[chosen])

        errors = []
        for number, fold in enumerate(folds_within(mixes, self.jobs, seed)):
            learned = rows(fold.train[:, None] & judged)
            held = rows(fold.test)
            tried = self.learner.tried(learned, held.features, _WITHIN[self.jobs], seed + number)
            errors.append(np.abs(tried - held.alone))
        found = np.concatenate(errors, axis=1)
        choice = int(found.mean(axis=(1, 2)).argmin())
        whole = self.learner.fit(rows(judged), _WHOLE[self.jobs], seed, choice)
        return FittedPartition(mixes.levels, mixes.slices, whole, found[choice])


@dataclass(frozen=True, eq=False)
class FittedPartition:
    """A fitted model; see `PartitionModel`.

    Parameters
    ----------
    levels
        Percentages of MPS at which mixes are run.
    slices
        Slices of the parts.
    learned
        What was learned.
    errors
        Absolute errors on what was left out in training, of shape ``(e, s)``.
    """

    levels: tuple[float, ...]
    slices: tuple[float, ...]
    learned: Learned
    errors: Reals

    def reach(self, level: float) -> Reals:
        """How far intervals reach to both sides on each size of parts, of shape ``(s,)``.

        Quantiles of the errors on members that were left out (split conformal). Members count the same:
        the few jobs that are left out as a block are not taken as one error each.
        """
        count = len(self.errors)
        place = min(count, int(np.ceil((count + 1) * level - _SLACK))) - 1
        reach: Reals = np.sort(self.errors, axis=0)[max(place, 0)]
        return reach

    def predict(self, shared: Reals, judged: Flags, level: float = 0.9) -> PartitionPrediction:
        """Predict members of mixes.

        Parameters
        ----------
        shared
            Relative time of each member at each level of MPS, of shape ``(n, k, l)``.
        judged
            Members that are no dummies, of shape ``(n, k)``: they are predicted, in their order.
        level
            Probability that an interval is to hold.

        Raises
        ------
        InputError
            If the shapes are not these, or a time is not above 0.
        """
        if shared.shape[2:] != (len(self.levels),):
            raise InputError(f"shared: expected {len(self.levels)} levels, found shape {shared.shape}")
        centre = self.learned.predict(features_of(shared, judged))
        reach = self.reach(level)
        return PartitionPrediction(
            centre,
            np.clip(centre - reach, 0.0, 1.0) - _SLACK,
            np.clip(centre + reach, 0.0, 1.0) + _SLACK,
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        own = {
            "form": np.array([self.learned.form]),
            "levels": np.array(self.levels),
            "slices": np.array(self.slices),
            "errors": self.errors,
        }
        return {**own, **{f"learned.{name}": array for name, array in self.learned.state().items()}}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedPartition:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or they do not fit each other.
        """
        form = kept_names(state, "form")
        if len(form) != 1 or form[0] not in _FORMS:
            raise InputError(f"model: form: expected one of {', '.join(_FORMS)}, found {', '.join(form)}")
        levels, slices = (kept_reals(state, name, 1) for name in ("levels", "slices"))
        errors = kept_reals(state, "errors", 2)
        if not len(errors) or errors.shape[1] != len(slices):
            raise InputError(f"model: errors: expected {len(slices)} columns, found shape {errors.shape}")
        learned = _FORMS[form[0]].from_state(arrays_of(state, "learned"), len(levels))
        told = learned.predict(np.zeros((1, feature_count(len(levels))))).shape
        if told != (1, len(slices)):
            raise InputError(f"model: learned: expected {len(slices)} outputs, found {told[-1]}")
        return cls(tuple(levels.tolist()), tuple(slices.tolist()), learned, errors)
