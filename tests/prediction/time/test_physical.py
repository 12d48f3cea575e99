"""Quantities are what their names say, and what is missing is named."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import logsumexp

from crosscast.arrays import Reals
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.time.physical import (
    VARIANTS,
    Data,
    Physical,
    PhysicalPredictor,
    fit_coefficients,
    loads,
    log_sum,
    modifiers_of,
    quantities_of,
    standardized,
)
from crosscast.profile import METRICS
from support.grids import DEVICES, lawful_grid, profiles_of

NAMES = [each.name for each in METRICS]
VALUES = {
    "opcode": 7,
    "total_instruction_count": 4000,
    "work_items": 100,
    "total_barriers_hit": 200,
    "max_itb": 90,
    "total_memory_footprint": 900,
    "footprint_90": 800,
    "global_memory_address_entropy": 9.0,
} | {f"local_memory_address_entropy_{bits}": 9.0 - max(0, bits - 2) for bits in range(1, 11)}


def profile(**changes: float) -> ProfileBatch:
    metrics = np.full((1, len(METRICS)), np.nan)
    for name, value in (VALUES | changes).items():
        metrics[0, NAMES.index(name)] = value
    return ProfileBatch(("app",), ("saxpy",), ("tiny",), metrics, np.array([2]))


def test_each_quantity_is_worked_out_by_hand() -> None:
    quantities = quantities_of(profile())
    assert quantities.per_item == 40
    assert quantities.critical_path == 90
    assert quantities.barriers == 2
    assert quantities.addresses_per_item == 8
    assert quantities.repetition == pytest.approx(np.log(2))
    assert quantities.locality == pytest.approx(8 / 9)
    # Elements of four bytes leave two address bits still, those of one byte none.
    assert quantities.bytes == 800 * 4
    entropies = {f"local_memory_address_entropy_{bits}": 9.0 - bits for bits in range(1, 10)}
    assert quantities_of(profile(**entropies, local_memory_address_entropy_10=0.0)).bytes == 800
    # Where barriers cut the longest work-item short, the mean is the critical path.
    assert quantities_of(profile(max_itb=5)).critical_path == 40
    # What is done a hundred times is done often.
    often = replace(profile(), invocations=np.array([100])), replace(profile(), invocations=np.array([1000]))
    assert [quantities_of(each).repetition for each in often] == [pytest.approx(3)] * 2
    limited = standardized(np.array([[-100.0], [0.0], [3.0]]), np.zeros(1), np.ones(1))
    assert limited.ravel().tolist() == [-2.5, 0.0, 2.5]


def data(log_time: Reals, loads: Reals, groups: list[int]) -> Data:
    n = len(log_time)
    return Data(
        loads, np.zeros((n, 0)), np.zeros((0, *loads.shape[1:])), log_time, np.ones(n), np.array(groups)
    )


@given(arrays.arrays(np.float64, (3, 4, 2), elements=st.floats(-50, 50)))
def test_the_logarithm_of_a_sum_is_scipys(parts: Reals) -> None:
    total, shares = log_sum(parts)
    np.testing.assert_allclose(total, logsumexp(parts, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_a_device_without_times_gets_the_coefficients_of_its_group() -> None:
    rng = np.random.default_rng(1)
    work = rng.uniform(0, 12, 50)
    loads = np.repeat(np.stack([np.zeros(50), work], 1)[:, :, None], 3, axis=2)
    time, _ = log_sum(loads + np.array([[1.0, 1.0, 4.0], [-5.0, -5.0, -2.0]]))
    time[:, 1] = np.nan
    terms, _ = fit_coefficients(data(time, loads, [0, 0, 1]), 0.5)
    alike, unknown, other = terms.T
    assert (np.abs(unknown - alike) < 0.3 * np.abs(unknown - other)).all()


@pytest.fixture(scope="module")
def predictor() -> PhysicalPredictor:
    return Physical().fit(lawful_grid(), 0)


def term_by_term(predictor: PhysicalPredictor, rows: int) -> Reals:
    """The mean over the variants of the logarithm of the sum of their terms."""
    quantities = quantities_of(profiles_of("xyz", rows, seed=3))
    modifiers = standardized(modifiers_of(quantities), predictor.centre, predictor.scale)
    each = [
        log_sum(
            loads(quantities, predictor.gpu, variant.form)
            + terms
            + np.tensordot(modifiers * strengths, predictor.masks, 1)
        )[0]
        for variant, terms, strengths in zip(VARIANTS, predictor.terms, predictor.strengths, strict=True)
    ]
    mean: Reals = np.mean(each, axis=0)
    return mean


def test_together_is_what_it_is_term_by_term(predictor: PhysicalPredictor) -> None:
    predicted = predictor.log_time(profiles_of("xyz", 40, seed=3))
    assert predicted.shape == (120, len(DEVICES))
    np.testing.assert_allclose(predicted, term_by_term(predictor, 40), rtol=0, atol=1e-12)
    alone = predictor.log_time(profiles_of("xyz", 40, seed=3).take(np.array([17])))
    np.testing.assert_allclose(alone[0], predicted[17], rtol=0, atol=1e-12)
    assert predictor.log_time(profiles_of("", 0)).shape == (0, len(DEVICES))
