"""Groups of options that commands share: how models are fitted, and where results go."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, Token

from crosscast.data.files import cache_home
from crosscast.errors import InputError
from crosscast.results import to_json

if TYPE_CHECKING:
    from crosscast.data.dataset import Dataset
    from crosscast.data.times import LaunchTables
    from crosscast.report.document import Report


_INSTEAD = "set XDG_CACHE_HOME to another folder, or give --cache none"


def check_place(option: str, folder: Path) -> None:
    """Refuse a folder that cannot be made or written into, before a long run rather than after it."""
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError(f"{option}: cannot write into the folder {folder} ({obstacle})")


def check_folder(option: str, folder: Path | None) -> None:
    """Make the folder of figures, if they are wanted and can be drawn."""
    if folder is not None:
        from crosscast.data.files import made
        from crosscast.report.figures import require_matplotlib

        require_matplotlib()
        made(folder, option)
        check_place(option, folder)


def check_file(option: str, path: Path) -> None:
    """Refuse a file that is a folder, or whose folder is not there or not to be written into."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option}: the folder {path.absolute().parent} does not exist")
    if path.is_dir():
        raise InputError(f"{option}: expected a file, found the folder {path}")
    if obstacle := _obstacle(path.absolute().parent):
        raise InputError(f"{option}: cannot write the file {path} ({obstacle})")


def check_picture(option: str, path: Path) -> None:
    """Refuse a figure whose suffix is not one of a known format, or where matplotlib is not installed."""
    from crosscast.report.figures import check_suffix, require_matplotlib

    require_matplotlib()
    check_suffix(option, path)


def cache_folder(named: Path | None) -> Path | None:
    """Folder of the cache: the named one, or by default one of the user's; ``None`` for the word none."""
    if named is not None:
        return None if str(named) == "none" else named
    try:
        folder = cache_home() / "evaluate"
    except RuntimeError as error:
        # What `Path.home` raises where the user is not known, as in some containers.
        raise InputError(f"this user has no home folder for a cache: {_INSTEAD}") from error
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError(f"cannot write the cache in {folder} ({obstacle}): {_INSTEAD}")
    return folder


def _obstacle(folder: Path) -> str:
    """What keeps a folder from being made or written into; empty if nothing does."""
    there = folder.absolute()
    while not os.access(there, os.F_OK) and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return f"{there} is not a folder"
    return "" if os.access(there, os.W_OK | os.X_OK) else f"{there} is not writable"


def names_in(option: str, text: str) -> list[str]:
    """Names separated by commas, each once, with or without spaces between them.

    >>> names_in("--suite", "bfs, fft,bfs")
    ['bfs', 'fft']
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"{option}: expected names separated by commas, found {text!r}")
    return list(dict.fromkeys(names))


def numbers_in(option: str, text: str, example: str) -> list[int]:
    """Whole numbers separated by commas."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"{option}: expected numbers such as {example}, found {text[:60]!r}") from None


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """Take nothing else: left alone, cyclopts would round 2.5 to 2."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:
        raise InputError(f"{token.keyword}: expected a whole number, found {token.value!r}") from None


def _names(_: Any, tokens: Sequence[Token]) -> list[str]:
    (token,) = tokens
    return names_in(str(token.keyword), token.value)


def _numbers(_: Any, tokens: Sequence[Token]) -> list[int]:
    (token,) = tokens
    return numbers_in(str(token.keyword), token.value, "0,2")


Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""Off unless it is there; there is no ``--no-`` form, and help does not say that it is off."""

Whole = Annotated[int, Parameter(converter=_whole)]
"""A whole number."""

Names = Annotated[list[str], Parameter(converter=_names, n_tokens=1, negative="", accepts_keys=False)]
"""Names separated by commas."""

Numbers = Annotated[list[int], Parameter(converter=_numbers, n_tokens=1, negative="", accepts_keys=False)]
"""Whole numbers separated by commas."""

Repeated = Parameter(negative="", show_default=False)
"""An option that may be given several times."""

DatasetFolder = Annotated[
    Path, Parameter(help="Folder of the dataset, or `bundled` or `bundled-corun`, which come with Crosscast.")
]
Model = Annotated[
    str | None,
    Parameter(
        help="Folder of the model, written by `crosscast train`, or a name that `crosscast models` lists; by "
        "default the first of these that fits."
    ),
]
Models = Annotated[
    Names | None,
    Parameter(help="Models, separated by commas, or `all`; by default the one that `crosscast train` takes."),
]
Device = Annotated[
    str | None, Parameter(help="The device that is shared; by default the one with the most mixes.")
]
Devices = Annotated[Names | None, Parameter(help="Devices, separated by commas; all by default.")]
Probes = Annotated[Numbers | None, Parameter(show_default=False)]
Level = Annotated[float, Parameter(help="Coverage of the prediction intervals.")]
Application = Annotated[str | None, Parameter(help="Predict the kernels of this application alone.")]
JsonFlag = Annotated[bool, Parameter(negative="", show_default=False, help="Print one JSON object.")]
Figures = Annotated[Path | None, Parameter(help="Folder for figures.")]


