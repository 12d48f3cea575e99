"""Applications from hmm to swat: their problems, what kernels compute of any extents, and what checks see."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed
from crosscast.suite.application import Parameters
from crosscast.suite.hmm import Hmm
from crosscast.suite.kmeans import Kmeans
from crosscast.suite.lud import Lud
from crosscast.suite.nqueens import _BYTES_A_BOARD, _PROBLEMS, _SOLUTIONS, Nqueens
from crosscast.suite.nw import Nw
from crosscast.suite.registry import profiles_of
from crosscast.suite.srad import Srad
from crosscast.suite.swat import Swat
from support.examples import one_in


def test_the_largest_model_has_a_bounded_number_of_steps() -> None:
    assert Hmm.fit(1 << 30)["steps"] == 64


@pytest.mark.parametrize(("states", "symbols", "steps"), one_in(2, [(3, 70, 2), (37, 5, 5)]))
def test_odd_models_are_updated_as_in_double_precision(states: int, symbols: int, steps: int) -> None:
    application = Hmm({"states": states, "symbols": symbols, "steps": steps}, seed=3)
    profiles_of(application, "odd")  # checks
    pi, a, b = application.result
    for sums in (pi.sum(), a.sum(axis=1), b.sum(axis=0)):
        np.testing.assert_allclose(sums, 1, rtol=1e-5)
    assert not np.allclose(a, application.model.a, rtol=0.01)


@pytest.mark.parametrize("field", [0, 1, 2], ids=["pi", "a", "b"])
def test_one_wrong_value_fails_the_check(field: int) -> None:
    application = Hmm({"states": 5, "symbols": 3, "steps": 4}, seed=4)
    for found, expected in zip(application.result, application._expected, strict=True):
        found[:] = expected
    application.check()
    application.result[field].flat[2] += 0.01
    with pytest.raises(CheckFailed, match=("pi", "a", "b")[field]):
        application.check()


def test_an_iteration_makes_the_observed_symbols_more_likely() -> None:
    application = Hmm({"states": 6, "symbols": 4, "steps": 5}, seed=5)
    profiles_of(application, "odd")
    symbols = application.buffers["symbols"]
    before, after = (
        _likelihood(model.pi, model.a, model.b, symbols) for model in (application.model, application.result)
    )
    assert after > before


def _likelihood(pi: np.ndarray, a: np.ndarray, b: np.ndarray, symbols: np.ndarray) -> float:
    alpha = pi * b[symbols[0]]
    for symbol in symbols[1:]:
        alpha = (alpha @ a) * b[symbol]
    return float(alpha.sum())


def nbytes(parameters: Parameters) -> int:
    points, features, clusters = (parameters[key] for key in ("points", "features", "clusters"))
    return 4 * (2 * points * features + clusters * features + points)


def small(points: int = 70, features: int = 3, clusters: int = 4, rounds: int = 2) -> Kmeans:
    extents = {"points": points, "features": features, "clusters": clusters, "rounds": rounds}
    return Kmeans(extents, seed=5)


@pytest.mark.parametrize(("points", "features", "clusters"), [(70, 3, 4), (64, 1, 1), (65, 8, 2), (7, 5, 7)])
def test_it_agrees_with_scipy_at_any_extents(points: int, features: int, clusters: int) -> None:
    application = small(points, features, clusters)
    profiles_of(application, "tiny")
    assert np.array_equal(application.by_feature, application.points.T)


def test_each_round_is_one_launch_and_the_points_are_transposed_once() -> None:
    launched = [profile.kernel for profile in profiles_of(small(rounds=3), "tiny")]
    assert launched == ["invert_mapping"] + 3 * ["kmeansPoint"]


@pytest.mark.filterwarnings("ignore:One of the clusters is empty:UserWarning")
def test_a_centre_without_points_stays() -> None:
    application = small(clusters=2, rounds=1)
    application.points[1] = application.points[0]
    profiles_of(application, "tiny")
    assert np.array_equal(application.means[1], application.points[0])
    assert not application.membership.any()


@pytest.mark.parametrize("wrong", [-1, 4, 1 << 30])
def test_a_cluster_that_does_not_exist_fails_the_check(wrong: int) -> None:
    application = small()
    profiles_of(application, "tiny")
    application.membership[69] = wrong
    with pytest.raises(CheckFailed, match="membership: 1 of 70"):
        application.check()


def test_a_point_with_a_farther_centre_fails_the_check() -> None:
    application = small()
    profiles_of(application, "tiny")
    application.membership[69] = (application.membership[69] + 1) % 4
    with pytest.raises(CheckFailed, match="distance to the centre: 1 of 70"):
        application.check()


def test_centres_that_moved_elsewhere_fail_the_check() -> None:
    application = small()
    profiles_of(application, "tiny")
    application.means[2] += np.float32(0.01)
    with pytest.raises(CheckFailed, match="centres: 3 of 12"):
        application.check()


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


@pytest.mark.parametrize(("row", "column"), [(0, 0), (31, 0), (0, 31), (31, 30), (20, 25)])
def test_one_wrong_element_of_either_factor_fails_the_check(row: int, column: int) -> None:
    application = Lud({"blocks": 2}, seed=6)
    profiles_of(application, "tiny")
    application.matrix[row, column] *= np.float32(1.001)
    with pytest.raises(
        CheckFailed, match=rf"L and U from row {row // 16 * 16}: 1 of 512 .* \({row % 16}, {column}\)"
    ):
        application.check()


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


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 40), (33, 1), (16, 32), (17, 15)])
def test_tiles_may_reach_over_the_edge_srad(rows: int, columns: int) -> None:
    application = Srad({"rows": rows, "columns": columns}, seed=1)
    profiles_of(application, "odd", options=Options(check_bounds=True))  # checks


def test_an_even_image_stays_as_it_is() -> None:
    application = Srad({"rows": 20, "columns": 20}, seed=2)
    application.original.fill(2)
    profiles_of(application, "odd")
    assert np.all(application.image == 2)


def test_speckle_gets_less_and_brightness_stays() -> None:
    application = Srad({"rows": 48, "columns": 48}, seed=3)
    profiles_of(application, "odd")
    corner = np.s_[:11, :48]
    assert application.image[corner].std() < 0.8 * application.original[corner].std()
    assert application.image.mean() == pytest.approx(application.original.mean(), rel=1e-5)


def test_a_pixel_that_was_not_smoothed_fails_the_check() -> None:
    application = Srad({"rows": 20, "columns": 20}, seed=5)
    profiles_of(application, "odd")
    application.image[7, 8] = application.original[7, 8]
    with pytest.raises(CheckFailed, match=r"image: 1 of 400 values are wrong, first at \(7, 8\)"):
        application.check()


def _solved(query: int, database: int, seed: int = 1) -> Swat:
    application = Swat({"query": query, "database": database}, seed)
    profiles_of(application, "odd")  # checks
    return application


@pytest.fixture(scope="module")
def solved() -> Swat:
    return _solved(70, 90)


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
