"""Jobs under a budget of power: configurations, chosen beforehand or learned, and starts by its price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster import Jobs, PlacedJobs, first_row
from crosscast.cluster.resources import MILLIWATTS, idle_power_w
from crosscast.cluster.rules import MOST_SLOWDOWN, KindChoices, Learning
from crosscast.cluster.site import Budget, PowerPolicy, Shift, number_in, rows_of_csv
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
            most = MOST_SLOWDOWN if "slowdown" in name else _MOST_W
            empty = math.nan if name == _CAP else None
            numbers.append(number_in(cells, name, where, "a number above 0{most}", most=most, empty=empty))
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


def check_idle(options: PowerOptions, kind: Integers, placed: PlacedJobs, file: Path) -> None:
    """Refuse a configuration of jobs that takes less power than an idle processor of their machine."""
    for index, of_kind in sorted(set(zip(placed.machine.tolist(), kind.tolist(), strict=True))):
        machine, least_w = placed.machines[index], float(np.nanmin(options.power_w[of_kind]))
        if least_w < machine.idle_w:
            where, found = f"{file}: kind {options.kinds[of_kind]}", f"{least_w:g} W"
            expected = f"at least the {machine.idle_w:g} W of an idle processor of {machine.name}"
            raise InputError.of(where=where, field="power_w", expected=expected, found=found)


FULL_LOAD = 0.7
"""Load of processors and power up to which speed counts more than throughput."""

_WEIGHTS = 201

_TINY = 1e-6
"""Milliwatts by which rounding errors may be below a whole number."""

HORIZON = 40.0
"""Later jobs of a kind that profit from a trial of a configuration."""


@dataclass(frozen=True)
class _Cluster(PlacedJobs):
    """Jobs on their machines under a budget, with ``p`` pairs of a machine and a kind."""

    pair: Integers  # Index of each job's pair
    idle_w: Reals  # Power of an idle processor of each pair, of shape `(p,)`
    cap_w: Reals  # Cap of a processor of each pair
    budget: Budget
    left_w: float  # What the last step of the budget leaves beside idle processors

    @classmethod
    def of(cls, kinds: int, kind: Integers, placed: PlacedJobs, budget: Budget) -> _Cluster:
        """Collect what is known before configurations are."""
        jobs, machines, machine = placed.jobs, placed.machines, placed.machine
        idle_w, cap_w = (
            np.repeat([getattr(each, name) for each in machines], kinds) for name in ("idle_w", "cap_w")
        )
        left_w = float(budget.power_w[-1]) - idle_power_w(machines)
        return cls(jobs, machines, machine, machine * kinds + kind, idle_w, cap_w, budget, left_w)

    @property
    def procs(self) -> int:
        """Number of all processors."""
        return sum(each.procs for each in self.machines)

    def of_pairs(self, values: Reals) -> Reals:
        """Repeat the rows of kinds for each machine."""
        return np.tile(values, (len(self.machines), 1))

    def extra_w(self, power_w: Reals) -> Reals:
        """Return the power above that of an idle processor, of shape ``(p, k)``."""
        return np.maximum(power_w - self.idle_w[:, None], 0.0)


def choose_options(
    options: PowerOptions, kind: Integers, placed: PlacedJobs, budget: Budget, policy: PowerPolicy
) -> Integers:
    """Choose the configuration of each job: its index among those of its kind, of shape ``(n,)``.

    `full` takes the fastest that the budget allows at all. `uniform` divides the lowest budget equally: it
    takes the highest cap up to a processor's share, or else the lowest cap; without caps, the fastest up to
    that power, or else the one with the least power. `model` and `oracle` weigh the use of processors against
    that of power, see `_prices`.
    """
    cluster = _Cluster.of(len(options.kinds), kind, placed, budget)
    believed_w, believed = options.believed(policy)
    power_w, slowdown = cluster.of_pairs(believed_w), cluster.of_pairs(believed)
    extra_w, pair = cluster.extra_w(power_w), cluster.pair
    allowed = _allowed(cluster, power_w, extra_w)
    if policy == "full":
        cost = slowdown
    elif policy == "uniform":
        share_w = float(budget.power_w.min()) / cluster.procs
        if options.cap_w is None:
            cost = np.where(power_w <= share_w, slowdown - np.nanmax(slowdown) - 1, power_w)
        else:
            cap_w = cluster.of_pairs(options.cap_w)
            cost = np.where(cap_w <= share_w, -cap_w, cap_w)
    else:
        cost = _prices(cluster, extra_w, slowdown).cost(extra_w, slowdown)
    cost = np.where(np.isnan(cost), np.inf, cost)
    chosen: Integers = np.argmin(cost, axis=1)[pair]
    too_much = np.flatnonzero(~allowed[np.arange(len(pair)), chosen])
    chosen[too_much] = np.argmin(np.where(allowed[too_much], cost[pair[too_much]], np.inf), axis=1)
    return chosen


def _allowed(cluster: _Cluster, power_w: Reals, extra_w: Reals) -> Flags:
    """Return the options that caps and budget allow each job, of shape ``(n, k)``; one at least."""
    jobs, machines, pair = cluster.jobs, cluster.machines, cluster.pair
    capped: Flags = (power_w <= cluster.cap_w[:, None])[pair]
    if (row := first_row(~capped.any(axis=1))) is not None:
        raise InputError.of(
            where="jobs",
            problem=(
                f"job {jobs.number[row]}: power: expected a configuration of at most the "
                f"{cluster.cap_w[pair[row]]:g} W to which a processor of "
                f"{machines[cluster.machine[row]].name} is capped, found "
                f"{np.nanmin(power_w[pair[row]]):g} W at least"
            ),
        )
    allowed: Flags = capped & (jobs.procs[:, None] * extra_w[pair] <= cluster.left_w)
    if (row := first_row(~allowed.any(axis=1))) is not None:
        needed = jobs.procs[row] * np.nanmin(extra_w[pair[row]])
        raise InputError.of(
            where="jobs",
            problem=(
                f"job {jobs.number[row]}: power: expected a configuration of at most the "
                f"{cluster.left_w:g} W that the budget leaves beside idle processors, found "
                f"{needed:g} W at least"
            ),
        )
    return allowed


class _Prices(NamedTuple):
    """Prices of a second of a processor, and of a watt-second above idle, as shares of what there is."""

    processor: float
    watt: float

    def cost(self, extra_w: Reals, slowdown: Reals) -> Reals:
        """Return the cost of a job's second at a slowdown of 1."""
        return slowdown * (self.processor + self.watt * extra_w)


