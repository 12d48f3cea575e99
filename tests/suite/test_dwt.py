"""Wavelets: odd extents, pictures whose wavelets are known, and that the check sees a wrong one."""

import numpy as np
import pytest

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed
from crosscast.suite.dwt.driver import Dwt
from crosscast.suite.registry import profiles_of


@pytest.mark.parametrize("nbytes", [8 << 10, 50_001, 8 << 20])
def test_the_working_set_fills_what_was_asked_for(nbytes: int) -> None:
    assert 0.8 * nbytes < Dwt(Dwt.fit(nbytes), seed=0).nbytes <= nbytes


@pytest.mark.parametrize(
    ("height", "width"), [(1, 1), (1, 40), (37, 1), (2, 3), (32, 64), (33, 31), (34, 65), (67, 30)]
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
