"""Features of profiles: which are chosen, what they are, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_grids import small_profiles

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.time.data import Profiles
from crosscast.predict.time.features import FEATURES, Features
from crosscast.profile import METRICS

PLACES = {each.name: place for place, each in enumerate(METRICS)}
NAMES = [each.name for each in FEATURES]


def without(profiles: Profiles, name: str, row: int, value: float = np.nan) -> Profiles:
    metrics = profiles.metrics.copy()
    metrics[row, PLACES[name]] = value
    return replace(profiles, metrics=metrics)


def column(profiles: Profiles, name: str) -> Reals:
    return Features((name,)).matrix(profiles)[:, 0]


def test_names_are_unique_and_needs_are_metrics() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {need for each in FEATURES for need in each.needs} <= set(PLACES)


def test_all_features_are_chosen_where_all_metrics_are_known() -> None:
    assert list(Features.fit(small_profiles(5, {})).names) == NAMES


def test_a_feature_is_left_out_where_one_kernel_lacks_its_metric() -> None:
    chosen = Features.fit(without(small_profiles(5, {}), "total_writes", row=3))
    assert set(NAMES) - set(chosen.names) == {"accesses", "accesses_per_instruction"}


def test_a_profile_without_a_metric_that_is_not_needed_is_taken() -> None:
    profiles = small_profiles(5, {})
    features = Features.fit(profiles, ["instructions"])
    assert features.matrix(without(profiles, "opcode", row=0)).shape == (5, 1)


@pytest.mark.parametrize(
    ("value", "found"), [(np.nan, "none"), (np.inf, "inf"), (-1.0, "-1"), (1e31, "1e+31")]
)
def test_a_profile_without_a_sound_metric_is_refused_by_name(value: float, found: str) -> None:
    profiles = small_profiles(5, {})
    broken = without(profiles, "work_items", row=2, value=value)
    with pytest.raises(InputError) as caught:
        Features.fit(profiles).matrix(broken)
    assert str(caught.value) == (
        "profile of app2/k2/tiny: work_items: expected a number from 0 to 1e+30, which the model needs, "
        f"found {found}"
    )


def test_kernels_that_share_no_metric_are_refused() -> None:
    profiles = without(small_profiles(5, {}), "work_items", row=1)
    with pytest.raises(InputError, match=r"some without work_items$"):
        Features.fit(profiles, ["work_items", "steps_on_16"])


def test_steps_count_the_lanes_that_few_work_items_leave_idle() -> None:
    profiles = small_profiles(
        3, {"total_instruction_count": np.full(3, 1e6), "work_items": np.array([1.0, 8.0, 1e5])}
    )
    steps = np.exp(column(profiles, "steps_on_16"))
    np.testing.assert_allclose(steps, [1e6, 1e6 / 8, 1e6 / 16], rtol=2e-6)


def test_bits_within_lines_are_those_that_dropping_six_bits_takes_away() -> None:
    profiles = small_profiles(
        2,
        {
            "global_memory_address_entropy": np.array([12.0, 6.0]),
            "local_memory_address_entropy_6": np.full(2, 6.0),
        },
    )
    assert column(profiles, "within_lines").tolist() == [6.0, 0.0]


@given(arrays(np.float64, (4, len(METRICS)), elements=st.floats(0, 1e30)))
@settings(max_examples=60, deadline=None)
def test_features_of_any_sound_profile_are_finite_in_single_precision(metrics: Reals) -> None:
    profiles = replace(small_profiles(4, {}), metrics=metrics)
    assert np.isfinite(Features.fit(profiles).matrix(profiles).astype(np.float32)).all()


@given(st.sampled_from(["total_instruction_count", "total_memory_footprint"]), st.floats(1.01, 1e3))
@settings(max_examples=40, deadline=None)
def test_more_of_an_amount_never_lowers_the_features_of_amounts(name: str, factor: float) -> None:
    profiles = small_profiles(4, {})
    metrics = profiles.metrics.copy()
    metrics[:, PLACES[name]] *= factor
    more = replace(profiles, metrics=metrics)
    for feature in (
        "instructions",
        "steps_on_256",
        "instructions_per_item",
        "footprint",
        "footprint_per_item",
    ):
        assert (column(more, feature) >= column(profiles, feature)).all()


def test_they_come_back_from_their_state() -> None:
    features = Features.fit(small_profiles(5, {}), ["instructions", "footprint"])
    assert Features.from_state(features.state()) == features


@pytest.mark.parametrize("names", [[], ["instructions", "luck"], ["footprint", "footprint"]])
def test_a_state_without_the_names_of_features_is_refused(names: list[str]) -> None:
    with pytest.raises(InputError, match=r"^model: features: expected some of instructions"):
        Features.from_state({"features": np.array(names, dtype=np.str_)})
