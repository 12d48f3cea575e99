"""Site of machines, as its file says: reservations, a budget of power, and rules by names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar, get_args

import numpy as np

from crosscast.arrays import Reals
from crosscast.cluster import Machine, machine_fields, machines_of, procs_or_nodes, required_text
from crosscast.data.fields import Fields
from crosscast.data.files import csv_rows, number_of_text
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
            raise InputError.of(
                where=f"reservation {self.name}",
                expected="a start of at least 0 s and an end after it",
                found=f"{self.start_s:g} s and {self.end_s:g} s",
            )
        if self.procs is not None and self.procs < 1:
            raise InputError.of(
                where=f"reservation {self.name}", field="procs", expected="at least 1", found=f"{self.procs}"
            )


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
        for name, values in columns.items():
            if name == "power_w":
                values.append(number_in(cells, name, where, "watts above 0, or nothing", empty=math.inf))
            else:
                values.append(number_in(cells, name, where, "a number", above=-math.inf))
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


def number_in(
    cells: Mapping[str, str],
    name: str,
    where: str,
    expected: str,
    *,
    above: float = 0.0,
    most: float = math.inf,
    empty: float | None = None,
) -> float:
    """Return the number in a cell, or `empty` where there is none, if that is allowed.

    The error says what is expected, with the upper bound in place of ``{most}`` if only that is exceeded.
    """
    cell = cells[name]
    if not cell and empty is not None:
        return empty
    number = number_of_text(cell)
    if not above < number <= most:
        expected = expected.format(most=f" and at most {most:g}" if number > above else "")
        raise InputError.of(where=where, field=name, expected=expected, found=repr(cell))
    return number


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
class Weights:
    """Weights of priorities, as in `[priority]` of a site's file; see `Priority`."""

    age: float = 0.0
    size: float = 0.0
    fair_share: float = 0.0
    qos: float = 0.0
    partition: float = 0.0
    max_age_s: float = 7 * 86_400.0
    half_life_s: float = 7 * 86_400.0  # Infinite without decay
    favor_small: bool = False  # Whether the smallest jobs have the highest factor of size
    shares: Mapping[str, float] = field(default_factory=dict)  # Of each account


@dataclass(frozen=True)
class Quality:
    """A quality of service, as in `[[qos]]` of a site's file."""

    name: str
    priority: float = 0.0
    preempts: tuple[str, ...] = ()  # Names of the qualities that its jobs may preempt


@dataclass(frozen=True)
class Partition:
    """A partition, as in `[[partition]]` of a site's file."""

    name: str
    machine: str | None = None  # Name of its machine; optional if there is one
    procs: int | None = None  # Processors for all its jobs; by default those of the machine
    time_limit_s: float = np.inf
    most_jobs: int | None = None  # Limit of running jobs of a user
    tier: int = 1  # Jobs of a higher tier are considered first
    priority: float = 0.0


PREEMPTIONS = ("partition", "qos")
"""Preemption by tiers of partitions, or by the lists of qualities of service."""


@dataclass(frozen=True)
class SiteRules:
    """Rules by names, as in a site's file."""

    weights: Weights | None = None
    qualities: tuple[Quality, ...] = ()
    partitions: tuple[Partition, ...] = ()
    preemption: str | None = None  # One of `PREEMPTIONS`
    forecasts: Path | None = None  # File with forecast times of jobs


@dataclass(frozen=True)
class Site:
    """Site of machines, with the options of a comparison of policies."""

    reservations: tuple[Reservation, ...] = ()
    budget: Budget | None = None
    options: Path | None = None  # File with configurations of jobs, see `crosscast.cluster.configurations`
    slowdowns: Path | None = None  # File with slowdowns of jobs that share, see `crosscast.cluster.rules`
    most: int = 2  # As in `crosscast.cluster.rules.Sharing`
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
        raise InputError.of(
            where=fields.where, problem="priority: qos: expected tables under [[qos]], found none"
        )
    forecasts = None
    if walltime is not None:
        forecasts = folder / required_text(walltime, "forecasts")
        walltime.finish()
        if not forecasts.is_file():
            raise InputError.of(where=forecasts, problem="cannot read the forecasts (no such file)")
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
            raise InputError.of(where=given.where, expected="a share above 0", found="none")
    elif numbers.get("fair_share", 0) > 0:
        raise InputError.of(
            where=table.where, field="fair_share", expected="shares of accounts under shares", found="none"
        )
    table.finish()
    return Weights(**numbers, favor_small=favor_small, shares=shares)


def _quality(table: Fields) -> Quality:
    name, priority = required_text(table, "name"), table.number("priority", ge=0) or 0.0
    quality = Quality(name, priority, table.texts("preempts"))
    table.finish()
    return quality


def _partition(table: Fields) -> Partition:
    tier = table.integer("tier", 0)
    partition = Partition(
        required_text(table, "name"),
        table.text("machine"),
        procs_or_nodes(table),
        _time(table, "time_limit") if "time_limit" in table else math.inf,
        table.integer("most_jobs", 1),
        1 if tier is None else tier,
        table.number("priority", ge=0) or 0.0,
    )
    table.finish()
    return partition


def _reservation(table: Fields) -> Reservation:
    name, machine = required_text(table, "name"), required_text(table, "machine")
    start_s, end_s = _time(table, "start"), _time(table, "end")
    procs = table.integer("procs", 1)
    table.finish()
    try:
        return Reservation(name, machine, start_s, end_s, procs)
    except InputError as error:
        raise InputError.of(where=table.where, problem=str(error)) from error


def _time(table: Fields, name: str) -> float:
    """Return a time in seconds, given as a text such as ``10d`` or as a number of seconds."""
    table.require(name, "a time")
    try:
        return parse_elapsed(str(table.take(name)))
    except InputError as error:
        raise InputError.of(where=table.where, problem=f"{name}: {error}") from error


def _sharing(site: Site, table: Fields, folder: Path) -> Site:
    slowdowns = folder / required_text(table, "slowdowns")
    most = table.integer("most", 2) or site.most
    if most > MOST_TOGETHER:
        raise table.fail("most", f"at most {MOST_TOGETHER} jobs")
    least_gain = table.number("least_gain", ge=0)
    site = replace(
        site,
        most=most,
        limit=table.number("limit", ge=1) or site.limit,
        least_gain=site.least_gain if least_gain is None else least_gain,
        slowdowns=slowdowns,
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
        raise InputError.of(
            where=table.where, field="measured", expected="options, whose power is predicted", found="none"
        )
    if (set(shifts) - {"never"}) and limit_s is None:
        raise InputError.of(
            where=table.where, problem="shift_limit is missing, expected how long jobs may be delayed"
        )
    if len(given) != 1:
        which = "both" if given else "neither"
        raise InputError.of(where=table.where, expected="budget_w or budget", found=f"{which}")
    if options is None and policies:
        raise InputError.of(
            where=table.where, field="policies", expected="options to choose from", found="none"
        )
    budget = constant_budget(watts) if watts is not None else read_budget(folder / str(file))
    for shift, unit in (("price", "price_per_kwh"), ("carbon", "carbon_g_per_kwh")):
        if shift in shifts and getattr(budget, unit) is None:
            raise InputError.of(
                where=table.where, problem=f"shift: {shift}: expected a budget with {unit}, found none"
            )
    return Site(
        budget=budget,
        options=None if options is None else folder / options,
        power_policies=policies or NO_SITE.power_policies,
        measured=measured,
        shifts=shifts or NO_SITE.shifts,
        shift_limit_s=limit_s or 0.0,
    )
