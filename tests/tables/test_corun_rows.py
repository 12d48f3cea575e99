"""What rows of solo runs and bags must be."""

from collections.abc import Mapping
from typing import Any

import dataset_rows as rows
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.dataset import check_corun_rows
from crosscast.data.schema import BAGS, SOLOS
from crosscast.data.table import table_of
from crosscast.errors import InputError


def check(solos: list[rows.Row], bags: list[rows.Row]) -> None:
    check_corun_rows(table_of(SOLOS, solos), table_of(BAGS, bags), "made up")


def refusal(solos: list[rows.Row], bags: list[rows.Row]) -> str:
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
        ({"fits": 2}, "column 'fits', row 4: expected 0 or 1, found 2"),
        ({"overlap": 1.5}, "column 'overlap', row 4: expected at most 1, found 1.5"),
        ({"position": 2}, "column 'position', row 4: expected less than the 2 rows of its bag, found 2"),
        ({"fits": 0}, "column 'fits', row 4: expected 1, as in row 2 of the same bag, found 0"),
        ({"fits": None}, "column 'fits', row 4: expected 1, as in row 2 of the same bag, found nothing"),
        (
            {"overlap": 0.5},
            "column 'overlap', row 4: expected nothing, as in row 2 of the same bag, found 0.5",
        ),
        (
            {"bag_time_s": 3.0},
            "column 'bag_time_s', row 4: expected 2.0, as in row 2 of the same bag, found 3.0",
        ),
        ({"power_w": 9.0}, "column 'power_w', row 4: expected 5.0, as in row 2 of the same bag, found 9.0"),
    ],
    ids=str,
)
def test_the_row_that_is_wrong_is_named(cells: Mapping[str, Any], message: str) -> None:
    first, second = rows.bag(1.0, 1.1, fits=1, bag_time_s=2.0, power_w=5.0)
    # Rows of a bag need not stand together.
    other = rows.bag(1.0, 1.2, name="other")
    assert refusal([], [other[0], first, other[1], {**second, **cells}]).startswith(f"bags: {message}")


def test_solo_runs_take_time_and_say_why_they_failed() -> None:
    good = rows.solo("lud")
    message = refusal([good, rows.solo(time_s=0.0)], [])
    assert message == "solos: column 'time_s', row 2: expected more than 0, found 0.0"
    message = refusal([good, rows.solo(failure="")], [])
    assert message.endswith("expected why it failed, or an empty cell, found a text without a letter")


@given(st.sets(st.integers(0, 6), min_size=1))
def test_positions_are_from_0_without_a_gap(places: set[int]) -> None:
    bag = [{**rows.bag(1.0)[0], "position": place} for place in places]
    if places == set(range(len(places))):
        check([], bag)
    else:
        assert f"expected less than the {len(places)} rows of its bag" in refusal([], bag)
