"""The card of an artefact: what a model was trained on, what it needs, and how good it was, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.required import required_count, required_number, required_table, required_text
from crosscast.predict.toolchain import Toolchain

__all__ = ["Card", "Effect", "MetricRange"]


@dataclass(frozen=True)
class MetricRange:
    """A metric on which predictions depend.

    Parameters
    ----------
    name
        The metric.
    required
        Whether nothing can be predicted without it.
    low, high
        Least and greatest value among the training kernels.
    """

    name: str
    required: bool
    low: float
    high: float


@dataclass(frozen=True)
class Effect:
    """How predictions from another toolchain's profiles differ from those from the training's toolchain.

    Parameters
    ----------
    toolchain
        The other one.
    kernels
        Kernels at a size that were profiled with both.
    factor
        Median of the predicted time from its profile over that from the training's.
    low, high
        What 10 % of these ratios lie below and 90 %.
    """

    toolchain: Toolchain
    kernels: int
    factor: float
    low: float
    high: float


@dataclass(frozen=True)
class Card:
    """What belongs to a fitted model besides its arrays.

    Parameters
    ----------
    model
        Name of the model.
    seed
        Start of the random numbers of its fit.
    devices
        The devices that it was fitted on, in order.
    metrics
        The metrics on which its predictions depend.
    time_low_s, time_high_s
        Least and greatest time among the training cells, in seconds.
    toolchains
        What the training profiles were made with.
    effects
        What other toolchains are known to change.
    training
        Data that it was fitted to, for people: where from, how many of what, names, a hash.
    errors
        Honest errors, for people and their programs; see `crosscast.evaluate.training.train`.
    """

    model: str
    seed: int
    devices: tuple[Device, ...]
    metrics: tuple[MetricRange, ...]
    time_low_s: float
    time_high_s: float
    toolchains: tuple[Toolchain, ...]
    effects: tuple[Effect, ...]
    training: Mapping[str, Any]
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
        """Read a card; what it holds besides does not matter.

        Parameters
        ----------
        card
            The JSON object.
        where
            Its file, for messages.

        Raises
        ------
        InputError
            If something is missing or wrong; the message names the field.
        """
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
