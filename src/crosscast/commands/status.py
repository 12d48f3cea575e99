"""Progress of long work, notes and warnings: what commands say on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, Self, TextIO

from crosscast.cli.dispatch import TYPED, Typed
from crosscast.units import format_count, format_seconds

_QUIET_S = 2.0
_LINE_S = 30.0
"""Seconds between lines in a log."""
_EARLY_S = 10.0
_EARLY_SHARE = 0.05
"""Before so long, and with less than this share of the tasks done, nobody knows what is left."""


class _Launched(Protocol):
    """How far a running kernel is."""

    @property
    def groups_done(self) -> int: ...
    @property
    def groups_total(self) -> int: ...
    @property
    def elapsed_s(self) -> float: ...


class _Worked(Protocol):
    """How far fits or measurements are."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def left_s(self) -> float: ...
    @property
    def label(self) -> str: ...


class StatusLine:
    """A line that says what is going on: on a terminal rewritten, from two seconds on.

    In a pipe or a log it is a line each 30 seconds, when something has been done. As a context manager, it is
    gone from the terminal when the work is done or has failed.

    Parameters
    ----------
    stream
        Where to write; by default standard error.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._shown = 0
        self._told_s = 0.0
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line from the terminal."""
        self.close()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def show(self, elapsed_s: float, text: Callable[[], str]) -> None:
        """Show the state if it is time to, this long after the start."""
        if not self._terminal:
            if elapsed_s >= self._told_s + _LINE_S:
                self._told_s = elapsed_s
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
    """Shows how far a running kernel, called by its label, is."""

    def __init__(self, stream: TextIO, label: str) -> None:
        super().__init__(stream)
        self._label = label

    def __call__(self, progress: _Launched) -> None:
        """Show the state if it is time to."""
        done, total, elapsed_s = progress.groups_done, progress.groups_total, progress.elapsed_s
        self.show(elapsed_s, lambda: describe(self._label, done, total, elapsed_s))

    def say(self, text: str) -> None:
        """Say on a line of its own what a run needs, or that it is not in full."""
        self.close()
        print(f"crosscast: note: {text}", file=self._stream, flush=True)


class TaskStatus(StatusLine):
    """Shows how many fits or other tasks are done, and how long the rest will take."""

    def __init__(self, noun: str = "done") -> None:
        super().__init__()
        self._noun = noun

    def __call__(self, state: _Worked) -> None:
        """Show the state if it is time to."""
        early = self.elapsed_s < _EARLY_S and state.done < max(1.0, _EARLY_SHARE * state.total)
        left = "time left not known yet" if early else time_left(state.left_s)
        self.show(
            self.elapsed_s, lambda: f"{state.done} of {state.total} {self._noun}, {left}: {state.label}"
        )


class LabelStatus(StatusLine):
    """Shows what is being done, and for how long everything takes so far."""

    def __call__(self, label: str) -> None:
        """Show what is being done if it is time to."""
        self.show(self.elapsed_s, lambda: f"{label}, {format_seconds(self.elapsed_s)} so far")


def describe(label: str, done: int, total: int, elapsed_s: float) -> str:
    """One line about a running kernel: work-groups done, rate, time left.

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
    """Say how long work will take from now on, to the second.

    >>> time_left(74.8), time_left(0.909)
    ('about 1 min 15 s left', 'less than a second left')
    """
    return "less than a second left" if seconds < 1 else f"about {format_seconds(round(seconds))} left"


class LaunchesStatus(StatusLine):
    """Shows how many of the launches of a file are done, and how long the rest will take."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self._done, self._total = 0, total

    def advance(self) -> None:
        """Count one more launch; show the state if it is time to."""
        self._done += 1
        if self._done < self._total:
            self.show(self.elapsed_s, self._text)

    def _text(self) -> str:
        left = time_left(self.elapsed_s / self._done * (self._total - self._done))
        return f"{format_count(self._done)} of {format_count(self._total)} launches, {left}"


_LONG_S = 30.0
_MANY = 1000
"""Tasks that a person is asked about before they begin."""


def announce(tasks: int, seconds: float) -> None:
    """Say how long a campaign will take, and `confirm` it."""
    if seconds >= _LONG_S:
        print(
            f"crosscast: {format_count(tasks)} tasks, roughly {format_seconds(round(seconds))}",
            file=sys.stderr,
        )
    confirm(tasks, seconds)


def confirm(tasks: int, _: float) -> None:
    """Ask whether to begin a campaign of thousands of tasks, on a terminal.

    Raises
    ------
    KeyboardInterrupt
        If the answer is no, as if it had been interrupted at once.
    """
    if tasks < _MANY or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(
        "Begin? It can be interrupted and goes on where it was. [y/N] ", end="", file=sys.stderr, flush=True
    )
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise KeyboardInterrupt


def tell(text: str) -> None:
    """Say on standard error what is done, such as a file that was written."""
    print(text, file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Say on standard error what is going on, such as what is compiled once."""
    tell(f"crosscast: {text}")


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


class _Warned(Protocol):
    """A prediction, with its applicability warnings: sentences without a full stop."""

    @property
    def label(self) -> str: ...
    @property
    def warnings(self) -> Sequence[str]: ...


def warn_of(predictions: Sequence[_Warned]) -> None:
    """Print each warning once, with what it is about."""
    warn_about((prediction.label, prediction.warnings) for prediction in predictions)
