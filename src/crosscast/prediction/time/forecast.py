"""Forecasts of times, and the protocols of models that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.catalogue import Expected
from crosscast.prediction.intervals import summed
from crosscast.prediction.time import Grid, ProfileBatch
from crosscast.prediction.time.terms import LAUNCH, TERMS, saved_by_half
from crosscast.results import Tabular, rows_of

if TYPE_CHECKING:
    from crosscast.prediction.time.gaussian import Posterior
    from crosscast.prediction.time.launch_times import DeviceErrors
    from crosscast.results import Column

Fitted = TypeVar("Fitted", covariant=True)


class Estimator(Protocol[Fitted]):
    """A way to predict times from profiles."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""

    def fit(self, grid: Grid, seed: int) -> Fitted:
        """Fit, with all scaling, tuning and selection, to a grid that may have cells without a time."""


class PointPredictor(Protocol):
    """A fitted point model."""

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""


class Predictor(Protocol):
    """A fitted model that predicts with intervals."""

    def predict(
        self,
        profiles: ProfileBatch,
        devices: Sequence[Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> TimeForecast:
        """Predict times; `probes` are seconds of shape ``(n, d)``, NaN where not measured.

        Devices are those that it was fitted on, which are the default, and descriptions of others.
        """


PointModel = Estimator[PointPredictor]


class Model(Estimator[Predictor], Protocol):
    """A model of times with intervals."""

    @property
    def residuals_from(self) -> PointModel | None:
        """Point model whose out-of-fold errors a fit can be given; ``None`` if it needs none."""
        return None

    def fit(self, grid: Grid, seed: int, residuals: Reals | None = None, *, others: bool = True) -> Predictor:
        """Fit to a grid; see `Estimator.fit`.

        Out-of-fold errors of `residuals_from` save their computation. Without `others` only devices of the
        grid are predicted.
        """


_MOST_NAMED = 4
"""Most kernels whose recommended devices are listed in a caption."""


@dataclass(frozen=True)
class Recommendation:
    """The device to take for a kernel: the one with the least predicted time."""

    device: str
    runner_up: str | None = None  # The next; `None` if there is no other
    times_longer: float | None = None  # Predicted time of the next over that of the first
    # Probability that the next is the faster of the two; `None` where not known
    probability_faster: float | None = None


@dataclass(frozen=True)
class NearestLaunch:
    """The training launch most similar to a predicted one."""

    name: str  # Application, kernel and size
    similarity: float  # From 1, where both do the same work, to 0


@dataclass(frozen=True)
class Assumed:
    """Expected values for missing numbers of a device, and their shares of the variance."""

    device: str
    numbers: Mapping[str, Expected]  # By column of the table of devices
    # Of the variance of the logarithm of the device's times, by column, the largest first
    shares: Mapping[str, float]

    @property
    def most(self) -> str:
        """The column with the largest share."""
        return next(iter(self.shares))

    def to_dict(self) -> dict[str, object]:
        """The numbers with their shares, for JSON."""
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
    # `(n, d)` Recorded times that the model did not use; NaN where there is none
    recorded: Reals | None = None
    warnings: tuple[tuple[str, ...], ...] = ()  # For each kernel; sentences without a full stop
    # `(d,)` Of errors of the kernels of an application; by default 1, the most cautious
    correlation: Reals | float = 1.0
    # `(n, d, t)` Shares of the time by `crosscast.prediction.time.terms.TERMS`, if the model has terms
    terms: Reals | None = None
    nearest: tuple[NearestLaunch, ...] = ()  # For each kernel, if the model knows
    assumed: tuple[Assumed, ...] = ()  # Devices whose data sheets lack numbers
    deviation: Reals | None = None  # `(n, d)` Standard deviations of log times, if the model has them
    errors: Posterior | DeviceErrors | None = None  # On these devices and others, if the model has them

    @cached_property
    def ranks(self) -> Integers:
        """Rank of each device by predicted time, from 1, of shape ``(n, d)``."""
        order = np.argsort(self.centre, axis=1, kind="stable")
        return np.argsort(order, axis=1, kind="stable") + 1

    @property
    def is_measured(self) -> Flags:
        """Mask of the times that are those of probes, of shape ``(n, d)``."""
        return np.zeros(self.centre.shape, dtype=np.bool_) if self.measured is None else self.measured

    @cached_property
    def labels(self) -> list[str]:
        """Names of each kernel, for people."""
        return [" ".join(filter(None, names)) for names in self.profiles.names]

    def with_recorded(self, times: Mapping[tuple[str, str, str], Mapping[str, float]]) -> TimeForecast:
        """The forecast beside recorded times, by application, kernel and size, and by device."""
        rows = [times.get(names, {}) for names in self.profiles.names]
        recorded = np.array([[row.get(device, np.nan) for device in self.devices] for row in rows])
        return replace(self, recorded=recorded) if times else self

    def on_device(self) -> TimeForecast:
        """The forecast of times on the device's clock, from start to end: without the host's launch."""
        if self.terms is None:
            return self
        remaining = np.where(self.is_measured, 1.0, 1.0 - self.terms[..., LAUNCH])
        terms = self.terms.copy()
        terms[..., LAUNCH] = 0.0
        terms /= np.maximum(terms.sum(axis=-1, keepdims=True), 1e-15)
        times = {name: getattr(self, name) * remaining for name in ("centre", "low", "high")}
        return replace(self, **times, terms=terms)

    @cached_property
    def recommended(self) -> tuple[Recommendation, ...]:
        """For each kernel, the device to take."""
        return tuple(map(self._recommend, range(len(self.centre))))

    def _recommend(self, row: int) -> Recommendation:
        first, *others = np.argsort(self.centre[row], kind="stable")[:2].tolist()
        if not others:
            return Recommendation(self.devices[first])
        (second,) = others
        factor = float(self.centre[row, second] / self.centre[row, first])
        faster = self.probability_faster(row, first, second)
        return Recommendation(self.devices[first], self.devices[second], factor, faster)

    def probability_faster(self, row: int, first: int, second: int) -> float | None:
        """Probability that a kernel takes less time on the second of two devices, if the model knows."""
        if self.errors is None:
            return None
        apart = float(np.log(self.centre[row, second] / self.centre[row, first]))
        return self.errors.probability_faster(row, self.devices[first], self.devices[second], apart)

    def term_shares(self, row: int, column: int) -> dict[str, float]:
        """Share of each term in the time of a kernel on a device, by name, the largest first."""
        shares = np.zeros(len(TERMS)) if self.terms is None else self.terms[row, column]
        order = np.argsort(-shares, kind="stable").tolist()
        return {TERMS[k]: round(float(shares[k]), 4) for k in order if shares[k] > 0}

    def most_saved(self, row: int, column: int) -> tuple[str, float]:
        """The term whose halving would save most of a time, and the share that it saves."""
        saved = saved_by_half(self.terms[row, column]) if self.terms is not None else np.zeros(len(TERMS))
        most = int(saved.argmax())
        return TERMS[most], float(saved[most])

    def _spent(self, row: int, column: int) -> dict[str, object]:
        if self.terms is None:
            return {}
        term, share = self.most_saved(row, column)
        most_saved = {"term": term, "share": round(share, 4)}
        return {"terms": self.term_shares(row, column), "most_saved": most_saved}

    def of_all_launches(self, repeat: float | Reals = 1.0) -> tuple[Reals, Reals, Reals]:
        """Total times ``(d,)`` of all launches of all kernels, one after another, and their limits.

        Errors of an application's kernels are correlated as they were on held-out applications.
        """
        with np.errstate(divide="ignore"):
            centre, low, high = (np.log(each) for each in (self.centre, self.low, self.high))
        weights = self.profiles.invocations.astype(np.float64) * repeat
        total, least, most = summed(weights, centre, low, high, self.correlation)
        return np.exp(total), np.exp(least), np.exp(most)

    def applications(self) -> dict[str, TimeForecast]:
        """Forecasts of the kernels of each application at a size with several kernels, by its name."""
        runs = self.profiles.groups("run")
        forecasts = {}
        for run in dict.fromkeys(runs.tolist()):
            rows = np.flatnonzero(runs == run)
            profiles = self.profiles.take(rows)
            if len(rows) > 1 and profiles.application[0]:
                name = " ".join(filter(None, (profiles.application[0], profiles.size[0])))
                cells = {each: getattr(self, each)[rows] for each in ("centre", "low", "high")}
                forecasts[name] = TimeForecast(
                    profiles, self.devices, level=self.level, correlation=self.correlation, **cells
                )
        return forecasts

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
        """The level of the intervals, and the recommended devices if the kernels are few."""
        text = f"Predicted times in seconds, with {100 * self.level:.3g} % intervals"
        if not 0 < len(self.labels) <= _MOST_NAMED:
            return text
        recommended = (
            f"{each.device} for {label}" for each, label in zip(self.recommended, self.labels, strict=True)
        )
        return f"{text}; recommended: {', '.join(recommended)}"

    def to_dict(self) -> dict[str, object]:
        """The forecast, as ``crosscast predict --json`` prints it."""
        return {"kernels": self.kernels(), "assumed": [each.to_dict() for each in self.assumed]}

    def kernels(self) -> list[dict[str, object]]:
        """The forecast of each kernel, for JSON."""
        unknown: list[object] = [None] * self.centre.size
        columns = {"recorded_s": unknown} | self.plain_columns()
        cells = rows_of(columns)
        names = ("device", "time_s", "low_s", "high_s", "rank", "measured", "recorded_s")
        names_of, d = self.profiles.names, len(self.devices)
        kernels: list[dict[str, object]] = []
        for row, recommended in enumerate(self.recommended):
            application, kernel, size = names_of[row]
            best = asdict(recommended)
            device, following = best.pop("device"), best.pop("runner_up")
            of_kernel = cells[row * d : (row + 1) * d]
            kernels.append(
                {
                    "application": application or None,
                    "kernel": kernel,
                    "size": size or None,
                    "invocations": int(self.profiles.invocations[row]),
                    "level": self.level,
                    "devices": [
                        {name: cell[name] for name in names} | self._spent(row, column)
                        for column, cell in enumerate(of_kernel)
                    ],
                    "recommended": device,
                    "nearest": asdict(self.nearest[row]) if self.nearest else None,
                    "runner_up": {"device": following, **best} if following else None,
                    "warnings": list(self.warnings[row]) if self.warnings else [],
                }
            )
        return kernels
