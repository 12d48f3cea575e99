"""Predicting all devices of a kind together gives what the sum of the terms gives one by one."""

import numpy as np
import pytest
from made_grids import DEVICES, lawful_grid, profiles_of

from crosscast.arrays import Reals
from crosscast.predict.time.physical import (
    VARIANTS,
    Physical,
    PhysicalPredictor,
    bends,
    loads,
    quantities_of,
    standardized,
)


@pytest.fixture(scope="module")
def predictor() -> PhysicalPredictor:
    return Physical().fit(lawful_grid(), 0)


def term_by_term(predictor: PhysicalPredictor, rows: int) -> Reals:
    """The mean over the variants of the logarithm of the sum of their terms."""
    quantities = quantities_of(profiles_of("xyz", rows, seed=3))
    bent = standardized(bends(quantities), predictor.centre, predictor.scale)
    each = [
        prices.log_time(loads(quantities, predictor.gpu, variant), bent, predictor.acts)
        for variant, prices in zip(VARIANTS, predictor.prices, strict=True)
    ]
    mean: Reals = np.mean(each, axis=0)
    return mean


def test_together_is_what_it_is_term_by_term(predictor: PhysicalPredictor) -> None:
    found = predictor.log_time(profiles_of("xyz", 40, seed=3))
    assert found.shape == (120, len(DEVICES))
    np.testing.assert_allclose(found, term_by_term(predictor, 40), rtol=0, atol=1e-12)


def test_a_kernel_alone_is_what_it_is_among_others(predictor: PhysicalPredictor) -> None:
    profiles = profiles_of("xyz", 40, seed=3)
    together = predictor.log_time(profiles)
    alone = predictor.log_time(profiles.take(np.array([17])))
    np.testing.assert_allclose(alone[0], together[17], rtol=0, atol=1e-12)


def test_no_kernel_has_no_times(predictor: PhysicalPredictor) -> None:
    assert predictor.log_time(profiles_of("", 0)).shape == (0, len(DEVICES))
