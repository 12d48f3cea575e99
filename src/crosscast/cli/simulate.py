"""``crosscast simulate``: policies on a trace of jobs, and placements of jobs on several machines."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import cyclopts
from cyclopts import Group, Parameter
from cyclopts.validators import mutually_exclusive

from crosscast.cli.options import (
    FIGURES,
    Executor,
    FigureOutput,
    Flag,
    Names,
    Repeated,
    Whole,
    check_file,
    tell,
    warn,
)
from crosscast.cli.running import LabelStatus
from crosscast.errors import InputError
from crosscast.executor import spreading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosscast.arrays import Integers
    from crosscast.cluster.jobs import Jobs, Machine, Placement, Policy, Schedule
    from crosscast.cluster.metrics import PolicyDifference, Run, Steps
    from crosscast.cluster.rules import Rules
    from crosscast.cluster.site import Budget, Shift, Site
    from crosscast.cluster.swf import CleanedJobs, Trace
    from crosscast.report.document import Report

__all__ = ["app"]

app = cyclopts.App(
    name="simulate",
    help="Simulate a cluster: scheduling policies on a trace of jobs, or placements of jobs on machines.",
)

_ESTIMATES = ("requested", "exact", "predicted")
_SEARCHED = ("fcfs", "shortest", "smallest-area")
"""Orders that are searched, where none are named."""
_WRITERS = {".csv": "crosscast.cluster.jobs:write_schedule", ".swf": "crosscast.cluster.swf:write_swf"}
_MOST_SEEDS = 10_000

Policies = Annotated[
    Names | None,
    Parameter(
        show_default=lambda _: "easy",
        help="`easy`: jobs may start before the head of the queue if that does not delay it (EASY "
        "backfilling); `conservative`: each job has a reservation, which no other delays; `fcfs`: none may.",
    ),
]
Priority = Annotated[
    Names | None,
    Parameter(
        help="Order of the queue: fcfs, lcfs, shortest, longest, narrowest, widest, smallest-area or "
        "largest-area, by estimated time and processors, or multifactor, by the TOML file's [priority]; by "
        "default fcfs."
    ),
]
Backfill = Annotated[
    Names | None,
    Parameter(help="Order in which jobs are tried for backfilling, one of the same; by default fcfs."),
]
Out = Annotated[
    list[Path] | None,
    Repeated,
    Parameter(
        help="File for the schedule, if it is one: `.csv` with job, submit, start, end, machine and procs, "
        "or `.swf`, a trace; may be given twice."
    ),
]
Window = Annotated[
    str | None,
    Parameter(
        help="Part of the time that figures show, since the first submission, such as `10d:17d` or `36h:`; "
        "by default all."
    ),
]
_ARRIVALS = Group(validator=mutually_exclusive)


@app.command
def policies(
    trace: Path,
    /,
    *,
    policy: Policies = None,
    priority: Priority = None,
    backfill: Backfill = None,
    search: str | None = None,
    estimates: Names = ("requested",),  # type: ignore[assignment]
    machines: str | None = None,
    enforce_walltime: Flag = False,
    users: Flag = False,
    out: Out = None,
    window: Window = None,
    executor: Executor = None,
    output: FigureOutput = FIGURES,
) -> None:
    """Compare scheduling policies on a trace of a cluster (docs/scheduling.md).

    Several policies, priorities and orders of backfilling, with commas between, are compared in all
    combinations: `--policy fcfs,easy`.

    Parameters
    ----------
    trace
        Jobs in the Standard Workload Format, or what `sacct --parsable2` printed, plain or compressed with
        gzip.
    search
        Find the best of all policies, and of some orders where none are given, by makespan, slowdown,
        mean-wait, wait-p95, fairness, energy, cost or carbon, and list it first.
    estimates
        Run times that the scheduler assumes: `requested` by users (the default), `exact`, or `predicted` by
        forecasts of the TOML file and the last two jobs of the same user.
    machines
        TOML file with the machines and what surrounds them: how jobs are placed where there are several,
        reservations, a budget of power, and who may share processors (docs/traces.md); or the number of
        processors of a single machine; by default the number in the trace's header.
    enforce_walltime
        End jobs when their requested time is over, whatever the header says.
    users
        Also list each user's jobs and waits; the timeline's colours are users instead of waits.
    output.figures
        Folder for figures: jobs that wait over time, power against the budget where there is one, and the
        timeline of the schedule, if it is one.
    """
    if search is not None:
        policy, priority, backfill = _grid(search, policy, priority, backfill)
    chosen = _policies(policy or ["easy"], priority, backfill)
    files = _Files(out or [], output, window, users=users)
    files.check(len(chosen))
    output.check()
    from crosscast.cluster.metrics import compare_policies, differences, ranked, trace_facts
    from crosscast.cluster.sacct import read_trace
    from crosscast.cluster.simulate import load_simulator

    read = read_trace(trace)
    clusters, site = _machines(read, machines)
    files.budget = site.budget
    for name in estimates:
        if name not in _ESTIMATES:
            raise InputError(f"--estimates: expected some of {', '.join(_ESTIMATES)}, found {name!r}")
    overruns: Literal["kill", "header"] = "kill" if enforce_walltime else "header"
    cleaned = {name: read.jobs("exact" if name == "exact" else "requested", overruns) for name in estimates}
    found = cleaned[estimates[0]]
    _check_width(found.jobs, clusters)
    if users and found.jobs.user is None:
        raise InputError(f"--users: expected a trace with users, found none in {trace}")
    placed = _placed(read, found, clusters, site, machines)
    facts, label = trace_facts(read, found, clusters, " and ".join(estimates)), read.label
    runs = []
    for name in estimates:
        some, notes = _runs(
            chosen, read, cleaned[name], clusters, placed, site, predicted=name == "predicted"
        )
        runs += [replace(run, exact=name == "exact" and len(estimates) > 1) for run in some]
    files.check(len(runs))
    facts["notes"] += notes
    # Of ten million jobs, the columns that are not simulated are most of the memory.
    del read
    load_simulator(len(found.jobs), chosen, site, runs[0].rules, tell)
    with spreading(executor), LabelStatus() as status:
        results = compare_policies(
            runs,
            clusters,
            placed,
            site=site,
            progress=status if executor in (None, "local") else None,
            keep=files.keep,
        )
    if search is not None:
        results = ranked(results, search)
        facts["best"] = {"objective": search, "policy": results[0].label}
    drawn = files.drawn(label)
    against = [differences(each, results[0], site.seed) for each in results]

    def report() -> Report:
        from crosscast.report.schedule import policies_report

        return policies_report(results, facts, against, users=users)

    def listed() -> dict[str, Any]:
        found = [
            result.to_dict(users=users) | _against(results[0].label, each)
            for result, each in zip(results, against, strict=True)
        ]
        return {"results": found, "trace": facts}

    files.write()
    output.show(
        listed,
        report,
        lambda: drawn,
    )


@app.command
def placements(
    jobs_file: Annotated[Path, Parameter(name="JOBS")],
    speeds: Path | None = None,
    /,
    *,
    machines: Path,
    placement: Names | None = None,
    jobs: Whole | None = None,
    seed: str = "0",
    interarrival: Annotated[float | None, Parameter(group=_ARRIVALS)] = None,
    load: Annotated[float | None, Parameter(group=_ARRIVALS)] = None,
    estimates: Literal["exact", "predicted"] = "exact",
    policy: Literal["easy", "fcfs"] = "easy",
    priority: str | None = None,
    backfill: str | None = None,
    out: Out = None,
    executor: Executor = None,
    output: FigureOutput = FIGURES,
) -> None:
    """Compare placements of jobs whose times on several machines are known (docs/scheduling.md).

    The experiment of section VII of Nichols et al. 2024.

    Parameters
    ----------
    jobs_file
        Types of jobs with measured and predicted times (Parquet or CSV, docs/traces.md), or a trace of Gavel.
    speeds
        CSV file with the speeds of a trace of Gavel.
    machines
        TOML file with the machines.
    placement
        How jobs are assigned to machines, separated by commas: round-robin, random, user, model, exact,
        model-near, exact-near, completion, exact-completion; by default all for which the file has data.
    jobs
        Number of jobs drawn, with replacement; by default 50,000, or the rows themselves where the file says
        when they are submitted.
    seed
        Random seed, or the first and the last one, such as `1:10`, to draw a workload with each.
    interarrival
        Mean seconds between submissions, a Poisson process; by default all jobs are submitted at once.
    load
        Instead of `--interarrival`: arriving work as a share of the machines' capacity.
    estimates
        Run times that the scheduler assumes: exact ones, or those that a model predicted.
    policy
        `easy`: jobs may start before the head of the queue if that does not delay it (EASY backfilling);
        `fcfs`: none may.
    priority
        Order of the queue: fcfs, lcfs, shortest, longest, narrowest, widest, smallest-area or largest-area.
    backfill
        Order in which jobs are tried for backfilling, one of the same.
    output.figures
        Folder for figures: makespans and slowdowns, jobs that wait over time, and the timeline of the
        schedule, if it is one.
    """
    (chosen,) = _policies([policy], priority and [priority], backfill and [backfill])
    files = _Files(out or [], output)
    several = _seeds(seed)
    from crosscast.cluster.placements import check_placements

    if placement is not None:
        check_placements(placement)
    files.check(len(several) * len(placement or ()))
    output.check()
    from crosscast.cluster.experiment import (
        PUBLISHED_JOBS,
        Setup,
        experiment_facts,
        interarrival_of_load,
        run_experiment,
    )
    from crosscast.cluster.job_tables import read_job_table
    from crosscast.cluster.jobs import read_machines
    from crosscast.cluster.simulate import load_simulator

    table = read_job_table(
        jobs_file, read_machines(machines), speeds, placement, predicted=estimates == "predicted"
    )
    placement = table.placements if placement is None else placement
    files.check(len(several) * len(placement))
    if jobs is None and table.submit_s is None:
        jobs = PUBLISHED_JOBS
    if jobs is None:
        drawn = (("--interarrival", interarrival), ("--load", load), ("--seed", several[1:] or None))
        for option, value in drawn:
            if value is not None:
                raise InputError(
                    f"{option}: {table.label} says when jobs are submitted; leave the option out, or draw "
                    "--jobs"
                )
    interarrival_s = interarrival or 0.0
    if load is not None:
        interarrival_s = interarrival_of_load(table.types, load)
    load_simulator(len(table.types) if jobs is None else jobs, [chosen], progress=tell)
    setup = Setup(placement, jobs, several, table.submit_s, interarrival_s, chosen, estimates)
    with spreading(executor), LabelStatus() as status:
        found = run_experiment(
            table.types,
            setup,
            progress=lambda done, total, label: status(f"{done} of {total} simulations: {label}"),
            keep=lambda name, each, schedule: files.keep(
                name if len(several) == 1 else f"{name}, seed {each}", schedule
            ),
        )
    figures = files.drawn(table.label)
    if files.draws:
        from crosscast.report.schedule_figures import placement_figure

        figures["placements"] = placement_figure(found, f"{table.label}: {found.results[0].jobs:,} jobs")
    facts = experiment_facts(found, table.label, table.types, table.left_out)

    def report() -> Report:
        from crosscast.report.schedule import experiment_report

        return experiment_report(found, facts)

    files.write()
    output.show(
        lambda: {"results": [each.to_dict() for each in found.results], "workload": facts},
        report,
        lambda: figures,
    )


def _grid(
    search: str,
    policies: Sequence[str] | None,
    priorities: Sequence[str] | None,
    backfills: Sequence[str] | None,
) -> tuple[Any, Any, Any]:
    """Policies and orders that are searched, where none are named."""
    from crosscast.cluster.jobs import POLICIES
    from crosscast.cluster.metrics import OBJECTIVES

    if search not in OBJECTIVES:
        raise InputError(f"--search: expected one of {', '.join(OBJECTIVES)}, found {search!r}")
    policies = policies or POLICIES
    passes = None if "easy" not in policies else backfills or _SEARCHED
    return policies, priorities or _SEARCHED, passes


def _against(label: str, found: tuple[PolicyDifference, PolicyDifference] | None) -> dict[str, Any]:
    """Differences to the first policy, for JSON."""
    if found is None:
        return {"against": None}
    names = ("mean_wait_s", "average_bounded_slowdown")
    values = {
        name: {"value": each.value, "interval": [each.interval.low, each.interval.high]}
        for name, each in zip(names, found, strict=True)
    }
    return {"against": {"policy": label, **values}}


def _policies(
    names: Sequence[str], priorities: Sequence[str] | None, backfills: Sequence[str] | None
) -> list[Policy]:
    """All combinations; there is an order of backfilling with ``easy`` only."""
    from crosscast.cluster.jobs import policy_named

    nothing: Sequence[str | None] = [None]
    found = [
        policy_named(name, first, second)
        for name in names
        for first in priorities or nothing
        for second in (nothing if name != "easy" and "easy" in names else backfills or nothing)
    ]
    return list(dict.fromkeys(found))


def _runs(
    chosen: Sequence[Policy],
    trace: Trace,
    found: CleanedJobs,
    machines: Sequence[Machine],
    placed: Placement | None,
    site: Site,
    *,
    predicted: bool,
) -> tuple[list[Run], list[str]]:
    """All policies with all ways to configure jobs and to share, where there are any, and notes on them."""
    import numpy as np

    from crosscast.cluster.jobs import Bound
    from crosscast.cluster.metrics import Run
    from crosscast.cluster.power import configure, kinds_of_jobs, read_power_options
    from crosscast.cluster.sharing import read_slowdowns, sharing_for

    count, notes = len(found.jobs), []
    numbers = trace.columns["executable"][found.rows]
    named = None
    if not np.isnan(numbers).all():
        texts = trace.names.get("executable")
        named = [
            "" if np.isnan(each) else texts[int(each) - 1] if texts else str(int(each))
            for each in numbers.tolist()
        ]
    rules = _rules(trace, found, machines, site, predicted=predicted)
    for each in chosen:
        if each.queue == "multifactor" and rules.priority is None:
            raise InputError("--priority: multifactor: expected a TOML file with [priority], found none")
    # Weights that no policy asks for are left out.
    ruled = {each: rules if each.queue == "multifactor" else replace(rules, priority=None) for each in chosen}
    runs = [Run(each, found.jobs, rules=ruled[each], predicted=predicted) for each in chosen]
    if site.options is not None and site.budget is not None:
        if placed is not None and not isinstance(placed, Bound):
            raise InputError("placement: expected round-robin or random under a budget, found completion")
        machine = np.zeros(count, np.int64) if placed is None else placed.machine
        options = read_power_options(site.options)
        kind, drawn = kinds_of_jobs(options.kinds, named, count, site.seed)
        notes += [f"{drawn:,} of a kind without configurations: that of each is drawn"] if drawn else []
        runs = []
        for way in site.power_policies:
            own = configure(options, kind, found.jobs, machines, machine, site.budget, way)
            runs += [
                Run(each, own.planned, way, own.power_w, rules=ruled[each], predicted=predicted)
                for each in chosen
            ]
    if site.slowdowns is not None:
        slowdowns = read_slowdowns(site.slowdowns)
        kind, drawn = kinds_of_jobs(slowdowns.kinds, named, count, site.seed)
        notes += [f"{drawn:,} of a kind without slowdowns: that of each is drawn"] if drawn else []
        ways = site.sharing_policies
        shares = [sharing_for(each, slowdowns, kind, site.limit, site.least_gain, site.most) for each in ways]
        runs = [
            replace(run, sharing=share, shared=way)
            for run in runs
            for way, share in zip(ways, shares, strict=True)
        ]
    if site.measured:
        runs = [replace(run, rules=replace(run.rules, measured_w=run.power_w)) for run in runs]
    if site.budget is not None and site.shifts != ("never",):
        machine = np.zeros(count, np.int64) if not isinstance(placed, Bound) else placed.machine
        runs = [
            _shifted(run, machine, site.budget, by, site.shift_limit_s) for by in site.shifts for run in runs
        ]
    return runs, notes


def _shifted(run: Run, machine: Integers, budget: Budget, by: Shift, limit_s: float) -> Run:
    """Jobs that are held back until when power is cheap."""
    from crosscast.cluster.power import cheapest_release_s

    if by == "never":
        return replace(run, shift=by)
    release_s = cheapest_release_s(run.jobs, machine, budget, by, limit_s)
    return replace(run, rules=replace(run.rules, release_s=release_s), shift=by)


def _rules(
    trace: Trace, found: CleanedJobs, machines: Sequence[Machine], site: Site, *, predicted: bool
) -> Rules:
    """What the site decides of the jobs of a trace."""
    import numpy as np

    from crosscast.cluster.power import read_forecasts
    from crosscast.cluster.rules import rules_of

    names = (trace.names_of(column, found.rows) for column in ("group", "queue", "partition"))
    rules = rules_of(site.rules, found.jobs, machines, *names)
    if not predicted:
        return rules
    forecasts = site.rules.forecasts
    if forecasts is not None:
        return replace(rules, forecast_s=read_forecasts(forecasts, found.jobs.number))
    if found.jobs.user is None:
        raise InputError(
            "--estimates: predicted: expected a trace with users, or forecasts under [walltime] of the TOML "
            "file, found neither"
        )
    return replace(rules, forecast_s=np.full(len(found.jobs), np.nan))


def _seeds(text: str) -> range:
    """A seed, or the first and the last of several."""
    words = text.split(":")
    if len(words) > 2 or not all(map(str.isdecimal, words)):
        raise InputError(f"--seed: expected a seed or a range such as 1:10, found {text!r}")
    first, last = int(words[0]), int(words[-1])
    if not first <= last < first + _MOST_SEEDS:
        raise InputError(
            f"--seed: expected the last from the first on, at most {_MOST_SEEDS:,} seeds, found {text!r}"
        )
    return range(first, last + 1)


def _machines(trace: Trace, text: str | None) -> tuple[Sequence[Machine], Site]:
    """Those of the file, or one with as many processors as were typed, or as the trace says."""
    from crosscast.cluster.jobs import Machine
    from crosscast.cluster.site import NO_SITE, read_site

    count = trace.header.procs
    if text is not None:
        try:
            count = int(text)
        except ValueError:
            return read_site(text)
        if count < 1:
            raise InputError(f"--machines: expected at least 1 processor, found {count}")
    if count is None:
        raise InputError(
            f"--machines is missing: the header of {trace.label} does not say how many processors there are"
        )
    if count < 1:
        raise InputError(f"{trace.label}: MaxProcs: expected at least 1, found {count}")
    return [Machine(trace.label, count)], NO_SITE


def _check_width(jobs: Jobs, machines: Sequence[Machine]) -> None:
    """Refuse jobs that fit on no machine, before anything is simulated."""
    widest = max(machines, key=lambda machine: machine.procs)
    wide = jobs.procs > widest.procs
    if wide.any():
        row = int(wide.argmax())
        raise InputError(
            f"job {jobs.number[row]}: expected at most {widest.procs:,} processors, as {widest.name} has, "
            f"found {jobs.procs[row]:,} (too wide: {wide.sum():,} of {len(jobs):,} jobs): "
            "give more with --machines"
        )


def _placed(
    trace: Trace, found: CleanedJobs, machines: Sequence[Machine], site: Site, file: str | None
) -> Placement | None:
    name, jobs = site.placement, found.jobs
    if len(machines) == 1:
        if name is not None:
            raise InputError(f"{file}: placement: nothing to choose with one machine; leave it out")
        return None
    partitions = site.rules.partitions
    if partitions:
        from crosscast.cluster.jobs import Bound
        from crosscast.cluster.rules import machines_of_partitions

        if name is not None:
            raise InputError(f"{file}: placement: jobs go to the machines of partitions; leave it out")
        names = trace.names_of("partition", found.rows)
        return Bound(machines_of_partitions(partitions, machines, jobs.number, names))
    if name is None:
        from crosscast.cluster.site import PLACEMENTS as KNOWN

        raise InputError(
            f"{file}: placement is missing: expected one of {', '.join(KNOWN)} for {len(machines)} machines"
        )
    import numpy as np

    from crosscast.cluster.placements import PLACEMENTS, Workload

    predicted_s = np.broadcast_to(jobs.estimate_s, (len(jobs), len(machines)))
    no_gpu = np.zeros(len(jobs), dtype=np.bool_)
    workload = Workload(jobs, machines, uses_gpu=no_gpu, predicted_s=predicted_s)
    return PLACEMENTS[name](workload, np.random.default_rng(site.seed))


@dataclass
class _Files:
    """Takes each schedule as it comes, and writes what was asked for at the end."""

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
        """Refuse what cannot be written or would not be used, before a long run rather than after it."""
        self._schedules = schedules
        for path in self.out:
            if schedules > 1:
                raise InputError(f"--out: expected one schedule to write, found {schedules}: ask for one")
            check_file("--out", path)
            if path.suffix not in _WRITERS:
                raise InputError(f"--out: expected a file name with .csv or .swf, found {path.name!r}")
        if self.window is not None:
            if not self.draws:
                raise InputError("--window: nothing to draw without --figures or --html; leave it out")
            self._from_s, self._to_s = _window(self.window)

    @property
    def draws(self) -> bool:
        """Whether figures are wanted."""
        return self.output.figures is not None or self.output.html is not None

    def keep(self, label: str, schedule: Schedule) -> None:
        """Take a schedule, of which only what will be written is kept."""
        if self.draws:
            from crosscast.cluster.metrics import queue_length

            self._queues[label] = queue_length(schedule)
            if self.budget is not None:
                self._keep_power(label, schedule, self.budget)
        if self._schedules == 1 and (self.out or self.draws):
            self._last = label, schedule
        self._origin_s = float(schedule.jobs.submit_s[0])
        self._end_s = max(self._end_s, float(schedule.end_s.max()) - self._origin_s)

    def _keep_power(self, label: str, schedule: Schedule, budget: Budget) -> None:
        import numpy as np

        from crosscast.cluster.metrics import Steps
        from crosscast.cluster.power import power_over_time
        from crosscast.cluster.site import idle_power_w

        found = power_over_time(schedule, budget)
        limit_w = budget.power_w[found.budget]
        # When all is over, machines are idle.
        time_s = np.append(found.time_s, found.end_s)
        watts = np.append(found.power_w, idle_power_w(schedule.machines))
        self._powers[label] = Steps(time_s, np.rint(watts).astype(np.int64))
        if np.isfinite(limit_w).all():
            self._powers["budget"] = Steps(found.time_s, np.rint(limit_w).astype(np.int64))

    def write(self) -> None:
        """Write the schedule."""
        from importlib import import_module

        for path in self.out:
            module, _, name = _WRITERS[path.suffix].partition(":")
            if self._last is not None:
                getattr(import_module(module), name)(self._last[1], path)
                tell(f"wrote {path}")

    def drawn(self, title: str) -> dict[str, Any]:
        """The figures that are wanted; if there is nothing to draw, that is said before a file is written."""
        if not self.draws:
            return {}
        from crosscast.report.schedule_figures import gantt, queue_figure

        to_s = min(self._to_s, self._end_s)
        if self._from_s and self._from_s >= to_s:
            raise InputError(
                f"--window: expected a start before the last end, {to_s:g} s, found {self._from_s:g} s"
            )
        part: dict[str, Any] = {"from_s": self._from_s, "to_s": to_s}
        figures = {}
        if self._last is not None:
            label, schedule = self._last
            about = f"{title}: {len(schedule.jobs):,} jobs, {label}"
            colour: Literal["user", "wait"] = "user" if self.users else "wait"
            try:
                figures["timeline"] = gantt(schedule, about, colour=colour, **part)
            except InputError as error:
                if error.field != "jobs":
                    raise
                warn(str(error))
        about = f"{title}: jobs that wait"
        figures["queue-length"] = queue_figure(self._queues, about, origin_s=self._origin_s, **part)
        if self._powers:
            powers = {"budget": self._powers.pop("budget")} if "budget" in self._powers else {}
            powers |= self._powers
            about = f"{title}: power of all machines"
            figures["power"] = queue_figure(
                powers, about, origin_s=self._origin_s, what="power in watts", **part
            )
        return figures


def _window(text: str) -> tuple[float, float]:
    """Start and end in seconds of ``10d:17d``; either may be left out."""
    from crosscast.units import parse_elapsed

    start, colon, end = text.partition(":")
    if not colon or text == ":":
        raise InputError(f"--window: expected times with a colon between, such as 10d:17d, found {text!r}")
    try:
        from_s = parse_elapsed(start) if start else 0.0
        to_s = parse_elapsed(end) if end else float("inf")
    except InputError as error:
        raise InputError(f"--window: {error}") from error
    if to_s <= from_s:
        raise InputError(f"--window: expected an end after the start, {from_s:g} s, found {to_s:g} s")
    return from_s, to_s
