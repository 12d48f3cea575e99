"""What kernels of the suite compute at any extents, what checks see, and how problems are made."""

from collections.abc import Callable
from itertools import combinations, pairwise, permutations
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed
from crosscast.suite.bfs import Bfs
from crosscast.suite.cfd import FAR_FIELD, WALL, Cfd, Mesh, make_mesh
from crosscast.suite.crc import Crc
from crosscast.suite.csr import Csr
from crosscast.suite.dwt import Dwt
from crosscast.suite.fft import Fft
from crosscast.suite.gem import Gem
from crosscast.suite.hmm import Hmm
from crosscast.suite.kmeans import Kmeans
from crosscast.suite.lud import Lud
from crosscast.suite.nqueens import _BYTES_A_BOARD, _PROBLEMS, _SOLUTIONS, Nqueens
from crosscast.suite.nw import Nw
from crosscast.suite.profiles import profiles_of
from crosscast.suite.srad import Srad
from crosscast.suite.swat import Swat
from support.examples import one_in

EXTENTS: dict[Any, tuple[str, list[tuple[int, ...]]]] = {
    Bfs: ("vertices", [(1,), (2,), (257,)]),
    Cfd: ("columns rows steps", [(13, 7, 2), (1, 5, 1), (70, 1, 1)]),
    Crc: ("bytes", [(1,), (7,), (8,), (9,), (1023,)]),
    Csr: ("rows elements", [(1, 1), (67, 30), (64, 64 * 64), (65, 500)]),
    Dwt: ("height width", [(1, 1), (1, 40), (37, 1), (33, 31), (34, 65)]),
    Fft: ("log2_points", [(4,), (7,)]),
    Gem: ("atoms vertices", [(1, 1), (3, 64), (200, 65)]),
    Hmm: ("states symbols steps", [(3, 70, 2), (37, 5, 5)]),
    Kmeans: ("points features clusters rounds", [(64, 1, 1, 2), (65, 8, 2, 2), (7, 5, 7, 2)]),
    Lud: ("blocks", [(2,), (3,)]),
    Nqueens: ("side placed", [(1, 0), (4, 1), (6, 4), (8, 0), (9, 8)]),
    Nw: ("length", [(1,), (15,), (16,), (17,), (50,)]),
    Srad: ("rows columns", [(1, 1), (1, 40), (33, 1), (16, 32), (17, 15)]),
    Swat: ("query database", [(32, 32), (33, 65), (97, 40), (5, 3)]),
}
"""Odd extents of each application: names, and values where tiles end within, at and behind an edge."""


def solved(kind: Any, **extents: int) -> Any:
    """An application after a run whose result was checked."""
    application = kind(extents, seed=2)
    profiles_of(application, "odd", options=Options(check_bounds=True))
    return application


@pytest.mark.parametrize(
    ("kind", "names", "values"),
    one_in(2, [(kind, names.split(), row) for kind, (names, rows) in EXTENTS.items() for row in rows]),
)
def test_it_is_right_at_any_extents(kind: Any, names: list[str], values: tuple[int, ...]) -> None:
    solved(kind, **dict(zip(names, values, strict=True)))


