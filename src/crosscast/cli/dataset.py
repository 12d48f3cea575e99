"""``crosscast dataset``: build, merge, describe, and import from each source or tool."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS, options
from crosscast.cli.options import command
from crosscast.data.sources import IMPORTERS, Importer

app = cyclopts.App(name="dataset", help=COMMANDS["dataset"][1])
import_app = cyclopts.App(
    name="import",
    help="Import published data, counters of tools, runs of your own, or data of an older Crosscast.",
)


def _declare(importer: Importer) -> None:
    """Declare the command of an importer, with its options."""
    whole, text = (options.Whole, options.Whole | None), (str, str | None)
    types: dict[str, object] = {
        "path": Annotated[Path, Parameter(help=importer.path)],
        "_": KW_ONLY,
        "out": options.DatasetOut,
    }
    for each in importer.options:
        kind = (whole if each.type == "int" else text)[each.default is None]
        types[each.name] = Annotated[kind, Parameter(help=each.help)]
    content: dict[str, object] = {each.name: each.default for each in importer.options}
    content |= {"__doc__": importer.help, "__annotations__": types, "importer": importer}
    names = dict.fromkeys((importer.name.replace("_", "-"), importer.name))
    command("dataset.published", import_app, *names)(type(importer.name, (), content))


for _importer in IMPORTERS.values():
    if _importer.name != "crosscast":
        _declare(_importer)


@command("dataset.counters", import_app)
class ImportCounters:
    """Import what a tool counted in runs of a program: counters and time of a run each.

    docs/counters.md says how to make the files, and what features their counters give.
    """

    tool: Literal["hpctoolkit", "caliper", "perf", "ncu"]
    """HPCToolkit, Caliper, `perf stat -j` of Linux, or Nsight Compute (`ncu --csv`), on a GPU."""
    profiles: options.Paths = ()
    """Runs of one program, or folders with such: databases `hpctoolkit-…-database`, files `.cali` or `.json`
    (json-split) of Caliper, `.json` of perf, `.csv` of ncu."""
    _: KW_ONLY
    out: options.DatasetOut
    device: str
    """Key of the device or machine that the runs were counted on."""
    application: str | None = None
    """Name of the program; by default the name in the profile, or of the first file."""
    kernel: str | None = None
    """Region (Caliper) or kernel (ncu) to import, or the name of the counted part; by default the whole
    program."""
    size: str | None = None
    """Name of the problem size; by default `default`."""
    nodes: int | None = None
    """Nodes that each run used."""
    cores: int | None = None
    """Cores that each run used."""
    gpu: options.Flag = False
    """The runs used a GPU."""
    time: float | None = None
    """Seconds that a run took, instead of the time in the profile."""


@command("dataset.trace", import_app)
class ImportTrace:
    """Import a program that `crosscast capture` recorded: profiles, and the times that its device
    measured.
    """

    folder: Path
    """Folder of the trace."""
    _: KW_ONLY
    out: options.DatasetOut
    output: options.Output = options.OUTPUT


@command("dataset.runs", import_app)
class ImportRuns:
    """Import runs of your own: times, powers, counters, over devices or the configurations of a machine.

    They are training data: with powers for `crosscast train configuration`, with counters for `train
    relative`, merged with profiles for `train time`. docs/importing.md has the columns.
    """

    path: Path
    """A CSV file with a row for each run, a history of `crosscast.profiled`, or a folder with such files."""
    _: KW_ONLY
    out: options.DatasetOut
    settings: options.Names | None = None
    """Columns of a CSV file, separated by commas, that say what a run was set to; by default those that are
    called as settings are, such as `gpu_cap_w`, `core_clock_hz` and `threads`."""


_declare(IMPORTERS["crosscast"])


@command("dataset.build", app)
class DatasetBuild:
    """Characterize and measure applications of the suite, into a dataset.

    Existing measurements are not repeated: the same command resumes an interrupted build, and one
    with more sizes, devices or applications adds to it. An application that fails is recorded as failed, and
    the build continues; the exit code is 1 then.
    """

    _: KW_ONLY
    out: options.DatasetOut
    suite: options.NamesOr = ("all",)
    """Applications, separated by commas: `all`, folders of your own (docs/suite.md), or names of the suite:
    bfs, cfd, crc, csr, dwt, fft, gem, hmm, kmeans, lud, nqueens, nw, srad, swat."""
    sizes: options.NamesOr = ("tiny", "small")
    """Problem sizes, separated by commas: `tiny`, `small`, `medium`, `large`."""
    devices: options.NamesOr = ("all",)
    """Device ids, as `crosscast devices` shows them, or `all`."""
    fit: str = "typical"
    """Caches that the problem sizes fit into: those of a `typical` CPU, so that datasets can be compared, or
    of the device with this id."""
    repeats: options.Whole = 1
    """Number of processes that repeat each measurement."""
    min_runs: options.Whole = 50
    """Minimum number of recorded runs for each application, size and device."""
    min_time: float = 2.0
    """Minimum total time of these runs, in seconds."""
    seed: options.Whole = 0
    """Random seed of the problems."""
    sensor: options.Sensor = "auto"
    timeout: float = 600.0
    """Time limit of a process, in seconds."""
    executor: options.Executor = None
    output: options.Output = options.OUTPUT


@command("dataset.merge", app)
class DatasetMerge:
    """Join datasets that were built on several machines, or piece by piece, into one.

    Equal devices become one, with the sessions of all hosts. Entries that occur several times must be equal;
    the first that is not is named in the error.
    """

    folder: Path
    """Folder of a dataset."""
    more: options.Paths = ()
    """Folders of further ones."""
    _: KW_ONLY
    out: Path
    """Folder for the joined dataset; it must be new or empty."""
    output: options.Output = options.OUTPUT


app.command(import_app)


@command("dataset.describe", app)
class DatasetDescribe:
    """Summarize a dataset: contents, missing measurements, noise and warnings.

    A build need not be finished.
    """

    folder: Path
    """Folder of the dataset, or `bundled` or `bundled-corun` for those that come with Crosscast."""
    _: KW_ONLY
    output: options.Output = options.OUTPUT


@command("catalogues.sources", app)
class DatasetSources:
    """List the sources that can be imported, with licence, origin and files."""

    _: KW_ONLY
    output: options.Output = options.OUTPUT