Executor = Annotated[
    str | None,
    Parameter(
        help="Where to work: `local` processes (the default), `dask://HOST:PORT`, or `slurm:FILE.toml` "
        "(docs/machines.md)."
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """How models are fitted; the options of every command that fits some."""

    seed: Annotated[int, Parameter(converter=_whole, help="Random seed.")] = 0
    jobs: Annotated[
        int | None, Parameter(converter=_whole, help="Worker processes; by default one for each processor.")
    ] = None
    cache: Annotated[
        Path | None,
        Parameter(
            help="Folder for the cache, from which an interrupted run resumes, or `none`; by default the "
            "user's cache folder."
        ),
    ] = None

    executor: Executor = None

    def check(self) -> None:
        """Refuse a cache that cannot be, before anything is read."""
        cache_folder(self.cache)
        if self.jobs is not None and self.executor not in (None, "local"):
            expected = "alone, or with the executor local"
            raise InputError.of(where="--jobs", expected=expected, found=f"it with {self.executor}")

    @contextmanager
    def fitting(self, noun: str = "fits") -> Iterator[dict[str, Any]]:
        """The keyword arguments of fits, whose progress shows on standard error meanwhile."""
        from crosscast.cli.running import TaskStatus
        from crosscast.executor import spreading

        cache = cache_folder(self.cache)
        with spreading(self.executor), TaskStatus(noun) as status:
            yield {"seed": self.seed, "jobs": self.jobs, "cache": cache, "progress": status}


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """Where a result goes; the options of every command that prints tables."""

    html: Annotated[
        Path | None, Parameter(help="Also write the tables, and figures if there are any, as one HTML page.")
    ] = None
    json: JsonFlag = False

    def check(self) -> None:
        """Refuse a page that cannot be made or written, before a long run rather than after it."""
        if self.html is not None:
            from crosscast.report.document import require_jinja2

            require_jinja2()
            check_file("--html", self.html)

    def show(
        self,
        to_dict: Callable[[], Any],
        report: Callable[[], Report],
        figures: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """Print a result as JSON, or as a report for people; and write the page with the figures."""
        if self.html is not None:
            check_file("--html", self.html)
            tell(f"wrote {page_of(report(), figures()).write_html(self.html)}")
        if self.json:
            print_json(to_dict())
        else:
            report().print(sys.stdout)


@Parameter(name="*")
@dataclass(frozen=True)
class FigureOutput(Output):
    """The same of commands that draw figures."""

    figures: Figures = None

    def check(self) -> None:
        """Refuse figures that cannot be drawn or written, too."""
        super().check()
        if self.figures is not None or self.html is not None:
            from crosscast.report.figures import require_matplotlib

            require_matplotlib()
        check_folder("--figures", self.figures)

    def show(
        self,
        to_dict: Callable[[], Any],
        report: Callable[[], Report],
        figures: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """Print a result, and write its figures into the folder, the page, or both."""
        drawn = figures() if self.figures is not None or self.html is not None else {}
        if self.figures is not None:
            from crosscast.report.figures import save_figures

            for path in save_figures(drawn, self.figures):
                tell(f"wrote {path}")
        super().show(to_dict, report, lambda: drawn)


RUN, OUTPUT, FIGURES = RunOptions(), Output(), FigureOutput()


def print_json(value: Any) -> None:
    """Print a result on standard output as a line of JSON."""
    print(to_json(value), flush=True)


def tell(text: str) -> None:
    """Say on standard error what is done, such as a file that was written."""
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Typed:
    """A command line, and the warnings of its run: what a page repeats."""

    words: Sequence[str] = ()
    warnings: list[str] = field(default_factory=list)


TYPED: ContextVar[Typed] = ContextVar("TYPED")


def warn(text: str) -> None:
    """Print a warning on standard error; a page that is written later has it, too."""
    TYPED.get(Typed()).warnings.append(text)
    print(f"crosscast: warning: {text}", file=sys.stderr)


def warn_about(predictions: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Print each warning once, with the first that it is about and how many more there are."""
    about: dict[str, list[str]] = {}
    for label, warnings in predictions:
        for warning in warnings:
            about.setdefault(warning, []).append(label)
    for warning, labels in about.items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        warn(f"{labels[0]}{more}: {warning}")


def page_of(report: Report, figures: Mapping[str, Any]) -> Report:
    """A report with its figures, with the warnings before it, and how it was made at its end."""
    import crosscast
    from crosscast.report.document import Heading, Text

    if figures:
        from crosscast.report.figures import with_figures

        report = with_figures(report, figures)
    typed, parts = TYPED.get(Typed()), list(report.parts)
    if typed.warnings:
        # Below the title.
        parts.insert(1 if parts and isinstance(parts[0], Heading) else 0, Text(typed.warnings, "warnings"))
    made = [f"Made by Crosscast {crosscast.__version__}:", shlex.join(["crosscast", *typed.words])]
    return replace(report, parts=[*parts, Text(made if typed.words else made[:1], "made")])


def dataset_named(folder: Path) -> Dataset:
    """Read the dataset of a folder, or one that comes with Crosscast for ``bundled`` or ``bundled-corun``."""
    # Imported here: `--help` needs no pyarrow.
    from crosscast.data import dataset

    return dataset.dataset_named(folder)


def data_named(folder: Path, question: str) -> Dataset | LaunchTables:
    """What models of a question learn from: a dataset, or tables of times with the launches of each."""
    from crosscast.data.times import has_launch_times, read_launch_tables

    if question == "time" and has_launch_times(folder):
        return read_launch_tables(folder)
    return dataset_named(folder)
