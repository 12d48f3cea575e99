"""Trained models of relative performance: their card, their forecasts, and their folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np

from crosscast.arrays import Arrays, Integers, Reals
from crosscast.data.fields import decode
from crosscast.errors import InputError, expect_known
from crosscast.prediction.intervals import check_level
from crosscast.prediction.relative import (
    MOST_NAMED,
    NO_SOURCE,
    Observations,
    RelativePredictor,
    RelativeResiduals,
    check_times,
    observations_of_profiles,
    unknown_counters_error,
)
from crosscast.prediction.serialization import Nested, Stored, register_homes
from crosscast.prediction.store import StoredModel
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.trained import StructCard, Trained, format_names
from crosscast.profile import Profile
from crosscast.results import Tabular, rows_of

if TYPE_CHECKING:
    from crosscast.results import Column

# Definition of a vector's entries on the card
DIRECTION = "time on a device over the time on the slowest device, in (0, 1]: less is better"

_HOMES = {
    "relative-blend": "crosscast.prediction.relative.models",
    "relative-by-times": "crosscast.prediction.relative.models",
    "relative-extra-trees": "crosscast.prediction.relative.models",
    "relative-linear": "crosscast.prediction.relative.nichols2024",
    "relative-trees": "crosscast.prediction.relative.nichols2024",
    "relative-vector": "crosscast.prediction.relative.nichols2024",
}
register_homes(_HOMES)

_LEAST_S, _MOST_S = 1e-9, 1e9
_NAMES = ("application", "kernel", "size", "scale")


class RelativeCard(StructCard, frozen=True, kw_only=True):
    """Description of a fitted model, stored beside its arrays."""

    model: str
    seed: Annotated[int, msgspec.Meta(ge=0)]
    direction: str = DIRECTION
    training: dict[str, object]  # sources of the data, its counts, names, a hash
    devices: tuple[str, ...]  # keys of the devices in its vectors
    sources: tuple[str, ...]  # devices on which the training runs were counted, or `NO_SOURCE`
    counters: tuple[str, ...]  # of the training runs, and their settings
    configuration: tuple[str, ...]
    # scores on held-out data; see `crosscast.evaluation.relative.question.train_relative`
    errors: dict[str, object]

    def check(self, where: str) -> None:
        """Raise InputError for another direction, and names that are missing or repeated."""
        if self.direction != DIRECTION:
            expected, found = repr(DIRECTION), repr(self.direction)
            raise InputError.of(where=where, field="direction", expected=expected, found=found)
        for field, least in (("devices", 2), ("sources", 1), ("counters", 1), ("configuration", 0)):
            names: tuple[str, ...] = getattr(self, field)
            if len(names) < least or len(set(names)) < len(names) or not all(names):
                expected, found = f"at least {least}, and each once", ", ".join(names) or "none"
                raise InputError.of(where=where, field=field, expected=expected, found=found)


@dataclass(frozen=True, eq=False)
class RelativeForecast(Tabular):
    """Forecast times of ``r`` runs on ``d`` devices, relative to a device; less is better.

    Intervals are conformal, from out-of-fold errors of such ratios; probabilities are shares of these, with
    equal weights of groups. Both use errors of runs that were counted on the same device, if there are any.

    Relative to the slowest device (`relative_to` is ``None``), the largest entry of a run is 1. As any device
    may be the slowest, the interval of the predicted slowest has a width above 0, but no upper limit above 1.
    """

    runs: Observations
    devices: tuple[str, ...]
    relative_to: str | None
    level: float  # requested probability of the intervals
    reached: Reals  # (r,) their probability: less with too few groups
    centre: Reals  # (r, d) time over that on the reference device
    low: Reals  # (r, d)
    high: Reals  # (r, d)
    order: Integers  # (r, d) indices of the devices, fastest first
    fastest: Reals  # (r, d) probability that each is the fastest
    same_order: Reals  # (r,) probability that the order is as predicted
    timed_on: tuple[str | None, ...]  # device with a known time, for each run
    time_s: Reals  # (r, d, 3) times and their limits in seconds; NaN where no time is known
    warnings: tuple[tuple[str, ...], ...]  # of each run; sentences without a full stop

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def recommended(self) -> tuple[str, ...]:
        """The device to take for each run."""
        return tuple(self.in_order(row)[0] for row in range(len(self)))

    def in_order(self, row: int) -> tuple[str, ...]:
        """The devices of a run, fastest first."""
        return tuple(self.devices[index] for index in self.order[row])

    def timed_s(self, row: int) -> float | None:
        """The known time of a run, in seconds."""
        device = self.timed_on[row]
        return None if device is None else float(self.time_s[row, self.devices.index(device), 0])

    def numbers(self) -> dict[str, Reals | Integers]:
        """Figures of each run and device by name, of shape ``(r, d)``."""
        return {
            "relative": self.centre,
            "low": self.low,
            "high": self.high,
            "rank": np.argsort(self.order, axis=1) + 1,
            "probability_fastest": self.fastest,
            **dict(zip(("time_s", "time_low_s", "time_high_s"), np.moveaxis(self.time_s, 2, 0), strict=True)),
        }

    def columns(self) -> Mapping[str, Column]:
        """A row for each run and device."""
        texts = {name: getattr(self.runs, name) for name in (*_NAMES, "source")}
        return {
            **{name: np.repeat(np.array(values), len(self.devices)) for name, values in texts.items()},
            "device": np.tile(np.array(self.devices), len(self)),
            **{name: values.ravel() for name, values in self.numbers().items()},
        }

    def __getitem__(self, row: int) -> RelativeRun:
        return RelativeRun(self, row, self.runs.label(row), self.warnings[row])

    def __iter__(self) -> Iterator[RelativeRun]:
        return (self[row] for row in range(len(self)))


class RelativeRun(NamedTuple):
    """A run of a forecast."""

    forecast: RelativeForecast
    row: int
    label: str  # names of the run, for people
    warnings: tuple[str, ...]  # sentences without a full stop

    def to_dict(self) -> dict[str, object]:
        """The run's forecast, as the object that ``--json`` prints."""
        forecast, row = self.forecast, self.row
        source, timed_on = forecast.runs.source[row], forecast.timed_on[row]
        order = forecast.in_order(row)
        columns = {name: values[row].tolist() for name, values in forecast.numbers().items()}
        if timed_on is None:
            columns |= {name: [None] * len(forecast.devices) for name in columns if name.startswith("time_")}
        columns = {"device": forecast.devices, **columns, "speed_up": (1 / forecast.centre[row]).tolist()}
        devices = rows_of(columns)
        return {
            **{name: getattr(forecast.runs, name)[row] or None for name in _NAMES},
            "source": None if source == NO_SOURCE else source,
            "relative_to": forecast.relative_to,
            "level": forecast.level,
            "level_reached": float(forecast.reached[row]),
            "devices": devices,
            "order": list(order),
            "probability_same_order": float(forecast.same_order[row]),
            "recommended": order[0],
            "time": None if timed_on is None else {"device": timed_on, "time_s": forecast.timed_s(row)},
            "warnings": list(self.warnings),
        }


