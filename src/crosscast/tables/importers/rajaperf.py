"""Kernels of the RAJA Performance Suite on a Xeon, with top-down counters, and on a V100."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration, Setting
from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import (
    ConfiguredRun,
    dataset_of,
    device_row,
    file_at,
    read_runs,
    with_own_sessions,
)
from crosscast.tables.importers.rajaperf_notes import SYSTEMS, V100, notes_of
from crosscast.tables.schema import Column, Schema

__all__ = ["DEFAULT_BLOCK_SIZE", "import_rajaperf"]

DEFAULT_BLOCK_SIZE = 256
"""Threads of a block in the runs on the GPU that are imported."""

_NAME = "rajaperf.csv.gz"
_CPU, _GPU = "quartz", "lassen"
_LEVEL = re.compile(r"[/_](O[0-3s]|Ofast)[/_]")
_ANALYTIC = ("Bytes/Rep", "Flops/Rep", "Iterations/Rep", "Kernels/Rep", "ProblemSize", "Reps")
_TOPDOWN = tuple(
    f"topdown.{name}"
    for name in (
        *("retiring", "frontend_bound", "backend_bound", "bad_speculation", "branch_mispredict"),
        *("machine_clears", "frontend_latency", "frontend_bandwidth", "memory_bound", "core_bound"),
        *("ext_mem_bound", "l1_bound", "l2_bound", "l3_bound"),
    )
)

_FILE = Schema(
    "rajaperf",
    1,
    (
        *(Column(name, "text", required=True) for name in ("file", "cluster", "compiler", "group", "kernel")),
        Column("size", "integer", required=True, least=1),
        Column("BlockSize", "real"),
        *(Column(name, "real", required=True, least=0) for name in _ANALYTIC),
        *(Column(name, "real") for name in _TOPDOWN),
        Column("time_s", "real", required=True),
    ),
    key=(),
)


def import_rajaperf(
    path: str | Path, *, cores: int | None = None, block_size: int = DEFAULT_BLOCK_SIZE
) -> Dataset:
    """Make a dataset of runs on a CPU, with counters, and on a GPU, without.

    Parameters
    ----------
    path
        The file, packed or not, or a folder with ``rajaperf.csv.gz``.
    cores
        Divide the CPU's times, which are those of one core, by this number: a stated node that scales
        ideally, not a measured one. By default the times are as measured.
    block_size
        Threads of a block on the GPU; runs with another number are left out.

    Raises
    ------
    InputError
        If the file or a column is missing, a cell holds what it must not, a cluster is not known, two rows
        are of the same kernel and run, no run on the GPU has the block size, or `cores` is below 1. The
        message names file, column and row.
    """
    path = Path(path)
    if cores is not None and cores < 1:
        raise InputError(f"cores: expected at least 1, found {cores}")
    blocks: set[float] = set()
    runs = read_runs(file_at(path, _NAME), _FILE, ("time_s", "Reps"), _run_of(cores or 1, block_size, blocks))
    if blocks and block_size not in blocks:
        sizes = ", ".join(f"{size:g}" for size in sorted(blocks))
        raise InputError(f"{path}: column 'BlockSize': expected runs with {block_size}, found {sizes}")
    there = {run.configuration.device for run in runs}
    devices = [row for row in _devices(cores) if row["device"] in there]
    return dataset_of(str(path), devices, with_own_sessions(runs), notes_of(cores, block_size))


def _devices(cores: int | None) -> list[dict[str, Any]]:
    core = "a core of a Xeon E5-2695 v4"
    cpu = device_row(
        _CPU,
        SYSTEMS,
        name=core if cores is None else f"{cores} cores, as {core} / {cores}",
        vendor="Intel",
        type="cpu",
        series="Broadwell",
        cores=cores or 1,
        clock_hz=2.1e9,
    )
    gpu = device_row(_GPU, SYSTEMS, name="Tesla V100", vendor="NVIDIA", type="gpu")
    facts = {"series": "Volta", "compute_units": 80, "cores": 5120, "l2_bytes": 6144 * 1024}
    gpu |= facts
    gpu["sources"] |= dict.fromkeys(facts, V100)
    return [cpu, gpu]


def _run_of(
    cores: int, block_size: int, blocks: set[float]
) -> Callable[[Mapping[str, Any], str], ConfiguredRun | None]:
    """Makes a run of a row; the block sizes that it meets are put into `blocks`."""
    files: dict[tuple[str, Configuration], list[str]] = {}

    def run(row: Mapping[str, Any], place: str) -> ConfiguredRun | None:
        if row["cluster"] not in (_CPU, _GPU):
            raise InputError(
                f"{place}: column 'cluster': expected one of {_CPU}, {_GPU}, found {row['cluster']!r}"
            )
        is_cpu = row["cluster"] == _CPU
        if not is_cpu:
            if row["BlockSize"] is None:
                raise InputError(f"{place}: column 'BlockSize': expected a number on {_GPU}, found none")
            blocks.add(row["BlockSize"])
            if row["BlockSize"] != block_size:
                return None
        settings = _cpu_settings(row, place) if is_cpu else {"block_size": row["BlockSize"]}
        configuration = Configuration(row["cluster"], settings)
        size = str(row["size"])
        # A file is a process: those of one size and configuration are repeats.
        repeats = files.setdefault((size, configuration), [])
        if row["file"] not in repeats:
            repeats.append(row["file"])
        time_s = row["time_s"] / row["Reps"]
        counted = (*_ANALYTIC, *_TOPDOWN) if is_cpu else ()
        return ConfiguredRun(
            application=row["group"],
            kernel=row["kernel"],
            size=size,
            configuration=configuration,
            time_s=time_s / cores if is_cpu else time_s,
            powers=(),
            counters={name: row[name] for name in counted if row[name] is not None},
            repeat=repeats.index(row["file"]),
        )

    return run


def _cpu_settings(row: Mapping[str, Any], place: str) -> dict[str, Setting]:
    level = _LEVEL.search(row["file"])
    if level is None:
        raise InputError(
            f"{place}: column 'file': expected a path with the level of optimisation, such as _O3_, "
            f"found {row['file']!r}"
        )
    return {"compiler": row["compiler"], "optimisation": level[1]}
