"""Forecasts of times: what a model answers, and what makes something a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.siblings import Expected
from crosscast.prediction.intervals import summed
from crosscast.prediction.time.data import Grid, ProfileBatch
from crosscast.prediction.time.terms import LAUNCH, TERMS, saved_by_half
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.prediction.time.gaussian import Posterior
    from crosscast.results import Column

Fitted = TypeVar("Fitted", covariant=True)


class Estimator(Protocol[Fitted]):
    """A way to predict times from profiles."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""

    def fit(self, grid: Grid, seed: int) -> Fitted:
        """Fit it to a grid that may have cells without a time: all that it scales, tunes or selects."""


class PointPredictor(Protocol):
    """A fitted point model."""

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""


class Predictor(Protocol):
    """A fitted model that says how sure it is."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it was fitted on."""

    def predict(
        self,
        profiles: ProfileBatch,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> TimeForecast:
        """Predict times; `probes` are seconds of shape ``(n, d)``, not a number where not measured."""


PointModel = Estimator[PointPredictor]


class Model(Estimator[Predictor], Protocol):
    """A way to predict times that says how sure it is."""

    @property
    def refitted(self) -> PointModel | None:
        """What is fitted again for out-of-fold residuals; ``None`` if nothing is."""
        return None

    def fit_with_residuals(self, grid: Grid, seed: int, residuals: Reals) -> Predictor:
        """The same as `fit` with out-of-fold residuals ``(n, d)`` of `refitted` that are known already."""
        return self.fit(grid, seed)


_MOST_NAMED = 4
"""Kernels whose recommended device is above a table in a notebook."""


@dataclass(frozen=True)
class Recommendation:
    """The device to take for a kernel: the one with the least predicted time."""

    device: str
    runner_up: str | None = None  # The next; `None` if there is no other
    times_longer: float | None = None  # Predicted time of the next over that of the first
    # Probability that the next is in truth the faster of the two; `None` where it is not known
    probability_faster: float | None = None


@dataclass(frozen=True)
class NearestLaunch:
    """The launch most like one that is asked about, of those that a model was trained on."""

    name: str  # Application, kernel and size
    similarity: float  # From 1, where both do the same work, to 0


@dataclass(frozen=True)
class Assumed:
    """What stands for numbers of a device that nobody gave, and how much of the doubt is theirs."""

    device: str
    numbers: Mapping[str, Expected]  # By column of the table of devices
    # Of the variance of the logarithm of its times, by column, the largest first
    shares: Mapping[str, float]

    @property
    def most(self) -> str:
        """The number from which the forecast would gain most."""
        return next(iter(self.shares))

    def to_dict(self) -> dict[str, object]:
        """All of it, for JSON."""
        numbers = {
            name: {**asdict(self.numbers[name]), "share_of_variance": share}
            for name, share in self.shares.items()
        }
        return {"device": self.device, "numbers": numbers, "gains_most_from": self.most}


@dataclass(frozen=True, eq=False)
class TimeForecast(Tabular):
    """Predicted times of ``n`` kernels on ``d`` devices, in seconds, of one launch."""

    profiles: ProfileBatch
    devices: tuple[str, ...]  # Keys
    centre: Reals  # `(n, d)` Predicted medians; a measured time where `measured`
    low: Reals  # `(n, d)` Limits of the intervals that hold the time with a probability of `level`
    high: Reals
    level: float
    measured: Flags | None = None  # `(n, d)` Which times are those of probes; by default none
    # `(n, d)` Recorded times that the model was not given; not a number where there is none
    recorded: Reals | None = None
    warnings: tuple[tuple[str, ...], ...] = ()  # For each kernel; sentences without a full stop
    # `(d,)` Of errors of the kernels of an application; by default 1, the most cautious
    correlation: Reals | float = 1.0
    posterior: Posterior | None = None  # What it was made of, if the model says
    # `(n, d, t)` Shares of the time by `crosscast.prediction.time.terms.TERMS`, if the model says
    terms: Reals | None = None
    nearest: tuple[NearestLaunch, ...] = ()  # For each kernel, if the model says
    assumed: tuple[Assumed, ...] = ()  # For each device whose data sheet lacks numbers, if the model says
    # `(n, d)` Standard deviations of the logarithms of times, if the model says, and the correlation of a
    # kernel's errors on two devices
    deviation: Reals | None = None
    together: float = 0.0

    @cached_property
    def ranks(self) -> Integers:
        """Place of each device in the order of the predicted times, from 1, of shape ``(n, d)``."""
        order = np.argsort(self.centre, axis=1, kind="stable")
        return np.argsort(order, axis=1, kind="stable") + 1

    @property
    def is_measured(self) -> Flags:
        """Which times are those of probes, of shape ``(n, d)``."""
        return np.zeros(self.centre.shape, dtype=np.bool_) if self.measured is None else self.measured

    @cached_property
    def labels(self) -> list[str]:
        """Names of each kernel, for people."""
        return [" ".join(filter(None, names)) for names in self.profiles.names]

    def with_recorded(self, times: Mapping[tuple[str, str, str], Mapping[str, float]]) -> TimeForecast:
        """The same beside times that were recorded, by application, kernel and size, and by device."""
        rows = [times.get(names, {}) for names in self.profiles.names]
        recorded = np.array([[row.get(device, np.nan) for device in self.devices] for row in rows])
        return replace(self, recorded=recorded) if times else self

    def on_device(self) -> TimeForecast:
        """The same from start to end on the device, as its clock has it: without the host's launch."""
        if self.terms is None:
            return self
        left = np.where(self.is_measured, 1.0, 1.0 - self.terms[..., LAUNCH])
        terms = self.terms.copy()
        terms[..., LAUNCH] = 0.0
        terms /= np.maximum(terms.sum(axis=-1, keepdims=True), 1e-15)
        own = replace(self, centre=self.centre * left, low=self.low * left, high=self.high * left)
        return replace(own, terms=terms)

    @cached_property
    def recommended(self) -> tuple[Recommendation, ...]:
        """For each kernel, the device to take."""
        return tuple(map(self._recommend, range(len(self.centre))))

    def _recommend(self, row: int) -> Recommendation:
        order = np.argsort(self.centre[row], kind="stable")[:2]
        best, *others = (self.devices[place] for place in order.tolist())
        if not others:
            return Recommendation(best)
        first, second = self.centre[row, order]
        factor, faster = float(second / first), None
        if self.posterior is not None:
            faster = self.posterior.probability_faster(row, best, others[0], float(np.log(factor)))
        elif self.deviation is not None:
            faster = self._faster(row, *order.tolist())
        return Recommendation(best, others[0], factor, faster)

    def _faster(self, row: int, first: int, second: int) -> float | None:
        """Probability that a kernel takes less on the second of two devices, of normal errors."""
        assert self.deviation is not None
        own, other = (float(self.deviation[row, place]) for place in (first, second))
        variance = own**2 + other**2 - 2 * self.together * own * other
        apart = float(np.log(self.centre[row, second] / self.centre[row, first]))
        return float(NormalDist(0.0, variance**0.5).cdf(-apart)) if variance > 0 else None

    def term_shares(self, row: int, place: int) -> dict[str, float]:
        """Share of each term in the time of a kernel on a device, by name, the largest first."""
        shares = np.zeros(len(TERMS)) if self.terms is None else self.terms[row, place]
        order = np.argsort(-shares, kind="stable").tolist()
        return {TERMS[k]: round(float(shares[k]), 4) for k in order if shares[k] > 0}

    def most_saved(self, row: int, place: int) -> tuple[str, float]:
        """The term whose half would save most of a time, and what share of it."""
        saved = saved_by_half(self.terms[row, place]) if self.terms is not None else np.zeros(len(TERMS))
        most = int(saved.argmax())
        return TERMS[most], float(saved[most])

    def of_all_launches(self, repeat: float | Reals = 1.0) -> tuple[Reals, Reals, Reals]:
        """Times ``(d,)`` of all kernels, as often as they are launched, one after another, and limits.

        Errors of the kernels of an application are correlated, as far as they did on held-out ones.
        """
        with np.errstate(divide="ignore"):
            centre, low, high = (np.log(each) for each in (self.centre, self.low, self.high))
        weights = self.profiles.invocations.astype(np.float64) * repeat
        total, least, most = summed(weights, centre, low, high, self.correlation)
        return np.exp(total), np.exp(least), np.exp(most)

    def applications(self) -> dict[str, TimeForecast]:
        """Forecasts of the kernels of each application at a size that has several, by its name."""
        runs = self.profiles.groups("run")
        found = {}
        for run in dict.fromkeys(runs.tolist()):
            rows = np.flatnonzero(runs == run)
            profiles = self.profiles.take(rows)
            if len(rows) > 1 and profiles.application[0]:
                name = " ".join(filter(None, (profiles.application[0], profiles.size[0])))
                cells = {each: getattr(self, each)[rows] for each in ("centre", "low", "high")}
                found[name] = TimeForecast(
                    profiles, self.devices, level=self.level, correlation=self.correlation, **cells
                )
        return found

    def columns(self) -> Mapping[str, Column]:
        """A row for each kernel and device."""
        n, d = self.centre.shape
        names = ("application", "kernel", "size")
        columns = {name: np.repeat(getattr(self.profiles, name), d) for name in names} | {
            "device": np.tile(self.devices, n),
            "time_s": self.centre.ravel(),
            "low_s": self.low.ravel(),
            "high_s": self.high.ravel(),
            "rank": self.ranks.ravel(),
            "measured": self.is_measured.ravel(),
        }
        return columns if self.recorded is None else {**columns, "recorded_s": self.recorded.ravel()}

    def caption(self) -> str:
        """The level of the intervals, and the recommended devices of a few kernels."""
        said = f"Predicted times in seconds, with {100 * self.level:.3g} % intervals"
        if not 0 < len(self.labels) <= _MOST_NAMED:
            return said
        taken = (
            f"{each.device} for {label}" for each, label in zip(self.recommended, self.labels, strict=True)
        )
        return f"{said}; recommended: {', '.join(taken)}"

    def to_dict(self) -> dict[str, object]:
        """Everything, as ``crosscast predict --json`` prints it."""
        return {"kernels": self.kernels(), "assumed": [each.to_dict() for each in self.assumed]}

    def kernels(self) -> list[dict[str, object]]:
        """The forecast of each kernel, for JSON."""
        unknown: list[object] = [None] * self.centre.size
        columns = {"recorded_s": unknown} | self.plain_columns()
        cells = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        names = ("device", "time_s", "low_s", "high_s", "rank", "measured", "recorded_s")
        d = len(self.devices)
        kernels: list[dict[str, object]] = []
        for row, ((application, kernel, size), recommended) in enumerate(
            zip(self.profiles.names, self.recommended, strict=True)
        ):
            best = asdict(recommended)
            device, following = best.pop("device"), best.pop("runner_up")
            of_kernel = cells[row * d : (row + 1) * d]
            shares: list[dict[str, object]] = (
                [{}] * d if self.terms is None else [{"terms": self.term_shares(row, k)} for k in range(d)]
            )
            kernels.append(
                {
                    "application": application or None,
                    "kernel": kernel,
                    "size": size or None,
                    "invocations": int(self.profiles.invocations[row]),
                    "level": self.level,
                    "devices": [
                        {name: cell[name] for name in names} | share
                        for cell, share in zip(of_kernel, shares, strict=True)
                    ],
                    "recommended": device,
                    "nearest": asdict(self.nearest[row]) if self.nearest else None,
                    "runner_up": {"device": following, **best} if following else None,
                    "warnings": list(self.warnings[row]) if self.warnings else [],
                }
            )
        return kernels
