"""The card of a model of relative vectors: what it was trained on, what it knows, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.artefact import (
    RELATIVE,
    STORED,
    State,
    StoredArrays,
    arrays_of,
    part_of,
    read_card,
    required_count,
    required_table,
    required_text,
    stored_name,
    write_folder,
)
from crosscast.predict.relative.data import NO_SOURCE, Observations, RelativePredictor
from crosscast.predict.relative.intervals import HeldOut, RelativeForecast, forecast_of
from crosscast.predict.warnings import listed

DIRECTION = "time on a device over the time on the slowest device, in (0, 1]: less is better"
"""What an entry of a vector is, as the card says it."""


@dataclass(frozen=True)
class RelativeCard:
    """What belongs to a fitted model besides its arrays."""

    model: str  # Name of the model
    seed: int  # Start of the random numbers of its fit
    devices: tuple[str, ...]  # Keys of the devices whose times its vectors compare, in order
    # Devices on which the runs that it was fitted to were counted, or
    # `crosscast.predict.relative.data.NO_SOURCE`
    sources: tuple[str, ...]
    counters: tuple[str, ...]  # Names of the counters and settings of the runs that it was fitted to
    configuration: tuple[str, ...]
    # Data that it was fitted to, for people: where from, how many of what, names, a hash
    training: Mapping[str, Any]
    # Scores on what was left out; see `crosscast.evaluation.relative.train_relative`
    errors: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The card as a JSON object."""
        return {
            "target": RELATIVE,
            "model": self.model,
            "seed": self.seed,
            "direction": DIRECTION,
            "training": dict(self.training),
            "devices": list(self.devices),
            "sources": list(self.sources),
            "counters": list(self.counters),
            "configuration": list(self.configuration),
            "errors": dict(self.errors),
        }

    @classmethod
    def from_dict(cls, card: Mapping[str, Any], where: str) -> RelativeCard:
        """Read a card; what it holds besides does not matter."""
        fields = Fields(card, where)
        direction = required_text(fields, "direction")
        if direction != DIRECTION:
            raise InputError(f"{where}: direction: expected {DIRECTION!r}, found {direction!r}")
        return cls(
            required_text(fields, "model"),
            required_count(fields, "seed"),
            _names(fields, "devices", 2),
            _names(fields, "sources", 1),
            _names(fields, "counters", 1),
            _names(fields, "configuration", 0),
            dict(required_table(fields, "training").items()),
            dict(required_table(fields, "errors").items()),
        )


def _names(fields: Fields, name: str, least: int) -> tuple[str, ...]:
    found = fields.texts(name)
    if len(found) < least or len(set(found)) < len(found) or not all(found):
        listed = ", ".join(found) or "none"
        raise InputError(f"{fields.where}: {name}: expected at least {least}, and each once, found {listed}")
    return found


_MOST_NAMED = 5


