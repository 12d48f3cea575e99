"""Outputs of commands, which are checked before the work begins.

Progress, notes and warnings go to standard error.
"""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import crosscast
from crosscast.cli.options import TYPED, FigureOutput, Output, RunOptions, Typed
from crosscast.data.files import cache_home
from crosscast.errors import InputError
from crosscast.evaluation.executor import spreading
from crosscast.report.document import (
    Heading,
    Report,
    Text,
    check_suffix,
    figure_parts,
    require_jinja2,
    require_matplotlib,
    save_figures,
)
from crosscast.results import to_json
from crosscast.units import format_count, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from crosscast.characterization.run import Progress
    from crosscast.evaluation.loop import RunArguments, State
    from crosscast.measure.campaign import CampaignState

    class FitKeywords(RunArguments):
        """Keyword arguments of functions that fit models."""

        seed: int


_QUIET_S = 2.0
_LINE_S = 30.0
"""Seconds between lines in a log."""
_EARLY_S = 10.0
_EARLY_SHARE = 0.05
"""Before this time, and with less than this share of the tasks done, the time left cannot be estimated."""


class StatusLine:
    """A line with the current state, which a terminal rewrites, from two seconds on.

    In a pipe or a log, it is a new line each 30 seconds. As a context manager, it removes the line from the
    terminal when the work is done or has failed.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._terminal = self._stream.isatty()
        self._shown = 0
        self._logged_s = 0.0
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        """Return the line itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line from the terminal."""
        self.close()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def show(self, elapsed_s: float, text: Callable[[], str]) -> None:
        """Show the state if it is due, `elapsed_s` after the start."""
        if not self._terminal:
            if elapsed_s >= self._logged_s + _LINE_S:
                self._logged_s = elapsed_s
                self._stream.write(f"crosscast: {text()}\n")
                self._stream.flush()
            return
        if elapsed_s < _QUIET_S:
            return
        line = text()
        self._stream.write("\r" + line.ljust(self._shown))
        self._shown = len(line)
        self._stream.flush()

    def close(self) -> None:
        """Remove the line from the terminal."""
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0


class ProgressLine(StatusLine):
    """Shows the progress of a running kernel, by its label."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._label = label

    def __call__(self, progress: Progress) -> None:
        """Show the state if it is due."""
        done, total, elapsed_s = progress.groups_done, progress.groups_total, progress.elapsed_s
        self.show(elapsed_s, lambda: describe(self._label, done, total, elapsed_s))

    def say(self, text: str) -> None:
        """Print a note on a separate line."""
        self.close()
        print(f"crosscast: note: {text}", file=self._stream, flush=True)


class TaskStatus(StatusLine):
    """Shows the number of finished fits or other tasks, and the time left."""

    def __init__(self, noun: str = "done") -> None:
        super().__init__()
        self._noun = noun

    def __call__(self, state: State | CampaignState) -> None:
        """Show the state if it is due."""
        early = self.elapsed_s < _EARLY_S and state.done < max(1.0, _EARLY_SHARE * state.total)
        left = "time left not known yet" if early else time_left(state.left_s)
        self.show(
            self.elapsed_s, lambda: f"{state.done} of {state.total} {self._noun}, {left}: {state.label}"
        )

    def begin(self, tasks: int, seconds: float) -> None:
        """Print the expected time of the tasks if it is long."""
        if seconds >= _LONG_S:
            say(f"{format_count(tasks)} {self._noun}, roughly {format_seconds(round(seconds))}")


class LabelStatus(StatusLine):
    """Shows the current activity, and the time since the start."""

    def __call__(self, label: str) -> None:
        """Show the activity if it is due."""
        self.show(self.elapsed_s, lambda: f"{label}, {format_seconds(self.elapsed_s)} so far")


def describe(label: str, done: int, total: int, elapsed_s: float) -> str:
    """Describe a running kernel on one line: finished work-groups, rate, time left.

    >>> describe("matmul", 512, 4096, 4.0)
    'matmul: 512 of 4,096 work-groups (12 %), 128 a second, 28 s left'
    """
    share = f"{100 * done // total} %" if total else "0 %"
    text = f"{label}: {format_count(done)} of {format_count(total)} work-groups ({share})"
    if done == 0 or elapsed_s <= 0:
        return f"{text}, {format_seconds(elapsed_s)} so far"
    rate = done / elapsed_s
    pace = f"{format_count(round(rate))} a second" if rate >= 1 else f"{format_seconds(1 / rate)} each"
    return f"{text}, {pace}, {format_seconds((total - done) / rate)} left"


def time_left(seconds: float) -> str:
    """Write the time left, to the second.

    >>> time_left(74.8), time_left(0.909)
    ('about 1 min 15 s left', 'less than a second left')
    """
    return "less than a second left" if seconds < 1 else f"about {format_seconds(round(seconds))} left"


class LaunchesStatus(StatusLine):
    """Shows the number of finished launches of a file, and the time left."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._done, self._total = 0, total

    def advance(self) -> None:
        """Count one more launch; show the state if it is due."""
        self._done += 1
        if self._done < self._total:
            self.show(self.elapsed_s, self._text)

    def _text(self) -> str:
        left = time_left(self.elapsed_s / self._done * (self._total - self._done))
        return f"{format_count(self._done)} of {format_count(self._total)} launches, {left}"


_LONG_S = 30.0
_MANY = 1000
"""Number of tasks from which on a campaign needs confirmation."""


def announce(tasks: int, seconds: float) -> None:
    """Print the expected time of a campaign, and `confirm` it."""
    TaskStatus("tasks").begin(tasks, seconds)
    confirm(tasks, seconds)


def confirm(tasks: int, _: float) -> None:
    """Ask on a terminal whether to begin a campaign of thousands of tasks; a no is as if interrupted."""
    if tasks < _MANY or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(
        "Begin? It can be interrupted and goes on where it was. [y/N] ", end="", file=sys.stderr, flush=True
    )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise KeyboardInterrupt


def tell(text: str) -> None:
    """Print a result, such as a file that was written, on standard error."""
    print(text, file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Print an activity, such as a one-time compilation, on standard error."""
    tell(f"crosscast: {text}")


