"""Write files with profiles beside or in place of others, and lose none of those."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from crosscast.characterization.embedding.reading import read_content, read_embedded
from crosscast.data.files import whole_file
from crosscast.errors import InputError

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """Where a file with profiles goes.

    Parameters
    ----------
    path
        Its path.
    before
        What is there, if the file takes the place of itself.
    """

    path: Path
    before: bytes | None = None

    @classmethod
    def new(cls, path: Path) -> Target:
        """A path where nothing is lost.

        Raises
        ------
        InputError
            If its folder does not exist, or something is there other than what was written so and has not
            changed since.
        """
        _expect_replaceable(path)
        return cls(path)

    @classmethod
    def of(cls, original: Path, before: bytes, beside: Path, *, in_place: bool) -> Target:
        """A file itself, or a new one beside it.

        Raises
        ------
        InputError
            As `new` does; and if the new one is the file itself.
        """
        if in_place:
            return cls(original, before)
        if beside.resolve() == original.resolve():
            raise InputError(f"{beside}: expected another file than the original: choose one, or --in-place")
        return cls.new(beside)

    def write(self, content: bytes) -> None:
        """Write the file whole or not at all; a link stays a link, and permissions stay.

        Raises
        ------
        InputError
            If it cannot be written, or is to take the place of itself and has changed meanwhile.
        """
        if self.before is not None and read_content(self.path) != self.before:
            raise InputError(f"{self.path}: expected the file as it was read, found a change: run again")
        path = self.path.resolve()
        try:
            with whole_file(path) as temporary:
                temporary.write_bytes(content)
                if path.exists():
                    shutil.copymode(path, temporary)
        except OSError as error:
            raise InputError(f"{self.path}: cannot write the file ({error.strerror or error})") from error


def _expect_replaceable(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: the folder {path.absolute().parent} does not exist")
    if not path.exists():
        return
    try:
        read_embedded(path)
    except InputError as error:
        raise InputError(
            f"{path}: expected no file, or one as crosscast embed wrote it, found another one: "
            "choose another name with --out, or move it away"
        ) from error