def _prices(cluster: _Cluster, extra_w: Reals, slowdown: Reals) -> _Prices:
    """Return prices of ``weight / processors`` and ``(1 - weight) / power``.

    The weight minimises the higher load, of processors or power, if each kind takes its cheapest option: it
    is the dual of their allocation. If both loads can be below `FULL_LOAD` over the time in which jobs are
    submitted, the weight with the fastest jobs below that load is taken.
    """
    jobs, budget, procs = cluster.jobs, cluster.budget, cluster.procs
    estimate_s = cluster.on_machine(jobs.estimate_s)
    work = np.where(np.isfinite(estimate_s), jobs.procs * estimate_s, 0.0)
    work = np.bincount(cluster.pair, weights=work, minlength=len(slowdown))
    finite = budget.power_w[np.isfinite(budget.power_w)]
    best_prices = _Prices(1 / procs, 0.0)
    if not len(finite):
        return best_prices
    left_w = max(float(finite.mean()) - idle_power_w(cluster.machines), 1 / MILLIWATTS)
    span_s = float(jobs.submit_s[-1] - jobs.submit_s[0])
    rows = np.arange(len(slowdown))
    least = (np.inf, np.inf)
    for weight in np.linspace(0.0, 1.0, _WEIGHTS).tolist():
        prices = _Prices(weight / procs, (1 - weight) / left_w)
        chosen = np.nanargmin(prices.cost(extra_w, slowdown), axis=1)
        time = work * slowdown[rows, chosen]
        loads = float(time.sum()) / procs, float((time * extra_w[rows, chosen]).sum()) / left_w
        merit = max(*loads, FULL_LOAD * span_s), loads[0]
        if merit < least:
            least, best_prices = merit, prices
    return best_prices


