"""Fields of a card that have to be there; what is wrong with one that is there, `Fields` says itself."""

from __future__ import annotations

import hashlib
import importlib
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

import crosscast
from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.tables.array_file import DAMAGE, array_header
from crosscast.tables.schema import json_text
from crosscast.tables.whole_file import whole_file

_Value = TypeVar("_Value")


def required_table(fields: Fields, name: str) -> Fields:
    """An object."""
    return _there(fields.table(name), fields, name, "an object")


def required_text(fields: Fields, name: str) -> str:
    """A text, not empty."""
    return _there(fields.text(name), fields, name, "a text")


def required_count(fields: Fields, name: str) -> int:
    """A whole number of at least 0."""
    return _there(fields.integer(name, 0), fields, name, "a whole number")


def required_number(fields: Fields, name: str) -> float:
    """A finite number."""
    return float(_there(fields.number(name), fields, name, "a number"))


def _there(value: _Value | None, fields: Fields, name: str, expected: str) -> _Value:
    if value is None:
        raise InputError(f"{fields.where}: {name} is missing, expected {expected}")
    return value


def kept_reals(state: Mapping[str, npt.NDArray[Any]], name: str, axes: int) -> Reals:
    """Read an array of finite numbers in double precision."""
    array = _array(state, name, axes, "f", "numbers")
    if not np.isfinite(array).all():
        raise InputError(f"model: {name}: expected finite numbers, found others")
    return array.astype(np.float64)


def kept_integers(
    state: Mapping[str, npt.NDArray[Any]], name: str, axes: int, limits: tuple[int, int]
) -> Integers:
    """Read an array of integers from the first of two limits to below the second."""
    array = _array(state, name, axes, "iu", "integers")
    low, high = limits
    if array.size and not (low <= array.min() and array.max() < high):
        raise InputError(
            f"model: {name}: expected integers from {low} to {high - 1}, found {array.min()} to {array.max()}"
        )
    return array.astype(np.int64)


def kept_names(state: Mapping[str, npt.NDArray[Any]], name: str) -> tuple[str, ...]:
    """Read an array of texts with one axis."""
    return tuple(str(text) for text in _array(state, name, 1, "U", "texts"))


def _array(
    state: Mapping[str, npt.NDArray[Any]], name: str, axes: int, kinds: str, what: str
) -> npt.NDArray[Any]:
    if name not in state:
        raise InputError(f"model: expected an array {name!r}, found {', '.join(sorted(state)) or 'none'}")
    array = state[name]
    if array.ndim != axes or array.dtype.kind not in kinds:
        raise InputError(
            f"model: {name}: expected {what} along {axes} {'axis' if axes == 1 else 'axes'}, "
            f"found {array.dtype} of shape {array.shape}"
        )
    return array


State = Mapping[str, npt.NDArray[Any]]
"""Arrays of a part by name."""


@runtime_checkable
class Part(Protocol):
    """A fitted part of a model; its class has ``from_state``, which makes it again."""

    def state(self) -> State:
        """Arrays from which ``from_state`` makes it again."""
        ...


STORED: Mapping[str, str] = {
    "relative-blend": "crosscast.predict.relative.blend:BlendPredictor",
    "relative-by-times": "crosscast.predict.relative.models:ByTimesPredictor",
    "relative-extra-trees": "crosscast.predict.relative.models:ExtraTreesPredictor",
    "relative-linear": "crosscast.predict.relative.nichols2024:LinearPredictor",
    "relative-trees": "crosscast.predict.relative.nichols2024:TreesPredictor",
    "relative-vector": "crosscast.predict.relative.nichols2024:FittedVector",
}
"""Where the class of each name is. A name that artefacts have been written with stays."""

_NAMES = {place: name for name, place in STORED.items()}


def stored_name(part: Part) -> str:
    """Name of a part's class."""
    kind = type(part)
    place = f"{kind.__module__}:{kind.__qualname__}"
    if place not in _NAMES:
        raise InputError(f"model: expected a part of a kind that can be kept, found {place}")
    return _NAMES[place]


def part_of(name: str, state: State) -> Any:
    """Make a part from its arrays; its module is imported now."""
    if name not in STORED:
        raise InputError(f"model: expected a part of one of the kinds {', '.join(STORED)}, found {name!r}")
    module, _, attribute = STORED[name].partition(":")
    return getattr(importlib.import_module(module), attribute).from_state(state)


