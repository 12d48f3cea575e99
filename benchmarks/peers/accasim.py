"""AccaSim 1.1.3 (Galleguillos, Kiziltan and Netti 2018) in a process of its own."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.setup_peers import ROOT
from crosscast.arrays import Reals
from crosscast.cluster import Jobs


@dataclass(frozen=True)
class AccaSimRan:
    """Seconds that AccaSim took, without reading its modules, and when it started each job."""

    simulation_s: float
    start_s: Reals


def has_accasim(python: str) -> bool:
    """Whether an interpreter has AccaSim."""
    find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('accasim') is None)"
    return subprocess.run([python, "-c", find], check=False).returncode == 0


def run_accasim(jobs: Jobs, procs: int, policy: str, python: str) -> AccaSimRan:
    """Simulate jobs on one machine under the policy ``fcfs`` or ``easy``.

    The first job is submitted at 1 s: AccaSim takes no time for "not yet".
    """
    with tempfile.TemporaryDirectory(prefix="crosscast-accasim-") as folder:
        trace = Path(folder) / "trace.swf"
        first_s = jobs.submit_s[0] - 1
        with trace.open("w") as file:
            for row in range(len(jobs)):
                times = [jobs.submit_s[row] - first_s, jobs.run_s[row, 0], jobs.estimate_s[row, 0]]
                submit_s, run_s, estimate_s = (int(time) for time in times)
                width = jobs.procs[row]
                file.write(
                    f"{row + 1} {submit_s} -1 {run_s} {width} -1 -1 {width} {estimate_s} -1"
                    + " 1" * 6
                    + " -1 -1\n"
                )
        worker = [python, "-m", "benchmarks.peers.accasim_worker", str(trace), str(procs), policy, folder]
        done = subprocess.run(worker, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    answer = json.loads(done.stdout)
    start_s = np.full(len(jobs), np.nan)
    for job, time in answer["start_s"].items():
        start_s[int(job) - 1] = time + first_s
    return AccaSimRan(answer["seconds"], start_s)
