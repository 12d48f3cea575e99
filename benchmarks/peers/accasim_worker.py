"""Runs AccaSim 1.1.3 on a trace; the other end of `benchmarks.peers.accasim`.

AccaSim does not import on Python 3.10 and later: a name that it takes from `collections` is given back to it
first. The arguments are a trace, the processors, a policy and a folder for results; it
prints a line of JSON: seconds, and the start of each job by number.
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import importlib
import json
import sys
import time
from pathlib import Path

POLICIES = {"fcfs": "FirstInFirstOut", "easy": "EASYBackfilling"}


def main() -> None:
    trace, procs, policy, folder = sys.argv[1:]
    collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]
    # Type checkers need not have it.
    schedulers, allocators, simulators = (
        importlib.import_module(f"accasim.base.{name}_class")
        for name in ("scheduler", "allocator", "simulator")
    )

    system = Path(folder) / "system.json"
    # A node a processor, as in the log.
    system.write_text(
        json.dumps(
            {
                "groups": {"g0": {"core": 1}},
                "resources": {"g0": int(procs)},
                "equivalence": {"processor": {"core": 1}},
            }
        )
    )
    with contextlib.redirect_stdout(sys.stderr):
        simulator = simulators.Simulator(
            trace,
            str(system),
            getattr(schedulers, POLICIES[policy])(allocators.FirstFit()),
            statistics_output=False,
            show_statistics=False,
            RESULTS_FOLDER_PATH=folder,
            SCHEDULE_OUTPUT={
                "format": "{job_id};{start_time}",
                "attributes": {"job_id": ("id", "str"), "start_time": ("start_time", "int")},
            },
        )
        start = time.perf_counter()
        simulator.start_simulation()
        seconds = time.perf_counter() - start
    (schedule,) = Path(folder).glob("sched*")
    rows = [line.split(";") for line in schedule.read_text().splitlines()]
    print(json.dumps({"seconds": seconds, "start_s": {int(job): float(text) for job, text in rows}}))


if __name__ == "__main__":
    main()
