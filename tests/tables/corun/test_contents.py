"""What a dataset holds of co-running."""

import dataset_rows as rows

from crosscast.data.description import BagCount, CoRunContents, CoRunFailure, SoloCount, contents_of
from crosscast.data.schema import BAGS, SOLOS
from crosscast.data.table import table_of


def contents(solos: list[rows.Row], bags: list[rows.Row]) -> CoRunContents:
    return contents_of(table_of(SOLOS, solos), table_of(BAGS, bags))


def test_a_dataset_without_co_running_has_none() -> None:
    assert contents([], []) == CoRunContents((), (), ())


def test_solo_runs_are_counted_by_device() -> None:
    solos = [rows.solo(), rows.solo("lud"), rows.solo(device="gpu", failure="no memory")]
    assert contents(solos, []).solos == (SoloCount("cpu", 2, 0), SoloCount("gpu", 1, 1))


def test_bags_are_counted_by_device_and_size_with_repeats_and_configurations() -> None:
    bags = [
        *rows.bag(1.1, 1.2, 1.3),
        *rows.bag(1.1, 1.2, name="other"),
        *rows.bag(1.1, 1.2, name="other", repeat=1),
        *rows.bag(1.1, 1.2, name="other", configuration='{"sharing": "mps"}'),
        *rows.bag(None, None, name="large", fits=0),
        *rows.bag(1.1, 1.2, device="gpu"),
    ]
    # Rows of a bag need not stand together.
    assert contents([], bags[::2] + bags[1::2]).bags == (
        BagCount("cpu", 2, bags=4, configurations=2, not_fitting=1, failed=0),
        BagCount("cpu", 3, bags=1, configurations=1, not_fitting=0, failed=0),
        BagCount("gpu", 2, bags=1, configurations=1, not_fitting=0, failed=0),
    )


def test_a_bag_has_failed_once_however_many_of_its_applications_have() -> None:
    bag = rows.bag(None, None, None, failure="it hung")
    found = contents([rows.solo("lud", failure="no memory")], bag)
    assert found.bags == (BagCount("cpu", 3, bags=1, configurations=1, not_fitting=0, failed=1),)
    assert found.failed[0] == CoRunFailure("lud", "tiny", "cpu", "{}", None, None, "no memory")
    assert found.failed[1:] == (CoRunFailure("sums", "tiny", "cpu", "{}", "pair", 0, "it hung"),) * 3
