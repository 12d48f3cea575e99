"""Artefacts of models of configurations: what `crosscast train` keeps and `crosscast choose` asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crosscast.errors import InputError
from crosscast.predict.arrays import StoredArrays
from crosscast.predict.card_file import CONFIGURATION, read_card, write_folder
from crosscast.predict.configuration.configuration_card import ConfigurationCard
from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.model import ConfigurationPredictor
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed
from crosscast.predict.required import required_table, required_text
from crosscast.predict.stored import STORED, Part, State, part_of, stored_name

__all__ = [
    "CONFIGURATION_KINDS",
    "TrainedConfigurationModel",
    "load_configuration_model",
    "save_configuration_model",
]

CONFIGURATION_KINDS = tuple(name for name, place in STORED.items() if ".configuration." in place)
"""Names of the kinds of models of configurations."""


@dataclass(frozen=True)
class TrainedConfigurationModel:
    """A model that was read from an artefact; a `ConfigurationPredictor` itself.

    Parameters
    ----------
    folder
        Where it is.
    card
        What it was trained on, and how good it was.
    kind
        Kind of the model, by which its class is found.
    arrays
        Its arrays, which are read when the first forecast is asked for.
    """

    folder: Path
    card: ConfigurationCard
    kind: str
    arrays: StoredArrays

    @property
    def space(self) -> Space:
        """The configurations that it predicts."""
        return self.card.space

    @property
    def samples(self) -> tuple[int, ...]:
        """Where a new kernel is run first."""
        return self.card.samples

    @cached_property
    def predictor(self) -> ConfigurationPredictor:
        """What predicts.

        Raises
        ------
        InputError
            If an array is missing or damaged, or the model is not of the card's configurations.
        """
        return self.arrays.made_into(self._made)

    def _made(self, arrays: State) -> ConfigurationPredictor:
        if self.kind not in CONFIGURATION_KINDS:
            raise InputError(
                f"model: kind: expected one of {', '.join(CONFIGURATION_KINDS)}, found {self.kind!r}"
            )
        found: ConfigurationPredictor = part_of(self.kind, arrays)
        if found.space != self.space or tuple(found.samples) != self.samples:
            raise InputError(
                f"model: expected the {len(self.space)} configurations and samples of its card, found others"
            )
        return found

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict one kernel everywhere; see `ConfigurationPredictor.forecast`."""
        return self.predictor.forecast(observed)


def save_configuration_model(
    predictor: ConfigurationPredictor, folder: str | Path, card: ConfigurationCard
) -> None:
    """Write an artefact, in the place of the one that is there.

    Parameters
    ----------
    predictor
        The fitted model.
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
    if not isinstance(predictor, Part):
        raise InputError(
            f"model: expected one that can be kept ({', '.join(CONFIGURATION_KINDS)}), found {card.model}"
        )
    kept: Mapping[str, object] = {**card.to_dict(), "kind": stored_name(predictor)}
    write_folder(Path(folder), kept, predictor.state())


def load_configuration_model(folder: str | Path) -> TrainedConfigurationModel:
    """Read the card of an artefact and check it; arrays are read when they are needed.

    Raises
    ------
    InputError
        If the folder holds no artefact, a damaged one, one of a newer format, or one of another target.
    """
    folder = Path(folder)
    card = read_card(folder, CONFIGURATION)
    kind = required_text(card, "kind")
    found = ConfigurationCard.from_dict(dict(card.items()), card.where)
    return TrainedConfigurationModel(
        folder, found, kind, StoredArrays.of(required_table(card, "arrays"), folder)
    )
