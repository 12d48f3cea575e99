"""Results as tables: for pandas, JSON and notebooks."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import MissingExtraError
from crosscast.results import Tabular


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
