"""Put what was imported into a folder, and say what it is."""

from __future__ import annotations

import json as json_format
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from crosscast.cli.options import Flag, Whole, names_in
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.data.counters.common import Circumstances
    from crosscast.data.dataset import Dataset


def store_dataset(dataset: Dataset, out: Path, replace: bool) -> None:
    """Write a dataset, in the place of another only if it may be replaced."""
    from crosscast.data.sources.source import store

    store(dataset, out, replace=replace)
    counts = f"{dataset.profiles.num_rows:,} profiles, {dataset.records.num_rows:,} records"
    if dataset.bags.num_rows:
        counts = f"{dataset.solos.num_rows:,} solo runs, {dataset.bags.num_rows:,} runs in bags"
    print(f"wrote {out} ({counts})", file=sys.stderr)


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
    from crosscast.data.sources.aiwc import import_aiwc2018

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
    from crosscast.data.sources.aiwc import import_aiwc_folder

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
    from crosscast.data.sources.own import import_own

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
    from crosscast.data.sources.configurations import import_powercap

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
    from crosscast.data.sources.configurations import import_multicore_energy

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
    from crosscast.data.sources.configurations import import_gpu_power_limit

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
    from crosscast.data.sources.configurations import import_gpu_dvfs

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
    from crosscast.data.sources.counted import import_rajaperf

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
    from crosscast.data.sources.counted import import_rodinia9

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
    from crosscast.data.sources.corun import import_gavel_pairs

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
    from crosscast.data.sources.corun import import_lucid

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
    from crosscast.data.sources.corun import import_miso

    store_dataset(import_miso(path), out, replace)


@dataclass(frozen=True)
class _Told:
    """What tools do not tell.

    Parameters
    ----------
    device
        Key of the device or machine that the runs were counted on.
    application
        The program; by default what the profile calls it, or the name of the first file.
    kernel
        Region (Caliper) or kernel (ncu) that is taken, or the name of what was counted; by default the whole
        program.
    size
        Name of the problem size; by default `default`.
    nodes
        Nodes that each run used.
    cores
        Cores that each run used.
    gpu
        The runs used a GPU.
    time
        Seconds that a run took, in the place of what the profile says.
    """

    device: str  # Key of the device or machine that the runs were counted on
    # The program; by default what the profile calls it, or the name of the first file
    application: str | None = None
    # Region (Caliper) or kernel (ncu) that is taken, or the name of what was counted; by default the whole
    # program
    kernel: str | None = None
    size: str | None = None  # Name of the problem size; by default `default`
    nodes: int | None = None  # Nodes that each run used
    cores: int | None = None  # Cores that each run used
    gpu: Flag = False  # The runs used a GPU
    time: float | None = None  # Seconds that a run took, in the place of what the profile says

    def circumstances(self) -> Circumstances:
        """The same, checked."""
        from crosscast.data.counters.common import Circumstances

        return Circumstances(
            device=self.device,
            application=self.application,
            kernel=self.kernel,
            size=self.size,
            nodes=self.nodes,
            cores=self.cores,
            uses_gpu=self.gpu,
            time_s=self.time,
        )


_Runs = Annotated[_Told, Parameter(name="*")]


def hpctoolkit(*profiles: Path, out: Path, told: _Runs, replace: Flag = False) -> None:
    """Import databases of HPCToolkit: counters and time of a run each, of the whole program.

    docs/counters.md says how to make them, and what features their counters give.

    Parameters
    ----------
    profiles
        Folders `hpctoolkit-…-database` of runs of one program, or a folder with such.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.data.counters.importing import import_hpctoolkit

    dataset = import_hpctoolkit(_named(profiles), told.circumstances())
    store_dataset(dataset, out, replace)


def caliper(*profiles: Path, out: Path, told: _Runs, replace: Flag = False) -> None:
    """Import profiles of Caliper: counters and time of a run each.

    docs/counters.md says how to make them, and what features their counters give.

    Parameters
    ----------
    profiles
        Files `.cali` or `.json` (json-split) of runs of one program, or a folder with such.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.data.counters.importing import import_caliper

    store_dataset(import_caliper(_named(profiles), told.circumstances()), out, replace)


def perf(*profiles: Path, out: Path, told: _Runs, replace: Flag = False) -> None:
    """Import what `perf stat -j` of Linux counted: counters and time of a run each.

    docs/counters.md says how to make it, and what features its counters give.

    Parameters
    ----------
    profiles
        Files `.json` of runs of one program, or a folder with such.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.data.counters.importing import import_perf

    store_dataset(import_perf(_named(profiles), told.circumstances()), out, replace)


def ncu(*profiles: Path, out: Path, told: _Runs, replace: Flag = False) -> None:
    """Import what Nsight Compute counted (`ncu --csv`): counters and time of a run each, on a GPU.

    docs/counters.md says how to make it, and what features its counters give.

    Parameters
    ----------
    profiles
        Files `.csv` of runs of one program, or a folder with such.
    out
        Folder of the dataset.
    replace
        Replace another dataset that is there.
    """
    from crosscast.data.counters.importing import import_ncu

    store_dataset(import_ncu(_named(profiles), told.circumstances()), out, replace)


def _named(profiles: tuple[Path, ...]) -> tuple[Path, ...]:
    if not profiles:
        raise InputError("profiles: expected one path or more, found none")
    return profiles
