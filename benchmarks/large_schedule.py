"""Simulates one long workload in a process of its own, for its time and memory.

``python -m benchmarks.large_schedule JOBS DEPTH`` prints a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

from benchmarks.made_workloads import LARGE, long_workload
from crosscast.cluster.simulate import simulate


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_schedule", description=__doc__)
    parser.add_argument("jobs", type=int)
    parser.add_argument("depth", type=int)
    options = parser.parse_args()
    simulate(long_workload(10), [LARGE])
    jobs = long_workload(options.jobs, options.depth)
    # Time of this process: over so long a run, others would be counted too.
    start = time.process_time()
    schedule = simulate(jobs, [LARGE])
    seconds = time.process_time() - start
    assert (schedule.start_s >= jobs.submit_s).all()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
