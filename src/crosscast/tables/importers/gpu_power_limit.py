"""Training of neural networks under limits of a GPU's power: time of an epoch, and power."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import (
    ConfiguredRun,
    Power,
    dataset_of,
    device_row,
    read_runs,
)
from crosscast.tables.schema import Column, Schema

__all__ = ["import_gpu_power_limit"]

_FILE_NAME = re.compile(r"(?:zeus|summary_power)_(?P<device>[a-z0-9]+)\.csv")
_EXPECTED = "zeus_<gpu>.csv or summary_power_<gpu>.csv, such as zeus_v100.csv"

_FILE = Schema(
    "gpu_power_limit",
    1,
    (
        *(Column(name, "text", required=True) for name in ("dataset", "network", "optimizer")),
        Column("batch_size", "integer", required=True, least=1),
        *(Column(name, "real", required=True) for name in ("power_limit", "time_per_epoch", "average_power")),
    ),
    key=(),
)

_ORIGIN = (
    "Power traces of Zeus (github.com/ml-energy/zeus, Apache-2.0, "
    "examples/research_reproducibility/zeus_nsdi23/trace)."
)

_NOTES = {
    "devices": {"origin": _ORIGIN},
    "records": {
        "origin": _ORIGIN,
        "times": "Time of one epoch, measured once. The application is the network.",
        "sizes": (
            "A size is the data set, b and the batch size, and the optimizer. GPUs have unlike batch sizes; "
            "only v100 has shufflenetv2 with adam."
        ),
        "gaps": (
            "On a40, the six sizes of sentiment140 have no limits of 125, 175, 225 and 275 W. On rtx6000, "
            "ncf with batch size 4 has 250 and 260 W only."
        ),
        "noise": (
            "Times of ncf, and of shufflenetv2 with small batches, go up and down by 10 to 20 % from limit "
            "to limit: the limit does not bind them, so they are near-repeats of one run."
        ),
    },
    "energy": {
        "origin": _ORIGIN,
        "energy": (
            "Mean power of the GPU (NVML) times the time of an epoch. On a40, power is up to 21 % above the "
            "limit (39 of 453 rows), on v100 up to 2 % (8 of 476); on rtx6000 never."
        ),
    },
    "sessions": {"origin": _ORIGIN},
}


def import_gpu_power_limit(path: str | Path) -> Dataset:
    """Make a dataset of epochs under power limits.

    Parameters
    ----------
    path
        A file ``zeus_<gpu>.csv`` (the origin's name: ``summary_power_<gpu>.csv``), or a folder with one or
        more of them.

    Raises
    ------
    InputError
        If there is no such file, a column is missing, a cell holds what it must not, or two rows are of
        the same job and limit. The message names file, column and row.
    """
    path = Path(path)
    files = _files(path)
    runs = [
        run
        for device, file in files.items()
        for run in read_runs(
            file, _FILE, ("power_limit", "time_per_epoch", "average_power"), partial(_run, device)
        )
    ]
    devices = [
        device_row(device, _ORIGIN, name=device.upper(), vendor="NVIDIA", type="gpu") for device in files
    ]
    return dataset_of(str(path), devices, runs, _NOTES)


def _files(path: Path) -> dict[str, Path]:
    """Files by device, in the order of their names."""
    found: dict[str, Path] = {}
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
    except OSError as error:
        raise InputError(f"{path}: cannot list the folder ({error.strerror})") from error
    for file in files:
        name = _FILE_NAME.fullmatch(file.name)
        if name is None:
            continue
        if name["device"] in found:
            raise InputError(
                f"{path}: expected one file of a GPU, found {found[name['device']].name} and {file.name}"
            )
        found[name["device"]] = file
    if not found:
        raise InputError(f"{path}: expected a file {_EXPECTED}, or a folder with some, found none")
    return found


def _run(device: str, row: Mapping[str, Any], _place: str) -> ConfiguredRun:
    return ConfiguredRun(
        application=row["network"],
        kernel=row["network"],
        size=f"{row['dataset']} b{row['batch_size']} {row['optimizer']}",
        configuration=Configuration(device, {"power_cap_w": row["power_limit"]}),
        time_s=row["time_per_epoch"],
        powers=(Power("nvml", "gpu", row["average_power"]),),
    )