class KindForecast(NamedTuple):
    """Forecast of the ``k`` configurations of a kind of job."""

    power_w: Reals  # Power that is reserved for a processor, in watts, of shape `(k,)`
    slowdown: Reals  # Expected slowdown, of shape `(k,)`
    possible: Reals  # Equally likely slowdowns, of shape `(m, k)`


class Learner(Protocol):
    """Forecasts of kinds of jobs that learn from measurements."""

    def samples(self, kind: int) -> tuple[int, ...]:
        """Configurations that are measured before a kind's first job."""

    def forecast(self, kind: int, measured: Sequence[int]) -> KindForecast:
        """Forecast a kind of which some configurations have been measured."""


@dataclass(frozen=True)
class MeasuredOptions:
    """Predictions that measurements replace, one by one; see `Learner`."""

    options: PowerOptions

    def samples(self, kind: int) -> tuple[int, ...]:
        """Nothing is measured before."""
        return ()

    def forecast(self, kind: int, measured: Sequence[int]) -> KindForecast:
        """Replace the predictions of measured configurations; others are certain."""
        power_w, slowdown = (values[kind].copy() for values in self.options.believed("model"))
        chosen = list(measured)
        power_w[chosen] = self.options.power_w[kind, chosen]
        slowdown[chosen] = self.options.slowdown[kind, chosen]
        return KindForecast(power_w, slowdown, slowdown[None])


@dataclass(frozen=True)
class _Chooser:
    """Chooses the configurations of ``p`` pairs of a machine and a kind by what jobs have measured.

    A configuration is tried where the improvement that is expected for `HORIZON` jobs exceeds the loss that
    is expected for the one that tries it (Jones, Schonlau and Welch 1998: expected improvement). Else, and
    while a job tries one, the best measured one is taken.
    """

    cluster: _Cluster
    learner: Learner
    kinds: int
    most_w: Reals  # Most power of a processor, so that the widest job of a pair has room, of shape `(p,)`
    # Forecasts of pairs, with what they are conditioned on; pairs that have not changed keep theirs
    forecasts: dict[int, tuple[tuple[int, ...], KindForecast]] = field(default_factory=dict)

    @classmethod
    def of(cls, options: PowerOptions, cluster: _Cluster, learner: Learner) -> _Chooser:
        """Check that any configuration is allowed, as far as is known before the first job."""
        widest = np.ones(len(cluster.idle_w), np.int64)
        np.maximum.at(widest, cluster.pair, cluster.jobs.procs)
        most_w = np.minimum(cluster.cap_w, cluster.idle_w + cluster.left_w / widest)
        chooser = cls(cluster, learner, len(options.kinds), most_w)
        power_w = chooser.forecast_all(np.zeros((len(widest), options.power_w.shape[1]), np.bool_))[0]
        _allowed(cluster, power_w, cluster.extra_w(power_w))
        return chooser

    def forecast_all(self, measured: Flags) -> tuple[Reals, Reals]:
        """Forecast all pairs; return the power that is reserved and the slowdown, of shape ``(p, k)``."""
        for pair, row in enumerate(measured):
            kind = pair % self.kinds
            known = tuple(sorted({*self.learner.samples(kind), *np.flatnonzero(row).tolist()}))
            if pair not in self.forecasts or self.forecasts[pair][0] != known:
                self.forecasts[pair] = known, self.learner.forecast(kind, known)
        forecasts = [self.forecasts[pair][1] for pair in range(len(measured))]
        return np.array([each.power_w for each in forecasts]), np.array([each.slowdown for each in forecasts])

    def __call__(self, measured: Flags, tried: Flags) -> KindChoices:
        """Choose for all pairs; see `Learning.choose`."""
        power_w, slowdown = self.forecast_all(measured)
        extra_w = self.cluster.extra_w(power_w)
        prices = _prices(self.cluster, extra_w, slowdown)
        is_open = power_w <= self.most_w[:, None]
        # Where all need too much, jobs take what there is.
        least = power_w == np.nanmin(power_w, axis=1, keepdims=True)
        is_open |= ~is_open.any(axis=1, keepdims=True) & least
        pairs = range(len(measured))
        rows = zip(pairs, extra_w, is_open, tried.max(axis=1), strict=True)
        option = np.array([self._choice(prices, *row) for row in rows])
        # Rounded down, so that the milliwatts of a wide job's processors do not add up to more.
        most_mw = np.maximum(self.most_w - self.cluster.idle_w, 0.0) * MILLIWATTS
        most_w = np.floor(most_mw + _TINY) / MILLIWATTS
        return KindChoices(option, slowdown[pairs, option], np.minimum(extra_w[pairs, option], most_w))

    def _choice(self, prices: _Prices, pair: int, extra_w: Reals, is_open: Flags, is_busy: np.bool_) -> int:
        known, forecast = self.forecasts[pair]
        cost = prices.cost(extra_w, forecast.possible)
        mean = np.where(is_open, cost.mean(axis=0), np.inf)
        usable = [option for option in known if is_open[option]]
        if not usable:
            return int(np.argmin(mean))
        best = min(usable, key=lambda option: float(mean[option]))
        gain = HORIZON * np.maximum(mean[best] - cost, 0.0).mean(axis=0) - (mean - mean[best])
        gain = np.where(is_open, gain, -np.inf)
        gain[list(known)] = 0.0
        return int(np.argmax(gain)) if gain.max() > 0 and not is_busy else best


