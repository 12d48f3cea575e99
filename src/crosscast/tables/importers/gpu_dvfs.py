"""Programs at clocks of a GPU's cores and memory: times, powers, and counters of one of the GPUs."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import (
    DEFAULT_SIZE,
    ConfiguredRun,
    Power,
    dataset_of,
    device_row,
    read_runs,
)
from crosscast.tables.importers.gpu_dvfs_notes import GTX1080TI_ORIGIN, TITANX_ORIGIN, notes_of_files
from crosscast.tables.schema import Column, Schema
from crosscast.units import megahertz, milliseconds

__all__ = ["import_gpu_dvfs"]

_FILES = {"gtx1080ti.csv": "gtx1080ti", "titanx.csv": "titanx"}

_GTX1080TI = (
    *(Column(name, "text", required=True) for name in ("appName", "kernel")),
    *(Column(name, "real", required=True) for name in ("coreF", "memF", "time/ms", "power/W")),
)
_NO_COUNTERS = ("", "Unnamed: 0", "argNo", "blocks")

_TITANX = (
    Column("kernel", "text", required=True),
    *(Column(name, "real", required=True) for name in ("mem_mhz", "core_mhz", "time_ms", "power_w")),
)
_TWO_SERIES = "stencil2d"
_SECOND_SERIES = "second series"

_DEVICES = {
    "gtx1080ti": device_row("gtx1080ti", GTX1080TI_ORIGIN, name="GTX 1080 Ti", vendor="NVIDIA", type="gpu"),
    "titanx": device_row(
        "titanx", TITANX_ORIGIN, name="GTX Titan X", vendor="NVIDIA", type="gpu", series="Maxwell"
    ),
}


def import_gpu_dvfs(path: str | Path) -> Dataset:
    """Make a dataset of runs at a GPU's clocks.

    Parameters
    ----------
    path
        ``gtx1080ti.csv`` or ``titanx.csv``, or a folder with one or both.

    Raises
    ------
    InputError
        If there is no such file, a column is missing, a cell holds what it must not, or two rows are of
        the same kernel and clocks. The message names file, column and row.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    files = {
        device: folder / name
        for name, device in _FILES.items()
        if ((folder / name).exists() if path.is_dir() else path.name == name)
    }
    if not files:
        raise InputError(f"{path}: expected {' or '.join(_FILES)}, or a folder with one of them, found none")
    readers = {"gtx1080ti": _gtx1080ti, "titanx": _titanx}
    runs = [run for device, file in files.items() for run in readers[device](file)]
    return dataset_of(str(path), [_DEVICES[device] for device in files], runs, notes_of_files(files))


def _gtx1080ti(path: Path) -> list[ConfiguredRun]:
    others = {column.name for column in _GTX1080TI} | set(_NO_COUNTERS)
    counters = [name for name in _header(path) if name not in others]
    columns = (*_GTX1080TI, *(Column(name, "real") for name in counters))

    def run(row: Mapping[str, Any], _place: str) -> ConfiguredRun:
        return ConfiguredRun(
            application=row["appName"],
            kernel=row["kernel"],
            size=DEFAULT_SIZE,
            configuration=_configuration("gtx1080ti", row["coreF"], row["memF"]),
            time_s=milliseconds(row["time/ms"]),
            powers=(Power("published", "gpu", row["power/W"]),),
            counters={name: row[name] for name in counters if row[name] is not None},
        )

    return read_runs(
        path, Schema("gtx1080ti", 1, columns, key=()), ("coreF", "memF", "time/ms", "power/W"), run
    )


def _header(path: Path) -> list[str]:
    """Names of the columns; none if the file cannot be read, which whoever reads the rows will say."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(dict.fromkeys(next(csv.reader(stream), [])))
    except (OSError, UnicodeDecodeError, csv.Error):
        return []


def _titanx(path: Path) -> list[ConfiguredRun]:
    return read_runs(
        path,
        Schema("titanx", 1, _TITANX, key=()),
        ("mem_mhz", "core_mhz", "time_ms", "power_w"),
        _titanx_run(),
    )


def _titanx_run() -> Callable[[Mapping[str, Any], str], ConfiguredRun]:
    seen: defaultdict[Configuration, int] = defaultdict(int)

    def run(row: Mapping[str, Any], _place: str) -> ConfiguredRun:
        configuration = _configuration("titanx", row["core_mhz"], row["mem_mhz"])
        size = DEFAULT_SIZE
        if row["kernel"] == _TWO_SERIES:
            seen[configuration] += 1
            size = DEFAULT_SIZE if seen[configuration] == 1 else _SECOND_SERIES
        return ConfiguredRun(
            application=row["kernel"],
            kernel=row["kernel"],
            size=size,
            configuration=configuration,
            time_s=milliseconds(row["time_ms"]),
            powers=(Power("published", "gpu", row["power_w"]),),
        )

    return run


def _configuration(device: str, core_mhz: float, memory_mhz: float) -> Configuration:
    clocks = {"core_clock_hz": megahertz(core_mhz), "memory_clock_hz": megahertz(memory_mhz)}
    return Configuration(device, clocks)
