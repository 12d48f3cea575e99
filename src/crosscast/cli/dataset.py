"""``crosscast dataset``: build, merge, describe, and import from each source or tool."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import cyclopts

from crosscast.cli import COMMANDS
from crosscast.cli.options import OUTPUT, Executor, Flag, Output, Whole, options, runs, work
from crosscast.data.sources import IMPORTERS, Importer

_OUT = "Folder of the dataset."


def _documented(command: Callable[..., None], name: str, text: str, parameters: dict[str, str]) -> None:
    """Set the name and the docstring of a command, from which its help is made."""
    lines = "\n".join(f"{parameter}\n    {about}" for parameter, about in parameters.items())
    command.__name__ = name
    command.__doc__ = f"{text}\n\nParameters\n----------\n{lines}\n"


def _source_command(importer: Importer) -> Callable[..., None]:
    def command(path: Path, *, out: Path, **options: object) -> None:
        work("dataset_import", "published")(importer, path, out, options)

    kinds: dict[type, tuple[object, object]] = {int: (Whole, Whole | None), str: (str, str | None)}
    only, keyword = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("path", only, annotation=Path),
        inspect.Parameter("out", keyword, annotation=Path),
        *(
            inspect.Parameter(
                option.name,
                keyword,
                default=option.default,
                annotation=kinds[option.type][option.default is None],
            )
            for option in importer.options
        ),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    helps = {option.name: option.help for option in importer.options}
    texts = {"path": importer.path, "out": _OUT, **helps}
    _documented(command, importer.name, importer.help, texts)
    return command


@runs("dataset_import")
def own_runs(path: Path, /, *, out: Path, settings: str | None = None) -> None:
    """Import runs of your own: times, powers, counters, over devices or the configurations of a machine.

    They are training data: with powers for `crosscast train configuration`, with counters for `train
    relative`, merged with profiles for `train time`. docs/importing.md has the columns.

    Parameters
    ----------
    path
        A CSV file with a row for each run, a history of `crosscast.profiled`, or a folder with such files.
    out
        Folder of the dataset.
    settings
        Columns of a CSV file, separated by commas, that say what a run was set to; by default those that are
        called as settings are, such as `gpu_cap_w`, `core_clock_hz` and `threads`.
    """


@options
class ImportCountersOptions:
    """Options of `crosscast dataset import counters`."""

    out: Path
    """Folder of the dataset."""
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
    gpu: Flag = False
    """The runs used a GPU."""
    time: float | None = None
    """Seconds that a run took, instead of the time in the profile."""


@runs("dataset_import")
def counters(
    tool: Literal["hpctoolkit", "caliper", "perf", "ncu"], /, *profiles: Path, options: ImportCountersOptions
) -> None:
    """Import what a tool counted in runs of a program: counters and time of a run each.

    docs/counters.md says how to make the files, and what features their counters give.

    Parameters
    ----------
    tool
        HPCToolkit, Caliper, `perf stat -j` of Linux, or Nsight Compute (`ncu --csv`), on a GPU.
    profiles
        Runs of one program, or folders with such: databases `hpctoolkit-…-database`, files `.cali` or `.json`
        (json-split) of Caliper, `.json` of perf, `.csv` of ncu.
    """


@runs("dataset_import")
def trace(folder: Path, /, *, out: Path, output: Output = OUTPUT) -> None:
    """Import a program that `crosscast capture` recorded: profiles, and the times that its device measured.

    Parameters
    ----------
    folder
        Folder of the trace.
    out
        Folder of the dataset.
    """


import_app = cyclopts.App(
    name="import",
    help="Import published data, counters of tools, runs of your own, or data of an older Crosscast.",
)
for _importer in IMPORTERS.values():
    if _importer.name != "crosscast":
        _dashed = _importer.name.replace("_", "-")
        import_app.command(_source_command(_importer), name=tuple(dict.fromkeys((_dashed, _importer.name))))
import_app.command(counters)
import_app.command(trace)
import_app.command(own_runs, name="runs")
import_app.command(_source_command(IMPORTERS["crosscast"]), name="crosscast")


@options
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


@runs("dataset")
def build(*, options: DatasetBuildOptions) -> None:
    """Characterize and measure applications of the suite, into a dataset.

    Existing measurements are not repeated: the same command resumes an interrupted build, and one
    with more sizes, devices or applications adds to it. An application that fails is recorded as failed, and
    the build continues; the exit code is 1 then.
    """


@runs("dataset")
def merge(folder: Path, /, *more: Path, out: Path, output: Output = OUTPUT) -> None:
    """Join datasets that were built on several machines, or piece by piece, into one.

    Equal devices become one, with the sessions of all hosts. Entries that occur several times must be equal;
    the first that is not is named in the error.

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
    """List the sources that can be imported, with licence, origin and files."""


app = cyclopts.App(name="dataset", help=COMMANDS["dataset"][1])
app.command(build)
app.command(merge)
app.command(import_app)
app.command(describe)
app.command(sources)
