"""Finished parts of the study in a folder, so that a study that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from crosscast.evaluate.cache_folder import cached_file
from crosscast.evaluate.fingerprint import sources_digest
from crosscast.tables.whole_file import make_folder

__all__ = ["Keeper", "Part"]

P = TypeVar("P")

_DAMAGE = (OSError, ValueError, KeyError, TypeError)
"""What a file that is no part, or half of one, leads to."""


@dataclass(frozen=True)
class Part(Generic[P]):
    """A part of the study.

    Parameters
    ----------
    name
        What it is, for people.
    facts
        All that it depends on apart from the data; as JSON.
    make
        Makes it: a dataclass.
    load
        Makes it again of `dataclasses.asdict` of it.
    """

    name: str
    facts: tuple[object, ...]
    make: Callable[[], P]
    load: Callable[[dict[str, Any]], P]


@dataclass(frozen=True)
class Keeper:
    """A folder with a JSON file for each part, named by a hash of all that the part depends on.

    Parameters
    ----------
    folder
        Where; nothing is kept if ``None``.
    digest
        Hash of the data.
    """

    folder: Path | None
    digest: str

    def __post_init__(self) -> None:
        """Make the folder."""
        if self.folder is None:
            return
        make_folder("cache", self.folder)

    def load(self, part: Part[P]) -> P | None:
        """The part as it was kept, or ``None``; a damaged one is as good as none."""
        if self.folder is None:
            return None
        try:
            return part.load(json.loads(self._path(part).read_text(encoding="utf-8")))
        except _DAMAGE:
            return None

    def save(self, part: Part[P], made: P) -> None:
        """Keep a part.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        if self.folder is None:
            return
        path = self._path(part)
        with cached_file(path) as temporary:
            # asdict takes dataclasses only, which the type of a part cannot say.
            temporary.write_text(json.dumps(asdict(made)), encoding="utf-8")  # type: ignore[call-overload]

    def _path(self, part: Part[Any]) -> Path:
        assert self.folder is not None
        return self.folder / f"published-{self._key(part)}.json"

    def _key(self, part: Part[Any]) -> str:
        facts = json.dumps([sources_digest(("predict", "evaluate")), self.digest, part.name, *part.facts])
        return hashlib.sha256(facts.encode()).hexdigest()
