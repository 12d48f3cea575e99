"""Our own past versions: tables of profiles, and datasets, that an older Crosscast wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crosscast.errors import InputError
from crosscast.profile import Profile
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset, read_dataset
from crosscast.tables.profiles import PROFILES, read_csv, read_parquet, to_row

__all__ = ["import_own"]

_READERS = {".parquet": read_parquet, ".csv": read_csv}


def import_own(path: str | Path, application: str | None = None, size: str | None = None) -> Dataset:
    """Make a dataset of the current version.

    Parameters
    ----------
    path
        Folder of a dataset, or a table of profiles (``.parquet`` or ``.csv``), of any version up to
        the current one.
    application, size
        Of the profiles of a table that do not say theirs.

    Raises
    ------
    InputError
        If there is nothing of that kind, or it is damaged or of a newer version.
    """
    path = Path(path)
    if path.is_dir():
        if application is not None or size is not None:
            raise InputError(f"{path}: --application and --size are for a table of profiles, found a dataset")
        return read_dataset(path)
    if path.suffix not in _READERS:
        raise InputError(
            f"{path}: expected a folder with a dataset, or a table of profiles (.parquet or .csv)"
        )
    profiles = [_placed(profile, application, size) for profile in _READERS[path.suffix](path)]
    return Dataset(str(path), profiles=table_of(PROFILES, map(to_row, profiles)))


def _placed(profile: Profile, application: str | None, size: str | None) -> Profile:
    return replace(profile, application=profile.application or application, size=profile.size or size)
