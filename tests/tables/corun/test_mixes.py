"""Mixes of a dataset as arrays: what is read, which are copies, and what is refused."""

from typing import Any

import numpy as np
import pytest

from crosscast.data.corun import DUMMY, has_mixes, mixes_of
from crosscast.data.sources.corun import import_miso
from crosscast.errors import InputError
from support.mixes import dataset_with, made_mixes, rows_of
from support.shared import shared_data

Row = dict[str, Any]


def few() -> list[Row]:
    return rows_of(made_mixes(mixes=5, members=3))


def refusal(rows: list[Row], device: str | None = None) -> str:
    with pytest.raises(InputError) as caught:
        mixes_of(dataset_with(rows), device)
    return str(caught.value)


def test_mixes_are_read_as_they_were_written() -> None:
    made = made_mixes(mixes=60)
    found = mixes_of(dataset_with(rows_of(made)))
    assert (found.device, found.levels, found.slices) == ("gpu", made.levels, made.slices)
    np.testing.assert_array_equal(found.shared, made.shared)
    np.testing.assert_array_equal(found.alone, made.alone)
    assert [[found.jobs[job] for job in mix] for mix in found.job] == [
        [made.jobs[job] for job in mix] for mix in made.job
    ]


def test_dummies_are_no_jobs_that_are_judged() -> None:
    found = mixes_of(dataset_with(few()))
    names = np.array(found.jobs)[found.job]
    np.testing.assert_array_equal(found.judged, names != DUMMY)
    assert 0 < found.judged.sum() < found.judged.size


def test_a_mix_in_another_order_is_a_copy_and_another_measurement_is_none() -> None:
    made = made_mixes(mixes=30)
    turned = np.array([2, 0, 3, 1])
    again = made.where(np.arange(30).repeat(3))
    for array in (again.job, again.shared, again.alone):
        array[1::3] = array[::3][:, turned]
    again.shared[2::3] *= 0.99
    distinct = again.without_copies()
    count = len(made.without_copies())
    assert len(distinct) == 2 * count
    np.testing.assert_array_equal(distinct.shared[::2], made.without_copies().shared)


def test_sets_of_jobs_are_those_of_the_same_jobs_in_any_order() -> None:
    made = made_mixes(mixes=80, members=3)
    number = made.job_set
    for one in range(80):
        for other in range(80):
            assert (number[one] == number[other]) == (sorted(made.job[one]) == sorted(made.job[other]))


def test_a_mix_of_which_a_number_is_missing_is_left_out() -> None:
    rows = few()
    rows[7]["slowdown"] = None
    assert len(mixes_of(dataset_with(rows))) == 4
    for row in rows:
        row["slowdown"] = None
    assert "a number at each level and part, found none" in refusal(rows)


def test_the_device_with_the_most_is_taken_unless_one_is_named() -> None:
    other = [{**row, "device": "other"} for row in rows_of(made_mixes(mixes=2, members=3))]
    dataset = dataset_with([*few(), *other])
    assert len(mixes_of(dataset)) == 5
    assert len(mixes_of(dataset, "other")) == 2
    assert "on cpu, found those on gpu, other" in refusal([*few(), *other], "cpu")


def test_only_bags_at_levels_and_on_parts_are_mixes() -> None:
    rows = few()
    plain = [{**row, "configuration": "{}"} for row in rows[:3]]
    assert has_mixes(dataset_with(rows + plain).bags)
    assert len(mixes_of(dataset_with(rows + plain))) == 5
    levels = [row for row in rows if "mps" in row["configuration"]]
    assert not has_mixes(dataset_with(levels).bags)
    assert not has_mixes(dataset_with(plain).bags)
    assert 'parts (mig_gpcs) of gpu, found {"mps_percent": 100}' in refusal(levels)
    assert "on a device, found those on none" in refusal(plain)


def test_rows_that_make_no_mixes_are_refused() -> None:
    rows = few()
    assert "found 2 to 3" in refusal(
        [row for row in rows if (row["bag"], row["position"]) != ("mix 0000", 2)]
    )
    rows[3]["application"] = "another"
    assert "bag 'mix 0000', position 0: expected the same application" in refusal(rows)
    for wrong in (0.0, 1.5):
        rows = few()
        next(row for row in rows if "mig" in row["configuration"])["slowdown"] = wrong
        assert "relative times above 0, and at most 1 on parts" in refusal(rows)


def test_more_levels_than_any_gpu_has_are_refused() -> None:
    rows = [
        {**row, "configuration": f'{{"mps_percent": {level}}}'}
        for row in few()[:3]
        for level in range(200, 264)
    ]
    assert "at most 64 levels and parts, found 70" in refusal([*few(), *rows])


def test_the_published_mixes_are_2800_of_2300_sets_of_jobs() -> None:
    mixes = mixes_of(import_miso(shared_data("gpu_corun")))
    distinct = mixes.without_copies()
    assert (len(mixes), len(distinct), distinct.job_set.max() + 1) == (2_800, 2_800, 2_300)
    assert np.bincount(distinct.judged.sum(axis=1)).tolist() == [0, *[400] * 7]
    assert len(np.unique(distinct.job[distinct.judged])) == 32
