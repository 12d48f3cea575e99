"""Which of the three fairness values stands for a bag is told by the pressure of the others."""

from dataclasses import replace

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.corun.moolchandani2022 import FairnessChoice, fairness_with
from crosscast.tables.corun.solo import Solo

FAIR = {"fairness_low": 0.9, "fairness_medium": 0.6, "fairness_high": 0.3}


def solo(name: str, **features: float) -> Solo:
    return Solo(name, "s", "d", 1.0, features=features)


def missing(amount: float, **more: float) -> Solo:
    return solo(f"misses {amount}", llc_miss=amount, **FAIR, **more)


PAIRS = [(missing(a), missing(b)) for a in (0.0, 0.3, 0.9) for b in (0.0, 0.3, 0.9)]


def test_the_thresholds_part_the_sums_in_thirds() -> None:
    choice = FairnessChoice.fit(PAIRS)
    assert choice.pressure == "llc_miss"
    levels = choice.levels(PAIRS)
    assert np.bincount(levels.ravel()).tolist() == [6, 6, 6]


def test_the_others_not_the_member_itself_decide() -> None:
    choice = FairnessChoice.fit(PAIRS)
    assert choice.fairness([(missing(0.0), missing(0.9))]).tolist() == [[0.3, 0.9]]


def test_of_three_the_misses_of_both_others_count() -> None:
    choice = FairnessChoice("llc_miss", 0.0, np.array([0.5, 1.0]))
    assert choice.levels([(missing(0.4), missing(0.4), missing(0.8))]).tolist() == [[2, 2, 1]]
    assert choice.sums([(missing(0.4), missing(0.4), missing(0.8))])[0] == pytest.approx([1.2, 1.2, 0.8])


@pytest.mark.parametrize("counter", ["inflicted_high", "bandwidth_bytes_per_s"])
def test_without_counters_something_else_tells_the_pressure(counter: str) -> None:
    bags = [
        (solo("a", **{counter: a}, **FAIR), solo("b", **{counter: b}, **FAIR))
        for a in (1, 2, 3)
        for b in (1, 2, 3)
    ]
    choice = FairnessChoice.fit(bags)
    assert choice.pressure == counter
    assert choice.fairness([bags[2]]).tolist() == [[0.3, 0.9]]


def test_a_counter_that_never_counts_tells_nothing() -> None:
    bags = [(missing(0.0, inflicted_high=1.0), missing(0.0, inflicted_high=3.0))]
    assert FairnessChoice.fit(bags).pressure == "inflicted_high"


def test_zero_misses_are_misses_as_measured() -> None:
    choice = FairnessChoice("llc_miss", 0.7, np.array([0.5, 0.8]))
    assert choice.sums([(missing(0.0), solo("unknown"))]).tolist() == [[0.7, 0.0]]


def test_without_any_pressure_all_are_medium() -> None:
    bags = [(solo("a", **FAIR), solo("b", **FAIR))]
    assert FairnessChoice.fit(bags).fairness(bags).tolist() == [[0.6, 0.6]]


def test_fairness_follows_from_both_slowdowns_where_it_was_not_written_down() -> None:
    known = solo("a", slowdown_low=1.5, inflicted_low=2.0, slowdown_high=3.0)
    assert fairness_with(known, "low") == pytest.approx(0.75)
    assert np.isnan([fairness_with(known, level) for level in ("medium", "high")]).all()
    assert fairness_with(replace(known, features={**known.features, "fairness_low": 0.5}), "low") == 0.5


def test_it_is_kept_as_arrays_and_damaged_ones_are_refused() -> None:
    choice = FairnessChoice.fit(PAIRS)
    state = choice.state()
    again = FairnessChoice.from_state(state)
    np.testing.assert_array_equal(again.fairness(PAIRS), choice.fairness(PAIRS))
    for name, array in (
        ("pressure", np.array(["weather"])),
        ("pressure_thresholds", np.array([2.0, 1.0])),
        ("pressure_usual", np.array([np.nan])),
    ):
        with pytest.raises(InputError, match=r"^model: pressure"):
            FairnessChoice.from_state({**state, name: array})
