"""Progress of long work on standard error, for what takes a while."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Self, TextIO

from crosscast.units import format_count, format_seconds

if TYPE_CHECKING:
    from crosscast.characterization import run
    from crosscast.characterization.run import Progress
    from crosscast.evaluation.loop import State
    from crosscast.kernel import Launch
    from crosscast.measure.campaign import Outcome
    from crosscast.measure.campaign import State as CampaignState
    from crosscast.profile import Profile


_QUIET_S = 2.0
_PLAIN_INTERVAL_S = 5.0


class StatusLine:
    """A line that says what is going on, from two seconds on: rewritten on a terminal, else line by line.

    As a context manager, it is gone from the terminal when the work is done or has failed.

    Parameters
    ----------
    stream
        Where to write.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._shown = 0
        self._next_s = _QUIET_S

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line from the terminal."""
        self.close()

    def is_due(self, elapsed_s: float) -> bool:
        """Whether it is time to show the state, this long after the start."""
        if elapsed_s < self._next_s:
            return False
        self._next_s = elapsed_s + (0 if self._terminal else _PLAIN_INTERVAL_S)
        return True

    def show(self, text: str) -> None:
        """Show the state."""
        if self._terminal:
            self._stream.write("\r" + text.ljust(self._shown))
            self._shown = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Remove the line from the terminal."""
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0


class ProgressLine(StatusLine):
    """Shows how far a running kernel is.

    Parameters
    ----------
    stream
        Where to write.
    label
        What runs.
    """

    def __init__(self, stream: TextIO, label: str) -> None:
        super().__init__(stream)
        self._label = label

    def __call__(self, progress: Progress) -> None:
        """Show the state if it is time to."""
        if self.is_due(progress.elapsed_s):
            done, total = progress.groups_done, progress.groups_total
            self.show(describe(self._label, done, total, progress.elapsed_s))


class FitStatus(StatusLine):
    """Shows how many fits are done, and how long the rest will take."""

    def __init__(self, noun: str = "fits") -> None:
        super().__init__(sys.stderr)
        self._noun = noun

    def __call__(self, state: State) -> None:
        """Show the state if it is time to."""
        if self.is_due(state.elapsed_s):
            left = time_left(state.left_s)
            self.show(f"{state.done} of {state.total} {self._noun}, {left}: {state.label}")


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


def run_launch(launch: Launch, invocation: int, options: run.Options) -> Profile:
    """Characterize a launch; how far it is shows on standard error.

    Parameters
    ----------
    launch
        What to run.
    invocation
        Number of the launch, for the profile.
    options
        How to run it.

    Raises
    ------
    CrosscastError
        As `crosscast.characterization.run.characterize_launch` does.
    """
    # Imported here: `--help` needs no NumPy.
    from crosscast.characterization import run

    with ProgressLine(sys.stderr, launch.kernel.name) as progress:
        return run.characterize_launch(
            launch, invocation=invocation, options=replace(options, progress=progress)
        )


class LabelStatus(StatusLine):
    """Says on standard error what is being done, and for how long everything takes so far."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._start = time.monotonic()

    def __call__(self, label: str) -> None:
        """Show what is being done if it is time to."""
        elapsed_s = time.monotonic() - self._start
        if self.is_due(elapsed_s):
            self.show(f"{label}, {format_seconds(elapsed_s)} so far")


class CampaignStatus(StatusLine):
    """Says what a campaign does, how much is done, and how long the rest will take."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._start = time.monotonic()

    def __call__(self, state: CampaignState) -> None:
        """Show the state if it is time to."""
        if self.is_due(time.monotonic() - self._start):
            left = time_left(state.left_s)
            self.show(f"{state.done} of {state.total} done, {left}: {state.label}")


def print_outcome(outcome: Outcome) -> None:
    """Print the notes and failures of a campaign on standard error."""
    for note in outcome.notes:
        print(f"crosscast: note: {note}", file=sys.stderr)
    for failure in outcome.failures:
        print(f"crosscast: failed: {failure.task.label}: {failure.reason}", file=sys.stderr)
