"""The card of an artefact: what a model was trained on, what it needs, and how good it was, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.artefact import (
    TIME,
    Part,
    StoredArrays,
    arrays_of,
    check_folder,
    kept_reals,
    part_of,
    read_card,
    required_count,
    required_number,
    required_table,
    required_text,
    stored_name,
    write_folder,
)
from crosscast.predict.intervals import kept_quantiles
from crosscast.predict.time.data import Profiles, Toolchain
from crosscast.predict.time.gaussian import Forecast, GaussianPredictor, PointPredictor
from crosscast.profile import METRICS


@dataclass(frozen=True)
class MetricRange:
    """A metric on which predictions depend."""

    name: str  # The metric
    required: bool  # Whether nothing can be predicted without it
    low: float  # Least and greatest value among the training kernels
    high: float


@dataclass(frozen=True)
class Effect:
    """How predictions from another toolchain's profiles differ from those from the training's toolchain."""

    toolchain: Toolchain  # The other one
    kernels: int  # Kernels at a size that were profiled with both
    factor: float  # Median of the predicted time from its profile over that from the training's
    low: float  # What 10 % of these ratios lie below and 90 %
    high: float


@dataclass(frozen=True)
class Card:
    """What belongs to a fitted model besides its arrays."""

    model: str  # Name of the model
    seed: int  # Start of the random numbers of its fit
    devices: tuple[Device, ...]  # The devices that it was fitted on, in order
    metrics: tuple[MetricRange, ...]  # The metrics on which its predictions depend
    time_low_s: float  # Least and greatest time among the training cells, in seconds
    time_high_s: float
    toolchains: tuple[Toolchain, ...]  # What the training profiles were made with
    effects: tuple[Effect, ...]  # What other toolchains are known to change
    # Data that it was fitted to, for people: where from, how many of what, names, a hash
    training: Mapping[str, Any]
    # Honest errors, for people and their programs; see `crosscast.evaluation.time_study.train`
    errors: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The card as a JSON object."""
        return {
            "model": self.model,
            "seed": self.seed,
            "training": dict(self.training),
            "toolchains": [_listed(each) for each in self.toolchains],
            "other_toolchains": [
                {**_listed(each.toolchain), "kernels": each.kernels, **_limits(each), "factor": each.factor}
                for each in self.effects
            ],
            "devices": [{**asdict(device), "numbers": dict(device.numbers)} for device in self.devices],
            "metrics": [
                {"name": each.name, "required": each.required, **_limits(each)} for each in self.metrics
            ],
            "time_s": {"low": self.time_low_s, "high": self.time_high_s},
            "errors": dict(self.errors),
        }

    @classmethod
    def from_dict(cls, card: Mapping[str, Any], where: str) -> Card:
        """Read a card; what it holds besides does not matter."""
        fields = Fields(card, where)
        times = required_table(fields, "time_s")
        found = cls(
            required_text(fields, "model"),
            required_count(fields, "seed"),
            tuple(_device(each) for each in fields.tables("devices")),
            tuple(_metric(each) for each in fields.tables("metrics")),
            required_number(times, "low"),
            required_number(times, "high"),
            tuple(_toolchain(each) for each in fields.tables("toolchains")),
            tuple(_effect(each) for each in fields.tables("other_toolchains")),
            dict(required_table(fields, "training").items()),
            dict(required_table(fields, "errors").items()),
        )
        keys = [device.key for device in found.devices]
        if not keys or len(set(keys)) < len(keys):
            raise InputError(f"{where}: devices: expected at least one, and each once, found {keys}")
        return found


def _listed(toolchain: Toolchain) -> dict[str, Any]:
    return {"compiler": toolchain.compiler, "options": list(toolchain.options)}


def _limits(each: Effect | MetricRange) -> dict[str, float]:
    return {"low": each.low, "high": each.high}


def _device(fields: Fields) -> Device:
    texts = {name: fields.take(name) or "" for name in ("name", "vendor", "type", "series")}
    numbers = fields.table("numbers") or Fields({}, fields.where)
    return Device(
        required_text(fields, "key"),
        **{name: str(text) for name, text in texts.items()},
        numbers={name: required_number(numbers, name) for name, _ in numbers.items()},
    )


def _metric(fields: Fields) -> MetricRange:
    return MetricRange(
        required_text(fields, "name"),
        fields.flag("required"),
        required_number(fields, "low"),
        required_number(fields, "high"),
    )


def _toolchain(fields: Fields) -> Toolchain:
    return Toolchain(str(fields.take("compiler") or ""), fields.texts("options"))


def _effect(fields: Fields) -> Effect:
    numbers = (required_number(fields, name) for name in ("factor", "low", "high"))
    return Effect(_toolchain(fields), required_count(fields, "kernels"), *numbers)


_ENOUGH = 64


