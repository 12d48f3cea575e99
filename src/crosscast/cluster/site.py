"""Site of machines: reservations of processors, and a budget of power over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypedDict, TypeVar, get_args

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.cluster.jobs import Jobs, Machine, machine_fields, machines_of
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
        """Check the times and the number."""
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
        """Check the steps."""
        if not len(self.start_s) or not np.isfinite(self.start_s).all() or (np.diff(self.start_s) <= 0).any():
            raise InputError.of(where="budget", field="start_s", expected="times, each after the last one")
        if not (self.power_w > 0).all():
            raise InputError.of(
                where="budget",
                field="power_w",
                expected="watts above 0",
                found=f"{np.nanmin(self.power_w):g}",
            )
        for name in ("power_w", "price_per_kwh", "carbon_g_per_kwh"):
            values = getattr(self, name)
            if values is not None and (values.shape != self.start_s.shape or np.isnan(values).any()):
                raise InputError.of(field="budget", problem=f"{name}: expected {len(self.start_s)} numbers")


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
    options = {} if power is None else _power(power, Path(path).parent)
    sharing = fields.table("sharing")
    options |= {} if sharing is None else _sharing(sharing, Path(path).parent)
    placement, seed = fields.text("placement"), fields.integer("seed", 0) or 0
    if placement is not None and placement not in PLACEMENTS:
        raise fields.fail("placement", f"one of {', '.join(PLACEMENTS)}")
    rules = _rules(fields, Path(path).parent)
    fields.finish()
    names = [machine.name for machine in machines]
    named: list[tuple[str, str, str | None]] = [
        *(("reservation", each.name, each.machine) for each in reservations),
        *(("partition", each.name, each.machine) for each in rules.partitions),
    ]
    for what, name, machine in named:
        if machine not in names and not (what == "partition" and machine is None and len(names) == 1):
            raise InputError.of(
                where=f"{path}: {what} {name}",
                field="machine",
                expected=f"one of {', '.join(names)}",
                found=machine or "none",
            )
    for each in rules.partitions:
        widest = next(one.procs for one in machines if each.machine in (None, one.name))
        if each.procs is not None and each.procs > widest:
            raise InputError.of(
                where=f"{path}: partition {each.name}",
                field="procs",
                expected=f"at most the {widest} of its machine",
                found=str(each.procs),
            )
    return machines, Site(reservations, placement=placement, seed=seed, rules=rules, **options)


def _rules(fields: Fields, folder: Path) -> SiteRules:
    priority, walltime = fields.table("priority"), fields.table("walltime")
    qualities = tuple(_quality(table) for table in fields.tables("qos"))
    partitions = tuple(_partition(table) for table in fields.tables("partition"))
    preemption = fields.text("preemption")
    if preemption is not None and preemption not in PREEMPTIONS:
        raise fields.fail("preemption", f"one of {', '.join(PREEMPTIONS)}")
    for what, named in (("qos", qualities), ("partition", partitions)):
        names = [each.name for each in named]
        for name in names:
            if names.count(name) > 1:
                raise InputError(
                    f"{fields.where}: {what}: expected each name once, found {name!r} more than once"
                )
    for each in qualities:
        for other in each.preempts:
            if other not in [one.name for one in qualities]:
                raise InputError(
                    f"{fields.where}: qos {each.name}: preempts: expected names under [[qos]], "
                    f"found {other!r}"
                )
    needed = {"qos": "[[qos]]", "partition": "[[partition]]"}.get(str(preemption))
    if needed and not (qualities if preemption == "qos" else partitions):
        raise fields.fail("preemption", f"tables under {needed}")
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
    limit_s = _time(table, "time_limit") if "time_limit" in table else math.inf
    tier = table.integer("tier", 0)
    partition = Partition(
        str(table.text("name")),
        table.text("machine"),
        counts[0] or counts[1],
        limit_s,
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


class _SiteOptions(TypedDict, total=False):
    budget: Budget
    options: Path
    slowdowns: Path
    most: int
    limit: float
    least_gain: float
    power_policies: tuple[PowerPolicy, ...]
    sharing_policies: tuple[SharingPolicy, ...]
    measured: bool
    shifts: tuple[Shift, ...]
    shift_limit_s: float


def _sharing(table: Fields, folder: Path) -> _SiteOptions:
    table.require("slowdowns", "a text")
    options: _SiteOptions = {}
    if (most := table.integer("most", 2)) is not None:
        if most > MOST_TOGETHER:
            raise table.fail("most", f"at most {MOST_TOGETHER} jobs")
        options["most"] = most
    if (limit := table.number("limit", ge=1)) is not None:
        options["limit"] = limit
    if (least_gain := table.number("least_gain", ge=0)) is not None:
        options["least_gain"] = least_gain
    options["slowdowns"] = folder / str(table.text("slowdowns"))
    if (policies := _policies(table, SHARING_POLICIES)) is not None:
        options["sharing_policies"] = policies
    table.finish()
    return options


_Policy = TypeVar("_Policy", bound=str)


def _policies(table: Fields, known: Sequence[_Policy], field: str = "policies") -> tuple[_Policy, ...] | None:
    """Return the policies under a field, in their canonical order; ``None`` if there are none."""
    names = table.texts(field)
    expect_known(names, known, where=table.where, field=field, words="some of")
    return tuple(policy for policy in known if policy in names) or None


def _power(table: Fields, folder: Path) -> _SiteOptions:
    given = [name for name in ("budget_w", "budget") if name in table]
    watts, file = table.number("budget_w", gt=0), table.text("budget")
    options_file, names = table.text("options"), _policies(table, POWER_POLICIES)
    measured, shifts = table.flag("measured"), _policies(table, SHIFTS, "shift")
    limit_s = _time(table, "shift_limit") if "shift_limit" in table else None
    table.finish()
    if measured and options_file is None:
        raise InputError(f"{table.where}: measured: expected options, whose power is predicted, found none")
    if (set(shifts or ()) - {"never"}) and limit_s is None:
        raise InputError(f"{table.where}: shift_limit is missing, expected how long jobs may be delayed")
    if len(given) != 1:
        which = "both" if given else "neither"
        raise InputError(f"{table.where}: expected budget_w or budget, found {which}")
    if options_file is None and names is not None:
        raise InputError(f"{table.where}: policies: expected options to choose from, found none")
    budget = constant_budget(watts) if watts is not None else read_budget(folder / str(file))
    options: _SiteOptions = {"budget": budget, "measured": measured}
    if options_file is not None:
        options["options"] = folder / options_file
    if names is not None:
        options["power_policies"] = names
    if shifts is not None:
        options["shifts"] = shifts
    if limit_s is not None:
        options["shift_limit_s"] = limit_s
    for name, column in (("price", budget.price_per_kwh), ("carbon", budget.carbon_g_per_kwh)):
        if name in (shifts or ()) and column is None:
            unit = {"price": "price_per_kwh", "carbon": "carbon_g_per_kwh"}[name]
            raise InputError(f"{table.where}: shift: {name}: expected a budget with {unit}, found none")
    return options


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
    jobs: Jobs,
    machines: Sequence[Machine],
    machine: Integers,
    site: Site,
    rules: Rules = NO_RULES,
    origin_s: float | None = None,
) -> Resources:
    """Check the needs of jobs, each on its machine, against the capacities.

    Times of the site are since the first submission, or since another time if one is given.

    Raises
    ------
    InputError
        If reservations exceed a machine, the budget is below the power of idle machines, or a job needs more
        than the last capacity.
    """
    if origin_s is None:
        origin_s = float(jobs.submit_s[0]) if len(jobs) else 0.0
    if rules.learning is None:
        _check_caps(jobs, machines, machine)
    step_s, procs = _procs_over_time(machines, site.reservations, origin_s)
    needs, resource = [jobs.procs], [machine.astype(np.int64)]
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
            needs.append(milliwatts(extra_power_w(jobs, machines, machine)))
        else:
            # Configurations are chosen later.
            needs.append(np.zeros(len(jobs), np.int64))
        holds.append(needs[-1])
        if rules.measured_w is not None:
            measured_w = extra_power_w(replace(jobs, power_w=rules.measured_w), machines, machine)
            holds[-1] = milliwatts(measured_w)
    resources = Resources(
        np.column_stack(needs),
        np.column_stack(holds),
        np.column_stack(resource),
        step_s,
        capacity,
        None if site.budget is None else _limits(jobs, machines, machine, np.maximum(needs[-1], holds[-1])),
    )
    _check_fits(jobs, machines, resources, site.budget is not None)
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
        if (procs[:, index] < 0).any():
            at_s = float(step_s[int(np.argmax(procs[:, index] < 0))]) - origin_s
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
    if (budget.power_w < idle_w).any():
        index = int(np.argmax(budget.power_w < idle_w))
        raise InputError.of(
            field="budget",
            expected=f"at least the {idle_w:g} W that idle machines draw",
            found=f"{budget.power_w[index]:g} W from {budget.start_s[index]:g} s on",
        )
    # An unlimited budget becomes a bound that no sum of jobs reaches.
    left = np.minimum(budget.power_w - idle_w, _NO_LIMIT / MILLIWATTS)
    return milliwatts(left)


def _power_w(jobs: Jobs, machines: Sequence[Machine], machine: Integers) -> Reals:
    """Return the power of each job in watts, or of its active processors, of shape ``(n,)``; else NaN."""
    active_w = np.array([np.nan if each.active_w is None else each.active_w for each in machines])
    power_w: Reals = active_w[machine] * jobs.procs
    if jobs.power_w is not None:
        power_w = np.where(np.isnan(jobs.power_w), power_w, jobs.power_w)
    return power_w


def extra_power_w(jobs: Jobs, machines: Sequence[Machine], machine: Integers) -> Reals:
    """Return the power that each job adds to that of its idle processors, in watts, of shape ``(n,)``.

    Raises
    ------
    InputError
        If a job's power is unknown, or less than that of its idle processors.
    """
    idle_w = np.array([each.idle_w for each in machines])[machine] * jobs.procs
    total_w = _power_w(jobs, machines, machine)
    unknown = np.isnan(total_w)
    if unknown.any():
        row = int(np.argmax(unknown))
        raise InputError(
            f"machine {machines[machine[row]].name}: active_w is missing, expected the watts of a processor "
            f"that runs a job, as nothing is known of the power of job {jobs.number[row]}"
        )
    extra_w = total_w - idle_w
    if (extra_w < 0).any():
        row = int(np.argmax(extra_w < 0))
        raise InputError(
            f"job {jobs.number[row]}: power_w: expected at least the {idle_w[row]:g} W of its processors "
            f"when they are idle, found {total_w[row]:g} W"
        )
    return extra_w


_NO_LIMIT = 2.0**52
"""Milliwatts that no sum of jobs reaches."""


def _limits(jobs: Jobs, machines: Sequence[Machine], machine: Integers, extra: Integers) -> PowerLimits:
    """Return the limits of the processors of each job, of which each adds so many milliwatts to idle ones."""
    cap_w = np.array([each.cap_w - each.idle_w for each in machines])[machine] * jobs.procs
    cap = milliwatts(np.minimum(cap_w, _NO_LIMIT / MILLIWATTS))
    return PowerLimits(cap, most_draw(jobs, machines, machine, extra))


def most_draw(jobs: Jobs, machines: Sequence[Machine], machine: Integers, extra: Integers) -> Integers:
    """Return the milliwatts above idle that the processors of each job draw at most, of shape ``(n,)``.

    It is `active_w`, if that is known, unless a single job of the machine draws more.
    """
    active_w = [np.inf if each.active_w is None else each.active_w - each.idle_w for each in machines]
    of_processor = np.array(active_w) * MILLIWATTS
    np.maximum.at(of_processor, machine, extra / jobs.procs)
    return np.ceil(np.minimum(of_processor[machine] * jobs.procs, _NO_LIMIT)).astype(np.int64)


def _check_caps(jobs: Jobs, machines: Sequence[Machine], machine: Integers) -> None:
    """Raise for jobs with more power than the caps of their processors."""
    power_w = _power_w(jobs, machines, machine)
    most_w = np.array([each.cap_w for each in machines])[machine] * jobs.procs
    # Where no power is known, nothing is above a cap.
    wrong = power_w > most_w
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"job {jobs.number[row]}: power_w: expected at most the {most_w[row]:g} W to which its "
            f"processors of {machines[machine[row]].name} are capped, found {power_w[row]:g} W"
        )


def _check_fits(jobs: Jobs, machines: Sequence[Machine], resources: Resources, has_budget: bool) -> None:
    """Raise for a job that exceeds the last capacity, which has no end."""
    last = resources.capacity[-1]
    for need in range(resources.needs.shape[1]):
        resource = resources.resource[:, need]
        wrong = (resource >= 0) & (resources.needs[:, need] > last[resource])
        if not wrong.any():
            continue
        row = int(np.argmax(wrong))
        needed, left, which = resources.needs[row, need], last[resource[row]], int(resource[row])
        if which < len(machines):
            raise InputError(
                f"jobs: job {jobs.number[row]}: procs: expected at most the {left} that reservations leave "
                f"of {machines[which].name}, found {needed}"
            )
        if not has_budget or which < resources.capacity.shape[1] - 1:
            raise InputError(
                f"jobs: job {jobs.number[row]}: procs: expected at most the {left} of its partition, found "
                f"{needed}"
            )
        raise InputError(
            f"jobs: job {jobs.number[row]}: power_w: expected at most the {left / MILLIWATTS:g} W that the "
            f"budget leaves beside idle processors, found {needed / MILLIWATTS:g} W more than idle"
        )
