"""``crosscast dataset import``: others' data of applications that share a device, into a dataset."""

from __future__ import annotations

from pathlib import Path

from crosscast.cli.dataset.storing import store_dataset
from crosscast.cli.options import Flag

__all__ = ["gavel_pairs", "lucid", "miso"]


def gavel_pairs(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import training jobs alone and in pairs on K80, P100 and V100: times, slowdowns, what fits.

    Where they are from: github.com/stanford-futuredata/gavel. docs/importing.md has the columns.

    Parameters
    ----------
    path
        Folder with `gavel_standalone.csv` and `gavel_pairs.csv.gz`.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.gavel_pairs import import_gavel_pairs

    store_dataset(import_gavel_pairs(path), out, replace)


def lucid(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import training jobs alone and in pairs on a GPU: speeds, utilisation, slowdowns.

    Where they are from: github.com/S-Lab-System-Group/Lucid. docs/importing.md has the columns.

    Parameters
    ----------
    path
        Folder with `lucid_single.csv` and `lucid_pairs.csv`.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.lucid import import_lucid

    store_dataset(import_lucid(path), out, replace)


def miso(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import mixes of seven training jobs on an A100: relative times under MPS and on its parts.

    Where they are from: github.com/boringlee24/socc22-miso. docs/importing.md has the arrays.

    Parameters
    ----------
    path
        The file, or a folder with `miso_mps_mig.npz`.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.miso import import_miso

    store_dataset(import_miso(path), out, replace)
