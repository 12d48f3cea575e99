"""Artefacts of models of relative vectors: what `crosscast train` keeps and `crosscast predict` asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.arrays import StoredArrays
from crosscast.predict.card_file import RELATIVE, read_card, write_folder
from crosscast.predict.relative.card import RelativeCard
from crosscast.predict.relative.doubts import check_counters, doubts_of, unknown_counters
from crosscast.predict.relative.forecast import RelativeForecast, forecast_of
from crosscast.predict.relative.held_out import HeldOut
from crosscast.predict.relative.model import RelativePredictor
from crosscast.predict.relative.observations import Observations
from crosscast.predict.required import required_table, required_text
from crosscast.predict.stored import STORED, State, arrays_of, part_of, stored_name

__all__ = ["TrainedRelativeModel", "load_relative_model", "relative_kinds", "save_relative_model"]

_MODEL, _HELD_OUT = "model", "held_out"


def relative_kinds() -> tuple[str, ...]:
    """Names of the kinds of models of relative vectors."""
    return tuple(name for name, place in STORED.items() if ".relative." in place)


@dataclass(frozen=True)
class TrainedRelativeModel:
    """A model that was read from an artefact; a `RelativePredictor` itself.

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
    card: RelativeCard
    kind: str
    arrays: StoredArrays

    @property
    def devices(self) -> tuple[str, ...]:
        """Keys of the ``d`` devices whose times its vectors compare."""
        return self.card.devices

    @property
    def predictor(self) -> RelativePredictor:
        """What predicts vectors.

        Raises
        ------
        InputError
            If an array is missing or damaged, or the model is not of the card's devices.
        """
        return self._made[0]

    @property
    def held_out(self) -> HeldOut:
        """Its errors on groups that were left out.

        Raises
        ------
        InputError
            As `predictor` does.
        """
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
        """Predicted vectors, of shape ``(r, d)``, as the model gives them; see `RelativePredictor.predict`.

        Raises
        ------
        InputError
            If an array is missing or damaged, or the model is not of the card's devices.
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
        """Predict vectors with intervals, and how likely each device is the fastest.

        Parameters
        ----------
        observations
            Runs, ``r`` of them, with any of the counters that the model knows.
        relative_to
            Device that times are to be relative to; the slowest of each run by default.
        level
            Probability that intervals are to hold.

        Returns
        -------
        RelativeForecast
            Its arrays are of shape ``(r, d)``.

        Raises
        ------
        InputError
            If a run has no counter that the model knows, the device is unknown, the level is no probability,
            or an array of the model is missing or damaged.
        """
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
    """Write an artefact, in the place of the one that is there.

    Parameters
    ----------
    predictor
        The fitted model.
    held_out
        Its errors on groups that were left out.
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
    parts = {_MODEL: predictor.state(), _HELD_OUT: held_out.state()}
    arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
    write_folder(Path(folder), kept, arrays)


def load_relative_model(folder: str | Path) -> TrainedRelativeModel:
    """Read the card of an artefact and check it; arrays are read when they are needed.

    Raises
    ------
    InputError
        If the folder holds no artefact, a damaged one, one of a newer format, or one of another target.
    """
    folder = Path(folder)
    card = read_card(folder, RELATIVE)
    kind = required_text(card, "kind")
    found = RelativeCard.from_dict(dict(card.items()), card.where)
    return TrainedRelativeModel(folder, found, kind, StoredArrays.of(required_table(card, "arrays"), folder))
