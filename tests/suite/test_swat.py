"""Alignment of two sequences: scores, the way back, and that the check sees what is wrong."""

import numpy as np
import pytest

from crosscast.errors import CheckFailed
from crosscast.suite.registry import profiles_of
from crosscast.suite.swat.driver import Swat


def _solved(query: int, database: int, seed: int = 1) -> Swat:
    application = Swat({"query": query, "database": database}, seed)
    profiles_of(application, "odd")  # checks
    return application


@pytest.fixture(scope="module")
def solved() -> Swat:
    return _solved(70, 90)


@pytest.mark.parametrize("nbytes", [8 << 10, 50_000, 256 << 10, 8 << 20])
def test_the_working_set_is_just_below_what_was_asked_for(nbytes: int) -> None:
    assert 0.9 * nbytes < Swat(Swat.fit(nbytes), seed=0).nbytes <= nbytes


@pytest.mark.parametrize(
    ("query", "database"), [(32, 32), (33, 65), (97, 40), (5, 3)], ids=["tile", "wide", "high", "short"]
)
def test_sequences_need_not_fill_whole_tiles(query: int, database: int) -> None:
    _solved(query, database)


def test_the_best_alignment_crosses_tiles_and_has_gaps_in_both_sequences() -> None:
    application = _solved(150, 150)
    length = application.summary[1]
    assert length > 64
    for positions in (application.query_positions, application.database_positions):
        assert (positions[:length] == -1).any()


def test_scores_of_a_known_pair_are_those_counted_by_hand() -> None:
    application = Swat({"query": 4, "database": 6}, seed=0)
    application.query[:] = [0, 1, 1, 3]
    application.database[:] = [2, 0, 1, 1, 3, 0]
    profiles_of(application, "odd")
    assert application.summary.tolist() == [20, 4]
    assert application.query_positions[:4].tolist() == [3, 2, 1, 0]
    assert application.database_positions[:4].tolist() == [4, 3, 2, 1]


def test_a_wrong_score_fails_the_check(solved: Swat) -> None:
    solved.score[5, 7] += 1
    with pytest.raises(CheckFailed, match=r"scores: 1 of 6300 values are wrong, first at \(5, 7\)"):
        solved.check()
    solved.score[5, 7] -= 1


@pytest.mark.parametrize("field", ["query_positions", "database_positions"])
@pytest.mark.parametrize("wrong", [-1, 2, 10_000])
def test_an_alignment_of_other_letters_fails_the_check(solved: Swat, field: str, wrong: int) -> None:
    positions = getattr(solved, field)
    right = positions[3]
    positions[3] = wrong
    with pytest.raises(CheckFailed, match="alignment"):
        solved.check()
    positions[3] = right
    solved.check()


@pytest.mark.parametrize(("place", "message"), [(0, "best score"), (1, "alignment")])
@pytest.mark.parametrize("wrong", [0, 9, 10_000])
def test_a_wrong_summary_fails_the_check(solved: Swat, place: int, message: str, wrong: int) -> None:
    right = solved.summary[place]
    solved.summary[place] = wrong
    with pytest.raises(CheckFailed, match=message):
        solved.check()
    solved.summary[place] = right
    solved.check()


def test_the_reference_agrees_with_the_recurrence_cell_by_cell() -> None:
    application = Swat({"query": 9, "database": 13}, seed=4)
    np.testing.assert_array_equal(application._expected, _by_cells(application))


def _by_cells(application: Swat) -> np.ndarray:
    """Scores from the definition: a gap of any length may end at any cell."""
    rows, columns = application.score.shape
    scores = np.zeros((rows + 1, columns + 1), np.int32)
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            similar = application._similarity[application.query[i - 1], application.database[j - 1]]
            scores[i, j] = max(
                0,
                scores[i - 1, j - 1] + similar,
                *(scores[i - gap, j] - 9 - gap for gap in range(1, i + 1)),
                *(scores[i, j - gap] - 9 - gap for gap in range(1, j + 1)),
            )
    return scores[1:, 1:]
