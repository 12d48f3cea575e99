"""Profiles of Caliper: its own records (``.cali``), and tables in JSON (``json-split``)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from crosscast.errors import InputError, MissingExtraError
from crosscast.tables.importers.counters.caliper_rows import MOST_LEVELS, MOST_NAMES, CaliperRow, counted_in
from crosscast.tables.importers.counters.counted_run import CountedRun
from crosscast.tables.importers.counters.number_text import number_of
from crosscast.tables.importers.counters.source_text import text_of

__all__ = ["RECORD", "TABLE", "read_caliper"]

RECORD = "__rec="
"""How each line of a file of records begins."""

TABLE = ("data", "columns", "column_metadata", "nodes")
"""Members of a table in JSON."""

_REGION = "path"
_RANKS = ("mpi.rank", "rank")
_NUMBERS = ("int", "uint", "double")
_LABELS = (
    "cali.",
    "aggregate.",
    "omp.thread",
    "pthread",
    "thread.id",
    "mpi.",
    "loop.start",
    "iteration#",
    "Node order",
)
_UNITS = ("time.unit", "attribute.unit")


def read_caliper(path: Path, region: str | None = None) -> CountedRun:
    """Read the counters of a run: means over its processes.

    Parameters
    ----------
    path
        A file ``.cali``, or a table in JSON that ``cali-query -j`` or the option ``output=x.json`` wrote.
    region
        Name of a region, whose counters are taken with those of the regions within; by default the whole
        program.

    Raises
    ------
    InputError
        If the file cannot be read, is cut off or is of a version that cannot be read, or there is no such
        region.
    MissingExtraError
        If the reader of Caliper's records is not installed.
    """
    text = text_of(path, "a profile of Caliper")
    rows, units = _of_records(path, text) if text.startswith(RECORD) else _of_table(path, text)
    return counted_in(path, rows, units, region)


def _of_records(path: Path, text: str) -> tuple[list[CaliperRow], dict[str, str]]:
    try:
        from caliperreader import CaliperStreamReader
        from caliperreader.metadatadb import MetadataDB
        from caliperreader.readererror import ReaderError
    except ImportError as error:
        raise MissingExtraError("counters", "a profile of Caliper in .cali") from error

    class CheckedNodes(MetadataDB):  # type: ignore[misc]
        """Nodes that hang under earlier ones, so that no way to the root goes round in a circle."""

        def __init__(self) -> None:
            super().__init__()
            self._levels = dict.fromkeys(self.nodes, 1)
            self._names = 0

        def import_node(self, node_id: int, attribute_id: int, data: str, parent_id: int) -> None:
            level = self._levels.get(parent_id, 0) + 1
            self._names += level
            if node_id in self._levels or level > MOST_LEVELS or self._names > MOST_NAMES:
                raise ReaderError(f"node {node_id} is there twice, or too deep")
            self._levels[node_id] = level
            super().import_node(node_id, attribute_id, data, parent_id)

    reader = CaliperStreamReader()
    reader.db = CheckedNodes()
    records: list[dict[str, Any]] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if number == len(lines):
            if line:
                raise _cut_off(path, number, line)
            break
        try:
            reader.read([line], records.append)
        except (ReaderError, LookupError, ValueError, AttributeError, TypeError, StopIteration) as error:
            raise InputError(
                f"{path}, line {number}: expected a record of Caliper that the reader knows, found "
                f"{line[:60]!r} ({type(error).__name__})"
            ) from error
    attributes = {name: reader.attribute(name) for name in reader.attributes()}
    try:
        numbers = {
            name
            for name, each in attributes.items()
            if each.is_value() and each.attribute_type() in _NUMBERS and not name.startswith(_LABELS)
        }
        units = {name: _unit(each.metadata()) for name, each in attributes.items() if name in numbers}
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise InputError(
            f"{path}: expected attributes of Caliper that the reader knows, found others"
        ) from error
    return [_row(path, record, numbers) for record in records], units


def _cut_off(path: Path, number: int, line: str) -> InputError:
    return InputError(
        f"{path}, line {number}: expected a whole record of Caliper, found {line[:60]!r}, cut off"
    )


def _unit(facts: Mapping[str, Any]) -> str:
    return next((str(facts[name]) for name in _UNITS if facts.get(name)), "")


def _row(path: Path, record: Mapping[str, Any], numbers: set[str]) -> CaliperRow:
    region = record.get(_REGION, [])
    rank = next((str(record[name]) for name in _RANKS if name in record), None)
    values = {}
    for name in numbers.intersection(record):
        value = number_of(str(record[name]))
        if value is None:
            raise InputError(f"{path}: {name}: expected a number, found {str(record[name])[:60]!r}")
        values[name] = value
    return CaliperRow((region,) if isinstance(region, str) else tuple(region), rank, values)


def _of_table(path: Path, text: str) -> tuple[list[CaliperRow], dict[str, str]]:
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected records of Caliper or a table in JSON, found neither") from error
    if not isinstance(table, dict) or not all(isinstance(table.get(name), list) for name in TABLE):
        raise InputError(
            f"{path}: expected a table of Caliper with {', '.join(TABLE)} (json-split), found another form"
        )
    columns, facts = table["columns"], table["column_metadata"]
    if len(columns) != len(facts) or not all(isinstance(each, dict) for each in facts):
        raise InputError(f"{path}: column_metadata: expected an object for each of {len(columns)} columns")
    if not all(isinstance(name, str) for name in columns):
        raise InputError(f"{path}: columns: expected names, found others")
    regions = _regions(path, table["nodes"])
    numbers = [
        (place, name)
        for place, (name, each) in enumerate(zip(columns, facts, strict=True))
        if each.get("is_value") is True and name not in _RANKS and not name.startswith(_LABELS)
    ]
    rows = list(_table_rows(path, table["data"], columns, numbers, regions))
    return rows, {name: _unit(facts[place]) for place, name in numbers}


def _regions(path: Path, nodes: Sequence[Any]) -> list[tuple[str, ...]]:
    regions: list[tuple[str, ...]] = []
    names = 0
    for number, node in enumerate(nodes):
        label = node.get("label") if isinstance(node, dict) else None
        parent = node.get("parent", -1) if isinstance(node, dict) else None
        if not isinstance(label, str) or not isinstance(parent, int) or not -1 <= parent < number:
            raise InputError(
                f"{path}: nodes[{number}]: expected a label, and the number of an earlier parent"
            )
        above = regions[parent] if parent >= 0 else ()
        names += len(above)
        if len(above) >= MOST_LEVELS or names > MOST_NAMES:
            raise InputError(f"{path}: nodes[{number}]: expected at most {MOST_LEVELS} levels, found more")
        regions.append((*above, label))
    return regions


def _table_rows(
    path: Path,
    data: Sequence[Any],
    columns: Sequence[str],
    numbers: Sequence[tuple[int, str]],
    regions: Sequence[tuple[str, ...]],
) -> Iterator[CaliperRow]:
    region_at = columns.index(_REGION) if _REGION in columns else None
    rank_at = next((columns.index(name) for name in _RANKS if name in columns), None)
    for number, cells in enumerate(data):
        if not isinstance(cells, list) or len(cells) != len(columns):
            raise InputError(f"{path}: data[{number}]: expected {len(columns)} cells")
        node = None if region_at is None else cells[region_at]
        if node is not None and (not isinstance(node, int) or not 0 <= node < len(regions)):
            raise InputError(
                f"{path}: data[{number}]: {_REGION}: expected the number of a node, found {node!r}"
            )
        values = {}
        for place, name in numbers:
            value = cells[place]
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InputError(
                    f"{path}: data[{number}]: {name}: expected a number, found {str(value)[:60]!r}"
                )
            values[name] = float(value)
        rank = None if rank_at is None else str(cells[rank_at])
        yield CaliperRow(() if node is None else regions[node], rank, values)
