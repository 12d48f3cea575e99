"""Artefacts: a fitted model as a folder with a card (JSON) and arrays, written whole and checked when read.

The card is the artefact: it names the file with the arrays, and is renamed into place when that file is
there. A model that is replaced is there until that moment, and the new one from then on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

import crosscast
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.arrays import StoredArrays, write_arrays
from crosscast.predict.card import Card
from crosscast.predict.gaussian import GaussianPredictor
from crosscast.predict.grid import Profiles, Reals
from crosscast.predict.model import Forecast
from crosscast.predict.quantiles import kept_quantiles
from crosscast.predict.required import required_table
from crosscast.predict.state import kept_reals
from crosscast.predict.stored import Part, part_of, stored_name
from crosscast.profile import METRICS
from crosscast.tables.schema import json_text
from crosscast.tables.whole_file import whole_file

__all__ = ["CARD", "FORMAT", "PROTOCOL", "TrainedModel", "check_folder", "load_model", "save_model"]

CARD = "card.json"
"""Name of the card's file."""

FORMAT = "crosscast model"

PROTOCOL = 1
"""Version of the format.

It rises when a field or array changes its name, type or meaning, or one is added that a prediction needs.
It stays when a field is added that earlier versions of Crosscast may pass over. A version that rises keeps
a reader for each earlier protocol.
"""

_MOST_CARD_BYTES = 16 << 20
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
        where = str(self.arrays.path)
        try:
            return _predictor(self.card.devices, self.parts, self.arrays.read())
        except InputError as error:
            if str(error).startswith(where):
                raise
            raise InputError(f"{where}: {error}") from error

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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _arrays_file(folder)
        listed = write_arrays(arrays, folder)
        content = {
            "format": FORMAT,
            "protocol": PROTOCOL,
            "made_by": f"crosscast {crosscast.__version__}",
            **card.to_dict(),
            "parts": parts,
            "arrays": listed,
        }
        with whole_file(folder / CARD) as temporary:
            text = json.dumps({**content, "sha256": _digest(content)}, indent=1, allow_nan=False)
            temporary.write_text(f"{text}\n", encoding="utf-8")
        if before not in (None, listed["file"]):
            (folder / str(before)).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write the model ({error.strerror or error})") from error


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than an artefact.

    Raises
    ------
    InputError
        If it does, or is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: expected a folder for the model, found a file")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CARD).exists():
        raise InputError(f"{folder}: expected an empty folder, or one with a model, found other files")


def _arrays_file(folder: Path) -> str | None:
    """The arrays' file of the artefact that is there, as far as its card can be read."""
    try:
        return StoredArrays.of(required_table(_read(folder), "arrays"), folder).path.name
    except InputError:
        return None


def load_model(folder: str | Path) -> TrainedModel:
    """Read the card of an artefact and check it; arrays are read when they are needed.

    Raises
    ------
    InputError
        If the folder holds no artefact, a damaged one, or one of a newer format.
    """
    folder = Path(folder)
    card = _read(folder)
    parts = dict(required_table(card, "parts").items())
    if not all(isinstance(kind, str) for kind in parts.values()):
        raise InputError(f"{card.where}: parts: expected a kind for each, found {parts}")
    return TrainedModel(
        folder,
        Card.from_dict(dict(card.items()), card.where),
        parts,
        StoredArrays.of(required_table(card, "arrays"), folder),
    )


def _read(folder: Path) -> Fields:
    """The card, if it is whole and of a protocol that is known."""
    path = folder / CARD
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_CARD_BYTES)
    except FileNotFoundError:
        raise InputError(f"{folder}: expected a folder that crosscast train wrote, found no {CARD}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the card ({error.strerror})") from error
    try:
        card = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: the card is damaged ({error})") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InputError(f"{path}: expected the card of a {FORMAT}, found another JSON value")
    protocol = card.get("protocol")
    if isinstance(protocol, int) and protocol > PROTOCOL:
        raise InputError(
            f"{path}: expected a model of format {PROTOCOL} or older, found format {protocol}: a newer "
            "Crosscast wrote it"
        )
    if protocol != PROTOCOL:
        raise InputError(f"{path}: protocol: expected {PROTOCOL}, found {protocol!r}")
    if not _is_whole(card):
        raise InputError(f"{path}: the card is damaged (its checksum does not match): train the model again")
    return Fields(card, str(path))


def _is_whole(card: dict[str, Any]) -> bool:
    """Whether the checksum is that of the rest; it is taken out."""
    try:
        return bool(card.pop("sha256", None) == _digest(card))
    except ValueError:
        # A number beyond all others, such as 1e999, which Python reads.
        return False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"expected finite numbers, found {constant}")


def _digest(card: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_text(card).encode()).hexdigest()


def _predictor(
    devices: tuple[Device, ...], parts: Mapping[str, str], arrays: Mapping[str, npt.NDArray[Any]]
) -> GaussianPredictor:
    """Make the parts from their arrays, and the predictor of them."""
    if not {"point"} <= set(parts) <= {"point", _UNSEEN}:
        raise InputError(f"model: parts: expected point and what else a model has, found {', '.join(parts)}")
    if any((kind == _UNSEEN) != (name == _UNSEEN) for name, kind in parts.items()):
        raise InputError(f"model: parts: expected each of its own kind, found {dict(parts)}")
    made = {name: part_of(kind, _within(arrays, name)) for name, kind in parts.items()}
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


def _within(arrays: Mapping[str, npt.NDArray[Any]], part: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a part, by their names within it."""
    return {
        name.removeprefix(f"{part}."): array for name, array in arrays.items() if name.startswith(f"{part}.")
    }


_NO_PROFILES = Profiles((), (), (), np.empty((0, len(METRICS))))
