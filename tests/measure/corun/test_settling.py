"""Times alone of a campaign are medians, and slowdowns are over them."""

import json
from dataclasses import replace

import pytest
from dataset_rows import Row, bag, dataset, solo

from crosscast.data.dataset import Dataset
from crosscast.data.schema import BAGS
from crosscast.data.table import table_of
from crosscast.measure.corun.campaign import ALONE, settled


def bags_of(*measured: tuple[str, float, float]) -> list[Row]:
    """Bags of an application with itself: name, time in the bag, and the time alone before it."""
    return [
        {**row, "time_s": time_s}
        for name, time_s, before in measured
        for row in bag(time_s / before, time_s / before, name=name)
    ]


def made(*measured: tuple[str, float, float]) -> Dataset:
    found: Dataset = dataset(solos=[solo(time_s=1.0, environment={"cores": 2})], bags=bags_of(*measured))
    return found


def test_the_time_alone_is_the_median_of_all_that_were_measured() -> None:
    found = settled(made(("a", 3.0, 1.5), ("b", 4.0, 1.5), ("c", 4.0, 1.2)))
    (row,) = found.solos.to_pylist()
    assert row["time_s"] == pytest.approx(1.2)
    environment = json.loads(row["environment"])
    assert environment["cores"] == 2
    assert environment[ALONE] == pytest.approx([1.0, 1.2, 1.5])


def test_slowdowns_are_over_that_time() -> None:
    found = settled(made(("a", 3.0, 1.5), ("c", 4.0, 1.2)))
    assert {row["bag"]: row["slowdown"] for row in found.bags.to_pylist()} == pytest.approx(
        {"a": 3.0 / 1.2, "c": 4.0 / 1.2}
    )


def test_a_way_of_sharing_is_nothing_that_a_time_alone_has() -> None:
    shared = [
        {**row, "configuration": {"sharing": "mps"}} for row in bags_of(("a", 3.0, 1.5), ("c", 4.0, 1.2))
    ]
    found = settled(dataset(solos=[solo(time_s=1.0)], bags=shared))
    (row,) = found.solos.to_pylist()
    assert row["time_s"] == pytest.approx(1.2)
    assert found.bags.column("slowdown").to_pylist() == pytest.approx([3.0 / 1.2] * 2 + [4.0 / 1.2] * 2)


def test_what_is_settled_stays_as_it_is() -> None:
    once = settled(made(("a", 3.0, 1.5), ("c", 4.0, 1.2)))
    twice = settled(once)
    assert twice.solos == once.solos
    assert twice.bags.column("slowdown").to_pylist() == pytest.approx(
        once.bags.column("slowdown").to_pylist()
    )


def test_bags_that_are_added_add_their_times_alone() -> None:
    first = settled(made(("a", 3.0, 1.5)))
    both = table_of(BAGS, [*first.bags.to_pylist(), *bags_of(("d", 5.0, 2.5))])
    (row,) = settled(replace(first, bags=both)).solos.to_pylist()
    assert json.loads(row["environment"])[ALONE] == pytest.approx([1.0, 1.5, 2.5])


def test_bags_without_times_and_failed_solo_runs_are_left_alone() -> None:
    failed = dataset(solos=[solo(time_s=None, failure="it crashed")], bags=bag(None, None))
    assert settled(failed).solos == failed.solos
    assert settled(failed).bags == failed.bags
