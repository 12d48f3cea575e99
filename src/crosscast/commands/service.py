"""``crosscast serve``, the prediction service, and ``hooks``, files for schedulers and operators."""

from __future__ import annotations

import logging
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import crosscast
from crosscast.cli.cluster import Install, Remove, Serve
from crosscast.data.files import atomic_file, make_folder
from crosscast.errors import InputError, importing


def serve(options: Serve) -> None:
    """Run ``crosscast serve``."""
    with importing("service", "the prediction service"):
        from crosscast.service import models, server

    logging.basicConfig(level=logging.WARNING, format="crosscast: %(message)s")
    logging.getLogger("crosscast.service").setLevel(logging.INFO)
    server.serve(
        models.Served(options.model, options.profiles, options.samples),
        path=options.socket,
        bind=options.bind,
        token_file=options.token_file,
    )


_FILES = Path(crosscast.__file__).parent / "service" / "files"
_SAFE = re.compile(r"/[\w./+-]*")
"""Paths that need no quotes in any of the languages of the files."""
_HOMES = ("/home/", "/root/", "/run/user/")
"""Folders that `ProtectHome` of systemd hides."""
_OF_THE_SITE = ("config.lua", "caps.conf")

State = Literal["new", "same", "newer", "yours"]


@dataclass(frozen=True)
class HookFile:
    """A file to write, compared with the one at its path."""

    path: Path
    content: bytes
    # Missing; identical; different code, which is replaced; a different file of the site, which stays
    state: State

    def write(self) -> None:
        """Write the file."""
        make_folder(self.path.parent, "dir")
        with atomic_file(self.path, field="dir") as temporary:
            temporary.write_bytes(self.content)
            temporary.chmod(0o755 if self.path.suffix == ".sh" else 0o644)

    def remove(self) -> None:
        """Remove the file, and its folder ``crosscast`` if that is empty then."""
        try:
            self.path.unlink()
        except OSError as error:
            raise InputError.of(
                field="dir", problem=f"cannot remove {self.path} ({error.strerror or error})"
            ) from error
        if self.path.parent.name == "crosscast":
            with suppress(OSError):  # it is not empty
                self.path.parent.rmdir()


def hook_files(kind: str, folder: Path, prefix: Path | None = None) -> list[HookFile]:
    """Return the files of a kind for a folder, in the order of their names.

    With a prefix they are put below it, as for building packages; their content still names the folder
    itself.
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
        target = root / path.relative_to(source)
        is_code = target.parent != root and path.name not in _OF_THE_SITE
        try:
            existing = target.read_bytes() if target.is_file() else None
        except OSError as error:
            raise InputError.of(
                field="dir", problem=f"cannot read {target} ({error.strerror or error})"
            ) from error
        state: State = "newer" if is_code else "yours"
        if existing is None or existing == content:
            state = "new" if existing is None else "same"
        yield HookFile(target, content, state)


def _program() -> str:
    """Return the path of this installation's ``crosscast``, which may be in a virtual environment."""
    beside = Path(sys.executable).parent / "crosscast"
    return str(beside) if beside.is_file() else shutil.which("crosscast") or "/usr/bin/env crosscast"


def _quoted(program: str) -> str:
    """Return a path in the quoting of systemd."""
    if program.startswith("/usr/bin/env ") or _SAFE.fullmatch(program):
        return program
    text = program.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{text}"'


_UNCHANGED = {"new": "not there", "same": "already there", "yours": "yours differs, and stays"}


def install(options: Install) -> None:
    """Run ``crosscast hooks install``."""
    _apply(options, ("new", "newer"), HookFile.write, "written", contents=True)


def remove(options: Remove) -> None:
    """Run ``crosscast hooks remove``."""
    _apply(options, ("same", "newer"), HookFile.remove, "removed")


def _apply(
    options: Install,
    states: Sequence[str],
    act: Callable[[HookFile], None],
    done: str,
    *,
    contents: bool = False,
) -> None:
    """Write or remove the files that are in some states, and print the outcomes, or those of a dry run."""
    for file in hook_files(options.kind, options.folder, options.prefix):
        result = f"would be {done}" if options.dry_run else done
        if file.state not in states:
            result = _UNCHANGED[file.state]
        elif not options.dry_run:
            act(file)
        print(f"{file.path}: {result}")
        if contents and options.dry_run:
            print(file.content.decode())
