"""Isolated runs and mixes: their views, counts and checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.corun import Bag, CoRuns, Member, Solo, co_runs
from crosscast.data.dataset import Dataset, validate
from crosscast.data.description import BagCount, CoRunContents, CoRunFailure, SoloCount, contents_of
from crosscast.data.schema import BAGS, DEVICES, SOLOS
from crosscast.data.table import table_of
from crosscast.errors import InputError
from support import tables as rows

SUMS, LUD = Solo("sums", "tiny", "cpu", 0.5), Solo("lud", "tiny", "cpu", 0.25)


def test_a_mix_may_have_an_application_twice_and_has_failed_if_a_member_has() -> None:
    bag = Bag("b", "cpu", (Member(SUMS, 1.5), Member(LUD, 1.1), Member(SUMS, 1.4)))
    assert (bag.solos, bag.applications, bag.failed) == ((SUMS, LUD, SUMS), frozenset({"sums", "lud"}), False)
    assert Bag("b", "cpu", (Member(SUMS), Member(LUD, failure="it hung"))).failed
    assert (SUMS.name, SUMS.key) == ("sums tiny", ("sums", "tiny", "cpu", "{}"))


def contents(solos: list[rows.Row], bags: list[rows.Row]) -> CoRunContents:
    return contents_of(table_of(SOLOS, solos), table_of(BAGS, bags))


def test_isolated_runs_are_counted_by_device() -> None:
    assert contents([], []) == CoRunContents((), (), ())
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


def test_of_a_member_without_an_isolated_run_nothing_is_known_and_one_that_failed_says_why() -> None:
    bag = rows.bag(1.1, None, fits=0)
    bag[1]["failure"] = "out of memory"
    view_of = view(solos=[rows.solo(failure="no memory")], bags=bag)
    assert view_of.solos == ()
    (found,) = view_of.bags
    assert found.solos == (Solo("sums", "tiny", "cpu", None),) * 2
    assert [member.failure for member in found.members] == [None, "out of memory"]
    assert (found.failed, found.fits) == (True, False)


@pytest.mark.parametrize("features", ["[]", "3", '{"ipc": "1"}', '{"ipc": null}', '{"ipc": true}'])
def test_features_are_finite_numbers_by_name(features: str) -> None:
    with pytest.raises(InputError) as caught:
        view(solos=[rows.solo("lud"), rows.solo(features=features)])
    message = "made up: solos: row 2: column 'features': expected finite numbers by name, found others"
    assert str(caught.value) == message


def check(solos: list[rows.Row], bags: list[rows.Row]) -> None:
    devices = table_of(DEVICES, [rows.device(key) for key in ("cpu", "gpu")])
    validate(Dataset("made up", devices=devices, solos=table_of(SOLOS, solos), bags=table_of(BAGS, bags)))


def refusal_corun_rows(solos: list[rows.Row], bags: list[rows.Row]) -> str:
    with pytest.raises(InputError) as caught:
        check(solos, bags)
    return str(caught.value).removeprefix("made up: ")


def test_bags_of_any_size_of_which_all_or_nothing_is_known_are_good() -> None:
    told: rows.Row = {"fits": 1, "bag_time_s": 2.0, "overlap": 1.0, "power_w": 50.0, "time_s": 1.0}
    bags = [*rows.bag(1.0, 1.2), *rows.bag(1.0, None, 1.3, repeat=1, **told)]
    check([rows.solo(), rows.solo("lud", time_s=None, failure="no memory")], bags)
    check([], rows.bag(None, None, name="large", fits=0))
    check([], [])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"slowdown": 0.0}, "column 'slowdown', row 4: expected more than 0, found 0.0"),
        ({"time_s": 0.0}, "column 'time_s', row 4: expected more than 0, found 0.0"),
        ({"failure": ""}, "column 'failure', row 4: expected why it failed, or an empty cell, found a text"),
        ({"fits": 2}, "column 'fits', row 4: expected at most 1, found 2"),
        ({"overlap": 1.5}, "column 'overlap', row 4: expected at most 1, found 1.5"),
        ({"position": 2}, "column 'position', row 4: expected less than the 2 rows of its mix, found 2"),
        ({"fits": 0}, "column 'fits', row 4: expected 1, as in row 2 of the same mix, found 0"),
        ({"fits": None}, "column 'fits', row 4: expected 1, as in row 2 of the same mix, found nothing"),
        (
            {"overlap": 0.5},
            "column 'overlap', row 4: expected nothing, as in row 2 of the same mix, found 0.5",
        ),
        (
            {"bag_time_s": 3.0},
            "column 'bag_time_s', row 4: expected 2.0, as in row 2 of the same mix, found 3.0",
        ),
        ({"power_w": 9.0}, "column 'power_w', row 4: expected 5.0, as in row 2 of the same mix, found 9.0"),
    ],
    ids=str,
)
def test_the_row_that_is_wrong_is_named(cells: Mapping[str, Any], message: str) -> None:
    first, second = rows.bag(1.0, 1.1, fits=1, bag_time_s=2.0, power_w=5.0)
    # Rows of a bag need not stand together.
    other = rows.bag(1.0, 1.2, name="other")
    assert refusal_corun_rows([], [other[0], first, other[1], {**second, **cells}]).startswith(
        f"bags: {message}"
    )


def test_solo_runs_take_time_and_say_why_they_failed() -> None:
    good = rows.solo("lud")
    message = refusal_corun_rows([good, rows.solo(time_s=0.0)], [])
    assert message == "solos: column 'time_s', row 2: expected more than 0, found 0.0"
    message = refusal_corun_rows([good, rows.solo(failure="")], [])
    assert message.endswith("expected why it failed, or an empty cell, found a text without a letter")


@given(st.sets(st.integers(0, 6), min_size=1))
def test_positions_are_from_0_without_a_gap(places: set[int]) -> None:
    bag = [{**rows.bag(1.0)[0], "position": place} for place in places]
    if places == set(range(len(places))):
        check([], bag)
    else:
        assert f"expected less than the {len(places)} rows of its mix" in refusal_corun_rows([], bag)
