"""The table of job types, in Parquet files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.cluster.job_types import JobTypes
from crosscast.cluster.jobs import Reals
from crosscast.errors import InputError
from crosscast.tables.arrow import Table, table_of
from crosscast.tables.parquet import read_table, write_table
from crosscast.tables.schema import Column, Schema

__all__ = ["JOB_TYPES", "read_job_types", "write_job_types"]

JOB_TYPES = Schema(
    "job types",
    1,
    (
        Column("application", "text", title="application that is run", required=True),
        Column("kernel", "text", title="kernel of it; empty for all of them"),
        Column("size", "text", title="problem size"),
        Column("procs", "integer", "count", "processors or nodes that a job occupies; empty is 1", least=1),
        Column("uses_gpu", "integer", "1", "1 if its users know that it runs on GPUs, else 0", True, 0),
        Column("repeats", "integer", "count", "invocations that a job is; empty is 1", least=1),
        Column(
            "submit_s", "real", "s", "when it is submitted; empty in all rows if times are drawn", least=0
        ),
        Column("user", "text", title="who submits it"),
        Column("times", "json", "s", "measured time of an invocation, by device", required=True),
        Column("predicted", "json", "1", "predicted time relative to the slowest device, by device"),
        Column("source", "text", title="device that the counters of the prediction are from"),
        Column("model", "text", title="model that predicted"),
    ),
    key=(),
)
"""Version 1."""

_MOST_DEVICES = 1000
_TEXTS = ("application", "kernel", "size", "user", "source", "model")


def read_job_types(path: str | Path) -> JobTypes:
    """Read a table of job types.

    Raises
    ------
    InputError
        If it cannot be read, is another table, is empty, or a cell holds what it must not: times that are no
        numbers above 0, relative times below 0. Names the column and the row.
    """
    return _types_of(read_table(path, JOB_TYPES), str(path))


def write_job_types(types: JobTypes, path: str | Path) -> None:
    """Write a table of job types; the same types give the same bytes.

    Raises
    ------
    InputError
        If it cannot be written, or `read_job_types` would refuse it.
    """
    rows = [
        {
            **{name: getattr(types, name)[row] for name in _TEXTS},
            "procs": int(types.procs[row]),
            "uses_gpu": int(types.uses_gpu[row]),
            "repeats": int(types.repeats[row]),
            "submit_s": None if types.submit_s is None else float(types.submit_s[row]),
            "times": _by_device(types.devices, types.times_s[row]),
            "predicted": _by_device(types.devices, types.predicted[row]) or None,
        }
        for row in range(len(types))
    ]
    table = table_of(JOB_TYPES, rows)
    _types_of(table, JOB_TYPES.table)
    write_table(table, path)


def _by_device(devices: Sequence[str], values: Reals) -> dict[str, float]:
    return {
        device: value for device, value in zip(devices, values.tolist(), strict=True) if not math.isnan(value)
    }


def _types_of(table: Table, label: str) -> JobTypes:
    if not table.num_rows:
        raise InputError(f"{label}: expected a row for each type of job, found none")
    cells: dict[str, list[Any]] = table.to_pydict()
    times = _vectors(label, "times", cells["times"], above_0=True)
    predicted = _vectors(label, "predicted", cells["predicted"], above_0=False)
    for row, vector in enumerate(times, start=1):
        if not vector:
            raise InputError(f"{label}: column 'times', row {row}: expected a time on a device, found none")
    devices = tuple(sorted({device for vector in (*times, *predicted) for device in vector}))
    if len(devices) > _MOST_DEVICES:
        raise InputError(f"{label}: expected at most {_MOST_DEVICES} devices, found {len(devices)}")
    for row, flag in enumerate(cells["uses_gpu"], start=1):
        if flag > 1:
            raise InputError(f"{label}: column 'uses_gpu', row {row}: expected 0 or 1, found {flag}")
    return JobTypes(
        devices=devices,
        procs=_counts(cells["procs"]),
        uses_gpu=np.array(cells["uses_gpu"], dtype=np.bool_),
        repeats=_counts(cells["repeats"]),
        submit_s=_submits(label, cells["submit_s"]),
        times_s=_matrix(devices, times),
        predicted=_matrix(devices, predicted),
        **{name: tuple(cells[name]) for name in _TEXTS},
    )


def _counts(cells: Sequence[int | None]) -> npt.NDArray[np.int64]:
    return np.array([1 if cell is None else cell for cell in cells], dtype=np.int64)


def _submits(label: str, cells: Sequence[float | None]) -> Reals | None:
    if all(cell is None for cell in cells):
        return None
    if None in cells:
        row = cells.index(None) + 1
        raise InputError(
            f"{label}: column 'submit_s', row {row}: expected a time, as in other rows, found none"
        )
    return np.array(cells, dtype=np.float64)


def _vectors(
    label: str, name: str, cells: Sequence[str | None], *, above_0: bool
) -> list[Mapping[str, float]]:
    """Numbers by device, of each row."""
    # Types that were drawn with replacement share their vectors.
    known: dict[str | None, Mapping[str, float]] = {None: {}}
    for row, cell in enumerate(cells, start=1):
        if cell not in known:
            known[cell] = _vector(f"{label}: column {name!r}, row {row}", json.loads(str(cell)), above_0)
    return [known[cell] for cell in cells]


def _vector(where: str, value: Any, above_0: bool) -> Mapping[str, float]:
    expected = "a number above 0" if above_0 else "a number of at least 0"
    if not isinstance(value, dict):
        raise InputError(f"{where}: expected {expected} for each device, found {str(value)[:60]}")
    for device, number in value.items():
        is_number = isinstance(number, int | float) and not isinstance(number, bool)
        # A whole number may be too large for any other.
        if (
            not is_number
            or not 0 <= number <= 1e300
            or (above_0 and number == 0)
            or not math.isfinite(number)
        ):
            raise InputError(f"{where}: {device[:60]}: expected {expected}, found {str(number)[:60]}")
    return {device: float(number) for device, number in value.items()}


def _matrix(devices: Sequence[str], vectors: Sequence[Mapping[str, float]]) -> Reals:
    places = {device: place for place, device in enumerate(devices)}
    matrix = np.full((len(vectors), len(devices)), np.nan)
    for row, vector in zip(matrix, vectors, strict=True):
        for device, number in vector.items():
            row[places[device]] = number
    return matrix
