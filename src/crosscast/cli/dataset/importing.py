"""``crosscast dataset import``: others' formats, and our own past versions, into a dataset."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.dataset.storing import store_dataset
from crosscast.cli.options import Flag, Whole, names_in

if TYPE_CHECKING:
    pass

__all__ = [
    "aiwc",
    "aiwc2018",
    "crosscast_format",
    "gpu_dvfs",
    "gpu_power_limit",
    "multicore_energy",
    "powercap",
    "rajaperf",
    "rodinia9",
    "runs",
]


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

    store_dataset(import_aiwc2018(path), out, replace)


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

    store_dataset(import_aiwc_folder(path, application, size), out, replace)


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

    store_dataset(import_own(path, application, size), out, replace)


def powercap(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import programs of Altis under caps of the CPUs' and the GPU's power: times, powers.

    Where they are from: github.com/zzheng33/power. docs/importing.md has the columns.

    Parameters
    ----------
    path
        The file, or a folder with `dual_cap_altis.csv`.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.powercap import import_powercap

    store_dataset(import_powercap(path), out, replace)


def multicore_energy(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import programs on the cores of seven multicore systems: times, powers.

    Where they are from: github.com/dloghin/multicores-time-energy. docs/importing.md has the columns.

    Parameters
    ----------
    path
        The file, or a folder with `loghin.csv`.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.multicore_energy import import_multicore_energy

    store_dataset(import_multicore_energy(path), out, replace)


def gpu_power_limit(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import the training of neural networks under power limits of GPUs: times of an epoch, powers.

    Where to fetch it: github.com/ml-energy/zeus.

    Parameters
    ----------
    path
        A file `zeus_<gpu>.csv` or `summary_power_<gpu>.csv`, or a folder with some.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.gpu_power_limit import import_gpu_power_limit

    store_dataset(import_gpu_power_limit(path), out, replace)


def gpu_dvfs(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import programs at clocks of two GPUs: times, powers, counters of one of the GPUs.

    Where they are from: github.com/HKBU-HPML/GPU-DVFS-Job-Schedule and
    github.com/hpc-ulisboa/gpuPTXModel. docs/importing.md has the columns.

    Parameters
    ----------
    path
        `gtx1080ti.csv` or `titanx.csv`, or a folder with one or both.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.gpu_dvfs import import_gpu_dvfs

    store_dataset(import_gpu_dvfs(path), out, replace)


def rajaperf(
    path: Path,
    /,
    *,
    out: Path,
    cores: Whole | None = None,
    block_size: Whole = 256,
    replace: Flag = False,
) -> None:
    """Import kernels of the RAJA Performance Suite on a CPU and a GPU: times, counters of the CPU.

    Where they are from: github.com/LLNL/thicket-tutorial. docs/importing.md has the columns.

    Parameters
    ----------
    path
        The file, or a folder with `rajaperf.csv.gz`.
    out
        Folder of the dataset.
    cores
        Divide the CPU's times, which are those of one core, by this number: a node that scales ideally,
        stated and not measured. By default they stay as measured.
    block_size
        Threads of a block on the GPU; runs with another number are left out.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.rajaperf import import_rajaperf

    store_dataset(import_rajaperf(path, cores=cores, block_size=block_size), out, replace)


def rodinia9(path: Path, /, *, out: Path, replace: Flag = False) -> None:
    """Import kernels of Rodinia on nine GPUs: times of a launch, and counters of each GPU.

    Where they are from: github.com/marcosamaris/gpuperfpredict. docs/importing.md has the columns.

    Parameters
    ----------
    path
        The file, or a folder with `rodinia_9gpu.parquet`.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.tables.importers.rodinia9 import import_rodinia9

    store_dataset(import_rodinia9(path), out, replace)


def runs(path: Path, /, *, out: Path, settings: str | None = None, replace: Flag = False) -> None:
    """Import runs of your own over the configurations of a machine: times, powers, counters.

    What `crosscast train configuration` learns from. docs/importing.md has the columns.

    Parameters
    ----------
    path
        A CSV file with a row for each run, a history of `crosscast.profiled`, or a folder with such files.
    out
        Folder of the dataset.
    settings
        Columns of a CSV file, separated by commas, that say what a run was set to; by default those that are
        called as settings are, such as `gpu_cap_w`, `core_clock_hz` and `threads`.
    replace
        Replace another dataset that is there.
    """
    from crosscast.measure.imported_runs import import_runs

    imported = import_runs(path, None if settings is None else names_in("--settings", settings))
    for note in imported.notes:
        print(note, file=sys.stderr)
    if not any(map(json_format.loads, imported.dataset.records.column("configuration").unique().to_pylist())):
        print(
            f"crosscast: warning: {path}: no run has a setting, so that models can choose devices only; name "
            "the columns that are settings with --settings",
            file=sys.stderr,
        )
    store_dataset(imported.dataset, out, replace)