def forecast_of(
    runs: Observations,
    devices: Sequence[str],
    predicted: Reals,
    residuals: RelativeResiduals,
    *,
    relative_to: str | None = None,
    level: float = 0.9,
    times: Sequence[tuple[str, float] | None] = (),
    warnings: Sequence[Sequence[str]] = (),
) -> RelativeForecast:
    """Forecasts from predicted vectors ``(r, d)``; `times` are a device and the seconds there of each run."""
    check_level(level)
    if relative_to is not None:
        expect_known(relative_to, devices, where="relative_to")
    check_times(predicted, "model")
    base = None if relative_to is None else list(devices).index(relative_to)
    errors = [residuals.of_source(source) for source in runs.source]
    logs = _logs(predicted, base)
    order = np.argsort(logs, axis=1, kind="stable").astype(np.int64)
    reached = np.array([min(level, each.most_level) for each in errors])
    time_s = np.full((*predicted.shape, 3), np.nan)
    known, given_warnings = [*times] or [None] * len(runs), warnings or [()] * len(runs)
    for row, time in enumerate(known):
        if time is not None:
            timed = list(devices).index(time[0])
            time_s[row] = time[1] * _limits(predicted[[row]], [errors[row]], timed, level)[0]
    shares = [_shares(logs[row], order[row], each) for row, each in enumerate(errors)]
    centre, low, high = np.moveaxis(_limits(predicted, errors, base, level), 2, 0)
    return RelativeForecast(
        runs=runs,
        devices=tuple(devices),
        relative_to=relative_to,
        level=level,
        reached=reached,
        centre=centre,
        low=low,
        high=high,
        order=order,
        fastest=np.array([fastest for fastest, _ in shares]).reshape(predicted.shape),
        same_order=np.array([same for _, same in shares]),
        timed_on=tuple(time and time[0] for time in known),
        time_s=time_s,
        warnings=tuple(
            (*one, *_too_few(level, most)) for one, most in zip(given_warnings, reached, strict=True)
        ),
    )


