"""Models of jobs on parts of a GPU: features counted by hand, folds, learners and intervals."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.kernel_ridge import KernelRidge

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.corun.partition import (
    NOVELTIES,
    PARTITION_MODELS,
    WAYS,
    Effort,
    FittedPartition,
    Novelty,
    PartitionModel,
    Rows,
    features_of,
    fit_blend,
    fit_forest,
    fit_mean,
    fit_ridge,
    fit_tree_median,
    folds_within,
    folds_without_jobs,
    sample,
)
from support.mixes import made_mixes

SHARED = hnp.arrays(np.float64, (2, 4, 3), elements=st.floats(0.01, 1.0))
ALL = np.ones((2, 4), dtype=np.bool_)
NEW = made_mixes(mixes=40, seed=1)
FEW = Effort(12, 60, 50)


def test_features_of_two_co_runners_are_as_counted_by_hand() -> None:
    shared = np.exp([[[-1.0, 0.0], [-3.0, 0.0], [-2.0, 0.0]]])
    found = features_of(shared, np.array([[True, True, False]]))
    #       own          mean           max           min          deviation   judged
    first = [-0.5, 0.5, -1.25, 1.25, -1.0, 1.5, -1.5, 1.0, 0.25, 0.25, 2 / 3]
    second = [-1.5, 1.5, -0.75, 0.75, -0.5, 1.0, -1.0, 0.5, 0.25, 0.25, 2 / 3]
    np.testing.assert_allclose(found, [first, second], atol=1e-12)


@given(SHARED, st.permutations([1, 2, 3]))
@settings(max_examples=30, deadline=None)
def test_the_order_of_the_others_does_not_matter(shared: Reals, order: list[int]) -> None:
    first = np.zeros_like(ALL)
    first[:, 0] = True
    turned = shared[:, [0, *order]]
    np.testing.assert_array_equal(features_of(turned, first), features_of(shared, first))


@given(SHARED, hnp.arrays(np.float64, (2, 4, 1), elements=st.floats(0.1, 10)))
@settings(max_examples=30, deadline=None)
def test_times_matter_relative_to_each_other_alone(shared: Reals, factor: Reals) -> None:
    np.testing.assert_allclose(features_of(shared * factor, ALL), features_of(shared, ALL), atol=1e-9)


def test_what_is_no_mix_is_refused() -> None:
    shared = np.full((2, 4, 3), 0.5)
    for wrong, judged in ((shared, ALL[:, :3]), (shared[:, :1], ALL[:, :1]), (shared[0], ALL)):
        with pytest.raises(InputError, match=r"expected the shape \(n, k, l\)"):
            features_of(wrong, judged)
    for value in (0.0, -1.0, np.nan, np.inf):
        shared[1, 2, 0] = value
        with pytest.raises(InputError, match=f"expected times above 0, found {value:g}"):
            features_of(shared, ALL)


@pytest.mark.parametrize("novelty", NOVELTIES)
def test_every_judged_co_runner_is_left_out_once(novelty: Novelty) -> None:
    mixes = made_mixes(jobs=3) if novelty == "known jobs" else made_mixes()
    folds = folds_within(mixes, novelty, 0)
    np.testing.assert_array_equal(np.sum([fold.test for fold in folds], axis=0), mixes.judged)
    for fold in folds:
        assert not fold.test[fold.train].any()
        if novelty == "known jobs":
            assert not np.isin(mixes.job_set[fold.train], mixes.job_set[~fold.train]).any()
        else:
            tested = np.unique(mixes.job[fold.test])
            assert len(tested)
            assert not np.isin(mixes.job[fold.train], tested).any()


def test_of_many_co_runners_some_are_left_out() -> None:
    folds = folds_within(made_mixes(jobs=2, mixes=1500, members=2), "new job", 0)
    assert [int(fold.test.sum()) for fold in folds] == [400, 400]


def test_too_little_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 sets of jobs, found 1"):
        folds_within(made_mixes(mixes=1), "known jobs", 0)
    with pytest.raises(InputError, match="at least 2 jobs to learn from, found 1"):
        folds_within(made_mixes(jobs=1), "new job", 0)
    with pytest.raises(InputError, match="expected mixes without job 1, job 2 to learn from, found none"):
        folds_without_jobs(made_mixes(jobs=2), [np.array([1, 2])])


@cache
def fitted(name: str, novelty: Novelty = "new job") -> FittedPartition:
    return PartitionModel(name, novelty).fit(made_mixes(), 0)


def rows(seed: int = 0) -> Rows:
    random = np.random.default_rng(seed)
    features = random.normal(size=(80, 11))
    return features, random.uniform(0.2, 1, (80, 3)) * (1 + features[:, :1] > 0.5)


@pytest.mark.parametrize("novelty", NOVELTIES)
def test_a_law_is_learned(novelty: Novelty) -> None:
    found = [fitted(name, novelty).predict(NEW.shared, NEW.judged) for name in PARTITION_MODELS]
    mean, forest, own = (float(np.abs(each.centre - NEW.alone[NEW.judged]).mean()) for each in found)
    assert forest < mean / 3
    assert own < mean / 6


def test_a_new_job_between_others_is_predicted() -> None:
    mixes = made_mixes()
    without = ~np.asarray((mixes.job == 2).any(axis=1))
    model = PartitionModel("partition", "new job").fit(mixes.where(without), 0)
    asked = mixes.where(~without)
    new = asked.job[asked.judged] == 2
    wrong = np.abs(model.predict(asked.shared, asked.judged).centre - asked.alone[asked.judged])[new]
    # The next jobs are 0.08 away from it, their mean 0.16.
    assert wrong[:, 0].mean() < 0.04


def test_a_seed_makes_a_model_and_few_rows_are_all_taken() -> None:
    once, again, other = (PartitionModel("partition", "known jobs").fit(NEW, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(once.errors, again.errors)
    first, second = (each.predict(NEW.shared, NEW.judged).centre for each in (once, again))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(other.errors, once.errors)
    given = rows()
    assert sample(given, 80, 0) is given
    assert [len(each) for each in sample(given, 79, 0)] == [79, 79]


def test_intervals_hold_as_often_as_asked_for_and_grow_with_it() -> None:
    true = NEW.alone[NEW.judged]
    for name in PARTITION_MODELS:
        found = [fitted(name, "known jobs").predict(NEW.shared, NEW.judged, level) for level in (0.5, 0.9)]
        held = [float(((each.low <= true) & (true <= each.high)).mean()) for each in found]
        assert held[1] > 0.85
        assert ((found[0].low >= found[1].low) & (found[0].high <= found[1].high)).all()
        assert -1e-6 < found[1].low.min() <= found[1].high.max() < 1 + 1e-6


def test_half_widths_are_the_conformal_quantile_of_each_part() -> None:
    errors = np.column_stack([np.arange(1, 10) / 10, np.arange(9, 0, -1) / 100])
    model = FittedPartition((100.0,), fitted("mean").fitted, errors)
    np.testing.assert_allclose(model.half_width(0.9), [0.9, 0.09])
    np.testing.assert_allclose(model.half_width(0.8), [0.8, 0.08])
    # More than nine errors can tell: the largest.
    np.testing.assert_allclose(model.half_width(0.99), [0.9, 0.09])


def test_trees_propose_and_their_median_is_taken_as_scikit_learn_would_give_it() -> None:
    given, asked = rows(), rows(1)[0]
    forest = ExtraTreesRegressor(FEW.trees, random_state=3).fit(*sample(given, FEW.tree_rows, 3))
    singles = asked.astype(np.float32)
    expected = np.median([tree.predict(singles) for tree in forest.estimators_], axis=0)
    np.testing.assert_allclose(fit_tree_median(given, FEW, 3)(asked), expected, atol=1e-12)


def test_the_forest_looks_at_the_co_runner_and_the_mean_of_the_others() -> None:
    given, asked = rows(), rows(1)[0]
    changed = asked.copy()
    changed[:, 4:] = 0.0
    forest = fit_forest(given, FEW, 3)
    np.testing.assert_array_equal(forest(asked), forest(changed))


def test_the_ridge_predicts_what_scikit_learn_does() -> None:
    given, asked = rows(), rows(1)[0]
    features, alone = sample(given, FEW.ridge_rows, 3)
    centre, spread, level = given[0].mean(axis=0), given[0].std(axis=0), given[1].mean(axis=0)
    peer = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.03)
    peer.fit((features - centre) / spread, alone - level)
    expected = np.clip(peer.predict((asked - centre) / spread) + level, 0, 1)
    np.testing.assert_allclose(fit_ridge(given, FEW, 3, 0.03)(asked), expected, atol=1e-6)


def test_a_blend_is_the_weighted_mean_of_both_in_each_way() -> None:
    given, asked = rows(), rows(1)[0]
    trees = fit_tree_median(given, FEW, 3)(asked)
    found = fit_blend(given, FEW, 3, WAYS)(asked)
    for (gamma, weight), each in zip(WAYS, found, strict=True):
        expected = (1 - weight) * trees + weight * fit_ridge(given, FEW, 3, gamma)(asked)
        np.testing.assert_allclose(each, expected, atol=1e-12)
    np.testing.assert_allclose(fit_mean(given)(asked)[0], np.tile(given[1].mean(axis=0), (80, 1)))


def test_mixes_at_other_levels_and_unknown_models_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected 3 levels, found shape \(40, 4, 2\)"):
        fitted("mean").predict(NEW.shared[..., :2], NEW.judged)
    with pytest.raises(InputError, match="expected one of mean, published-forest, partition, found 'magic'"):
        PartitionModel("magic", "new job")
