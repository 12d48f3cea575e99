"""Outputs of commands, which are checked before the work begins, and progress of fits."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import crosscast
from crosscast.cli.dispatch import TYPED, Typed
from crosscast.cli.options import FigureOutput, Output, RunOptions
from crosscast.commands.status import TaskStatus, tell
from crosscast.data.files import cache_home, make_folder
from crosscast.errors import InputError
from crosscast.evaluation.executor import spreading
from crosscast.report.document import Heading, Report, Text, require_jinja2
from crosscast.report.pictures import check_suffix, require_matplotlib, save_figures, with_figures
from crosscast.results import to_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.evaluation.loop import RunArguments

    class FitKeywords(RunArguments):
        """Keyword arguments of functions that fit models."""

        seed: int


_INSTEAD = "set XDG_CACHE_HOME to another folder"


def check_writable(option: str, folder: Path) -> None:
    """Raise InputError unless a folder can be created and written into."""
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError(f"{option}: cannot write into the folder {folder} ({obstacle})")


def check_folder(option: str, folder: Path | None) -> None:
    """Create the folder of figures, if given, and raise an error unless figures can be drawn and written."""
    if folder is not None:
        require_matplotlib()
        make_folder(folder, option)
        check_writable(option, folder)


def check_file(option: str, path: Path) -> None:
    """Raise InputError if a file is a folder, or its folder does not exist or is not writable."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option}: the folder {path.absolute().parent} does not exist")
    if path.is_dir():
        raise InputError.of(where=option, expected="a file", found=f"the folder {path}")
    if obstacle := _obstacle(path.absolute().parent):
        raise InputError(f"{option}: cannot write the file {path} ({obstacle})")


def check_picture(option: str, path: Path) -> None:
    """Raise an error unless a figure's suffix is a known format and matplotlib is installed."""
    require_matplotlib()
    check_suffix(option, path)


def cache_folder() -> Path:
    """Folder of finished fits, from which an interrupted run resumes."""
    try:
        folder = cache_home() / "evaluate"
    except RuntimeError as error:
        # `Path.home` raises it where the user is not known, as in some containers.
        raise InputError(f"this user has no home folder for a cache: {_INSTEAD}") from error
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError(f"cannot write the cache in {folder} ({obstacle}): {_INSTEAD}")
    return folder


def _obstacle(folder: Path) -> str:
    """Reason why a folder cannot be created or written into; empty if it can."""
    existing = folder.absolute()
    while not os.access(existing, os.F_OK) and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is not a folder"
    return "" if os.access(existing, os.W_OK | os.X_OK) else f"{existing} is not writable"


def check_run(run: RunOptions) -> None:
    """Check the cache folder and the number of workers, before anything is read."""
    cache_folder()
    _workers(run)


def _workers(run: RunOptions) -> tuple[int | None, str | None]:
    """Number of local worker processes, or another executor; ``None`` for defaults."""
    text = run.jobs
    if text is None or not text[:2].removeprefix("-")[:1].isdecimal():
        return None, text
    try:
        return int(text), None
    except ValueError:
        raise InputError.of(where="--jobs", expected="a whole number", found=repr(text)) from None


@contextmanager
def fitting(run: RunOptions, noun: str = "fits") -> Iterator[FitKeywords]:
    """Yield keyword arguments for fits, and show their progress on standard error."""
    jobs, executor = _workers(run)
    with spreading(executor), TaskStatus(noun) as status:
        yield {"seed": run.seed, "jobs": jobs, "cache": cache_folder(), "progress": status}


def check_output(output: Output) -> None:
    """Raise an error unless the page and the figures can be made and written."""
    if output.html is not None:
        require_jinja2()
        check_file("--html", output.html)
    if isinstance(output, FigureOutput):
        if output.figures is not None or output.html is not None:
            require_matplotlib()
        check_folder("--figures", output.figures)


def show(
    output: Output,
    to_dict: Callable[[], object],
    report: Callable[[], Report],
    figures: Callable[[], Mapping[str, Figure]] = dict,
) -> None:
    """Print a result as JSON or as a report; write its figures into a folder, a page, or both."""
    folder = output.figures if isinstance(output, FigureOutput) else None
    drawn = figures() if folder is not None or output.html is not None else {}
    if folder is not None:
        for path in save_figures(drawn, folder):
            tell(f"wrote {path}")
    if output.html is not None:
        check_file("--html", output.html)
        tell(f"wrote {page_of(report(), drawn).write_html(output.html)}")
    if output.json:
        print_json(to_dict())
    else:
        report().print(sys.stdout)


def page_of(report: Report, figures: Mapping[str, Figure]) -> Report:
    """Add figures, warnings and the command line to a report for a page."""
    if figures:
        report = with_figures(report, figures)
    typed, parts = TYPED.get(Typed()), list(report.parts)
    if typed.warnings:
        # Warnings are below the title.
        parts.insert(1 if parts and isinstance(parts[0], Heading) else 0, Text(typed.warnings, "warnings"))
    origin = [f"Made by Crosscast {crosscast.__version__}:", shlex.join(["crosscast", *typed.words])]
    return replace(report, parts=[*parts, Text(origin if typed.words else origin[:1], "made")])


def print_json(value: object) -> None:
    """Print a result on standard output as a line of JSON."""
    print(to_json(value), flush=True)
