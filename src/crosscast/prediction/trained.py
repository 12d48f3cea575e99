"""A trained model of any question: its card, its folder, and what was fitted, read when it is needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Generic, Protocol, TypeVar

import msgspec

from crosscast.arrays import Arrays
from crosscast.prediction.intervals import IntervalMethod
from crosscast.prediction.store import StoredModel, write
from crosscast.results import Brief


class Card(Protocol):
    """What belongs to a fitted model besides its arrays; each question's says more."""

    @property
    def model(self) -> str:
        """Name of the model."""

    @property
    def training(self) -> Mapping[str, object]:
        """Data that it was fitted to, for people: where from, how many of what, a hash."""

    @property
    def errors(self) -> Mapping[str, object]:
        """Errors on what was held out."""

    def stored(self) -> dict[str, object]:
        """The card as it is kept."""

    def to_dict(self) -> dict[str, object]:
        """The card as ``--json`` prints it."""


class StructCard(msgspec.Struct, frozen=True):
    """A card whose fields are what is kept."""

    def stored(self) -> dict[str, object]:
        """The fields as a JSON object."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return found

    def to_dict(self) -> dict[str, object]:
        """The same, for ``--json``."""
        return self.stored()


def results_of(card: Card) -> list[object]:
    """Scores on what was held out, an object of JSON for each model; none if the card does not say."""
    results = card.errors.get("results")
    return list(results) if isinstance(results, list | tuple) else []


def number_in(facts: Mapping[str, object], name: str) -> float | None:
    """A number of a card's facts; ``None`` if it is not among them."""
    value = facts.get(name)
    return value if isinstance(value, int | float) else None


def count_in(facts: Mapping[str, object], name: str) -> int:
    """How many of something a card's facts say there were; 0 if they do not say."""
    return int(number_in(facts, name) or 0)


def level_of(card: Card) -> float:
    """The probability with which intervals were to hold where their coverage was measured."""
    return number_in(card.errors, "level") or 0.9


def model_facts(card: Card) -> dict[str, object]:
    """What every answer says about its model."""
    return {"name": card.model, "training": dict(card.training)}


CardT = TypeVar("CardT", bound=Card)
FittedT = TypeVar("FittedT")


@dataclass(frozen=True, eq=False)
class Trained(Brief, ABC, Generic[CardT, FittedT]):
    """A model that was trained or read; `crosscast.load_model` opens one.

    Parameters
    ----------
    card
        What it was trained on, and how good it was.
    source
        What was fitted, or the folder that it is read from when it is first needed.
    """

    question: ClassVar[str]
    """What it answers."""

    intervals: ClassVar[IntervalMethod | None] = None
    """How far its intervals reach; ``None`` where it has none."""

    card: CardT
    source: FittedT | StoredModel

    @classmethod
    @abstractmethod
    def read(cls, card: CardT, stored: StoredModel) -> FittedT:
        """What was fitted, from its arrays."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """What was fitted as arrays."""

    @cached_property
    def fitted(self) -> FittedT:
        """What was fitted."""
        return self.read(self.card, self.source) if isinstance(self.source, StoredModel) else self.source

    @property
    def folder(self) -> Path | None:
        """Where it is; ``None`` if it was not read from a folder."""
        return self.source.folder if isinstance(self.source, StoredModel) else None

    @property
    def about(self) -> str:
        """What it predicts, in one line, as far as its card says it."""
        return str(self.card.training.get("about", ""))

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder for `crosscast.load_model`; a model that is there is replaced.

        Raises
        ------
        InputError
            If something else is there, or the folder cannot be written.
        """
        write(folder, self.question, self.card.stored(), self.arrays())

    def lines(self) -> list[str]:
        """The kind of model, and how much of what it was trained on."""
        facts = self.card.training
        counts = [
            f"{value:,} {name.replace('_', ' ')}" for name, value in facts.items() if type(value) is int
        ]
        of_intervals = self.intervals and f"{self.intervals.name} intervals, for {self.intervals.promise}"
        return [
            f"model {self.card.model}, trained on {facts.get('dataset', 'what its package says')}",
            ", ".join(counts) or self.about,
            *([of_intervals] if of_intervals else []),
            "predict() asks it; card says all about it",
        ]
