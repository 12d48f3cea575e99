"""Mixes that were measured after the training: what they say of others, and which to measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import MeasuredMix
from crosscast.errors import InputError, importing
from crosscast.prediction.corun import CoRunPrediction, Mix, longest_alone
from crosscast.prediction.corun.features import (
    CoRunnerRows,
    FeatureMatrix,
    applications_of,
    isolated_times,
    leaves_memory_idle,
    surroundings,
)
from crosscast.prediction.corun.slowdowns import (
    KernelSizes,
    LearnedRows,
    SlowdownCovariance,
    SlowdownProcess,
    mix_times,
)


@dataclass(frozen=True, eq=False)
class OpenMixes:
    """Posterior covariance of ``n`` co-runners of mixes, given the measured ones."""

    covariance: Reals  # (n, n)
    mix: Integers  # (n,), number of the mix of each
    noise: float

    @classmethod
    def of(cls, covariance: SlowdownCovariance, sizes: KernelSizes, measured: int) -> OpenMixes:
        """Posterior of the mixes from index `measured` on, given the mixes before."""
        prior, mix = covariance.matrix(sizes), covariance.rows.mix
        old, new = np.flatnonzero(mix < measured), np.flatnonzero(mix >= measured)
        solved = cls(prior, mix, sizes.noise)._solved(old, prior[np.ix_(old, new)])
        posterior = prior[np.ix_(new, new)] - prior[np.ix_(new, old)] @ solved
        return cls(posterior, mix[new] - measured, sizes.noise)

    @property
    def deviations(self) -> Reals:
        """Standard deviation of a measurement of each, ``(n,)``."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0) + self.noise)

    def gain(self, mix: int, rows_of_interest: Flags | slice = slice(None)) -> float:
        """Reduction of the sum of the variances, of some co-runners or of all, by measuring a mix."""
        rows = np.flatnonzero(self.mix == mix)
        across = self.covariance[rows][:, rows_of_interest]
        return float((across * self._solved(rows, across)).sum())

    def given(self, mix: int) -> OpenMixes:
        """The posterior given a further mix."""
        rows = np.flatnonzero(self.mix == mix)
        explained = self.covariance[:, rows] @ self._solved(rows, self.covariance[rows])
        return replace(self, covariance=self.covariance - explained)

    def _solved(self, rows: Integers, values: Reals) -> Reals:
        inside = self.covariance[np.ix_(rows, rows)] + self.noise * np.eye(len(rows))
        return np.asarray(np.linalg.solve(inside, values), dtype=np.float64)


@dataclass(frozen=True)
class SuggestedMixes:
    """Mixes to measure, and the expected error of slowdowns in the others."""

    mixes: tuple[Mix, ...]  # The most informative first
    error: float  # Expected factor between predicted and true slowdowns, less 1, from its mean logarithm
    error_before: float  # Without measurements of these mixes

    @property
    def names(self) -> list[list[str]]:
        """Names of the applications of each mix, with their sizes."""
        return [[run.qualified_name for run in mix] for mix in self.mixes]

    def to_dict(self) -> dict[str, object]:
        """The suggestion, for JSON."""
        return {"mixes": self.names, "error": self.error, "error_before": self.error_before}


_MOST_ROWS = 5000
"""Most co-runners to compare; more take minutes and gigabytes."""


