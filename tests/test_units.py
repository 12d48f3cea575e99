"""Errors of Crosscast, on their way between processes.

Results as tables: for pandas, JSON and notebooks.
"""

import json
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast import errors
from crosscast.errors import CrosscastError, KernelFault, MissingExtraError
from crosscast.results import Tabular
from crosscast.units import (
    format_elapsed,
    format_seconds,
    parse_bytes,
    parse_elapsed,
)
from support.refusals import refusal, refusals


@pytest.mark.parametrize(
    ("write", "seconds", "text"),
    [
        (format_seconds, 0.0, "0 s"),
        (format_seconds, 61.0, "1 min 1 s"),
        (format_seconds, 3725.0, "1 h 2 min"),
        (format_seconds, 0.9996, "1 s"),
        (format_elapsed, 0.25, "250 ms"),
        (format_elapsed, 179.0, "179 s"),
        (format_elapsed, 180.0, "3 min"),
        (format_elapsed, 86_400.0 * 4321, "4,321 d"),
    ],
)
def test_durations_get_the_unit_that_fits(write: Callable[[float], str], seconds: float, text: str) -> None:
    assert write(seconds) == text


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("4k", 4096), ("2 GB", 2 << 30), ("1TiB", 1 << 40)])
def test_sizes_are_read_with_suffixes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90min", 5400), (" 1.5 h ", 5400), ("10d", 864_000), (".5s", 0.5)]
)
def test_a_time_is_read_in_its_unit(text: str, seconds: float) -> None:
    assert parse_elapsed(text) == seconds


@refusals("name text")
def test_what_is_no_size_or_time_is_refused(name: str, text: str) -> None:
    assert f"a {name} must look like" in refusal(
        {"size in bytes": parse_bytes, "time": parse_elapsed}[name], text
    )


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


def test_parts_and_type_survive_the_way_between_processes_and_a_label_in_front() -> None:
    error = KernelFault.of(where="k", field="x", expected="a number", found=-1)
    assert str(error) == "k: x: expected a number, found -1"
    found = pickle.loads(pickle.dumps(error.within("fold 1")))
    assert isinstance(found, KernelFault)
    assert str(found) == f"fold 1: {error}"
    assert (found.where, found.field, found.expected, found.found) == ("fold 1: k", "x", "a number", "-1")


@dataclass(frozen=True)
class Times(Tabular):
    names: tuple[str, ...]
    seconds: npt.NDArray[np.float64]

    def columns(self) -> Mapping[str, Sequence[object] | npt.NDArray[np.float64]]:
        return {"kernel": self.names, "time_s": self.seconds}


TIMES = Times(("copy", "<b>"), np.array([0.00123456, np.nan]))


def test_a_table_is_a_frame_of_pandas_and_json_without_what_is_missing() -> None:
    frame = TIMES.to_pandas()
    assert list(frame.columns) == ["kernel", "time_s"]
    np.testing.assert_array_equal(frame["time_s"], TIMES.seconds)
    cells = {"kernel": ["copy", "<b>"], "time_s": [0.00123456, None]}
    assert json.loads(json.dumps(TIMES.to_dict(), allow_nan=False)) == cells


def test_a_notebook_shows_a_table_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"crosscast\[pandas\]"):
        TIMES.to_pandas()
    text = TIMES._repr_html_()
    assert [each in text for each in ('<th scope="col">kernel</th>', ">0.001235<", "&lt;b&gt;")] == [True] * 3
    assert [each in text for each in ("<b>", "nan")] == [False] * 2
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
