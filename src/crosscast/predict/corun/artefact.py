"""The card of a model of co-running: what it was trained on, what it knows, and how good it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.artefact import (
    CORUN,
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
from crosscast.predict.corun.forecast import (
    CoRunForecast,
    CoRunPrediction,
    CoRunPredictor,
    Estimate,
    LeftOut,
    check_profile,
    estimate,
    is_plausible,
)
from crosscast.predict.warnings import listed
from crosscast.tables.corun.solo import Solo


@dataclass(frozen=True)
class CoRunCard:
    """What belongs to a fitted model besides its arrays."""

    model: str  # Name of the model
    seed: int  # Start of the random numbers of its fit
    device: str  # Key of the device that the bags shared
    configuration: str  # Settings of the device, and how it was shared, as JSON
    sizes: tuple[int, ...]  # Members of the bags that it was fitted to, ascending
    applications: tuple[str, ...]  # Names of the applications of these bags
    memory_bytes: int | None  # Memory of the device; `None` where it is not known
    # Data that it was fitted to, for people: where from, how many of what, a hash
    training: Mapping[str, Any]
    # Scores on what was left out; see `crosscast.evaluation.corun.train_corun`
    errors: Mapping[str, Any]
    # Names of these applications with their sizes; `None` for any sizes of them
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
        """Read a card; what it holds besides does not matter."""
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


_MOST_NAMED = 5


def corun_warnings(card: CoRunCard, bag: Sequence[Solo], *, known: bool) -> tuple[str, ...]:
    """What is doubtful of a forecast; sentences without a full stop."""
    return tuple(filter(None, (_size(card, bag), _untimed(bag), _several_new(card, bag, known))))


def _size(card: CoRunCard, bag: Sequence[Solo]) -> str:
    if len(bag) in card.sizes:
        return ""
    sizes = " and ".join(map(str, card.sizes))
    return (
        f"{len(bag)} applications at once, and the model was trained on bags of {sizes}: it is asked beyond "
        "what it was tested on, and its intervals are those of these"
    )


def _untimed(bag: Sequence[Solo]) -> str:
    names = list(dict.fromkeys(solo.name for solo in bag if solo.time_s is None))
    if not names:
        return ""
    return f"no time alone is known of {listed(names, _MOST_NAMED)}, so that no time of the bag is told"


def _several_new(card: CoRunCard, bag: Sequence[Solo], known: bool) -> str:
    new = sorted({solo.application for solo in bag} - set(card.applications))
    if known or len(new) < 2:
        return ""
    return (
        f"{listed(new, _MOST_NAMED)} are all new to the model, and its intervals come from bags with one new "
        "application"
    )


_MODEL, _ERRORS = "model", "errors"

NEW, KNOWN = "new", "known"
"""Errors on bags with an application that was left out, and on bags of applications that were not."""

CoRunErrors = Mapping[str, Mapping[str, LeftOut]]
"""Errors by `NEW` or `KNOWN`, and quantity."""


@dataclass(frozen=True)
class TrainedCoRunModel:
    """A model that was read from an artefact; a `CoRunPredictor` itself."""

    folder: Path  # Where it is
    card: CoRunCard  # What it was trained on, and how good it was
    kind: str  # Kind of the model, by which its class is found
    arrays: StoredArrays  # Its arrays, which are read when the first prediction is asked for

    @cached_property
    def _made(self) -> tuple[CoRunPredictor, CoRunErrors]:
        return self.arrays.made_into(self._make)

    def _make(self, arrays: State) -> tuple[CoRunPredictor, CoRunErrors]:
        kinds = [name for name, place in STORED.items() if ".corun." in place]
        if self.kind not in kinds:
            raise InputError(f"model: kind: expected one of {', '.join(kinds)}, found {self.kind!r}")
        kept = arrays_of(arrays, _ERRORS)
        errors: dict[str, dict[str, LeftOut]] = {}
        for name in sorted({name.rpartition(".")[0] for name in kept}):
            whose, _, quantity = name.partition(".")
            errors.setdefault(whose, {})[quantity] = LeftOut.from_state(arrays_of(kept, name))
        return part_of(self.kind, arrays_of(arrays, _MODEL)), errors

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags, as the model gives them; see `CoRunPredictor.predict`."""
        return self._made[0].predict(bags)

    def forecast(self, bags: Sequence[tuple[Solo, ...]], *, level: float = 0.9) -> list[CoRunForecast]:
        """Predict bags with intervals.

        Intervals reach as far as the model's errors did on bags with an application that it had not seen; if
        all applications of a bag are among those of the training, on bags that it had not seen.
        """
        if not 0 < level < 1:
            raise InputError(f"level: expected a probability between 0 and 1, found {level:g}")
        for bag in bags:
            _check_bag(bag, self.card)
        predicted = self.predict(bags)
        return [self._forecast(bag, predicted, place, level) for place, bag in enumerate(bags)]

    def knows(self, bag: tuple[Solo, ...]) -> bool:
        """Whether all applications of a bag are among those of the training, at the same sizes."""
        if self.card.inputs is not None:
            return {solo.name for solo in bag} <= set(self.card.inputs)
        return {solo.application for solo in bag} <= set(self.card.applications)

    def errors_of(self, *, known: bool) -> Mapping[str, LeftOut]:
        """Errors by quantity that intervals of a bag come from; none where none were kept."""
        both = self._made[1]
        return both.get(KNOWN if known else NEW) or both.get(NEW) or {}

    def _forecast(
        self, bag: tuple[Solo, ...], predicted: CoRunPrediction, place: int, level: float
    ) -> CoRunForecast:
        known = self.knows(bag)
        errors = self.errors_of(known=known)
        slowdown = tuple(
            estimate(value, errors, "slowdown", level) for value in predicted.slowdown[place].tolist()
        )
        times = [solo.time_s for solo in bag if solo.time_s is not None]
        fits = float(predicted.fits[place])
        memory = [solo.memory_bytes for solo in bag if solo.memory_bytes is not None]
        return CoRunForecast(
            bag,
            slowdown,
            estimate(float(predicted.time_s[place]), errors, "time", level)
            or _as_sure_as(slowdown, float(predicted.time_s[place]), level),
            sum(times) if len(times) == len(bag) else None,
            estimate(float(predicted.power_w[place]), errors, "power", level),
            fits if math.isfinite(fits) else None,
            sum(memory) if len(memory) == len(bag) else None,
            level,
            corun_warnings(self.card, bag, known=known),
        )


