"""Quantities are what their names say, and what is missing is named."""

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.time.data import Profiles
from crosscast.predict.time.physical import METRICS_NEEDED, quantities_of
from crosscast.profile import METRICS

NAMES = [each.name for each in METRICS]
VALUES = {
    "opcode": 7,
    "total_instruction_count": 4000,
    "work_items": 100,
    "total_barriers_hit": 200,
    "max_itb": 90,
    "total_memory_footprint": 900,
    "footprint_90": 800,
    "global_memory_address_entropy": 9.0,
} | {f"local_memory_address_entropy_{bits}": 9.0 - max(0, bits - 2) for bits in range(1, 11)}


def profile(**changes: float) -> Profiles:
    metrics = np.full((1, len(METRICS)), np.nan)
    for name, value in (VALUES | changes).items():
        metrics[0, NAMES.index(name)] = value
    return Profiles(("app",), ("saxpy",), ("tiny",), metrics, np.array([2]))


def test_each_quantity_is_worked_out_by_hand() -> None:
    found = quantities_of(profile())
    assert found.per_item == 40
    assert found.critical_path == 90
    assert found.barriers == 2
    assert found.addresses_per_item == 8
    assert found.repetition == pytest.approx(np.log(2))
    assert found.locality == pytest.approx(8 / 9)


def test_the_mean_is_the_critical_path_where_barriers_cut_it_short() -> None:
    assert quantities_of(profile(max_itb=5)).critical_path == 40


def test_elements_of_four_bytes_leave_two_address_bits_still() -> None:
    assert quantities_of(profile()).bytes == 800 * 4


def test_elements_of_a_byte_leave_none_still() -> None:
    entropies = {f"local_memory_address_entropy_{bits}": 9.0 - bits for bits in range(1, 10)}
    found = quantities_of(profile(**entropies, local_memory_address_entropy_10=0.0))
    assert found.bytes == 800


def test_what_is_done_a_hundred_times_is_done_often() -> None:
    often = [
        quantities_of(Profiles(("a",), ("k",), ("s",), profile().metrics, np.array([count]))).repetition
        for count in (100, 1000)
    ]
    assert often[0] == often[1] == pytest.approx(3)


@pytest.mark.parametrize("name", METRICS_NEEDED)
@pytest.mark.parametrize(("value", "found"), [(np.nan, "nothing"), (np.inf, "inf"), (-1.0, "-1")])
def test_a_metric_that_is_missing_or_not_a_number_is_named(name: str, value: float, found: str) -> None:
    with pytest.raises(InputError, match=f"profile of saxpy: metric {name}: expected .*, found {found}"):
        quantities_of(profile(**{name: value}))


def test_a_kernel_without_work_items_is_refused() -> None:
    with pytest.raises(InputError, match="metric work_items: expected a number of at least 1, found 0"):
        quantities_of(profile(work_items=0))
