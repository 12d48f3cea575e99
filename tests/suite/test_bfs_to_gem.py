"""Applications from bfs to gem: their problems, what kernels compute of any extents, and what checks see."""

from __future__ import annotations

from itertools import pairwise
from math import prod

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
from crosscast.suite.registry import profiles_of
from support.examples import one_in


@pytest.mark.parametrize("vertices", [1, 2, 257])
def test_any_number_of_vertices_is_searched(vertices: int) -> None:
    profiles_of(Bfs({"vertices": vertices}, seed=1), "odd", options=Options(check_bounds=True))  # checks


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


def test_a_vertex_that_was_not_reached_fails_the_check() -> None:
    application = Bfs({"vertices": 100}, seed=4)
    profiles_of(application, "odd")
    application.depth[application.depth.argmax()] = 0
    with pytest.raises(CheckFailed, match="depth: 1 of 100"):
        application.check()


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return make_mesh(13, 7, np.random.default_rng(1))


def _solved(columns: int, rows: int, steps: int) -> Cfd:
    application = Cfd({"columns": columns, "rows": rows, "steps": steps}, seed=2)
    profiles_of(application, "odd")  # checks
    return application


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


@pytest.mark.parametrize(("columns", "rows", "steps"), [(13, 7, 2), (1, 5, 1), (70, 1, 1)])
def test_odd_meshes_flow_as_in_double_precision(columns: int, rows: int, steps: int) -> None:
    _solved(columns, rows, steps)


def test_the_flow_stays_physical_and_is_disturbed_far_more_than_the_check_tolerates() -> None:
    application = _solved(20, 20, 3)
    found = application.result.astype(np.float64)
    density, energy = found[0], found[4]
    pressure = 0.4 * (energy - (found[1:4] ** 2).sum(axis=0) / density / 2)
    assert density.min() > 0.1
    assert pressure.min() > 0.1
    disturbed = np.abs(found - application._far_field[:, np.newaxis]).max(axis=0)
    assert np.median(disturbed) > 0.01


def test_one_wrong_value_fails_the_check() -> None:
    application = _solved(9, 6, 1)
    application.result[4, 50] *= 1.001
    with pytest.raises(CheckFailed, match=r"variables: 1 of 270 values are wrong, first at \(4, 50\)"):
        application.check()


@pytest.mark.parametrize("length", [1, 7, 8, 9, 1023, 1024])
def test_buffers_that_are_no_multiple_of_eight_bytes_are_read_to_their_end(length: int) -> None:
    profiles_of(Crc({"bytes": length}, seed=1), "odd")  # checks


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


def test_one_wrong_value_fails_the_check_csr() -> None:
    application = Csr({"rows": 67, "elements": 600}, seed=4)
    profiles_of(application, "tiny")
    application.vectors[0][66] += np.float32(1e-3)
    with pytest.raises(CheckFailed, match=r"vector: 1 of 67 values are wrong, first at \(66,\)"):
        application.check()


@pytest.mark.parametrize(
    ("height", "width"),
    one_in(4, [(1, 1), (1, 40), (37, 1), (2, 3), (33, 31), (32, 64), (34, 65), (67, 30)]),
)
def test_tiles_may_reach_over_the_edge(height: int, width: int) -> None:
    application = Dwt({"height": height, "width": width}, seed=1)
    profiles_of(application, "odd", options=Options(check_bounds=True))  # checks


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


def test_a_coefficient_one_off_fails_the_check() -> None:
    application = Dwt({"height": 20, "width": 20}, seed=4)
    profiles_of(application, "odd")
    application.bands[1][19, 3] += 1
    with pytest.raises(CheckFailed, match=r"green wavelets: 1 of 400 values are wrong, first at \(19, 3\)"):
        application.check()


@pytest.mark.parametrize("log2_points", one_in(3, [4, 5, 6, 7]))
def test_every_radix_agrees_with_scipy_whatever_is_left_for_the_last_pass(log2_points: int) -> None:
    profiles = profiles_of(Fft({"log2_points": log2_points}, seed=2), "tiny")
    assert {profile.kernel for profile in profiles} == set(Fft.kernels)


def test_passes_of_a_transform_join_all_points() -> None:
    profiles = profiles_of(Fft({"log2_points": 7}, seed=3), "tiny")
    radices = [int(profile.kernel.removeprefix("fftRadix").removesuffix("Kernel")) for profile in profiles]
    assert radices == [2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 8, 8, 2, 16, 8]
    assert prod(radices) == (2**7) ** 4


def test_four_transforms_give_the_signal_back() -> None:
    application = Fft({"log2_points": 6}, seed=4)
    profiles_of(application, "tiny")
    # Two transforms reverse a signal of n points and multiply it by n.
    np.testing.assert_allclose(application.spectra[-1] / 64**2, application.signal, atol=1e-5)


@pytest.mark.parametrize(("transform", "radix"), [(0, 2), (1, 4), (2, 8), (3, 16)])
def test_one_wrong_point_of_any_spectrum_fails_the_check(transform: int, radix: int) -> None:
    application = Fft({"log2_points": 5}, seed=6)
    profiles_of(application, "tiny")
    application.spectra[transform][31] *= np.float32(1.001)
    with pytest.raises(CheckFailed, match=rf"spectrum of radix {radix}: 1 of 32 .* first at \(31,\)"):
        application.check()


def test_a_spectrum_that_is_not_finite_fails_the_check() -> None:
    application = Fft({"log2_points": 4}, seed=7)
    profiles_of(application, "tiny")
    application.spectra[0][3, 1] = np.nan
    with pytest.raises(CheckFailed, match="spectrum of radix 2"):
        application.check()


def test_atoms_do_not_grow_without_bound() -> None:
    assert Gem.fit(1 << 30)["atoms"] == Gem.fit(1 << 20)["atoms"]


@pytest.mark.parametrize(("atoms", "vertices"), [(1, 1), (3, 64), (200, 65)])
def test_any_number_of_vertices_is_computed(atoms: int, vertices: int) -> None:
    application = Gem({"atoms": atoms, "vertices": vertices}, seed=1)
    profiles_of(application, "odd", options=Options(check_bounds=True))  # checks
    assert np.count_nonzero(application.potential) == vertices


def test_two_opposite_charges_in_one_place_cancel() -> None:
    application = Gem({"atoms": 2, "vertices": 10}, seed=2)
    application.atoms[1] = application.atoms[0] * np.array([1, 1, 1, -1])
    profiles_of(application, "odd")
    assert np.abs(application.potential).max() < 1e-6


def test_vertices_lie_outside_of_the_molecule() -> None:
    application = Gem(Gem.fit(8 << 10), seed=3)
    farthest_atom = np.linalg.norm(application.atoms[:, :3], axis=1).max()
    assert np.linalg.norm(application.vertices, axis=0).min() > 0.999 * farthest_atom


def test_the_potential_without_one_atom_fails_the_check() -> None:
    application = Gem({"atoms": 50, "vertices": 100}, seed=4)
    profiles_of(application, "odd")
    right = application.potential.copy()
    without = Gem({"atoms": 50, "vertices": 100}, seed=4)
    without.atoms[7, 3] = 0
    profiles_of(without, "odd")
    application.potential[:] = without.potential
    with pytest.raises(CheckFailed, match="potential"):
        application.check()
    application.potential[:] = right
    application.check()
