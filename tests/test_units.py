import pytest

from crosscast.errors import InputError
from crosscast.units import format_bytes, format_count, format_seconds, parse_bytes


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
    with pytest.raises(InputError, match="must look like"):
        parse_bytes(text)
