"""Programs of Altis under caps of the CPUs' and the GPU's power: times and powers of a node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import (
    ConfiguredRun,
    Power,
    dataset_of,
    device_row,
    file_at,
    read_runs,
)
from crosscast.tables.schema import Column, Schema

__all__ = ["import_powercap"]

_NAME = "dual_cap_altis.csv"
_DEVICE = "node"
_NUMBERS = ("cpu_cap_w", "gpu_cap_w", "runtime_s", "cpu_w", "gpu_w", "node_w")

_FILE = Schema(
    "powercap",
    1,
    (
        Column("benchmark", "text", required=True),
        Column("size", "text", required=True),
        *(Column(name, "real", required=True) for name in _NUMBERS),
        Column("n", "integer", required=True, least=1),
    ),
    key=(),
)

_ORIGIN = (
    "github.com/zzheng33/power (no licence stated: not for passing on), GPGPU/data/altis_power_cap_res, "
    "dual_cap_big and dual_cap_small: programs of Altis under caps of the power of the CPUs and of the GPU."
)

_NOTES = {
    "devices": {"origin": _ORIGIN},
    "records": {
        "origin": _ORIGIN,
        "times": (
            "Time of the whole program, start and data transfers included: the mean of the column n of the "
            "source (1 to 4 runs, in the column runs of the sessions). The column suite, altis throughout, "
            "was left out."
        ),
        "few runs": (
            "n is 1 in 19 of 2,430 rows. There, the origin has further runs with a negative energy of the "
            "CPUs, whose counter had started again at 0 (looked up for bfs, big); they are in no mean."
        ),
        "caps that bind nothing": (
            "The GPU's cap binds few programs: cfd_double, fdtd2d, kmeans, maxflops, raytracing and "
            "particlefilter_float. The others have 9 near-repeats for each cap of the CPU. No program draws "
            "over 96 W of the CPUs, so that the CPU's caps of 110 and 120 W differ little."
        ),
        "noise": (
            "Neighbours that no cap tells apart mostly differ by 1 %, but single cells are off by far: of "
            "270 pairs of CPU caps of 110 and 120 W, 10 of maxflops differ by 12 to 58 %; busspeeddownload "
            "jumps by up to 60 %, bfs by up to 24 % from one GPU cap to the next."
        ),
        "near-duplicates": (
            "cfd and cfd_double, particlefilter_float and particlefilter_naive, busspeeddownload and "
            "busspeedreadback are variants of one program each. big and small of the two busspeed programs "
            "are alike, and maxflops, cfd_double take longer with small than with big."
        ),
    },
    "energy": {
        "origin": _ORIGIN,
        "energy": (
            "Mean power times mean time: cpu of the CPUs' packages (RAPL), gpu as nvidia-smi has it, node "
            "their sum, as the source has it. The memory and the rest of the node are not in it. The GPU's "
            "mean power is up to 1.3 % above its cap, the CPUs' never above theirs."
        ),
    },
    "sessions": {"origin": _ORIGIN},
}


def import_powercap(path: str | Path) -> Dataset:
    """Make a dataset of runs under two power caps.

    Parameters
    ----------
    path
        The file, or a folder with ``dual_cap_altis.csv``.

    Raises
    ------
    InputError
        If the file or a column is missing, a cell holds what it must not, or two rows are of the same
        program, size and caps. The message names file, column and row.
    """
    path = Path(path)
    runs = read_runs(file_at(path, _NAME), _FILE, _NUMBERS, _run)
    devices = [device_row(_DEVICE, _ORIGIN, name="node with CPUs and a GPU", type="node")]
    return dataset_of(str(path), devices, runs, _NOTES)


def _run(row: Mapping[str, Any], _place: str) -> ConfiguredRun:
    caps = {name: row[name] for name in ("cpu_cap_w", "gpu_cap_w")}
    return ConfiguredRun(
        application=row["benchmark"],
        kernel=row["benchmark"],
        size=row["size"],
        configuration=Configuration(_DEVICE, caps),
        time_s=row["runtime_s"],
        powers=(
            Power("rapl", "cpu", row["cpu_w"]),
            Power("nvidia-smi", "gpu", row["gpu_w"]),
            Power("sum", "node", row["node_w"]),
        ),
        runs=row["n"],
    )
