"""Workloads of any length for the simulator, from a seed."""

from __future__ import annotations

import numpy as np

from crosscast.cluster import Bound, Completion, Jobs, Machine, Placement, Preferred

LARGE = Machine("large", 1024)
MACHINES = (
    Machine("quartz", 3018),
    Machine("ruby", 1512),
    Machine("lassen", 795, has_gpu=True),
    Machine("corona", 121, has_gpu=True),
)
"""The machines of Nichols et al. 2024, with nodes about as the real ones have."""


def long_workload(count: int, depth: int = 0, seed: int = 1) -> Jobs:
    """Jobs for `LARGE`, which they keep busy for 90 % of the time; or all of it, behind a queue.

    Parameters
    ----------
    count
        How many.
    depth
        How many are submitted at once at the beginning. Those after them come as fast as they are worked off,
        so that the queue stays about as long.
    seed
        Seed of the widths (powers of two up to 256, and some odd ones), times (log-normal, median 400 s) and
        estimates (whole multiples of the times).
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
