"""``crosscast simulate policies``: scheduling policies on a trace of jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from crosscast.arrays import Integers
from crosscast.cli.simulate import SimulatePoliciesOptions
from crosscast.cluster.jobs import (
    POLICIES,
    Bound,
    Jobs,
    Machine,
    Placement,
    Policy,
    policy_named,
)
from crosscast.cluster.metrics import (
    OBJECTIVES,
    PolicyDifference,
    QueuedJobs,
    compare_policies,
    differences,
    ranked,
    trace_facts,
)
from crosscast.cluster.power import (
    cheapest_release_s,
    configure,
    kinds_of_jobs,
    read_forecasts,
    read_power_options,
)
from crosscast.cluster.rules import Rules, machines_of_partitions, rules_of
from crosscast.cluster.sacct import read_trace
from crosscast.cluster.sharing import read_slowdowns, sharing_for
from crosscast.cluster.simulate import load_simulator
from crosscast.cluster.site import NO_SITE, Budget, Shift, Site, read_site
from crosscast.cluster.site import PLACEMENTS as KNOWN
from crosscast.cluster.swf import CleanedJobs, JobTrace
from crosscast.commands.output import check_output, show
from crosscast.commands.schedule_files import ScheduleFiles
from crosscast.commands.status import LabelStatus, say
from crosscast.errors import InputError
from crosscast.evaluation.executor import spreading
from crosscast.report.schedule import policies_report

_ESTIMATES = ("requested", "exact", "predicted")

_SEARCHED = ("fcfs", "shortest", "smallest-area")
"""Orders that are searched, where none are named."""


def policies(trace: Path, /, *, options: SimulatePoliciesOptions) -> None:
    """Run ``crosscast simulate policies``."""
    policy, priority, backfill = options.policy, options.priority, options.backfill
    if options.search is not None:
        policy, priority, backfill = _grid(options.search, policy, priority, backfill)
    chosen = _policies(policy or ["easy"], priority, backfill)
    files = ScheduleFiles(options.out or [], options.output, options.window, users=options.users)
    files.check(len(chosen))
    check_output(options.output)

    read = read_trace(trace)
    clusters, site = _machines(read, options.machines)
    files.budget = site.budget
    for name in options.estimates:
        if name not in _ESTIMATES:
            raise InputError.of(
                where="--estimates", expected=f"some of {', '.join(_ESTIMATES)}", found=repr(name)
            )
    overruns: Literal["kill", "header"] = "kill" if options.enforce_walltime else "header"
    cleaned = {
        name: read.jobs("exact" if name == "exact" else "requested", overruns) for name in options.estimates
    }
    found = cleaned[options.estimates[0]]
    _check_width(found.jobs, clusters)
    if options.users and found.jobs.user is None:
        raise InputError.of(where="--users", expected="a trace with users", found=f"none in {trace}")
    placed = _placed(read, found, clusters, site, options.machines)
    facts, label = trace_facts(read, found, clusters, " and ".join(options.estimates)), read.label
    runs = []
    for name in options.estimates:
        some, notes = _runs(
            chosen, read, cleaned[name], clusters, placed, site, predicted=name == "predicted"
        )
        runs += [replace(run, exact=name == "exact" and len(options.estimates) > 1) for run in some]
    files.check(len(runs))
    facts["notes"] += notes
    # Of ten million jobs, the columns that are not simulated are most of the memory.
    del read
    load_simulator(len(found.jobs), chosen, site, runs[0].rules, say)
    with spreading(options.executor), LabelStatus() as status:
        results = compare_policies(
            runs,
            clusters,
            placed,
            site=site,
            progress=status if options.executor in (None, "local") else None,
            keep=files.keep,
        )
    if options.search is not None:
        results = ranked(results, options.search)
        facts["best"] = {"objective": options.search, "policy": results[0].label}
    drawn = files.drawn(label)
    against = [differences(each, results[0], site.seed) for each in results]

    def listed() -> dict[str, object]:
        found = [
            result.to_dict(users=options.users) | _against(results[0].label, each)
            for result, each in zip(results, against, strict=True)
        ]
        return {"results": found, "trace": facts}

    files.write()
    show(
        options.output,
        listed,
        lambda: policies_report(results, facts, against, users=options.users),
        lambda: drawn,
    )


def _grid(
    search: str,
    policies: Sequence[str] | None,
    priorities: Sequence[str] | None,
    backfills: Sequence[str] | None,
) -> tuple[list[str], list[str], list[str] | None]:
    """Policies and orders that are searched, where none are named."""
    if search not in OBJECTIVES:
        raise InputError.of(where="--search", expected=f"one of {', '.join(OBJECTIVES)}", found=repr(search))
    chosen = list(policies or POLICIES)
    passes = None if "easy" not in chosen else list(backfills or _SEARCHED)
    return chosen, list(priorities or _SEARCHED), passes


def _against(label: str, found: tuple[PolicyDifference, PolicyDifference] | None) -> dict[str, object]:
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
    trace: JobTrace,
    found: CleanedJobs,
    machines: Sequence[Machine],
    placed: Placement | None,
    site: Site,
    *,
    predicted: bool,
) -> tuple[list[QueuedJobs], list[str]]:
    """All policies with all ways to configure jobs and to share, where there are any, and notes on them."""
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
            raise InputError.of(
                where="--priority", field="multifactor", expected="a TOML file with [priority]", found="none"
            )
    # Weights that no policy asks for are left out.
    ruled = {each: rules if each.queue == "multifactor" else replace(rules, priority=None) for each in chosen}
    runs = [QueuedJobs(each, found.jobs, rules=ruled[each], predicted=predicted) for each in chosen]
    if site.options is not None and site.budget is not None:
        if placed is not None and not isinstance(placed, Bound):
            raise InputError.of(
                where="placement", expected="round-robin or random under a budget", found="completion"
            )
        machine = np.zeros(count, np.int64) if placed is None else placed.machine
        options = read_power_options(site.options)
        kind, drawn = kinds_of_jobs(options.kinds, named, count, site.seed)
        notes += [f"{drawn:,} of a kind without configurations: that of each is drawn"] if drawn else []
        runs = []
        for way in site.power_policies:
            own = configure(options, kind, found.jobs, machines, machine, site.budget, way)
            runs += [
                QueuedJobs(each, own.planned, way, own.power_w, rules=ruled[each], predicted=predicted)
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


def _shifted(run: QueuedJobs, machine: Integers, budget: Budget, by: Shift, limit_s: float) -> QueuedJobs:
    """Jobs that are held back until when power is cheap."""
    if by == "never":
        return replace(run, shift=by)
    release_s = cheapest_release_s(run.jobs, machine, budget, by, limit_s)
    return replace(run, rules=replace(run.rules, release_s=release_s), shift=by)


def _rules(
    trace: JobTrace, found: CleanedJobs, machines: Sequence[Machine], site: Site, *, predicted: bool
) -> Rules:
    """What the site decides of the jobs of a trace."""
    names = (trace.names_of(column, found.rows) for column in ("group", "queue", "partition"))
    rules = rules_of(site.rules, found.jobs, machines, *names)
    if not predicted:
        return rules
    forecasts = site.rules.forecasts
    if forecasts is not None:
        return replace(rules, forecast_s=read_forecasts(forecasts, found.jobs.number))
    if found.jobs.user is None:
        raise InputError.of(
            where="--estimates",
            field="predicted",
            expected="a trace with users, or forecasts under [walltime] of the TOML file",
            found="neither",
        )
    return replace(rules, forecast_s=np.full(len(found.jobs), np.nan))


def _machines(trace: JobTrace, text: str | None) -> tuple[Sequence[Machine], Site]:
    """Those of the file, or one with as many processors as were typed, or as the trace says."""
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
    """Refuse jobs that fit on no machine, before anything is simulated."""
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


def _placed(
    trace: JobTrace, found: CleanedJobs, machines: Sequence[Machine], site: Site, file: str | None
) -> Placement | None:
    name, jobs = site.placement, found.jobs
    if len(machines) == 1:
        if name is not None:
            raise InputError(f"{file}: placement: nothing to choose with one machine; leave it out")
        return None
    partitions = site.rules.partitions
    if partitions:
        if name is not None:
            raise InputError(f"{file}: placement: jobs go to the machines of partitions; leave it out")
        names = trace.names_of("partition", found.rows)
        return Bound(machines_of_partitions(partitions, machines, jobs.number, names))
    if name is None:
        raise InputError(
            f"{file}: placement is missing: expected one of {', '.join(KNOWN)} for {len(machines)} machines"
        )

    # Imported here: placements of types of jobs bring the models whose forecasts these are.
    from crosscast.cluster.placements import PLACEMENTS, Workload

    predicted_s = np.broadcast_to(jobs.estimate_s, (len(jobs), len(machines)))
    no_gpu = np.zeros(len(jobs), dtype=np.bool_)
    workload = Workload(jobs, machines, uses_gpu=no_gpu, predicted_s=predicted_s)
    return PLACEMENTS[name](workload, np.random.default_rng(site.seed))
