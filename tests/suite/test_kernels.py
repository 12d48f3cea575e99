"""What kernels of the suite compute at any extents, what checks see, and how problems are made."""

from collections.abc import Callable
from functools import cache
from itertools import combinations, pairwise, permutations
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed
from crosscast.suite.discrete import _BYTES_A_BOARD, _PROBLEMS, _SOLUTIONS, Bfs, Crc, Nqueens
from crosscast.suite.grids import FAR_FIELD, WALL, Cfd, Dwt, Srad, make_mesh
from crosscast.suite.linear_algebra import Csr, Fft, Gem, Kmeans, Lud
from crosscast.suite.profiles import profiles_of
from crosscast.suite.sequences import Hmm, Nw, Swat
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


@cache
def solved(kind: Any, extents: tuple[tuple[str, int], ...]) -> Any:
    """An application after a run whose result was checked."""
    application = kind(dict(extents), seed=2)
    profiles_of(application, "odd", options=Options(check_bounds=True))
    return application


@pytest.mark.parametrize(
    ("kind", "names", "values"),
    one_in(2, [(kind, names.split(), row) for kind, (names, rows) in EXTENTS.items() for row in rows]),
)
def test_it_is_right_at_any_extents(kind: Any, names: list[str], values: tuple[int, ...]) -> None:
    solved(kind, tuple(zip(names, values, strict=True)))


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


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: f"{damage[0].name} {damage[-1]}")
def test_one_wrong_value_fails_the_check(damage: Damage) -> None:
    kind, extents, array, place, change, message = damage
    application = solved(kind, tuple(extents.items()))
    values = array(application)
    right = values[place].copy()
    values[place] = change(right)
    with pytest.raises(CheckFailed, match=message):
        application.check()
    values[place] = right
    application.check()


def test_a_mesh_is_closed_has_ground_below_a_plate_within_and_far_field_around() -> None:
    mesh = make_mesh(13, 7, np.random.default_rng(1))
    np.testing.assert_allclose(mesh.normals.sum(axis=0), 0, atol=1e-6)
    assert mesh.areas.min() > 0.1
    assert mesh.areas.mean() == pytest.approx(1, rel=0.1)
    for face, opposite in ((0, 1), (2, 3)):  # Neighbours see the same face from both sides.
        inner = np.flatnonzero(mesh.neighbours[face] >= 0)
        beyond = mesh.neighbours[face, inner]
        np.testing.assert_array_equal(mesh.neighbours[opposite, beyond], inner)
        np.testing.assert_array_equal(mesh.normals[opposite][:, beyond], -mesh.normals[face][:, inner])
    west, east, south, north = mesh.neighbours.reshape(4, 7, 13)
    assert (south[0] == WALL).all()
    assert (west[:, 1:] == WALL).any() or (south[1:] == WALL).any()
    for border in (west[:, 0], east[:, -1], north[-1]):
        assert (border == FAR_FIELD).all()


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


def test_a_ramp_has_details_at_its_end_only() -> None:
    application = Dwt({"height": 1, "width": 16}, seed=3)
    application.picture[:] = np.arange(0, 32, 2)[:, None]
    profiles_of(application, "odd")
    assert application.bands[0][0, 8:].tolist() == [0, 0, 0, 0, 0, 0, 0, 2]


def test_problems_have_few_launches_also_at_the_largest_size() -> None:
    profiles = profiles_of(Fft({"log2_points": 7}, seed=3), "tiny")
    radices = [int(profile.kernel.removeprefix("fftRadix").removesuffix("Kernel")) for profile in profiles]
    assert radices == [2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 8, 8, 2, 16, 8]
    assert prod(radices) == (2**7) ** 4
    launched = [profile.kernel for profile in profiles_of(Kmeans({**POINTS, "rounds": 3}, seed=5), "tiny")]
    assert launched == ["invert_mapping"] + 3 * ["kmeansPoint"]
    search = Bfs(Bfs.fit(8 << 10), seed=1)
    assert len(profiles_of(search, "tiny")) == 2 * (search.depth.max() + 1) <= 30
    assert Gem.fit(1 << 30)["atoms"] == Gem.fit(1 << 20)["atoms"]
    assert Hmm.fit(1 << 30)["steps"] == 64


