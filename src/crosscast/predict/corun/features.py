"""What applications are compared by: how they use a device, and what sharing it does to them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_names, kept_reals
from crosscast.tables.corun.solo import Solo

_SHARES = ("utilisation", "memory_utilisation")
"""Features that are shares of the device, taken as they are."""

_METERS = tuple(
    f"{what}_{level}" for what in ("slowdown", "inflicted") for level in ("low", "medium", "high")
)
"""Slowdowns with the microbenchmarks, of which the logarithm is taken."""

_BATCH = "batch_size"
_RATE = "_steps_per_s"

IDLE_BELOW = 0.01
"""An application that uses less of the device's memory system is not slowed down by what others do there."""


@dataclass(frozen=True, eq=False)
class Traited:
    """Applications as numbers; ``s`` of them."""

    application: npt.NDArray[np.str_]  # Name of each application, and with its size, of shape `(s,)`
    name: npt.NDArray[np.str_]
    near: Reals  # Traits by which unlike applications are compared, of shape `(s, f)`; there may be none
    batch: Reals  # Logarithm to base 2 of the batch size, of shape `(s,)`; 0 where there is none
    load: Reals  # How much of a device each wants, in standard deviations, of shape `(s,)`
    idle: npt.NDArray[np.bool_]  # Whether each leaves the memory system idle, of shape `(s,)`

    def __len__(self) -> int:
        """Number of applications."""
        return len(self.application)


