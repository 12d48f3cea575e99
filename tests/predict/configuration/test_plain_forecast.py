"""A forecast without intervals says what was measured."""

import numpy as np
from made_surfaces import made_surfaces

from crosscast.predict.configuration.forecast import plain_forecast


def test_measured_values_stand_and_nothing_else_is_sure() -> None:
    surfaces = made_surfaces(2)
    predicted = np.full(12, 3.0)
    found = plain_forecast(predicted, 2 * predicted, surfaces.observed(1, [4, 7]))
    assert np.flatnonzero(found.measured).tolist() == [4, 7]
    np.testing.assert_array_equal(found.time.centre[[4, 7]], surfaces.time_s[1, [4, 7]])
    np.testing.assert_array_equal(found.power.centre[[4, 7]], surfaces.power_w[1, [4, 7]])
    np.testing.assert_array_equal(np.isnan(found.power.spread), ~found.measured)
    assert (np.delete(found.power.centre, [4, 7]) == 6.0).all()
    assert (predicted == 3.0).all()


def test_quantiles_are_the_centre_and_probabilities_certain() -> None:
    found = plain_forecast(np.ones(12), np.ones(12), made_surfaces(2).observed(0, [1]))
    np.testing.assert_array_equal(found.time.quantile(0.9), found.time.centre)
    assert set(found.power.probability_within(2.0)) <= {0.0, 1.0}
