"""A folder of the published AIWC tool's files: one profile a file.

The files are ``aiwc_<kernel>_<n>.csv``, with the columns metric, category and count. They lie in the
folder itself, or in ``<application>/<size>/`` below it.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.profile import METRICS
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.profiles import COLUMNS, PROFILES
from crosscast.tables.published_metrics import PUBLISHED_METRICS

__all__ = ["import_aiwc_folder"]

_HEADER = ["metric", "category", "count"]
_FILE_NAME = re.compile(r"aiwc_(?P<kernel>.+)_(?P<invocation>\d+)\.csv")
_DEFINED = {metric.name: metric.name for metric in METRICS}
_OURS: dict[str, str | None] = {**{row.name: row.metric for row in PUBLISHED_METRICS}, **_DEFINED}
"""Our metric of each name that a file may hold: the published tool's names, and our own."""
_NEEDED = ("Opcode", "Total Instruction Count")
"""Of each profile, by the tool's names: the first that it writes."""
_INTEGERS = frozenset(column.name for column in COLUMNS if column.type == "integer")

_RATIOS = (
    ("unique_read_write_ratio", "unique_reads", "unique_writes"),
    ("reread_ratio", "unique_reads", "total_reads"),
    ("rewrite_ratio", "unique_writes", "total_writes"),
)

_NOTES = {
    "origin": "Files of the published AIWC tool.",
    "definitions": (
        "Numbers of the tool by its conventions: medians of an even count are cut to whole numbers, "
        "branches are told apart by their source line, and numbers have 6 or 4 significant digits. Ratios "
        "of reads and writes are computed here from the counts. The tool's two "
        "branch entropies follow other formulas than ours, so our columns are empty. What has no column "
        "is in the column program, under published."
    ),
    "defects": (
        "Releases of the tool are known to swap reads and writes, to lose barriers, to run instructions "
        "between barriers across work-items, and to count local addresses as global ones. A file does not "
        "tell which release wrote it."
    ),
}


def import_aiwc_folder(
    folder: str | Path, application: str | None = None, size: str | None = None
) -> Dataset:
    """Make a dataset, with profiles only.

    Parameters
    ----------
    folder
        Where the files are.
    application, size
        Of the files that are not in a folder ``<application>/<size>/``; by default the name of the
        folder, and ``unknown``.

    Raises
    ------
    InputError
        If there is no such file, or one is not as it should be.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder with files aiwc_<kernel>_<n>.csv, found none")
    paths = sorted(folder.rglob("aiwc_*.csv"))
    if not paths:
        raise InputError(f"{folder}: expected files aiwc_<kernel>_<n>.csv, found none")
    default = (application or folder.resolve().name, size or "unknown")
    rows = [_row(path, *(_place(path, folder) or default)) for path in paths]
    return Dataset(str(folder), profiles=table_of(PROFILES, rows, _notes(rows)))


def _notes(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Notes on a table of these rows; they name the metrics of the files that nobody knows."""
    unknown = Counter(name for row in rows for name in row["program"]["published"] if name not in _OURS)
    if not unknown:
        return _NOTES
    names = ", ".join(f"{name} ({count} files)" for name, count in sorted(unknown.items()))
    return {**_NOTES, "other metrics": f"Metrics that Crosscast does not know: {names}."}


def _place(path: Path, folder: Path) -> tuple[str, str] | None:
    parts = path.relative_to(folder).parts[:-1]
    if not parts:
        return None
    if len(parts) != 2:
        expected = "the folder itself or <application>/<size>/"
        raise InputError(f"{path}: expected the file in {expected}, found it in {'/'.join(parts)}/")
    return parts[0], parts[1]


def _row(path: Path, application: str, size: str) -> dict[str, Any]:
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        raise InputError(f"{path}: expected a name such as aiwc_<kernel>_<n>.csv, found {path.name}")
    metrics: dict[str, int | float] = {}
    other: dict[str, int | float] = {}
    for metric, value in _read(path).items():
        ours = _OURS.get(metric)
        if ours is None:
            other[metric] = value
        elif ours in metrics:
            raise InputError(f"{path}: the metric {ours} is there under two names")
        else:
            metrics[ours] = _number(path, metric, ours, value)
    for needed in _NEEDED:
        if _OURS[needed] not in metrics:
            raise InputError(f"{path}: expected the metric {needed}, found none: the file may be cut off")
    return {
        "application": application,
        "kernel": name["kernel"],
        "size": size,
        "invocation": int(name["invocation"]),
        **metrics,
        **_derived(metrics),
        "program": {"tool": "AIWC", "published": other},
    }


def _read(path: Path) -> dict[str, float]:
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot read the file ({error})") from error
    if not rows or rows[0] != _HEADER:
        found = ",".join(rows[0]) if rows else ""
        raise InputError(f"{path}: expected the columns {', '.join(_HEADER)}, found {found!r}")
    values: dict[str, float] = {}
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(_HEADER):
            raise InputError(f"{path}: row {number}: expected {len(_HEADER)} cells, found {len(row)}")
        metric, _, text = row
        if metric in values:
            raise InputError(f"{path}: row {number}: the metric {metric} is there a second time")
        values[metric] = _value(f"{path}: column 'count', row {number}", text)
    return values


def _value(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise InputError(f"{where}: expected a finite number of at least 0, found {text!r}")
    return value


def _number(path: Path, metric: str, ours: str, value: float) -> int | float:
    if ours not in _INTEGERS:
        return value
    if not value.is_integer():
        raise InputError(f"{path}: the metric {metric}: expected a whole number, found {value:g}")
    return int(value)


def _derived(metrics: Mapping[str, int | float]) -> dict[str, int | float | None]:
    """Metrics of ours that the tool has not, or with fewer digits, or as 0 where they are not defined."""
    derived: dict[str, int | float | None] = {}
    for ratio, part, whole in _RATIOS:
        if {part, whole} <= metrics.keys():
            derived[ratio] = metrics[part] / metrics[whole] if metrics[whole] else None
    if {"min_ipt", "max_ipt"} <= metrics.keys():
        derived["load_imbalance"] = metrics["max_ipt"] - metrics["min_ipt"]
    return derived
