"""Files for those who run a site: hooks of Slurm, units of systemd, a dashboard of Grafana."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosscast.data.files import atomic_file, make_folder
from crosscast.errors import InputError

_FILES = Path(__file__).parent / "files"
_SAFE = re.compile(r"/[\w./+-]*")
"""Folders whose names need no quotes, in whatever language they are written."""
_HOMES = ("/home/", "/root/", "/run/user/")
"""What `ProtectHome` of systemd hides."""
_OF_THE_SITE = ("config.lua", "caps.conf")

Kind = Literal["slurm", "systemd", "grafana"]
State = Literal["new", "same", "newer", "yours"]


@dataclass(frozen=True)
class HookFile:
    """A file as it would be written, and what is there."""

    path: Path  # Where it is written
    content: bytes
    # Nothing is there; the same is; other code of ours is, which is replaced; the site's own is, which stays
    state: State

    def write(self) -> None:
        """Write it.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        make_folder(self.path.parent, "dir")
        try:
            with atomic_file(self.path) as temporary:
                temporary.write_bytes(self.content)
                temporary.chmod(0o755 if self.path.suffix == ".sh" else 0o644)
        except OSError as error:
            raise InputError.of(
                field="dir", problem=f"cannot write {self.path} ({error.strerror or error})"
            ) from error

    def remove(self) -> None:
        """Remove it, and its folder in ours if nothing is left in that.

        Raises
        ------
        InputError
            If it cannot be removed.
        """
        try:
            self.path.unlink()
        except OSError as error:
            raise InputError.of(
                field="dir", problem=f"cannot remove {self.path} ({error.strerror or error})"
            ) from error
        if self.path.parent.name == "crosscast":
            with suppress(OSError):  # something is left in it
                self.path.parent.rmdir()


def files(kind: Kind, folder: Path, prefix: Path | None = None) -> list[HookFile]:
    """The files of a kind for a folder, in the order of their names.

    With a prefix they are put below it, as packages are made, and say what they say for the folder itself.

    Raises
    ------
    InputError
        If the folder has a name that scripts would have to quote, or a file cannot be read.
    """
    folder = folder.absolute()
    if not _SAFE.fullmatch(str(folder)):
        raise InputError.of(
            field="dir", expected="a path of letters, digits and ._+-/", found=repr(str(folder))
        )
    root = folder if prefix is None else prefix.absolute() / folder.relative_to("/")
    return list(_files(_FILES / kind, folder, root))


def _files(source: Path, folder: Path, root: Path) -> Iterator[HookFile]:
    program = _program()
    home = "read-only" if program.startswith(_HOMES) else "yes"
    values = {b"@DIR@": str(folder), b"@PROGRAM@": _quoted(program), b"@HOME@": home}
    for path in sorted(each for each in source.rglob("*") if each.is_file()):
        content = path.read_bytes()
        for mark, value in values.items():
            content = content.replace(mark, value.encode())
        place = root / path.relative_to(source)
        is_code = place.parent != root and path.name not in _OF_THE_SITE
        try:
            there = place.read_bytes() if place.is_file() else None
        except OSError as error:
            raise InputError.of(
                field="dir", problem=f"cannot read {place} ({error.strerror or error})"
            ) from error
        state: State = "newer" if is_code else "yours"
        if there is None or there == content:
            state = "new" if there is None else "same"
        yield HookFile(place, content, state)


def _program() -> str:
    """The program of this installation, which may be a virtual environment."""
    beside = Path(sys.executable).parent / "crosscast"
    return str(beside) if beside.is_file() else shutil.which("crosscast") or "/usr/bin/env crosscast"


def _quoted(program: str) -> str:
    """A path as systemd reads it."""
    if program.startswith("/usr/bin/env ") or _SAFE.fullmatch(program):
        return program
    text = program.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"'