@dataclass(frozen=True, eq=False)
class Traits:
    """How applications become numbers, as the training had it."""

    names: tuple[str, ...]  # Features that are traits; what an application lacks is taken as `middle`
    middle: Reals  # Median of each trait in the training, of shape `(f,)`
    # Feature that tells the load: one of a rate alone, `time_s`, or empty for the sum of the traits
    load: str
    centre: float  # Mean and standard deviation of the load in the training
    spread: float

    @classmethod
    def of(cls, solos: Sequence[Solo]) -> Traits:
        """Find the traits of training applications: what all but a few of them have."""
        names = tuple(
            name
            for name in (*_SHARES, *_METERS)
            if 2 * sum(np.isfinite(_trait(solo, name)) for solo in solos) > len(solos)
        )
        found = np.array([[_trait(solo, name) for name in names] for solo in solos]).reshape(len(solos), -1)
        middle = np.nanmedian(found, axis=0) if names else np.empty(0)
        load = "" if names else _slowest_rate(solos)
        unscaled = cls(names, middle, load, np.nan, 1.0)
        loads = unscaled._loads(solos, unscaled._near(solos))
        known = loads[np.isfinite(loads)]
        centre, spread = (float(known.mean()), float(known.std())) if len(known) else (0.0, 1.0)
        return cls(names, middle, load, centre, spread if spread > 0 else 1.0)

    def traited(self, solos: Sequence[Solo]) -> Traited:
        """The numbers of applications."""
        near = self._near(solos)
        memory = [solo.features.get("memory_utilisation", 1.0) for solo in solos]
        return Traited(
            np.array([solo.application for solo in solos], dtype=np.str_),
            np.array([solo.name for solo in solos], dtype=np.str_),
            near,
            np.array([_log2(solo.features.get(_BATCH)) for solo in solos]),
            (self._loads(solos, near) - self.centre) / self.spread,
            np.array(memory) < IDLE_BELOW,
        )

    def _near(self, solos: Sequence[Solo]) -> Reals:
        found = np.array([[_trait(solo, name) for name in self.names] for solo in solos])
        found = found.reshape(len(solos), len(self.names))
        near: Reals = np.where(np.isfinite(found), found, self.middle)
        return near

    def _loads(self, solos: Sequence[Solo], near: Reals) -> Reals:
        """Loads; that of an application of which nothing tells it is the mean of the training."""
        if not self.load:
            loads: Reals = near.sum(axis=1)
            return loads
        values = np.array([_log_time(solo, self.load) for solo in solos])
        return np.where(np.isfinite(values), values, self.centre)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "names": np.array(self.names, dtype=np.str_),
            "middle": self.middle,
            "load": np.array([self.load], dtype=np.str_),
            "scale": np.array([self.centre, self.spread]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Traits:
        """Make it from its arrays."""
        names, middle = kept_names(state, "names"), kept_reals(state, "middle", 1)
        load, scale = kept_names(state, "load"), kept_reals(state, "scale", 1)
        if len(middle) != len(names) or len(load) != 1 or len(scale) != 2 or scale[1] <= 0:
            raise InputError("model: traits: expected a middle for each name, and a load with its scale")
        return cls(names, middle, load[0], float(scale[0]), float(scale[1]))


def _trait(solo: Solo, name: str) -> float:
    value = solo.features.get(name, np.nan)
    if name in _SHARES:
        return value
    return float(np.log(value)) if value > 0 else np.nan


def _log2(batch: float | None) -> float:
    return float(np.log2(batch)) if batch is not None and batch > 0 else 0.0


def _slowest_rate(solos: Sequence[Solo]) -> str:
    """The device's rate alone that is the lowest, which tells work best; times where no rate is known."""
    rates = sorted({name for solo in solos for name in solo.features if name.endswith(_RATE)})
    means = {
        name: np.nanmean([_log_time(solo, name) for solo in solos])
        for name in rates
        if all(np.isfinite(_log_time(solo, name)) for solo in solos)
    }
    return max(means, key=lambda name: (means[name], name)) if means else "time_s"


def _log_time(solo: Solo, name: str) -> float:
    value = solo.time_s if name == "time_s" else solo.features.get(name)
    if value is None or value <= 0:
        return np.nan
    return float(np.log(value)) if name == "time_s" else -float(np.log(value))


Known = tuple[Hashable, ...]
"""What tells applications apart: key, time and features, as one may have been profiled twice."""


@dataclass(frozen=True, eq=False)
class MemberRows:
    """``n`` members of bags of ``s`` applications."""

    own: Integers  # Place of each member's application, of shape `(n,)`
    beside: Reals  # How often each application is among the others of its bag, of shape `(n, s)`
    bag: Integers  # Place of its bag, of shape `(n,)`

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.own)

    @property
    def members(self) -> Reals:
        """Members of each row's bag, of shape ``(n,)``."""
        count: Reals = 1.0 + self.beside.sum(axis=1)
        return count

    @classmethod
    def of(cls, bags: Sequence[tuple[Solo, ...]], places: Mapping[Known, int]) -> MemberRows:
        """Rows of bags."""
        own: list[int] = []
        bag: list[int] = []
        pairs: list[tuple[int, int]] = []
        for number, solos in enumerate(bags):
            found = [places[_known(solo)] for solo in solos]
            for place, application in enumerate(found):
                pairs.extend((len(own), other) for k, other in enumerate(found) if k != place)
                own.append(application)
                bag.append(number)
        beside = np.zeros((len(own), len(places)))
        if pairs:
            np.add.at(beside, tuple(np.array(pairs).T), 1.0)
        return cls(np.array(own, dtype=np.int64), beside, np.array(bag, dtype=np.int64))


def distinct(bags: Sequence[tuple[Solo, ...]]) -> tuple[list[Solo], dict[Known, int]]:
    """The applications of bags, each once, in the order of their keys, and the place of each."""
    found: dict[Known, Solo] = {_known(solo): solo for bag in bags for solo in bag}
    order = sorted(found, key=lambda known: known[:4])
    return [found[known] for known in order], {known: place for place, known in enumerate(order)}


def _known(solo: Solo) -> Known:
    return (*solo.key, solo.time_s, *solo.features.items())


def width(traits: int) -> int:
    """Columns of `neighbourhood`."""
    return 3 * traits + 1


def neighbourhood(there: Traited, rows: MemberRows) -> Reals:
    """Traits of members, sums and maxima of the traits of those beside them, and how many these are. Of
    shape ``(n, 3 f + 1)``.
    """
    sums = rows.beside @ there.near
    most = np.full_like(sums, -np.inf)
    for application in range(len(there)):
        with_it = rows.beside[:, application] > 0
        most[with_it] = np.maximum(most[with_it], there.near[application])
    return np.column_stack([there.near[rows.own], sums, most, rows.beside.sum(axis=1)])
