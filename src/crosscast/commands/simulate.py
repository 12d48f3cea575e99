"""``crosscast simulate policies``: scheduling policies on a trace of jobs, and the files of schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from crosscast.cli.cluster import SimulatePolicies
from crosscast.cli.options import FigureOutput
from crosscast.cluster import (
    POLICIES,
    Bound,
    Jobs,
    Machine,
    PlacedJobs,
    Placement,
    Policy,
    Schedule,
    metrics,
    policy_named,
    write_schedule,
)
from crosscast.cluster.configurations import cheapest_release_s, check_idle, configure, read_power_options
from crosscast.cluster.resources import Steps, idle_power_w, power_over_time, queue_length
from crosscast.cluster.rules import (
    Rules,
    kinds_of_jobs,
    machines_of_partitions,
    read_forecasts,
    read_slowdowns,
    rules_of,
    sharing_for,
)
from crosscast.cluster.simulate import load_simulator
from crosscast.cluster.site import NO_SITE, Budget, Shift, Site, read_site
from crosscast.cluster.site import PLACEMENTS as KNOWN
from crosscast.cluster.trace_files import read_trace, write_swf
from crosscast.cluster.traces import CleanedJobs, JobTrace
from crosscast.commands.output import LabelStatus, check_file, say, show, tell, warn
from crosscast.errors import InputError, expect_known
from crosscast.evaluation.executor import spreading
from crosscast.report.schedule import policies_report
from crosscast.units import parse_elapsed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ESTIMATES = ("requested", "exact", "predicted")

_SEARCHED = ("fcfs", "shortest", "smallest-area")
"""Orders that are searched by default."""


def policies(options: SimulatePolicies) -> None:
    """Run ``crosscast simulate policies``."""
    policy, priority, backfill = options.policy, options.priority, options.backfill
    if options.search is not None:
        policy, priority, backfill = _grid(options.search, policy, priority, backfill)
    chosen = _policies(policy or ["easy"], priority, backfill)
    files = ScheduleFiles(options.out, options.output, options.window, users=options.users)
    files.check(len(chosen))

    job_trace = read_trace(options.trace)
    machines, site = _machines(job_trace, options.machines)
    files.budget = site.budget
    expect_known(options.estimates, _ESTIMATES, where="--estimates", words="some of")
    overruns: Literal["kill", "header"] = "kill" if options.enforce_walltime else "header"
    cleaned = {
        name: job_trace.jobs("exact" if name == "exact" else "requested", overruns)
        for name in options.estimates
    }
    first = cleaned[options.estimates[0]]
    _check_width(first.jobs, machines)
    if options.users and first.jobs.user is None:
        raise InputError.of(where="--users", expected="a trace with users", found=f"none in {options.trace}")
    if options.search is not None:
        metrics.check_objective(options.search, site.budget, users=first.jobs.user is not None)
    placement = _placement(job_trace, first, machines, site, options.machines)
    label = job_trace.label
    runs = []
    for name in options.estimates:
        of_estimates, notes = _runs(
            chosen, job_trace, cleaned[name], machines, placement, site, predicted=name == "predicted"
        )
        exact = name == "exact"
        slows_down = site.options is not None or site.slowdowns is not None
        request_s = None if exact or not slows_down else cleaned[name].jobs.estimate_s[:, 0]
        runs += [
            replace(run, exact=exact and len(options.estimates) > 1, request_s=request_s)
            for run in of_estimates
        ]
    files.check(len(runs))
    facts = metrics.trace_facts(job_trace, first, machines, " and ".join(options.estimates), notes)
    # For ten million jobs, the columns that are not simulated take most of the memory.
    del job_trace
    load_simulator(len(first.jobs), chosen, site, runs[0].rules, say)
    with spreading(options.executor), LabelStatus() as status:
        progress = status if options.executor in (None, "local") else None
        results = metrics.compare_policies(
            runs, machines, placement, site=site, progress=progress, keep=files.keep
        )
    if options.search is not None:
        results = metrics.ranked(results, options.search)
        facts["best"] = {"objective": options.search, "policy": results[0].label}
    figures = files.figures(label)
    against = [metrics.differences(result, results[0], site.seed) for result in results]

    def answer() -> dict[str, object]:
        rows = [
            result.to_dict(users=options.users) | _against(results[0].label, pair)
            for result, pair in zip(results, against, strict=True)
        ]
        return {"results": rows, "trace": facts}

    files.write()
    report = partial(policies_report, results, facts, against, users=options.users)
    show(options.output, answer, report, lambda: figures)


def _grid(
    search: str,
    policies: Sequence[str] | None,
    priorities: Sequence[str] | None,
    backfills: Sequence[str] | None,
) -> tuple[list[str], list[str], list[str] | None]:
    """Policies and orders that are searched, with defaults where none are given."""
    expect_known(search, metrics.OBJECTIVES, where="--search")
    chosen = list(policies or POLICIES)
    passes = None if "easy" not in chosen else list(backfills or _SEARCHED)
    return chosen, list(priorities or _SEARCHED), passes


def _against(
    label: str, pair: tuple[metrics.PolicyDifference, metrics.PolicyDifference] | None
) -> dict[str, object]:
    """Differences to the first policy, for JSON."""
    if pair is None:
        return {"against": None}
    against: dict[str, object] = {"policy": label}
    for name, difference in zip(("mean_wait_s", "average_bounded_slowdown"), pair, strict=True):
        interval = [difference.interval.low, difference.interval.high]
        against[name] = {"value": difference.value, "interval": interval}
    return {"against": against}


def _policies(
    names: Sequence[str], priorities: Sequence[str] | None, backfills: Sequence[str] | None
) -> list[Policy]:
    """Make all combinations; only ``easy`` has an order of backfilling."""
    default: Sequence[str | None] = [None]
    combinations = [
        policy_named(name, priority, backfill)
        for name in names
        for priority in priorities or default
        for backfill in (default if name != "easy" and "easy" in names else backfills or default)
    ]
    return list(dict.fromkeys(combinations))


def _runs(
    chosen: Sequence[Policy],
    trace: JobTrace,
    cleaned: CleanedJobs,
    machines: Sequence[Machine],
    placement: Placement | None,
    site: Site,
    *,
    predicted: bool,
) -> tuple[list[metrics.QueuedJobs], list[str]]:
    """Combine policies with the site's power, sharing and shift policies, and collect notes."""
    jobs, notes = cleaned.jobs, []
    executables = trace.names_of("executable", cleaned.rows)
    machine = placement.machine if isinstance(placement, Bound) else np.zeros(len(jobs), np.int64)
    rules = _rules(trace, cleaned, machines, site, predicted=predicted)
    if rules.priority is None and any(policy.queue == "multifactor" for policy in chosen):
        raise InputError.of(
            where="--priority", field="multifactor", expected="a TOML file with [priority]", found="none"
        )
    # Only multifactor uses the weights of priorities.
    without_priority = replace(rules, priority=None)
    rules_for = {policy: rules if policy.queue == "multifactor" else without_priority for policy in chosen}
    runs = [
        metrics.QueuedJobs(policy, jobs, rules=rules_for[policy], predicted=predicted) for policy in chosen
    ]
    if site.options is not None and site.budget is not None:
        if placement is not None and not isinstance(placement, Bound):
            raise InputError.of(
                where="placement", expected="round-robin or random under a budget", found="completion"
            )
        options = read_power_options(site.options)
        kind, drawn = kinds_of_jobs(options.kinds, executables, site.seed)
        placed = PlacedJobs(jobs, machines, machine)
        check_idle(options, kind, placed, site.options)
        notes += [f"{drawn:,} of a kind without configurations: that of each is drawn"] if drawn else []
        runs = []
        for power_policy in site.power_policies:
            configured = configure(options, kind, placed, site.budget, power_policy)
            runs += [
                metrics.QueuedJobs(
                    policy,
                    configured.planned,
                    power_policy,
                    configured.power_w,
                    rules=replace(rules_for[policy], learning=configured.learning),
                    predicted=predicted,
                )
                for policy in chosen
            ]
    if site.slowdowns is not None:
        slowdowns = read_slowdowns(site.slowdowns)
        kind, drawn = kinds_of_jobs(slowdowns.kinds, executables, site.seed)
        notes += [f"{drawn:,} of a kind without slowdowns: that of each is drawn"] if drawn else []
        sharings = [
            (policy, sharing_for(policy, slowdowns, kind, site.limit, site.least_gain, site.most))
            for policy in site.sharing_policies
        ]
        runs = [replace(run, sharing=sharing, shared=policy) for run in runs for policy, sharing in sharings]
    if site.measured:
        runs = [replace(run, rules=run.rules.with_measured(run.power_w)) for run in runs]
    if site.budget is not None and site.shifts != ("never",):
        runs = [
            _shifted(run, PlacedJobs(run.jobs, machines, machine), site.budget, shift, site.shift_limit_s)
            for shift in site.shifts
            for run in runs
        ]
    return runs, notes