def suggest_mixes(
    process: SlowdownProcess,
    count: int,
    of_interest: Sequence[Mix],
    among: Sequence[Mix],
    typical: float,
    base: SlowdownProcess | None = None,
) -> SuggestedMixes:
    """Choose `count` mixes among some to measure, greedily, for the least error in the mixes of interest.

    Each one reduces the sum of the variances of all slowdowns most, given those before it (Krause, Singh and
    Guestrin 2008, "Near-optimal sensor placements in Gaussian processes"; the variances of a process do not
    depend on measured values). `process` is conditioned on the measured mixes, `base` the one before any
    measurement; `typical` is the mean absolute error of the logarithm for an application without measured
    mixes.
    """
    candidates = [*of_interest, *among]
    # Mixes that differ only in profiles of the same applications at the same sizes are one.
    names = [tuple(sorted(run.name for run in mix)) for mix in candidates]
    by_name = dict(reversed([*zip(names, candidates, strict=True)]))
    number_of = {name: number for number, name in enumerate(dict.fromkeys(names))}
    number = [number_of[name] for name in names]
    wanted, free = set(number[: len(of_interest)]), sorted(set(number[len(of_interest) :]))
    most = len(free) - (wanted <= set(free))
    if not 0 < count <= most:
        if not most:
            problem = "nothing to suggest, as no mix can be measured but the one that is asked for"
            raise InputError.of(where="suggest-probes", problem=problem)
        expected = f"from 1 to {most}, as {len(free)} mixes can be measured"
        raise InputError.of(where="suggest-probes", expected=expected, found=count)
    mixes = [by_name[name] for name in number_of]
    rows = sum(map(len, mixes))
    if rows > _MOST_ROWS:
        expected = f"mixes of at most {_MOST_ROWS:,} co-runners to compare"
        raise InputError.of(where="suggest-probes", expected=expected, found=f"{rows:,}")
    open_ = open_mixes(process, mixes)
    is_wanted = np.isin(open_.mix, sorted(wanted))
    before = open_ if base is None else open_mixes(base, mixes)
    chosen: list[int] = []

    def error(now: OpenMixes) -> float:
        rest = is_wanted & ~np.isin(now.mix, chosen)
        return float(np.expm1(typical * (now.deviations / before.deviations)[rest].mean()))

    error_before = error(open_)
    while len(chosen) < count:
        remaining = [mix for mix in free if mix not in chosen and wanted - {*chosen, mix}]
        chosen.append(max(remaining, key=lambda mix: (open_.gain(mix, is_wanted), -mix)))
        open_ = open_.given(chosen[-1])
    return SuggestedMixes(tuple(mixes[index] for index in chosen), error(open_), error_before)


def open_mixes(process: SlowdownProcess, mixes: Sequence[Mix]) -> OpenMixes:
    """Posterior of a process for mixes."""
    learned, known = _learned(process), process.known
    runs, indices = applications_of(mixes)
    s = len(known.load)
    rows = CoRunnerRows.of([[s + index for index in mix] for mix in indices], s + len(runs))
    old = np.arange(len(learned.own))
    all_rows = CoRunnerRows(
        np.concatenate([learned.own, rows.own]),
        np.concatenate([np.pad(learned.beside, ((0, 0), (0, len(runs)))), rows.beside]),
        np.concatenate([old, len(old) + rows.mix]),
    )
    features = _joined(known, process.traits.matrix(runs))
    return OpenMixes.of(SlowdownCovariance(features, all_rows), process.sizes, len(old))


def with_measured(process: SlowdownProcess, mixes: Sequence[MeasuredMix]) -> SlowdownProcess:
    """Condition a process on measured slowdowns of further mixes, with unchanged hyperparameters.

    With trees, the process is conditioned on their errors at these mixes.
    """
    learned, known = _learned(process), process.known
    runs, indices = applications_of([mix.isolated_runs for mix in mixes])
    features = process.traits.matrix(runs)
    rows = CoRunnerRows.of(indices, len(runs))
    slowdown = np.array([member.slowdown for mix in mixes for member in mix.members], dtype=np.float64)
    values = process.scale.to(slowdown, rows.members)
    if process.trees is not None:
        values = values - process.trees.sum(surroundings(features, rows))[:, 0]
    # Applications that nothing slows down say nothing about others.
    used = np.ones(len(values), np.bool_)
    if np.isfinite(process.scale.idle):
        used = ~leaves_memory_idle(runs)[rows.own]
    s = len(known.load)
    old, new = np.pad(learned.beside, ((0, 0), (0, len(runs)))), np.pad(rows.beside[used], ((0, 0), (s, 0)))
    more = LearnedRows(
        np.concatenate([old, new]),
        np.concatenate([learned.own, s + rows.own[used]]),
        np.concatenate([learned.values, values[used]]),
    )
    with importing("train", "learning from measured mixes"):
        from crosscast.prediction.corun.training import with_learned

        conditioned = with_learned(process, _joined(known, features), more)
    return replace(conditioned, largest=max(process.largest, *(len(mix.members) for mix in mixes)))