@runtime_checkable
class _KnowsCounters(Protocol):
    """A model, or the features of one, that can tell which counters it looks at."""

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Names of the counters of runs that it does not know."""
        ...


def unknown_counters(
    predictor: RelativePredictor, card: RelativeCard, observations: Observations
) -> tuple[str, ...]:
    """Names of counters of runs that a model does not know.

    The model says it, or its ``features`` do: they may know counters of other tools by what these mean. Else
    it is those that the training did not have.
    """
    for part in (predictor, getattr(predictor, "features", None)):
        if isinstance(part, _KnowsCounters):
            return part.unknown_counters(observations)
    return tuple(name for name in observations.names if name not in card.counters)


def check_counters(card: RelativeCard, observations: Observations, unknown: Sequence[str]) -> None:
    """Refuse runs of which the model knows no counter."""
    columns = [place for place, name in enumerate(observations.names) if name not in set(unknown)]
    told = np.isfinite(observations.counters[:, columns]).any(axis=1)
    if not told.all():
        row = int(np.flatnonzero(~told)[0])
        there = np.isfinite(observations.counters[row])
        found = [name for name, one in zip(observations.names, there, strict=True) if one]
        raise InputError(
            f"{_label(observations, row)}: expected counters that the model knows, such as "
            f"{_named(card.counters)}, found {_named(found) or 'none'}"
        )


def doubts_of(
    card: RelativeCard, observations: Observations, unknown: Sequence[str]
) -> list[tuple[str, ...]]:
    """What is doubtful of each run; sentences without a full stop."""
    return [
        tuple(
            filter(None, (_passed_over(observations, row, unknown), _source(card, observations.source[row])))
        )
        for row in range(len(observations))
    ]


def _passed_over(observations: Observations, row: int, unknown: Sequence[str]) -> str:
    there = np.isfinite(observations.counters[row])
    found = [
        name for name, one in zip(observations.names, there, strict=True) if one and name in set(unknown)
    ]
    return f"counters that the model does not know are passed over: {_named(found)}" if found else ""


def _source(card: RelativeCard, source: str) -> str:
    if source in card.sources:
        return ""
    if source == NO_SOURCE:
        return "the profile does not say on which device it was counted"
    return (
        f"counted on {source}, and the model was trained on what was counted on {_named(card.sources)}, so "
        "that nothing tells how sure this is"
    )


def _label(observations: Observations, row: int) -> str:
    names = (observations.application[row], observations.kernel[row], observations.size[row])
    return " ".join(dict.fromkeys(filter(None, names))) or "profile"


def _named(names: Sequence[str]) -> str:
    return listed(names, _MOST_NAMED)


_MODEL, _HELD_OUT = "model", "held_out"


def relative_kinds() -> tuple[str, ...]:
    """Names of the kinds of models of relative vectors."""
    return tuple(name for name, place in STORED.items() if ".relative." in place)


@dataclass(frozen=True)
class TrainedRelativeModel:
    """A model that was read from an artefact; a `RelativePredictor` itself."""

    folder: Path  # Where it is
    card: RelativeCard  # What it was trained on, and how good it was
    kind: str  # Kind of the model, by which its class is found
    arrays: StoredArrays  # Its arrays, which are read when the first prediction is asked for

    @property
    def devices(self) -> tuple[str, ...]:
        """Keys of the ``d`` devices whose times its vectors compare."""
        return self.card.devices

    @property
    def predictor(self) -> RelativePredictor:
        """What predicts vectors."""
        return self._made[0]

    @property
    def held_out(self) -> HeldOut:
        """Its errors on groups that were left out."""
        return self._made[1]

    @cached_property
    def _made(self) -> tuple[RelativePredictor, HeldOut]:
        return self.arrays.made_into(self._make)

    def _make(self, arrays: State) -> tuple[RelativePredictor, HeldOut]:
        kinds = relative_kinds()
        if self.kind not in kinds:
            raise InputError(f"model: kind: expected one of {', '.join(kinds)}, found {self.kind!r}")
        held_out = HeldOut.from_state(arrays_of(arrays, _HELD_OUT))
        found = held_out.log_error.shape[1]
        if found != len(self.devices):
            raise InputError(
                f"model: expected errors on the {len(self.devices)} devices of its card, found {found}"
            )
        return part_of(self.kind, arrays_of(arrays, _MODEL)), held_out

    def predict(self, observations: Observations) -> Reals:
        """Predicted vectors, of shape ``(r, d)``, as the model gives them; see
        `RelativePredictor.predict`.
        """
        predicted = self.predictor.predict(observations)
        expected = (len(observations), len(self.devices))
        if predicted.shape != expected:
            raise InputError(
                f"{self.folder}: expected a model of {len(self.devices)} devices as its card says, found "
                f"one that predicts an array of shape {predicted.shape}"
            )
        return predicted

    def forecast(
        self, observations: Observations, *, relative_to: str | None = None, level: float = 0.9
    ) -> RelativeForecast:
        """Predict vectors with intervals, and how likely each device is the fastest."""
        unknown = unknown_counters(self.predictor, self.card, observations)
        check_counters(self.card, observations, unknown)
        return forecast_of(
            self.devices,
            self.predict(observations),
            observations.source,
            self.held_out,
            relative_to=relative_to,
            level=level,
            warnings=doubts_of(self.card, observations, unknown),
        )


def save_relative_model(
    predictor: RelativePredictor, held_out: HeldOut, folder: str | Path, card: RelativeCard
) -> None:
    """Write an artefact, in the place of the one that is there."""
    kept: Mapping[str, object] = {**card.to_dict(), "kind": stored_name(predictor)}
    parts = {_MODEL: predictor.state(), _HELD_OUT: held_out.state()}
    arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
    write_folder(Path(folder), kept, arrays)


def load_relative_model(folder: str | Path) -> TrainedRelativeModel:
    """Read the card of an artefact and check it; arrays are read when they are needed."""
    folder = Path(folder)
    card = read_card(folder, RELATIVE)
    kind = required_text(card, "kind")
    found = RelativeCard.from_dict(dict(card.items()), card.where)
    return TrainedRelativeModel(folder, found, kind, StoredArrays.of(required_table(card, "arrays"), folder))


_LEAST_S, _MOST_S = 1e-9, 1e9


@dataclass(frozen=True)
class RelativeTime:
    """What is predicted of one run on one device."""

    device: str  # Its key
    relative: float  # Time over that on the device that it is relative to, and limits of its interval
    low: float
    high: float
    rank: int  # Place in the order of the times, from 1
    probability_fastest: float  # Probability that no device is faster
    # Time and limits of its interval in seconds; `None` where no time is known on a device
    time_s: float | None = None
    time_low_s: float | None = None
    time_high_s: float | None = None

    @property
    def speed_up(self) -> float:
        """How many times as fast it is as the device that its time is relative to."""
        return 1 / self.relative


@dataclass(frozen=True)
class RelativePrediction:
    """What is predicted of one run."""

    application: str  # Its names; empty where there is none
    kernel: str
    size: str
    scale: str
    # Device on which it was counted; `None` where that is not known, or none has a part in it
    source: str | None
    relative_to: str | None  # Device that times are relative to; `None` for the slowest
    level: float  # Probability of intervals that was asked for, and that they have
    reached: float
    devices: tuple[RelativeTime, ...]  # The devices, in the model's order
    same_order: float  # Probability that the whole order is as predicted
    # Device on which a time is known, and the time in seconds; `None` where there is none
    timed_on: str | None
    timed_s: float | None
    warnings: tuple[str, ...]  # What makes this doubtful; sentences without a full stop

    @property
    def label(self) -> str:
        """Its names, for people."""
        names = (self.application, self.kernel, self.size, self.scale)
        return " ".join(dict.fromkeys(filter(None, names))) or "profile"

    @property
    def order(self) -> tuple[RelativeTime, ...]:
        """The devices, fastest first."""
        return tuple(sorted(self.devices, key=lambda each: each.rank))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as the object that ``--json`` prints."""
        return {
            "application": self.application or None,
            "kernel": self.kernel or None,
            "size": self.size or None,
            "scale": self.scale or None,
            "source": self.source,
            "relative_to": self.relative_to,
            "level": self.level,
            "level_reached": self.reached,
            "devices": [{**asdict(each), "speed_up": each.speed_up} for each in self.devices],
            "order": [each.device for each in self.order],
            "probability_same_order": self.same_order,
            "recommended": self.order[0].device,
            "time": None if self.timed_on is None else {"device": self.timed_on, "time_s": self.timed_s},
            "warnings": list(self.warnings),
        }


