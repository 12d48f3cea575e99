"""Where results of commands go, and how long fits show their progress; checked before the work begins."""

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
from crosscast.data.files import cache_home, made
from crosscast.errors import InputError
from crosscast.evaluation.executor import spreading
from crosscast.report.document import Heading, Report, Text, require_jinja2
from crosscast.report.pictures import check_suffix, require_matplotlib, save_figures, with_figures
from crosscast.results import to_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.evaluation.loop import RunArguments

    class FitKeywords(RunArguments):
        """Keyword arguments of what fits models."""

        seed: int


_INSTEAD = "set XDG_CACHE_HOME to another folder"


def check_place(option: str, folder: Path) -> None:
    """Refuse a folder that cannot be made or written into, before a long run rather than after it."""
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError(f"{option}: cannot write into the folder {folder} ({obstacle})")


def check_folder(option: str, folder: Path | None) -> None:
    """Make the folder of figures, if they are wanted and can be drawn."""
    if folder is not None:
        require_matplotlib()
        made(folder, option)
        check_place(option, folder)


def check_file(option: str, path: Path) -> None:
    """Refuse a file that is a folder, or whose folder is not there or not to be written into."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option}: the folder {path.absolute().parent} does not exist")
    if path.is_dir():
        raise InputError.of(where=option, expected="a file", found=f"the folder {path}")
    if obstacle := _obstacle(path.absolute().parent):
        raise InputError(f"{option}: cannot write the file {path} ({obstacle})")


def check_picture(option: str, path: Path) -> None:
    """Refuse a figure whose suffix is not one of a known format, or where matplotlib is not installed."""
    require_matplotlib()
    check_suffix(option, path)


def cache_folder() -> Path:
    """Folder of finished fits, from which a run that was interrupted resumes."""
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


def check_run(run: RunOptions) -> None:
    """Refuse a cache that cannot be, before anything is read."""
    cache_folder()
    _workers(run)


def _workers(run: RunOptions) -> tuple[int | None, str | None]:
    """How many processes are to work here, or what else is to."""
    text = run.jobs
    if text is None or not text[:2].removeprefix("-")[:1].isdecimal():
        return None, text
    try:
        return int(text), None
    except ValueError:
        raise InputError.of(where="--jobs", expected="a whole number", found=repr(text)) from None


@contextmanager
def fitting(run: RunOptions, noun: str = "fits") -> Iterator[FitKeywords]:
    """The keyword arguments of fits, whose progress shows on standard error meanwhile."""
    jobs, executor = _workers(run)
    with spreading(executor), TaskStatus(noun) as status:
        yield {"seed": run.seed, "jobs": jobs, "cache": cache_folder(), "progress": status}


def check_output(output: Output) -> None:
    """Refuse a page or figures that cannot be made or written, before a long run rather than after it."""
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
    """Print a result as JSON, or as a report for people; write its figures into a folder, a page, or both."""
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
    """A report with its figures, with the warnings before it, and how it was made at its end."""
    if figures:
        report = with_figures(report, figures)
    typed, parts = TYPED.get(Typed()), list(report.parts)
    if typed.warnings:
        # Below the title.
        parts.insert(1 if parts and isinstance(parts[0], Heading) else 0, Text(typed.warnings, "warnings"))
    made = [f"Made by Crosscast {crosscast.__version__}:", shlex.join(["crosscast", *typed.words])]
    return replace(report, parts=[*parts, Text(made if typed.words else made[:1], "made")])


def print_json(value: object) -> None:
    """Print a result on standard output as a line of JSON."""
    print(to_json(value), flush=True)