def _learned(process: SlowdownProcess) -> LearnedRows:
    if process.learned is None:
        expected = "a process that was better than the mean, trained by this version"
        raise InputError.of(where="model", expected=expected, found="another")
    return process.learned


def _joined(one: FeatureMatrix, other: FeatureMatrix) -> FeatureMatrix:
    names = [field.name for field in fields(FeatureMatrix)]
    return FeatureMatrix(*(np.concatenate([getattr(one, name), getattr(other, name)]) for name in names))


MixKey = tuple[str, ...]
"""Names of the applications of a mix, with their sizes, sorted."""


def mix_key(mix: Mix) -> MixKey:
    """Key of a mix, equal for all orders of its co-runners."""
    return tuple(sorted(run.qualified_name for run in mix))


def _by_name(mix: Mix) -> list[int]:
    """Positions of the co-runners, in the order of the key."""
    return sorted(range(len(mix)), key=lambda position: mix[position].qualified_name)


class MixMeasurement(NamedTuple):
    """Measured slowdowns of one mix."""

    log_slowdown: Reals  # (co-runners,), in the order of the key; the mean over the repeats
    repeats: int


@dataclass(frozen=True, eq=False)
class MeasuredMixes:
    """Measured slowdowns of mixes, which replace what a model predicts of the same mixes."""

    by_key: Mapping[MixKey, MixMeasurement]

    def __contains__(self, mix: Mix) -> bool:
        return mix_key(mix) in self.by_key

    def repeats(self, mix: Mix) -> int:
        """Number of measurements of a mix."""
        return self.by_key[mix_key(mix)].repeats

    def with_mixes(self, mixes: Sequence[tuple[Mix, Sequence[float]]]) -> MeasuredMixes:
        """These and further measurements; those of the same mix are averaged."""
        by_key = dict(self.by_key)
        for mix, slowdowns in mixes:
            key, measured = mix_key(mix), np.log(np.array(slowdowns, np.float64)[_by_name(mix)])
            mean, repeats = by_key.get(key, MixMeasurement(np.zeros(len(mix)), 0))
            by_key[key] = MixMeasurement(mean + (measured - mean) / (repeats + 1), repeats + 1)
        return MeasuredMixes(by_key)

    def replaced(
        self,
        prediction: CoRunPrediction,
        mixes: Sequence[Mix],
        unlimited: CoRunPrediction,
        predict: Callable[[Sequence[Mix]], CoRunPrediction],
    ) -> CoRunPrediction:
        """A prediction with measured slowdowns where there are any, and times that follow from them.

        `unlimited` is the prediction before physical limits, and `predict` makes such ones.
        """
        known = [index for index, mix in enumerate(mixes) if mix in self] if self.by_key else []
        slowdown, time_s = list(prediction.slowdown), prediction.time_s.copy()
        for index in known:
            mix, predicted = mixes[index], unlimited.slowdown[index]
            measured = slowdown[index] = self._slowdowns(mix)
            ratio = _time(mix, measured, predict) / _time(mix, predicted, predict)
            time_s[index] = max(unlimited.time_s[index] * ratio, longest_alone(mix, measured.tolist()))
        return replace(prediction, slowdown=tuple(slowdown), time_s=time_s)

    def _slowdowns(self, mix: Mix) -> Reals:
        slowdowns = np.empty(len(mix))
        slowdowns[_by_name(mix)] = np.exp(self.by_key[mix_key(mix)].log_slowdown)
        return slowdowns


def _time(mix: Mix, slowdown: Reals, predict: Callable[[Sequence[Mix]], CoRunPrediction]) -> float:
    """Time of a mix from its slowdowns, and from predicted ones when the first have ended."""

    def of_running(rows: Integers, columns: Integers) -> Reals:
        return np.stack(predict([tuple(mix[column] for column in columns.tolist())]).slowdown)

    return float(mix_times(isolated_times([mix]), slowdown[None], of_running)[0])


NO_MIXES = MeasuredMixes({})