def _shifted(
    run: metrics.QueuedJobs, placed: PlacedJobs, budget: Budget, shift: Shift, limit_s: float
) -> metrics.QueuedJobs:
    """Delay jobs until power is cheap."""
    if shift == "never":
        return replace(run, shift=shift)
    release_s = cheapest_release_s(placed, budget, shift, limit_s)
    return replace(run, rules=replace(run.rules, release_s=release_s), shift=shift)


def _rules(
    trace: JobTrace, cleaned: CleanedJobs, machines: Sequence[Machine], site: Site, *, predicted: bool
) -> Rules:
    """Apply the site's rules to the jobs of a trace."""
    names = (trace.names_of(column, cleaned.rows) for column in ("group", "queue", "partition"))
    rules = rules_of(site.rules, cleaned.jobs, machines, *names)
    if not predicted:
        return rules
    forecasts = site.rules.forecasts
    if forecasts is not None:
        return replace(rules, forecast_s=read_forecasts(forecasts, cleaned.jobs.number))
    if cleaned.jobs.user is None:
        raise InputError.of(
            where="--estimates",
            field="predicted",
            expected="a trace with users, or forecasts under [walltime] of the TOML file",
            found="neither",
        )
    return replace(rules, forecast_s=np.full(len(cleaned.jobs), np.nan))


