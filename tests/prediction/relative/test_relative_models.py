"""All models of relative performance: laws that they share, and what each is by itself."""

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import xgboost
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.relative import (
    RelativeModel,
    Vectors,
    models,
    nichols2024,
)
from crosscast.prediction.relative.nichols2024 import fit_features
from crosscast.prediction.trees import both_sides, trees_of_booster
from support.examples import examples
from support.refusals import refusal
from support.vectors import made_profile_vectors, made_vectors, runs_with
from support.work import NAMES, changed, made_work

VECTORS = made_vectors(applications=6)
COUNTED_MODELS = (
    nichols2024.PublishedMean(),
    nichols2024.LogMean(),
    nichols2024.PublishedLinear(),
    nichols2024.PublishedVectorForest(trees=10),
    nichols2024.PublishedXGBoost(rounds=10),
    nichols2024.PublishedXGBoost(rounds=10, selected=2),
    models.IntensityTrees(trees=20),
)
each_model = pytest.mark.parametrize("model", COUNTED_MODELS, ids=lambda model: model.name)


@each_model
def test_a_run_is_predicted_alone_as_among_others(model: RelativeModel) -> None:
    fitted = model.fit(VECTORS, 0)
    whole = fitted.predict(VECTORS.observations)
    alone = fitted.predict(VECTORS.observations.rows(np.array([5])))
    np.testing.assert_array_equal(alone[0], whole[5])


@pytest.mark.parametrize("model", [*COUNTED_MODELS, models.CombinedRelative()], ids=lambda model: model.name)
def test_nothing_can_be_learned_from_nothing(model: RelativeModel) -> None:
    with pytest.raises(InputError, match=f"^{model.name}: expected a run to learn from, found none"):
        model.fit(VECTORS.rows(np.array([], dtype=np.int64)), 0)


@pytest.mark.parametrize(
    ("model", "published"),
    [
        (nichols2024.PublishedLinear(), LinearRegression()),
        (nichols2024.PublishedVectorForest(trees=10), RandomForestRegressor(10, random_state=3)),
    ],
)
def test_it_is_that_of_scikit_learn(model: RelativeModel, published: Any) -> None:
    rows = fit_features(VECTORS.observations, fill=True).transform(VECTORS.observations)
    reference = np.maximum(published.fit(rows, VECTORS.vector).predict(rows), VECTORS.vector.min())
    np.testing.assert_allclose(model.fit(VECTORS, 3).predict(VECTORS.observations), reference, rtol=1e-9)


def boosted(rows: Reals, vector: Reals, rounds: int = 25) -> xgboost.Booster:
    settings = {"objective": "reg:absoluteerror", "max_depth": 6, "eta": 0.1, "nthread": 1, "seed": 2}
    settings["tree_method"] = "hist"
    data = xgboost.DMatrix(rows.astype(np.float32), label=vector, nthread=1)
    return xgboost.train(settings, data, num_boost_round=rounds)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_boosted_trees_as_arrays_predict_as_xgboost_does(share: float) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 5))
    rows[rng.random(rows.shape) < share] = np.nan
    vector = np.exp(np.nan_to_num(rows[:, :3]) - np.isnan(rows[:, 1:4]))
    booster = boosted(rows, vector)
    queries = rng.normal(size=(400, 5))
    queries[rng.random(queries.shape) < 0.3] = np.nan
    # Numbers on which splits are, too.
    queries[:300] = np.where(rng.random(rows.shape) < 0.5, rows, queries[:300])
    reference = booster.predict(xgboost.DMatrix(queries.astype(np.float32), nthread=1))
    predicted = trees_of_booster(booster, 3).sum(both_sides(queries))
    np.testing.assert_allclose(predicted, reference, rtol=2e-5, atol=2e-5)


def test_nothing_is_predicted_below_what_was_learned_from() -> None:
    """Far from the training, a line goes below 0, where no ratio of times is."""
    seen = VECTORS.observations
    far = replace(seen, counters=seen.counters * np.array([1, 1e-3, 1e3, 1e3]))
    assert nichols2024.PublishedLinear().fit(VECTORS).predict(far).min() == VECTORS.vector.min()


PROFILES = made_profile_vectors()
SEEN = PROFILES.observations


def test_counters_of_a_device_and_profiles_without_a_metric_that_times_need_are_refused() -> None:
    assert models.are_profiles(SEEN)
    for none in (
        VECTORS.observations,
        replace(SEEN, source=("cpu", *SEEN.source[1:])),
        replace(SEEN, names=("odd", *SEEN.names[1:])),
    ):
        assert not models.are_profiles(none)
    fitted = models.CombinedRelative().fit(PROFILES, 0)
    assert isinstance(fitted, models.ByTimesPredictor)
    counted = refusal(fitted.predict, runs_with({"PAPI_TOT_INS": 1.0}))
    assert counted.startswith("profile: expected architecture-independent profiles")
    counters = np.where(np.array(SEEN.names) == "total_instruction_count", np.nan, SEEN.counters)
    lacking = replace(SEEN, counters=counters)
    assert "total_instruction_count" in refusal(fitted.predict, lacking)
    assert "total_instruction_count" in refusal(
        models.CombinedRelative().fit, replace(PROFILES, observations=lacking), 0
    )


