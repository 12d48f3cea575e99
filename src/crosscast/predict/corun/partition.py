"""What is left out within training, to choose by and to learn how wrong a model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import arrays_of, kept_names, kept_reals
from crosscast.predict.corun.partition_learners import (
    Amount,
    Blend,
    Constant,
    Forest,
    Learned,
    LearnedBlend,
    LearnedConstant,
    LearnedForest,
    Learner,
    Rows,
    feature_count,
    features_of,
)
from crosscast.tables.corun.mixes import Mixes

Jobs = Literal["known jobs", "new job"]
"""Whether what is asked about are new mixes of jobs that are known from others, or mixes with a new job."""

JOBS: tuple[Jobs, ...] = ("known jobs", "new job")

_SET_FOLDS = 4
_JOB_BLOCKS = 6
_MOST_SCORED = 400


@dataclass(frozen=True, eq=False)
class MixFold:
    """A part of the members, to be predicted by a model that was fitted to other mixes."""

    held_out: str  # What is held out, for people
    train: Flags  # Whether each mix is learned from, of shape `(n,)`
    test: Flags  # Whether each member is predicted, of shape `(n, k)`; none of a mix that is learned from


def folds_without_sets(mixes: Mixes, count: int, seed: int) -> tuple[MixFold, ...]:
    """Leave mixes out in folds, those of the same jobs together."""
    number = mixes.job_set
    sets = int(number.max(initial=-1)) + 1
    if sets < 2:
        raise InputError(f"{mixes.label}: expected mixes of at least 2 sets of jobs, found {sets}")
    parts = np.array_split(np.random.default_rng(seed).permutation(sets), min(count, sets))
    folds = []
    for place, part in enumerate(parts, start=1):
        tested: Flags = np.asarray(np.isin(number, part))
        folds.append(MixFold(f"mixes, part {place}", ~tested, tested[:, None] & mixes.judged))
    return tuple(folds)


def folds_without_jobs(mixes: Mixes, blocks: list[Integers]) -> tuple[MixFold, ...]:
    """Leave jobs out in blocks, with all mixes that any of them is in.

    Their mixes are not learned from, whatever else is in them; what is predicted are the jobs themselves.
    """
    folds = []
    for block in blocks:
        test = np.isin(mixes.job, block)
        train = ~np.asarray(test.any(axis=1))
        names = ", ".join(mixes.jobs[job] for job in block.tolist())
        if not (train[:, None] & mixes.judged).any():
            raise InputError(f"{mixes.label}: expected mixes without {names} to learn from, found none")
        if test.any():
            folds.append(MixFold(names, train, test))
    return tuple(folds)


def folds_within(mixes: Mixes, jobs: Jobs, seed: int) -> tuple[MixFold, ...]:
    """Folds within training mixes that are to these as what will be asked about is to all of them."""
    if jobs == "known jobs":
        return folds_without_sets(mixes, _SET_FOLDS, seed)
    there = np.unique(mixes.job[mixes.judged])
    if len(there) < 2:
        raise InputError(f"{mixes.label}: expected at least 2 jobs to learn from, found {len(there)}")
    random = np.random.default_rng(seed)
    blocks = np.array_split(random.permutation(there), min(_JOB_BLOCKS, len(there)))
    return tuple(
        MixFold(fold.held_out, fold.train, _some(fold.test, random))
        for fold in folds_without_jobs(mixes, blocks)
    )


def _some(test: Flags, random: np.random.Generator) -> Flags:
    places = np.flatnonzero(test)
    if len(places) > _MOST_SCORED:
        places = random.choice(places, _MOST_SCORED, replace=False)
    some = np.zeros(test.size, dtype=np.bool_)
    some[places] = True
    return some.reshape(test.shape)


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
    """What is predicted of ``r`` members on ``s`` sizes of parts."""

    # Relative time alone on a part of each size, over that on the part on which it is slowest, of shape `(r,
    # s)`
    centre: Reals
    low: Reals  # Limits of its interval
    high: Reals


@dataclass(frozen=True)
class PartitionModel:
    """A way to learn, chosen and calibrated for what will be asked about."""

    learner: Learner  # The way
    # `known jobs` if mixes of jobs that are known from others will be asked about: then sets of jobs are left
    # out within training. `new job`: then jobs are, with all mixes that they are in. By what is left out, the
    # learner's choices are made, and intervals are as wide as its errors are
    jobs: Jobs = "new job"

    @property
    def name(self) -> str:
        """Name on the command line, and in tables."""
        return self.learner.name

    def fit(self, mixes: Mixes, seed: int) -> FittedPartition:
        """Fit it to mixes."""
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
    """A fitted model; see `PartitionModel`."""

    levels: tuple[float, ...]  # Percentages of MPS at which mixes are run
    slices: tuple[float, ...]  # Slices of the parts
    learned: Learned  # What was learned
    errors: Reals  # Absolute errors on what was left out in training, of shape `(e, s)`

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
        """Predict members of mixes."""
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
        """Make it from its arrays."""
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


PARTITION_BASELINES = ("mean",)
"""Those that look at no member: anything else must beat them."""

PARTITION_MODELS: Mapping[str, Learner] = MappingProxyType(
    {each.name: each for each in (Constant(), Forest(), Blend())}
)
"""The ways to learn, from the trivial to the strong."""


def partition_models(names: Sequence[str], jobs: Jobs) -> list[PartitionModel]:
    """Make models, in the order of their names."""
    for name in names:
        if name not in PARTITION_MODELS:
            raise InputError(f"models: expected one of {', '.join(PARTITION_MODELS)}, found {name!r}")
    return [PartitionModel(PARTITION_MODELS[name], jobs) for name in dict.fromkeys(names)]
