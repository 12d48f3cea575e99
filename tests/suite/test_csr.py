from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import CheckFailed
from crosscast.suite.application import Parameters
from crosscast.suite.csr.driver import Csr
from crosscast.suite.registry import profiles_of


def nbytes(parameters: Parameters) -> int:
    return 8 * parameters["elements"] + 12 * parameters["rows"] + 4


@given(st.integers(8 << 10, 1 << 30))
def test_the_working_set_fills_what_it_may_and_no_more(limit: int) -> None:
    parameters = Csr.fit(limit)
    assert 0.9 * limit < nbytes(parameters) <= limit
    assert parameters["elements"] < 1 << 31


def test_the_arrays_are_the_working_set() -> None:
    parameters = Csr.fit(32 << 10)
    assert Csr(parameters, seed=1).nbytes == nbytes(parameters)


@given(st.integers(1, 40), st.data())
def test_every_element_has_a_place_of_its_own_in_its_row(rows: int, data: st.DataObject) -> None:
    elements = data.draw(st.integers(1, rows * rows))
    application = Csr({"rows": rows, "elements": elements}, seed=elements)
    starts = application.row_starts
    assert starts[0] == 0
    assert starts[-1] == elements
    for start, end in pairwise(starts):
        columns = application.columns[start:end].tolist()
        assert columns == sorted(set(columns))
        assert all(0 <= column < rows for column in columns)


@pytest.mark.parametrize(("rows", "elements"), [(1, 1), (67, 30), (64, 64 * 64), (65, 500)])
def test_it_agrees_with_scipy_at_any_extents(rows: int, elements: int) -> None:
    application = Csr({"rows": rows, "elements": elements}, seed=2)
    assert len(profiles_of(application, "tiny")) == 4
    empty = np.diff(application.row_starts) == 0
    assert not application.vectors[0][empty].any()


def test_a_second_run_starts_from_the_same_vector() -> None:
    application = Csr({"rows": 67, "elements": 300}, seed=3)
    profiles_of(application, "tiny")
    first = application.vectors[0].copy()
    profiles_of(application, "tiny")
    assert np.array_equal(application.vectors[0], first)


def test_one_wrong_value_fails_the_check() -> None:
    application = Csr({"rows": 67, "elements": 600}, seed=4)
    profiles_of(application, "tiny")
    application.vectors[0][66] += np.float32(1e-3)
    with pytest.raises(CheckFailed, match=r"vector: 1 of 67 values are wrong, first at \(66,\)"):
        application.check()


def test_a_result_of_fewer_products_fails_the_check() -> None:
    application = Csr({"rows": 67, "elements": 600}, seed=5)
    profiles_of(application, "tiny")
    application.vectors[0][:] = application.vectors[1]
    with pytest.raises(CheckFailed, match="vector"):
        application.check()
