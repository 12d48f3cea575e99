"""Site of machines: reservations of processors, and a budget of power over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Machine, PlacedJobs, first_row, machine_fields, machines_of
from crosscast.cluster.rules import (
    NO_RULES,
    PREEMPTIONS,
    Partition,
    Quality,
    Rules,
    SiteRules,
    Weights,
)
from crosscast.data.fields import Fields
from crosscast.data.files import csv_rows
from crosscast.errors import InputError, expect_known
from crosscast.units import parse_elapsed


@dataclass(frozen=True)
class Reservation:
    """Processors that are closed to jobs for some time, for maintenance for instance.

    Times are in seconds since the first submission.
    """

    name: str
    machine: str  # Name of the machine
    start_s: float
    end_s: float
    procs: int | None = None  # By default all

    def __post_init__(self) -> None:
        if not 0 <= self.start_s < self.end_s:
            raise InputError(
                f"reservation {self.name}: expected a start of at least 0 s and an end after it, "
                f"found {self.start_s:g} s and {self.end_s:g} s"
            )
        if self.procs is not None and self.procs < 1:
            raise InputError(f"reservation {self.name}: procs: expected at least 1, found {self.procs}")


@dataclass(frozen=True)
class Budget:
    """Power that all machines together may draw, in ``k`` steps.

    The first step also holds before its start, and the last one has no end.
    """

    start_s: Reals  # Start of each step, in seconds since the first submission, ascending, of shape `(k,)`
    power_w: Reals  # Watts, of shape `(k,)`; infinite where there is no limit
    price_per_kwh: Reals | None = None  # Price of a kilowatt-hour, of shape `(k,)`
    carbon_g_per_kwh: Reals | None = None  # Grams of CO2 of a kilowatt-hour, of shape `(k,)`

    def __post_init__(self) -> None:
        if not len(self.start_s) or not np.isfinite(self.start_s).all() or (np.diff(self.start_s) <= 0).any():
            raise InputError.of(where="budget", field="start_s", expected="times, each after the last one")
        if not (self.power_w > 0).all():
            least = f"{np.nanmin(self.power_w):g}"
            raise InputError.of(where="budget", field="power_w", expected="watts above 0", found=least)


def constant_budget(power_w: float) -> Budget:
    """Return a budget that does not change."""
    return Budget(np.zeros(1), np.array([float(power_w)]))


_BUDGET = ("start_s", "power_w", "price_per_kwh", "carbon_g_per_kwh")
_MOST_BYTES = 64 << 20


def read_budget(path: str | Path) -> Budget:
    """Read a budget: a CSV file with a row for each step.

    Columns are `start_s`, `power_w` (empty for no limit), and optionally `price_per_kwh` and
    `carbon_g_per_kwh`.

    Raises
    ------
    InputError
        If the file cannot be read, a column is not known, or a row is not as expected.
    """
    header, rows = rows_of_csv(path, "budget", _BUDGET[:2], _BUDGET[2:])
    columns: dict[str, list[float]] = {name: [] for name in header}
    for where, cells in rows:
        for name, cell in cells.items():
            try:
                number = math.inf if name == "power_w" and not cell else float(cell)
            except ValueError:
                number = math.nan
            is_valid = math.isfinite(number) or (name == "power_w" and number == math.inf)
            if not is_valid or (name == "power_w" and number <= 0):
                expected = "watts above 0, or nothing" if name == "power_w" else "a number"
                raise InputError.of(where=where, field=name, expected=expected, found=repr(cell))
            columns[name].append(number)
        starts = columns["start_s"][-2:]
        if len(starts) == 2 and starts[0] >= starts[1]:
            expected, found = f"above {starts[0]:g}", f"{starts[1]:g}"
            raise InputError.of(where=where, field="start_s", expected=expected, found=found)
    return Budget(**{name: np.array(values) for name, values in columns.items()})


def rows_of_csv(
    path: str | Path, what: str, required: Sequence[str], optional: Sequence[str] = ()
) -> tuple[Sequence[str], list[tuple[str, Mapping[str, str]]]]:
    """Return the header of a CSV file, and its rows with their places; it has all required columns."""
    expected = ", ".join(required) + (f", and maybe {', '.join(optional)}" if optional else "")
    _, header, lines = csv_rows(Path(path), what, expected, _MOST_BYTES)
    if not set(required) <= set(header) <= {*required, *optional}:
        raise InputError.of(where=path, expected=f"columns {expected}", found=", ".join(header))
    rows = list(lines)
    if not rows:
        raise InputError.of(where=path, expected="a row at least", found="none")
    return header, rows


PowerPolicy = Literal["full", "uniform", "model", "learned", "oracle"]
"""Configuration of jobs: the fastest; the same power for each processor; by predicted time and power of each
kind of job; the same, and by what ended jobs have measured; by true time and power."""

POWER_POLICIES: tuple[PowerPolicy, ...] = get_args(PowerPolicy)

SharingPolicy = Literal["never", "always", "threshold", "gain", "oracle"]
"""No sharing; with the first job that fits; with jobs for which all expected slowdowns stay under a limit;
with the highest gain under that limit; with the highest gain by true slowdowns."""

SHARING_POLICIES: tuple[SharingPolicy, ...] = get_args(SharingPolicy)

PLACEMENTS = ("round-robin", "random", "completion")
"""Placements that need no more than a trace has."""

Shift = Literal["never", "price", "carbon"]
"""Delay of jobs: none; to the lowest price of power; to its lowest carbon intensity."""

SHIFTS: tuple[Shift, ...] = get_args(Shift)

LIMIT = 2.0
"""Default limit on the expected slowdown of jobs that share."""

MOST_TOGETHER = 8
"""Most jobs on the same processors; their power is reserved for any of them that may be left."""

LEAST_GAIN = 0.3
"""Default least gain in summed speed for which a job joins others."""


@dataclass(frozen=True)
class Site:
    """Site of machines, with the options of a comparison of policies."""

    reservations: tuple[Reservation, ...] = ()
    budget: Budget | None = None
    options: Path | None = None  # File with configurations of jobs, see `crosscast.cluster.power`
    slowdowns: Path | None = None  # File with slowdowns of jobs that share, see `crosscast.cluster.sharing`
    most: int = 2  # As in `crosscast.cluster.sharing.Sharing`
    limit: float = LIMIT
    least_gain: float = LEAST_GAIN
    power_policies: tuple[PowerPolicy, ...] = ("full",)  # Policies to compare, if there are options
    sharing_policies: tuple[SharingPolicy, ...] = ("gain",)  # Policies to compare, if there are slowdowns
    measured: bool = False  # Whether the measured power of running jobs counts, if there are options
    shifts: tuple[Shift, ...] = ("never",)  # Shifts to compare
    shift_limit_s: float = 0.0  # Longest delay of a job
    placement: str | None = None  # One of `PLACEMENTS`, if there are several machines
    rules: SiteRules = field(default_factory=SiteRules)
    seed: int = 0  # Of the placement `random`, and of kinds drawn for jobs of unknown kind


NO_SITE = Site()
"""A site without reservations, budget and rules."""


def read_site(path: str | Path) -> tuple[list[Machine], Site]:
    """Read machines and their site from a TOML file.

    Raises
    ------
    InputError
        If the file, or one that it names, is not as expected.
    """
    fields = machine_fields(path)
    machines = machines_of(fields)
    reservations = tuple(_reservation(table) for table in fields.tables("reservation"))
    power = fields.table("power")
    site = NO_SITE if power is None else _power(power, Path(path).parent)
    sharing = fields.table("sharing")
    site = site if sharing is None else _sharing(site, sharing, Path(path).parent)
    placement, seed = fields.text("placement"), fields.integer("seed", 0) or 0
    if placement is not None and placement not in PLACEMENTS:
        raise fields.fail("placement", f"one of {', '.join(PLACEMENTS)}")
    rules = _rules(fields, Path(path).parent)
    fields.finish()
    names = [machine.name for machine in machines]
    parts: tuple[Reservation | Partition, ...] = (*reservations, *rules.partitions)
    for each in parts:
        is_partition = isinstance(each, Partition)
        where = f"{path}: {'partition' if is_partition else 'reservation'} {each.name}"
        if each.machine not in names and not (is_partition and each.machine is None and len(names) == 1):
            expected = f"one of {', '.join(names)}"
            raise InputError.of(where=where, field="machine", expected=expected, found=each.machine or "none")
        widest = next(one.procs for one in machines if each.machine in (None, one.name))
        if is_partition and each.procs is not None and each.procs > widest:
            expected = f"at most the {widest} of its machine"
            raise InputError.of(where=where, field="procs", expected=expected, found=each.procs)
    site = replace(site, reservations=reservations, placement=placement, seed=seed, rules=rules)
    return machines, site


def _rules(fields: Fields, folder: Path) -> SiteRules:
    priority, walltime = fields.table("priority"), fields.table("walltime")
    qualities = tuple(_quality(table) for table in fields.tables("qos"))
    partitions = tuple(_partition(table) for table in fields.tables("partition"))
    preemption = fields.text("preemption")
    names = {"qos": [each.name for each in qualities], "partition": [each.name for each in partitions]}
    if preemption is not None and preemption not in names:
        raise fields.fail("preemption", f"one of {', '.join(PREEMPTIONS)}")
    for what, named in names.items():
        for name in named:
            if named.count(name) > 1:
                expected, found = "each name once", f"{name!r} more than once"
                raise InputError.of(where=fields.where, field=what, expected=expected, found=found)
    for each in qualities:
        for other in each.preempts:
            if other not in names["qos"]:
                where, expected = f"{fields.where}: qos {each.name}", "names under [[qos]]"
                raise InputError.of(where=where, field="preempts", expected=expected, found=repr(other))
    if preemption is not None and not names[preemption]:
        raise fields.fail("preemption", f"tables under [[{preemption}]]")
    weights = None if priority is None else _weights(priority)
    if weights is not None and weights.qos > 0 and not qualities:
        raise InputError(f"{fields.where}: priority: qos: expected tables under [[qos]], found none")
    forecasts = None
    if walltime is not None:
        walltime.require("forecasts", "a text")
        forecasts = folder / str(walltime.text("forecasts"))
        walltime.finish()
        if not forecasts.is_file():
            raise InputError(f"{forecasts}: cannot read the forecasts (no such file)")
    return SiteRules(weights, qualities, partitions, preemption, forecasts)


def _weights(table: Fields) -> Weights:
    numbers = {
        name: number
        for name in ("age", "size", "fair_share", "qos", "partition")
        if (number := table.number(name, ge=0)) is not None
    }
    for name in ("max_age", "half_life"):
        if name in table:
            numbers[f"{name}_s"] = _time(table, name)
            if numbers[f"{name}_s"] == 0:
                raise table.fail(name, "a time above 0 s")
    favor_small = table.flag("favor_small")
    given = table.table("shares")
    shares: dict[str, float] = {}
    if given is not None:
        shares = {name: given.number(name, ge=0) or 0.0 for name, _ in given.items()}
        if not sum(shares.values()) > 0:
            raise InputError(f"{given.where}: expected a share above 0, found none")
    elif numbers.get("fair_share", 0) > 0:
        raise InputError(f"{table.where}: fair_share: expected shares of accounts under shares, found none")
    table.finish()
    return Weights(**numbers, favor_small=favor_small, shares=shares)


def _quality(table: Fields) -> Quality:
    table.require("name", "a text")
    quality = Quality(str(table.text("name")), table.number("priority", ge=0) or 0.0, table.texts("preempts"))
    table.finish()
    return quality


def _partition(table: Fields) -> Partition:
    table.require("name", "a text")
    counts = [table.integer(name, 1) for name in ("procs", "nodes")]
    if None not in counts:
        raise InputError(f"{table.where}: expected procs or nodes, found both")
    tier = table.integer("tier", 0)
    partition = Partition(
        str(table.text("name")),
        table.text("machine"),
        counts[0] or counts[1],
        _time(table, "time_limit") if "time_limit" in table else math.inf,
        table.integer("most_jobs", 1),
        1 if tier is None else tier,
        table.number("priority", ge=0) or 0.0,
    )
    table.finish()
    return partition


def _reservation(table: Fields) -> Reservation:
    for key in ("name", "machine", "start", "end"):
        table.require(key, "a text")
    times = {key: _time(table, key) for key in ("start", "end")}
    name, machine, procs = table.text("name"), table.text("machine"), table.integer("procs", 1)
    table.finish()
    try:
        return Reservation(str(name), str(machine), times["start"], times["end"], procs)
    except InputError as error:
        raise InputError(f"{table.where}: {error}") from error


def _time(table: Fields, name: str) -> float:
    """Return a time in seconds, given as a text such as ``10d`` or as a number of seconds."""
    try:
        return parse_elapsed(str(table.take(name)))
    except InputError as error:
        raise InputError(f"{table.where}: {name}: {error}") from error


def _sharing(site: Site, table: Fields, folder: Path) -> Site:
    table.require("slowdowns", "a text")
    most = table.integer("most", 2) or site.most
    if most > MOST_TOGETHER:
        raise table.fail("most", f"at most {MOST_TOGETHER} jobs")
    least_gain = table.number("least_gain", ge=0)
    site = replace(
        site,
        most=most,
        limit=table.number("limit", ge=1) or site.limit,
        least_gain=site.least_gain if least_gain is None else least_gain,
        slowdowns=folder / str(table.text("slowdowns")),
        sharing_policies=_policies(table, SHARING_POLICIES) or site.sharing_policies,
    )
    table.finish()
    return site


_Policy = TypeVar("_Policy", bound=str)


def _policies(table: Fields, known: Sequence[_Policy], field: str = "policies") -> tuple[_Policy, ...]:
    """Return the policies under a field, in their canonical order."""
    names = table.texts(field)
    expect_known(names, known, where=table.where, field=field, words="some of")
    return tuple(policy for policy in known if policy in names)


def _power(table: Fields, folder: Path) -> Site:
    given = [name for name in ("budget_w", "budget") if name in table]
    watts, file = table.number("budget_w", gt=0), table.text("budget")
    options, policies = table.text("options"), _policies(table, POWER_POLICIES)
    measured, shifts = table.flag("measured"), _policies(table, SHIFTS, "shift")
    limit_s = _time(table, "shift_limit") if "shift_limit" in table else None
    table.finish()
    if measured and options is None:
        raise InputError(f"{table.where}: measured: expected options, whose power is predicted, found none")
    if (set(shifts) - {"never"}) and limit_s is None:
        raise InputError(f"{table.where}: shift_limit is missing, expected how long jobs may be delayed")
    if len(given) != 1:
        which = "both" if given else "neither"
        raise InputError(f"{table.where}: expected budget_w or budget, found {which}")
    if options is None and policies:
        raise InputError(f"{table.where}: policies: expected options to choose from, found none")
    budget = constant_budget(watts) if watts is not None else read_budget(folder / str(file))
    for shift, unit in (("price", "price_per_kwh"), ("carbon", "carbon_g_per_kwh")):
        if shift in shifts and getattr(budget, unit) is None:
            raise InputError(f"{table.where}: shift: {shift}: expected a budget with {unit}, found none")
    return Site(
        budget=budget,
        options=None if options is None else folder / options,
        power_policies=policies or NO_SITE.power_policies,
        measured=measured,
        shifts=shifts or NO_SITE.shifts,
        shift_limit_s=limit_s or 0.0,
    )


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
            raise InputError(
                f"reservation {each.name}: machine: expected one of {', '.join(names)}, "
                f"found {each.machine!r}"
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
            raise InputError(
                f"reservation {each.name}: procs: expected at most the {machines[index].procs} of "
                f"{each.machine}, found {each.procs or machines[index].procs}{over} at {at_s:g} s"
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
        raise InputError(
            f"machine {placed.machines[placed.machine[row]].name}: active_w is missing, expected the watts "
            f"of a processor that runs a job, as nothing is known of the power of job {number[row]}"
        )
    if (row := first_row(total_w < idle_w)) is not None:
        raise InputError(
            f"job {number[row]}: power_w: expected at least the {idle_w[row]:g} W of its processors "
            f"when they are idle, found {total_w[row]:g} W"
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
        raise InputError(
            f"job {placed.jobs.number[row]}: power_w: expected at most the {most_w[row]:g} W to which its "
            f"processors of {placed.machines[placed.machine[row]].name} are capped, found {power_w[row]:g} W"
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
