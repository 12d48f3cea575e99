"""Traits of applications, by which models compare them, and rows of co-runners in mixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import IsolatedRun
from crosscast.prediction.corun.forecast import Mix
from crosscast.prediction.serialization import Array, Stored

_SHARES = ("utilisation", "memory_utilisation")
"""Features that are shares of the device, which are not transformed."""

_STRESSED = tuple(
    f"{kind}_{level}" for kind in ("slowdown", "inflicted") for level in ("low", "medium", "high")
)
"""Slowdowns with the stressors, which enter as logarithms."""

_RATE = "_steps_per_s"

_IDLE_BELOW = 0.01
"""Use of the device's memory system below which an application is not slowed down by others there."""


@dataclass(frozen=True, eq=False)
class FeatureMatrix(Stored):
    """Features of ``s`` applications."""

    application: Annotated[npt.NDArray[np.str_], Array("s")]  # Name of each, without and with its size
    name: Annotated[npt.NDArray[np.str_], Array("s")]
    near: Annotated[Reals, Array("s f")]  # Traits by which different applications are compared, if any
    batch: Annotated[Reals, Array("s")]  # Logarithm to base 2 of the batch size; 0 where there is none
    load: Annotated[Reals, Array("s")]  # Demand on a device, in standard deviations


@dataclass(frozen=True, eq=False)
class Traits(Stored):
    """Transformation of applications to features, as fitted in the training."""

    names: Annotated[tuple[str, ...], Array("f")]  # Features used as traits
    middle: Annotated[Reals, Array("f")]  # Median in the training, which replaces missing values
    load: str  # Feature for the load: an isolated rate, `time_s`, or empty for the sum of the traits
    centre: float  # Mean and standard deviation of the load in the training
    spread: Annotated[float, Array(above=0)]

    @classmethod
    def of(cls, runs: Sequence[IsolatedRun]) -> Traits:
        """Determine the traits: features that most training applications have."""
        names = np.array((*_SHARES, *_STRESSED))
        values, _ = _numbers(runs, names.tolist(), np.nan, "")
        common = 2 * np.isfinite(values).sum(axis=0) > len(runs)
        traits = tuple(names[common].tolist())
        middle = np.nanmedian(values[:, common], axis=0) if traits else np.empty(0)
        load = "" if traits else _slowest_rate(runs)
        _, loads = _numbers(runs, traits, middle, load)
        known = loads[np.isfinite(loads)]
        centre, spread = (float(known.mean()), float(known.std())) if len(known) else (0.0, 1.0)
        return cls(traits, middle, load, centre, spread if spread > 0 else 1.0)

    def ranges(self, runs: Sequence[IsolatedRun]) -> dict[str, tuple[float, float]]:
        """Least and greatest value of each trait, or of the load's feature, among runs that have it."""
        ranges = {}
        for name in self.names or (self.load,):
            values = [value for run in runs if (value := raw_value(run, name)) is not None]
            if values:
                ranges[name] = min(values), max(values)
        return ranges

    def matrix(self, runs: Sequence[IsolatedRun]) -> FeatureMatrix:
        """Features of applications; an unknown load is the mean of the training."""
        near, loads = _numbers(runs, self.names, self.middle, self.load)
        batches = [run.features.get("batch_size") for run in runs]
        return FeatureMatrix(
            np.array([run.application for run in runs], dtype=np.str_),
            np.array([run.name for run in runs], dtype=np.str_),
            near,
            np.array([np.log2(size) if size is not None and size > 0 else 0.0 for size in batches]),
            (np.where(np.isfinite(loads), loads, self.centre) - self.centre) / self.spread,
        )


def _numbers(
    runs: Sequence[IsolatedRun], names: Sequence[str], middle: Reals | float, load: str
) -> tuple[Reals, Reals]:
    """Traits ``(runs, names)``, with medians for missing ones; and loads ``(runs,)``, NaN if not known."""
    values = np.array([[run.features.get(name, np.nan) for name in names] for run in runs], dtype=np.float64)
    values = values.reshape(len(runs), len(names))
    logs = np.log(values, where=values > 0, out=np.full_like(values, np.nan))
    traits = np.where([name in _SHARES for name in names], values, logs)
    traits = np.where(np.isfinite(traits), traits, middle)
    return traits, np.array([_log_time(run, load) for run in runs]) if load else traits.sum(axis=1)


