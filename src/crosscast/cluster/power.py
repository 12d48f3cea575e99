"""Configurations in which jobs can run under a budget of power, their starts by its price, and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster.jobs import Machine, PlacedJobs, Schedule, Speeds
from crosscast.cluster.site import (
    MILLIWATTS,
    Budget,
    PowerPolicy,
    Shift,
    extra_power_w,
    idle_power_w,
    milliwatts,
    most_draw,
    rows_of_csv,
)
from crosscast.data.files import number_of_text
from crosscast.errors import InputError


@dataclass(frozen=True)
class PowerOptions:
    """Configurations in which ``c`` kinds of jobs can run, up to ``k`` each, the fastest first.

    Arrays are of shape ``(c, k)``, padded with NaN.
    """

    kinds: tuple[str, ...]
    power_w: Reals  # Power of a processor that runs such a job, in watts
    slowdown: Reals  # Time over that in the fastest configuration
    predicted_power_w: Reals | None = None  # Predictions of these; `None` without any
    predicted_slowdown: Reals | None = None
    # Power cap of a processor in watts; NaN where it is not one cap for all
    cap_w: Reals | None = None

    def believed(self, policy: PowerPolicy) -> tuple[Reals, Reals]:
        """Return the power and the slowdown that a policy uses."""
        if policy != "model":
            return self.power_w, self.slowdown
        if self.predicted_power_w is None or self.predicted_slowdown is None:
            raise InputError.of(
                where="power",
                field="model",
                expected="options with predicted power and slowdown",
                found="none",
            )
        return self.predicted_power_w, self.predicted_slowdown


MOST_SLOWDOWN = 1e6
"""Largest slowdown in files; with more, times would have hundreds of digits."""
_MOST_W = 1e9

_TRUE = ("power_w", "slowdown")
_PREDICTED = ("predicted_power_w", "predicted_slowdown")
_CAP = "cap_w"


def read_power_options(path: str | Path) -> PowerOptions:
    """Read configurations of kinds of jobs: a CSV file with a row for each.

    Columns are `kind`, `power_w`, `slowdown`, and maybe `predicted_power_w` and `predicted_slowdown`, and
    `cap_w`, which may be empty.
    """
    header, rows = rows_of_csv(path, "power options", ("kind", *_TRUE), (*_PREDICTED, _CAP))
    names = [name for name in (*_TRUE, *_PREDICTED, _CAP) if name in header]
    if len(set(names) & set(_PREDICTED)) == 1:
        raise InputError.of(where=path, expected=f"both or none of {', '.join(_PREDICTED)}", found="one")
    by_kind: dict[str, list[list[float]]] = {}
    for where, cells in rows:
        numbers = []
        for name in names:
            number = number_of_text(cells[name])
            limit = MOST_SLOWDOWN if "slowdown" in name else _MOST_W
            if not 0 < number <= limit and not (name == _CAP and not cells[name]):
                found = repr(cells[name])
                expected = "a number above 0" + (f" and at most {limit:g}" if number > 0 else "")
                raise InputError.of(where=where, field=name, expected=expected, found=found)
            numbers.append(number)
        of_kind = by_kind.setdefault(cells["kind"], [])
        if any(np.array_equal(numbers, others, equal_nan=True) for others in of_kind):
            expected, found = "each configuration of a kind once", f"one of kind {cells['kind']} again"
            raise InputError.of(where=where, expected=expected, found=found)
        of_kind.append(numbers)
    most = max(map(len, by_kind.values()))
    table = np.full((len(names), len(by_kind), most), np.nan)
    for index, (kind, rows_of_kind) in enumerate(by_kind.items()):
        ordered = sorted(rows_of_kind, key=lambda row: (row[1], row[0]))
        if abs(ordered[0][1] - 1) > _SAME:
            expected, found = "a configuration with a slowdown of 1", f"{ordered[0][1]:g} at best"
            where = f"{path}: kind {kind}"
            raise InputError.of(where=where, field="slowdown", expected=expected, found=found)
        table[:, index, : len(ordered)] = np.array(ordered).T
    return PowerOptions(tuple(by_kind), **dict(zip(names, table, strict=True)))


_SAME = 1e-6


def read_forecasts(path: str | Path, number: Integers) -> Reals:
    """Read forecast times of jobs in seconds, NaN for jobs without one.

    A CSV file with columns `job`, its number in the trace, and `predicted_s`; it need not have all jobs, and
    may have others.
    """
    _, rows = rows_of_csv(path, "forecasts", ("job", "predicted_s"))
    forecasts: dict[int, float] = {}
    for where, cells in rows:
        seconds = number_of_text(cells["predicted_s"])
        if not (seconds >= 0 and np.isfinite(seconds)):
            expected, text = "seconds of at least 0", repr(cells["predicted_s"])
            raise InputError.of(where=where, field="predicted_s", expected=expected, found=text)
        if not cells["job"].isdecimal():
            raise InputError.of(where=where, field="job", expected="a number", found=repr(cells["job"]))
        if int(cells["job"]) in forecasts:
            raise InputError.of(where=where, field="job", expected="each once", found=f"{cells['job']} again")
        forecasts[int(cells["job"])] = seconds
    return np.array([forecasts.get(job, np.nan) for job in number.tolist()], np.float64)


def check_idle(options: PowerOptions, kind: Integers, placed: PlacedJobs, file: Path) -> None:
    """Refuse a configuration of jobs that takes less power than an idle processor of their machine."""
    for index, of_kind in sorted(set(zip(placed.machine.tolist(), kind.tolist(), strict=True))):
        machine, least_w = placed.machines[index], float(np.nanmin(options.power_w[of_kind]))
        if least_w < machine.idle_w:
            where, found = f"{file}: kind {options.kinds[of_kind]}", f"{least_w:g} W"
            expected = f"at least the {machine.idle_w:g} W of an idle processor of {machine.name}"
            raise InputError.of(where=where, field="power_w", expected=expected, found=found)


def kinds_of_jobs(
    kinds: Sequence[str], names: Sequence[str] | None, count: int, seed: int
) -> tuple[Integers, int]:
    """Return the kind of each job, by name or else at random, and the number of random ones."""
    by_name = {name: index for index, name in enumerate(kinds)}
    known = np.full(count, -1) if names is None else np.array([by_name.get(name, -1) for name in names])
    drawn = np.random.default_rng(seed).integers(len(by_name), size=count)
    return np.where(known < 0, drawn, known).astype(np.int64), int(np.count_nonzero(known < 0))


def cheapest_release_s(placed: PlacedJobs, budget: Budget, by: Shift, limit_s: float) -> Reals:
    """Return the start of each job with the lowest cost of its energy, by its estimate.

    Starts are at most `limit_s` after submission; ties go to the first. The cost is piecewise linear in the
    start, with breaks where the job starts or ends at a step of the budget, so that only these are tried.
    """
    jobs = placed.jobs
    level = budget.carbon_g_per_kwh if by == "carbon" else budget.price_per_kwh
    if by == "never" or level is None or not len(jobs):
        return jobs.submit_s
    origin_s = jobs.submit_s[0]
    since, run_s = jobs.submit_s - origin_s, placed.on_machine(jobs.estimate_s)
    lasts = np.isfinite(run_s) & (run_s > 0)
    run_s = np.where(lasts, run_s, 0.0)
    step_s = budget.start_s
    total = np.concatenate(([0.0], np.cumsum(np.diff(step_s) * level[:-1])))

    def cost(start_s: Reals) -> Reals:
        return _sum_until(start_s + run_s, step_s, level, total) - _sum_until(start_s, step_s, level, total)

    best_s, least = since.copy(), cost(since)
    # Steps at which the job may start, then those at which it may end.
    for shift in (np.zeros(len(jobs)), run_s):
        first = np.searchsorted(step_s, since + shift, side="right")
        last = np.searchsorted(step_s, since + shift + limit_s, side="right")
        for offset in range(int((last - first).max(initial=0))):
            index = np.minimum(first + offset, len(step_s) - 1)
            start_s = np.clip(step_s[index] - shift, since, since + limit_s)
            best_s, least = _better(best_s, least, start_s, cost(start_s), (first + offset < last) & lasts)
    start_s = since + limit_s
    best_s, least = _better(best_s, least, start_s, cost(start_s), lasts)
    release_s: Reals = best_s + origin_s
    return release_s


_GAIN = 1e-9
"""Share of the cost by which a later start must be cheaper, above rounding errors."""


def _better(best_s: Reals, least: Reals, start_s: Reals, cost: Reals, allowed: Flags) -> tuple[Reals, Reals]:
    margin = _GAIN * np.abs(least)
    is_less = allowed & ((cost < least - margin) | ((cost <= least) & (start_s < best_s)))
    return np.where(is_less, start_s, best_s), np.where(is_less, cost, least)


def _sum_until(time_s: Reals, step_s: Reals, level: Reals, total: Reals) -> Reals:
    """Integrate a step function up to these times, from its first step on."""
    index = np.maximum(np.searchsorted(step_s, time_s, side="right") - 1, 0)
    return total[index] + (time_s - step_s[index]) * level[index]


@dataclass(frozen=True)
class PowerMetrics:
    """Power and energy of a schedule, from the first submission to the last end, or to a later time."""

    energy_kwh: float  # Energy of all machines, idle processors included
    mean_w: float | None  # Mean power in watts; `None` if no time passes
    peak_w: float  # Highest power in watts
    within_budget: float | None  # Share of the time with no more power than the budget; `None` without one
    over_budget: float | None  # Largest excess over it, as a share of it
    cost: float | None  # Cost of the energy in the currency of the prices; `None` without prices
    carbon_kg: float | None  # Kilograms of CO2; `None` without carbon intensities


@dataclass(frozen=True)
class PowerOverTime:
    """Power of all machines, a step function from the first submission to the last end."""

    time_s: Reals  # Start of each of `k` steps in seconds, ascending; steps may be equal
    end_s: float  # End of the last step
    power_w: Reals  # Watts in each step
    budget: Integers  # Index of the budget's step

    @property
    def seconds(self) -> Reals:
        """Duration of each step, in seconds."""
        return np.diff(self.time_s, append=self.end_s)


def power_over_time(schedule: Schedule, budget: Budget) -> PowerOverTime:
    """Return the power of all machines over time, cut where the budget changes."""
    jobs, machines = schedule.jobs, schedule.machines
    start_s, end_s = float(jobs.submit_s[0]), float(schedule.end_s.max())
    changes, change = _changes(schedule)
    order = np.argsort(changes, kind="stable")
    level = np.cumsum(change[order])
    cuts = start_s + budget.start_s
    time_s = np.unique(np.concatenate(([start_s], changes, cuts[(cuts > start_s) & (cuts < end_s)])))
    time_s = time_s[time_s < end_s] if end_s > start_s else time_s[:1]
    index = np.searchsorted(changes[order], time_s, side="right") - 1
    watts = np.where(index >= 0, level[index], 0) / MILLIWATTS + idle_power_w(machines)
    step = np.maximum(np.searchsorted(cuts, time_s, side="right") - 1, 0)
    return PowerOverTime(time_s, end_s, watts, step)


def _changes(schedule: Schedule) -> tuple[Reals, Integers]:
    """Return the times at which power changes, in any order, and by how many milliwatts."""
    extra = milliwatts(extra_power_w(schedule))
    if schedule.speeds is not None:
        return _changes_of_seats(schedule, schedule.speeds, extra)
    began, ended = schedule.start_s, schedule.end_s
    if schedule.cuts is not None:
        # Preempted runs have drawn power, too.
        began = np.concatenate((began, schedule.cuts.start_s))
        ended = np.concatenate((ended, schedule.cuts.end_s))
        extra = np.concatenate((extra, extra[schedule.cuts.job]))
    return np.concatenate((began, ended)), np.concatenate((extra, -extra))


def _changes_of_seats(schedule: Schedule, speeds: Speeds, extra: Integers) -> tuple[Reals, Integers]:
    """Return the changes of power where jobs share: each draws at its speed, all up to `most_draw`."""
    assert schedule.seat is not None
    most = most_draw(schedule, extra)
    jobs = np.arange(len(extra))
    job = np.concatenate((jobs, speeds.job, jobs))
    time_s = np.concatenate((schedule.start_s, speeds.time_s, schedule.end_s))
    speed = np.concatenate((np.ones(len(extra)), speeds.speed, np.zeros(len(extra))))
    order = np.lexsort((time_s, job))
    job, time_s, drawn = job[order], time_s[order], speed[order] * extra[job[order]]
    change = np.diff(drawn, prepend=0.0)
    order = np.lexsort((time_s, schedule.seat[job]))
    seat, time_s = schedule.seat[job[order]], time_s[order]
    together = milliwatts(np.minimum(np.cumsum(change[order]), most[seat]) / MILLIWATTS)
    return time_s, np.diff(together, prepend=0)


_JOULES_PER_KWH = 3.6e6
_TOLERANCE_W = 1e-3


def power_metrics(schedule: Schedule, budget: Budget) -> PowerMetrics:
    """Compute energy, power and their cost."""
    power = power_over_time(schedule, budget)
    seconds = power.seconds
    energy_kwh = power.power_w * seconds / _JOULES_PER_KWH
    total_s = float(seconds.sum())
    limit_w = budget.power_w[power.budget]
    is_within = power.power_w <= limit_w + _TOLERANCE_W

    def weighed(rate: Reals | None) -> float | None:
        return None if rate is None else float((energy_kwh * rate[power.budget]).sum())

    grams = weighed(budget.carbon_g_per_kwh)
    limited = np.isfinite(budget.power_w).any()
    return PowerMetrics(
        energy_kwh=float(energy_kwh.sum()),
        mean_w=float((power.power_w * seconds).sum()) / total_s if total_s > 0 else None,
        peak_w=float(power.power_w.max()),
        within_budget=float(seconds[is_within].sum()) / total_s if total_s > 0 and limited else None,
        over_budget=max(0.0, float((power.power_w / limit_w).max()) - 1) if limited else None,
        cost=weighed(budget.price_per_kwh),
        carbon_kg=None if grams is None else grams / 1000,
    )


def with_idle(
    metrics: PowerMetrics, machines: Sequence[Machine], budget: Budget, from_s: float, to_s: float
) -> PowerMetrics:
    """Add idle machines between the last end and a later time, both in seconds since the first submission.

    Policies are compared over one span; else the idle power of a longer one would count against it.
    """
    if to_s <= from_s:
        return metrics
    inside = budget.start_s[(budget.start_s > from_s) & (budget.start_s < to_s)]
    step = np.maximum(np.searchsorted(budget.start_s, [from_s, *inside], side="right") - 1, 0)
    kwh = idle_power_w(machines) / _JOULES_PER_KWH * np.diff([from_s, *inside, to_s])

    def more(known: float | None, rate: Reals | None, unit: float = 1.0) -> float | None:
        return None if known is None or rate is None else known + float((kwh * rate[step]).sum()) / unit

    energy_kwh, within = metrics.energy_kwh + float(kwh.sum()), metrics.within_budget
    return replace(
        metrics,
        energy_kwh=energy_kwh,
        mean_w=energy_kwh * _JOULES_PER_KWH / to_s,
        within_budget=None if within is None else (within * from_s + to_s - from_s) / to_s,
        cost=more(metrics.cost, budget.price_per_kwh),
        carbon_kg=more(metrics.carbon_kg, budget.carbon_g_per_kwh, 1000),
    )
