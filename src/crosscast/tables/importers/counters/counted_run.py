"""Runs as counter tools tell them, and what tools do not tell, made into runs of a dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.tables.importers.configured_runs import DEFAULT_SIZE, ConfiguredRun

__all__ = ["UNKNOWN_DEVICE", "Circumstances", "CountedRun", "configured_runs"]

UNKNOWN_DEVICE = "unknown"
"""Device of a profile of which nobody said where it was made."""


@dataclass(frozen=True)
class CountedRun:
    """What a tool tells of a run.

    Parameters
    ----------
    where
        The profile, for messages.
    name
        What the tool, or the profile's path, calls the program.
    counters
        What was counted, by the tool's names, in units of SI; shares of a whole are from 0 to 1.
    time_s
        How long it took, in seconds; ``None`` if the tool does not say.
    uses_gpu
        Whether a GPU was counted on; ``None`` if the tool does not say.
    kernel
        Part of the program that was counted; ``None`` for all of it.
    """

    where: str
    name: str
    counters: Mapping[str, float]
    time_s: float | None = None
    uses_gpu: bool | None = None
    kernel: str | None = None


@dataclass(frozen=True)
class Circumstances:
    """What people know of runs, and tools do not tell.

    Parameters
    ----------
    device
        Key of the device that they were counted on.
    application, kernel, size
        Names; by default the name that the tool knows, that of the application, and `DEFAULT_SIZE`.
    nodes, cores
        How many of each the run used; ``None`` if nobody says.
    uses_gpu
        Whether it used a GPU; ``None`` if nobody but the tool says.
    time_s
        How long each run took in seconds, where the tool does not say or is not to be believed.

    Raises
    ------
    InputError
        If a name is empty, or a number is not above 0.
    """

    device: str = UNKNOWN_DEVICE
    application: str | None = None
    kernel: str | None = None
    size: str | None = None
    nodes: int | None = None
    cores: int | None = None
    uses_gpu: bool | None = None
    time_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("device", "application", "kernel", "size"):
            text = getattr(self, name)
            if text is not None and not (text.strip() and text.isprintable()):
                raise InputError(f"{name}: expected a name, found {text[:60]!r}")
        for name in ("nodes", "cores"):
            count = getattr(self, name)
            if count is not None and count < 1:
                raise InputError(f"{name}: expected a whole number of at least 1, found {count}")
        if self.time_s is not None and not 0 < self.time_s < math.inf:
            raise InputError(f"time: expected seconds above 0, found {self.time_s:g}")

    def settings(self, run: CountedRun) -> dict[str, float]:
        """What a run was set to, as far as it is known."""
        # Who says that no GPU was used has not seen what a tool for GPUs has seen.
        uses_gpu = self.uses_gpu if run.uses_gpu is None else self.uses_gpu or run.uses_gpu
        told = {"nodes": self.nodes, "cores": self.cores, "uses_gpu": uses_gpu}
        return {name: float(value) for name, value in told.items() if value is not None}


def configured_runs(
    runs: Sequence[CountedRun], told: Circumstances, *, timed: bool = True
) -> list[ConfiguredRun]:
    """Runs for a dataset, numbered as repeats of the same work.

    Parameters
    ----------
    runs
        Runs of one program, one or more.
    told
        What is known of all of them.
    timed
        Whether each needs a time; if not, the time of a run without one is not a number.

    Raises
    ------
    InputError
        If a run has no counters, a time that is not above 0 or none where it needs one, a counter is not a
        finite number, or two runs are the same to the last digit. The message names the profile.
    """
    application = told.application or runs[0].name
    seen: dict[tuple[object, ...], str] = {}
    found: list[ConfiguredRun] = []
    for repeat, run in enumerate(runs):
        _check(run)
        time_s = run.time_s if told.time_s is None else told.time_s
        if time_s is None and timed:
            raise InputError(
                f"{run.where}: expected how long the run took, found no time: give its seconds with --time"
            )
        same = seen.setdefault((time_s, run.kernel, *sorted(run.counters.items())), run.where)
        if repeat and same != run.where:
            raise InputError(
                f"{run.where}: expected another run than {same}, found the same counters and time"
            )
        found.append(
            ConfiguredRun(
                application=application,
                kernel=told.kernel or run.kernel or application,
                size=told.size or DEFAULT_SIZE,
                configuration=Configuration(told.device, told.settings(run)),
                time_s=math.nan if time_s is None else time_s,
                powers=(),
                counters=dict(run.counters),
                repeat=repeat,
            )
        )
    return found


def _check(run: CountedRun) -> None:
    if not run.counters:
        raise InputError(f"{run.where}: expected counters, found none")
    for name, value in run.counters.items():
        if not math.isfinite(value):
            raise InputError(f"{run.where}: {name[:60]}: expected a finite number, found {value}")
    if run.time_s is not None and not 0 < run.time_s < math.inf:
        raise InputError(f"{run.where}: expected a time above 0 seconds, found {run.time_s:g}")
