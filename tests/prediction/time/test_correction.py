"""Corrections from similar launches fade with distance."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.prediction.time.launch_times import Correction
from crosscast.prediction.time.training_times import fit_correction, no_correction
from crosscast.prediction.time.work import TRAITS

K = len(TRAITS)
errors_of = st.lists(st.floats(-1.4, 1.4), min_size=2, max_size=8)


def fitted(errors: list[float]) -> Correction:
    """Launches one trait apart, each known well on GPUs."""
    n = len(errors)
    traits = np.zeros((n, K))
    traits[:, 0] = 5.0 * np.arange(n)
    names = [(f"application {k}", "kernel", "small") for k in range(n)]
    return fit_correction(traits, names, np.ones(n, np.int64), np.zeros(n), np.array(errors))


def corrected(correction: Correction, traits: Reals, kinds: list[int], memory: Reals) -> tuple[Reals, Reals]:
    return correction.of(correction.distances(traits), np.array(kinds), memory)


@given(errors_of)
def test_far_from_all_launches_nothing_is_corrected(errors: list[float]) -> None:
    shift, explained = corrected(fitted(errors), np.full((1, K), 1e3), [1], np.zeros((1, 1)))
    assert np.abs(shift).max() < 1e-6
    assert explained.max() < 1e-6


@given(errors_of)
def test_beside_a_launch_its_error_is_taken_in_part_and_more_on_its_own_kind(errors: list[float]) -> None:
    correction = fitted(errors)
    shift, explained = corrected(correction, correction.traits, [0, 1, 2], np.zeros((len(errors), 3)))
    assert (explained[:, 1] >= explained[:, 2]).all()
    assert (explained[:, 2] >= explained[:, 0]).all()
    assert ((explained >= 0) & (explained <= 1)).all()
    # Nothing is corrected by more than the largest error, and neighbours pull towards each other.
    assert np.abs(shift).max() <= np.abs(errors).max() + 1e-9


@given(errors_of, st.floats(0, 30))
def test_what_is_explained_falls_with_distance(errors: list[float], away: float) -> None:
    correction = fitted(errors)
    near, far = (np.full((1, K), -distance / np.sqrt(K)) for distance in (away, away + 1))
    _, of_near = corrected(correction, near, [1], np.zeros((1, 1)))
    _, of_far = corrected(correction, far, [1], np.zeros((1, 1)))
    assert of_near[0, 0] >= of_far[0, 0] - 1e-9


@given(errors_of)
def test_errors_of_launches_that_are_merely_similar_are_not_those_of_a_launch(errors: list[float]) -> None:
    """A distance of two is that of a lattice Boltzmann method from an FFT."""
    away = np.full((1, K), -2.0 / np.sqrt(K))
    shift, explained = corrected(fitted(errors), away, [1], np.zeros((1, 1)))
    assert np.abs(shift).max() <= 0.03 * np.abs(errors).max()
    assert explained.max() > 0.02


@given(errors_of, st.floats(0, 1))
def test_where_memory_takes_the_time_others_errors_say_less(errors: list[float], memory: float) -> None:
    correction = fitted(errors)
    without, explained = corrected(correction, correction.traits, [1], np.zeros((len(errors), 1)))
    some, same = corrected(correction, correction.traits, [1], np.full((len(errors), 1), memory))
    np.testing.assert_allclose(some, without * (1 - memory / 2))
    np.testing.assert_array_equal(explained, same)


def test_no_application_has_more_launches_than_the_most_that_count() -> None:
    traits = np.random.default_rng(0).normal(size=(100, K))
    names = [("one", "kernel", str(k)) for k in range(100)]
    assert len(fit_correction(traits, names, np.ones(100, np.int64), *np.zeros((2, 100))).names) == 25


def test_without_times_nothing_is_corrected() -> None:
    shift, explained = corrected(no_correction(), np.zeros((2, K)), [0, 1], np.zeros((2, 2)))
    assert not shift.any()
    assert not explained.any()
