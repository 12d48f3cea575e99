"""Processors and power over time: what jobs need and what there is, who holds them, and the energy."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster import Cuts, Machine, PlacedJobs, Schedule, Speeds, first_row
from crosscast.cluster.rules import NO_RULES, Rules
from crosscast.cluster.site import Budget, Reservation, Site
from crosscast.errors import InputError

MILLIWATTS = 1000.0
"""Power is counted in whole milliwatts, so that sums are exact."""


def milliwatts(power_w: Reals) -> Integers:
    """Round watts to whole milliwatts."""
    return np.rint(power_w * MILLIWATTS).astype(np.int64)


@dataclass(frozen=True)
class PowerLimits:
    """Milliwatts above idle of the processors of ``n`` jobs, each of shape ``(n,)``."""

    cap: Integers  # To which they are capped
    most_draw: Integers  # What they draw at most, however many jobs share them


@dataclass(frozen=True)
class Resources:
    """Needs of ``n`` jobs for ``r`` resources, and the capacities of these in ``s`` steps.

    Resources are the processors of each machine, and with a budget of power, the milliwatts of it
    that are left when nothing runs.
    """

    needs: Integers  # Planned amount of each of a job's resources, of shape `(n, k)`
    holds: Integers  # Amount while it runs: equal, unless its power is measured
    resource: Integers  # Indices of these resources, of shape `(n, k)`, padded with −1
    step_s: Reals  # Times at which capacities change, of shape `(s,)`; the first is minus infinity
    capacity: Integers  # Capacity from then on, of shape `(s, r)`
    power: PowerLimits | None = None  # `None` without a budget


def resources_of(
    placed: PlacedJobs, site: Site, rules: Rules = NO_RULES, origin_s: float | None = None
) -> Resources:
    """Check the needs of jobs, each on its machine, against the capacities.

    Times of the site are since the first submission, or since another time if one is given.

    Raises
    ------
    InputError
        If reservations exceed a machine, the budget is below the power of idle machines, or a job needs more
        than the last capacity.
    """
    jobs, machines = placed.jobs, placed.machines
    if origin_s is None:
        origin_s = float(jobs.submit_s[0]) if len(jobs) else 0.0
    if rules.learning is None:
        _check_caps(placed)
    step_s, procs = _procs_over_time(machines, site.reservations, origin_s)
    needs, resource = [jobs.procs], [placed.machine.astype(np.int64)]
    capacity = procs
    if rules.partition is not None and rules.partition_procs is not None:
        needs.append(jobs.procs)
        resource.append(np.where(rules.partition < 0, -1, rules.partition + len(machines)))
        capacity = np.column_stack((capacity, np.tile(rules.partition_procs, (len(step_s), 1))))
    holds = list(needs)
    if site.budget is not None:
        power_s = np.concatenate(([-np.inf], site.budget.start_s[1:] + origin_s))
        left = _left_by_idle(machines, site.budget)
        every_s = np.unique(np.concatenate((step_s, power_s)))
        rows = [np.searchsorted(times, every_s, side="right") - 1 for times in (step_s, power_s)]
        resource.append(np.full(len(jobs), capacity.shape[1]))
        step_s, capacity = every_s, np.column_stack((capacity[rows[0]], left[rows[1]]))
        if rules.learning is None:
            needs.append(milliwatts(extra_power_w(placed)))
        else:
            # Configurations are chosen later.
            needs.append(np.zeros(len(jobs), np.int64))
        holds.append(needs[-1])
        if rules.measured_w is not None:
            measured = replace(placed, jobs=replace(jobs, power_w=rules.measured_w))
            holds[-1] = milliwatts(extra_power_w(measured))
    power = None
    if site.budget is not None:
        cap_w = (placed.of_machine("cap_w") - placed.of_machine("idle_w")) * jobs.procs
        cap = milliwatts(np.minimum(cap_w, _NO_LIMIT / MILLIWATTS))
        power = PowerLimits(cap, most_draw(placed, np.maximum(needs[-1], holds[-1])))
    tables = [np.column_stack(columns) for columns in (needs, holds, resource)]
    resources = Resources(tables[0], tables[1], tables[2], step_s, capacity, power)
    _check_fits(placed, resources)
    return resources


def _procs_over_time(
    machines: Sequence[Machine], reservations: Sequence[Reservation], origin_s: float
) -> tuple[Reals, Integers]:
    names = [machine.name for machine in machines]
    for each in reservations:
        if each.machine not in names:
            raise InputError.of(
                where=f"reservation {each.name}",
                field="machine",
                expected=f"one of {', '.join(names)}",
                found=repr(each.machine),
            )
    borders = {origin_s + time for each in reservations for time in (each.start_s, each.end_s)}
    step_s = np.array([-np.inf, *sorted(borders - {math.inf})])
    procs = np.tile(np.array([machine.procs for machine in machines], np.int64), (len(step_s), 1))
    for each in reservations:
        index = names.index(each.machine)
        during = (step_s >= origin_s + each.start_s) & (step_s < origin_s + each.end_s)
        procs[during, index] -= each.procs or machines[index].procs
        if (step := first_row(procs[:, index] < 0)) is not None:
            at_s = float(step_s[step]) - origin_s
            others = [
                other.name
                for other in reservations
                if other is not each and other.machine == each.machine and other.start_s <= at_s < other.end_s
            ]
            over = f" over that of {', '.join(others)}" if others else ""
            raise InputError.of(
                where=f"reservation {each.name}",
                field="procs",
                expected=f"at most the {machines[index].procs} of {each.machine}",
                found=f"{each.procs or machines[index].procs}{over} at {at_s:g} s",
            )
    return step_s, procs


def idle_power_w(machines: Sequence[Machine]) -> float:
    """Power of idle machines, in watts."""
    return sum(machine.procs * machine.idle_w for machine in machines)


def _left_by_idle(machines: Sequence[Machine], budget: Budget) -> Integers:
    """Return the milliwatts that jobs may add to idle machines in each step."""
    idle_w = idle_power_w(machines)
    if (index := first_row(budget.power_w < idle_w)) is not None:
        raise InputError.of(
            field="budget",
            expected=f"at least the {idle_w:g} W that idle machines draw",
            found=f"{budget.power_w[index]:g} W from {budget.start_s[index]:g} s on",
        )
    # An unlimited budget becomes a bound that no sum of jobs reaches.
    return milliwatts(np.minimum(budget.power_w - idle_w, _NO_LIMIT / MILLIWATTS))


def _power_w(placed: PlacedJobs) -> Reals:
    """Return the power of each job in watts, or of its active processors, of shape ``(n,)``; else NaN."""
    active_w: Reals = placed.of_machine("active_w") * placed.jobs.procs
    known_w = placed.jobs.power_w
    return active_w if known_w is None else np.where(np.isnan(known_w), active_w, known_w)


def extra_power_w(placed: PlacedJobs) -> Reals:
    """Return the power that each job adds to that of its idle processors, in watts, of shape ``(n,)``.

    Raises
    ------
    InputError
        If a job's power is unknown, or less than that of its idle processors.
    """
    number, idle_w = placed.jobs.number, placed.of_machine("idle_w") * placed.jobs.procs
    total_w = _power_w(placed)
    if (row := first_row(np.isnan(total_w))) is not None:
        raise InputError.of(
            where=f"machine {placed.machines[placed.machine[row]].name}",
            problem=(
                "active_w is missing, expected the watts of a processor that runs a job, as "
                f"nothing is known of the power of job {number[row]}"
            ),
        )
    if (row := first_row(total_w < idle_w)) is not None:
        raise InputError.of(
            where=f"job {number[row]}",
            field="power_w",
            expected=f"at least the {idle_w[row]:g} W of its processors when they are idle",
            found=f"{total_w[row]:g} W",
        )
    return total_w - idle_w


_NO_LIMIT = 2.0**52
"""Milliwatts that no sum of jobs reaches."""


def most_draw(placed: PlacedJobs, extra: Integers) -> Integers:
    """Return the milliwatts above idle that the processors of each job draw at most, of shape ``(n,)``.

    It is `active_w`, if that is known, unless a single job of the machine draws more.
    """
    machines, machine, procs = placed.machines, placed.machine, placed.jobs.procs
    active_w = [np.inf if each.active_w is None else each.active_w - each.idle_w for each in machines]
    of_processor = np.array(active_w) * MILLIWATTS
    np.maximum.at(of_processor, machine, extra / procs)
    return np.ceil(np.minimum(of_processor[machine] * procs, _NO_LIMIT)).astype(np.int64)


def _check_caps(placed: PlacedJobs) -> None:
    """Raise for jobs with more power than the caps of their processors."""
    power_w, most_w = _power_w(placed), placed.of_machine("cap_w") * placed.jobs.procs
    # Where no power is known, nothing is above a cap.
    if (row := first_row(power_w > most_w)) is not None:
        raise InputError.of(
            where=f"job {placed.jobs.number[row]}",
            field="power_w",
            expected=(
                f"at most the {most_w[row]:g} W to which its processors of "
                f"{placed.machines[placed.machine[row]].name} are capped"
            ),
            found=f"{power_w[row]:g} W",
        )


def _check_fits(placed: PlacedJobs, resources: Resources) -> None:
    """Raise for a job that exceeds the last capacity, which has no end."""
    machines, last = placed.machines, resources.capacity[-1]
    for need in range(resources.needs.shape[1]):
        resource = resources.resource[:, need]
        row = first_row((resource >= 0) & (resources.needs[:, need] > last[resource]))
        if row is None:
            continue
        needed, left, which = resources.needs[row, need], last[resource[row]], int(resource[row])
        field, found = "procs", f"{needed}"
        if which < len(machines):
            expected = f"{left} that reservations leave of {machines[which].name}"
        elif resources.power is None or which < resources.capacity.shape[1] - 1:
            expected = f"{left} of its partition"
        else:
            field, found = "power_w", f"{needed / MILLIWATTS:g} W more than idle"
            expected = f"{left / MILLIWATTS:g} W that the budget leaves beside idle processors"
        where = f"jobs: job {placed.jobs.number[row]}"
        raise InputError.of(where=where, field=field, expected=f"at most the {expected}", found=found)


@dataclass(frozen=True)
class Steps:
    """A step function: 0 before its first time."""

    time_s: Reals  # Times of change in seconds, ascending, of shape `(k,)`
    count: Integers  # Value from each time until the next, of shape `(k,)`

    def at(self, time_s: Reals) -> Integers:
        """Return the values at these times, right-continuous at changes."""
        index = np.searchsorted(self.time_s, time_s, side="right")
        return np.concatenate(([0], self.count))[index]


def steps_of(time_s: Reals, change: Integers) -> Steps:
    """Sum changes in the order of their times; those at one time are simultaneous.

    >>> steps = steps_of(np.array([0.0, 4.0, 2.0, 2.0]), np.array([1, -1, 3, -3]))
    >>> steps.time_s.tolist(), steps.count.tolist()
    ([0.0, 4.0], [1, 0])
    """
    order = np.argsort(time_s)
    times = time_s[order]
    first = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)
    total = np.add.reduceat(change[order], first) if len(first) else change[:0]
    changed = total != 0
    return Steps(times[first][changed], np.cumsum(total)[changed])


def _held(schedule: Schedule) -> tuple[Integers, Reals, Reals]:
    """Return the jobs that took processors, and from when to when they or jobs beside them held these."""
    first = np.arange(len(schedule.jobs))
    if schedule.seat is None:
        return first, schedule.start_s, schedule.end_s
    end_s = schedule.end_s.copy()
    np.maximum.at(end_s, schedule.seat, schedule.end_s)
    first = first[schedule.seat == first]
    return first, schedule.start_s[first], end_s[first]


def processor_seconds(schedule: Schedule) -> Reals:
    """Return the occupied processor-seconds of each machine, of shape ``(m,)``.

    Preempted runs count, and what jobs share counts once.
    """
    machines = len(schedule.machines)
    first, start_s, end_s = _held(schedule)
    work = schedule.jobs.procs[first] * (end_s - start_s)
    used: Reals = np.bincount(schedule.machine[first], weights=work, minlength=machines).astype(np.float64)
    if schedule.cuts is not None:
        machine = schedule.machine[schedule.cuts.job]
        used += np.bincount(machine, weights=lost_work(schedule, schedule.cuts), minlength=machines)
    return used


def lost_work(schedule: Schedule, cuts: Cuts) -> Reals:
    """Return the processor-seconds of each preempted run."""
    return schedule.jobs.procs[cuts.job] * (cuts.end_s - cuts.start_s)


def queue_length(schedule: Schedule) -> Steps:
    """Return the number of waiting jobs over time."""
    submit_s = schedule.jobs.submit_s
    one = np.ones(len(submit_s), dtype=np.int64)
    return steps_of(np.concatenate((submit_s, schedule.start_s)), np.concatenate((one, -one)))


@dataclass(frozen=True)
class Rectangles:
    """``k`` rectangles of time and processors; a job has several if its processors are not contiguous."""

    job: Integers  # Index of the job, of shape `(k,)`
    start_s: Reals  # Times of start and end in seconds, of shape `(k,)`
    end_s: Reals
    first: Integers  # First processor, from 0, and number of processors, of shape `(k,)`
    procs: Integers

    def __len__(self) -> int:
        return len(self.job)


def rectangles(schedule: Schedule, machine: int, from_s: float = -np.inf, to_s: float = np.inf) -> Rectangles:
    """Assign processors to each job of a machine: the first contiguous free ones, else the first free ones.

    A schedule has the number of a job's processors, not which these are. Jobs that share have the same.
    """

    def shown(jobs: Integers, start_s: Reals, end_s: Reals) -> Integers:
        """Indices of these jobs that run on the machine in the time shown, by their starts."""
        runs = (schedule.machine[jobs] == machine) & (end_s > start_s) & (end_s > from_s) & (start_s < to_s)
        rows = np.flatnonzero(runs)
        return rows[np.argsort(start_s[rows], kind="stable")]

    start_s, end_s, all_jobs = schedule.start_s, schedule.end_s, np.arange(len(schedule.jobs))
    held_by, from_, until = _held(schedule)
    rows = shown(held_by, from_, until)
    free = np.ones(schedule.machines[machine].procs, dtype=np.bool_)
    running: list[tuple[float, int]] = []
    held: dict[int, Integers] = {}
    taken_by: dict[int, list[tuple[int, int]]] = {}
    for job, start, end, procs in zip(
        held_by[rows].tolist(),
        from_[rows].tolist(),
        until[rows].tolist(),
        schedule.jobs.procs[held_by[rows]].tolist(),
        strict=True,
    ):
        while running and running[0][0] <= start:
            free[held.pop(heapq.heappop(running)[1])] = True
        taken = _take(free, procs)
        free[taken] = False
        held[job] = taken
        heapq.heappush(running, (end, job))
        taken_by[job] = _pieces(taken)
    seat = all_jobs if schedule.seat is None else schedule.seat
    jobs = shown(all_jobs, start_s, end_s)
    pieces = [
        (job, first, count)
        for job, of_seat in zip(jobs.tolist(), seat[jobs].tolist(), strict=True)
        for first, count in taken_by[of_seat]
    ]
    columns = np.array(pieces, dtype=np.int64).reshape(-1, 3)
    job_index = columns[:, 0]
    return Rectangles(job_index, start_s[job_index], end_s[job_index], columns[:, 1], columns[:, 2])


def _take(free: Flags, procs: int) -> Integers:
    """Return the first contiguous free processors, else the first free ones."""
    indices = np.flatnonzero(free)
    # Starts of runs of free processors that are long enough.
    fits = indices[procs - 1 :] - indices[: len(indices) - procs + 1] == procs - 1
    first = int(np.argmax(fits)) if fits.any() else 0
    return indices[first : first + procs]


def _pieces(indices: Integers) -> list[tuple[int, int]]:
    """Return first element and length of each contiguous run."""
    runs = np.split(indices, np.flatnonzero(np.diff(indices) > 1) + 1)
    return [(int(run[0]), len(run)) for run in runs]


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