def _slowest_rate(runs: Sequence[IsolatedRun]) -> str:
    """The lowest isolated rate, which represents work best; ``time_s`` where no rate is known."""
    rates = sorted({name for run in runs for name in run.features if name.endswith(_RATE)})
    logs = {name: [_log_time(run, name) for run in runs] for name in rates}
    means = {name: np.nanmean(each) for name, each in logs.items() if np.isfinite(each).all()}
    return max(means, key=lambda name: (means[name], name)) if means else "time_s"


def raw_value(run: IsolatedRun, name: str) -> float | None:
    """A feature of a run, or its time; ``None`` where it is not known."""
    return run.time_s if name == "time_s" else run.features.get(name)


def _log_time(run: IsolatedRun, name: str) -> float:
    value = raw_value(run, name)
    if value is None or value <= 0:
        return np.nan
    return float(np.log(value)) if name == "time_s" else -float(np.log(value))


def leaves_memory_idle(runs: Sequence[IsolatedRun]) -> Flags:
    """Mask ``(s,)`` of the applications that leave the memory system idle."""
    used = [run.features.get("memory_utilisation", 1.0) for run in runs]
    return np.array(used, dtype=np.float64) < _IDLE_BELOW


@dataclass(frozen=True, eq=False)
class CoRunnerRows:
    """``n`` co-runners of mixes of ``s`` applications."""

    own: Integers  # (n,), index of each one's application
    beside: Reals  # (n, s), occurrences of each application among the others of its mix
    mix: Integers  # (n,), index of its mix

    @property
    def members(self) -> Reals:
        """Number of co-runners of each row's mix, ``(n,)``."""
        count: Reals = 1.0 + self.beside.sum(axis=1)
        return count

    @classmethod
    def of(cls, mixes: Sequence[Sequence[int]] | Integers, applications: int) -> CoRunnerRows:
        """Rows of mixes of applications, each given by its index."""
        own = np.array([application for mix in mixes for application in mix], dtype=np.int64)
        mix = np.repeat(np.arange(len(mixes)), [len(each) for each in mixes])
        counts = np.zeros((len(mixes), applications))
        np.add.at(counts, (mix, own), 1.0)
        beside = counts[mix]
        beside[np.arange(len(own)), own] -= 1.0
        return cls(own, beside, mix)

    def where(self, chosen: Flags) -> CoRunnerRows:
        """The rows of a mask."""
        return CoRunnerRows(self.own[chosen], self.beside[chosen], self.mix[chosen])


def applications_of(mixes: Sequence[Mix]) -> tuple[list[IsolatedRun], list[list[int]]]:
    """The distinct applications of mixes, in the order of their keys, and the mixes as their indices.

    Two profiles of an application with different times or features are distinct.
    """
    identities = [[(*run.key, run.time_s, *run.features.items()) for run in mix] for mix in mixes]
    runs = {
        identity: run
        for mix, of_mix in zip(mixes, identities, strict=True)
        for run, identity in zip(mix, of_mix, strict=True)
    }
    order = sorted(runs, key=lambda identity: identity[:4])
    index = {identity: number for number, identity in enumerate(order)}
    return [runs[identity] for identity in order], [[index[each] for each in of_mix] for of_mix in identities]


def surroundings(features: FeatureMatrix, rows: CoRunnerRows) -> Reals:
    """Traits of co-runners, sums and maxima of the traits of the others in the mix, and their number.

    Of shape (n, 3 f + 1).
    """
    sums = rows.beside @ features.near
    maxima = np.full_like(sums, -np.inf)
    for application, near in enumerate(features.near):
        with_it = rows.beside[:, application] > 0
        maxima[with_it] = np.maximum(maxima[with_it], near)
    return np.column_stack([features.near[rows.own], sums, maxima, rows.beside.sum(axis=1)])
