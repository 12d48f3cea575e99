"""Repeats of a run averaged."""

import numpy as np

from crosscast.decide.samples import Tally, observed_of


def test_times_are_averaged_and_powers_are_energy_over_time() -> None:
    tally = Tally()
    tally.add(1.0, 100.0, {"cpu": 60.0}, {"stalls": 1.0})
    tally.add(3.0, 200.0, {}, {"stalls": 2.0})
    assert (tally.runs, tally.time_s) == (2, 2.0)
    assert tally.power_w == (100 * 1 + 200 * 3) / 4
    assert (tally.domain_w("cpu"), tally.counter("stalls")) == (60.0, 1.5)


def test_a_run_without_power_counts_in_the_time_alone() -> None:
    tally = Tally()
    tally.add(1.0, None, {}, {})
    before = tally.power_w
    tally.add(2.0, 50.0, {}, {})
    assert (before, tally.time_s, tally.power_w) == (None, 1.5, 50.0)


def test_a_model_is_told_of_configurations_with_power_in_order() -> None:
    tallies = {7: Tally(), 2: Tally(), 4: Tally()}
    tallies[7].add(1.0, 10.0, {"cpu": 4.0}, {})
    tallies[2].add(2.0, 20.0, {}, {"stalls": 3.0})
    tallies[4].add(9.0, None, {}, {})
    observed = observed_of(tallies, ("cpu",), ("stalls",))
    assert observed.numbers.tolist() == [2, 7]
    assert observed.time_s.tolist() == [2.0, 1.0]
    np.testing.assert_array_equal(observed.domains["cpu"], [np.nan, 4.0])
    np.testing.assert_array_equal(observed.counters["stalls"], [3.0, np.nan])
