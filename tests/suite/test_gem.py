"""Potential of a molecule: any number of atoms and vertices, and that the check sees a wrong one."""

import numpy as np
import pytest

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed
from crosscast.suite.gem.driver import Gem
from crosscast.suite.registry import profiles_of


@pytest.mark.parametrize("nbytes", [8 << 10, 50_001, 8 << 20])
def test_the_working_set_fills_what_was_asked_for(nbytes: int) -> None:
    assert nbytes - 28 < Gem(Gem.fit(nbytes), seed=0).nbytes <= nbytes


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