def _logs(predicted: Reals, base: int | None) -> Reals:
    logs = np.log(predicted)
    return np.asarray(logs - (logs.max(axis=1, keepdims=True) if base is None else logs[:, [base]]))


def _limits(predicted: Reals, errors: Sequence[RelativeResiduals], base: int | None, level: float) -> Reals:
    """Centre, low and high of runs from the errors of each, ``(r, d, 3)``."""
    by_source = {each.sources: each for each in errors}
    half_widths = {sources: each.half_width(level, base) for sources, each in by_source.items()}
    logs = _logs(predicted, base)
    half_width = np.array([half_widths[each.sources] for each in errors]).reshape(logs.shape)
    high = np.minimum(np.exp(logs + half_width), np.inf if base is not None else 1.0)
    return np.stack([np.exp(logs), np.exp(logs - half_width), high], axis=2)


def _shares(logs: Reals, order: Integers, errors: RelativeResiduals) -> tuple[Reals, float]:
    """Probabilities that each device is the fastest, and that the order is as predicted."""
    possible = logs - errors.log_error
    best = possible == possible.min(axis=1, keepdims=True)
    same_order = (np.diff(possible[:, order], axis=1) >= 0).all(axis=1)
    weights = errors.weights
    shares = weights @ (best / best.sum(axis=1, keepdims=True))
    return shares / shares.sum(), min(float(weights @ same_order), 1.0)


def _too_few(level: float, reached: float) -> tuple[str, ...]:
    if reached >= level:
        return ()
    groups = round(reached / (1 - reached))
    needed = int(np.ceil(level / (1 - level) - 1e-6))
    return (
        f"the intervals are {100 * reached:.3g} % intervals: the model was tested on {groups} groups of runs "
        f"that it had not seen, and {100 * level:g} % takes {needed}",
    )


_FEW = 0.1
"""Share of the training's counters up to which a run that has no more is hardly told from others."""


@dataclass(frozen=True, eq=False)
class FittedRelative(Stored):
    """A fitted model with its out-of-fold residuals."""

    model: Annotated[RelativePredictor, Nested(kinds=tuple(_HOMES))]
    held_out: RelativeResiduals


