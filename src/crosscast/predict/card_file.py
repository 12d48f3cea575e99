"""The folder of an artefact: a card (JSON) with a checksum beside its arrays, whole, and checked when read.

The card is the artefact: it names the file with the arrays, and is renamed into place when that file is
there. A model that is replaced is there until that moment, and the new one from then on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import crosscast
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.arrays import StoredArrays, write_arrays
from crosscast.predict.required import required_table
from crosscast.predict.stored import State
from crosscast.tables.schema import json_text
from crosscast.tables.whole_file import whole_file

__all__ = [
    "CARD",
    "CONFIGURATION",
    "CORUN",
    "FORMAT",
    "PROTOCOL",
    "RELATIVE",
    "TIME",
    "check_folder",
    "read_card",
    "write_folder",
]

CARD = "card.json"
"""Name of the card's file."""

FORMAT = "crosscast model"

PROTOCOL = 1
"""Version of the format.

It rises when a field or array changes its name, type or meaning, or one is added that a prediction needs.
It stays when a field is added that earlier versions of Crosscast may pass over. A version that rises keeps
a reader for each earlier protocol.
"""

TIME = "time"
"""Target of a model that predicts times on devices; what a card means that names no target."""

CONFIGURATION = "configuration"
"""Target of a model by which configurations are chosen."""

RELATIVE = "relative"
"""Target of a model that predicts times on devices relative to each other."""

CORUN = "corun"
"""Target of a model that predicts applications that share a device."""

_MOST_CARD_BYTES = 16 << 20


def write_folder(folder: Path, card: Mapping[str, Any], arrays: State) -> None:
    """Write an artefact, in the place of the one that is there.

    Parameters
    ----------
    folder
        Where it goes: a new or empty folder, or one with an artefact.
    card
        What its card says besides format, versions, arrays and checksum.
    arrays
        Its arrays by name.

    Raises
    ------
    InputError
        If the folder holds something else or cannot be written; what was there is there still.
    """
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _arrays_file(folder)
        listed = write_arrays(arrays, folder)
        content = {
            "format": FORMAT,
            "protocol": PROTOCOL,
            "made_by": f"crosscast {crosscast.__version__}",
            **card,
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
        return StoredArrays.of(required_table(read_card(folder), "arrays"), folder).path.name
    except InputError:
        return None


def read_card(folder: Path, target: str | None = None) -> Fields:
    """Read a card, if it is whole and of a protocol that is known.

    Parameters
    ----------
    folder
        Folder of the artefact.
    target
        What the model has to predict; anything by default.

    Raises
    ------
    InputError
        If the folder holds no artefact, a damaged one, one of a newer format, or one of another target.
    """
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
    found = Fields(card, str(path))
    _check_target(found.choice("target", tuple(_ASKED_BY), TIME), target, folder)
    return found


_ASKED_BY = {
    TIME: "crosscast predict",
    CONFIGURATION: "crosscast choose",
    RELATIVE: "crosscast predict",
    CORUN: "crosscast corun predict",
}


def _check_target(found: str, wanted: str | None, folder: Path) -> None:
    if wanted not in (None, found):
        raise InputError(
            f"{folder}: expected a model trained with --target {wanted}, found one with --target {found}, "
            f"which is for {_ASKED_BY[found]}"
        )


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
