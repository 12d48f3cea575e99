"""Artefacts of models of times: what `crosscast train` keeps and `crosscast predict` asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.arrays import StoredArrays
from crosscast.predict.card import Card
from crosscast.predict.card_file import CARD, FORMAT, PROTOCOL, TIME, check_folder, read_card, write_folder
from crosscast.predict.gaussian import GaussianPredictor
from crosscast.predict.grid import Profiles
from crosscast.predict.model import Forecast
from crosscast.predict.quantiles import kept_quantiles
from crosscast.predict.required import required_table
from crosscast.predict.state import kept_reals
from crosscast.predict.stored import Part, arrays_of, part_of, stored_name
from crosscast.profile import METRICS

__all__ = ["CARD", "FORMAT", "PROTOCOL", "TrainedModel", "check_folder", "load_model", "save_model"]

_UNSEEN = "unseen"


@dataclass(frozen=True)
class TrainedModel:
    """A model that was read from an artefact.

    Parameters
    ----------
    folder
        Where it is.
    card
        What it was trained on, and how good it was.
    parts
        Kind of each part that has arrays of its own, by the field of `GaussianPredictor` that holds it.
    arrays
        Its arrays, which are read when the first prediction is asked for.
    """

    folder: Path
    card: Card
    parts: Mapping[str, str]
    arrays: StoredArrays

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it was trained on."""
        return self.card.devices

    @cached_property
    def predictor(self) -> GaussianPredictor:
        """What predicts.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        return self.arrays.made_into(lambda arrays: _predictor(self.card.devices, self.parts, arrays))

    def predict(
        self,
        profiles: Profiles,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> Forecast:
        """Predict times; see `crosscast.predict.model.Predictor.predict`."""
        return self.predictor.predict(profiles, devices, probes=probes, level=level)


def save_model(predictor: GaussianPredictor, folder: str | Path, card: Card) -> None:
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
        If the folder holds something else or cannot be written (what was there is there still), or a part
        of the model is of a kind that cannot be kept.
    """
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
