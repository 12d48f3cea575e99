"""What applications are compared by: how they use a device, and what sharing it does to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Solo
from crosscast.prediction.corun.forecast import Mix
from crosscast.prediction.serialization import Array, Stored

_SHARES = ("utilisation", "memory_utilisation")
"""Features that are shares of the device, taken as they are."""

_STRESSED = tuple(
    f"{what}_{level}" for what in ("slowdown", "inflicted") for level in ("low", "medium", "high")
)
"""Slowdowns with the stressors, of which the logarithm is taken."""

_RATE = "_steps_per_s"

_IDLE_BELOW = 0.01
"""An application that uses less of the device's memory system is not slowed down by what others do there."""


@dataclass(frozen=True, eq=False)
class FeatureMatrix(Stored):
    """``s`` applications as numbers."""

    application: Annotated[npt.NDArray[np.str_], Array("s")]  # Name of each, and with its size
    name: Annotated[npt.NDArray[np.str_], Array("s")]
    near: Annotated[Reals, Array("s f")]  # Traits by which unlike applications are compared, if any
    batch: Annotated[Reals, Array("s")]  # Logarithm to base 2 of the batch size; 0 where there is none
    load: Annotated[Reals, Array("s")]  # How much of a device each wants, in standard deviations


@dataclass(frozen=True, eq=False)
class Traits(Stored):
    """How applications become numbers, as the training had it."""

    names: Annotated[tuple[str, ...], Array("f")]  # Features that are traits
    middle: Annotated[Reals, Array("f")]  # Median of each in the training, for an application that lacks it
    load: str  # Feature that tells the load: a rate alone, `time_s`, or empty for the sum of the traits
    centre: float  # Mean and standard deviation of the load in the training
    spread: Annotated[float, Array(above=0)]

    @classmethod
    def of(cls, runs: Sequence[Solo]) -> Traits:
        """Find the traits of training applications: what all but a few of them have."""
        names = np.array((*_SHARES, *_STRESSED))
        every, _ = _numbers(runs, names.tolist(), np.nan, "")
        common = 2 * np.isfinite(every).sum(axis=0) > len(runs)
        own = tuple(names[common].tolist())
        middle = np.nanmedian(every[:, common], axis=0) if own else np.empty(0)
        load = "" if own else _slowest_rate(runs)
        _, loads = _numbers(runs, own, middle, load)
        known = loads[np.isfinite(loads)]
        centre, spread = (float(known.mean()), float(known.std())) if len(known) else (0.0, 1.0)
        return cls(own, middle, load, centre, spread if spread > 0 else 1.0)

    def ranges(self, runs: Sequence[Solo]) -> dict[str, tuple[float, float]]:
        """Least and greatest value among runs of each trait, or of what tells the load, that some have."""
        found = {}
        for name in self.names or (self.load,):
            values = [value for run in runs if (value := raw_value(run, name)) is not None]
            if values:
                found[name] = min(values), max(values)
        return found

    def matrix(self, runs: Sequence[Solo]) -> FeatureMatrix:
        """The numbers of applications; a load of which nothing tells is the mean of the training."""
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
    runs: Sequence[Solo], names: Sequence[str], middle: Reals | float, load: str
) -> tuple[Reals, Reals]:
    """Traits, (runs, names), or their middle where one is not known; and loads, (runs,), if known."""
    values = np.array([[run.features.get(name, np.nan) for name in names] for run in runs], dtype=np.float64)
    values = values.reshape(len(runs), len(names))
    logs = np.log(values, where=values > 0, out=np.full_like(values, np.nan))
    near = np.where([name in _SHARES for name in names], values, logs)
    near = np.where(np.isfinite(near), near, middle)
    return near, np.array([_log_time(run, load) for run in runs]) if load else near.sum(axis=1)


def _slowest_rate(runs: Sequence[Solo]) -> str:
    """The device's rate alone that is the lowest, which tells work best; times where no rate is known."""
    rates = sorted({name for run in runs for name in run.features if name.endswith(_RATE)})
    logs = {name: [_log_time(run, name) for run in runs] for name in rates}
    means = {name: np.nanmean(each) for name, each in logs.items() if np.isfinite(each).all()}
    return max(means, key=lambda name: (means[name], name)) if means else "time_s"


def raw_value(run: Solo, name: str) -> float | None:
    """A feature of a run, or its time; ``None`` where it is not known."""
    return run.time_s if name == "time_s" else run.features.get(name)


def _log_time(run: Solo, name: str) -> float:
    value = raw_value(run, name)
    if value is None or value <= 0:
        return np.nan
    return float(np.log(value)) if name == "time_s" else -float(np.log(value))


def leaves_memory_idle(runs: Sequence[Solo]) -> Flags:
    """Whether each leaves the memory system idle, of shape (s,)."""
    used = [run.features.get("memory_utilisation", 1.0) for run in runs]
    return np.array(used, dtype=np.float64) < _IDLE_BELOW


@dataclass(frozen=True, eq=False)
class CoRunnerRows:
    """``n`` co-runners of mixes of ``s`` applications."""

    own: Integers  # (n,), place of each one's application
    beside: Reals  # (n, s), how often each application is among the others of its mix
    mix: Integers  # (n,), place of its mix

    @property
    def members(self) -> Reals:
        """Co-runners of each row's mix, of shape (n,)."""
        count: Reals = 1.0 + self.beside.sum(axis=1)
        return count

    @classmethod
    def of(cls, mixes: Sequence[Sequence[int]] | Integers, applications: int) -> CoRunnerRows:
        """Rows of mixes of applications, each named by its place."""
        own = np.array([place for mix in mixes for place in mix], dtype=np.int64)
        mix = np.repeat(np.arange(len(mixes)), [len(each) for each in mixes])
        counts = np.zeros((len(mixes), applications))
        np.add.at(counts, (mix, own), 1.0)
        beside = counts[mix]
        beside[np.arange(len(own)), own] -= 1.0
        return cls(own, beside, mix)

    def where(self, chosen: Flags) -> CoRunnerRows:
        """Some of the rows."""
        return CoRunnerRows(self.own[chosen], self.beside[chosen], self.mix[chosen])


def applications_of(mixes: Sequence[Mix]) -> tuple[list[Solo], list[list[int]]]:
    """The applications of mixes, each once, in the order of their keys, and the mixes by their places.

    One that was profiled twice, with other times or features, is two.
    """
    identities = [[(*run.key, run.time_s, *run.features.items()) for run in mix] for mix in mixes]
    found = {
        known: run
        for mix, own in zip(mixes, identities, strict=True)
        for run, known in zip(mix, own, strict=True)
    }
    order = sorted(found, key=lambda known: known[:4])
    places = {known: place for place, known in enumerate(order)}
    return [found[known] for known in order], [[places[known] for known in own] for own in identities]


def surroundings(there: FeatureMatrix, rows: CoRunnerRows) -> Reals:
    """Traits of co-runners, sums and maxima of the traits of those beside them, and how many these are.

    Of shape (n, 3 f + 1).
    """
    sums = rows.beside @ there.near
    most = np.full_like(sums, -np.inf)
    for application, near in enumerate(there.near):
        with_it = rows.beside[:, application] > 0
        most[with_it] = np.maximum(most[with_it], near)
    return np.column_stack([there.near[rows.own], sums, most, rows.beside.sum(axis=1)])
