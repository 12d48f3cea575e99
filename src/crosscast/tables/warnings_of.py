"""Warnings about measurements: what makes their times doubtful, from the records and sessions alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crosscast.tables.arrow import Table
from crosscast.tables.cells import cells_of, least_times, sound
from crosscast.tables.keys import distinct, key_numbers
from crosscast.tables.library import pa, pc
from crosscast.tables.samples import Reals
from crosscast.tables.sessions import SESSIONS
from crosscast.units import format_seconds

__all__ = [
    "LEAST_LOOP_S",
    "LEAST_RUNS",
    "LEAST_TICKS",
    "MOST_CLOCK_CHANGE",
    "MOST_LOAD",
    "MOST_SPREAD",
    "RecordWarning",
    "Rule",
    "warnings_of",
]

MOST_SPREAD = 0.10
"""Standard deviation of a cell's run means over their mean."""
LEAST_TICKS = 100
"""Mean time of an invocation over the resolution of the device's timer."""
MOST_CLOCK_CHANGE = 0.05
"""Change of the clock during a session, over the clock before."""
MOST_LOAD = 0.5
"""Other processes that want to run, before or after a session."""
LEAST_RUNS = 50
"""Recorded runs of a session."""
LEAST_LOOP_S = 2.0
"""Time of all recorded runs of a session."""

_NO_SETTINGS = "{}"

Rule = Literal["spread", "resolution", "ticks", "clock", "load", "runs", "loop"]


@dataclass(frozen=True)
class RecordWarning:
    """Why some times are doubtful.

    Parameters
    ----------
    rule
        Which rule found it.
    warning
        What was found, as a sentence.
    application, size, device, configuration
        Where; the configuration as JSON.
    kernel
        The kernel, where it is about one.
    repeat
        Number of the process, where it is about one.
    """

    rule: Rule
    warning: str
    application: str
    size: str
    device: str
    configuration: str
    kernel: str | None = None
    repeat: int | None = None


def warnings_of(records: Table, sessions: Table) -> list[RecordWarning]:
    """Look for what makes times doubtful, in one session or many.

    Sessions that failed, and their records, are left out. A rule whose facts are missing says nothing.
    The number of runs is not judged of sessions on settings that were not measured here (they have no
    `environment`): sweeps over configurations have few runs of each.

    Parameters
    ----------
    records
        Table of records.
    sessions
        Table of sessions; none if nothing is known of them.

    Returns
    -------
    list of RecordWarning
        In the order of application, size, device, configuration, kernel and process.
    """
    records = sound(records, sessions)
    sessions = sessions.filter(pc.is_null(sessions.column("failure")))
    found = [
        *_cell_warnings(records, sessions),
        *_few_runs(records, sessions),
        *(warning for row in sessions.to_pylist() for warning in _session_warnings(row)),
    ]
    return sorted(
        found,
        key=lambda w: (
            w.application,
            w.size,
            w.device,
            w.configuration,
            w.kernel or "",
            w.repeat or 0,
            w.rule,
        ),
    )


def _cell_warnings(records: Table, sessions: Table) -> Iterator[RecordWarning]:
    cells = cells_of(records)
    numbers = cells.numbers
    means, deviations = cells.times.mean(), cells.times.sd()
    resolution = _resolution(records, sessions)
    least = least_times(records)
    too_short = np.bincount(numbers, weights=(least <= 0) | (least < resolution), minlength=len(means))
    # The coarsest of the timers that a cell's sessions had; not a number if none is known.
    coarsest = np.full(len(means), np.nan)
    np.fmax.at(coarsest, numbers, resolution)
    spread = deviations > MOST_SPREAD * means
    few_ticks = means < LEAST_TICKS * coarsest
    for place in np.flatnonzero(spread | few_ticks | (too_short > 0)):
        where = cells.keys.slice(place, 1).to_pylist()[0]
        mean, runs = means[place], cells.times.counts[place]
        if spread[place]:
            yield RecordWarning(
                "spread",
                f"the times of its {runs} runs spread by {_percent(deviations[place] / mean)} "
                f"(standard deviation over mean), more than {_percent(MOST_SPREAD)}",
                **where,
            )
        if too_short[place]:
            yield RecordWarning(
                "resolution",
                f"{too_short[place]:.0f} of its {_runs(runs)} {'has' if too_short[place] == 1 else 'have'} "
                "a time of 0 or under the timer's "
                f"resolution{_in_brackets(coarsest[place])}",
                **where,
            )
        elif few_ticks[place]:
            yield RecordWarning(
                "ticks",
                f"its mean time of {format_seconds(mean)} is less than {LEAST_TICKS} times the timer's "
                f"resolution{_in_brackets(coarsest[place])}",
                **where,
            )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _in_brackets(seconds: float) -> str:
    return "" if np.isnan(seconds) else f" ({format_seconds(seconds)})"


def _resolution(records: Table, sessions: Table) -> Reals:
    """For each record, the resolution of its session's timer in seconds, or not a number."""
    wanted, numbers = key_numbers([records, sessions], SESSIONS.key)
    known = np.full(int(max(wanted.max(initial=-1), numbers.max(initial=-1))) + 1, np.nan)
    known[numbers] = sessions.column("timer_resolution_s").to_numpy()
    return known[wanted]


def _few_runs(records: Table, sessions: Table) -> Iterator[RecordWarning]:
    """Of sessions that only their records tell of."""
    wanted, numbers = key_numbers([records, sessions], SESSIONS.key)
    records = records.filter(pa.array(~np.isin(wanted, numbers)))
    # The kernels of a session share its runs.
    runs, _ = distinct(records, (*SESSIONS.key, "run"))
    keys, places = distinct(runs, SESSIONS.key)
    for key, count in zip(keys.to_pylist(), np.bincount(places).tolist(), strict=True):
        if count < LEAST_RUNS and key["configuration"] == _NO_SETTINGS:
            yield RecordWarning("runs", _few(count), **key)


def _few(runs: int) -> str:
    return f"its session has {_runs(runs)}, fewer than {LEAST_RUNS}"


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"


def _session_warnings(session: Mapping[str, Any]) -> Iterator[RecordWarning]:
    where = {name: session[name] for name in SESSIONS.key}
    runs = session["runs"]
    is_of_sweep = session["configuration"] != _NO_SETTINGS and session["environment"] is None
    if runs is not None and runs < LEAST_RUNS and not is_of_sweep:
        yield RecordWarning("runs", _few(runs), **where)
    before, after = session["clock_before_hz"], session["clock_after_hz"]
    if before and after is not None and abs(after - before) > MOST_CLOCK_CHANGE * before:
        yield RecordWarning(
            "clock",
            f"the clock changed by {(after - before) / before * 100:+.0f} % during its runs, more than "
            f"{_percent(MOST_CLOCK_CHANGE)}",
            **where,
        )
    loads = {when: session[f"load_{when}"] for when in ("before", "after")}
    for when, load in loads.items():
        if load is not None and load > MOST_LOAD:
            others = "1 other process" if f"{load:.2g}" == "1" else f"{load:.2g} other processes"
            yield RecordWarning(
                "load",
                f"{others} wanted to run {when} its runs, more than {MOST_LOAD:g}",
                **where,
            )
    loop = session["loop_s"]
    if loop is not None and loop < LEAST_LOOP_S:
        yield RecordWarning(
            "loop", f"its runs took {format_seconds(loop)}, less than {format_seconds(LEAST_LOOP_S)}", **where
        )
