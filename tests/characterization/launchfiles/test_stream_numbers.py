"""Numbers as C++ streams read them; the expected behaviour is that of libstdc++."""

import numpy as np
import pytest

from crosscast.characterization.launchfiles.stream_numbers import NumberReader


def reader(dtype: str, hexadecimal: bool = False) -> NumberReader:
    return NumberReader(np.dtype(dtype), hexadecimal)


@pytest.mark.parametrize(
    ("dtype", "text", "value", "rest"),
    [
        ("int32", "12", 12, ""),
        ("int32", "-3,", -3, ","),
        ("int32", "1.5", 1, ".5"),
        ("int32", "010", 10, ""),
        ("int32", "0x10", 0, "x10"),
        ("uint32", "-1", 4294967295, ""),
        ("uint16", "-1", 65535, ""),
        ("uint64", "18446744073709551615", 18446744073709551615, ""),
        ("float32", "1.0f", 1.0, "f"),
        ("float32", ".5", 0.5, ""),
        ("float32", "5.", 5.0, ""),
        ("float64", "-1e-3x", -0.001, "x"),
        ("float32", "1.5.5", 1.5, ".5"),
    ],
)
def test_the_longest_beginning_that_is_a_number_is_read(
    dtype: str, text: str, value: float, rest: str
) -> None:
    found = reader(dtype).match(text, 0)
    assert not isinstance(found, str)
    assert (found[0], text[found[1] :]) == (value, rest)


@pytest.mark.parametrize(("text", "value"), [("ff", 255), ("0xFF", 255), ("-0x1", -1), ("10", 16)])
def test_hexadecimal_integers_may_have_a_prefix(text: str, value: int) -> None:
    assert reader("int32", hexadecimal=True).match(text, 0) == (value, len(text))


def test_hexadecimal_leaves_reals_alone() -> None:
    assert reader("float32", hexadecimal=True).match("10", 0) == (10.0, 2)


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("int32", "x"),
        ("int32", "2147483648"),
        ("int8", "128"),
        ("uint8", "-1"),
        ("uint8", "256"),
        ("uint32", "4294967296"),
        ("float32", "nan"),
        ("float32", "inf"),
        ("float32", "1e39"),
        ("float64", "1e"),
        ("float64", "."),
    ],
)
def test_what_a_stream_fails_on_is_a_sentence(dtype: str, text: str) -> None:
    found = reader(dtype).match(text, 0)
    assert isinstance(found, str)
    assert text in found


def test_plain_lines_are_read_at_once() -> None:
    line = reader("uint8").many("1 2  255")
    assert line is not None
    assert line.tolist() == [1, 2, 255]
    reals = reader("float32").many("1 -2.5 1e3")
    assert reals is not None
    assert reals.tolist() == [1, -2.5, 1000]


@pytest.mark.parametrize(
    ("dtype", "line"),
    [("int32", "1 2x"), ("uint8", "256"), ("int32", "1-2"), ("float32", "1e39"), ("int32", "1.5")],
)
def test_other_lines_are_left_to_the_careful_way(dtype: str, line: str) -> None:
    assert reader(dtype).many(line) is None
