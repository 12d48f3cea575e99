"""``crosscast dataset import``: a command for each source, each counter tool, and your own runs."""

from __future__ import annotations

import inspect
import json as json_format
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts
from cyclopts import Parameter

from crosscast.cli.options import Flag, Whole, names_in
from crosscast.data.sources import IMPORTERS, Importer
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.data.counters.common import Circumstances
    from crosscast.data.dataset import Dataset

_OUT = "Folder of the dataset."
_REPLACE = "Replace an existing dataset."


def store_dataset(dataset: Dataset, out: Path, replace: bool) -> None:
    """Write a dataset, in the place of another only if it may be replaced."""
    from crosscast.data.sources.source import store

    store(dataset, out, replace=replace)
    counts = f"{dataset.profiles.num_rows:,} profiles, {dataset.records.num_rows:,} records"
    if dataset.bags.num_rows:
        counts = f"{dataset.solos.num_rows:,} isolated runs, {dataset.bags.num_rows:,} runs in mixes"
    print(f"wrote {out} ({counts})", file=sys.stderr)


def _documented(command: Callable[..., None], name: str, text: str, parameters: dict[str, str]) -> None:
    """Give a command the name and the docstring that its help is made of."""
    lines = "\n".join(f"{parameter}\n    {about}" for parameter, about in parameters.items())
    command.__name__ = name
    command.__doc__ = f"{text}\n\nParameters\n----------\n{lines}\n"


_LAUNCH_S = 0.5
"""About how long a launch takes that is made up, compiling included."""


def _characterizer(keep: Path) -> Callable[..., Any]:
    """What makes profiles of launches, keeps finished ones in a file, and shows how far it is."""
    from crosscast.characterization.synthesis import profiles_of
    from crosscast.cli.running import LaunchesStatus, announce

    def profiles(launches: Any) -> Any:
        with ExitStack() as stack:

            def watch(total: int) -> Callable[[], None]:
                announce(total, total * _LAUNCH_S)
                return stack.enter_context(LaunchesStatus(total)).advance

            return profiles_of(launches, keep, watch)

    return profiles


def _source_command(importer: Importer) -> Callable[..., None]:
    def command(path: Path, *, out: Path, replace: bool = False, **options: Any) -> None:
        if not importer.characterizes:
            store_dataset(importer(path, **options), out, replace)
            return
        keep = out.absolute().with_name(f".{out.absolute().name}.profiles.jsonl")
        store_dataset(importer(path, **options, profiles=_characterizer(keep)), out, replace)
        keep.unlink(missing_ok=True)

    kinds: dict[type, Any] = {int: Whole, str: str}
    only, keyword = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("path", only, annotation=Path),
        inspect.Parameter("out", keyword, annotation=Path),
        *(
            inspect.Parameter(
                option.name,
                keyword,
                default=option.default,
                annotation=kinds[option.type] | None if option.default is None else kinds[option.type],
            )
            for option in importer.options
        ),
        inspect.Parameter("replace", keyword, default=False, annotation=Flag),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    about = {option.name: option.help for option in importer.options}
    texts = {"path": importer.path, "out": _OUT, **about, "replace": _REPLACE}
    _documented(command, importer.name, importer.help, texts)
    return command


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
        Replace an existing dataset.
    """
    from crosscast.measure.regions.samples import import_runs

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


_COUNTER_TOOLS = {
    "hpctoolkit": (
        "Import databases of HPCToolkit: counters and time of a run each, of the whole program.",
        "how to make them, and what features their counters give",
        "Folders `hpctoolkit-…-database` of runs of one program, or a folder with such.",
    ),
    "caliper": (
        "Import profiles of Caliper: counters and time of a run each.",
        "how to make them, and what features their counters give",
        "Files `.cali` or `.json` (json-split) of runs of one program, or a folder with such.",
    ),
    "perf": (
        "Import what `perf stat -j` of Linux counted: counters and time of a run each.",
        "how to make it, and what features its counters give",
        "Files `.json` of runs of one program, or a folder with such.",
    ),
    "ncu": (
        "Import what Nsight Compute counted (`ncu --csv`): counters and time of a run each, on a GPU.",
        "how to make it, and what features its counters give",
        "Files `.csv` of runs of one program, or a folder with such.",
    ),
}


def _counter_command(tool: str) -> Callable[..., None]:
    def command(*profiles: Path, out: Path, told: _Runs, replace: Flag = False) -> None:
        if not profiles:
            raise InputError("profiles: expected one path or more, found none")
        from crosscast.data.counters.importing import import_counted

        store_dataset(import_counted(tool, profiles, told.circumstances()), out, replace)

    what, more, profiles = _COUNTER_TOOLS[tool]
    about = f"{what}\n\ndocs/counters.md says {more}."
    _documented(command, tool, about, {"profiles": profiles, "out": _OUT, "replace": _REPLACE})
    return command


app = cyclopts.App(
    name="import",
    help="Import published data, counters of tools, runs of your own, or data of an older Crosscast.",
)
for _importer in IMPORTERS.values():
    if _importer.name != "crosscast":
        _dashed = _importer.name.replace("_", "-")
        app.command(_source_command(_importer), name=tuple(dict.fromkeys((_dashed, _importer.name))))
for _tool in _COUNTER_TOOLS:
    app.command(_counter_command(_tool), name=_tool)
app.command(runs)
app.command(_source_command(IMPORTERS["crosscast"]), name="crosscast")
