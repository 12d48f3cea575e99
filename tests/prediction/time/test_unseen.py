"""Devices by their descriptors: kriging is best linear unbiased prediction by the most likely sizes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import helmert
from scipy.stats import multivariate_normal, norm

from crosscast.arrays import Reals
from crosscast.data.schema import DEVICES
from crosscast.device import SPEED_NUMBERS, Device
from crosscast.errors import InputError
from crosscast.prediction.time import Grid
from crosscast.prediction.time.datasets import grid_of
from crosscast.prediction.time.gaussian import Gaussian, GaussianPredictor
from crosscast.prediction.time.physical import Physical
from crosscast.prediction.time.unseen import (
    Descriptors,
    Pairs,
    Transfer,
    enough_devices,
    fit_kriging,
    fit_unseen,
    kriging_sd,
    kriging_weights,
    similarity_weights,
)
from support.grids import kin_devices, kin_grid, kin_times
from support.shared import published

SIZES = np.log([0.1, 0.1, 0.05, 0.1, 0.1, 0.01, 1.0, np.e])


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    devices = kin_devices(3)
    return Descriptors.of(devices).pairs(len(devices))


def covariance(sizes: Reals, pairs: Pairs) -> Reals:
    """As the module describes it, part by part."""
    gpus, makers, series, near, linear, variances = np.exp(sizes[:6])
    total: Reals = (
        gpus * pairs.gpus
        + makers * pairs.types * pairs.vendors
        + series * pairs.series
        + near * np.exp(-pairs.squares / 2 / np.exp(sizes[6]) ** 2)
        + linear * pairs.products
        + variances * np.eye(len(pairs))
    )
    return total


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8))
def test_no_other_weights_that_add_up_to_one_err_less(moves: list[float]) -> None:
    devices = kin_devices(3)
    pairs = Descriptors.of(devices).pairs(len(devices))
    weights, _ = kriging_weights(SIZES, pairs)
    assert weights.sum() == pytest.approx(1)
    others = weights + np.array(moves) - np.mean(moves)
    assert kriging_sd(SIZES, others, pairs) >= kriging_sd(SIZES, weights, pairs) - 1e-9


def log_posterior(sizes: Reals, pairs: Pairs, times: Reals) -> float:
    """Of sizes, given times of kernels that count alike and for as many as they are."""
    contrasts = helmert(len(pairs))
    seen = (times - 0.8 * pairs.trend) @ contrasts.T
    within = contrasts @ covariance(sizes, pairs) @ contrasts.T
    mean = seen.mean(axis=0)
    likely = multivariate_normal(cov=within).logpdf(seen - mean).sum()
    likely += multivariate_normal(cov=np.exp(sizes[7]) * within).logpdf(mean)
    prior = norm(SIZES, [1.5] * 6 + [0.7, 1.0]).logpdf(sizes).sum()
    return float(likely + prior)


def test_the_sizes_are_the_most_likely_ones(pairs: Pairs) -> None:
    times = kin_times(kin_devices(3), 20)
    fitted = fit_kriging(pairs, times, np.ones(20), 20)
    best = log_posterior(fitted, pairs, times)
    for step in 0.05 * np.vstack([np.eye(8), -np.eye(8)]):
        assert log_posterior(fitted + step, pairs, times) < best


@pytest.fixture(scope="module")
def kin() -> Grid:
    return kin_grid()


@pytest.fixture(scope="module")
def without_last(kin: Grid) -> Grid:
    return kin.on(range(len(kin.devices) - 1))


def left_out(grid: Grid) -> tuple[Reals, Reals]:
    """Errors on each device, predicted from the others, and half the 90 % intervals."""
    errors, halves = [], []
    for device in range(len(grid.devices)):
        others = [each for each in range(len(grid.devices)) if each != device]
        unseen = fit_unseen(grid.on(others), 0)
        transfer = unseen.transfer(grid.devices[device])
        errors.append(transfer.log_time(grid.log_time[:, others]) - grid.log_time[:, device])
        halves.append(unseen.factor(0.9) * transfer.sd)
    return np.stack(errors, axis=1), np.array(halves)


def test_times_that_follow_from_descriptors_are_told(kin: Grid) -> None:
    errors, halves = left_out(kin)
    assert np.median(np.abs(errors)) < 0.15
    assert 0.75 < (np.abs(errors) <= halves).mean() < 1


def test_far_outside_of_known_devices_a_forecast_is_less_sure(kin: Grid, without_last: Grid) -> None:
    unseen, known = fit_unseen(without_last, 0), kin.devices[0]
    most = max(device.numbers["peak_flop_per_s"] for device in kin.devices[:-1])

    def device(times: float) -> Device:
        return replace(known, key="new", numbers={**known.numbers, "peak_flop_per_s": times * most})

    assert unseen.far(device(1.9)) == {}
    assert unseen.far(device(8)) == {"peak_flop_per_s": pytest.approx(8)}
    transfer = unseen.transfer(device(8))
    pairs = unseen.descriptors.joined(device(8)).pairs(len(kin.devices) - 1)
    before = Transfer.of(unseen.similarity, unseen.kriging, pairs)
    assert transfer.sd == pytest.approx(np.hypot(before.sd, 0.5 * np.log(8 / 2)))
    assert (transfer.weights == before.weights).all()


@pytest.mark.system
def test_beyond_the_published_devices_intervals_hold_nine_in_ten_times() -> None:
    """Fitted to the devices with the least and the greatest peak rates or numbers of compute units."""
    grid = grid_of(published("aiwc2018", "aiwc2018"))
    held = []
    for name in ("peak_flop_per_s", "compute_units"):
        order = np.argsort([device.numbers[name] for device in grid.devices]).tolist()
        for some in (order[:7], order[-7:]):
            unseen = fit_unseen(grid.on(sorted(some)), 0)
            known = grid.log_time[:, sorted(some)]
            for index in set(order) - set(some):
                if unseen.far(grid.devices[index]):
                    transfer = unseen.transfer(grid.devices[index])
                    error = np.abs(transfer.log_time(known) - grid.log_time[:, index])
                    held.append((error <= unseen.factor(0.9) * transfer.sd).mean())
    assert len(held) > 10
    assert 0.85 < np.mean(held) < 1


def test_three_devices_with_times_are_enough(kin: Grid) -> None:
    three, empty = kin.on([0, 4, 8]), kin.log_time.copy()
    transfer = fit_unseen(three, 0).transfer(kin.devices[1])
    assert np.isfinite(transfer.log_time(three.log_time)).all()
    assert transfer.sd > 0
    empty[:, 2] = np.nan
    enough = [enough_devices(each) for each in (three, kin.on([0, 1]), replace(kin, log_time=empty))]
    assert enough == [True, False, False]
    with pytest.raises(InputError, match=r"^devices: expected at least 3 .*, found 2$"):
        fit_unseen(kin.on([0, 1]), 0)


@pytest.fixture(scope="module")
def predictor(without_last: Grid) -> GaussianPredictor:
    return Gaussian(Physical()).fit(without_last, 0)


def test_a_forecast_from_measured_times_is_the_transfer(
    kin: Grid, without_last: Grid, predictor: GaussianPredictor
) -> None:
    new = kin.devices[-1]
    times = np.exp(without_last.log_time)
    forecast = predictor.predict(kin.profiles, [kin.devices[5], new, kin.devices[0]], probes=times)
    assert forecast.devices == ("amd1", new.key, "nvidia0")
    assert predictor.unseen is not None
    transfer = predictor.unseen.transfer(new)
    assert forecast.centre[:, 1] == pytest.approx(np.exp(transfer.log_time(without_last.log_time)))
    assert forecast.centre[:, 0] == pytest.approx(times[:, 5])
    assert forecast.centre[:, 2] == pytest.approx(times[:, 0])
    reach = np.log(forecast.high[:, 1] / forecast.centre[:, 1])
    least = predictor.unseen.factor(0.9) * transfer.sd
    assert (reach >= least).all()
    assert (reach <= least + 0.2).all()
    assert np.log(forecast.centre[:, 1] / forecast.low[:, 1]) == pytest.approx(reach)


def test_what_known_devices_leave_open_widens_the_interval(kin: Grid, predictor: GaussianPredictor) -> None:
    new, widths = kin.devices[-1], []
    for probed in ([], [8], range(11)):
        probes = np.full((len(kin.profiles), 11), np.nan)
        probes[:, list(probed)] = np.exp(kin.log_time[:, list(probed)])
        forecast = predictor.predict(kin.profiles, [new], probes=probes)
        widths.append(float(np.median(forecast.high / forecast.low)))
    assert widths[0] >= widths[1] > widths[2]


def test_a_device_may_be_unknown_only_to_a_model_of_enough(kin: Grid) -> None:
    of_two = Gaussian(Physical()).fit(kin.on([0, 1]), 0)
    with pytest.raises(InputError, match=r"^device: expected one that the model knows .* found 'new'$"):
        of_two.predict(kin.profiles, [Device("new", type="gpu")])


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


def test_ways_weigh_devices_and_bring_times_to_the_rate_of_the_new_one() -> None:
    devices = kin_devices(2)
    pairs = Descriptors.of(devices).pairs(len(devices))
    # Lighter by e for another type; else alike. Two of the five others are of another type.
    weights, added = similarity_weights(np.array([[1.0, 0, 0, 0, 0, 0]]), pairs)
    share = 1 / (1 + 4 * np.exp(-1))
    assert weights == pytest.approx([share * np.exp(-1)] * 4 + [share])
    assert added == 0
    weights, added = similarity_weights(np.array([[0.0, 0, 0, 0, 0, 0.5]]), pairs)
    assert weights == pytest.approx(np.full(5, 0.2))
    assert added == pytest.approx(0.5 * (pairs.trend[-1] - pairs.trend[:-1].mean()))
