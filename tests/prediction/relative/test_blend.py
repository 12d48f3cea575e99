"""Rows to learn from: kernels weigh the same, and none has more than so many."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import ExtraTreesRegressor

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.relative.counters import intensities_of
from crosscast.prediction.relative.data import Vectors, kernel_weights, relative_to_slowest
from crosscast.prediction.relative.models import (
    BlendPredictor,
    Effort,
    MixedTrees,
    fit_blend,
    fit_trees,
    spread_rows,
)
from crosscast.prediction.relative.nichols2024 import LogMean
from support.examples import examples
from support.vectors import made_vectors, runs_with
from support.work import NAMES, changed, made_work, reordered

MOST = 120


def with_counts(counts: list[int]) -> Vectors:
    """So many runs of each kernel."""
    vectors = made_work(kernels=1, sizes=sum(counts))
    names = tuple(f"kernel{index}" for index, count in enumerate(counts) for _ in range(count))
    return replace(vectors, observations=replace(vectors.observations, kernel=names))


@given(st.lists(st.integers(1, 400), min_size=1, max_size=4))
def test_kernels_have_no_more_than_so_many_rows(counts: list[int]) -> None:
    rows = spread_rows(with_counts(counts), MOST).observations
    taken = Counter(rows.kernel)
    assert [taken[f"kernel{index}"] for index in range(len(counts))] == [min(count, MOST) for count in counts]
    # None is taken twice.
    assert len({tuple(row) for row in rows.counters.tolist()}) == len(rows)


@given(count=st.integers(MOST + 1, 1500))
def test_rows_are_spread_evenly_from_the_shortest_to_the_longest(count: int) -> None:
    vectors = with_counts([count])
    length = np.log(vectors.times_s).mean(axis=1)
    rows = spread_rows(vectors, MOST)
    ranks = np.sort(np.searchsorted(np.sort(length), np.log(rows.times_s).mean(axis=1)))
    assert (len(ranks), ranks[0], ranks[-1]) == (MOST, 0, count - 1)
    steps = np.diff(ranks)
    assert steps.max() - steps.min() <= 1


WORK = made_work(kernels=9, sizes=3, noise=0.1)
SEEN = WORK.observations


def fit(vectors: Vectors, seed: int = 0) -> MixedTrees:
    return fit_trees(vectors, seed, Effort(60, 100, 0.1))


@cache
def fitted() -> MixedTrees:
    return fit(WORK)


def predicted(blend: MixedTrees) -> Reals:
    return blend.log_relative(SEEN)


def test_it_is_half_way_between_random_and_boosted_trees() -> None:
    result = fitted()
    rows = result.boosted.features.transform(intensities_of(SEEN, result.base))
    forest = ExtraTreesRegressor(len(result.grown.root), max_features=0.15, random_state=0)
    log_relative = np.log(WORK.times_s) - np.log(WORK.times_s).mean(axis=1, keepdims=True)
    forest.fit(rows, log_relative, sample_weight=kernel_weights(SEEN))
    boosted = np.log(result.boosted.predict_features(rows))
    boosted -= boosted.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(predicted(result), (forest.predict(rows) + boosted) / 2, atol=1e-9)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_missing_counters_never_give_what_is_not_a_number(share: float) -> None:
    rng = np.random.default_rng(1)
    counters = np.where(rng.random(SEEN.counters.shape) < share, np.nan, SEEN.counters)
    seen = replace(SEEN, counters=counters, time_s=np.where(rng.random(len(SEEN)) < share, np.nan, 1.0))
    predicted = fit(replace(WORK, observations=seen)).log_relative(seen)
    assert np.isfinite(predicted).all()
    assert np.isfinite(fitted().log_relative(seen)).all()
    np.testing.assert_allclose(predicted.sum(axis=1), 0, atol=1e-9)


def test_a_run_is_predicted_by_the_base_of_the_training_whatever_it_tells_itself() -> None:
    """Alone it has no instructions, and shares of its items would mean other things to the trees."""
    both = np.column_stack([SEEN.counters, 50 * SEEN.counters[:, 2]])
    seen = replace(SEEN, names=(*NAMES, "inst_executed"), counters=both)
    fitted = fit(replace(WORK, observations=seen))
    assert fitted.base == "instructions"
    some = changed(seen, inst=np.where(np.arange(len(seen)) == 5, np.nan, both[:, -1]))
    alone = fitted.log_relative(some.rows(np.array([5])))
    np.testing.assert_array_equal(alone[0], fitted.log_relative(some)[5])


def test_runs_between_which_nothing_differs_are_refused() -> None:
    with pytest.raises(InputError, match=r"^counters: expected some that differ between 1 runs, found none "):
        fit(WORK.rows(np.array([0])))
    same = Vectors(
        replace(runs_with({"odd": 1.0}, {"odd": 1.0}), time_s=np.full(2, np.nan)),
        ("cpu", "gpu"),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
    )
    with pytest.raises(InputError, match=r"^counters: expected some that differ between 2 runs"):
        fit(same)


def test_counters_that_nothing_is_learned_from_are_named() -> None:
    seen = runs_with({"Bytes/Rep": 3.0, "launch__thread_count": 8.0, "odd": 1.0, "PAPI_TOT_INS": 1.0})
    assert fitted_blend().unknown_counters(seen) == ("odd", "PAPI_TOT_INS")


def few(vectors: Vectors, seed: int = 0) -> BlendPredictor:
    return fit_blend(vectors, seed, Effort(20, 100, 0.1), Effort(10, 40, 0.25))


@cache
def fitted_blend() -> BlendPredictor:
    return few(WORK, 0)


def with_mix(share: float, anchored: bool) -> BlendPredictor:
    return replace(fitted_blend(), share=share, anchored=anchored)


@examples(30)
@given(st.data())
def test_vectors_are_above_0_and_their_largest_entry_is_1_whatever_is_missing(data: st.DataObject) -> None:
    values = st.one_of(st.just(np.nan), st.just(0.0), st.floats(1e-3, 1e15))
    counters = data.draw(st.lists(values, min_size=len(NAMES), max_size=len(NAMES)))
    time_s = data.draw(st.one_of(st.just(np.nan), st.floats(1e-9, 1e6)))
    source = data.draw(st.sampled_from(["cpu", "gpu", "other", "none"]))
    seen = replace(
        SEEN.rows(np.array([0])), counters=np.array([counters]), time_s=np.array([time_s]), source=(source,)
    )
    for predictor in (fitted_blend(), with_mix(1.0, True)):
        forecast = predictor.predict(seen)
        assert (forecast > 0).all()
        assert forecast.max(axis=1).tolist() == [1]


def test_it_is_the_weighted_mean_of_the_logarithms_of_its_parts() -> None:
    trees = fitted_blend().trees.log_relative(SEEN)
    prices = fitted_blend().prices
    assert prices is not None
    for anchored in (False, True):
        expected = np.exp(0.75 * trees + 0.25 * prices.log_relative(SEEN, anchored=anchored))
        np.testing.assert_allclose(with_mix(0.25, anchored).predict(SEEN), relative_to_slowest(expected))
    assert not np.allclose(with_mix(0.25, False).predict(SEEN), with_mix(0.25, True).predict(SEEN))


def test_a_run_without_amounts_is_left_to_the_trees() -> None:
    moved = SEEN.counters[:, 0].copy()
    moved[4] = np.nan
    seen = changed(SEEN, bytes=moved)
    forecast = with_mix(0.6, False).predict(seen)
    trees = relative_to_slowest(np.exp(fitted_blend().trees.log_relative(seen)))
    np.testing.assert_allclose(forecast[4], trees[4])
    assert not np.allclose(forecast[3], trees[3])


def test_where_sums_tell_the_truth_they_have_most_of_the_share() -> None:
    fitted = fitted_blend()
    assert fitted.share > 0.8
    assert np.abs(fitted.predict(SEEN) - WORK.vector).mean() < 0.03


def test_where_sums_tell_nothing_trees_have_most_of_the_share() -> None:
    """How much memory binds decides, of which amounts of work say nothing."""
    bound = SEEN.counters[:, -1]
    rng = np.random.default_rng(2)
    amounts = 10 ** rng.uniform(3, 6, (len(SEEN), 2))
    seen = changed(SEEN, bytes=amounts[:, 0], flops=amounts[:, 1], iterations=1e3, kernels=1.0)
    times_s = np.column_stack([np.full(len(SEEN), 1e-3), 1e-3 * np.exp(6 * bound - 3)])
    seen = replace(seen, time_s=times_s[:, 0])
    assert few(Vectors(seen, WORK.devices, times_s)).share < 0.4


def test_own_times_are_taken_where_they_tell_more() -> None:
    """All sums are wrong by the same on the CPU as on the GPU, or each by its own."""
    rng = np.random.default_rng(3)
    wrong = np.repeat(np.exp(rng.normal(0, 1.5, 9)), 3)
    together, apart = WORK.times_s * wrong[:, np.newaxis], WORK.times_s.copy()
    apart[:, 0] *= wrong
    anchored = [
        few(Vectors(replace(SEEN, time_s=times_s[:, 0]), WORK.devices, times_s)).anchored
        for times_s in (together, apart)
    ]
    assert anchored == [False, True]


def test_without_amounts_of_work_there_are_trees_alone() -> None:
    vectors = made_vectors(applications=4)
    fitted = few(vectors, 0)
    assert fitted.prices is None
    assert (fitted.share, fitted.anchored) == (0, False)
    assert (fitted.predict(vectors.observations).max(axis=1) == 1).all()


def test_the_order_of_counters_does_not_matter_to_the_blend() -> None:
    turned = few(replace(WORK, observations=reordered(SEEN, [3, 1, 4, 0, 2])), 0)
    np.testing.assert_array_equal(turned.predict(SEEN), fitted_blend().predict(SEEN))


def test_kernels_are_left_out_alike_in_whatever_order_rows_are() -> None:
    order = np.random.default_rng(1).permutation(len(WORK))
    fitted = few(WORK.rows(order), 0)
    assert fitted.anchored == fitted_blend().anchored
    assert fitted.share == pytest.approx(fitted_blend().share, abs=0.02)


def test_the_same_rows_and_seed_give_the_same_blend_and_another_seed_other_trees() -> None:
    again = few(WORK, 0).state()
    assert again.keys() == fitted_blend().state().keys()
    assert all(np.array_equal(array, again[name]) for name, array in fitted_blend().state().items())
    other = fit(WORK, 4).grown.split_threshold
    # Rows that they were fitted to are told alike by all.
    assert not np.array_equal(fitted().grown.split_threshold, other)


@pytest.mark.parametrize("kernels", [1, 2, 3])
def test_a_few_kernels_are_enough(kernels: int) -> None:
    """A kernel left out of two leaves one run, from which nothing differs."""
    made = made_work(kernels=kernels, sizes=2 if kernels == 1 else 1)
    fitted = few(made)
    assert (fitted.predict(SEEN).max(axis=1) == 1).all()
    if kernels < 3:
        assert (fitted.share, fitted.anchored) == (0.5, True)


def test_a_kernel_that_alone_lacks_an_amount_does_not_spoil_the_mix() -> None:
    done = SEEN.counters[:, 1].copy()
    done[:3] = np.nan
    fitted = few(replace(WORK, observations=changed(SEEN, flops=done)), 0)
    assert fitted.prices is not None
    assert fitted.prices.prices[2].tolist() == [0, 0]
    assert 0 < fitted.share < 1
    assert fitted.share != 0.5


def test_where_times_are_chance_the_mean_of_the_logarithms_is_predicted() -> None:
    chance = replace(WORK, times_s=np.exp(np.random.default_rng(0).normal(0, 1, WORK.times_s.shape)))
    brief = Effort(20, 10, 0.3)
    fitted = fit_blend(chance, 0, brief, brief)
    np.testing.assert_allclose(fitted.predict(SEEN), LogMean().fit(chance).predict(SEEN))
    again = BlendPredictor.from_state(fitted.state())
    np.testing.assert_array_equal(again.predict(SEEN), fitted.predict(SEEN))
    assert fit_blend(WORK, 0, brief, brief).mean is None
