"""The card of a model of relative vectors: what it was trained on, what it knows, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.card_file import RELATIVE
from crosscast.predict.required import required_count, required_table, required_text

__all__ = ["DIRECTION", "RelativeCard"]

DIRECTION = "time on a device over the time on the slowest device, in (0, 1]: less is better"
"""What an entry of a vector is, as the card says it."""


@dataclass(frozen=True)
class RelativeCard:
    """What belongs to a fitted model besides its arrays.

    Parameters
    ----------
    model
        Name of the model.
    seed
        Start of the random numbers of its fit.
    devices
        Keys of the devices whose times its vectors compare, in order.
    sources
        Devices on which the runs that it was fitted to were counted, or
        `crosscast.predict.relative.observations.NO_SOURCE`.
    counters, configuration
        Names of the counters and settings of the runs that it was fitted to.
    training
        Data that it was fitted to, for people: where from, how many of what, names, a hash.
    errors
        Scores on what was left out; see `crosscast.evaluate.relative.training.train_relative`.
    """

    model: str
    seed: int
    devices: tuple[str, ...]
    sources: tuple[str, ...]
    counters: tuple[str, ...]
    configuration: tuple[str, ...]
    training: Mapping[str, Any]
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
