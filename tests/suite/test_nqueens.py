"""Queens on a board: which boards the search starts from, and what it counts."""

from itertools import combinations, permutations

import numpy as np
import pytest

from crosscast.errors import CheckFailed
from crosscast.suite.nqueens.driver import _BYTES_A_BOARD, _PROBLEMS, _SOLUTIONS, Nqueens
from crosscast.suite.registry import profiles_of


@pytest.mark.parametrize(("side", "placed", "boards"), _PROBLEMS[:-1])
def test_problems_have_as_many_boards_as_the_table_says(side: int, placed: int, boards: int) -> None:
    application = Nqueens({"side": side, "placed": placed}, seed=0)
    assert len(application.solutions) == boards
    assert application.nbytes == boards * _BYTES_A_BOARD


@pytest.mark.parametrize("nbytes", [8 << 10, 32 << 10, 256 << 10, 8 << 20, 32 << 20])
def test_boards_fill_at_least_a_third_of_what_was_asked_for(nbytes: int) -> None:
    boards = {(side, placed): boards for side, placed, boards in _PROBLEMS}
    found = Nqueens.fit(nbytes)
    assert nbytes / 3 <= boards[found["side"], found["placed"]] * _BYTES_A_BOARD <= nbytes


@pytest.mark.parametrize(("side", "placed"), [(1, 0), (4, 1), (6, 4), (8, 0), (9, 8)])
def test_the_number_of_solutions_does_not_depend_on_who_places_the_first_queens(
    side: int, placed: int
) -> None:
    profiles_of(Nqueens({"side": side, "placed": placed}, seed=0), "odd")  # checks


def test_known_numbers_are_those_of_trying_every_permutation() -> None:
    for side in range(1, 8):
        assert _SOLUTIONS[side] == sum(_peaceful(queens) for queens in permutations(range(side)))


def test_each_first_queen_has_as_many_solutions_as_its_mirror_image() -> None:
    application = Nqueens({"side": 7, "placed": 1}, seed=0)
    profiles_of(application, "odd")
    np.testing.assert_array_equal(application.solutions, application.solutions[::-1])


def test_one_solution_too_many_fails_the_check() -> None:
    application = Nqueens({"side": 6, "placed": 2}, seed=0)
    profiles_of(application, "odd")
    application.solutions[3] += 1
    with pytest.raises(CheckFailed, match="solutions"):
        application.check()


def _peaceful(queens: tuple[int, ...]) -> bool:
    return all(abs(a - b) != i - j for (j, a), (i, b) in combinations(enumerate(queens), 2))
