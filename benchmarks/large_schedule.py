"""Workloads of any length, from a seed; simulates a long one in a process of its own, for time and memory.

``python -m benchmarks.large_schedule JOBS DEPTH`` prints a line of JSON: seconds of the process, jobs a
second and peak memory. ``--policy conservative`` gives each job a reservation; ``--site`` adds a budget of
power that changes each hour and jobs that share; ``--rules`` adds priorities of 20 accounts, a partition with
limits, and most jobs of a user. SDSC Blue's log has 232,540 jobs: a workload as long stands for it, which
keeps nine tenths of the machine busy (DEPTH 0).
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import replace

import numpy as np

from crosscast.cluster import (
    POLICIES,
    Bound,
    Completion,
    Jobs,
    Machine,
    Placement,
    Preferred,
    policy_named,
)
from crosscast.cluster.rules import NO_RULES, Priority, Rules, Sharing
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import NO_SITE, Budget, Site

LARGE = Machine("large", 1024)
MACHINES = (
    Machine("quartz", 3018),
    Machine("ruby", 1512),
    Machine("lassen", 795, has_gpu=True),
    Machine("corona", 121, has_gpu=True),
)
"""The machines of Nichols et al. 2024, with nodes about as the real ones have."""

_USERS = 200
_ACCOUNTS = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_schedule", description=__doc__)
    parser.add_argument("jobs", type=int)
    parser.add_argument("depth", type=int)
    parser.add_argument("--policy", choices=POLICIES, default="easy")
    parser.add_argument("--site", action="store_true", help="with a budget and sharing")
    parser.add_argument("--rules", action="store_true", help="with priorities and limits")
    options = parser.parse_args()

    def simulated(jobs: Jobs) -> None:
        machine = replace(LARGE, idle_w=40.0, active_w=140.0)
        rules = made_rules(jobs) if options.rules else NO_RULES
        queue = "multifactor" if options.rules else "fcfs"
        schedule = simulate(
            jobs,
            [machine],
            policy=policy_named(options.policy, queue),
            site=made_site(jobs) if options.site else NO_SITE,
            sharing=made_sharing(jobs) if options.site else None,
            rules=rules,
        )
        assert (schedule.start_s >= jobs.submit_s).all()

    # Compiled, whatever is kept from before.
    simulated(long_workload(2_000))
    jobs = long_workload(options.jobs, options.depth)
    # Time of this process: over so long a run, others would be counted too.
    start = time.process_time()
    simulated(jobs)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "jobs_per_s": round(options.jobs / seconds), "peak_bytes": peak}))


def made_site(jobs: Jobs) -> Site:
    """A budget for nine tenths of a full machine and more, another one each hour."""
    hours = max(1, int((jobs.submit_s[-1] - jobs.submit_s[0]) // 3600))
    share = np.random.default_rng(3).uniform(0.9, 1.0, hours)
    share[-1] = 1.0
    start_s = np.array(np.arange(hours) * 3600.0, np.float64)
    power_w = np.array(share * LARGE.procs * 140.0, np.float64)
    return Site(budget=Budget(start_s, power_w))


def made_sharing(jobs: Jobs) -> Sharing:
    """Pairs of twelve kinds, half of which share with a gain."""
    rng = np.random.default_rng(4)
    slowdown = rng.uniform(1.0, 2.2, (12, 12))
    return Sharing(rng.integers(12, size=len(jobs)), slowdown, slowdown, least_gain=0.3)


def made_rules(jobs: Jobs) -> Rules:
    """Priorities by age, size and share; half of the jobs in a partition."""
    rng = np.random.default_rng(5)
    count = len(jobs)
    return Rules(
        priority=Priority(
            1000 * jobs.procs / LARGE.procs,
            rng.integers(_ACCOUNTS, size=count),
            np.full(_ACCOUNTS, 1 / _ACCOUNTS),
            age=1000.0,
            fair_share=10_000.0,
        ),
        partition=rng.integers(-1, 1, count),
        partition_procs=np.array([LARGE.procs * 3 // 4]),
        group=rng.integers(-1, _USERS, count),
        most=np.full(_USERS, 20),
    )


def long_workload(count: int, depth: int = 0, seed: int = 1) -> Jobs:
    """Jobs for `LARGE`, which they keep busy for 90 % of the time; or all of it, behind a queue.

    `depth` are submitted at once at the beginning. Those after them come as fast as they are worked off, so
    that the queue stays about as long. Widths are powers of two up to 256, and some odd ones; times are
    log-normal, with a median of 400 s; estimates whole multiples of the times.
    """
    rng = np.random.default_rng(seed)
    procs = 2 ** rng.integers(0, 9, count)
    procs += np.where(rng.random(count) < 0.3, rng.integers(0, 5, count), 0)
    run_s = np.ceil(rng.lognormal(6, 1.5, count))
    gap_s = (procs * run_s).mean() / LARGE.procs * (1.0 if depth else 1 / 0.9)
    submit_s = np.zeros(count)
    submit_s[depth:] = np.cumsum(np.floor(rng.exponential(gap_s, count - depth)))
    estimate_s = run_s * np.ceil(rng.exponential(2, count) + 0.01)
    return Jobs(np.arange(count) + 1, submit_s, procs, run_s[:, None], estimate_s[:, None])


def machines_workload(count: int, gap_s: float, seed: int = 1) -> Jobs:
    """Jobs for `MACHINES`, submitted every `gap_s` seconds on average; all at once if it is 0."""
    rng = np.random.default_rng(seed)
    procs = np.minimum(2 ** rng.integers(0, 7, count), MACHINES[-1].procs)
    run_s = rng.lognormal(5, 1.5, (count, 1)) * rng.lognormal(0, 1, (count, len(MACHINES)))
    submit_s = np.cumsum(rng.exponential(gap_s, count))
    return Jobs(np.arange(count) + 1, submit_s, procs, run_s, run_s)


def four_placements(jobs: Jobs, seed: int = 2) -> dict[str, Placement]:
    """Machines in turn, at random, by somewhat wrong predictions of times, and by when jobs should end."""
    rng = np.random.default_rng(seed)
    predicted_s = jobs.run_s * rng.lognormal(0, 0.1, jobs.run_s.shape)
    return {
        "round-robin": Bound(np.arange(len(jobs)) % len(MACHINES)),
        "random": Bound(rng.integers(0, len(MACHINES), len(jobs))),
        "model": Preferred(np.argsort(predicted_s, axis=1)),
        "completion": Completion(predicted_s),
    }


if __name__ == "__main__":
    main()
