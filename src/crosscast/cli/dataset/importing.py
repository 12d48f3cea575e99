"""``crosscast dataset import``: others' formats, and our own past versions, into a dataset."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.flag import Flag

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["aiwc", "aiwc2018", "crosscast_format"]


def aiwc2018(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import the published data of 2018: profiles, kernel times on 15 devices, energy.

    Where to fetch it: github.com/BeauJoh/opencl-predictions-with-aiwc.

    Parameters
    ----------
    path
        Folder with `features_all_invocations.parquet`, `runtimes.parquet` and, if energy is wanted,
        `energy_joules.csv`.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.aiwc2018.dataset import import_aiwc2018

    _store(import_aiwc2018(path), out, replace)


def aiwc(
    path: Path,
    /,
    *,
    out: Path,
    application: str | None = None,
    size: str | None = None,
    replace: Flag = False,
) -> None:
    """Import a folder of the published AIWC tool's files `aiwc_<kernel>_<n>.csv`: profiles.

    Parameters
    ----------
    path
        Folder with the files, or with folders `<application>/<size>/` that hold them.
    out
        Folder of the dataset.
    application
        Application of files that are in no such folder; by default the folder's name.
    size
        Problem size of these files; by default `unknown`.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.aiwc_folder import import_aiwc_folder

    _store(import_aiwc_folder(path, application, size), out, replace)


def crosscast_format(
    path: Path,
    /,
    *,
    out: Path,
    application: str | None = None,
    size: str | None = None,
    replace: Flag = False,
) -> None:
    """Import what an older Crosscast wrote: a dataset, or a table of profiles.

    Parameters
    ----------
    path
        Folder of a dataset, or a file that `characterize` wrote (`.parquet` or `.csv`).
    out
        Folder of the dataset.
    application
        Application of profiles that do not say theirs.
    size
        Problem size of profiles that do not say theirs.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.own import import_own

    _store(import_own(path, application, size), out, replace)


def _store(dataset: Dataset, out: Path, replace: bool) -> None:
    from crosscast.tables.importers.storing import store

    store(dataset, out, replace=replace)
    counts = f"{dataset.profiles.num_rows:,} profiles, {dataset.records.num_rows:,} records"
    print(f"wrote {out} ({counts})", file=sys.stderr)