def arrays_of(state: State, part: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a part, by their names within it.

    >>> import numpy as np
    >>> arrays_of({"model.level": np.zeros(1), "held_out.group": np.ones(2)}, "held_out")
    {'group': array([1., 1.])}
    """
    return {
        name.removeprefix(f"{part}."): array for name, array in state.items() if name.startswith(f"{part}.")
    }


Made = TypeVar("Made")

_KINDS = "fiuU"
_MOST_BYTES = 1 << 30
"""Size of all arrays together that is read; no model is nearly as large."""

_MOST_HEADER_BYTES = 4096


def write_arrays(arrays: State, folder: Path) -> dict[str, Any]:
    """Write arrays into a new file of a folder, and return what the card says of them.

    The file is named after its contents, so that it takes no other's place.
    """
    listed: dict[str, dict[str, Any]] = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": _digest(array)}
        for name, array in arrays.items()
    }
    whole = hashlib.sha256("".join(each["sha256"] for each in listed.values()).encode()).hexdigest()
    path = folder / f"arrays-{whole[:16]}.npz"
    with whole_file(path) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)
    return {"file": path.name, "contents": listed}


def _digest(array: npt.NDArray[Any]) -> str:
    """Hash of type, shape and values."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class _Listed:
    """What the card says of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    sha256: str

    @property
    def nbytes(self) -> int:
        """Size of its values."""
        return self.dtype.itemsize * prod(self.shape)


@dataclass(frozen=True)
class StoredArrays:
    """Arrays in a file."""

    path: Path  # The file
    listed: Mapping[str, _Listed]  # What the card says of each, by name

    @classmethod
    def of(cls, fields: Fields, folder: Path) -> StoredArrays:
        """Read what the card says, and check that the file has arrays of these names and sizes."""
        name = fields.text("file")
        if name is None or Path(name).name != name:
            raise InputError(f"{fields.where}: file: expected the name of a file beside it, found {name!r}")
        contents = required_table(fields, "contents")
        listed = {key: _listed(contents, key) for key, _ in contents.items()}
        found = cls(folder / name, listed)
        if sum(each.nbytes for each in listed.values()) > _MOST_BYTES:
            raise InputError(
                f"{fields.where}: expected arrays of at most {_MOST_BYTES >> 20} MiB, found more"
            )
        found._check_sizes()
        return found

    def _check_sizes(self) -> None:
        with _opened(self.path) as file:
            sizes = {info.filename.removesuffix(".npy"): info.file_size for info in file.infolist()}
        for name, each in self.listed.items():
            if name not in sizes:
                raise InputError(f"{self.path}: expected an array {name!r} as its card says, found none")
            if not 0 < sizes[name] - each.nbytes <= _MOST_HEADER_BYTES:
                raise InputError(
                    f"{self.path}: array {name}: expected {each.nbytes} bytes and a header as its card says, "
                    f"found {sizes[name]}"
                )

    def made_into(self, make: Callable[[State], Made]) -> Made:
        """Read all arrays and make something of them."""
        where = str(self.path)
        try:
            return make(self.read())
        except InputError as error:
            if str(error).startswith(where):
                raise
            raise InputError(f"{where}: {error}") from error

    def read(self) -> dict[str, npt.NDArray[Any]]:
        """Read all arrays."""
        with _opened(self.path) as file:
            return {name: self._read(file, name, each) for name, each in self.listed.items()}

    def _read(self, file: zipfile.ZipFile, name: str, listed: _Listed) -> npt.NDArray[Any]:
        try:
            # First the header alone: memory is taken for what it says.
            with file.open(f"{name}.npy") as member:
                _check_header(member, listed)
            with file.open(f"{name}.npy") as member:
                array: npt.NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        except DAMAGE as error:
            raise InputError(f"{self.path}: array {name} is damaged ({error})") from error
        if _digest(array) != listed.sha256:
            raise InputError(f"{self.path}: array {name} is damaged (its checksum is not the card's)")
        return array


def _check_header(member: IO[bytes], listed: _Listed) -> None:
    shape, dtype = array_header(member)
    if (shape, dtype) != (listed.shape, listed.dtype):
        raise ValueError(f"it is of type {dtype} and shape {shape}, and not as the card says")


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise InputError(f"{path}: expected the arrays of the model, found no such file") from error
    except DAMAGE as error:
        raise InputError(f"{path}: cannot read the arrays of the model ({error})") from error


def _listed(contents: Fields, name: str) -> _Listed:
    fields = required_table(contents, name)
    shape = fields.take("shape")
    if not isinstance(shape, list) or not all(isinstance(each, int) and each >= 0 for each in shape):
        raise InputError(f"{fields.where}: shape: expected a list of whole numbers, found {shape!r}")
    text = fields.text("dtype") or ""
    try:
        dtype = np.dtype(text)
    except (TypeError, ValueError, SyntaxError):
        dtype = np.dtype(object)
    if dtype.kind not in _KINDS:
        raise InputError(f"{fields.where}: dtype: expected that of numbers or texts, found {text!r}")
    return _Listed(dtype, tuple(shape), fields.text("sha256") or "")


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
    """Write an artefact, in the place of the one that is there."""
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
            text = json.dumps({**content, "sha256": _card_file_digest(content)}, indent=1, allow_nan=False)
            temporary.write_text(f"{text}\n", encoding="utf-8")
        if before not in (None, listed["file"]):
            (folder / str(before)).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write the model ({error.strerror or error})") from error


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than an artefact."""
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
    """Read a card, if it is whole and of a protocol that is known."""
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
    CORUN: "crosscast predict corun",
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
        return bool(card.pop("sha256", None) == _card_file_digest(card))
    except ValueError:
        # A number beyond all others, such as 1e999, which Python reads.
        return False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"expected finite numbers, found {constant}")


def _card_file_digest(card: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_text(card).encode()).hexdigest()
