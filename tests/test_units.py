import pytest

from crosscast.units import (
    BINARY_PREFIXES,
    PREFIXES,
    elapsed_unit,
    format_bytes,
    format_count,
    format_elapsed,
    format_seconds,
    parse_bytes,
    parse_elapsed,
)
from support.refusals import refusal


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (2e-9, "2 ns"), (1.5e-5, "15 µs"), (0.25, "250 ms"), (59.0, "59 s"), (61.0, "1 min 1 s")],
)
def test_durations_get_the_unit_that_fits(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_hours_drop_their_seconds() -> None:
    assert format_seconds(3725.0) == "1 h 2 min"


def test_sizes_and_counts_are_readable() -> None:
    assert format_bytes(100) == "100 B"
    assert format_bytes(3 << 29) == "1.5 GiB"
    assert format_count(1234567) == "1,234,567"


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("4k", 4096), ("2 GB", 2 << 30), ("1TiB", 1 << 40)])
def test_sizes_are_read_with_suffixes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5G", "G", "4X"])
def test_other_sizes_are_refused(text: str) -> None:
    assert "must look like" in refusal(parse_bytes, text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90min", 5400), (" 1.5 h ", 5400), ("10d", 864_000), (".5s", 0.5)]
)
def test_a_time_is_read_in_its_unit(text: str, seconds: float) -> None:
    assert parse_elapsed(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1 week", "h", "1e3", "nan", "inf", "1.2.3", "9" * 400])
def test_what_is_no_time_is_refused(text: str) -> None:
    assert "a time must look like 3600, 90min, 36h or 10d, found" in refusal(parse_elapsed, text)


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


def test_prefixes_step_by_a_thousand() -> None:
    values = list(PREFIXES.values())
    assert values == pytest.approx([1e-12 * 1000**step for step in range(len(values))])
    assert list(BINARY_PREFIXES.values()) == [1024.0**step for step in range(1, 5)]
