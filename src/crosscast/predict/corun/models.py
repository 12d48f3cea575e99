"""The models of co-running by name, and the baselines, which look at no application."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_names, kept_reals
from crosscast.predict.corun.forecast import CoRunModel, CoRunPrediction, mix_times, with_fewer
from crosscast.predict.corun.moolchandani2022 import KINDS, Published
from crosscast.predict.corun.process import Process
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns

_NUMBERS = ("slowdown", "place", "power_w", "fits")
_TURNS = "members take turns"


@dataclass(frozen=True)
class Mean:
    """The means of the training bags of the same size, or of all where there is none."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "mean"

    def fit(self, co_runs: CoRuns, seed: int = 0) -> FittedCoRunMean:
        """Fit it. Nothing is random, so the seed is not used.

        Raises
        ------
        InputError
            If there is no bag.
        """
        by_size: dict[int, list[Bag]] = {}
        for bag in co_runs.bags:
            if not bag.failed:
                by_size.setdefault(len(bag.members), []).append(bag)
        if not by_size:
            raise InputError(f"{co_runs.label}: expected bags to learn from, found none")
        every = [bag for bags in by_size.values() for bag in bags]
        means = [_means(bags) for bags in (every, *by_size.values())]
        return FittedCoRunMean(np.array([0, *by_size]), np.array(means))


@dataclass(frozen=True, eq=False)
class FittedCoRunMean:
    """Means by size of bags.

    Parameters
    ----------
    sizes
        Sizes; 0 stands for all together, of shape ``(s,)``.
    means
        Of each: geometric mean of the slowdowns; mean place of the time between the longest of the members
        (0) and the sum of all (1); mean power in watts; share of the bags that fit. Not a number where not
        known. Of shape ``(s, 4)``.
    """

    sizes: Reals
    means: Reals

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags of any sizes; see `CoRunPredictor.predict`."""
        rows = np.array([self._row(len(bag)) for bag in bags]).reshape(-1, len(_NUMBERS))
        slowdown, _, power, fits = rows.T
        times = [_time(_alone(bag), *told) for bag, told in zip(bags, rows[:, :2].tolist(), strict=True)]
        return CoRunPrediction(
            tuple(np.full(len(bag), each) for bag, each in zip(bags, slowdown, strict=True)),
            np.array(times, dtype=np.float64),
            power,
            fits,
        )

    def _row(self, members: int) -> Reals:
        """What is known of a size, and of all sizes where nothing is."""
        own = self.means[self.sizes == members]
        row: Reals = self.means[0] if len(own) == 0 else np.where(np.isnan(own[0]), self.means[0], own[0])
        return row

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again; what is not known is left out by its flag."""
        known = ~np.isnan(self.means)
        return {
            "sizes": self.sizes.astype(np.float64),
            "means": np.where(known, self.means, 0.0),
            "known": known.astype(np.float64),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedCoRunMean:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        sizes, means, known = (
            kept_reals(state, name, axes) for name, axes in (("sizes", 1), ("means", 2), ("known", 2))
        )
        shape = len(sizes), len(_NUMBERS)
        if len(sizes) == 0 or sizes[0] != 0 or means.shape != shape or known.shape != shape:
            raise InputError(f"model: means: expected shape {shape}, found {means.shape}")
        return cls(sizes, np.where(known > 0, means, np.nan))


@dataclass(frozen=True)
class Sum:
    """One after the other: a bag takes as long as its members alone, and everybody waits for everybody."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "sum"

    def fit(self, co_runs: CoRuns, seed: int = 0) -> FittedSum:
        """Nothing is fitted."""
        return FittedSum()


@dataclass(frozen=True)
class FittedSum:
    """Members that take turns."""

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags of any sizes: each member is slowed down by as many as there are.

        The power is the mean of the members' alone over the time of each.
        """
        times = np.array([_alone(bag).sum() for bag in bags])
        energies = np.array([(_alone(bag) * _powers(bag)).sum() for bag in bags])
        with np.errstate(invalid="ignore"):
            power = energies / times
        slowdown = tuple(np.full(len(bag), float(len(bag))) for bag in bags)
        return CoRunPrediction(slowdown, times, power, np.full(len(bags), np.nan))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """A mark: there is nothing that was fitted."""
        return {"rule": np.array([_TURNS])}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedSum:
        """Make it from its mark.

        Raises
        ------
        InputError
            If it is missing or another.
        """
        if (found := kept_names(state, "rule")) != (_TURNS,):
            raise InputError(f"model: rule: expected {_TURNS!r}, found {', '.join(found)}")
        return cls()


def _alone(bag: tuple[Solo, ...]) -> Reals:
    return np.array([solo.time_s for solo in bag], dtype=np.float64)


def _powers(bag: tuple[Solo, ...]) -> Reals:
    return np.array([solo.power_w for solo in bag], dtype=np.float64)


def _time(alone: Reals, slowdown: float, place: float) -> float:
    """From where times lie between longest and sum; or from slowdowns, where no time is known."""
    if not np.isnan(place):
        return float(alone.max() + place * (alone.sum() - alone.max()))
    whole = np.full((1, len(alone)), slowdown)

    def left(running: Flags) -> Reals:
        return with_fewer(whole, len(alone), running.sum(axis=1, keepdims=True))

    return float(mix_times(alone[None], whole, left).time_s[0])


def _means(bags: Sequence[Bag]) -> list[float]:
    slowdowns = [member.slowdown for bag in bags for member in bag.members if member.slowdown]
    return [
        float(np.exp(_mean(np.log(slowdowns)))),
        _mean([_place(bag) for bag in bags]),
        _mean([bag.power_w for bag in bags]),
        _mean([bag.fits for bag in bags]),
    ]


def _place(bag: Bag) -> float | None:
    alone = _alone(bag.solos)
    if bag.time_s is None or not (rest := alone.sum() - alone.max()) > 0:
        return None
    return float((bag.time_s - alone.max()) / rest)


def _mean(values: Sequence[float | None] | Reals) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


DEFAULT_MODEL = "process"

BASELINES = ("mean", "sum")
"""Those that look at no application: anything else must beat them."""

MODELS: Mapping[str, Callable[[], CoRunModel]] = MappingProxyType(
    {
        "mean": Mean,
        "sum": Sum,
        **{f"published-{kind}": partial(Published, kind) for kind in KINDS},
        "process-alone": partial(Process, trees=False),
        "process": Process,
    }
)
"""What makes each model, from the trivial to the strong."""


def models_named(names: Sequence[str]) -> list[CoRunModel]:
    """Make models, in the order of their names."""
    for name in names:
        if name not in MODELS:
            raise InputError(f"models: expected one of {', '.join(MODELS)}, found {name!r}")
    return [MODELS[name]() for name in dict.fromkeys(names)]
