"""Where datasets are imported from, by name; what reads one is loaded when it is used."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.data.dataset import Dataset


@dataclass(frozen=True)
class SourceOption:
    """What one importer alone has to be told."""

    name: str
    type: type[int | str]
    help: str
    default: int | str | None = None


@dataclass(frozen=True)
class Importer:
    """What makes a dataset of a path."""

    name: str
    function: str  # Its module in this folder and its name there: a `Source`, or a function
    help: str  # What is imported, and where it is from
    path: str  # What the path is
    licence: str  # Of the data
    origin: str  # The public place, and what of it the files are made of
    options: tuple[SourceOption, ...] = ()
    # Whether it has sources of kernels: `profiles` is then what characterizes them; without, none are
    characterizes: bool = False

    def __call__(self, path: str | Path, **options: object) -> Dataset:
        """Make a dataset."""
        return self._reader()(path, **options)

    def _reader(self) -> Callable[..., Dataset]:
        module, _, name = self.function.partition(":")
        reader: Callable[..., Dataset] = getattr(import_module(f"{__package__}.{module}"), name)
        return reader

    def to_dict(self) -> dict[str, object]:
        """What it is, where it is from, and the files that it wants, as far as these are declared."""
        files = [
            {
                "names": list(file.names),
                "required": file.is_needed,
                "columns": [column.name for column in file.columns],
            }
            for file in getattr(self._reader(), "files", ())
        ]
        about = self.help.partition("\n\n")[0]
        facts = {"name": self.name, "about": about, "licence": self.licence, "origin": self.origin}
        return {**facts, "path": " ".join(self.path.split()), "files": files}


def _importers() -> dict[str, Importer]:
    kinds: dict[str, type[int | str]] = {"int": int, "str": str}
    content = resources.files(__package__).joinpath("importers.toml").read_text(encoding="utf-8")
    return {
        name: Importer(
            name,
            told["reader"],
            told["help"],
            told["path"],
            told["licence"],
            told["origin"].strip(),
            tuple(SourceOption(**{**each, "type": kinds[each["type"]]}) for each in told.get("options", ())),
            told.get("characterizes", False),
        )
        for name, told in tomllib.loads(content).items()
    }


IMPORTERS = _importers()
"""The sources by name, in the order in which they are listed."""


def import_source(name: str, path: str | Path, **options: object) -> Dataset:
    """Make a dataset of a source's file or folder.

    Parameters
    ----------
    name
        The source, as `crosscast dataset import --help` lists them.
    path
        Its file, or the folder with its files.
    options
        What the source's command has as options.

    Raises
    ------
    InputError
        If there is no such source, or its files are missing or wrong.
    """
    importer = IMPORTERS.get(name.replace("-", "_"))
    if importer is None:
        raise InputError.of(field="name", expected=f"one of {', '.join(IMPORTERS)}", found=repr(name))
    return importer(path, **options)