MOST = 120


def with_counts(counts: list[int]) -> Vectors:
    """So many runs of each kernel."""
    vectors = made_work(kernels=1, sizes=sum(counts))
    names = tuple(f"kernel{index}" for index, count in enumerate(counts) for _ in range(count))
    return replace(vectors, observations=replace(vectors.observations, kernel=names))


@given(st.lists(st.integers(1, 400), min_size=1, max_size=4))
def test_kernels_have_no_more_than_so_many_rows_spread_evenly_by_length(counts: list[int]) -> None:
    vectors = with_counts(counts)
    rows = models.spread_rows(vectors, MOST)
    taken = Counter(rows.observations.kernel)
    assert [taken[f"kernel{index}"] for index in range(len(counts))] == [min(count, MOST) for count in counts]
    # None is taken twice.
    assert len({tuple(row) for row in rows.observations.counters.tolist()}) == len(rows)
    kernel = np.array(vectors.observations.kernel) == "kernel0"
    lengths, own = (
        np.sort(np.log(each).mean(axis=1))
        for each in (vectors.times_s[kernel], rows.times_s[np.array(rows.observations.kernel) == "kernel0"])
    )
    ranks = np.searchsorted(lengths, own)
    assert (ranks[0], ranks[-1]) == (0, counts[0] - 1)
    steps = np.diff(ranks)
    assert not len(steps) or steps.max() - steps.min() <= 1


WORK = made_work(kernels=9, sizes=3, noise=0.1)
OBSERVED = WORK.observations


def few(vectors: Vectors) -> models.BlendPredictor:
    return models.fit_blend(vectors, 0, models.Effort(20, 100, 0.1), models.Effort(10, 40, 0.25))


@cache
def fitted_blend() -> models.BlendPredictor:
    return few(WORK)


@examples(30)
@given(st.data())
def test_vectors_are_above_0_and_their_largest_entry_is_1_whatever_is_missing(data: st.DataObject) -> None:
    values = st.one_of(st.just(np.nan), st.just(0.0), st.floats(1e-3, 1e15))
    counters = data.draw(st.lists(values, min_size=len(NAMES), max_size=len(NAMES)))
    time_s = data.draw(st.one_of(st.just(np.nan), st.floats(1e-9, 1e6)))
    source = data.draw(st.sampled_from(["cpu", "gpu", "other", "none"]))
    seen = replace(
        OBSERVED.rows(np.array([0])),
        counters=np.array([counters]),
        time_s=np.array([time_s]),
        source=(source,),
    )
    for predictor in (fitted_blend(), replace(fitted_blend(), share=1.0, anchored=True)):
        forecast = predictor.predict(seen)
        assert (forecast > 0).all()
        assert forecast.max(axis=1).tolist() == [1]


def test_counters_that_neither_trees_nor_prices_know_are_named() -> None:
    seen = runs_with({"Bytes/Rep": 3.0, "launch__thread_count": 8.0, "odd": 1.0, "PAPI_TOT_INS": 1.0})
    assert fitted_blend().unknown_counters(seen) == ("odd", "PAPI_TOT_INS")


def test_a_few_kernels_are_enough_and_one_that_lacks_an_amount_does_not_spoil_the_mix() -> None:
    """A kernel left out of two leaves one run, from which nothing differs."""
    for kernels in (1, 2):
        fitted = few(made_work(kernels=kernels, sizes=3 - kernels))
        assert (fitted.predict(OBSERVED).max(axis=1) == 1).all()
        assert (fitted.share, fitted.anchored) == (0.5, True)
    done = OBSERVED.counters[:, 1].copy()
    done[:3] = np.nan
    fitted = few(replace(WORK, observations=changed(OBSERVED, flops=done)))
    assert fitted.prices is not None and fitted.prices.prices[2].tolist() == [0, 0]
    assert 0 < fitted.share < 1 and fitted.share != 0.5


def test_where_times_are_chance_the_mean_of_the_logarithms_is_predicted() -> None:
    chance = replace(WORK, times_s=np.exp(np.random.default_rng(0).normal(0, 1, WORK.times_s.shape)))
    brief = models.Effort(20, 10, 0.3)
    fitted = models.fit_blend(chance, 0, brief, brief)
    np.testing.assert_allclose(fitted.predict(OBSERVED), nichols2024.LogMean().fit(chance).predict(OBSERVED))
    assert models.fit_blend(WORK, 0, brief, brief).mean is None
