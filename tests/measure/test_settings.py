"""How long to measure: the published defaults, and what is refused."""

from typing import Any

import pytest

from crosscast.errors import InputError
from crosscast.measure.subjects import Settings


def test_the_defaults_are_those_of_the_published_study() -> None:
    assert (Settings().min_runs, Settings().min_time_s) == (50, 2.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_runs": 0}, "min_runs: expected at least 1, found 0"),
        ({"warmups": -1}, "warmups: expected at least 0, found -1"),
        ({"min_time_s": -1.0}, "min_time_s: expected a number of seconds, found -1"),
        ({"min_time_s": float("nan")}, "min_time_s: expected a number of seconds, found nan"),
        ({"timeout_s": 0.0}, "timeout_s: expected a number of seconds, found 0"),
        ({"timeout_s": float("inf")}, "timeout_s: expected a number of seconds, found inf"),
        ({"min_time_s": 9.0, "timeout_s": 8.0}, "expected less than the time limit of 8 s, found 9"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**given)
