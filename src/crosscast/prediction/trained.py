"""A trained model of any question: its card, its folder, and its fitted part, read when first needed.

All questions share fits with one thread of the numerical libraries, distances, and the warnings of forecasts.
"""

from __future__ import annotations

import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

import msgspec
import numpy as np

from crosscast.arrays import Arrays, Reals
from crosscast.data.fields import Section, decode
from crosscast.errors import InputError, importing
from crosscast.prediction.intervals import IntervalMethod
from crosscast.prediction.store import StoredModel, write
from crosscast.profile import Profile, doubts
from crosscast.results import Brief

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class UnsuitedError(InputError):
    """The input is not for this model, and may be for another: other columns, devices or counters."""


def single_threaded(purpose: str = "fitting a model") -> AbstractContextManager[object]:
    """Limit the numerical libraries that are loaded to one thread each; errors name the `purpose`.

    Synchronizing threads takes longer than small matrices, and the order of sums changes last digits.
    """
    with importing("train", purpose):
        controller = _controller(len(sys.modules))
    limits: AbstractContextManager[object] = controller.limit(limits=1)
    return limits


@functools.lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Find the libraries that so many modules have loaded; each fit would take milliseconds to find them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def squared_distances(ones: Reals, others: Reals) -> Reals:
    """Squared distances ``(n, m)`` of rows ``(n, d)`` from rows ``(m, d)``."""
    squares = (ones**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * ones @ others.T
    distances: Reals = np.maximum(squares, 0.0)
    return distances


class Card(Protocol):
    """Description of a fitted model, stored beside its arrays; each question adds fields."""

    @property
    def model(self) -> str:
        """Name of the model."""

    @property
    def training(self) -> Mapping[str, object]:
        """For people: sources of the training data, its counts, a hash."""

    @property
    def errors(self) -> Mapping[str, object]:
        """Errors on held-out data."""

    def stored(self) -> dict[str, object]:
        """The card as it is stored."""

    def to_dict(self) -> dict[str, object]:
        """The card as ``--json`` prints it."""


class StructCard(msgspec.Struct, frozen=True):
    """A card with stored fields."""

    def stored(self) -> dict[str, object]:
        """The fields as a JSON object."""
        fields: dict[str, object] = msgspec.to_builtins(self)
        return fields

    def to_dict(self) -> dict[str, object]:
        """The fields, for ``--json``."""
        return self.stored()


def results_of(card: Card, kind: type[Section]) -> list[tuple[Section, object]]:
    """Scores of each model on held-out data, and the JSON they are from; empty if the card has none."""
    results = card.errors.get("results")
    listed = results if isinstance(results, list | tuple) else ()
    return [(decode(kind, result, "errors.results"), result) for result in listed]


def number_in(facts: Mapping[str, object], name: str) -> float | None:
    """A number of a card's facts; ``None`` if there is none."""
    value = facts.get(name)
    return value if isinstance(value, int | float) else None


def count_in(facts: Mapping[str, object], name: str) -> int:
    """A count of a card's facts; 0 if there is none."""
    return int(number_in(facts, name) or 0)


def level_of(card: Card) -> float:
    """The level of the intervals whose coverage was measured."""
    return number_in(card.errors, "level") or 0.9


def model_facts(card: Card) -> dict[str, object]:
    """Facts of the model for every answer."""
    return {"name": card.model, "training": dict(card.training)}


def forecasts_answer(noun: str, forecasts: Sequence[Mapping[str, object]], card: Card) -> dict[str, object]:
    """One JSON object with all forecasts; a single forecast's members are also at the top."""
    single = forecasts[0] if len(forecasts) == 1 else {}
    return {**single, noun: forecasts, "model": model_facts(card)}


CardT = TypeVar("CardT", bound=Card)
FittedT = TypeVar("FittedT")


@dataclass(frozen=True, eq=False)
class Trained(Brief, ABC, Generic[CardT, FittedT]):
    """A model that was trained or read; `crosscast.load_model` opens one.

    Parameters
    ----------
    card
        Training data and errors.
    source
        The fitted part, or the folder from which it is read when first needed.
    """

    question: ClassVar[str]
    """The question that it answers."""

    intervals: ClassVar[IntervalMethod | None] = None
    """How intervals are made; ``None`` if it has none."""

    card: CardT
    source: FittedT | StoredModel

    @classmethod
    @abstractmethod
    def read(cls, card: CardT, stored: StoredModel) -> FittedT:
        """Read the fitted part from its arrays."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The fitted part as arrays."""

    @cached_property
    def fitted(self) -> FittedT:
        """The fitted part."""
        return self.read(self.card, self.source) if isinstance(self.source, StoredModel) else self.source

    @property
    def folder(self) -> Path | None:
        """Folder of the model; ``None`` if it was not read from one."""
        return self.source.folder if isinstance(self.source, StoredModel) else None

    @property
    def about(self) -> str:
        """One line on what the model predicts; empty if its card has none."""
        return str(self.card.training.get("about", ""))

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Titles and texts that show people how it decides; empty if it has none."""
        return ()

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder for `crosscast.load_model`; an existing model is replaced.

        Raises
        ------
        InputError
            If the folder has other files, or cannot be written.
        """
        write(folder, self.question, self.card.stored(), self.arrays())

    def lines(self) -> list[str]:
        """The kind of model, and counts of its training data."""
        facts = self.card.training
        numbers = {name.replace("_", " "): value for name, value in facts.items() if type(value) is int}
        of_intervals = self.intervals and f"{self.intervals.name} intervals, for {self.intervals.promise}"
        return [
            f"model {self.card.model}, trained on {facts.get('dataset', 'what its package says')}",
            ", ".join(f"{value:,} {name}" for name, value in numbers.items()) or self.about,
            *([of_intervals] if of_intervals else []),
            "predict() asks it; card says all about it",
        ]


_MOST_NAMED = 5


def format_names(names: Sequence[str], most: int) -> str:
    """The first names separated by commas, and the number of the others.

    >>> format_names(["a", "b"], 2), format_names(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b and 2 more')
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def of_counts(launches: Iterable[Profile]) -> list[str]:
    """Warnings of a kernel's launches whose counts are doubtful."""
    return list(dict.fromkeys(sentence for each in launches for sentence in doubts(each.launch)))


def outside_training(features: Iterable[tuple[str, float, float, float]]) -> list[str]:
    """A warning of features (name, value, least and greatest value of the training) that are out of range.

    The farthest comes first.

    >>> outside_training([("opcodes", 99, 6, 15), ("work-items", 64, 1, 1024), ("barriers", 9e6, 0, 1e3)])
    ['outside of what the model was trained on in: barriers 9e+06 (0 to 1000), opcodes 99 (6 to 15)']
    """
    beyond = [
        (_beyond(value, low, high), f"{name} {value:.4g} ({low:.4g} to {high:.4g})")
        for name, value, low, high in features
        if value < low or value > high
    ]
    beyond.sort(key=lambda each: -each[0])
    listed = format_names([text for _, text in beyond], _MOST_NAMED)
    return [f"outside of what the model was trained on in: {listed}"] if beyond else []


def _beyond(value: float, low: float, high: float) -> float:
    """Distance of a value from the range, in widths of it; large for a range of a single value."""
    return max(low - value, value - high) / ((high - low) or abs(high) or 1.0)
