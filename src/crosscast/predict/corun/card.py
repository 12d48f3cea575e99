"""The card of a model of co-running: what it was trained on, what it knows, and how good it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.card_file import CORUN
from crosscast.predict.required import required_count, required_table, required_text

__all__ = ["CoRunCard"]


@dataclass(frozen=True)
class CoRunCard:
    """What belongs to a fitted model besides its arrays.

    Parameters
    ----------
    model
        Name of the model.
    seed
        Start of the random numbers of its fit.
    device
        Key of the device that the bags shared.
    configuration
        Settings of the device, and how it was shared, as JSON.
    sizes
        Members of the bags that it was fitted to, ascending.
    applications
        Names of the applications of these bags.
    memory_bytes
        Memory of the device; ``None`` where it is not known.
    training
        Data that it was fitted to, for people: where from, how many of what, a hash.
    errors
        Scores on what was left out; see `crosscast.evaluate.corun.training.train_corun`.
    inputs
        Names of these applications with their sizes; ``None`` for any sizes of them.
    """

    model: str
    seed: int
    device: str
    configuration: str
    sizes: tuple[int, ...]
    applications: tuple[str, ...]
    memory_bytes: int | None
    training: Mapping[str, Any]
    errors: Mapping[str, Any]
    inputs: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The card as a JSON object."""
        return {
            "target": CORUN,
            "model": self.model,
            "seed": self.seed,
            "device": self.device,
            "configuration": self.configuration,
            "sizes": list(self.sizes),
            "applications": list(self.applications),
            "inputs": None if self.inputs is None else list(self.inputs),
            "memory_bytes": self.memory_bytes,
            "training": dict(self.training),
            "errors": dict(self.errors),
        }

    @classmethod
    def from_dict(cls, card: Mapping[str, Any], where: str) -> CoRunCard:
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
        sizes = fields.take("sizes")
        if not isinstance(sizes, list) or not sizes or not all(type(n) is int and n >= 2 for n in sizes):
            raise InputError(f"{where}: sizes: expected whole numbers of at least 2, found {sizes!r}")
        return cls(
            required_text(fields, "model"),
            required_count(fields, "seed"),
            required_text(fields, "device"),
            required_text(fields, "configuration"),
            tuple(sizes),
            tuple(fields.texts("applications")),
            fields.integer("memory_bytes", 1),
            dict(required_table(fields, "training").items()),
            dict(required_table(fields, "errors").items()),
            tuple(fields.texts("inputs")) if card.get("inputs") is not None else None,
        )
