"""Speed of the cluster simulator, with AccaSim beside it in the same run, and whether the figures are met.

``python -m benchmarks.schedule KTH.swf.gz HPC2N.swf.gz`` takes the two logs of the Parallel Workloads Archive
in the Standard Workload Format. ``--large`` adds up to ten million jobs, a minute or two. AccaSim is run if
the interpreter named by ``--accasim`` (by default this one) has it: ``pip install accasim==1.1.3``. Compiling
is not timed: it is done before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.large_schedule import LARGE, MACHINES, four_placements, long_workload, machines_workload
from benchmarks.peers.accasim import has_accasim, run_accasim
from benchmarks.table import Verdict, text_table
from crosscast.cluster import Jobs, Machine, Schedule, policy_named
from crosscast.cluster.simulate import simulate
from crosscast.cluster.trace_files import read_swf

_TIMES_FASTER = 100.0
_HPC2N_S = 3.0
_FOUR_S = 5.0
_LARGE_BYTES = 2_000_000_000
_LINEAR = 1.5
"""Most that a job of ten million may cost, of one of a million: caches hold less of it."""


def main() -> int:
    """Run the benchmark and return the exit status."""
    options = _options()
    simulate(long_workload(10), [LARGE], progress=lambda text: print(text, file=sys.stderr))
    print(f"load: {os.getloadavg()[0]:.2f}; median of {options.repeat}\n")
    verdicts = [
        *_against_accasim(*_read(options.kth), options.accasim, options.repeat),
        _hpc2n(*_read(options.hpc2n), options.repeat),
        *_four(options.repeat),
    ]
    if options.large:
        verdicts += [*_large(0), *_large(100_000)]
    print(*verdicts, sep="\n")
    return 1 if any(verdict.met is False for verdict in verdicts) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedule", description=__doc__)
    parser.add_argument("kth", type=Path, help="log of KTH's SP2")
    parser.add_argument("hpc2n", type=Path, help="log of HPC2N")
    parser.add_argument("--accasim", default=sys.executable, help="interpreter that has AccaSim (this one)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each simulation (5)")
    parser.add_argument("--large", action="store_true", help="also up to ten million jobs")
    return parser.parse_args()


def _read(path: Path) -> tuple[Jobs, Machine]:
    trace = read_swf(path)
    procs = trace.header.procs
    assert procs is not None, f"{path}: the header says nothing of processors"
    return trace.jobs().jobs.killed_at_estimate(), Machine(path.name.split(".")[0], procs)


def _timed(jobs: Jobs, machine: Machine, policy: str, repeat: int) -> tuple[float, Schedule]:
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        schedule = simulate(jobs, [machine], policy=policy_named(policy))
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), schedule


def _against_accasim(jobs: Jobs, machine: Machine, python: str, repeat: int) -> list[Verdict]:
    """Both policies; the same schedule where the rules are the same, and how much faster."""
    verdicts = []
    found = has_accasim(python)
    rows = []
    for policy in ("fcfs", "easy"):
        seconds, schedule = _timed(jobs, machine, policy, repeat)
        title = f"{policy}: >= {_TIMES_FASTER:g} x AccaSim on {machine.name}"
        rows.append(
            [policy, "crosscast", f"{seconds:.3f}", f"{len(jobs) / seconds:,.0f}", _waits(schedule), ""]
        )
        if not found:
            verdicts.append(Verdict(title, f"not measured, as {python} has no AccaSim", None))
            continue
        peer = run_accasim(jobs, machine.procs, policy, python)
        same = np.mean(peer.start_s == schedule.start_s)
        waits = f"{np.mean(peer.start_s - jobs.submit_s):,.0f}"
        per_s = f"{len(jobs) / peer.simulation_s:,.0f}"
        rows.append([policy, "AccaSim", f"{peer.simulation_s:.1f}", per_s, waits, f"{100 * same:.1f} %"])
        ratio = peer.simulation_s / seconds
        verdicts.append(Verdict(title, f"{ratio:,.0f} x", ratio >= _TIMES_FASTER))
        if policy == "fcfs":
            verdicts.append(
                Verdict("fcfs: every job starts as in AccaSim", f"{100 * same:.1f} %", same == 1.0)
            )
    print(
        text_table(["policy", "simulator", "s", "jobs/s", "mean wait in s", "same start"], rows), end="\n\n"
    )
    return verdicts


def _waits(schedule: Schedule) -> str:
    return f"{schedule.wait_s.mean():,.0f}"


def _hpc2n(jobs: Jobs, machine: Machine, repeat: int) -> Verdict:
    seconds, _ = _timed(jobs, machine, "easy", repeat)
    found = f"{seconds:.2f} s for {len(jobs):,} jobs"
    return Verdict(f"easy: {machine.name} <= {_HPC2N_S:g} s", found, seconds <= _HPC2N_S)


def _four(repeat: int) -> list[Verdict]:
    verdicts = []
    for gap_s, when in ((0.0, "submitted at once"), (1.0, "one a second")):
        jobs = machines_workload(50_000, gap_s)
        placements = four_placements(jobs)
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            for placement in placements.values():
                simulate(jobs, MACHINES, placement=placement)
            seconds.append(time.perf_counter() - start)
        found = statistics.median(seconds)
        title = (
            f"50,000 jobs, {when}, {len(MACHINES)} machines, {len(placements)} placements <= {_FOUR_S:g} s"
        )
        verdicts.append(Verdict(title, f"{found:.2f} s", found <= _FOUR_S))
    return verdicts


def _large(depth: int) -> list[Verdict]:
    counts = (1_000_000, 3_000_000, 10_000_000)
    runs = []
    for count in counts:
        command = [sys.executable, "-m", "benchmarks.large_schedule", str(count), str(depth)]
        runs.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
    costs = [run["seconds"] / count for run, count in zip(runs, counts, strict=True)]
    what = f"up to 10 million jobs, {depth:,} of them at once" if depth else "up to 10 million jobs"
    per_job = " / ".join(f"{1e6 * cost:.2f}" for cost in costs)
    ratio = costs[-1] / costs[0]
    peak = runs[-1]["peak_bytes"]
    return [
        Verdict(
            f"{what}: a job costs <= {_LINEAR:g} x one of a million",
            f"{ratio:.2f} x ({per_job} µs a job of 1 / 3 / 10 million)",
            ratio <= _LINEAR,
        ),
        Verdict(f"{what}: <= {_LARGE_BYTES / 1e9:g} GB", f"{peak / 1e9:.2f} GB", peak <= _LARGE_BYTES),
    ]


if __name__ == "__main__":
    sys.exit(main())
