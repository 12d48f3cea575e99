"""Configurations found by the cells of a row."""

import pytest

from crosscast.configuration import Configuration
from crosscast.decide.samples import SettingColumns
from crosscast.errors import InputError
from crosscast.predict.configuration.data import Space

NODE = SettingColumns(
    Space(tuple(Configuration("node", {"cap_w": cap, "governor": "fast"}) for cap in (60, 80.5)))
)
BOTH = SettingColumns(
    Space(
        (
            Configuration("card", {"clock_hz": 1e9}),
            Configuration("card", {"clock_hz": 2e9}),
            Configuration("host", {"threads": 1, "governor": "fast"}),
            Configuration("host", {"threads": 1, "governor": "slow"}),
        )
    )
)


def test_only_what_varies_is_needed() -> None:
    assert NODE.needed == ("cap_w",)
    assert BOTH.needed == ("device", "clock_hz", "governor")


@pytest.mark.parametrize("columns", [NODE, BOTH])
def test_the_cells_of_a_configuration_lead_back_to_it(columns: SettingColumns) -> None:
    for number in range(len(columns.space)):
        assert columns.number(columns.cells(number), "x") == number


def test_numbers_may_be_written_in_any_way() -> None:
    assert [NODE.number({"cap_w": cap}, "x") for cap in ("6e1", "60.0", "80.50000001", 80.5)] == [0, 0, 1, 1]


def test_a_constant_may_be_said_but_not_be_another() -> None:
    assert NODE.number({"cap_w": "60", "governor": "fast"}, "x") == 0
    with pytest.raises(
        InputError, match=r"line 2: expected one of the 2 configurations of node.*governor slow"
    ):
        NODE.number({"cap_w": "60", "governor": "slow"}, "line 2")


def test_a_knob_that_not_every_configuration_has_is_left_empty_by_those_without() -> None:
    columns = SettingColumns(Space((Configuration("a", {}), Configuration("a", {"boost": "on"}))))
    assert [columns.number(columns.cells(number), "x") for number in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({}, "x: device: expected one of card, host, found nothing"),
        ({"device": "phi"}, "x: device: expected one of card, host, found phi"),
        ({"device": "card"}, "x: clock_hz: expected what it was set to, found several"),
        (
            {"device": "card", "clock_hz": "fast"},
            "x: clock_hz: expected a number such as 1e.09, found 'fast'",
        ),
        ({"device": "card", "clock_hz": "3e9"}, "2 configurations of card .* found clock_hz 3e9"),
        ({"device": "card", "clock_hz": "1e9", "governor": "fast"}, "of card .* clock_hz 1e9, governor fast"),
        ({"device": "host", "governor": "nan"}, "of host .* found governor nan"),
    ],
)
def test_cells_of_no_configuration_are_refused(cells: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        BOTH.number(cells, "x")
