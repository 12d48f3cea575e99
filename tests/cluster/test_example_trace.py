"""The example of a trace says that it is made up, and keeps jobs waiting."""

from pathlib import Path

import pytest

from crosscast.cluster.jobs import Machine
from crosscast.cluster.simulate import simulate
from crosscast.cluster.swf import read_swf

EXAMPLE = Path(__file__).parents[2] / "examples" / "made-cluster.swf"


def test_the_example_is_synthetic_and_has_jobs_that_wait() -> None:
    if not EXAMPLE.exists():
        pytest.skip("no checkout")
    trace = read_swf(EXAMPLE)
    cleaned = trace.jobs()
    assert "SYNTHETIC" in trace.header.fields["Note"]
    assert len(trace) == len(cleaned.jobs) == 200
    assert trace.header.procs is not None
    schedule = simulate(cleaned.jobs, [Machine("made up", trace.header.procs)])
    assert (schedule.wait_s > 0).mean() > 0.5
