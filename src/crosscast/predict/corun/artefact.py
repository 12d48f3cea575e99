"""Artefacts of models of co-running: what `crosscast train` keeps, and `crosscast corun` asks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crosscast.errors import InputError
from crosscast.predict.arrays import StoredArrays
from crosscast.predict.card_file import CORUN, read_card, write_folder
from crosscast.predict.corun.asked import check_asked
from crosscast.predict.corun.card import CoRunCard
from crosscast.predict.corun.doubts import doubts_of
from crosscast.predict.corun.forecast import CoRunForecast, Ranged, is_told, ranged
from crosscast.predict.corun.left_out import LeftOut
from crosscast.predict.corun.model import CoRunPredictor
from crosscast.predict.corun.prediction import CoRunPrediction
from crosscast.predict.required import required_table, required_text
from crosscast.predict.stored import STORED, State, arrays_of, part_of, stored_name
from crosscast.tables.corun.solo import Solo

__all__ = ["KNOWN", "NEW", "CoRunErrors", "TrainedCoRunModel", "load_corun_model", "save_corun_model"]

_MODEL, _ERRORS = "model", "errors"

NEW, KNOWN = "new", "known"
"""Errors on bags with an application that was left out, and on bags of applications that were not."""

CoRunErrors = Mapping[str, Mapping[str, LeftOut]]
"""Errors by `NEW` or `KNOWN`, and quantity."""


@dataclass(frozen=True)
class TrainedCoRunModel:
    """A model that was read from an artefact; a `CoRunPredictor` itself.

    Parameters
    ----------
    folder
        Where it is.
    card
        What it was trained on, and how good it was.
    kind
        Kind of the model, by which its class is found.
    arrays
        Its arrays, which are read when the first prediction is asked for.
    """

    folder: Path
    card: CoRunCard
    kind: str
    arrays: StoredArrays

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
        """Predict bags, as the model gives them; see `CoRunPredictor.predict`.

        Raises
        ------
        InputError
            If an array is missing or damaged, or a bag is of a size that the model cannot predict.
        """
        return self._made[0].predict(bags)

    def forecast(self, bags: Sequence[tuple[Solo, ...]], *, level: float = 0.9) -> list[CoRunForecast]:
        """Predict bags with intervals.

        Intervals reach as far as the model's errors did on bags with an application that it had not seen; if
        all applications of a bag are among those of the training, on bags that it had not seen.

        Parameters
        ----------
        bags
            Applications alone on the model's device.
        level
            Probability that intervals are to hold.

        Raises
        ------
        InputError
            If a bag has fewer than two members, or one of another device or with a time that nothing takes,
            the level is no probability, an array of the model is missing or damaged, or a bag is of a size
            that it cannot predict.
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
        """Errors by quantity that intervals of a bag come from; none where none were kept.

        Parameters
        ----------
        known
            Whether all its applications are among those of the training; see `knows`.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        both = self._made[1]
        return both.get(KNOWN if known else NEW) or both.get(NEW) or {}

    def _forecast(
        self, bag: tuple[Solo, ...], predicted: CoRunPrediction, place: int, level: float
    ) -> CoRunForecast:
        known = self.knows(bag)
        errors = self.errors_of(known=known)
        slowdown = tuple(
            ranged(value, errors, "slowdown", level) for value in predicted.slowdown[place].tolist()
        )
        times = [solo.time_s for solo in bag if solo.time_s is not None]
        fits = float(predicted.fits[place])
        memory = [solo.memory_bytes for solo in bag if solo.memory_bytes is not None]
        return CoRunForecast(
            bag,
            slowdown,
            ranged(float(predicted.time_s[place]), errors, "time", level)
            or _as_sure_as(slowdown, float(predicted.time_s[place]), level),
            sum(times) if len(times) == len(bag) else None,
            ranged(float(predicted.power_w[place]), errors, "power", level),
            fits if math.isfinite(fits) else None,
            sum(memory) if len(memory) == len(bag) else None,
            level,
            doubts_of(self.card, bag, known=known),
        )


def _as_sure_as(slowdown: Sequence[Ranged | None], time_s: float, level: float) -> Ranged | None:
    """Time of a bag where none was measured: no less sure than the slowdown that is least so."""
    known = [each for each in slowdown if each is not None]
    if not is_told(time_s) or len(known) < len(slowdown):
        return None
    factor = max(each.high / each.value for each in known)
    return Ranged(time_s, time_s / factor, time_s * factor, level)


def save_corun_model(
    predictor: CoRunPredictor, errors: CoRunErrors, folder: str | Path, card: CoRunCard
) -> None:
    """Write an artefact, in the place of the one that is there.

    Parameters
    ----------
    predictor
        The fitted model.
    errors
        Its errors on what was left out.
    folder
        Where it goes: a new or empty folder, or one with an artefact.
    card
        What belongs to it.

    Raises
    ------
    InputError
        If the folder holds something else or cannot be written (what was there is there still), or the model
        is of a kind that cannot be kept.
    """
    kept: Mapping[str, object] = {**card.to_dict(), "kind": stored_name(predictor)}
    arrays = {f"{_MODEL}.{name}": array for name, array in predictor.state().items()}
    for whose, by_quantity in errors.items():
        for quantity, left_out in by_quantity.items():
            for name, array in left_out.state().items():
                arrays[f"{_ERRORS}.{whose}.{quantity}.{name}"] = array
    write_folder(Path(folder), kept, arrays)


def load_corun_model(folder: str | Path) -> TrainedCoRunModel:
    """Read the card of an artefact and check it; arrays are read when they are needed.

    Raises
    ------
    InputError
        If the folder holds no artefact, a damaged one, one of a newer format, or one of another target.
    """
    folder = Path(folder)
    card = read_card(folder, CORUN)
    kind = required_text(card, "kind")
    found = CoRunCard.from_dict(dict(card.items()), card.where)
    return TrainedCoRunModel(folder, found, kind, StoredArrays.of(required_table(card, "arrays"), folder))


def _check_bag(bag: tuple[Solo, ...], card: CoRunCard) -> None:
    if len(bag) < 2:
        raise InputError(f"bag: expected at least 2 applications, found {len(bag)}")
    for solo in bag:
        check_asked(solo, card.device)
