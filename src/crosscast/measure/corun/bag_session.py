"""One bag: its members run at the same time, again and again, and then from a common start."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from crosscast.errors import DeviceFault
from crosscast.measure.corun.bag_run import BagRun, MemberRun
from crosscast.measure.corun.mean_power import powers
from crosscast.measure.corun.member import Member, hear, hear_all
from crosscast.measure.corun.settings import CoRunSettings
from crosscast.measure.corun.window import Span, inside, overlap, window
from crosscast.measure.jobs import Report
from crosscast.measure.loop import Watch
from crosscast.measure.sensors.sensor import Sensor

__all__ = ["measure_bag"]

_LEAD_S = 0.02
"""Time from an order to the common start, in which all must have heard of it."""
_LOOK_S = 0.05
"""Time after which the loop is looked at where nobody says anything."""


def measure_bag(
    members: Sequence[Member],
    runs: Sequence[int],
    sensor: Sensor,
    settings: CoRunSettings,
    sharing: Mapping[str, str | int],
    report: Report = lambda runs, elapsed_s: None,
) -> BagRun:
    """Measure members that are ready.

    They repeat jobs until each has enough of them in the time in which all run; then all start one job
    together, round by round; then all results are checked. As soon as one fails, the others stop, and what
    they did is kept.

    Parameters
    ----------
    members
        The members.
    runs
        Runs in a job of each.
    sensor
        What watches the power meanwhile.
    settings
        How long.
    sharing
        How the device is shared.
    report
        Told how many whole jobs each member has at least, and the seconds.
    """
    notes: list[str] = []
    started_s = time.monotonic()
    watch = Watch(sensor, notes)
    _loop(members, runs, settings, watch, report)
    readings = watch.readings()
    counters = [{} if member.failure else dict(member.answer) for member in members]
    together = window([member.jobs for member in members])
    rounds = _rounds(members, runs, settings)
    _ask(members, settings, "check")
    if not _failed(members):
        notes += _shortage(members, together, settings)
    else:
        rounds = []
    return BagRun(
        tuple(map(_run_of, members, runs, counters, [together] * len(members))),
        [max(job.end_s for job in jobs) - min(job.start_s for job in jobs) for jobs in rounds],
        median(map(overlap, rounds)) if rounds else None,
        powers(readings, started_s, together) if together else {},
        dict(sharing),
        notes,
    )


def _loop(
    members: Sequence[Member],
    runs: Sequence[int],
    settings: CoRunSettings,
    watch: Watch,
    report: Report,
) -> None:
    """Let all repeat their jobs until there is enough, one fails, or the time is over."""
    start = time.monotonic()
    end = start + settings.timeout_s
    for member, number in zip(members, runs, strict=True):
        member.order("loop", at=start + _LEAD_S, runs=number)
    while not _failed(members) and not (_enough(members, settings) and watch.has_enough()):
        now = time.monotonic()
        if now > end:
            _give_up_the_silent(members, settings)
            break
        hear(members, min(now + _LOOK_S, end), until=lambda: True)
        report(min(len(member.jobs) for member in members), now - start)
    _ask(members, settings, "stop")


def _give_up_the_silent(members: Sequence[Member], settings: CoRunSettings) -> None:
    for member in members:
        if not member.jobs:
            limit = f"{settings.timeout_s:g} s (the time limit)"
            member.fail(DeviceFault(f"{member.label}: did not end a job within {limit}"))


def _rounds(
    members: Sequence[Member], runs: Sequence[int], settings: CoRunSettings
) -> list[tuple[Span, ...]]:
    """Jobs of each round; fewer rounds if a member fails."""
    rounds: list[tuple[Span, ...]] = []
    while len(rounds) < settings.rounds and not _failed(members):
        at = time.monotonic() + _LEAD_S
        for member, number in zip(members, runs, strict=True):
            member.order("round", at=at, runs=number)
        hear_all(members, settings.timeout_s)
        if not _failed(members):
            rounds.append(tuple(Span(*member.answer) for member in members))
    return rounds


def _ask(members: Sequence[Member], settings: CoRunSettings, do: str) -> None:
    for member in members:
        member.order(do)
    hear_all(members, settings.timeout_s)


def _failed(members: Sequence[Member]) -> bool:
    return any(member.failure for member in members)


def _enough(members: Sequence[Member], settings: CoRunSettings) -> bool:
    together = window([member.jobs for member in members])
    if together is None or together.length_s < settings.window_s:
        return False
    return all(len(_inside(member, together)) >= settings.jobs for member in members)


def _inside(member: Member, together: Span) -> range:
    return range(len(member.jobs))[inside(member.jobs, together)]


def _shortage(members: Sequence[Member], together: Span | None, settings: CoRunSettings) -> list[str]:
    """Which members have fewer jobs than asked, for people."""
    found = [(member.label, len(_inside(member, together)) if together else 0) for member in members]
    return [
        f"{label}: expected {settings.jobs} whole jobs while all run, found {jobs} within "
        f"{settings.timeout_s:g} s (the time limit)"
        for label, jobs in found
        if jobs < settings.jobs
    ]


def _run_of(member: Member, runs: int, counters: Mapping[str, float], together: Span | None) -> MemberRun:
    if member.failure is not None:
        return MemberRun(runs, memory_bytes=member.memory_bytes, failure=member.failure)
    jobs = _inside(member, together) if together else range(0)
    return MemberRun(
        runs,
        [member.jobs[job].length_s for job in jobs],
        fmean(member.cpu_s[job] for job in jobs) if jobs else None,
        # The CPU counted a run of the whole loop.
        {name: value * runs for name, value in counters.items()},
        member.memory_bytes,
    )
