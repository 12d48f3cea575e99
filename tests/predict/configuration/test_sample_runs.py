"""Samples are found, and a run that is missing or makes no sense is named."""

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.errors import InputError
from crosscast.predict.configuration.data import Observed, sample_places, sampled


def test_runs_are_found_in_the_order_of_the_samples() -> None:
    surfaces = made_surfaces(2)
    assert sample_places(surfaces.space, (11, 0), surfaces.observed(0, [0, 5, 11])) == [2, 0]


def test_a_sample_without_a_run_is_named() -> None:
    surfaces = made_surfaces(2)
    with pytest.raises(InputError, match="expected a run at node: cpu_cap_w 100, gpu_cap_w 250, found none"):
        sample_places(surfaces.space, (0, 11), surfaces.observed(0, [0, 5]))


@pytest.mark.parametrize("what", ["time", "power"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_sample_of_no_positive_value_is_refused(what: str, value: float) -> None:
    wrong, right = np.array([value]), np.array([1.0])
    time, power = (wrong, right) if what == "time" else (right, wrong)
    with pytest.raises(InputError, match=f"expected a {what} above 0 at node"):
        sample_places(made_surfaces(2).space, (3,), Observed(np.array([3]), time, power))


def test_kernels_that_lack_a_sample_are_left_out() -> None:
    surfaces = made_surfaces(2)
    surfaces.time_s[1, 11] = surfaces.power_w[1, 11] = np.nan
    assert sampled(surfaces, (0, 11)).kernels == (surfaces.kernels[0], *surfaces.kernels[2:])


def test_no_kernel_with_all_samples_is_refused() -> None:
    surfaces = made_surfaces(2)
    surfaces.time_s[:, 11] = np.nan
    with pytest.raises(InputError, match="made up: expected a kernel that ran at all samples"):
        sampled(surfaces, (0, 11))


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match="samples: expected at least one"):
        sampled(made_surfaces(2), ())