POINTS = {"points": 70, "features": 3, "clusters": 4, "rounds": 2}
FIVE = {"log2_points": 5}
PAIR = {"query": 70, "database": 90}
OFF = np.float32(1.001)
Damage = tuple[Any, dict[str, int], Callable[[Any], Any], Any, Callable[[Any], Any], str]
DAMAGES: list[Damage] = [
    *(
        (Fft, FIVE, lambda a, n=n: a.spectra[n], 31, lambda v: v * OFF, f"radix {2 << n}: 1 of 32")
        for n in range(4)
    ),
    (Fft, FIVE, lambda a: a.spectra[0], (3, 1), lambda v: np.nan, "spectrum of radix 2"),
    *(
        (Kmeans, POINTS, lambda a: a.membership, 69, lambda v, wrong=wrong: wrong, "membership: 1 of 70")
        for wrong in (-1, 4, 1 << 30)
    ),
    (Kmeans, POINTS, lambda a: a.membership, 69, lambda v: (v + 1) % 4, "distance to the centre: 1 of 70"),
    (Kmeans, POINTS, lambda a: a.means, 2, lambda v: v + np.float32(0.01), "centres: 3 of 12"),
    *(
        (
            *(Lud, {"blocks": 2}, lambda a: a.matrix, (row, column), lambda v: v * OFF),
            rf"L and U from row {row // 16 * 16}: 1 of 512 .* \({row % 16}, {column}\)",
        )
        for row, column in ((0, 0), (31, 0), (0, 31), (31, 30), (20, 25))
    ),
    (Swat, PAIR, lambda a: a.score, (5, 7), lambda v: v + 1, r"scores: 1 of 6300 .* first at \(5, 7\)"),
    *(
        (Swat, PAIR, positions, 3, lambda v, wrong=wrong: wrong, "alignment")
        for positions in (lambda a: a.query_positions, lambda a: a.database_positions)
        for wrong in (-1, 2, 10_000)
    ),
    *(
        (Swat, PAIR, lambda a: a.summary, place, lambda v, wrong=wrong: wrong, message)
        for place, message in ((0, "best score"), (1, "alignment"))
        for wrong in (0, 9, 10_000)
    ),
]
"""Application, extents, an array of its results, a place in it, what happens there, and the message:
of checks that do more than compare an array. For the others, see `test_contract`."""


@pytest.fixture(scope="module")
def applications() -> dict[tuple[Any, ...], Any]:
    return {}


@pytest.mark.parametrize(("kind", "extents", "array", "place", "change", "message"), DAMAGES)
def test_one_wrong_value_fails_the_check(
    applications: dict[tuple[Any, ...], Any],
    kind: Any,
    extents: dict[str, int],
    array: Callable[[Any], Any],
    place: Any,
    change: Callable[[Any], Any],
    message: str,
) -> None:
    key = (kind, *extents.values())
    application = applications[key] if key in applications else solved(kind, **extents)
    applications[key] = application
    values = array(application)
    right = values[place].copy()
    values[place] = change(right)
    with pytest.raises(CheckFailed, match=message):
        application.check()
    values[place] = right
    application.check()


