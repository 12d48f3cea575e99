"""``crosscast dataset import``: profiles of counter tools, a run each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from crosscast.cli.dataset.storing import store_dataset
from crosscast.cli.options import Flag
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.tables.importers.counters.counted_run import Circumstances

__all__ = ["caliper", "hpctoolkit", "ncu", "perf"]


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

    device: str
    application: str | None = None
    kernel: str | None = None
    size: str | None = None
    nodes: int | None = None
    cores: int | None = None
    gpu: Flag = False
    time: float | None = None

    def circumstances(self) -> Circumstances:
        """The same, checked."""
        from crosscast.tables.importers.counters.counted_run import Circumstances

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
    from crosscast.tables.importers.counters.importing import import_hpctoolkit

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
    from crosscast.tables.importers.counters.importing import import_caliper

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
    from crosscast.tables.importers.counters.importing import import_perf

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
    from crosscast.tables.importers.counters.importing import import_ncu

    store_dataset(import_ncu(_named(profiles), told.circumstances()), out, replace)


def _named(profiles: tuple[Path, ...]) -> tuple[Path, ...]:
    if not profiles:
        raise InputError("profiles: expected one path or more, found none")
    return profiles
