"""Every baseline keeps the same promises."""

from typing import Any

import numpy as np
import pytest
from linear_machine import linear_samples, linear_surfaces
from made_surfaces import made_surfaces

from crosscast.errors import InputError
from crosscast.predict.configuration.baselines import (
    GaussianProcess,
    GlobalRegression,
    NearestKernels,
    changes_of,
)
from crosscast.predict.configuration.forecast import ConfigurationModel

MODELS: list[ConfigurationModel] = [NearestKernels(), GlobalRegression(), GaussianProcess()]
every_baseline = pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)


def test_changes_are_zero_at_the_samples_that_they_are_relative_to() -> None:
    surfaces = linear_surfaces()
    samples = linear_samples(surfaces.space)
    known = changes_of(surfaces, samples)
    np.testing.assert_array_equal(known.time[:, list(samples)], 0)
    np.testing.assert_array_equal(known.power[:, list(samples)], 0)
    cpu = surfaces.space.device_numbers == 0
    np.testing.assert_allclose(
        known.time[:, cpu], np.log(surfaces.time_s[:, cpu] / surfaces.time_s[:, [samples[0]]])
    )


@every_baseline
def test_measured_values_stand(model: ConfigurationModel) -> None:
    surfaces = made_surfaces(3, noise=0.1)
    observed = surfaces.observed(0, (5, 11, 0))
    found = model.fit(surfaces.take(np.arange(2, 6)), (11, 0)).forecast(observed)
    np.testing.assert_array_equal(found.time.centre[[5, 11, 0]], observed.time_s)
    np.testing.assert_array_equal(found.power.centre[[5, 11, 0]], observed.power_w)


@every_baseline
def test_a_sample_that_is_missing_is_named(model: ConfigurationModel) -> None:
    surfaces = made_surfaces(3)
    fitted = model.fit(surfaces, (11, 0))
    with pytest.raises(InputError, match="expected a run at node: cpu_cap_w 100, gpu_cap_w 250, found none"):
        fitted.forecast(surfaces.observed(0, (0, 4)))


@every_baseline
def test_no_kernel_with_all_samples_is_refused(model: ConfigurationModel) -> None:
    surfaces: Any = made_surfaces(2)
    surfaces.time_s[:, 0] = np.nan
    with pytest.raises(InputError, match="expected a kernel that ran at all samples"):
        model.fit(surfaces, (11, 0))


@every_baseline
def test_several_devices_are_predicted(model: ConfigurationModel) -> None:
    surfaces = linear_surfaces()
    samples = linear_samples(surfaces.space)
    found = model.fit(surfaces.take(np.arange(4)), samples).forecast(surfaces.observed(4, samples))
    assert np.abs(np.log(found.time.centre / surfaces.time_s[4])).max() < 0.7