@dataclass(frozen=True)
class Configured:
    """Jobs in their chosen configurations."""

    planned: Jobs  # With the estimates and power that the scheduler expects, and the true run times
    # True power of each job in watts, of shape `(n,)`; `None` if configurations are learned
    power_w: Reals | None
    learning: Learning | None = None  # Configurations that are learned


def configure(
    options: PowerOptions,
    kind: Integers,
    placed: PlacedJobs,
    budget: Budget,
    policy: PowerPolicy,
    learner: Learner | None = None,
) -> Configured:
    """Choose a configuration for each job, and scale its run time and estimate by the slowdowns.

    With the policy `learned`, jobs keep their times, and the simulator chooses by a learner's forecasts; by
    default, measurements replace predictions.
    """
    jobs = placed.jobs
    if policy == "learned":
        cluster = _Cluster.of(len(options.kinds), kind, placed, budget)
        extra_w = cluster.extra_w(cluster.of_pairs(options.power_w))
        chooser = _Chooser.of(options, cluster, learner or MeasuredOptions(options))
        learning = Learning(cluster.pair, cluster.of_pairs(options.slowdown), extra_w, chooser)
        return Configured(jobs, None, learning)
    chosen = choose_options(options, kind, placed, budget, policy)
    power_w, slowdown = options.believed(policy)
    idle_w = placed.of_machine("idle_w")
    # Predictions below the power of an idle processor are raised to it.
    believed_w: Reals = np.maximum(power_w[kind, chosen], idle_w) * jobs.procs
    planned = replace(
        jobs,
        run_s=jobs.run_s * options.slowdown[kind, chosen][:, None],
        estimate_s=jobs.estimate_s * slowdown[kind, chosen][:, None],
        power_w=believed_w,
        fastest_s=jobs.run_s,
    )
    return Configured(planned, np.maximum(options.power_w[kind, chosen], idle_w) * jobs.procs)


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
