"""Descriptors of devices: what is missing is filled from those most alike, and likeness is as documented."""

import numpy as np
import pytest

from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.time.features import NUMBERS, Descriptors
from crosscast.tables.devices import DEVICES


def gpu(key: str, vendor: str, **numbers: float) -> Device:
    return Device(key, key, vendor, "gpu", numbers=numbers)


def test_the_numbers_are_columns_of_the_table_of_devices() -> None:
    assert set(NUMBERS) <= {column.name for column in DEVICES.columns}


def test_a_missing_number_is_the_mean_of_the_devices_most_alike() -> None:
    devices = [
        gpu("one", "Nvidia", clock_hz=1e9),
        gpu("two", "Nvidia", clock_hz=4e9),
        gpu("lacks", "Nvidia"),
        gpu("alone", "AMD"),
        Device("host", type="cpu", vendor="Intel", numbers={"clock_hz": 8e9}),
        Device("other", type="accelerator"),
    ]
    found = Descriptors.of(devices)
    assert found.names == ("clock_hz",)
    clocks = np.exp(found.logs[:, 0])
    assert clocks[:2] == pytest.approx([1e9, 4e9])
    assert clocks[2] == pytest.approx(2e9)  # of its type and vendor
    assert clocks[3] == pytest.approx(2e9)  # of its type
    assert clocks[5] == pytest.approx((1e9 * 4e9 * 8e9) ** (1 / 3))  # of all


def test_a_number_that_is_none_is_as_good_as_missing() -> None:
    devices = [gpu("one", "Nvidia", clock_hz=1e9), gpu("two", "Nvidia", clock_hz=0.0)]
    assert np.exp(Descriptors.of(devices).logs[:, 0]) == pytest.approx([1e9, 1e9])


def test_a_further_device_is_filled_in_the_same_way_and_changes_no_other() -> None:
    devices = [gpu("one", "Nvidia", clock_hz=1e9), gpu("two", "AMD", clock_hz=4e9)]
    known = Descriptors.of(devices)
    joined = known.joined(gpu("new", "AMD", tdp_w=100.0))
    assert joined.names == known.names == ("clock_hz",)
    assert np.exp(joined.logs[:, 0]) == pytest.approx([1e9, 4e9, 4e9])


def test_a_device_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^device new: expected a type, vendor, series or number, found none$"
    ):
        Descriptors.of([gpu("one", "Nvidia")]).joined(Device("new", "a name says nothing"))


def test_likeness_is_of_types_vendors_and_series() -> None:
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


def test_devices_that_agree_in_a_number_are_not_pushed_apart_by_a_little() -> None:
    devices = [gpu("one", "", clock_hz=1e9), gpu("two", "", clock_hz=1e9)]
    pairs = Descriptors.of(devices).joined(gpu("new", "", clock_hz=1e9 * np.exp(0.1))).pairs(2)
    assert pairs.squares[0, 2] == pytest.approx(1)


def test_some_of_the_pairs_are_those_of_some_of_the_devices() -> None:
    devices = [
        gpu(key, vendor, clock_hz=1e9 + 1e8 * ord(key)) for key, vendor in zip("abc", "xyx", strict=True)
    ]
    pairs = Descriptors.of(devices).pairs(3)
    some = pairs.take([2, 0])
    assert len(some) == 2
    assert some.squares[0, 1] == pairs.squares[2, 0]
    assert some.vendors.tolist() == [[1, 1], [1, 1]]
    assert some.trend.tolist() == [pairs.trend[2], pairs.trend[0]]


def test_they_come_back_as_they_went() -> None:
    devices = [gpu("one", "Nvidia", clock_hz=1e9, tdp_w=200.0), Device("host", type="cpu", series="Skylake")]
    found = Descriptors.of(devices)
    again = Descriptors.from_state(found.state())
    assert (again.types, again.vendors, again.series, again.names) == (
        found.types,
        found.vendors,
        found.series,
        found.names,
    )
    assert np.array_equal(again.logs, found.logs)


@pytest.mark.parametrize(
    ("name", "array", "sentence"),
    [
        ("device_numbers", np.array(["clock_hz", "horses"]), "device_numbers: .*found horses$"),
        ("device_logs", np.zeros((1, 2)), r"device_logs: expected shape \(2, 2\), found \(1, 2\)$"),
        ("device_types", np.array(["gpu"]), r"device_logs: expected shape \(1, 2\), found \(2, 2\)$"),
        ("device_series", np.zeros(2), "device_series: expected texts"),
    ],
)
def test_damaged_ones_are_refused(name: str, array: np.typing.NDArray[np.generic], sentence: str) -> None:
    devices = [gpu("one", "Nvidia", clock_hz=1e9, tdp_w=200.0), gpu("two", "Nvidia", clock_hz=2e9)]
    state = Descriptors.of(devices).state()
    with pytest.raises(InputError, match=sentence):
        Descriptors.from_state({**state, name: array})
