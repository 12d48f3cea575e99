"""Files for those who run a site: hooks of Slurm, units of systemd, a dashboard of Grafana."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosscast.data.files import made, whole_file
from crosscast.errors import InputError

_FILES = Path(__file__).parent / "files"
_PLACE = b"@DIR@"
_SAFE = re.compile(r"/[\w./+-]*")
"""Folders whose names need no quotes, in whatever language they are written."""

Kind = Literal["slurm", "systemd", "grafana"]


@dataclass(frozen=True)
class Installed:
    """A file, and whether it was written: one that is the site's own is left as it is."""

    path: Path
    state: Literal["written", "already there", "yours differs, and stays"]


def install(kind: Kind, folder: Path) -> list[Installed]:
    """Write the files of a kind into a folder.

    The code in ``crosscast/`` is replaced; its configuration, and what is beside it, never.

    Raises
    ------
    InputError
        If the folder cannot be written, or has a name that scripts would have to quote.
    """
    folder = folder.absolute()
    if not _SAFE.fullmatch(str(folder)):
        raise InputError.of(
            field="dir", expected="a path of letters, digits and ._+-/", found=repr(str(folder))
        )
    return list(_installed(_FILES / kind, folder))


def _installed(source: Path, folder: Path) -> Iterator[Installed]:
    for path in sorted(each for each in source.rglob("*") if each.is_file()):
        content = path.read_bytes().replace(_PLACE, str(folder).encode())
        place = folder / path.relative_to(source)
        is_code = place.parent != folder and path.name not in _OF_THE_SITE
        there = place.read_bytes() if place.is_file() else None
        if there == content:
            yield Installed(place, "already there")
        elif there is not None and not is_code:
            yield Installed(place, "yours differs, and stays")
        else:
            made(place.parent, "dir")
            try:
                with whole_file(place) as temporary:
                    temporary.write_bytes(content)
                    temporary.chmod(0o755 if path.suffix == ".sh" else 0o644)
            except OSError as error:
                raise InputError(f"dir: cannot write {place} ({error.strerror or error})") from error
            yield Installed(place, "written")


_OF_THE_SITE = ("config.lua", "caps.conf")
