"""Schedules that tests make up without the simulator."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from crosscast.cluster.jobs import Jobs, Machine, Schedule

NAMES = ("ada", "bob", "cyd")


def schedule_of(
    rows: Sequence[tuple[float, float, float, int]],
    *,
    machine: Sequence[int] | None = None,
    sizes: Sequence[int] = (4,),
    user: Sequence[int] | None = None,
) -> Schedule:
    """A schedule of jobs (submitted, started, ended, processors), in the order of their submission."""
    submit_s, start_s, end_s, procs = (
        np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)
    )
    run_s = (end_s - start_s)[:, None]
    jobs = Jobs(
        np.arange(1, len(rows) + 1),
        submit_s,
        procs.astype(np.int64),
        run_s,
        run_s,
        None if user is None else np.array(user),
        () if user is None else NAMES,
    )
    machines = [Machine(f"m{place}", size) for place, size in enumerate(sizes)]
    places = np.zeros(len(rows), dtype=np.int64) if machine is None else np.array(machine)
    return Schedule(jobs, machines, places, start_s, end_s, np.full(len(rows), np.nan))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """First come, first served on one to three machines, by the second: with ties, and jobs of 0 s."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    rows, machine, submit_s = [], [], 0.0
    running: list[list[tuple[float, int]]] = [[] for _ in sizes]
    earliest = [0.0] * len(sizes)
    for _ in range(draw(st.integers(1, 15))):
        submit_s += draw(st.integers(0, 4))
        place = draw(st.integers(0, len(sizes) - 1))
        procs = draw(st.integers(1, sizes[place]))
        start_s = max(submit_s, earliest[place])
        while sum(used for end_s, used in running[place] if end_s > start_s) + procs > sizes[place]:
            start_s = min(end_s for end_s, _ in running[place] if end_s > start_s)
        end_s = start_s + draw(st.sampled_from([0.0, 1.0, 2.0, 9.0, 30.0]))
        running[place].append((end_s, procs))
        earliest[place] = start_s
        rows.append((submit_s, start_s, end_s, procs))
        machine.append(place)
    user = draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    return schedule_of(rows, machine=machine, sizes=sizes, user=user)
