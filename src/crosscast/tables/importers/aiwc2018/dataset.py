"""The published data as a dataset."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.energy import ENERGY
from crosscast.tables.importers.aiwc2018 import notes
from crosscast.tables.importers.aiwc2018.energy import energy_rows
from crosscast.tables.importers.aiwc2018.files import ENERGY_FILE, FEATURES_FILE, RUNTIMES_FILE
from crosscast.tables.importers.aiwc2018.profiles import is_stray, profile_row
from crosscast.tables.importers.aiwc2018.records import record_rows, session_rows
from crosscast.tables.importers.source_file import read_source
from crosscast.tables.profiles import PROFILES
from crosscast.tables.published_devices import published_devices
from crosscast.tables.records import RECORDS
from crosscast.tables.sessions import SESSIONS

__all__ = ["import_aiwc2018"]

_FEATURES = "features_all_invocations.parquet"
_RUNTIMES = "runtimes.parquet"
_ENERGY = "energy_joules.csv"


def import_aiwc2018(folder: str | Path) -> Dataset:
    """Make a dataset of the published data.

    Parameters
    ----------
    folder
        Where ``features_all_invocations.parquet`` and ``runtimes.parquet`` are, and
        ``energy_joules.csv`` if energy is wanted.

    Raises
    ------
    InputError
        If a file or column is missing, or a cell holds what it must not. The message names file,
        column and row.
    """
    folder = Path(folder)
    features, runtimes, energy = folder / _FEATURES, folder / _RUNTIMES, folder / _ENERGY
    profiles = [
        profile_row(row, features, number)
        for number, row in enumerate(read_source(features, FEATURES_FILE), start=1)
        if not is_stray(row)
    ]
    invocations = Counter((row["application"], row["kernel"], row["size"]) for row in profiles)
    runs = read_source(runtimes, RUNTIMES_FILE)
    devices = published_devices()
    known = {row["device"] for row in devices}
    for number, run in enumerate(runs, start=1):
        if run["device"] not in known:
            raise InputError(
                f"{runtimes}: column 'device', row {number}: expected one of {', '.join(sorted(known))}, "
                f"found {run['device']}"
            )
    watched = energy_rows(read_source(energy, ENERGY_FILE), energy) if energy.exists() else ()
    return Dataset(
        str(folder),
        devices=table_of(DEVICES, devices, notes.DEVICE_NOTES),
        profiles=table_of(PROFILES, profiles, notes.PROFILE_NOTES),
        records=table_of(RECORDS, record_rows(runs, invocations), notes.RECORD_NOTES),
        energy=table_of(ENERGY, watched, notes.ENERGY_NOTES),
        sessions=table_of(SESSIONS, session_rows(runs), notes.SESSION_NOTES),
    )
