"""Importers of datasets by name; the module of an importer is loaded on first use."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.data.dataset import Dataset


@dataclass(frozen=True)
class SourceOption:
    """An option of one importer."""

    name: str
    type: Literal["int", "str"]
    help: str
    default: int | str | None = None


@dataclass(frozen=True)
class Importer:
    """An importer: reads a file or folder of a source and makes a dataset."""

    name: str
    function: str  # Its module in this folder and its name there: a `Source`, or a function
    help: str  # Description of the data and their origin
    path: str  # Description of the path
    licence: str  # Of the data
    origin: str  # The public repository, and its files from which the path's files are made
    options: tuple[SourceOption, ...] = ()
    tells: str | None = None  # Note of the records that the command prints
    # Whether it has sources of kernels, which the option `profiles` characterizes
    characterizes: bool = False

    def __call__(self, path: str | Path, **options: object) -> Dataset:
        """Make a dataset."""
        return self._reader()(path, **options)

    def _reader(self) -> Callable[..., Dataset]:
        module, _, name = self.function.partition(":")
        reader: Callable[..., Dataset] = getattr(import_module(f"{__package__}.{module}"), name)
        return reader

    def to_dict(self) -> dict[str, object]:
        """Return name, description, licence, origin, and the files that it reads as far as declared."""
        files = [
            {
                "names": list(file.names),
                "required": file.is_required,
                "columns": [column.name for column in file.columns],
            }
            for file in getattr(self._reader(), "files", ())
        ]
        about = self.help.partition("\n\n")[0]
        facts = {"name": self.name, "about": about, "licence": self.licence, "origin": self.origin}
        return {**facts, "path": " ".join(self.path.split()), "files": files}


IMPORTERS = {
    name: Importer(
        name, **entry | {"options": tuple(SourceOption(**each) for each in entry.get("options", ()))}
    )
    for name, entry in tomllib.loads(
        resources.files(__package__).joinpath("importers.toml").read_text(encoding="utf-8")
    ).items()
}
"""The importers by name, in the order in which they are listed."""


def import_source(name: str, path: str | Path, **options: object) -> Dataset:
    """Make a dataset from a source's file or folder, with the options that its command has.

    `name` is one that `crosscast dataset import --help` lists.
    """
    importer = IMPORTERS.get(name.replace("-", "_"))
    if importer is None:
        raise InputError.of(field="name", expected=f"one of {', '.join(IMPORTERS)}", found=repr(name))
    return importer(path, **options)
