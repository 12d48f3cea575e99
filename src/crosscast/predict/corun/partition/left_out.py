"""What is left out within training, to choose by and to learn how wrong a model is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosscast.arrays import Flags, Integers
from crosscast.errors import InputError
from crosscast.tables.corun.mixes import Mixes

__all__ = ["JOBS", "Jobs", "MixFold", "folds_within", "folds_without_jobs", "folds_without_sets"]

Jobs = Literal["known jobs", "new job"]
"""Whether what is asked about are new mixes of jobs that are known from others, or mixes with a new job."""

JOBS: tuple[Jobs, ...] = ("known jobs", "new job")

_SET_FOLDS = 4
_JOB_BLOCKS = 6
_MOST_SCORED = 400


@dataclass(frozen=True, eq=False)
class MixFold:
    """A part of the members, to be predicted by a model that was fitted to other mixes.

    Parameters
    ----------
    held_out
        What is held out, for people.
    train
        Whether each mix is learned from, of shape ``(n,)``.
    test
        Whether each member is predicted, of shape ``(n, k)``; none of a mix that is learned from.
    """

    held_out: str
    train: Flags
    test: Flags


def folds_without_sets(mixes: Mixes, count: int, seed: int) -> tuple[MixFold, ...]:
    """Leave mixes out in folds, those of the same jobs together.

    Raises
    ------
    InputError
        If there are fewer sets of jobs than two.
    """
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

    Raises
    ------
    InputError
        If no mix is left to learn from.
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
    """Folds within training mixes that are to these as what will be asked about is to all of them.

    Raises
    ------
    InputError
        If there is too little to leave out.
    """
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