@dataclass(frozen=True, eq=False)
class TrainedRelativeModel(Trained[RelativeCard, FittedRelative]):
    """A model of times on devices relative to each other."""

    question = "relative"
    intervals = RelativeResiduals.method

    @classmethod
    def read(cls, card: RelativeCard, stored: StoredModel) -> FittedRelative:
        """Read the model and its residuals, for the card's devices."""
        fitted = FittedRelative.from_state(stored.arrays, str(stored.path))
        width = fitted.held_out.log_error.shape[1]
        if width != len(card.devices):
            expected = f"errors on the {len(card.devices)} devices of its card"
            raise InputError.of(where=stored.path, expected=expected, found=width)
        return fitted

    def arrays(self) -> Arrays:
        """The arrays of the model and its residuals."""
        return self.fitted.state()

    @property
    def predictor(self) -> RelativePredictor:
        """The fitted predictor."""
        return self.fitted.model

    @property
    def residuals(self) -> RelativeResiduals:
        """Errors on held-out data, for intervals."""
        return self.fitted.held_out

    @property
    def devices(self) -> tuple[str, ...]:
        """Keys of the ``d`` devices in its vectors."""
        return self.card.devices

    def vectors(self, runs: Observations) -> Reals:
        """Predicted relative vectors, ``(r, d)``."""
        predicted = self.predictor.predict(runs)
        if predicted.shape != (len(runs), len(self.devices)):
            expected = f"a model of {len(self.devices)} devices as its card says"
            found = f"one that predicts an array of shape {predicted.shape}"
            raise InputError.of(where=self.folder, expected=expected, found=found)
        return predicted

    def predict(
        self,
        runs: Observations | ProfileBatch | Sequence[Profile],
        *,
        relative_to: str | None = None,
        level: float = 0.9,
        timed_on: str | None = None,
        time_s: float | None = None,
    ) -> RelativeForecast:
        """Forecast times relative to a device, by default the slowest of each run.

        Runs with a known time on a device are also forecast in seconds: by default with the time of each run
        on the device on which it was counted.
        """
        if not isinstance(runs, Observations):
            runs = observations_of_profiles(runs if isinstance(runs, ProfileBatch) else ProfileBatch.of(runs))
        unknown = self._unknown_counters(runs)
        for row in range(len(runs)):
            if set(runs.counters_of(row)) <= set(unknown):
                raise unknown_counters_error(runs, row, self.card.counters)
        return forecast_of(
            runs,
            self.devices,
            self.vectors(runs),
            self.residuals,
            relative_to=relative_to,
            level=level,
            times=self._times(runs, timed_on, time_s),
            warnings=[self._warnings(runs, row, unknown) for row in range(len(runs))],
        )

    def _times(
        self, runs: Observations, timed_on: str | None, time_s: float | None
    ) -> list[tuple[str, float] | None]:
        """Device and known time of each run; ``None`` without one."""
        if timed_on is not None:
            expect_known(timed_on, self.devices, where="source")
        if time_s is not None and not _LEAST_S <= time_s <= _MOST_S:
            expected = f"from {_LEAST_S:g} to {_MOST_S:g} seconds"
            raise InputError.of(where="time", expected=expected, found=f"{time_s:g}")
        devices = [timed_on or source for source in runs.source]
        for device in devices if time_s is not None else ():
            if device not in self.devices:
                # `NO_SOURCE` is readable as what was found.
                expected = f"the device that it was measured on, one of {', '.join(self.devices)}"
                raise InputError.of(where="time", expected=expected, found=device)
        seconds = runs.time_s.tolist() if time_s is None else [time_s] * len(runs)
        return [
            (device, run_s) if device in self.devices and np.isfinite(run_s) else None
            for device, run_s in zip(devices, seconds, strict=True)
        ]

    def known_counters(self, runs: Observations) -> tuple[str, ...]:
        """Counters of runs that the model knows, by name or by what they mean."""
        unknown = self._unknown_counters(runs)
        return tuple(name for name in runs.names if name not in unknown)

    def _unknown_counters(self, runs: Observations) -> tuple[str, ...]:
        """Counters that the predictor does not know, by name or meaning, or else the training."""
        unknown = self.predictor.unknown_counters(runs)
        if unknown is not None:
            return unknown
        return tuple(name for name in runs.names if name not in self.card.counters)

    def _warnings(self, runs: Observations, row: int, unknown: Sequence[str]) -> tuple[str, ...]:
        """Applicability warnings of a run."""
        warnings = []
        source, sources = runs.source[row], self.card.sources
        ignored = [name for name in runs.counters_of(row) if name in unknown]
        # A profile has all metrics of this package, and a model of profiles those of its training.
        if ignored and sources != (NO_SOURCE,):
            names = format_names(ignored, MOST_NAMED)
            warnings.append(f"counters that the model does not know are passed over: {names}")
        known = [name for name in runs.counters_of(row) if name not in unknown]
        if sources != (NO_SOURCE,) and len(known) <= _FEW * len(self.card.counters):
            names = format_names(known, MOST_NAMED)
            warnings.append(
                f"of its counters the model knows {names} only, and has learned from "
                f"{len(self.card.counters)}: this is near to what it says of any run"
            )
        if source not in sources and source == NO_SOURCE:
            warnings.append("the profile does not say on which device it was counted")
        elif source not in sources:
            warnings.append(
                f"counted on {source}, and the model was trained on what was counted on "
                f"{format_names(sources, MOST_NAMED)}, so that nothing tells how sure this is"
            )
        return tuple(warnings)


def open_model(stored: StoredModel) -> TrainedRelativeModel:
    """The model of a folder; its arrays are read when first needed."""
    card = decode(RelativeCard, stored.card, stored.where)
    card.check(stored.where)
    return TrainedRelativeModel(card, stored)
