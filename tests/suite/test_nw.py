"""Alignment scores: lengths that are no multiple of a tile, and that the check sees a wrong score."""

import numpy as np
import pytest

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed
from crosscast.suite.nw.driver import Nw
from crosscast.suite.registry import profiles_of


@pytest.mark.parametrize("nbytes", [8 << 10, 50_001, 8 << 20])
def test_the_working_set_fills_what_was_asked_for(nbytes: int) -> None:
    assert 0.9 * nbytes < Nw(Nw.fit(nbytes), seed=0).nbytes <= nbytes


@pytest.mark.parametrize(("length", "launches"), [(1, 1), (15, 1), (16, 1), (17, 3), (48, 5), (50, 7)])
def test_tiles_may_reach_over_the_edge(length: int, launches: int) -> None:
    application = Nw({"length": length}, seed=1)
    assert len(profiles_of(application, "odd", options=Options(check_bounds=True))) == launches  # checks


@pytest.mark.parametrize(("substitution", "score"), [(5, 5), (-19, -19), (-21, -20)])
def test_a_single_pair_of_letters_is_aligned_or_left_out(substitution: int, score: int) -> None:
    application = Nw({"length": 1}, seed=2)
    application.substitution[:] = substitution
    profiles_of(application, "odd")
    assert application.scores.tolist() == [[0, -10], [-10, score]]


def test_a_sequence_aligned_with_itself_scores_all_its_letters() -> None:
    application = Nw({"length": 20}, seed=3)
    application.substitution[:] = np.where(np.eye(20), np.arange(1, 21), -1)
    profiles_of(application, "odd")
    assert application.scores[-1, -1] == 20 * 21 // 2


def test_a_score_one_off_fails_the_check() -> None:
    application = Nw({"length": 20}, seed=4)
    profiles_of(application, "odd")
    application.scores[20, 20] += 1
    with pytest.raises(CheckFailed, match=r"scores: 1 of 441 values are wrong, first at \(20, 20\)"):
        application.check()
