"""Anisotropic diffusion: odd extents, what it does to an image, and that the check sees a wrong pixel."""

import numpy as np
import pytest

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed
from crosscast.suite.registry import profiles_of
from crosscast.suite.srad.driver import Srad


@pytest.mark.parametrize("nbytes", [8 << 10, 50_001, 8 << 20])
def test_the_working_set_fills_what_was_asked_for(nbytes: int) -> None:
    assert 0.9 * nbytes < Srad(Srad.fit(nbytes), seed=0).nbytes <= nbytes


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 40), (33, 1), (16, 32), (17, 15)])
def test_tiles_may_reach_over_the_edge(rows: int, columns: int) -> None:
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


def test_a_second_run_starts_from_the_same_image() -> None:
    application = Srad({"rows": 10, "columns": 20}, seed=4)
    profiles_of(application, "odd")
    first = application.image.copy()
    profiles_of(application, "odd")
    assert np.array_equal(application.image, first)


def test_a_pixel_that_was_not_smoothed_fails_the_check() -> None:
    application = Srad({"rows": 20, "columns": 20}, seed=5)
    profiles_of(application, "odd")
    application.image[7, 8] = application.original[7, 8]
    with pytest.raises(CheckFailed, match=r"image: 1 of 400 values are wrong, first at \(7, 8\)"):
        application.check()
