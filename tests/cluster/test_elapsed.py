"""Times that people type are read as they are meant, or refused."""

import pytest

from crosscast.cluster.elapsed import elapsed_unit, format_elapsed, parse_elapsed
from crosscast.errors import InputError


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90min", 5400), (" 1.5 h ", 5400), ("10d", 864_000), (".5s", 0.5)]
)
def test_a_time_is_read_in_its_unit(text: str, seconds: float) -> None:
    assert parse_elapsed(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1 week", "h", "1e3", "nan", "inf", "1.2.3", "9" * 400])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="a time must look like 3600, 90min, 36h or 10d, found"):
        parse_elapsed(text)


def test_times_are_written_with_enough_digits_to_compare_them() -> None:
    assert [format_elapsed(seconds) for seconds in (0.0, 0.25, 59.94, 179.0, 180.0, 11_000.0)] == [
        "0 s",
        "250 ms",
        "59.94 s",
        "179 s",
        "3 min",
        "3.056 h",
    ]
    assert format_elapsed(86_400.0 * 4321) == "4,321 d"


def test_a_span_has_three_of_its_unit() -> None:
    assert [elapsed_unit(span)[1] for span in (0.0, 179.0, 180.0, 10_800.0, 259_200.0)] == [
        "seconds",
        "seconds",
        "minutes",
        "hours",
        "days",
    ]
