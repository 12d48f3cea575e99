import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import CheckFailed
from crosscast.suite.lud.driver import Lud
from crosscast.suite.registry import profiles_of


@given(st.integers(8 << 10, 1 << 30))
def test_the_matrix_fills_what_it_may_and_has_two_blocks_at_least(limit: int) -> None:
    blocks = Lud.fit(limit)["blocks"]
    assert blocks >= 2
    assert limit / 3 < 4 * (16 * blocks) ** 2 <= limit


def test_the_matrix_is_the_working_set() -> None:
    assert Lud({"blocks": 3}, seed=1).nbytes == 4 * 48 * 48


def test_the_diagonal_dominates_the_columns() -> None:
    matrix = np.abs(Lud({"blocks": 4}, seed=2).original)
    diagonal = np.diag(matrix)
    assert (diagonal > (matrix.sum(axis=0) - diagonal)).all()


@pytest.mark.parametrize("blocks", [2, 3, 5])
def test_l_times_u_is_the_matrix(blocks: int) -> None:
    application = Lud({"blocks": blocks}, seed=3)
    profiles_of(application, "tiny")
    factors = application.matrix.astype(np.float64)
    lower = np.tril(factors, -1) + np.eye(len(factors))
    product = lower @ np.triu(factors)
    np.testing.assert_allclose(product, application.original, rtol=1e-5, atol=1e-5)


def test_every_step_but_the_last_launches_all_three_kernels() -> None:
    launched = [profile.kernel for profile in profiles_of(Lud({"blocks": 3}, seed=4), "tiny")]
    assert launched == 2 * ["lud_diagonal", "lud_perimeter", "lud_internal"] + ["lud_diagonal"]


def test_a_second_run_starts_from_the_same_matrix() -> None:
    application = Lud({"blocks": 2}, seed=5)
    profiles_of(application, "tiny")
    first = application.matrix.copy()
    profiles_of(application, "tiny")
    assert np.array_equal(application.matrix, first)


@pytest.mark.parametrize(("row", "column"), [(0, 0), (31, 0), (0, 31), (31, 30), (20, 25)])
def test_one_wrong_element_of_either_factor_fails_the_check(row: int, column: int) -> None:
    application = Lud({"blocks": 2}, seed=6)
    profiles_of(application, "tiny")
    application.matrix[row, column] *= np.float32(1.001)
    with pytest.raises(
        CheckFailed, match=rf"L and U from row {row // 16 * 16}: 1 of 512 .* \({row % 16}, {column}\)"
    ):
        application.check()


def test_a_matrix_that_was_left_as_it_is_fails_the_check() -> None:
    application = Lud({"blocks": 2}, seed=7)
    application.matrix[:] = application.original
    with pytest.raises(CheckFailed, match="L and U"):
        application.check()
