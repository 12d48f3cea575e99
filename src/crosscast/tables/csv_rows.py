"""Tables that people fill in: CSV whose every mistake is named by its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from crosscast.errors import InputError

__all__ = ["csv_rows"]


def csv_rows(
    path: Path, what: str, columns: str, most_bytes: int
) -> tuple[str, Sequence[str], Iterator[tuple[str, Mapping[str, str]]]]:
    """Read a CSV file in UTF-8; lines without anything in them are passed over.

    Parameters
    ----------
    path
        The file.
    what
        What it holds, for messages, such as ``samples``.
    columns
        Columns that it may have, for the message where it is empty.
    most_bytes
        Size that it may have.

    Returns
    -------
    tuple
        Place of the header, for messages; names of the columns, each once; and row by row its place and its
        cells by column, without the spaces around them.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, empty, not UTF-8 or not CSV, or has a column twice; while
        rows are taken, if one has more or fewer cells than the header, or is not CSV.
    """
    lines = _lines(path, _text(path, what, most_bytes))
    where, header = next(lines, ("", []))
    if not header:
        raise InputError(f"{path}: expected columns such as {columns}, found an empty file")
    seen: set[str] = set()
    for name in header:
        if name in seen:
            raise InputError(f"{where}: expected each column once, found {name[:60]!r} twice")
        seen.add(name)
    return where, header, _rows(header, lines)


def _rows(
    header: Sequence[str], lines: Iterator[tuple[str, list[str]]]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    for where, cells in lines:
        if len(cells) != len(header):
            raise InputError(f"{where}: expected {len(header)} cells, found {len(cells)}")
        yield where, dict(zip(header, cells, strict=True))


def _lines(path: Path, text: str) -> Iterator[tuple[str, list[str]]]:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in lines:
            if any(cell.strip() for cell in cells):
                yield f"{path}, line {lines.line_num}", [cell.strip() for cell in cells]
    except csv.Error as error:
        raise InputError(
            f"{path}, line {lines.line_num}: expected CSV, found something else ({error})"
        ) from error


def _text(path: Path, what: str, most_bytes: int) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot read the {what} ({error.strerror})") from error
    if len(content) > most_bytes:
        raise InputError(f"{path}: expected {what} of at most {most_bytes >> 20} MiB, found more")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8, found another byte at place {error.start}") from error
