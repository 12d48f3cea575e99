"""Features of Moolchandani et al. 2022: which fairness stands for a mix, columns, published combinations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler

from crosscast.data.corun import IsolatedRun
from crosscast.errors import InputError
from crosscast.prediction.corun.moolchandani2022_features import (
    CONCURRENT,
    FAIRNESS,
    INDIVIDUAL,
    PERFORMANCE,
    POWER,
    FairnessChoice,
    MixColumns,
    value_of,
)
from crosscast.studies.moolchandani2022_features import FIGURE_7, FIGURE_8, REPORTED_MAPE, TABLE_7
from support.published_mixes import made_co_runs

FAIR = {"fairness_low": 0.9, "fairness_medium": 0.6, "fairness_high": 0.3}


def isolated_run(name: str, **features: float) -> IsolatedRun:
    return IsolatedRun(name, "s", "d", 1.0, features=features)


def missing(amount: float, **more: float) -> IsolatedRun:
    return isolated_run(f"misses {amount}", llc_miss=amount, **FAIR, **more)


PAIRS = [(missing(a), missing(b)) for a in (0.0, 0.3, 0.9) for b in (0.0, 0.3, 0.9)]


def test_the_thresholds_part_the_sums_in_thirds() -> None:
    choice = FairnessChoice.fit(PAIRS)
    assert choice.pressure == "llc_miss"
    levels = choice.levels(PAIRS)
    assert np.bincount(levels.ravel()).tolist() == [6, 6, 6]


def test_the_others_not_the_member_itself_decide() -> None:
    choice = FairnessChoice.fit(PAIRS)
    assert choice.fairness([(missing(0.0), missing(0.9))]).tolist() == [[0.3, 0.9]]


def test_published_combinations_are_those_of_the_paper() -> None:
    assert len({frozenset(each.features) for each in TABLE_7}) == 20
    known = {*INDIVIDUAL, *CONCURRENT, FAIRNESS}
    assert all(
        set(each.features) <= known and len(set(each.features)) == len(each.features) for each in TABLE_7
    )
    assert TABLE_7[15] == POWER
    assert set(POWER.features) == {"CPU_power", "GPU_power", "LLC_miss", "fairness"}
    sets = [set(each.features) for each in FIGURE_7]
    assert [len(each) for each in sets] == [8, 9, 10, 11]
    assert all(fewer < more for fewer, more in pairwise(sets))
    assert FIGURE_7[-1] is PERFORMANCE
    assert set(REPORTED_MAPE) == {each.name for each in TABLE_7}
    assert REPORTED_MAPE["comb16"]["forest"] == 3.59
    assert min(REPORTED_MAPE["comb20"].values()) == REPORTED_MAPE["comb20"]["boosting"] == 3.62


@pytest.mark.parametrize(
    ("numbers", "concurrent"),
    [((1, 2, 3, 4, 5, 6, 10, 11, 13, 14, 16), False), ((7, 8, 9, 12, 15, 17, 18, 19, 20), True)],
)
def test_those_that_need_a_mix_are_those_of_section_7_1(numbers: tuple[int, ...], concurrent: bool) -> None:
    assert {bool(TABLE_7[number - 1].concurrent) for number in numbers} == {concurrent}


def test_figure_8_has_every_row_with_neither_either_and_both_times() -> None:
    for row in FIGURE_8:
        without, cpu, gpu, both = (set(each.features) for each in row)
        assert cpu - without == {"CPU_time"}
        assert gpu - without == {"GPU_time"}
        assert both == cpu | gpu
    names = [each.name for row in FIGURE_8 for each in row]
    assert len(set(names)) == len(names)
    assert "ALU+SSE+fairness+CPU_time" in names


NAMES = ("CPU_time", "GPU_time", "LLC_miss", FAIRNESS)
MIXES = [mix.isolated_runs for mix in made_co_runs((3,), applications=6).mixes]


def test_features_scale_as_scikit_learn_scales_them() -> None:
    columns = MixColumns.fit(NAMES, MIXES)
    values, _ = columns.of(MIXES)
    fairness = columns.choice.fairness(MIXES)
    raw = np.array(
        [
            [*(value_of(isolated_run, name) for name in NAMES[:3]), fair]
            for mix, fairs in zip(MIXES, fairness, strict=True)
            for isolated_run, fair in zip(mix, fairs, strict=True)
        ]
    )
    expected = MinMaxScaler().fit_transform(raw)
    result = np.concatenate(
        [each[np.argsort(order)] for each, order in zip(values, columns.of(MIXES)[1], strict=True)]
    )
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)


def test_the_longest_alone_comes_first_and_members_without_a_time_last() -> None:
    _, order = MixColumns.fit(NAMES, MIXES).of(MIXES)
    for mix, indices in zip(MIXES, order, strict=True):
        times = [mix[index].time_s or 0.0 for index in indices]
        assert times == sorted(times, reverse=True)
    mix = (
        IsolatedRun("a", "s", "d", None, features={"ipc": 2.0}),
        IsolatedRun("b", "s", "d", 0.5, features={"ipc": 1.0}),
    )
    assert MixColumns.fit(("IPC",), [mix]).of([mix])[1].tolist() == [[1, 0]]


def test_what_some_lack_is_filled_with_the_median_and_flagged() -> None:
    isolated_runs = [
        IsolatedRun(f"a{n}", "s", "d", 1.0 + n, features={"ipc": float(n), "llc_miss": 0.0}) for n in range(3)
    ]
    lacks = IsolatedRun("lacks", "s", "d", 9.0, features={"llc_miss": 0.0})
    columns = MixColumns.fit(
        ("IPC", "LLC_miss"), [(isolated_runs[0], isolated_runs[1]), (isolated_runs[2], lacks)]
    )
    assert columns.titles == ("IPC", "LLC_miss", "IPC missing")
    values, _ = columns.of([(lacks, isolated_runs[2])])
    # Misses that are 0 are as measured: they are not missing, and have no flag.
    assert values[0].tolist() == [[0.5, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert columns.indices(["IPC"]).tolist() == [0, 2]
    assert columns.indices(["LLC_miss"]).tolist() == [1]


def test_mixes_of_which_nothing_is_known_are_refused() -> None:
    nothing = IsolatedRun("a", "s", "d", None)
    with pytest.raises(InputError, match=r"^features: expected at least one of IPC, fairness, found none"):
        MixColumns.fit(("IPC", FAIRNESS), [(nothing, nothing)])
