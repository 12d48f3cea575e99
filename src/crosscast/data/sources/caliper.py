"""Profiles of Caliper, as records or a table: counters of the whole program, or of one of its regions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosscast.data.fields import is_finite
from crosscast.data.sources.counted import CountedRun, factor_of, number_of, text_of
from crosscast.errors import InputError, importing

MOST_LEVELS = 200
"""Largest depth of nested regions."""

MOST_NAMES = 20_000_000
"""Largest total number of names in the paths of all regions."""

_TIMES = ("time.duration", "time", "time.inclusive.duration", "time (inc)")
"""Names of times, best first; those without ``duration`` are the names in tables."""

_INCLUSIVE = ("inclusive", "time.inclusive", "time (inc)")
_NO_AMOUNTS = ("min", "max", "percent", "ratio", "variance", "histogram", "first")
_FACT = "any"
_LOST = ("scale", "iscale")
_NANOSECONDS = ".ns"


@dataclass(frozen=True)
class CaliperRow:
    """Values of a region in a process."""

    # Names of the enclosing regions, outermost first, and of the region itself; empty outside of all
    region: tuple[str, ...]
    rank: str | None  # Number of the process; `None` if the profile does not distinguish processes
    values: Mapping[str, float]  # Values by the names of attributes, such as `sum#time.duration`


def counted_in(
    path: Path, rows: Sequence[CaliperRow], units: Mapping[str, str], region: str | None
) -> CountedRun:
    """Average counters over processes, of the whole program or of a region and the regions within.

    An attribute's name is the part after its operators: ``sum#papi.PAPI_BR_INS`` is ``papi.PAPI_BR_INS``.
    Minima, maxima, shares and the like are left out, as they cannot be added; facts about a region
    (``any#…``) are taken from the outermost one. The time is that of the slowest process.
    """
    if region is not None:
        inside = [row for row in rows if region in row.region]
        if not inside:
            regions = ", ".join(sorted({name for row in rows for name in row.region}))[:200]
            raise InputError.of(where=path, expected=f"a region {region}", found=f"{regions or 'none'}")
        rows = inside
    processes = len({row.rank for row in rows if row.rank is not None}) or 1
    counters: dict[str, float] = {}
    times: dict[str, float] = {}
    for attribute in _attributes(rows):
        factor = _factor(attribute, units.get(attribute, ""))
        sums = _sums(rows, attribute)
        name = attribute.split("#")[-1].removesuffix(_NANOSECONDS)
        if name in _TIMES:
            times.setdefault(name, factor * max(sums.values()))
        elif name not in counters:
            counters[name] = factor * sum(sums.values()) / processes
    time_s = next((times[name] for name in _TIMES if name in times), None)
    return CountedRun(str(path), path.stem, counters, time_s, kernel=region)


def _attributes(rows: Sequence[CaliperRow]) -> list[str]:
    """Attributes of amounts; among those of one quantity the best first."""
    names = {name for row in rows for name in row.values}
    return sorted((name for name in names if _is_amount(name)), key=_preference)


def _is_amount(attribute: str) -> bool:
    operators = attribute.split("#")[:-1]
    return _FACT in operators or not any(part.startswith(_NO_AMOUNTS) for part in operators)


def _preference(attribute: str) -> tuple[bool, bool, bool, str]:
    operators = attribute.split("#")[:-1]
    is_scaled = any(part in _LOST for part in operators)
    # In profiles aggregated over processes, the mean is preferred to the sum.
    return is_scaled, _is_inclusive(attribute), "avg" not in operators, attribute


def _is_inclusive(attribute: str) -> bool:
    return any(part.startswith(_INCLUSIVE) for part in attribute.split("#"))


def _factor(attribute: str, unit: str) -> float:
    if unit:
        return factor_of(unit)
    is_scaled = any(part in _LOST for part in attribute.split("#")[:-1])
    return 1e-9 if attribute.endswith(_NANOSECONDS) and not is_scaled else 1.0


def _sums(rows: Sequence[CaliperRow], attribute: str) -> dict[str | None, float]:
    """Sum an attribute for each process, an inclusive one over the outermost regions that have it.

    Values outside of all regions do not include those of regions.
    """
    having = [row for row in rows if attribute in row.values]
    is_fact = _FACT in attribute.split("#")[:-1]
    if is_fact or _is_inclusive(attribute):
        regions = {(row.rank, row.region) for row in having}
        having = [
            row
            for row in having
            if not any((row.rank, row.region[:end]) in regions for end in range(1, len(row.region)))
        ]
    sums: defaultdict[str | None, float] = defaultdict(float)
    for row in having:
        value = row.values[attribute]
        sums[row.rank] = max(sums.get(row.rank, value), value) if is_fact else sums[row.rank] + value
    return sums


RECORD = "__rec="
"""Prefix of each line of a file of records."""

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
_Record = Mapping[str, str | list[str]]


def read_caliper(path: Path, region: str | None = None) -> CountedRun:
    """Read the counters of a run, averaged over its processes."""
    text = text_of(path, "profile of Caliper")
    rows, units = _of_records(path, text) if text.startswith(RECORD) else _of_table(path, text)
    return counted_in(path, rows, units, region)


def _of_records(path: Path, text: str) -> tuple[list[CaliperRow], dict[str, str]]:
    with importing("counters", "a profile of Caliper in .cali"):
        from caliperreader import CaliperStreamReader
        from caliperreader.metadatadb import MetadataDB
        from caliperreader.readererror import ReaderError

    class CheckedNodes(MetadataDB):  # type: ignore[misc]
        """Nodes whose parents precede them, so that paths to the root have no cycles."""

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
    records: list[_Record] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, start=1):
        if number == len(lines):
            if line:
                expected = "a whole record of Caliper"
                where, found = f"{path}, line {number}", f"{line[:60]!r}, cut off"
                raise InputError.of(where=where, expected=expected, found=found)
            break
        try:
            reader.read([line], records.append)
        except (ReaderError, LookupError, ValueError, AttributeError, TypeError, StopIteration) as error:
            raise InputError.of(
                where=f"{path}, line {number}",
                expected="a record of Caliper that the reader knows",
                found=f"{line[:60]!r} ({type(error).__name__})",
            ) from error
    attributes = {name: reader.attribute(name) for name in reader.attributes()}
    try:
        numbers = {
            name
            for name, attribute in attributes.items()
            if attribute.is_value()
            and attribute.attribute_type() in _NUMBERS
            and not name.startswith(_LABELS)
        }
        units = {name: _unit(attributes[name].metadata()) for name in numbers}
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        raise InputError.of(
            where=path, expected="attributes of Caliper that the reader knows", found="others"
        ) from error
    return [_row(path, record, numbers) for record in records], units


def _unit(facts: Mapping[str, object]) -> str:
    return next((str(facts[name]) for name in _UNITS if facts.get(name)), "")


def _row(path: Path, record: _Record, numbers: set[str]) -> CaliperRow:
    region = record.get(_REGION, [])
    rank = next((str(record[name]) for name in _RANKS if name in record), None)
    values = {}
    for name in numbers.intersection(record):
        value = number_of(str(record[name]))
        if value is None:
            raise InputError.of(
                where=path, field=name, expected="a number", found=repr(str(record[name])[:60])
            )
        values[name] = value
    return CaliperRow((region,) if isinstance(region, str) else tuple(region), rank, values)


def _of_table(path: Path, text: str) -> tuple[list[CaliperRow], dict[str, str]]:
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError.of(
            where=path, expected="records of Caliper or a table in JSON", found="neither"
        ) from error
    if not isinstance(table, dict) or not all(isinstance(table.get(name), list) for name in TABLE):
        raise InputError.of(
            where=path,
            expected=f"a table of Caliper with {', '.join(TABLE)} (json-split)",
            found="another form",
        )
    columns, facts = table["columns"], table["column_metadata"]
    if len(columns) != len(facts) or not all(isinstance(fact, dict) for fact in facts):
        raise InputError.of(
            where=path, field="column_metadata", expected=f"an object for each of {len(columns)} columns"
        )
    if not all(isinstance(name, str) for name in columns):
        raise InputError.of(where=path, field="columns", expected="names", found="others")
    regions = _regions(path, table["nodes"])
    numbers = [
        (index, name)
        for index, (name, fact) in enumerate(zip(columns, facts, strict=True))
        if fact.get("is_value") is True and name not in _RANKS and not name.startswith(_LABELS)
    ]
    rows = list(_table_rows(path, table["data"], columns, numbers, regions))
    return rows, {name: _unit(facts[index]) for index, name in numbers}


def _regions(path: Path, nodes: Sequence[object]) -> list[tuple[str, ...]]:
    regions: list[tuple[str, ...]] = []
    names = 0
    for number, node in enumerate(nodes):
        label = node.get("label") if isinstance(node, dict) else None
        parent = node.get("parent", -1) if isinstance(node, dict) else None
        if not isinstance(label, str) or not isinstance(parent, int) or not -1 <= parent < number:
            raise InputError.of(
                where=path, problem=f"nodes[{number}]: expected a label, and the number of an earlier parent"
            )
        enclosing = regions[parent] if parent >= 0 else ()
        names += len(enclosing)
        if len(enclosing) >= MOST_LEVELS or names > MOST_NAMES:
            raise InputError.of(
                where=path, problem=f"nodes[{number}]: expected at most {MOST_LEVELS} levels, found more"
            )
        regions.append((*enclosing, label))
    return regions


def _table_rows(
    path: Path,
    data: Sequence[object],
    columns: Sequence[str],
    numbers: Sequence[tuple[int, str]],
    regions: Sequence[tuple[str, ...]],
) -> Iterator[CaliperRow]:
    region_column = columns.index(_REGION) if _REGION in columns else None
    rank_columns = [columns.index(name) for name in _RANKS if name in columns]
    for number, cells in enumerate(data):
        if not isinstance(cells, list) or len(cells) != len(columns):
            raise InputError.of(where=path, problem=f"data[{number}]: expected {len(columns)} cells")
        node = None if region_column is None else cells[region_column]
        if node is not None and (not isinstance(node, int) or not 0 <= node < len(regions)):
            raise InputError.of(
                where=path,
                problem=f"data[{number}]: {_REGION}: expected the number of a node, found {node!r}",
            )
        values = {}
        for column, name in numbers:
            value = cells[column]
            if value is None:
                continue
            if not is_finite(value):
                raise InputError.of(
                    where=path,
                    problem=f"data[{number}]: {name}: expected a number, found {str(value)[:60]!r}",
                )
            values[name] = float(value)
        rank = next((str(cells[column]) for column in rank_columns if cells[column] is not None), None)
        yield CaliperRow(() if node is None else regions[node], rank, values)
