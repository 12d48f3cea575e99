"""Measured mixes that a trained process is told, and which mixes to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Bag
from crosscast.errors import InputError, importing
from crosscast.prediction.corun.features import (
    CoRunnerRows,
    FeatureMatrix,
    applications_of,
    leaves_memory_idle,
    surroundings,
)
from crosscast.prediction.corun.forecast import Mix
from crosscast.prediction.corun.slowdowns import KernelSizes, LearnedRows, SlowdownCovariance, SlowdownProcess


@dataclass(frozen=True, eq=False)
class OpenMixes:
    """What is not known of mixes: the covariance of ``n`` co-runners of them, given what was measured."""

    left: Reals  # (n, n)
    mix: Integers  # (n,), number of the mix of each
    noise: float

    @classmethod
    def of(cls, covariance: SlowdownCovariance, sizes: KernelSizes, measured: int) -> OpenMixes:
        """Rows of mixes from the number `measured` on, given those of the mixes before."""
        whole, mix = covariance.matrix(sizes), covariance.rows.mix
        old, new = np.flatnonzero(mix < measured), np.flatnonzero(mix >= measured)
        every = cls(whole, mix, sizes.noise)
        left = whole[np.ix_(new, new)] - whole[np.ix_(new, old)] @ every._solved(old, whole[np.ix_(old, new)])
        return cls(left, mix[new] - measured, sizes.noise)

    @property
    def deviations(self) -> Reals:
        """Standard deviation of what would be measured of each, (n,)."""
        found: Reals = np.sqrt(np.maximum(np.diag(self.left), 0.0) + self.noise)
        return found

    def gain(self, mix: int, of: Flags | slice = slice(None)) -> float:
        """By how much the sum of the variances, of some co-runners or of all, falls if a mix is measured."""
        rows = np.flatnonzero(self.mix == mix)
        across = self.left[rows][:, of]
        return float((across * self._solved(rows, across)).sum())

    def given(self, mix: int) -> OpenMixes:
        """What is left open once a mix is measured."""
        rows = np.flatnonzero(self.mix == mix)
        return replace(self, left=self.left - self.left[:, rows] @ self._solved(rows, self.left[rows]))

    def _solved(self, rows: Integers, values: Reals) -> Reals:
        inside = self.left[np.ix_(rows, rows)] + self.noise * np.eye(len(rows))
        return np.asarray(np.linalg.solve(inside, values), dtype=np.float64)


@dataclass(frozen=True)
class SuggestedMixes:
    """Mixes to measure, and how wrong slowdowns in the others are expected to be then."""

    mixes: tuple[Mix, ...]  # The first tells most
    error: float  # Expected factor between predicted and true slowdowns, less 1: its mean logarithm's
    error_before: float  # The same with what is measured so far

    @property
    def names(self) -> list[list[str]]:
        """Names of the applications of each mix, with their sizes."""
        return [[run.qualified_name for run in mix] for mix in self.mixes]

    def to_dict(self) -> dict[str, object]:
        """All of it, for JSON."""
        return {"mixes": self.names, "error": self.error, "error_before": self.error_before}


_MOST_ROWS = 5000
"""Co-runners of more mixes take minutes and gigabytes to compare."""


def suggest_mixes(
    process: SlowdownProcess,
    count: int,
    asked: Sequence[Mix],
    among: Sequence[Mix],
    typical: float,
    base: SlowdownProcess | None = None,
) -> SuggestedMixes:
    """Choose `count` mixes to measure, one after the other, that leave the least open of those asked.

    Each is the one that lowers the sum of the variances of all slowdowns most, given those before it (Krause,
    Singh and Guestrin 2008, "Near-optimal sensor placements in Gaussian processes"; the variances of a
    process do not depend on what is measured).

    Parameters
    ----------
    process
        The process, with what is measured so far.
    count
        How many mixes to choose.
    asked
        Mixes whose slowdowns are of interest.
    among
        Those that can be measured.
    typical
        Mean absolute error of the logarithm where nothing of an application is measured.
    base
        The process before anything was measured; by default `process`.

    Raises
    ------
    InputError
        If there are not more mixes than are to be measured, or too many to compare.
    """
    every = [*asked, *among]
    # Another profile of the same application at the same size is no other mix.
    names = [tuple(sorted(run.name for run in mix)) for mix in every]
    by_name = dict(reversed([*zip(names, every, strict=True)]))
    number_of = {name: number for number, name in enumerate(dict.fromkeys(names))}
    number = [number_of[name] for name in names]
    wanted, free = set(number[: len(asked)]), sorted(set(number[len(asked) :]))
    most = len(free) - (wanted <= set(free))
    if not 0 < count <= most:
        expected = f"from 1 to {most}, as {len(free)} mixes can be measured"
        raise InputError.of(where="suggest-probes", expected=expected, found=count)
    mixes = [by_name[name] for name in number_of]
    rows = sum(map(len, mixes))
    if rows > _MOST_ROWS:
        expected = f"mixes of at most {_MOST_ROWS:,} co-runners to compare"
        raise InputError.of(where="suggest-probes", expected=expected, found=f"{rows:,}")
    open_ = open_mixes(process, mixes)
    of_interest = np.isin(open_.mix, sorted(wanted))
    before = open_ if base is None else open_mixes(base, mixes)
    chosen: list[int] = []

    def error(now: OpenMixes) -> float:
        rest = of_interest & ~np.isin(now.mix, chosen)
        return float(np.expm1(typical * (now.deviations / before.deviations)[rest].mean()))

    error_before = error(open_)
    while len(chosen) < count:
        left = [mix for mix in free if mix not in chosen and wanted - {*chosen, mix}]
        chosen.append(max(left, key=lambda mix: (open_.gain(mix, of_interest), -mix)))
        open_ = open_.given(chosen[-1])
    return SuggestedMixes(tuple(mixes[place] for place in chosen), error(open_), error_before)


def open_mixes(process: SlowdownProcess, mixes: Sequence[Mix]) -> OpenMixes:
    """What a process does not know of mixes."""
    learned, known = _learned(process), process.known
    runs, places = applications_of(mixes)
    s = len(known.load)
    rows = CoRunnerRows.of([[s + place for place in mix] for mix in places], s + len(runs))
    old = np.arange(len(learned.own))
    both = CoRunnerRows(
        np.concatenate([learned.own, rows.own]),
        np.concatenate([np.pad(learned.beside, ((0, 0), (0, len(runs)))), rows.beside]),
        np.concatenate([old, len(old) + rows.mix]),
    )
    features = _joined(known, process.traits.matrix(runs))
    return OpenMixes.of(SlowdownCovariance(features, both), process.sizes, len(old))


def with_measured(process: SlowdownProcess, mixes: Sequence[Bag]) -> SlowdownProcess:
    """A process that knows measured slowdowns of further mixes, with the sizes that it has.

    What the trees err by at these mixes moves what is predicted of mixes that are like them.
    """
    learned, known = _learned(process), process.known
    runs, places = applications_of([mix.solos for mix in mixes])
    there = process.traits.matrix(runs)
    rows = CoRunnerRows.of(places, len(runs))
    slowdown = np.array([member.slowdown for mix in mixes for member in mix.members], dtype=np.float64)
    values = process.scale.to(slowdown, rows.members)
    if process.trees is not None:
        values = values - process.trees.sum(surroundings(there, rows))[:, 0]
    # What no other one slows down says nothing of those that are.
    tells = np.ones(len(values), np.bool_)
    if np.isfinite(process.scale.idle):
        tells = ~leaves_memory_idle(runs)[rows.own]
    s = len(known.load)
    more = LearnedRows(
        np.concatenate(
            [np.pad(learned.beside, ((0, 0), (0, len(runs)))), np.pad(rows.beside[tells], ((0, 0), (s, 0)))]
        ),
        np.concatenate([learned.own, s + rows.own[tells]]),
        np.concatenate([learned.values, values[tells]]),
    )
    with importing("train", "learning from measured mixes"):
        from crosscast.prediction.corun.training import with_learned

        found = with_learned(process, _joined(known, there), more)
    return replace(found, largest=max(process.largest, *(len(mix.members) for mix in mixes)))


def _learned(process: SlowdownProcess) -> LearnedRows:
    if process.learned is None:
        expected = "a process that was better than the mean, trained by this version"
        raise InputError.of(where="model", expected=expected, found="another")
    return process.learned


def _joined(one: FeatureMatrix, other: FeatureMatrix) -> FeatureMatrix:
    names = [field.name for field in fields(FeatureMatrix)]
    return FeatureMatrix(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in names))
