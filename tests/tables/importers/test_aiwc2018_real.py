"""The importer of the published data, on the published data.

It lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

from collections import Counter

import pytest

from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources.aiwc import import_aiwc2018
from support.shared import shared_data


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """The dataset."""
    return import_aiwc2018(shared_data("aiwc2018"))


def test_it_fits_together(dataset: Dataset) -> None:
    validate(dataset)


def test_it_is_complete(dataset: Dataset) -> None:
    names = ("application", "kernel", "size", "device")
    cells = Counter(zip(*(dataset.records.column(name).to_pylist() for name in names), strict=True))
    assert dataset.records.num_rows == 64060
    assert len(cells) == 1560
    assert [len({cell[place] for cell in cells}) for place in range(4)] == [11, 37, 4, 15]
    assert dataset.profiles.num_rows == 24995
    assert dataset.energy.num_rows == 800
    assert dataset.devices.num_rows == 15


def test_every_record_has_a_profile(dataset: Dataset) -> None:
    assert dataset.records.column("invocations").null_count == 0


def test_records_of_both_regions_of_scale_alpha_stay(dataset: Dataset) -> None:
    kernels = Counter(dataset.records.column("kernel").to_pylist())
    assert kernels["scale_alpha_dev"] == 2 * 15 * 90
