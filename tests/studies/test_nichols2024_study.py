"""Studies: by source, by what is left out, importances and fewer features.

Paths through a decision tree are those that scikit-learn tells.
"""

import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.corun.moolchandani2022_features import Combination
from crosscast.prediction.relative.features import fit_features
from crosscast.prediction.relative.nichols2024 import PublishedMean, PublishedXGBoost
from crosscast.prediction.trees import trees_of_forest, trees_of_tree
from crosscast.studies.moolchandani2022_features import decision_paths, splits_passed
from crosscast.studies.nichols2024 import RelativeStudy, by_source, importances, selection, study_relative
from support.published_mixes import made_co_runs
from support.refusals import refusals
from support.vectors import made_vectors

VECTORS = made_vectors(applications=5)
QUICK = PublishedXGBoost(rounds=15, depth=3)
HONEST = "leave-application-out"


@pytest.fixture(scope="module")
def study() -> RelativeStudy:
    return study_relative(VECTORS, [QUICK, PublishedMean()], "published", boosted=QUICK)


def test_each_source_is_studied_with_its_own_rows_alone() -> None:
    found = by_source(VECTORS, [PublishedMean()], HONEST)
    assert found.sources == ("cpu", "fast")
    own = VECTORS.rows(np.array([source == "fast" for source in VECTORS.observations.source]))
    alone = evaluate_relative(own, [PublishedMean()], HONEST)
    assert found.metrics["published-mean"][1] == alone.results[0].metrics


def test_the_feature_that_decides_is_the_important_one() -> None:
    found = importances(VECTORS, HONEST, model=QUICK)
    assert found.mae == pytest.approx(
        evaluate_relative(VECTORS, [QUICK], HONEST).results[0].metrics.mae, rel=1e-12
    )
    first, *others = found.features
    assert "branch" in first.feature.lower()
    assert sum(each.gain for each in found.features) == pytest.approx(1)
    assert first.rise > 0.02
    assert first.rise > 5 * max(abs(each.rise) for each in others)


def test_fewer_features_are_as_many_as_asked_for_and_all() -> None:
    found = selection(VECTORS, HONEST, counts=(1, 2, 400), model=QUICK)
    every = len(fit_features(VECTORS.observations).names)
    assert found.counts == (1, 2, every)
    whole = evaluate_relative(VECTORS, [QUICK], HONEST)
    assert found.metrics[-1] == whole.results[0].metrics


def test_a_study_of_the_published_split_leaves_applications_out(study: RelativeStudy) -> None:
    assert study.evaluation.split.name == "published"
    assert study.studies is not None
    assert study.studies.by_source is not None
    assert study.studies.by_source.split == study.studies.importances.split == HONEST
    assert study.studies.by_application is not None
    assert study.studies.by_application.split.name == HONEST
    assert study.studies.by_scale is not None
    assert set(study.studies.by_scale.results[0].per_group) == {"size0", "size1"}


def test_a_study_is_an_object_of_json(study: RelativeStudy) -> None:
    found = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert {"model", "split", "mae", "same_order", "regret", "top1", "typical_factor", "per_group"} <= set(
        found["results"][0]
    )
    assert found["counts"]["rows"] == len(VECTORS)
    assert len(found["studies"]["by_source"]["results"]) == 4
    assert "caution" in found["studies"]["importances"]
    assert [each["features"] for each in found["studies"]["selection"]["results"]][:2] == [1, 2]


def test_what_there_is_one_of_is_not_studied_nor_left_out() -> None:
    rows = VECTORS.observations
    texts = zip(rows.source, rows.size, rows.application, strict=True)
    one = VECTORS.rows(np.array([each == ("cpu", "size0", "app00") for each in texts]))
    studies = study_relative(one, [PublishedMean()], "leave-kernel-out", boosted=QUICK).studies
    assert studies is not None
    assert (studies.by_source, studies.by_scale, studies.by_application) == (None, None, None)
    assert studies.to_dict()["by_source"] is None
    one = VECTORS.rows(np.array([name == "app00" for name in VECTORS.observations.application]))
    with pytest.raises(InputError, match=r"^leave-application-out: expected at least 2 applications"):
        study_relative(one, [PublishedMean()], HONEST)


RNG = np.random.default_rng(2)
ROWS, WANTED = RNG.random((80, 5)), RNG.random(80)


def passed(tree: DecisionTreeRegressor, rows: Reals) -> Integers:
    """Splits at each feature on the path of each row, by scikit-learn."""
    nodes = tree.decision_path(rows).toarray()
    features = tree.tree_.feature
    return np.stack([nodes[:, features == place].sum(axis=1) for place in range(rows.shape[1])], axis=1)


def test_splits_passed_are_those_of_scikit_learn() -> None:
    tree = DecisionTreeRegressor(max_depth=7, random_state=0).fit(ROWS, WANTED)
    others = RNG.random((40, 5))
    np.testing.assert_array_equal(splits_passed(trees_of_tree(tree), others), passed(tree, others))


def test_splits_of_a_forest_are_those_of_its_trees_together() -> None:
    forest = RandomForestRegressor(5, random_state=0).fit(ROWS, WANTED)
    expected = sum(passed(tree, ROWS) for tree in forest.estimators_)
    np.testing.assert_array_equal(splits_passed(trees_of_forest(forest), ROWS), expected)


def test_what_alone_decides_is_on_every_path() -> None:
    """Times of mixes that follow from times alone: nothing else decides."""
    co_runs = made_co_runs((2,), applications=10)
    model = Published("decision-tree", performance=Combination("times", ("GPU_time", "CPU_time")))
    predictor = model.fit(co_runs, 0).of_size(2)
    mixes = [mix.isolated_runs for mix in co_runs.mixes]
    paths = decision_paths(predictor, mixes)
    assert paths.features == ("GPU_time", "CPU_time")
    assert paths.share[0] == 1.0
    assert paths.times.shape == (len(mixes), 2)
    assert (paths.times.sum(axis=1) <= 7).all()
    assert paths.times[:, 0].mean() > paths.times[:, 1].mean()


@refusals("kind target words")
def test_only_one_tree_has_a_path(kind: str, target: str, words: str) -> None:
    co_runs = made_co_runs((2,), applications=5)
    predictor = Published(kind).fit(co_runs, 0).of_size(2)
    with pytest.raises(InputError, match=f"^{target}: {words}$"):
        decision_paths(predictor, [co_runs.mixes[0].isolated_runs], target)
