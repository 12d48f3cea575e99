"""``crosscast dataset``: build, import, merge and describe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cyclopts
from cyclopts import Parameter

from crosscast.cli.app import COMMANDS
from crosscast.cli.dataset_import import app as imports
from crosscast.cli.dispatch import runs
from crosscast.cli.options import OUTPUT, Executor, Output, Whole


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DatasetBuildOptions:
    """Options of `crosscast dataset build`."""

    out: Path
    """Folder of the dataset."""
    suite: str = "all"
    """Applications, separated by commas: `all`, folders of your own (docs/suite.md), or names of the suite:
    bfs, cfd, crc, csr, dwt, fft, gem, hmm, kmeans, lud, nqueens, nw, srad, swat."""
    sizes: str = "tiny,small"
    """Problem sizes, separated by commas: `tiny`, `small`, `medium`, `large`."""
    devices: str = "all"
    """Device ids, as `crosscast devices` shows them, or `all`."""
    fit: str = "typical"
    """Caches that the problem sizes fit into: those of a `typical` CPU, so that datasets can be compared, or
    of the device with this id."""
    repeats: Whole = 1
    """Number of processes that repeat each measurement."""
    min_runs: Whole = 50
    """Minimum number of recorded runs for each application, size and device."""
    min_time: float = 2.0
    """Minimum total time of these runs, in seconds."""
    seed: Whole = 0
    """Random seed of the problems."""
    sensor: str = "auto"
    """Energy sensor: `auto`, `none`, `rapl`, `nvml` or `replay:PATH`."""
    timeout: float = 600.0
    """Time limit of a process, in seconds."""
    executor: Executor = None
    output: Output = OUTPUT


@runs("dataset_build")
def build(*, options: DatasetBuildOptions) -> None:
    """Characterize and measure applications of the suite, into a dataset.

    What the dataset has already is not measured again: the same command resumes an interrupted build, and one
    with more sizes, devices or applications adds to it. An application that fails is recorded as failed, and
    the build continues; the exit code is 1 then.
    """


@runs("dataset")
def merge(folder: Path, /, *more: Path, out: Path, output: Output = OUTPUT) -> None:
    """Join datasets that were built on several machines, or piece by piece, into one.

    Equal devices become one, with the sessions of all hosts. Entries that are there several times must be
    equal; the first that is not is refused by name.

    Parameters
    ----------
    folder
        Folder of a dataset.
    more
        Folders of further ones.
    out
        Folder for the joined dataset; it must be new or empty.
    """


@runs("dataset")
def describe(folder: Path, /, *, output: Output = OUTPUT) -> None:
    """Summarize a dataset: contents, missing measurements, noise and warnings.

    A build need not be finished.

    Parameters
    ----------
    folder
        Folder of the dataset, or `bundled` or `bundled-corun` for those that come with Crosscast.
    """


@runs("dataset")
def sources(*, output: Output = OUTPUT) -> None:
    """List what can be imported: what it is, its licence, where it is from, and which files are wanted."""


app = cyclopts.App(name="dataset", help=COMMANDS["dataset"][1])
app.command(build)
app.command(merge)
app.command(imports)
app.command(describe)
app.command(sources)
