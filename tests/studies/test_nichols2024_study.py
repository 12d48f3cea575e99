"""Studies: by source, by what is left out, importances and fewer features.

Paths through a decision tree are those that scikit-learn tells.
"""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.relative.nichols2024 import PublishedMean, PublishedXGBoost
from crosscast.prediction.trees import trees_of_tree
from crosscast.studies.moolchandani2022_features import decision_paths, splits_passed
from crosscast.studies.nichols2024 import importances, study_relative
from support.published_mixes import made_co_runs
from support.refusals import refusals
from support.vectors import made_vectors

VECTORS = made_vectors(applications=5)
QUICK = PublishedXGBoost(rounds=15, depth=3)
HONEST = "leave-application-out"


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


@refusals("kind target words")
def test_only_one_tree_has_a_path(kind: str, target: str, words: str) -> None:
    co_runs = made_co_runs((2,), applications=5)
    predictor = Published(kind).fit(co_runs, 0).of_size(2)
    with pytest.raises(InputError, match=f"^{target}: {words}$"):
        decision_paths(predictor, [co_runs.mixes[0].isolated_runs], target)
