"""Kernels of Rodinia on nine GPUs: times, and what nvprof counted on each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import (
    ConfiguredRun,
    dataset_of,
    file_at,
    read_runs,
    with_own_sessions,
)
from crosscast.tables.importers.rodinia9_devices import rodinia9_devices
from crosscast.tables.importers.rodinia9_notes import NOTES
from crosscast.tables.library import pa, pq
from crosscast.tables.schema import Column, Schema

__all__ = ["import_rodinia9"]

_NAME = "rodinia_9gpu.parquet"

_PROGRAMS = {
    "bpnn_adjust_weights_cuda": "backprop",
    "bpnn_layerforward_CUDA": "backprop",
    "calculate_temp": "hotspot",
    "kernel": "heartwall",
    "lud_diagonal": "lud",
    "lud_internal": "lud",
    "lud_perimeter": "lud",
}
"""The program of each kernel, as R-code/include/common.R of the origin has it."""

_INPUTS = ("input.size.1", "input.size.2")
_LAUNCH = ("grid.x", "grid.y", "block.x", "block.y")
_NO_COUNTERS = ("device", "kernel")
"""Columns that number the GPUs and kernels."""
_SHARED = "static.smem"
_IN_KIBIBYTES = ("gtx-980", "tesla-p100")

_COLUMNS = (
    *(Column(name, "text", required=True) for name in ("kernel_file", "gpu")),
    *(Column(name, "integer", required=True, least=0) for name in _INPUTS),
    *(Column(name, "integer", required=True, least=1) for name in _LAUNCH),
    Column("duration", "real", required=True),
)


def import_rodinia9(path: str | Path) -> Dataset:
    """Make a dataset of launches on nine GPUs, each with its counters.

    Parameters
    ----------
    path
        The file, or a folder with ``rodinia_9gpu.parquet``.

    Raises
    ------
    InputError
        If the file or a column is missing, a cell holds what it must not, a GPU or kernel is not known, or
        two rows are of the same launch. The message names file, column and row.
    """
    path = file_at(Path(path), _NAME)
    known = {column.name for column in _COLUMNS} | set(_NO_COUNTERS)
    counters = [name for name in _numbers(path) if name not in known]
    columns = (*_COLUMNS, *(Column(name, "real") for name in counters))
    devices = {row["device"]: row for row in rodinia9_devices()}
    runs = read_runs(path, Schema("rodinia9", 1, columns, key=()), ("duration",), _run_of(devices, counters))
    there = {run.configuration.device for run in runs}
    rows = [row for key, row in devices.items() if key in there]
    return dataset_of(str(path), rows, with_own_sessions(runs), NOTES)


def _numbers(path: Path) -> list[str]:
    """Columns of numbers; none if the file cannot be read, which whoever reads the rows will say."""
    try:
        fields = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return []
    # The index of pandas is a column, and none of the source.
    return [
        field.name
        for field in fields
        if (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
        and not field.name.startswith("__")
    ]


def _run_of(
    devices: Mapping[str, Mapping[str, Any]], counters: list[str]
) -> Callable[[Mapping[str, Any], str], ConfiguredRun]:
    def run(row: Mapping[str, Any], place: str) -> ConfiguredRun:
        device, kernel = row["gpu"].lower(), row["kernel_file"]
        if device not in devices:
            raise InputError(
                f"{place}: column 'gpu': expected one of {', '.join(devices)}, found {row['gpu']!r}"
            )
        if kernel not in _PROGRAMS:
            raise InputError(
                f"{place}: column 'kernel_file': expected one of {', '.join(_PROGRAMS)}, found {kernel!r}"
            )
        counted = {name: float(row[name]) for name in (*_LAUNCH, *counters) if row[name] is not None}
        if device in _IN_KIBIBYTES and _SHARED in counted:
            counted[_SHARED] *= 1024
        return ConfiguredRun(
            application=_PROGRAMS[kernel],
            kernel=kernel,
            size=_size(row),
            configuration=Configuration(device, {}),
            time_s=row["duration"],
            powers=(),
            counters=counted,
        )

    return run


def _size(row: Mapping[str, Any]) -> str:
    """Input, grid and work-group, such as ``512,256 grid 43x43 block 16x16``."""
    inputs = ",".join(str(row[name]) for name in _INPUTS if row[name])
    grid_x, grid_y, block_x, block_y = (row[name] for name in _LAUNCH)
    return f"{inputs or 0} grid {grid_x}x{grid_y} block {block_x}x{block_y}"
