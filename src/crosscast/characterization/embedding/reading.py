"""Read profiles back from a source or a module; nothing is compiled or run."""

from __future__ import annotations

from pathlib import Path

from crosscast.characterization.embedding import source, spirv
from crosscast.characterization.embedding.module import is_module
from crosscast.characterization.embedding.payload import digest
from crosscast.errors import InputError
from crosscast.profile import Profile

__all__ = ["has_embedded", "read_content", "read_embedded"]

_MOST_BYTES = 64 << 20
"""Size of a file that is read; no kernel is nearly as large."""


def has_embedded(path: str | Path) -> bool:
    """Whether a source or a SPIR-V module holds profiles, in whatever state.

    Raises
    ------
    InputError
        If it cannot be read, or is not a whole module.
    """
    path = Path(path)
    content = read_content(path)
    if _is_module(path, content):
        return spirv.holds(content, str(path))
    return source.holds(content)


def read_embedded(path: str | Path) -> tuple[Profile, ...]:
    """Read the profiles that a source (OpenCL C) or a SPIR-V module holds.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    tuple of Profile
        One or more, in the order in which they were embedded; without times and printed text.

    Raises
    ------
    InputError
        If it cannot be read or is larger than 64 MiB; if it holds no profiles; if they are damaged or of a
        newer version; if the source or module is not the one they were embedded in.
    """
    path = Path(path)
    content = read_content(path)
    module = _is_module(path, content)
    bare, payload = spirv.take_out(content, str(path)) if module else source.take_out(content, str(path))
    if payload is None:
        raise InputError(f"{path}: expected a profile that crosscast embed wrote into it, found none")
    if digest(bare) != payload.sha256:
        raise InputError(
            f"{path}: the {'module' if module else 'source'} has changed since its profile was embedded "
            "(another SHA-256): run crosscast embed again"
        )
    return payload.profiles


def read_content(path: Path) -> bytes:
    """Read a file of a size that a kernel may have.

    Raises
    ------
    InputError
        If it cannot be read, or is larger.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror})") from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: expected a file of at most {_MOST_BYTES >> 20} MiB, found a larger one")
    return content


def _is_module(path: Path, content: bytes) -> bool:
    return path.suffix == ".spv" or is_module(content)
