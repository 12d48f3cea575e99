"""The combinations are those of the paper."""

from itertools import pairwise

import pytest

from crosscast.predict.corun.moolchandani2022 import (
    CONCURRENT,
    FAIRNESS,
    FIGURE_7,
    FIGURE_8,
    INDIVIDUAL,
    PERFORMANCE,
    POWER,
    TABLE_7,
)
from crosscast.studies.moolchandani2022 import REPORTED_MAPE


def test_table_7_has_twenty_different_ones_of_features_of_table_5() -> None:
    assert len({frozenset(each.features) for each in TABLE_7}) == 20
    known = {*INDIVIDUAL, *CONCURRENT, FAIRNESS}
    assert all(
        set(each.features) <= known and len(set(each.features)) == len(each.features) for each in TABLE_7
    )


@pytest.mark.parametrize(
    ("numbers", "concurrent"),
    [((1, 2, 3, 4, 5, 6, 10, 11, 13, 14, 16), False), ((7, 8, 9, 12, 15, 17, 18, 19, 20), True)],
)
def test_those_that_need_a_run_of_the_bag_are_those_of_section_7_1(
    numbers: tuple[int, ...], concurrent: bool
) -> None:
    assert {bool(TABLE_7[number - 1].concurrent) for number in numbers} == {concurrent}


def test_the_paper_chooses_comb16() -> None:
    assert POWER.name == "comb16"
    assert set(POWER.features) == {"CPU_power", "GPU_power", "LLC_miss", "fairness"}


def test_figure_7_adds_features_one_by_one() -> None:
    sets = [set(each.features) for each in FIGURE_7]
    assert [len(each) for each in sets] == [8, 9, 10, 11]
    assert all(fewer < more for fewer, more in pairwise(sets))
    assert FIGURE_7[-1] is PERFORMANCE


def test_figure_8_has_every_row_with_neither_either_and_both_times() -> None:
    for row in FIGURE_8:
        without, cpu, gpu, both = (set(each.features) for each in row)
        assert cpu - without == {"CPU_time"}
        assert gpu - without == {"GPU_time"}
        assert both == cpu | gpu
    names = [each.name for row in FIGURE_8 for each in row]
    assert len(set(names)) == len(names)
    assert "ALU+SSE+fairness+CPU_time" in names


def test_what_the_paper_reports_is_that_of_its_text() -> None:
    assert set(REPORTED_MAPE) == {each.name for each in TABLE_7}
    assert REPORTED_MAPE["comb16"]["forest"] == 3.59
    assert min(REPORTED_MAPE["comb20"].values()) == REPORTED_MAPE["comb20"]["boosting"] == 3.62
