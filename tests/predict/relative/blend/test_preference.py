"""Trees on intensities: they are kept whole, never fail for want of counters, and know what they look at."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from made_counters import runs_with
from made_work import NAMES, changed, made_work, reordered
from sklearn.ensemble import ExtraTreesRegressor

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.relative.blend import Effort, FittedPreference, fit_preference, training_rows
from crosscast.predict.relative.data import Vectors
from crosscast.predict.relative.sums import intensities_of
from made_vectors import made_vectors

WORK = made_work(kernels=8, sizes=3, noise=0.1)
SEEN = WORK.observations


def fit(vectors: Vectors, seed: int = 0) -> FittedPreference:
    return fit_preference(training_rows(vectors), seed, Effort(60, 100, 0.1))


@cache
def fitted() -> FittedPreference:
    return fit(WORK)


def predicted(found: FittedPreference) -> Reals:
    return found.log_relative(SEEN)


def test_it_is_half_way_between_random_and_boosted_trees() -> None:
    found = fitted()
    rows = found.boosted.features.transform(intensities_of(SEEN, found.base))
    training = training_rows(WORK)
    forest = ExtraTreesRegressor(len(found.grown.root), max_features=0.15, random_state=0)
    forest.fit(rows, training.log_relative, sample_weight=training.weights)
    boosted = np.log(found.boosted.predict_features(rows))
    boosted -= boosted.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(predicted(found), (forest.predict(rows) + boosted) / 2, atol=1e-9)


def test_trees_tell_what_they_have_seen() -> None:
    true = np.log(WORK.times_s) - np.log(WORK.times_s).mean(axis=1, keepdims=True)
    assert np.abs(predicted(fitted()) - true).mean() < 0.2 * np.abs(true - true.mean(axis=0)).mean()


@pytest.mark.parametrize("vectors", [WORK, made_vectors(applications=4)], ids=["items", "instructions"])
def test_they_come_back_from_their_arrays(vectors: Vectors) -> None:
    found = fit(vectors)
    again = FittedPreference.from_state(found.state())
    assert again.base == found.base
    seen = vectors.observations
    np.testing.assert_array_equal(again.log_relative(seen), found.log_relative(seen))


def test_the_same_rows_and_seed_give_the_same_trees_and_another_seed_others() -> None:
    one, same, other = fit(WORK, 3), fit(WORK, 3), fit(WORK, 4)
    assert all(np.array_equal(array, same.state()[name]) for name, array in one.state().items())
    # Rows that they were fitted to are told alike by all.
    assert not np.array_equal(one.grown.threshold, other.grown.threshold)


def test_the_order_of_counters_does_not_matter_to_trees() -> None:
    order = list(range(len(NAMES)))[::-1]
    found = fit(replace(WORK, observations=reordered(SEEN, order)))
    np.testing.assert_array_equal(predicted(found), predicted(fit(WORK)))
    np.testing.assert_array_equal(fitted().log_relative(reordered(SEEN, order)), predicted(fitted()))


def test_devices_in_another_order_have_nearly_the_same_trees() -> None:
    turned = fit(replace(WORK, devices=WORK.devices[::-1], times_s=WORK.times_s[:, ::-1]))
    np.testing.assert_allclose(predicted(turned)[:, ::-1], predicted(fitted()), atol=1e-4)


def test_rows_in_another_order_have_nearly_the_same_trees() -> None:
    order = np.random.default_rng(0).permutation(len(WORK))
    np.testing.assert_allclose(predicted(fit(WORK.rows(order))), predicted(fitted()), atol=0.05)


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_missing_counters_never_give_what_is_not_a_number(share: float) -> None:
    rng = np.random.default_rng(1)
    counters = np.where(rng.random(SEEN.counters.shape) < share, np.nan, SEEN.counters)
    seen = replace(SEEN, counters=counters, time_s=np.where(rng.random(len(SEEN)) < share, np.nan, 1.0))
    found = fit(replace(WORK, observations=seen)).log_relative(seen)
    assert np.isfinite(found).all()
    assert np.isfinite(fitted().log_relative(seen)).all()
    np.testing.assert_allclose(found.sum(axis=1), 0, atol=1e-9)


def test_a_run_is_predicted_by_the_base_of_the_training_whatever_it_tells_itself() -> None:
    """Alone it has no instructions, and shares of its items would mean other things to the trees."""
    both = np.column_stack([SEEN.counters, 50 * SEEN.counters[:, 2]])
    seen = replace(SEEN, names=(*NAMES, "inst_executed"), counters=both)
    found = fit(replace(WORK, observations=seen))
    assert found.base == "instructions"
    some = changed(seen, inst=np.where(np.arange(len(seen)) == 5, np.nan, both[:, -1]))
    alone = found.log_relative(some.rows(np.array([5])))
    np.testing.assert_array_equal(alone[0], found.log_relative(some)[5])


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
    assert fitted().unknown_counters(seen) == ("odd", "PAPI_TOT_INS")


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("feature_fill", np.array([0]), "feature_fill: expected features whose gaps are filled"),
        ("grown_leaf_value", None, "expected an array 'leaf_value'"),
        ("base", None, "expected an array 'base'"),
        ("base", np.array(["bytes"]), "base: expected one of 'instructions', 'items', '', found 'bytes'"),
        ("base", np.array(["items", "items"]), "base: expected one of"),
        ("base", np.array([1]), "base: expected texts"),
    ],
)
def test_damaged_trees_are_refused(
    name: str, array: np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None, reason: str
) -> None:
    state = {key: each for key, each in fitted().state().items() if key != name}
    with pytest.raises(InputError) as caught:
        FittedPreference.from_state(state if array is None else {**state, name: array})
    assert str(caught.value).startswith(f"model: {reason}")
    assert "\n" not in str(caught.value)


def test_random_trees_of_other_devices_are_refused() -> None:
    state = fitted().state()
    value = state["grown_leaf_value"]
    with pytest.raises(InputError, match=r"^model: grown_leaf_value: expected 2 devices, found 3$"):
        FittedPreference.from_state({**state, "grown_leaf_value": np.column_stack([value, value[:, 0]])})
