"""Solo runs and bags as objects."""

from pathlib import Path
from typing import Any

import dataset_rows as rows
import pytest

from crosscast.data.corun import CoRuns, Solo, co_runs
from crosscast.errors import InputError

SHARED = '{"sharing": "mps"}'


def view(**tables: Any) -> CoRuns:
    return co_runs(rows.dataset(**tables))


def test_a_member_names_its_application_alone() -> None:
    bag = [
        {**row, "application": name}
        for row, name in zip(rows.bag(1.2, 1.5, fits=1, bag_time_s=3.0), ["sums", "lud"], strict=True)
    ]
    found = view(solos=[rows.solo(power_w=5.0, memory_bytes=64), rows.solo("lud")], bags=bag)
    lud, sums = found.solos
    assert sums == Solo(
        "sums", "tiny", "cpu", 0.5, runs=4, power_w=5.0, memory_bytes=64, features={"ipc": 1.5}
    )
    (pair,) = found.bags
    assert (pair.name, pair.device, pair.fits, pair.time_s, pair.overlap) == ("pair", "cpu", True, 3.0, None)
    assert [member.slowdown for member in pair.members] == [1.2, 1.5]
    assert pair.members[0].solo is sums
    assert pair.members[1].solo is lud
    assert not pair.failed
    assert found.applications == ("lud", "sums")


def test_members_are_in_the_order_of_their_positions_and_bags_in_that_of_their_keys() -> None:
    bags = [*rows.bag(1.1, 1.2, repeat=1), *rows.bag(1.3, 1.4), *rows.bag(1.5, 1.6, 1.7, name="first")]
    found = view(solos=[rows.solo()], bags=bags[::-1])
    slowdowns = [tuple(member.slowdown for member in bag.members) for bag in found.bags]
    assert slowdowns == [(1.5, 1.6, 1.7), (1.3, 1.4), (1.1, 1.2)]
    assert [bag.repeat for bag in found.bags] == [0, 0, 1]


def test_the_solo_run_of_a_member_is_that_of_its_configuration_or_else_of_the_defaults() -> None:
    bags = [*rows.bag(1.1, 1.2, configuration=SHARED), *rows.bag(1.1, 1.2, application="lud")]
    solos = [rows.solo(), rows.solo(configuration=SHARED, time_s=0.75), rows.solo("lud")]
    times = {bag.configuration: bag.members[0].solo.time_s for bag in view(solos=solos, bags=bags[:2]).bags}
    assert times == {SHARED: 0.75}
    (bag,) = view(solos=solos[::2], bags=bags[:2]).bags
    assert bag.members[0].solo.time_s == 0.5
    assert bag.members[0].solo.configuration == "{}"


def test_of_a_member_without_a_solo_run_nothing_is_known() -> None:
    found = view(solos=[rows.solo(failure="no memory")], bags=rows.bag(1.1, 1.2))
    assert found.solos == ()
    assert found.bags[0].solos == (Solo("sums", "tiny", "cpu", None),) * 2


def test_a_bag_of_which_a_member_failed_has_failed() -> None:
    bag = rows.bag(1.1, None, fits=0)
    bag[1]["failure"] = "out of memory"
    (found,) = view(solos=[rows.solo()], bags=bag).bags
    assert found.failed
    assert [member.failure for member in found.members] == [None, "out of memory"]
    assert found.fits is False


@pytest.mark.parametrize("features", ["[]", "3", '{"ipc": "1"}', '{"ipc": null}', '{"ipc": true}'])
def test_features_are_finite_numbers_by_name(features: str) -> None:
    with pytest.raises(InputError) as caught:
        view(solos=[rows.solo("lud"), rows.solo(features=features)])
    message = "made up: solos: row 2: column 'features': expected finite numbers by name, found others"
    assert str(caught.value) == message


def test_what_a_folder_holds_gives_the_same_view(tmp_path: Path) -> None:
    from crosscast.data.dataset import read_dataset, write_dataset

    dataset = rows.dataset(solos=[rows.solo(), rows.solo("lud")], bags=rows.bag(1.0, 2.0))
    write_dataset(dataset, tmp_path)
    there, here = co_runs(read_dataset(tmp_path)), co_runs(dataset)
    assert (there.solos, there.bags) == (here.solos, here.bags)
