"""Files that simulations write: a schedule, and figures of schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from crosscast.cli.options import FigureOutput
from crosscast.cluster.jobs import Schedule, write_schedule
from crosscast.cluster.resources import Steps, idle_power_w, power_over_time, queue_length
from crosscast.cluster.site import Budget
from crosscast.cluster.trace_files import write_swf
from crosscast.commands.output import check_file, tell, warn
from crosscast.errors import InputError
from crosscast.units import parse_elapsed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_WRITERS: dict[str, Callable[[Schedule, Path], None]] = {".csv": write_schedule, ".swf": write_swf}


@dataclass
class ScheduleFiles:
    """Collects what is needed of each schedule, and writes the requested files at the end."""

    out: Sequence[Path]
    output: FigureOutput
    window: str | None = None
    users: bool = False
    budget: Budget | None = None
    _from_s: float = field(default=0.0, init=False)
    _to_s: float = field(default=float("inf"), init=False)
    _last: tuple[str, Schedule] | None = field(default=None, init=False)
    _queues: dict[str, Steps] = field(default_factory=dict, init=False)
    _powers: dict[str, Steps] = field(default_factory=dict, init=False)
    _schedules: int = field(default=0, init=False)
    _origin_s: float = field(default=0.0, init=False)
    _end_s: float = field(default=0.0, init=False)

    def check(self, schedules: int) -> None:
        """Raise InputError if a file cannot be written, or an option would have no effect."""
        self._schedules = schedules
        for path in self.out:
            if schedules > 1:
                raise InputError.of(
                    where="--out", expected="one schedule to write", found=f"{schedules}: ask for one"
                )
            check_file("--out", path)
            if path.suffix not in _WRITERS:
                raise InputError.of(
                    where="--out", expected="a file name with .csv or .swf", found=repr(path.name)
                )
        if self.window is not None:
            if not self.draws:
                raise InputError("--window: nothing to draw without --figures or --html; leave it out")
            self._from_s, self._to_s = _window(self.window)

    @property
    def draws(self) -> bool:
        """Whether figures are requested."""
        return self.output.figures is not None or self.output.html is not None

    def keep(self, label: str, schedule: Schedule) -> None:
        """Take a schedule, and keep only what will be written."""
        if self.draws:
            self._queues[label] = queue_length(schedule)
            if self.budget is not None:
                self._keep_power(label, schedule, self.budget)
        if self._schedules == 1 and (self.out or self.draws):
            self._last = label, schedule
        self._origin_s = float(schedule.jobs.submit_s[0])
        self._end_s = max(self._end_s, float(schedule.end_s.max()) - self._origin_s)

    def _keep_power(self, label: str, schedule: Schedule, budget: Budget) -> None:
        power = power_over_time(schedule, budget)
        limit_w = budget.power_w[power.budget]
        # Machines are idle after the last job.
        time_s = np.append(power.time_s, power.end_s)
        watts = np.append(power.power_w, idle_power_w(schedule.machines))
        self._powers[label] = Steps(time_s, np.rint(watts).astype(np.int64))
        if np.isfinite(limit_w).all():
            self._powers["budget"] = Steps(power.time_s, np.rint(limit_w).astype(np.int64))

    def write(self) -> None:
        """Write the schedule."""
        for path in self.out:
            if self._last is not None:
                _WRITERS[path.suffix](self._last[1], path)
                tell(f"wrote {path}")

    def figures(self, title: str) -> dict[str, Figure]:
        """Draw the requested figures; errors are raised before a file is written."""
        if not self.draws:
            return {}
        # Imported here, as figures of experiments import models.
        from crosscast.report.schedule_figures import gantt, queue_figure

        to_s = min(self._to_s, self._end_s)
        if self._from_s and self._from_s >= to_s:
            raise InputError.of(
                where="--window",
                expected=f"a start before the last end, {to_s:g} s",
                found=f"{self._from_s:g} s",
            )
        figures = {}
        if self._last is not None:
            label, schedule = self._last
            heading = f"{title}: {len(schedule.jobs):,} jobs, {label}"
            colour: Literal["user", "wait"] = "user" if self.users else "wait"
            try:
                figures["timeline"] = gantt(schedule, heading, colour=colour, from_s=self._from_s, to_s=to_s)
            except InputError as error:
                if error.field != "jobs":
                    raise
                warn(str(error))
        draw = partial(queue_figure, origin_s=self._origin_s, from_s=self._from_s, to_s=to_s)
        figures["queue-length"] = draw(self._queues, f"{title}: jobs that wait")
        if self._powers:
            # The budget comes first.
            powers = dict(sorted(self._powers.items(), key=lambda item: item[0] != "budget"))
            heading = f"{title}: power of all machines"
            figures["power"] = draw(powers, heading, what="power in watts", limit="budget")
        return figures


def _window(text: str) -> tuple[float, float]:
    """Parse start and end in seconds of ``10d:17d``; either may be left out."""
    start, colon, end = text.partition(":")
    if not colon or text == ":":
        raise InputError.of(
            where="--window", expected="times with a colon between, such as 10d:17d", found=repr(text)
        )
    try:
        from_s = parse_elapsed(start) if start else 0.0
        to_s = parse_elapsed(end) if end else float("inf")
    except InputError as error:
        raise InputError(f"--window: {error}") from error
    if to_s <= from_s:
        raise InputError.of(
            where="--window", expected=f"an end after the start, {from_s:g} s", found=f"{to_s:g} s"
        )
    return from_s, to_s