def test_edges_go_both_ways() -> None:
    application = Bfs({"vertices": 500}, seed=2)
    tails = np.repeat(np.arange(500), application.nodes[:, 1])
    there = sorted(zip(tails, application.edges, strict=True))
    assert there == sorted(zip(application.edges, tails, strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_a_level_is_a_pair_of_launches_and_there_are_few(seed: int) -> None:
    application = Bfs(Bfs.fit(8 << 10), seed=seed)
    profiles = profiles_of(application, "tiny")
    assert len(profiles) == 2 * (application.depth.max() + 1) <= 30


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return make_mesh(13, 7, np.random.default_rng(1))


def test_faces_close_each_element(mesh: Mesh) -> None:
    np.testing.assert_allclose(mesh.normals.sum(axis=0), 0, atol=1e-6)
    assert mesh.areas.min() > 0.1
    assert mesh.areas.mean() == pytest.approx(1, rel=0.1)


def test_the_normals_do_not_lie_in_a_coordinate_plane_but_in_one_with_the_wind(mesh: Mesh) -> None:
    vectors = np.vstack((np.moveaxis(mesh.normals, 1, -1).reshape(-1, 3), mesh.wind))
    spread = np.linalg.svd(vectors, compute_uv=False)
    assert spread[2] < 1e-5 * spread[0]
    assert np.abs(vectors).max(axis=0).min() > 0.1


@pytest.mark.parametrize(("face", "opposite"), [(0, 1), (2, 3)], ids=["west", "south"])
def test_neighbours_see_the_same_face_from_both_sides(mesh: Mesh, face: int, opposite: int) -> None:
    inner = np.flatnonzero(mesh.neighbours[face] >= 0)
    beyond = mesh.neighbours[face, inner]
    np.testing.assert_array_equal(mesh.neighbours[opposite, beyond], inner)
    np.testing.assert_array_equal(mesh.normals[opposite][:, beyond], -mesh.normals[face][:, inner])


def test_there_is_ground_below_a_plate_within_and_far_field_around(mesh: Mesh) -> None:
    west, east, south, north = mesh.neighbours.reshape(4, 7, 13)
    assert (south[0] == WALL).all()
    assert (west[:, 1:] == WALL).any() or (south[1:] == WALL).any()
    for border in (west[:, 0], east[:, -1], north[-1]):
        assert (border == FAR_FIELD).all()


def test_the_flow_stays_physical_and_is_disturbed_far_more_than_the_check_tolerates() -> None:
    application = solved(Cfd, columns=20, rows=20, steps=3)
    found = application.result.astype(np.float64)
    density, energy = found[0], found[4]
    pressure = 0.4 * (energy - (found[1:4] ** 2).sum(axis=0) / density / 2)
    assert density.min() > 0.1
    assert pressure.min() > 0.1
    disturbed = np.abs(found - application._far_field[:, np.newaxis]).max(axis=0)
    assert np.median(disturbed) > 0.01


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


def test_a_picture_of_one_colour_has_no_details() -> None:
    application = Dwt({"height": 35, "width": 41}, seed=2)
    application.picture[:] = 100, 128, 255
    profiles_of(application, "odd")
    for bands, level in zip(application.bands, (-28, 0, 127), strict=True):
        assert np.all(bands[:5, :6] == level)
        assert not bands[5:].any()
        assert not bands[:, 6:].any()


def test_a_ramp_has_details_at_its_end_only() -> None:
    application = Dwt({"height": 1, "width": 16}, seed=3)
    application.picture[:] = np.arange(0, 32, 2)[:, None]
    profiles_of(application, "odd")
    assert application.bands[0][0, 8:].tolist() == [0, 0, 0, 0, 0, 0, 0, 2]


def test_passes_of_a_transform_join_all_points() -> None:
    profiles = profiles_of(Fft({"log2_points": 7}, seed=3), "tiny")
    radices = [int(profile.kernel.removeprefix("fftRadix").removesuffix("Kernel")) for profile in profiles]
    assert radices == [2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 8, 8, 2, 16, 8]
    assert prod(radices) == (2**7) ** 4


def test_atoms_do_not_grow_without_bound() -> None:
    assert Gem.fit(1 << 30)["atoms"] == Gem.fit(1 << 20)["atoms"]


def test_vertices_lie_outside_of_the_molecule() -> None:
    application = Gem(Gem.fit(8 << 10), seed=3)
    farthest_atom = np.linalg.norm(application.atoms[:, :3], axis=1).max()
    assert np.linalg.norm(application.vertices, axis=0).min() > 0.999 * farthest_atom


def test_the_largest_model_has_a_bounded_number_of_steps() -> None:
    assert Hmm.fit(1 << 30)["steps"] == 64


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


def test_each_round_is_one_launch_and_the_points_are_transposed_once() -> None:
    launched = [profile.kernel for profile in profiles_of(Kmeans({**POINTS, "rounds": 3}, seed=5), "tiny")]
    assert launched == ["invert_mapping"] + 3 * ["kmeansPoint"]


@pytest.mark.filterwarnings("ignore:One of the clusters is empty:UserWarning")
def test_a_centre_without_points_stays() -> None:
    application = Kmeans({**POINTS, "clusters": 2, "rounds": 1}, seed=5)
    application.points[1] = application.points[0]
    profiles_of(application, "tiny")
    assert np.array_equal(application.means[1], application.points[0])
    assert not application.membership.any()


def test_the_diagonal_dominates_the_columns() -> None:
    matrix = np.abs(Lud({"blocks": 4}, seed=2).original)
    diagonal = np.diag(matrix)
    assert (diagonal > (matrix.sum(axis=0) - diagonal)).all()


@pytest.mark.parametrize(("side", "placed", "boards"), _PROBLEMS[:-1])
def test_problems_have_as_many_boards_as_the_table_says(side: int, placed: int, boards: int) -> None:
    application = Nqueens({"side": side, "placed": placed}, seed=0)
    assert len(application.solutions) == boards
    assert application.nbytes == boards * _BYTES_A_BOARD


def test_known_numbers_are_those_of_trying_every_permutation() -> None:
    for side in range(1, 8):
        assert _SOLUTIONS[side] == sum(_peaceful(queens) for queens in permutations(range(side)))


def _peaceful(queens: tuple[int, ...]) -> bool:
    return all(abs(a - b) != i - j for (j, a), (i, b) in combinations(enumerate(queens), 2))


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


def test_the_best_alignment_crosses_tiles_and_has_gaps_in_both_sequences() -> None:
    application = solved(Swat, query=150, database=150)
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