def metric_ranges(point: PointPredictor, profiles: Profiles) -> tuple[MetricRange, ...]:
    """Find the metrics on which predictions depend, by taking each away."""
    step = max(1, len(profiles) // _ENOUGH)
    some = profiles.take(np.arange(0, len(profiles), step))
    with np.errstate(all="ignore"):
        before = point.log_time(some)
        return tuple(
            found
            for place in range(len(METRICS))
            if (found := _range(point, profiles, some, before, place)) is not None
        )


def _range(
    point: PointPredictor, profiles: Profiles, some: Profiles, before: Reals, place: int
) -> MetricRange | None:
    values = profiles.metrics[np.isfinite(profiles.metrics[:, place]), place]
    if values.size == 0:
        return None
    metrics = some.metrics.copy()
    metrics[:, place] = np.nan
    try:
        required, same = False, np.array_equal(point.log_time(replace(some, metrics=metrics)), before)
    except InputError:
        required, same = True, False
    if same:
        return None
    return MetricRange(METRICS[place].name, required, float(values.min()), float(values.max()))


_UNSEEN = "unseen"


@dataclass(frozen=True)
class TrainedModel:
    """A model that was read from an artefact."""

    folder: Path  # Where it is
    card: Card  # What it was trained on, and how good it was
    # Kind of each part that has arrays of its own, by the field of `GaussianPredictor` that holds it
    parts: Mapping[str, str]
    arrays: StoredArrays  # Its arrays, which are read when the first prediction is asked for

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it was trained on."""
        return self.card.devices

    @cached_property
    def predictor(self) -> GaussianPredictor:
        """What predicts."""
        return self.arrays.made_into(lambda arrays: _predictor(self.card.devices, self.parts, arrays))

    def predict(
        self,
        profiles: Profiles,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> Forecast:
        """Predict times; see `crosscast.predict.time.gaussian.Predictor.predict`."""
        return self.predictor.predict(profiles, devices, probes=probes, level=level)


def save_model(predictor: GaussianPredictor, folder: str | Path, card: Card) -> None:
    """Write an artefact, in the place of the one that is there."""
    folder = Path(folder)
    check_folder(folder)
    arrays: dict[str, npt.NDArray[Any]] = {}
    parts = {}
    for field in fields(predictor):
        value = getattr(predictor, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, Part):
            parts[field.name] = stored_name(value)
            arrays |= {f"{field.name}.{name}": array for name, array in value.state().items()}
    write_folder(folder, {**card.to_dict(), "parts": parts}, arrays)


def load_model(folder: str | Path) -> TrainedModel:
    """Read the card of an artefact and check it; arrays are read when they are needed.

    Raises
    ------
    InputError
        If the folder holds no artefact, a damaged one, one of a newer format, or one that does not predict
        times.
    """
    folder = Path(folder)
    card = read_card(folder, TIME)
    parts = dict(required_table(card, "parts").items())
    if not all(isinstance(kind, str) for kind in parts.values()):
        raise InputError(f"{card.where}: parts: expected a kind for each, found {parts}")
    return TrainedModel(
        folder,
        Card.from_dict(dict(card.items()), card.where),
        parts,
        StoredArrays.of(required_table(card, "arrays"), folder),
    )


def _predictor(
    devices: tuple[Device, ...], parts: Mapping[str, str], arrays: Mapping[str, npt.NDArray[Any]]
) -> GaussianPredictor:
    """Make the parts from their arrays, and the predictor of them."""
    if not {"point"} <= set(parts) <= {"point", _UNSEEN}:
        raise InputError(f"model: parts: expected point and what else a model has, found {', '.join(parts)}")
    if any((kind == _UNSEEN) != (name == _UNSEEN) for name, kind in parts.items()):
        raise InputError(f"model: parts: expected each of its own kind, found {dict(parts)}")
    made = {name: part_of(kind, arrays_of(arrays, name)) for name, kind in parts.items()}
    covariance, quantiles = kept_reals(arrays, "covariance", 2), kept_quantiles(arrays, "quantiles", 2)
    d = len(devices)
    if covariance.shape != (d, d) or not _is_covariance(covariance):
        raise InputError(
            f"model: covariance: expected a positive definite one of {d} devices, found another of shape "
            f"{covariance.shape}"
        )
    predictor = GaussianPredictor(devices=devices, covariance=covariance, quantiles=quantiles, **made)
    counts = {predictor.point.log_time(_NO_PROFILES).shape[1]}
    if predictor.unseen is not None:
        counts.add(len(predictor.unseen.descriptors.types))
    if counts != {d}:
        raise InputError(f"model: expected a model of {d} devices, found one of {max(counts - {d})}")
    return predictor


def _is_covariance(matrix: Reals) -> bool:
    return np.allclose(matrix, matrix.T) and bool((np.linalg.eigvalsh(matrix) > 0).all())


_NO_PROFILES = Profiles((), (), (), np.empty((0, len(METRICS))))
