"""Energy of the published data: one row for each application, or kernel of it, and run that was watched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crosscast.errors import InputError

__all__ = ["energy_rows"]

_SENSORS = {"i7-6700k": ("rapl", "package-0/core"), "gtx1080": ("nvml", "gpu")}
"""Sensor and domain on each device, as our own sensors name them."""

_ONLY_KERNELS = {"kmeans": "kmeansPoint", "dwt": "cl_fdwt53Kernel"}
"""Applications of which the source watched one kernel alone."""


def energy_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> Iterator[dict[str, Any]]:
    """Rows of the table of energy.

    Parameters
    ----------
    rows
        Rows of the source.
    path
        Its file, for messages.

    Raises
    ------
    InputError
        If a device is not one of those whose energy was measured.
    """
    for number, row in enumerate(rows, start=1):
        device = row["device"]
        if device not in _SENSORS:
            raise InputError(
                f"{path}: column 'device', row {number}: expected {' or '.join(_SENSORS)}, found {device}"
            )
        sensor, domain = _SENSORS[device]
        yield {
            "application": row["application"],
            "kernel": _ONLY_KERNELS.get(row["application"]),
            "size": row["size"],
            "device": device,
            "configuration": "{}",
            "repeat": 0,
            "run": row["run"] - 1,
            "sensor": sensor,
            "domain": domain,
            "energy_j": row["energy"],
            "runs": 1,
        }
