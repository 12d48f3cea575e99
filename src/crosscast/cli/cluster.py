"""The commands for clusters: ``simulate``, ``serve`` and ``hooks``."""

from __future__ import annotations

from dataclasses import KW_ONLY
from pathlib import Path
from typing import Annotated, Literal

import cyclopts
from cyclopts import Parameter

from crosscast.cli import COMMANDS
from crosscast.cli.options import FIGURES, Executor, FigureOutput, Flag, Names, Paths, Texts, Whole, command

simulate_app = cyclopts.App(name="simulate", help=COMMANDS["simulate"][1])
Out = Annotated[
    Paths,
    Parameter(
        help="File for the schedule, if it is one: `.csv` with job, submit, start, end, machine and procs, "
        "or `.swf`, a trace; may be given twice."
    ),
]


@command("simulate.policies", simulate_app)
class SimulatePolicies:
    """Compare scheduling policies on a trace of a cluster (docs/scheduling.md).

    Several policies, priorities and orders of backfilling, with commas between, are compared in all
    combinations: `--policy fcfs,easy`.

    Parameters
    ----------
    output.figures
        Folder for figures: jobs that wait over time, power against the budget where there is one, and the
        timeline of the schedule, if it is one.
    """

    trace: Path
    """Jobs in the Standard Workload Format, or what `sacct --parsable2` printed, plain or compressed with
    gzip."""
    _: KW_ONLY

    policy: Annotated[Names | None, Parameter(show_default=lambda _: "easy")] = None
    """`easy`: jobs may start before the head of the queue if that does not delay it (EASY backfilling);
    `conservative`: each job has a reservation, which no other delays; `fcfs`: none may."""
    priority: Names | None = None
    """Order of the queue: fcfs, lcfs, shortest, longest, narrowest, widest, smallest-area or largest-area, by
    estimated time and processors, or multifactor, by the TOML file's [priority]; by default fcfs."""
    backfill: Names | None = None
    """Order in which jobs are tried for backfilling, one of the same; by default fcfs."""
    search: str | None = None
    """Find the best of all policies, and of some orders where none are given, by makespan, slowdown,
    mean-wait, wait-p95, fairness, energy, cost or carbon, and list it first."""
    estimates: Annotated[Names, Parameter(show_default=False)] = ("requested",)
    """Run times that the scheduler assumes: `requested` by users (the default), `exact`, or `predicted` by
    forecasts of the TOML file and the last two jobs of the same user."""
    machines: str | None = None
    """TOML file with the machines and their site: how jobs are placed where there are several,
    reservations, a budget of power, and who may share processors (docs/traces.md); or the number of
    processors of a single machine; by default the number in the trace's header."""
    enforce_walltime: Flag = False
    """End jobs when their requested time is over, whatever the header says. Where configurations or sharing
    slow jobs down, their limits are extended as much, and jobs over their request are counted."""
    users: Flag = False
    """Also list each user's jobs and waits; the timeline's colours are users instead of waits."""
    out: Out = ()
    window: str | None = None
    """Part of the time that figures show, since the first submission, such as `10d:17d` or `36h:`; by default
    all."""
    executor: Executor = None
    output: FigureOutput = FIGURES


@command("placements.placements", simulate_app)
class SimulatePlacements:
    """Compare placements of jobs whose times on several machines are known (docs/scheduling.md).

    The experiment of section VII of Nichols et al. 2024.

    Parameters
    ----------
    output.figures
        Folder for figures: makespans and slowdowns, jobs that wait over time (with the first seed), and the
        timeline of the schedule, if it is one.
    """

    jobs_file: Annotated[Path, Parameter(name="JOBS")]
    """Types of jobs with measured and predicted times (Parquet or CSV, docs/traces.md), or a trace of
    Gavel."""
    speeds: Path | None = None
    """CSV file with the speeds of a trace of Gavel."""
    _: KW_ONLY

    machines: Path
    """TOML file with the machines."""
    placement: Names | None = None
    """How jobs are assigned to machines, separated by commas: round-robin, random, user, model, exact,
    model-near, exact-near, completion, exact-completion; by default all for which the file has data."""
    jobs: Whole | None = None
    """Number of jobs drawn, with replacement; by default 50,000, or the rows themselves where the file says
    when they are submitted."""
    seed: str = "0"
    """Random seed, or the first and the last one, such as `1:10`, to draw a workload with each."""
    arrivals: str | None = None
    """Mean seconds between submissions, a Poisson process, such as `30`; or the arriving work as a share of
    the machines' capacity, such as `90%`. By default all jobs are submitted at once."""
    estimates: Literal["exact", "predicted"] = "exact"
    """Run times that the scheduler assumes: exact ones, or those that a model predicted."""
    policy: Literal["easy", "fcfs"] = "easy"
    """`easy`: jobs may start before the head of the queue if that does not delay it (EASY backfilling);
    `fcfs`: none may."""
    priority: str | None = None
    """Order of the queue: fcfs, lcfs, shortest, longest, narrowest, widest, smallest-area or largest-area."""
    backfill: str | None = None
    """Order in which jobs are tried for backfilling, one of the same."""
    out: Out = ()
    executor: Executor = None
    output: FigureOutput = FIGURES


hooks_app = cyclopts.App(name="hooks", help=COMMANDS["hooks"][1])


@command("service.serve")
class Serve:
    """Answer forecasts, choices and co-location plans over a Unix socket or TCP (docs/service.md).

    Answers have the numbers of `crosscast predict`, `choose` and `colocate`. A model that is replaced in its
    folder is read again; SIGHUP reads everything again, and SIGTERM ends the service when it has answered.
    """

    _: KW_ONLY
    model: Texts
    """Folder of a model, or a name that `crosscast models` lists; may be repeated."""
    profiles: Texts = ("bundled",)
    """Profiles that requests may name: a dataset, a file of profiles or launches, a profile of
    `crosscast corun profile`, or a folder of these; may be repeated."""
    samples: Texts = ()
    """Sample runs of kernels that requests may name, as `crosscast choose configuration` takes them; may be
    repeated."""
    socket: Path | None = None
    """Unix socket, which its owner and group may use."""
    bind: str | None = None
    """Address such as `127.0.0.1:8750`, too or instead; needs `--token-file`."""
    token_file: Path | None = None
    """Tokens of those who may ask over TCP, a line each."""


@command("service.install", hooks_app)
class Install:
    """Write files for an operator to review (docs/service.md, docs/slurm.md).

    Nothing that differs is replaced, but the code in the folder `crosscast`, which is not yours to change.
    """

    kind: Literal["slurm", "systemd", "grafana"]
    """`slurm`: hooks for job submission, and prolog and epilog that set power caps. `systemd`: units of the
    service. `grafana`: a dashboard."""
    _: KW_ONLY
    folder: Annotated[Path, Parameter(name="--dir")]
    """Where to write them, such as `/etc/slurm`, `/etc/systemd/system`."""
    prefix: Path | None = None
    """Folder that stands for `/`, to stage them for a review or a package: they are written below it."""
    dry_run: Flag = False
    """Write nothing; print what would be done, and the files."""


@command("service.remove", hooks_app)
class Remove(Install):
    """Remove the files that `crosscast hooks install` wrote; what you have changed stays."""

    kind: Literal["slurm", "systemd", "grafana"]
    """`slurm`, `systemd` or `grafana`."""
    _: KW_ONLY
    folder: Annotated[Path, Parameter(name="--dir")]
    """Where they are."""
    prefix: Path | None = None
    """Folder that stands for `/`, if they are staged."""
    dry_run: Flag = False
    """Remove nothing; print what would be done."""
