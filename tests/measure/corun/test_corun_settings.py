"""How long to measure bags, and what is refused."""

from typing import Any

import pytest

from crosscast.errors import InputError
from crosscast.measure.corun.crew import Work
from crosscast.measure.corun.session import CoRunSettings
from crosscast.measure.subjects import LaunchFile


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"jobs": 0}, "jobs: expected at least 1, found 0"),
        ({"rounds": 0}, "rounds: expected at least 1, found 0"),
        ({"warmups": -1}, "warmups: expected at least 0, found -1"),
        ({"threads": 0}, "threads: expected at least 1, found 0"),
        ({"round_s": -1.0}, "round_s: expected a number of seconds, found -1"),
        ({"window_s": float("nan")}, "window_s: expected a number of seconds, found nan"),
        ({"timeout_s": 0.0}, "timeout_s: expected a number of seconds, found 0"),
        ({"window_s": 9.0, "timeout_s": 8.0}, "window_s: expected less than the time limit of 8 s, found 9"),
        ({"round_s": 8.0, "timeout_s": 8.0}, "round_s: expected less than the time limit of 8 s, found 8"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CoRunSettings(**given)


def test_a_job_has_a_run_at_least() -> None:
    with pytest.raises(InputError, match="runs: expected at least 1, found 0"):
        Work(LaunchFile("launches.toml"), 0)
