"""What ``crosscast schedule`` is asked, and the files that it writes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosscast.cli.options import check_file, check_picture, names_in
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.cluster.jobs import Policy, Schedule
    from crosscast.cluster.metrics import Steps


def policies_of(policy: str, queue: str | None, backfill: str | None) -> list[Policy]:
    """All combinations of what was typed; nothing is backfilled with ``fcfs``.

    Parameters
    ----------
    policy, queue, backfill
        Names with commas between.

    Raises
    ------
    InputError
        If a name is unknown, or orders of backfilling are given and no policy backfills.
    """
    from crosscast.cluster.jobs import policy_named

    policies = names_in("--policy", policy)
    queues = [None] if queue is None else names_in("--queue", queue)
    backfills = [None] if backfill is None else names_in("--backfill", backfill)
    found = [
        policy_named(name, first, second)
        for name in policies
        for first in queues
        for second in ([None] if name == "fcfs" and "easy" in policies else backfills)
    ]
    return list(dict.fromkeys(found))


def refuse_unused(given: Mapping[str, object], reason: str) -> None:
    """Refuse options that would be passed over.

    Parameters
    ----------
    given
        Value of each option; ``None`` or false if it was not typed.
    reason
        Why there is nothing to say.

    Raises
    ------
    InputError
        If one was typed.
    """
    for option, value in given.items():
        if value is not None and value is not False:
            raise InputError(f"{option}: {reason}; leave the option out")


def prepare_simulator() -> None:
    """Have the simulator compiled, and say so where that takes a while."""
    from crosscast.cluster.experiment import prepare

    prepare(lambda text: print(text, file=sys.stderr, flush=True))


def elapsed(option: str, text: str | None) -> float | None:
    """Read a time since the first submission, in seconds; ``None`` where nothing was typed."""
    if text is None:
        return None
    from crosscast.units import parse_elapsed

    try:
        return parse_elapsed(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from error


@dataclass
class ScheduleFiles:
    """Takes each schedule as it comes, and writes what was asked for at the end.

    Parameters
    ----------
    out, swf_out, timeline, queue_length
        Paths of the schedule as CSV and as SWF, and of the two pictures, if wanted.
    from_s, to_s
        What the pictures show, in seconds since the first submission; ``None`` for all.
    colour
        What the colours of the timeline tell; ``None`` if nothing was said.
    """

    out: Path | None = None  # Paths of the schedule as CSV and as SWF, and of the two pictures, if wanted
    swf_out: Path | None = None
    timeline: Path | None = None
    queue_length: Path | None = None
    # What the pictures show, in seconds since the first submission; `None` for all
    from_s: float | None = None
    to_s: float | None = None
    # What the colours of the timeline tell; `None` if nothing was said
    colour: Literal["wait", "user"] | None = None
    _schedule: Schedule | None = field(default=None, init=False)
    _label: str = field(default="", init=False)
    _queues: dict[str, Steps] = field(default_factory=dict, init=False)
    _origin_s: float = field(default=0.0, init=False)
    _last_s: float = field(default=0.0, init=False)

    def prepare(self, schedules: int) -> None:
        """Refuse what cannot be written or would not be used, before a long run rather than after it.

        Parameters
        ----------
        schedules
            How many schedules there will be.

        Raises
        ------
        InputError
            If a folder is not there, a picture has no known format, an option would be passed over, or a file
            of one schedule is asked for and there will be several.
        MissingExtraError
            If matplotlib is needed and not installed.
        """
        one = {"--out": self.out, "--swf-out": self.swf_out, "--timeline": self.timeline}
        for option, path in (one | {"--queue-length": self.queue_length}).items():
            if path is None:
                continue
            if option in one and schedules > 1:
                raise InputError(f"{option}: expected one schedule to write, found {schedules}: ask for one")
            check_file(option, path)
        for option, path in (("--timeline", self.timeline), ("--queue-length", self.queue_length)):
            if path is not None:
                check_picture(option, path)
        if self.timeline is None and self.colour is not None:
            raise InputError("--colour: nothing to say without --timeline; leave the option out")
        if self.timeline is None and self.queue_length is None:
            for option, value in (("--from", self.from_s), ("--to", self.to_s)):
                if value is not None:
                    raise InputError(
                        f"{option}: nothing to say without --timeline or --queue-length; leave the option out"
                    )
        if self.to_s is not None and self.to_s <= (self.from_s or 0.0):
            raise InputError(
                f"--to: expected a time after --from, {self.from_s or 0:g} s, found {self.to_s:g} s"
            )

    def keep(self, label: str, schedule: Schedule) -> None:
        """Take a schedule, of which only what will be written is kept.

        Parameters
        ----------
        label
            Name of what made it.
        schedule
            The schedule.
        """
        if self.queue_length is not None:
            from crosscast.cluster.metrics import queue_length

            self._queues[label] = queue_length(schedule)
        if self.out or self.swf_out or self.timeline:
            self._schedule, self._label = schedule, label
        self._origin_s = float(schedule.jobs.submit_s[0])
        self._last_s = max(self._last_s, float(schedule.end_s.max()) - self._origin_s)

    def write(self, title: str) -> None:
        """Write the files, and say so on standard error.

        Parameters
        ----------
        title
            What was scheduled.

        Raises
        ------
        InputError
            If a file cannot be written, or there is nothing to draw.
        """
        from_s, to_s = self._window()
        # Pictures first: if there is nothing to draw, no file is written.
        if self.timeline is not None and self._schedule is not None:
            from crosscast.report.schedule import write_gantt

            jobs = f"{title}: {len(self._schedule.jobs):,} jobs, {self._label}"
            colour = self.colour or "wait"
            write_gantt(self._schedule, self.timeline, jobs, colour=colour, from_s=from_s, to_s=to_s)
            _tell(self.timeline)
        if self.queue_length is not None:
            from crosscast.report.schedule import write_queue_figure

            about = f"{title}: jobs that wait"
            write_queue_figure(
                self._queues,
                self.queue_length,
                about,
                origin_s=self._origin_s,
                from_s=from_s,
                to_s=to_s,
            )
            _tell(self.queue_length)
        if self._schedule is not None:
            self._write_schedule(self._schedule)

    def _window(self) -> tuple[float, float]:
        from_s = self.from_s or 0.0
        to_s = self._last_s if self.to_s is None else min(self.to_s, self._last_s)
        if self.from_s is not None and from_s >= to_s:
            raise InputError(f"--from: expected a time before the last end, {to_s:g} s, found {from_s:g} s")
        return from_s, to_s

    def _write_schedule(self, schedule: Schedule) -> None:
        from crosscast.cluster.jobs import write_schedule
        from crosscast.cluster.swf import write_swf

        writers: list[tuple[Path | None, Callable[[Schedule, Path], None]]] = [
            (self.out, write_schedule),
            (self.swf_out, write_swf),
        ]
        for path, write in writers:
            if path is not None:
                write(schedule, path)
                _tell(path)


def _tell(path: Path) -> None:
    print(f"wrote {path}", file=sys.stderr)
