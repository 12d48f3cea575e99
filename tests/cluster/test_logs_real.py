"""Real logs: parts equal to a plain simulator's, and a whole one to another simulator's.

They lie beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import Plain

from crosscast.cluster.jobs import Bound, Jobs, Machine, Policy
from crosscast.cluster.simulate import simulate
from crosscast.cluster.swf import read_swf
from support.shared import shared_data

KTH = ("KTH-SP2-1996-2.1-cln", 100)
HPC2N = ("HPC2N-2002-2.1-cln", 240)

KTH_WAITED_S = 6_129_704_263
"""Seconds that all jobs together wait in AccaSim 1.1.3, by FirstInFirstOut and FirstFit on 100 nodes of one
core, as ``python -m benchmarks.schedule`` runs it."""


def jobs_of(name: str) -> Jobs:
    return read_swf(shared_data(f"swf/{name}.swf.gz")).jobs().jobs.killed_at_estimate()


@pytest.mark.parametrize("policy", [Policy(), Policy("fcfs", "shortest"), Policy("widest", "smallest-area")])
@pytest.mark.parametrize("log", [KTH, HPC2N], ids=["kth", "hpc2n"])
def test_parts_of_logs_equal_a_plain_simulators(log: tuple[str, int], policy: Policy) -> None:
    name, procs = log
    whole = jobs_of(name)
    # On a third of the machine there is always a queue.
    machines = [Machine("one", procs // 3)]
    narrow = np.flatnonzero(whole.procs <= procs // 3)
    for first in (0, 5_000, 20_000):
        rows = narrow[first : first + 120]
        jobs = Jobs(
            whole.number[rows],
            whole.submit_s[rows],
            whole.procs[rows],
            whole.run_s[rows],
            whole.estimate_s[rows],
        )
        plain = Plain(jobs, machines, policy, Bound(np.zeros(len(jobs), np.int64))).simulate()
        schedule = simulate(jobs, machines, policy=policy)
        assert schedule.start_s.tolist() == [plain.runs[job].start for job in range(len(jobs))]


def test_first_come_first_served_a_whole_log_is_as_in_accasim() -> None:
    name, procs = KTH
    jobs = jobs_of(name)
    schedule = simulate(jobs, [Machine("one", procs)], policy=Policy(backfill=None))
    assert len(jobs) == 27_992
    assert schedule.wait_s.sum() == KTH_WAITED_S
