"""The models of co-runs by name, and the baselines, which ignore the applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Annotated

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import CoRuns, MeasuredMix
from crosscast.errors import InputError, expect_known
from crosscast.prediction.corun.forecast import CoRunModel, CoRunPrediction, CoRunPredictor, Mix
from crosscast.prediction.corun.moolchandani2022 import KINDS, Published
from crosscast.prediction.corun.process import Process
from crosscast.prediction.corun.slowdowns import mix_times, with_fewer
from crosscast.prediction.serialization import Array, Stored


@dataclass(frozen=True)
class Mean(CoRunModel):
    """The means of the training mixes of the same size, or of all where there is none."""

    name = "mean"

    def fit(self, co_runs: CoRuns, seed: int = 0) -> FittedCoRunMean:
        """Fit the means; nothing is random."""
        sound = [mix for mix in co_runs.mixes if not mix.failed]
        if not sound:
            raise InputError.of(where=co_runs.label, expected="mixes to learn from", found="none")
        sizes = list(dict.fromkeys(len(mix.members) for mix in sound))
        parts = [[mix for mix in sound if len(mix.members) == size] for size in sizes]
        means = [_means(mixes) for mixes in ([mix for part in parts for mix in part], *parts)]
        return FittedCoRunMean(np.array([0, *sizes]), np.array(means))


@dataclass(frozen=True, eq=False)
class FittedCoRunMean(Stored, CoRunPredictor, kind="corun-mean"):
    """Means by size of mixes."""

    sizes: Annotated[Integers, Array("s", low=0, least=1)]  # Sizes; the first is 0, for all sizes
    # Of each: geometric mean of the slowdowns; mean position of the time between the longest isolated time
    # (0) and their sum (1); mean power in watts; share that fits. NaN where not known
    means: Annotated[Reals, Array("s 4", nan=True)]

    def check(self) -> None:
        """Raise InputError unless the means of all sizes come first."""
        if self.sizes[0] != 0:
            raise InputError.of(field="sizes", expected="0 first", found=int(self.sizes[0]))

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        rows = np.array([self._row(len(mix)) for mix in mixes]).reshape(-1, 4)
        slowdown, _, power, fits = rows.T
        times = [_time(_isolated_s(mix), *row[:2]) for mix, row in zip(mixes, rows.tolist(), strict=True)]
        slowdowns = tuple(np.full(len(mix), each) for mix, each in zip(mixes, slowdown, strict=True))
        return CoRunPrediction(slowdowns, np.array(times, dtype=np.float64), power, fits)

    def _row(self, members: int) -> Reals:
        """Means of a size, with those of all sizes where a mean is missing."""
        of_size = self.means[[0, *np.flatnonzero(self.sizes == members)][-1]]
        return np.asarray(np.where(np.isnan(of_size), self.means[0], of_size))


@dataclass(frozen=True)
class Sum(CoRunModel):
    """One after another: a mix takes the sum of the isolated times."""

    name = "sum"

    def fit(self, co_runs: CoRuns, seed: int = 0) -> FittedSum:
        """Nothing is fitted."""
        return FittedSum()


@dataclass(frozen=True)
class FittedSum(Stored, CoRunPredictor, kind="corun-sum"):
    """Time sharing: the slowdown of each co-runner is their number.

    Power is the mean of the isolated powers over the time of each.
    """

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        times = np.array([_isolated_s(mix).sum() for mix in mixes])
        powers = [np.array([run.power_w for run in mix], dtype=np.float64) for mix in mixes]
        energies = [(_isolated_s(mix) * power).sum() for mix, power in zip(mixes, powers, strict=True)]
        with np.errstate(invalid="ignore"):
            power_w = np.array(energies) / times
        slowdown = tuple(np.full(len(mix), float(len(mix))) for mix in mixes)
        return CoRunPrediction(slowdown, times, power_w, np.full(len(mixes), np.nan))


def _isolated_s(mix: Mix) -> Reals:
    return np.array([run.time_s for run in mix], dtype=np.float64)


def _time(isolated_s: Reals, slowdown: float, position: float) -> float:
    """Time from its position between longest and sum; or from slowdowns, where no time is known."""
    if not np.isnan(position):
        return float(isolated_s.max() + position * (isolated_s.sum() - isolated_s.max()))
    count = len(isolated_s)

    def fewer(rows: Integers, columns: Integers) -> Reals:
        return with_fewer(np.full((len(rows), len(columns)), slowdown), count, len(columns))

    return float(mix_times(isolated_s[None], np.full((1, count), slowdown), fewer)[0])


def _means(mixes: Sequence[MeasuredMix]) -> list[float]:
    slowdowns = [member.slowdown for mix in mixes for member in mix.members if member.slowdown]
    return [
        float(np.exp(_mean(np.log(slowdowns)))),
        _mean([_position(mix) for mix in mixes]),
        _mean([mix.power_w for mix in mixes]),
        _mean([mix.fits for mix in mixes]),
    ]


def _position(mix: MeasuredMix) -> float | None:
    isolated_s = _isolated_s(mix.isolated_runs)
    if mix.time_s is None or not (rest := isolated_s.sum() - isolated_s.max()) > 0:
        return None
    return float((mix.time_s - isolated_s.max()) / rest)


def _mean(values: Sequence[float | None] | Reals) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


DEFAULT_MODEL = "process"

BASELINES = ("mean", "sum")
"""Models that ignore the applications; all others must beat them."""

MODELS: Mapping[str, Callable[[], CoRunModel]] = MappingProxyType(
    {
        "mean": Mean,
        "sum": Sum,
        **{f"published-{kind}": partial(Published, kind) for kind in KINDS},
        "process-alone": partial(Process, trees=False),
        "process": Process,
    }
)
"""Factories of the models by name, from the trivial to the strong."""


def models_named(names: Sequence[str]) -> list[CoRunModel]:
    """Return new models, in the order of their names."""
    expect_known(names, MODELS, field="models")
    return [MODELS[name]() for name in dict.fromkeys(names)]
