"""Progress, notes and warnings of commands, which go to standard error."""

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
"""Before this time, and with less than this share of the tasks done, the time left cannot be estimated."""


class _Launched(Protocol):
    """Progress of a running kernel."""

    @property
    def groups_done(self) -> int: ...
    @property
    def groups_total(self) -> int: ...
    @property
    def elapsed_s(self) -> float: ...


class _Worked(Protocol):
    """Progress of fits or measurements."""

    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def left_s(self) -> float: ...
    @property
    def label(self) -> str: ...


class StatusLine:
    """A line with the current state, which a terminal rewrites, from two seconds on.

    In a pipe or a log, it is a new line each 30 seconds. As a context manager, it removes the line from the
    terminal when the work is done or has failed.

    Parameters
    ----------
    stream
        The stream to write to; by default standard error.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
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

    def __init__(self, stream: TextIO, label: str) -> None:
        super().__init__(stream)
        self._label = label

    def __call__(self, progress: _Launched) -> None:
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

    def __call__(self, state: _Worked) -> None:
        """Show the state if it is due."""
        early = self.elapsed_s < _EARLY_S and state.done < max(1.0, _EARLY_SHARE * state.total)
        left = "time left not known yet" if early else time_left(state.left_s)
        self.show(
            self.elapsed_s, lambda: f"{state.done} of {state.total} {self._noun}, {left}: {state.label}"
        )


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
    """Print a result, such as a file that was written, on standard error."""
    print(text, file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Print an activity, such as a one-time compilation, on standard error."""
    tell(f"crosscast: {text}")


def warn(text: str) -> None:
    """Print a warning on standard error, and keep it for a page that is written later."""
    TYPED.get(Typed()).warnings.append(text)
    print(f"crosscast: warning: {text}", file=sys.stderr)


def warn_about(predictions: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Print each warning once, with the first label that it is about and the number of further ones."""
    labels_of: dict[str, list[str]] = {}
    for label, warnings in predictions:
        for warning in warnings:
            labels_of.setdefault(warning, []).append(label)
    for warning, labels in labels_of.items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        warn(f"{labels[0]}{more}: {warning}")


class _Warned(Protocol):
    """A prediction, with its applicability warnings: sentences without a full stop."""

    @property
    def label(self) -> str: ...
    @property
    def warnings(self) -> Sequence[str]: ...


def warn_of(predictions: Sequence[_Warned]) -> None:
    """Print each warning of predictions once, with their labels."""
    warn_about((prediction.label, prediction.warnings) for prediction in predictions)
