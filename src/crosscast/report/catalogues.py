"""Sources of datasets: what is to be fetched, under which licence, from where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosscast.report.document import Heading, Report, Text


def sources_report(sources: Sequence[Mapping[str, Any]]) -> Report:
    """What can be imported: what it is, its licence, where it is from and which files are wanted."""
    parts: list[Any] = []
    for source in sources:
        facts = [f"licence: {source['licence']}", f"origin: {source['origin']}"]
        wanted = [
            f"file: {' or '.join(file['names'])}{'' if file['required'] else ' (optional)'}"
            + (f", columns {', '.join(file['columns'])}" if file["columns"] else "")
            for file in source["files"]
        ]
        parts += [
            Heading(source["name"]),
            source["about"],
            Text([*facts, f"path: {source['path']}", *wanted], "list"),
        ]
    return Report(
        [
            *parts,
            "",
            "To import one: crosscast dataset import NAME PATH --out FOLDER; --help says what PATH is.",
        ]
    )
