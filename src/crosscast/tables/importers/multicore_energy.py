"""Programs on the cores of seven multicore systems, big.LITTLE among them: times and powers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosscast.configuration import Configuration, Setting
from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.importers.configured_runs import (
    DEFAULT_SIZE,
    ConfiguredRun,
    Power,
    dataset_of,
    device_row,
    file_at,
    read_runs,
)
from crosscast.tables.schema import Column, Schema

__all__ = ["import_multicore_energy"]

_NAME = "loghin.csv"
_MODE = re.compile(r"(static|dynamic)/(all|big|little)_cores")

_FILE = Schema(
    "multicore_energy",
    1,
    (
        Column("system", "text", required=True),
        Column("mode", "text"),
        Column("app", "text", required=True),
        Column("cores", "integer", required=True, least=1),
        Column("time_s", "real", required=True),
        Column("avg_power_w", "real", required=True),
    ),
    key=(),
)

_ORIGIN = (
    "github.com/dloghin/multicores-time-energy (CC BY 4.0; cite D. Loghin, Y. M. Teo: The Time and Energy "
    "Efficiency of Modern Multicore Systems, https://doi.org/10.1016/j.parco.2019.04.009)."
)

_SYSTEMS: dict[str, dict[str, Any]] = {
    "amd": {"name": "system with 48-core AMD Opteron CPU", "vendor": "AMD", "cores": 48},
    "arm": {"name": "system with 48-core ARM Cavium ThunderX CPU", "vendor": "Cavium", "cores": 48},
    "i7": {"name": "system with Intel Core i7 CPU", "vendor": "Intel"},
    "pi3": {"name": "Raspberry Pi 3"},
    "tx2": {"name": "Jetson TX2"},
    "xeon": {"name": "server with Intel Xeon E5-2630 v4 CPU", "vendor": "Intel"},
    "xu3": {"name": "Odroid XU3"},
}
"""What the origin's files scripts/conf-*.sh say."""

_NOTES = {
    "devices": {"origin": _ORIGIN},
    "records": {
        "origin": _ORIGIN,
        "left out": (
            "procs is 1 throughout. freq_ghz is one number for each system (on tx2 and xu3 not that of all "
            "their cores). energy_wh and energy_j: see the note on energy."
        ),
        "same configurations": (
            "On xu3, static scheduling on all cores starts with the big ones: with 1 to 4 cores it is the "
            "same as on the big cores, and times differ by at most 4 %. On tx2 the same holds for 1 and 2 "
            "cores, but pf has the times of the little cores, and lv lies between."
        ),
        "not monotone": (
            "On xu3 with static scheduling, 5 cores take 1.4 to 2.3 times as long as 4 (pf: 1.07): the fifth "
            "is a little one. With dynamic scheduling, that holds for bt (2.0) and sp (1.4)."
        ),
        "programs": "cl, fe and gh were run on i7, pi3 and xeon only; the other seven on all systems.",
    },
    "energy": {
        "origin": _ORIGIN,
        "energy": (
            "Mean power (avg_power_w) times time, of the whole system, not the source's energy. That is "
            "coarse (steps of 0.1 Wh on amd and i7: 0 for pf on i7 with 5 and 7 cores), 100 times too small "
            "in all 168 rows of xu3 and in 36 of tx2 (on one kind of cores, but for pf), and up to 46 % off "
            "elsewhere."
        ),
        "meter": "The origin's page does not name what measured; its columns are those of a power meter.",
    },
    "sessions": {"origin": _ORIGIN},
}


def import_multicore_energy(path: str | Path) -> Dataset:
    """Make a dataset of runs on numbers of cores.

    Parameters
    ----------
    path
        The file, or a folder with ``loghin.csv``.

    Raises
    ------
    InputError
        If the file or a column is missing, a cell holds what it must not, a system or mode is not known,
        or two rows are of the same program and configuration. The message names file, column and row.
    """
    path = Path(path)
    runs = read_runs(file_at(path, _NAME), _FILE, ("time_s", "avg_power_w"), _run)
    there = {run.configuration.device for run in runs}
    devices = [
        device_row(system, f"{_ORIGIN} scripts/conf-{system}.sh", type="cpu", **facts)
        for system, facts in _SYSTEMS.items()
        if system in there
    ]
    return dataset_of(str(path), devices, runs, _NOTES)


def _run(row: Mapping[str, Any], place: str) -> ConfiguredRun:
    if row["system"] not in _SYSTEMS:
        raise InputError(
            f"{place}: column 'system': expected one of {', '.join(_SYSTEMS)}, found {row['system']!r}"
        )
    return ConfiguredRun(
        application=row["app"],
        kernel=row["app"],
        size=DEFAULT_SIZE,
        configuration=Configuration(row["system"], _settings(row, place)),
        time_s=row["time_s"],
        powers=(Power("meter", "node", row["avg_power_w"]),),
    )


def _settings(row: Mapping[str, Any], place: str) -> dict[str, Setting]:
    if row["mode"] is None:
        return {"cores": row["cores"]}
    mode = _MODE.fullmatch(row["mode"])
    if mode is None:
        expected = "static or dynamic, then /all_cores, /big_cores or /little_cores"
        raise InputError(f"{place}: column 'mode': expected {expected}, found {row['mode']!r}")
    return {"cores": row["cores"], "scheduling": mode[1], "cluster": mode[2]}
