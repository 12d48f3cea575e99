"""Where datasets are imported from, by name; what reads one is loaded when it is used."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.data.dataset import Dataset


@dataclass(frozen=True)
class Option:
    """What one importer alone has to be told."""

    name: str
    type: type[int | str]
    help: str
    default: int | str | None = None


@dataclass(frozen=True)
class Importer:
    """What makes a dataset of a path."""

    name: str
    function: str  # Its module in this folder and its name there: a `Source`, or a function
    help: str  # What is imported, and where it is from
    path: str  # What the path is
    options: tuple[Option, ...] = ()

    def __call__(self, path: str | Path, **options: Any) -> Dataset:
        """Make a dataset."""
        module, _, name = self.function.partition(":")
        found: Dataset = getattr(import_module(f"{__package__}.{module}"), name)(path, **options)
        return found


IMPORTERS: dict[str, Importer] = {
    importer.name: importer
    for importer in (
        Importer(
            "aiwc2018",
            "aiwc:AIWC2018",
            "Import the published data of 2018: profiles, kernel times on 15 devices, energy.\n\n"
            "Where to fetch it: github.com/BeauJoh/opencl-predictions-with-aiwc.",
            (
                "Folder with `features_all_invocations.parquet`, `runtimes.parquet` and, if energy is "
                "wanted, `energy_joules.csv`."
            ),
        ),
        Importer(
            "aiwc",
            "aiwc:import_aiwc_folder",
            "Import a folder of the published AIWC tool's files `aiwc_<kernel>_<n>.csv`: profiles.",
            "Folder with the files, or with folders `<application>/<size>/` that hold them.",
            (
                Option(
                    "application",
                    str,
                    "Application of files that are in no such folder; by default the folder's name.",
                ),
                Option("size", str, "Problem size of these files; by default `unknown`."),
            ),
        ),
        Importer(
            "crosscast",
            "own:import_own",
            "Import what an older Crosscast wrote: a dataset, or a table of profiles.",
            "Folder of a dataset, or a file that `characterize` wrote (`.parquet` or `.csv`).",
            (
                Option("application", str, "Application of profiles that do not say theirs."),
                Option("size", str, "Problem size of profiles that do not say theirs."),
            ),
        ),
        Importer(
            "powercap",
            "configurations:POWERCAP",
            "Import programs of Altis under caps of the CPUs' and the GPU's power: times, powers.\n\n"
            "Where they are from: github.com/zzheng33/power. docs/importing.md has the columns.",
            "The file, or a folder with `dual_cap_altis.csv`.",
        ),
        Importer(
            "multicore_energy",
            "configurations:MULTICORE_ENERGY",
            "Import programs on the cores of seven multicore systems: times, powers.\n\n"
            "Where they are from: github.com/dloghin/multicores-time-energy. docs/importing.md has the "
            "columns.",
            "The file, or a folder with `loghin.csv`.",
        ),
        Importer(
            "gpu_power_limit",
            "configurations:GPU_POWER_LIMIT",
            "Import the training of neural networks under power limits of GPUs: times of an epoch, "
            "powers.\n\nWhere to fetch it: github.com/ml-energy/zeus.",
            "A file `zeus_<gpu>.csv` or `summary_power_<gpu>.csv`, or a folder with some.",
        ),
        Importer(
            "gpu_dvfs",
            "configurations:GPU_DVFS",
            "Import programs at clocks of two GPUs: times, powers, counters of one of the GPUs.\n\n"
            "Where they are from: github.com/HKBU-HPML/GPU-DVFS-Job-Schedule and "
            "github.com/hpc-ulisboa/gpuPTXModel. docs/importing.md has the columns.",
            "`gtx1080ti.csv` or `titanx.csv`, or a folder with one or both.",
        ),
        Importer(
            "rajaperf",
            "counted:RAJAPERF",
            "Import kernels of the RAJA Performance Suite on a CPU and a GPU: times, counters of the CPU.\n\n"
            "Where they are from: github.com/LLNL/thicket-tutorial. docs/importing.md has the columns.",
            "The file, or a folder with `rajaperf.csv.gz`.",
            (
                Option(
                    "cores",
                    int,
                    (
                        "Divide the CPU's times, which are those of one core, by this number: a node that "
                        "scales ideally, stated and not measured. By default they stay as measured."
                    ),
                ),
                Option(
                    "block_size",
                    int,
                    "Threads of a block on the GPU; runs with another number are left out.",
                    256,
                ),
            ),
        ),
        Importer(
            "rodinia9",
            "counted:RODINIA9",
            "Import kernels of Rodinia on nine GPUs: times of a launch, and counters of each GPU.\n\n"
            "Where they are from: github.com/marcosamaris/gpuperfpredict. docs/importing.md has the "
            "columns.",
            "The file, or a folder with `rodinia_9gpu.parquet`.",
        ),
        Importer(
            "gavel_pairs",
            "corun:GAVEL_PAIRS",
            "Import training jobs alone and in pairs on K80, P100 and V100: times, slowdowns, what fits.\n\n"
            "Where they are from: github.com/stanford-futuredata/gavel. docs/importing.md has the "
            "columns.",
            "Folder with `gavel_standalone.csv` and `gavel_pairs.csv.gz`.",
        ),
        Importer(
            "lucid",
            "corun:LUCID",
            "Import training jobs alone and in pairs on a GPU: speeds, utilisation, slowdowns.\n\n"
            "Where they are from: github.com/S-Lab-System-Group/Lucid. docs/importing.md has the "
            "columns.",
            "Folder with `lucid_single.csv` and `lucid_pairs.csv`.",
        ),
        Importer(
            "miso",
            "corun:MISO",
            "Import mixes of seven training jobs on an A100: relative times under MPS and on its parts.\n\n"
            "Where they are from: github.com/boringlee24/socc22-miso. docs/importing.md has the arrays.",
            "The file, or a folder with `miso_mps_mig.npz`.",
        ),
    )
}


def import_source(name: str, path: str | Path, **options: Any) -> Dataset:
    """Make a dataset of a source's file or folder.

    Parameters
    ----------
    name
        The source, as `crosscast dataset import --help` lists them.
    path
        Its file, or the folder with its files.
    options
        What the source's command has as options.

    Raises
    ------
    InputError
        If there is no such source, or its files are missing or wrong.
    """
    importer = IMPORTERS.get(name.replace("-", "_"))
    if importer is None:
        raise InputError(f"name: expected one of {', '.join(IMPORTERS)}, found {name!r}")
    return importer(path, **options)