def warn(text: str) -> None:
    """Print a warning on standard error, and keep it for a page that is written later."""
    TYPED.get(Typed()).warnings.append(text)
    print(f"crosscast: warning: {text}", file=sys.stderr)


def raise_last(refused: Sequence[InputError]) -> None:
    """Raise the last error of what was left out, and warn of the others; none if nothing was."""
    for error in refused[:-1]:
        warn(str(error))
    if refused:
        raise refused[-1]


def warn_about(predictions: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Print each warning once, with the first label that it is about and the number of further ones."""
    labels_of: dict[str, list[str]] = {}
    for label, warnings in predictions:
        for warning in warnings:
            labels_of.setdefault(warning, []).append(label)
    for warning, labels in labels_of.items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        warn(f"{labels[0]}{more}: {warning}")


def warn_of(predictions: Sequence[Any]) -> None:
    """Print each warning of predictions, which have `label` and `warnings`, once."""
    warn_about((prediction.label, prediction.warnings) for prediction in predictions)


_INSTEAD = "set XDG_CACHE_HOME to another folder"


def check_writable(option: str, folder: Path) -> None:
    """Raise InputError unless a folder can be created and written into."""
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError.of(where=option, problem=f"cannot write into the folder {folder} ({obstacle})")


def check_file(option: str, path: Path) -> None:
    """Raise InputError if a file is a folder, or its folder does not exist or is not writable."""
    if not path.absolute().parent.is_dir():
        raise InputError.of(where=option, problem=f"the folder {path.absolute().parent} does not exist")
    if path.is_dir():
        raise InputError.of(where=option, expected="a file", found=f"the folder {path}")
    if obstacle := _obstacle(path.absolute().parent):
        raise InputError.of(where=option, problem=f"cannot write the file {path} ({obstacle})")


def check_picture(option: str, path: Path) -> None:
    """Raise an error unless a figure of this name can be made and written."""
    require_matplotlib()
    check_suffix(option, path)
    check_file(option, path)


def cache_folder() -> Path:
    """Folder of finished fits, from which an interrupted run resumes."""
    try:
        folder = cache_home() / "evaluate"
    except RuntimeError as error:
        # `Path.home` raises it where the user is not known, as in some containers.
        raise InputError(f"this user has no home folder for a cache: {_INSTEAD}") from error
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError.of(where=f"cannot write the cache in {folder} ({obstacle})", problem=_INSTEAD)
    return folder


def _obstacle(folder: Path) -> str:
    """Reason why a folder cannot be created or written into; empty if it can."""
    existing = folder.absolute()
    while not os.access(existing, os.F_OK) and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is not a folder"
    return "" if os.access(existing, os.W_OK | os.X_OK) else f"{existing} is not writable"


@contextmanager
def fitting(run: RunOptions, noun: str = "fits") -> Iterator[FitKeywords]:
    """Yield keyword arguments for fits of what is read within, and show their progress on standard error."""
    jobs, executor, cache = None, run.jobs, cache_folder()
    if executor is not None and executor[:2].removeprefix("-")[:1].isdecimal():
        try:
            jobs, executor = int(executor), None
        except ValueError:
            raise InputError.of(where="--jobs", expected="a whole number", found=repr(executor)) from None
    with spreading(executor), TaskStatus(noun) as status:
        yield {"seed": run.seed, "jobs": jobs, "cache": cache, "progress": status}


_OF_COMMANDS = {"dataset", "out", "without", "run", "output"}


def given(options: object) -> dict[str, Any]:
    """Return the options that are arguments of `crosscast.train` and `evaluate`, as far as they are given."""
    return {
        name: value for name, value in vars(options).items() if name not in _OF_COMMANDS and value is not None
    }


def run(command: object, work: str) -> int | None:
    """Check the outputs of a command, and call the function ``MODULE.FUNCTION`` here that does its work."""
    if (output := getattr(command, "output", None)) is not None:
        check_output(output)
    module, _, function = work.partition(".")
    code: int | None = getattr(importlib.import_module(f"crosscast.commands.{module}"), function)(command)
    return code


def check_output(output: Output) -> None:
    """Raise an error unless the page and the figures can be made and written."""
    if output.html is not None:
        require_jinja2()
        check_file("--html", output.html)
    if isinstance(output, FigureOutput):
        if output.figures is not None or output.html is not None:
            require_matplotlib()
        if output.figures is not None:
            check_writable("--figures", output.figures)


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
    typed, parts = TYPED.get(Typed()), list(report.parts)
    if figures:
        parts += [Heading("Figures"), *figure_parts(figures)]
    if typed.warnings:
        # Warnings are below the title.
        parts.insert(1 if parts and isinstance(parts[0], Heading) else 0, Text(typed.warnings, "warnings"))
    origin = [f"Made by Crosscast {crosscast.__version__}:", shlex.join(["crosscast", *typed.words])]
    return replace(report, parts=[*parts, Text(origin if typed.words else origin[:1], "made")])


def print_json(value: object) -> None:
    """Print a result on standard output as a line of JSON."""
    print(to_json(value), flush=True)