def _as_sure_as(slowdown: Sequence[Estimate | None], time_s: float, level: float) -> Estimate | None:
    """Time of a bag where none was measured: no less sure than the slowdown that is least so."""
    known = [each for each in slowdown if each is not None]
    if not is_plausible(time_s) or len(known) < len(slowdown):
        return None
    factor = max(each.high / each.value for each in known)
    return Estimate(time_s, time_s / factor, time_s * factor, level)


def save_corun_model(
    predictor: CoRunPredictor, errors: CoRunErrors, folder: str | Path, card: CoRunCard
) -> None:
    """Write an artefact, in the place of the one that is there."""
    kept: Mapping[str, object] = {**card.to_dict(), "kind": stored_name(predictor)}
    arrays = {f"{_MODEL}.{name}": array for name, array in predictor.state().items()}
    for whose, by_quantity in errors.items():
        for quantity, left_out in by_quantity.items():
            for name, array in left_out.state().items():
                arrays[f"{_ERRORS}.{whose}.{quantity}.{name}"] = array
    write_folder(Path(folder), kept, arrays)


def load_corun_model(folder: str | Path) -> TrainedCoRunModel:
    """Read the card of an artefact and check it; arrays are read when they are needed."""
    folder = Path(folder)
    card = read_card(folder, CORUN)
    kind = required_text(card, "kind")
    found = CoRunCard.from_dict(dict(card.items()), card.where)
    return TrainedCoRunModel(folder, found, kind, StoredArrays.of(required_table(card, "arrays"), folder))


def _check_bag(bag: tuple[Solo, ...], card: CoRunCard) -> None:
    if len(bag) < 2:
        raise InputError(f"bag: expected at least 2 applications, found {len(bag)}")
    for solo in bag:
        check_profile(solo, card.device)