def relative_predictions_of(
    model: TrainedRelativeModel,
    observations: Observations,
    *,
    relative_to: str | None = None,
    level: float = 0.9,
    timed_on: str | None = None,
    time_s: float | None = None,
) -> list[RelativePrediction]:
    """Predict runs."""
    if timed_on is not None and timed_on not in model.devices:
        raise InputError(f"source: expected one of {', '.join(model.devices)}, found {timed_on!r}")
    if time_s is not None and not _LEAST_S <= time_s <= _MOST_S:
        raise InputError(f"time: expected from {_LEAST_S:g} to {_MOST_S:g} seconds, found {time_s:g}")
    forecast = model.forecast(observations, relative_to=relative_to, level=level)
    seconds: dict[str, RelativeForecast] = {}
    found = []
    for row in range(len(observations)):
        device = timed_on or observations.source[row]
        known = time_s if time_s is not None else float(observations.time_s[row])
        if device not in model.devices:
            if time_s is not None:
                raise InputError(
                    f"time: expected the device that it was measured on, one of {', '.join(model.devices)}, "
                    f"found {'none' if device == NO_SOURCE else device}"
                )
            known = np.nan
        if np.isfinite(known) and device not in seconds:
            seconds[device] = model.forecast(observations, relative_to=device, level=level)
        times = known * _limits(seconds[device], row) if np.isfinite(known) else None
        found.append(_prediction(forecast, observations, row, device, known, times))
    return found


def _limits(forecast: RelativeForecast, row: int) -> Reals:
    """Centre, low and high of a run, of shape ``(d, 3)``."""
    return np.stack([forecast.centre[row], forecast.low[row], forecast.high[row]], axis=1)


def _prediction(
    forecast: RelativeForecast,
    observations: Observations,
    row: int,
    timed_on: str,
    timed_s: float,
    times_s: Reals | None,
) -> RelativePrediction:
    ranks = np.argsort(forecast.order[row]) + 1
    source = observations.source[row]
    seconds: list[list[float | None]] = (
        [[None] * 3] * len(ranks) if times_s is None else [list(limits) for limits in times_s.tolist()]
    )
    devices = []
    for place, (relative, low, high) in enumerate(_limits(forecast, row).tolist()):
        share = float(forecast.fastest[row, place])
        name, rank = forecast.devices[place], int(ranks[place])
        devices.append(RelativeTime(name, relative, low, high, rank, share, *seconds[place]))
    return RelativePrediction(
        observations.application[row],
        observations.kernel[row],
        observations.size[row],
        observations.scale[row],
        None if source == NO_SOURCE else source,
        forecast.relative_to,
        forecast.level,
        float(forecast.reached[row]),
        tuple(devices),
        float(forecast.same_order[row]),
        None if times_s is None else timed_on,
        None if times_s is None else timed_s,
        forecast.warnings[row],
    )
