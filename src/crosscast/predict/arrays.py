"""The arrays of an artefact: one file of NumPy's ``.npz`` form, whose contents the card lists with checksums.

Arrays are numbers and texts; nothing is unpickled. They are read when they are asked for.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.required import required_table
from crosscast.predict.stored import State
from crosscast.tables.array_file import DAMAGE, array_header
from crosscast.tables.whole_file import whole_file

__all__ = ["StoredArrays", "write_arrays"]

Made = TypeVar("Made")

_KINDS = "fiuU"
_MOST_BYTES = 1 << 30
"""Size of all arrays together that is read; no model is nearly as large."""

_MOST_HEADER_BYTES = 4096


def write_arrays(arrays: State, folder: Path) -> dict[str, Any]:
    """Write arrays into a new file of a folder, and return what the card says of them.

    The file is named after its contents, so that it takes no other's place.

    Raises
    ------
    OSError
        If it cannot be written.
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
    """Arrays in a file.

    Parameters
    ----------
    path
        The file.
    listed
        What the card says of each, by name.
    """

    path: Path
    listed: Mapping[str, _Listed]

    @classmethod
    def of(cls, fields: Fields, folder: Path) -> StoredArrays:
        """Read what the card says, and check that the file has arrays of these names and sizes.

        Raises
        ------
        InputError
            If the card says something else than a list of arrays, or the file is not there, is damaged, or
            has other arrays.
        """
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
        """Read all arrays and make something of them.

        Parameters
        ----------
        make
            Makes it.

        Raises
        ------
        InputError
            If the file is damaged, or `make` refuses what is in it; the message names the file.
        """
        where = str(self.path)
        try:
            return make(self.read())
        except InputError as error:
            if str(error).startswith(where):
                raise
            raise InputError(f"{where}: {error}") from error

    def read(self) -> dict[str, npt.NDArray[Any]]:
        """Read all arrays.

        Raises
        ------
        InputError
            If one is damaged, or is not what the card says.
        """
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
