from dataclasses import replace

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.relative.models import ExtraTrees, ExtraTreesPredictor
from crosscast.predict.relative.nichols2024 import LogMean
from made_vectors import made_vectors

VECTORS = made_vectors(applications=6)
MODEL = ExtraTrees(trees=20)


def test_runs_of_known_kernels_are_predicted_well() -> None:
    sizes = np.array(VECTORS.observations.size)
    train, test = VECTORS.rows(sizes == "size0"), VECTORS.rows(sizes == "size1")
    found, mean = (
        np.abs(model.fit(train, 0).predict(test.observations) - test.vector).mean()
        for model in (MODEL, LogMean())
    )
    assert found < 0.5 * mean


def test_each_row_has_1_as_its_largest_entry() -> None:
    predicted = MODEL.fit(VECTORS, 0).predict(VECTORS.observations)
    assert (predicted > 0).all()
    np.testing.assert_array_equal(predicted.max(axis=1), 1)


def test_the_same_seed_gives_the_same_trees_and_another_others() -> None:
    half = VECTORS.rows(np.arange(0, len(VECTORS), 2))
    one, again, other = (MODEL.fit(half, seed).predict(VECTORS.observations) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_what_is_kept_predicts_as_before() -> None:
    fitted = MODEL.fit(VECTORS, 0)
    kept = ExtraTreesPredictor.from_state(fitted.state())
    np.testing.assert_array_equal(kept.predict(VECTORS.observations), fitted.predict(VECTORS.observations))


def test_a_run_without_a_counter_is_predicted_too() -> None:
    seen = VECTORS.observations
    counters = seen.counters.copy()
    counters[:, 1] = np.nan
    predicted = MODEL.fit(VECTORS, 0).predict(replace(seen, counters=counters))
    assert np.isfinite(predicted).all()


def test_a_strange_base_of_a_kept_model_is_refused() -> None:
    state = {**MODEL.fit(VECTORS, 0).state(), "base": np.array(["metres"])}
    with pytest.raises(InputError, match=r"^model: base: expected one of .* found 'metres'$"):
        ExtraTreesPredictor.from_state(state)


def test_there_must_be_a_row() -> None:
    with pytest.raises(InputError, match=r"^extra-trees: expected a run to learn from, found none$"):
        MODEL.fit(VECTORS.rows(np.arange(0)), 0)


def test_counters_that_nothing_is_learned_from_are_told() -> None:
    seen = VECTORS.observations
    strange = replace(
        seen, names=(*seen.names, "luck"), counters=np.column_stack([seen.counters, np.ones(len(seen))])
    )
    assert MODEL.fit(VECTORS, 0).unknown_counters(strange) == ("luck",)
