"""Flow over a mesh: the mesh is sound, the flow is disturbed, and the check sees what is wrong."""

import numpy as np
import pytest

from crosscast.errors import CheckFailed
from crosscast.suite.cfd.driver import Cfd
from crosscast.suite.cfd.mesh import FAR_FIELD, WALL, Mesh, make_mesh
from crosscast.suite.registry import profiles_of


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return make_mesh(13, 7, np.random.default_rng(1))


def _solved(columns: int, rows: int, steps: int) -> Cfd:
    application = Cfd({"columns": columns, "rows": rows, "steps": steps}, seed=2)
    profiles_of(application, "odd")  # checks
    return application


@pytest.mark.parametrize("nbytes", [8 << 10, 50_000, 256 << 10, 8 << 20])
def test_the_working_set_is_just_below_what_was_asked_for(nbytes: int) -> None:
    assert 0.9 * nbytes < Cfd(Cfd.fit(nbytes), seed=0).nbytes <= nbytes


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
