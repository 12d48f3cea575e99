"""Ratios of the times that a time model predicts: half of its correction, and profiles as they were."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.relative.blend import BlendPredictor
from crosscast.predict.relative.data import Observations, Vectors, profiles_seen, relative_to_slowest
from crosscast.predict.relative.models import (
    DEFAULT_MODEL,
    MODELS,
    ByTimes,
    ByTimesPredictor,
    CombinedRelative,
    ExtraTrees,
    ExtraTreesPredictor,
    are_profiles,
    profiles_of,
)
from crosscast.predict.relative.nichols2024 import LogMean
from crosscast.predict.time.combined import Combined
from crosscast.predict.time.data import ProfileBatch
from support.grids import lawful_grid, noisy_grid
from support.vectors import made_vectors, runs_with

GRID = noisy_grid()
LAUNCHED = replace(GRID.profiles, invocations=np.arange(1, len(GRID.profiles) + 1))


def vectors_with(profiles: ProfileBatch) -> Vectors:
    keys = tuple(device.key for device in GRID.devices)
    return Vectors(profiles_seen(profiles), keys, np.exp(GRID.log_time), GRID.devices)


VECTORS = vectors_with(LAUNCHED)
SEEN = VECTORS.observations


@cache
def fitted() -> ByTimesPredictor:
    return ByTimes().fit(VECTORS, 0)


def without(seen: Observations, name: str) -> Observations:
    place = seen.names.index(name)
    names = tuple(each for each in seen.names if each != name)
    return replace(seen, names=names, counters=np.delete(seen.counters, place, axis=1))


def test_profiles_come_back_from_the_rows_that_were_made_of_them() -> None:
    back = profiles_of(SEEN)
    assert back.names == LAUNCHED.names
    np.testing.assert_array_equal(back.metrics, LAUNCHED.metrics)
    np.testing.assert_array_equal(back.invocations, LAUNCHED.invocations)


def test_the_order_of_metrics_does_not_matter() -> None:
    turned = replace(SEEN, names=SEEN.names[::-1], counters=SEEN.counters[:, ::-1])
    np.testing.assert_array_equal(profiles_of(turned).metrics, LAUNCHED.metrics)
    np.testing.assert_array_equal(fitted().predict(turned), fitted().predict(SEEN))


@pytest.mark.parametrize("said", [np.nan, 0.0])
def test_a_profile_that_does_not_say_how_often_it_was_launched_was_launched_once(said: float) -> None:
    unsaid = replace(SEEN, settings=np.full_like(SEEN.settings, said))
    assert set(profiles_of(unsaid).invocations.tolist()) == {1}
    unset = replace(SEEN, configuration=(), settings=np.empty((len(SEEN), 0)))
    assert set(profiles_of(unset).invocations.tolist()) == {1}


def test_vectors_are_those_of_the_mean_of_the_corrected_times_and_the_uncorrected() -> None:
    times = Combined().fit(replace(GRID, profiles=LAUNCHED), 0)
    log = (times.log_time(LAUNCHED) + times.physical.log_time(LAUNCHED)) / 2
    found = fitted().predict(SEEN)
    np.testing.assert_allclose(found, relative_to_slowest(np.exp(log)), rtol=1e-6)
    assert (found.max(axis=1) == 1).all()
    assert not np.allclose(found, relative_to_slowest(np.exp(times.log_time(LAUNCHED))), rtol=1e-3)


def test_a_law_of_times_is_a_law_of_their_ratios() -> None:
    lawful = lawful_grid()
    vectors = Vectors(
        profiles_seen(lawful.profiles), VECTORS.devices, np.exp(lawful.log_time), lawful.devices
    )
    out = lawful.profiles.groups("application") == 2
    found = ByTimes().fit(vectors.rows(~out), 0).predict(vectors.rows(out).observations)
    assert np.abs(found - vectors.vector[out]).mean() < 0.03


def test_it_comes_back_from_its_arrays() -> None:
    again = ByTimesPredictor.from_state(fitted().state())
    np.testing.assert_array_equal(again.predict(SEEN), fitted().predict(SEEN))


def test_without_one_of_its_arrays_it_is_refused() -> None:
    whole = fitted().state()
    for name in whole:
        with pytest.raises(InputError, match=rf"^model: {name}: expected [^\n]*$"):
            ByTimesPredictor.from_state({key: array for key, array in whole.items() if key != name})


def test_counters_of_a_device_are_no_profiles() -> None:
    counted = made_vectors(applications=2)
    assert are_profiles(SEEN)
    assert not are_profiles(counted.observations)
    assert not are_profiles(replace(SEEN, source=("cpu", *SEEN.source[1:])))
    assert not are_profiles(replace(SEEN, names=("odd", *SEEN.names[1:])))
    with pytest.raises(InputError, match=r"^by-times: expected .* found counters of cpu, fast$"):
        ByTimes().fit(counted, 0)
    with pytest.raises(InputError, match=r"^profile: expected architecture-independent profiles"):
        fitted().predict(runs_with({"PAPI_TOT_INS": 1.0}))


def test_devices_must_be_described() -> None:
    with pytest.raises(InputError, match=r"^by-times: expected a description of each device, found none$"):
        ByTimes().fit(replace(VECTORS, described=()), 0)


def test_a_profile_without_a_metric_that_times_need_is_refused() -> None:
    lacking = without(SEEN, "total_instruction_count")
    for ask in (fitted().predict, lambda seen: ByTimes().fit(replace(VECTORS, observations=seen), 0)):
        with pytest.raises(InputError, match="total_instruction_count") as caught:
            ask(lacking)
        assert "\n" not in str(caught.value)


GRID_RELATIVE_COMBINED = lawful_grid()
PROFILES = Vectors(
    profiles_seen(GRID_RELATIVE_COMBINED.profiles),
    tuple(device.key for device in GRID_RELATIVE_COMBINED.devices),
    np.exp(GRID_RELATIVE_COMBINED.log_time),
    GRID_RELATIVE_COMBINED.devices,
)


def test_it_is_the_one_that_is_taken_where_none_is_named() -> None:
    assert isinstance(MODELS[DEFAULT_MODEL](), CombinedRelative)


def test_profiles_of_described_devices_are_predicted_by_times() -> None:
    assert isinstance(CombinedRelative().fit(PROFILES, 0), ByTimesPredictor)


def test_counters_of_devices_are_predicted_by_the_blend() -> None:
    assert isinstance(CombinedRelative().fit(made_vectors(applications=2), 0), BlendPredictor)


def test_profiles_with_times_on_devices_of_which_nothing_is_known_are_predicted_by_the_blend() -> None:
    found = CombinedRelative().fit(replace(PROFILES, described=()), 0)
    assert isinstance(found, BlendPredictor)
    assert np.abs(found.predict(PROFILES.observations) - PROFILES.vector).mean() < 0.05


VECTORS_RELATIVE_EXTRA_TREES = made_vectors(applications=6)
MODEL = ExtraTrees(trees=20)


def test_runs_of_known_kernels_are_predicted_well() -> None:
    sizes = np.array(VECTORS_RELATIVE_EXTRA_TREES.observations.size)
    train, test = (
        VECTORS_RELATIVE_EXTRA_TREES.rows(sizes == "size0"),
        VECTORS_RELATIVE_EXTRA_TREES.rows(sizes == "size1"),
    )
    found, mean = (
        np.abs(model.fit(train, 0).predict(test.observations) - test.vector).mean()
        for model in (MODEL, LogMean())
    )
    assert found < 0.5 * mean


def test_each_row_has_1_as_its_largest_entry() -> None:
    predicted = MODEL.fit(VECTORS_RELATIVE_EXTRA_TREES, 0).predict(VECTORS_RELATIVE_EXTRA_TREES.observations)
    assert (predicted > 0).all()
    np.testing.assert_array_equal(predicted.max(axis=1), 1)


def test_the_same_seed_gives_the_same_trees_and_another_others() -> None:
    half = VECTORS_RELATIVE_EXTRA_TREES.rows(np.arange(0, len(VECTORS_RELATIVE_EXTRA_TREES), 2))
    one, again, other = (
        MODEL.fit(half, seed).predict(VECTORS_RELATIVE_EXTRA_TREES.observations) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_what_is_kept_predicts_as_before() -> None:
    fitted = MODEL.fit(VECTORS_RELATIVE_EXTRA_TREES, 0)
    kept = ExtraTreesPredictor.from_state(fitted.state())
    np.testing.assert_array_equal(
        kept.predict(VECTORS_RELATIVE_EXTRA_TREES.observations),
        fitted.predict(VECTORS_RELATIVE_EXTRA_TREES.observations),
    )


def test_a_run_without_a_counter_is_predicted_too() -> None:
    seen = VECTORS_RELATIVE_EXTRA_TREES.observations
    counters = seen.counters.copy()
    counters[:, 1] = np.nan
    predicted = MODEL.fit(VECTORS_RELATIVE_EXTRA_TREES, 0).predict(replace(seen, counters=counters))
    assert np.isfinite(predicted).all()


def test_a_strange_base_of_a_kept_model_is_refused() -> None:
    state = {**MODEL.fit(VECTORS_RELATIVE_EXTRA_TREES, 0).state(), "base": np.array(["metres"])}
    with pytest.raises(InputError, match=r"^model: base: expected one of .* found 'metres'$"):
        ExtraTreesPredictor.from_state(state)


def test_there_must_be_a_row() -> None:
    with pytest.raises(InputError, match=r"^extra-trees: expected a run to learn from, found none$"):
        MODEL.fit(VECTORS_RELATIVE_EXTRA_TREES.rows(np.arange(0)), 0)


def test_counters_that_nothing_is_learned_from_are_told() -> None:
    seen = VECTORS_RELATIVE_EXTRA_TREES.observations
    strange = replace(
        seen, names=(*seen.names, "luck"), counters=np.column_stack([seen.counters, np.ones(len(seen))])
    )
    assert MODEL.fit(VECTORS_RELATIVE_EXTRA_TREES, 0).unknown_counters(strange) == ("luck",)
