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
from support.refusals import refusal
from support.vectors import made_vectors, runs_with
from support.work import NAMES, changed, made_work

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


def test_it_is_half_way_between_random_and_boosted_trees() -> None:
    result = fitted()
    rows = result.boosted.features.transform(intensities_of(SEEN, result.base))
    forest = ExtraTreesRegressor(len(result.grown.root), max_features=0.15, random_state=0)
    log_relative = np.log(WORK.times_s) - np.log(WORK.times_s).mean(axis=1, keepdims=True)
    forest.fit(rows, log_relative, sample_weight=kernel_weights(SEEN))
    boosted = np.log(result.boosted.predict_features(rows))
    boosted -= boosted.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(result.log_relative(SEEN), (forest.predict(rows) + boosted) / 2, atol=1e-9)


def test_runs_between_which_nothing_differs_are_refused() -> None:
    with pytest.raises(InputError, match=r"^counters: expected some that differ between 1 runs, found none "):
        fit(WORK.rows(np.array([0])))
    same = Vectors(
        replace(runs_with({"odd": 1.0}, {"odd": 1.0}), time_s=np.full(2, np.nan)),
        ("cpu", "gpu"),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
    )
    assert refusal(fit, same).startswith("counters: expected some that differ between 2 runs")


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


def test_without_amounts_of_work_there_are_trees_alone() -> None:
    vectors = made_vectors(applications=4)
    fitted = few(vectors, 0)
    assert fitted.prices is None
    assert (fitted.share, fitted.anchored) == (0, False)
    assert (fitted.predict(vectors.observations).max(axis=1) == 1).all()


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
    assert fit_blend(WORK, 0, brief, brief).mean is None