def test_an_iteration_makes_the_observed_symbols_more_likely() -> None:
    application = Hmm({"states": 6, "symbols": 4, "steps": 5}, seed=5)
    profiles_of(application, "odd")
    first, *rest = application.buffers["symbols"]

    def likelihood(model: Any) -> float:
        alpha = model.pi * model.b[first]
        for symbol in rest:
            alpha = (alpha @ model.a) * model.b[symbol]
        return float(alpha.sum())

    assert likelihood(application.result) > likelihood(application.model)


@pytest.mark.filterwarnings("ignore:One of the clusters is empty:UserWarning")
def test_a_centre_without_points_stays() -> None:
    application = Kmeans({**POINTS, "clusters": 2, "rounds": 1}, seed=5)
    application.points[1] = application.points[0]
    profiles_of(application, "tiny")
    assert np.array_equal(application.means[1], application.points[0])
    assert not application.membership.any()


def test_a_centre_goes_to_its_only_point() -> None:
    application = Kmeans({"points": 3, "features": 1, "clusters": 2, "rounds": 2}, seed=5)
    application.points[:, 0] = 0, 1, 100  # The second centre has the last two points, then the last one.
    profiles_of(application, "tiny")
    assert application.means.tolist() == [[0.5], [100]]


@pytest.mark.parametrize(("side", "placed", "boards"), _PROBLEMS[:-1])
def test_problems_have_as_many_boards_as_the_table_says(side: int, placed: int, boards: int) -> None:
    application = Nqueens({"side": side, "placed": placed}, seed=0)
    assert len(application.solutions) == boards
    assert application.nbytes == boards * _BYTES_A_BOARD


def test_known_numbers_are_those_of_trying_every_permutation() -> None:
    def peaceful(queens: tuple[int, ...]) -> bool:
        return all(abs(a - b) != i - j for (j, a), (i, b) in combinations(enumerate(queens), 2))

    for side in range(1, 8):
        assert _SOLUTIONS[side] == sum(map(peaceful, permutations(range(side))))


@pytest.mark.parametrize(("substitution", "score"), [(5, 5), (-19, -19), (-21, -20)])
def test_a_single_pair_of_letters_is_aligned_or_left_out(substitution: int, score: int) -> None:
    application = Nw({"length": 1}, seed=2)
    application.substitution[:] = substitution
    profiles_of(application, "odd")
    assert application.scores.tolist() == [[0, -10], [-10, score]]


def test_speckle_gets_less_and_brightness_stays() -> None:
    application = Srad({"rows": 48, "columns": 48}, seed=3)
    profiles_of(application, "odd")
    corner = np.s_[:11, :48]
    assert application.image[corner].std() < 0.8 * application.original[corner].std()
    assert application.image.mean() == pytest.approx(application.original.mean(), rel=1e-5)


def test_scores_of_a_known_pair_are_those_counted_by_hand() -> None:
    application = Swat({"query": 4, "database": 6}, seed=0)
    application.query[:] = [0, 1, 1, 3]
    application.database[:] = [2, 0, 1, 1, 3, 0]
    profiles_of(application, "odd")
    assert application.summary.tolist() == [20, 4]
    assert application.query_positions[:4].tolist() == [3, 2, 1, 0]
    assert application.database_positions[:4].tolist() == [4, 3, 2, 1]


def test_the_reference_agrees_with_the_recurrence_cell_by_cell() -> None:
    """In which a gap of any length may end at any cell."""
    application = Swat({"query": 9, "database": 13}, seed=4)
    rows, columns = application.score.shape
    scores = np.zeros((rows + 1, columns + 1), np.int32)
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            similar = application._similarity[application.query[i - 1], application.database[j - 1]]
            down = [scores[i - gap, j] - 9 - gap for gap in range(1, i + 1)]
            right = [scores[i, j - gap] - 9 - gap for gap in range(1, j + 1)]
            scores[i, j] = max(0, scores[i - 1, j - 1] + similar, *down, *right)
    np.testing.assert_array_equal(application._expected, scores[1:, 1:])
