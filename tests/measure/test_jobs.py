"""Jobs as text."""

import pytest

from crosscast.measure.processes import CharacterizeJob, DescribeJob, Job, SessionJob, read_job, render_job
from crosscast.measure.subjects import LaunchFile, Settings, SuiteProblem

PROBLEM = SuiteProblem("crc", "tiny", {"bytes": 31740}, 7)


@pytest.mark.parametrize(
    "job",
    [
        SessionJob(PROBLEM, "pocl:0", Settings(3, 0.1, 0, 9.5, "replay:a b.csv", counters=False), 2),
        SessionJob(LaunchFile("böse.toml"), "pocl:0/1", Settings()),
        DescribeJob("nvidia:0"),
        CharacterizeJob(PROBLEM, 3.5),
    ],
)
def test_a_job_comes_out_as_it_went_in(job: Job) -> None:
    assert read_job(render_job(job)) == job
    assert job.label
