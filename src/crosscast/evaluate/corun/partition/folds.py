"""Splits of mixes of jobs: what is held out, and what a model may learn from meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosscast.errors import InputError
from crosscast.predict.corun.partition.left_out import Jobs, MixFold, folds_without_jobs, folds_without_sets
from crosscast.tables.corun.mixes import Mixes

__all__ = ["MIX_FOLDS", "MIX_SPLITS", "folds_of_mixes"]

MIX_SPLITS: Mapping[str, Jobs] = {"leave-benchmark-out": "new job", "leave-bag-out": "known jobs"}
"""Names of the splits, and what is asked about in each."""

MIX_FOLDS = 5
"""Folds where mixes are left out."""


def folds_of_mixes(mixes: Mixes, split: str, seed: int) -> tuple[MixFold, ...]:
    """Split mixes into folds.

    Where a benchmark is left out, all mixes with it are, whatever else is in them; it alone is predicted.
    Mixes are left out in folds, those of the same jobs together.

    Parameters
    ----------
    mixes
        The mixes, without copies that differ in the order of members alone.
    split
        One of `MIX_SPLITS`.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If there is no such split, or there are too few mixes or jobs.
    """
    if split not in MIX_SPLITS:
        raise InputError(f"split: expected one of {', '.join(MIX_SPLITS)} of mixes, found {split!r}")
    if split == "leave-bag-out":
        return folds_without_sets(mixes, MIX_FOLDS, seed)
    there = np.unique(mixes.job[mixes.judged])
    if len(there) < 3:
        raise InputError(f"applications: expected at least 3 to leave one out, found {len(there)}")
    return folds_without_jobs(mixes, [np.array([job]) for job in there.tolist()])
