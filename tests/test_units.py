"""Errors of Crosscast, on their way between processes.

Results as tables: for pandas, JSON and notebooks.
"""

import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast import errors
from crosscast.errors import CrosscastError, InputError, KernelFault, MissingExtraError
from crosscast.results import Tabular
from crosscast.units import (
    BINARY_PREFIXES,
    PREFIXES,
    format_elapsed,
    format_seconds,
    parse_bytes,
    parse_elapsed,
)
from support.refusals import refusal


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (2e-9, "2 ns"),
        (0.25, "250 ms"),
        (61.0, "1 min 1 s"),
        (3725.0, "1 h 2 min"),
        (0.9996, "1 s"),
    ],
)
def test_durations_get_the_unit_that_fits(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


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


def test_prefixes_step_by_a_thousand() -> None:
    values = list(PREFIXES.values())
    assert values == pytest.approx([1e-12 * 1000**step for step in range(len(values))])
    assert list(BINARY_PREFIXES.values()) == [1024.0**step for step in range(1, 5)]


KINDS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CrosscastError)
]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_survives_the_way_between_processes(kind: type[CrosscastError]) -> None:
    words = ("train", "fitting a model") if kind is MissingExtraError else ("jobs: expected at least 1",)
    error = kind(*words)
    found = pickle.loads(pickle.dumps(error))
    assert isinstance(found, CrosscastError)
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


def test_an_input_error_is_made_of_its_parts_and_keeps_them() -> None:
    error = InputError.of(where="model/card.json", field="seed", expected="a whole number", found=-1)
    assert str(error) == "model/card.json: seed: expected a whole number, found -1"
    parts = (error.where, error.field, error.expected, error.found)
    assert parts == ("model/card.json", "seed", "a whole number", "-1")


def test_parts_and_type_survive_the_way_between_processes_and_a_label_in_front() -> None:
    error = KernelFault.of(where="k", field="x", expected="a number", found="none").within("fold 1")
    found = pickle.loads(pickle.dumps(error))
    assert isinstance(found, KernelFault)
    assert str(found) == "fold 1: k: x: expected a number, found none"
    assert (found.where, found.field, found.expected, found.found) == ("fold 1: k", "x", "a number", "none")


@dataclass(frozen=True)
class Times(Tabular):
    names: tuple[str, ...]
    seconds: npt.NDArray[np.float64]

    def columns(self) -> Mapping[str, Sequence[object] | npt.NDArray[np.float64]]:
        return {"kernel": self.names, "time_s": self.seconds}


TIMES = Times(("copy", "<b>"), np.array([0.00123456, np.nan]))


def test_a_frame_of_pandas_has_the_columns() -> None:
    frame = TIMES.to_pandas()
    assert list(frame.columns) == ["kernel", "time_s"]
    assert frame["time_s"].iloc[0] == 0.00123456
    assert np.isnan(frame["time_s"].iloc[1])


def test_without_pandas_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"crosscast\[pandas\]"):
        TIMES.to_pandas()


def test_missing_numbers_are_none_in_json() -> None:
    assert json.loads(json.dumps(TIMES.to_dict(), allow_nan=False)) == {
        "kernel": ["copy", "<b>"],
        "time_s": [0.00123456, None],
    }


def test_a_notebook_shows_a_table_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    text = TIMES._repr_html_()
    assert '<th scope="col">kernel</th>' in text
    assert ">0.001235<" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert "nan" not in text


def test_a_long_table_says_how_many_rows_it_leaves_out() -> None:
    text = Times(tuple("abc" * 20), np.arange(60.0))._repr_html_()
    assert text.count("<tr>") == 51
    assert "10 more rows" in text


@dataclass(frozen=True)
class Rows(Tabular):
    values: list[object]
    many: int
    said: str = ""

    def columns(self) -> dict[str, list[object]]:
        return {f"c{place}": self.values for place in range(self.many)}

    def caption(self) -> str:
        return self.said


@given(
    st.lists(st.one_of(st.none(), st.floats(), st.text(), st.integers()), max_size=40),
    st.integers(1, 30),
    st.text(),
)
def test_a_table_shows_itself_in_ten_lines(values: list[object], many: int, said: str) -> None:
    text = repr(Rows(values, many, said))
    assert len(text.split("\n")) <= 10
    assert max(map(len, text.split("\n"))) <= 110
    assert ("more rows" in text) == (len(values) > (6 if said else 7))
