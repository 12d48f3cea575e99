"""Features of profiles: which are chosen, what they are, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crosscast.arrays import Reals
from crosscast.data.schema import DEVICES
from crosscast.device import SPEED_NUMBERS, Device
from crosscast.errors import InputError
from crosscast.prediction.time.combined import Neighbours
from crosscast.prediction.time.data import ProfileBatch
from crosscast.prediction.time.models import FEATURES, choose_features, feature_matrix
from crosscast.prediction.time.unseen import Descriptors, fit_similarity, similarity_weights
from crosscast.profile import METRICS
from support.examples import examples
from support.grids import kin_devices, kin_grid, small_profiles

PLACES = {each.name: place for place, each in enumerate(METRICS)}
NAMES = [each.name for each in FEATURES]


def without(profiles: ProfileBatch, name: str, row: int, value: float = np.nan) -> ProfileBatch:
    metrics = profiles.metrics.copy()
    metrics[row, PLACES[name]] = value
    return replace(profiles, metrics=metrics)


def column(profiles: ProfileBatch, name: str) -> Reals:
    return feature_matrix((name,), profiles)[:, 0]


def test_a_feature_is_left_out_where_one_kernel_lacks_its_metric() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert list(choose_features(small_profiles(5, {}))) == NAMES
    chosen = choose_features(without(small_profiles(5, {}), "total_writes", row=3))
    assert set(NAMES) - set(chosen) == {"accesses", "accesses_per_instruction"}
    # Nor is a metric needed by those that are made of others.
    assert feature_matrix(["instructions"], without(small_profiles(5, {}), "opcode", row=0)).shape == (5, 1)


@pytest.mark.parametrize(
    ("value", "found"), [(np.nan, "none"), (np.inf, "inf"), (-1.0, "-1"), (1e31, "1e+31")]
)
def test_a_profile_without_a_sound_metric_is_refused_by_name(value: float, found: str) -> None:
    profiles = small_profiles(5, {})
    broken = without(profiles, "work_items", row=2, value=value)
    with pytest.raises(InputError) as caught:
        feature_matrix(choose_features(profiles), broken)
    assert str(caught.value) == (
        "profile of app2/k2/tiny: work_items: expected a number from 0 to 1e+30, which the model needs, "
        f"found {found}"
    )


def test_kernels_that_share_no_metric_are_refused() -> None:
    profiles = without(small_profiles(5, {}), "work_items", row=1)
    with pytest.raises(InputError, match=r"some without work_items$"):
        choose_features(profiles, ["work_items", "steps_on_16"])


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
@examples(60)
def test_features_of_any_sound_profile_are_finite_in_single_precision(metrics: Reals) -> None:
    profiles = replace(small_profiles(4, {}), metrics=metrics)
    assert np.isfinite(feature_matrix(choose_features(profiles), profiles).astype(np.float32)).all()


@given(st.sampled_from(["total_instruction_count", "total_memory_footprint"]), st.floats(1.01, 1e3))
@examples(40)
def test_more_of_an_amount_never_lowers_the_features_of_amounts(name: str, factor: float) -> None:
    profiles = small_profiles(4, {})
    metrics = profiles.metrics.copy()
    metrics[:, PLACES[name]] *= factor
    more = replace(profiles, metrics=metrics)
    amounts = "instructions steps_on_256 instructions_per_item footprint footprint_per_item"
    for feature in amounts.split():
        assert (column(more, feature) >= column(profiles, feature)).all()


def features(seed: int = 0) -> Reals:
    return np.random.default_rng(seed).normal(size=(20, 3))


def test_similarity_is_materns_covariance_of_standardized_features_as_in_scikit_learn() -> None:
    from sklearn.gaussian_process.kernels import Matern
    from sklearn.preprocessing import StandardScaler

    known, queries = features() * [1.0, 10.0, 100.0] + 5, features(1)[:5] * [1.0, 10.0, 100.0] + 5
    scaler = StandardScaler().fit(known)
    wanted = Matern(length_scale=np.sqrt(3), nu=1.5)(scaler.transform(queries), scaler.transform(known))
    np.testing.assert_allclose(Neighbours.of(known).similarity(queries), wanted, atol=1e-6)
    np.testing.assert_allclose(np.diag(Neighbours.of(known).similarity(known)), 1, atol=1e-6)


def gpu(key: str, vendor: str, **numbers: float) -> Device:
    return Device(key, key, vendor, "gpu", numbers=numbers)


def test_a_missing_number_is_the_mean_of_the_devices_most_alike() -> None:
    devices = [
        gpu("one", "Nvidia", clock_hz=1e9),
        gpu("two", "Nvidia", clock_hz=4e9),
        gpu("lacks", "Nvidia", clock_hz=0.0),
        gpu("alone", "AMD"),
        Device("host", type="cpu", vendor="Intel", numbers={"clock_hz": 8e9}),
        Device("other", type="accelerator"),
    ]
    descriptors = Descriptors.of(devices)
    assert descriptors.device_numbers == ("clock_hz",)
    assert set(SPEED_NUMBERS) <= {column.name for column in DEVICES.columns}
    clocks = np.exp(descriptors.device_logs[:, 0])
    assert clocks[:2] == pytest.approx([1e9, 4e9])
    assert clocks[2] == pytest.approx(2e9)  # of its type and vendor
    assert clocks[3] == pytest.approx(2e9)  # of its type
    assert clocks[5] == pytest.approx((1e9 * 4e9 * 8e9) ** (1 / 3))  # of all


def test_a_device_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(InputError, match=r"^device new: expected a type, vendor, series or number, found"):
        Descriptors.of([gpu("one", "Nvidia")]).joined(Device("new", "a name says nothing"))


def test_pairs_are_of_types_vendors_and_series() -> None:
    devices = [
        Device("a", "", "Nvidia", "gpu", "Pascal"),
        Device("b", "", "Nvidia", "gpu", "Pascal"),
        Device("c", "", "AMD", "gpu", "Pascal"),
        Device("d", "", "Intel", "cpu", ""),
        Device("e", "", "Intel", "accelerator", ""),
    ]
    pairs = Descriptors.of(devices).pairs(5)
    assert pairs.types[0].tolist() == [1, 1, 1, 0, 0]
    assert pairs.vendors[0].tolist() == [1, 1, 0, 0, 0]
    # A series is one maker's.
    assert pairs.series[0].tolist() == [1, 1, 0, 0, 0]
    # One that is not known is nobody else's.
    assert pairs.series[3].tolist() == [0, 0, 0, 1, 0]
    assert pairs.gpus[3].tolist() == [0, 0, 0, 1, 1]
    # Without numbers, none lie apart.
    assert not pairs.squares.any()
    assert not pairs.trend.any()


def test_distances_are_in_standard_deviations_of_the_known_devices() -> None:
    devices = [gpu("one", "", clock_hz=1e9), gpu("two", "", clock_hz=1e9 * np.exp(2.0))]
    joined = Descriptors.of(devices).joined(gpu("new", "", clock_hz=1e9 * np.exp(4.0)))
    pairs = joined.pairs(2)
    assert pairs.squares == pytest.approx(np.array([[0, 4, 16], [4, 0, 4], [16, 4, 0]]))
    assert pairs.products[2] == pytest.approx([-3, 3, 9])
    assert pairs.trend[:2] - pairs.trend[2] == pytest.approx([4, 2])
    some = pairs.take([2, 0])
    assert len(some) == 2
    assert some.squares[0, 1] == 16
    assert some.trend.tolist() == [pairs.trend[2], pairs.trend[0]]
    # Devices that agree in a number are not pushed apart by a little.
    alike = [gpu("one", "", clock_hz=1e9), gpu("two", "", clock_hz=1e9)]
    pairs = Descriptors.of(alike).joined(gpu("new", "", clock_hz=1e9 * np.exp(0.1))).pairs(2)
    assert pairs.squares[0, 2] == pytest.approx(1)


def test_weights_are_a_mean() -> None:
    grid = kin_grid()
    pairs = Descriptors.of(grid.devices).pairs(len(grid.devices))
    ways = fit_similarity(pairs, grid.log_time, np.ones(len(grid.profiles)), 0)
    weights, _ = similarity_weights(ways, pairs)
    assert weights.shape == (len(grid.devices) - 1,)
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    same_vendor = [device.vendor == grid.devices[-1].vendor for device in grid.devices[:-1]]
    assert weights[same_vendor].sum() > 0.9


def test_ways_weigh_devices_and_bring_times_to_the_rate_of_the_new_one() -> None:
    devices = kin_devices(2)
    pairs = Descriptors.of(devices).pairs(len(devices))
    # Lighter by e for another type; else alike. Two of the five others are of another type.
    weights, added = similarity_weights(np.array([[1.0, 0, 0, 0, 0, 0]]), pairs)
    share = 1 / (1 + 4 * np.exp(-1))
    assert weights == pytest.approx([share * np.exp(-1)] * 4 + [share])
    assert added == 0
    devices = kin_devices(2)
    pairs = Descriptors.of(devices).pairs(len(devices))
    weights, added = similarity_weights(np.array([[0.0, 0, 0, 0, 0, 0.5]]), pairs)
    assert weights == pytest.approx(np.full(5, 0.2))
    assert added == pytest.approx(0.5 * (pairs.trend[-1] - pairs.trend[:-1].mean()))