def _machines(trace: JobTrace, text: str | None) -> tuple[Sequence[Machine], Site]:
    """Read the machines of a file, or make one with the given number of processors or the trace's."""
    count = trace.header.procs
    if text is not None:
        try:
            count = int(text)
        except ValueError:
            return read_site(text)
        if count < 1:
            raise InputError.of(where="--machines", expected="at least 1 processor", found=f"{count}")
    if count is None:
        raise InputError(
            f"--machines is missing: the header of {trace.label} does not say how many processors there are"
        )
    if count < 1:
        raise InputError.of(where=trace.label, field="MaxProcs", expected="at least 1", found=f"{count}")
    return [Machine(trace.label, count)], NO_SITE


def _check_width(jobs: Jobs, machines: Sequence[Machine]) -> None:
    """Raise InputError if a job fits on no machine."""
    widest = max(machines, key=lambda machine: machine.procs)
    wide = jobs.procs > widest.procs
    if wide.any():
        row = int(wide.argmax())
        raise InputError.of(
            where=f"job {jobs.number[row]}",
            expected=f"at most {widest.procs:,} processors, as {widest.name} has",
            found=f"{jobs.procs[row]:,} (too wide: {wide.sum():,} of {len(jobs):,} jobs): "
            "give more with --machines",
        )


def _placement(
    trace: JobTrace, cleaned: CleanedJobs, machines: Sequence[Machine], site: Site, file: str | None
) -> Placement | None:
    name, jobs = site.placement, cleaned.jobs
    if len(machines) == 1:
        if name is not None:
            raise InputError.of(
                where=file, problem="placement: nothing to choose with one machine; leave it out"
            )
        return None
    partitions = site.rules.partitions
    if partitions:
        if name is not None:
            raise InputError.of(
                where=file, problem="placement: jobs go to the machines of partitions; leave it out"
            )
        names = trace.names_of("partition", cleaned.rows)
        return Bound(machines_of_partitions(partitions, machines, jobs.number, names))
    if name is None:
        raise InputError.of(
            where=file,
            field="placement is missing",
            expected=f"one of {', '.join(KNOWN)} for {len(machines)} machines",
        )

    # Imported here, as placements of types of jobs import models.
    from crosscast.cluster.placements import PLACEMENTS, Workload

    predicted_s = np.broadcast_to(jobs.estimate_s, (len(jobs), len(machines)))
    no_gpu = np.zeros(len(jobs), dtype=np.bool_)
    workload = Workload(jobs, machines, uses_gpu=no_gpu, predicted_s=predicted_s)
    return PLACEMENTS[name](workload, np.random.default_rng(site.seed))


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
                raise InputError.of(
                    where="--window", problem="nothing to draw without --figures or --html; leave it out"
                )
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
        raise InputError.of(where="--window", problem=str(error)) from error
    if to_s <= from_s:
        raise InputError.of(
            where="--window", expected=f"an end after the start, {from_s:g} s", found=f"{to_s:g} s"
        )
    return from_s, to_s
