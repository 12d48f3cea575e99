"""Lines through times: least squares, in both forms, that never tell a time below what was seen."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import InputError
from crosscast.prediction.corun.translation import (
    LOGARITHMIC,
    PLAIN,
    SharedTimes,
    TimeLine,
    shared_times,
    translation_scores,
)
from support.mixes import (
    APPLICATIONS,
    EXPONENT,
    counted_co_runs,
    studied,
)
from support.refusals import refusal

TIMES = st.lists(st.floats(1e-4, 1e3), min_size=3, max_size=20, unique=True).map(np.array)


@given(TIMES, st.floats(0.1, 10), st.floats(0.3, 2))
def test_a_power_law_is_found_by_the_logarithmic_form(times, factor, exponent):  # type: ignore[no-untyped-def]
    line = TimeLine.fit(LOGARITHMIC, times, factor * times**exponent)
    np.testing.assert_allclose(line(2 * times), factor * (2 * times) ** exponent, rtol=1e-6)
    # A slowdown there is that here, to the power.
    np.testing.assert_allclose(line.slowdown(times, np.full(len(times), 1.7)), 1.7**exponent, rtol=1e-6)


@given(TIMES)
def test_plain_lines_are_those_of_numpy(times):  # type: ignore[no-untyped-def]
    wanted = np.random.default_rng(0).uniform(1, 2, len(times)) * times
    line = TimeLine.fit(PLAIN, times, wanted)
    slope, intercept = np.polyfit(times, wanted, 1)
    expected = np.maximum(slope * times + intercept, wanted.min())
    np.testing.assert_allclose(line(times), expected, rtol=1e-5, atol=1e-7)


def test_no_time_is_below_the_least_that_was_seen() -> None:
    line = TimeLine.fit(PLAIN, np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    assert line(np.array([0.1])).tolist() == [1.0]


def test_a_line_takes_two_different_times() -> None:
    with pytest.raises(InputError, match="at least 2 different ones to draw a line, found 1"):
        TimeLine.fit(PLAIN, np.array([1.0, 1.0]), np.array([1.0, 2.0]))


def shared() -> SharedTimes:
    return shared_times(counted_co_runs(), "cpu", "other")


def test_a_power_law_is_better_than_a_plain_line() -> None:
    scores = {(each.form, each.quantity, each.members): each for each in translation_scores(shared())}
    assert scores[LOGARITHMIC, "time", None].mape == pytest.approx(0, abs=1e-6)
    assert scores[LOGARITHMIC, "slowdown", 2].mape == pytest.approx(0, abs=1e-6)
    assert scores[PLAIN, "time", None].mape > 0.005
    assert scores[PLAIN, "time", 1].to_dict()["accuracy"] == 1 - scores[PLAIN, "time", 1].mape


def test_errors_are_those_of_lines_without_the_application() -> None:
    times = shared()
    # What one application does elsewhere does not lessen its own error: that of times it does not have.
    odd = times.having("bfs")
    bent = replace(times, target_s=np.where(odd, 3 * times.target_s, times.target_s))
    errors = []
    for name in bent.names:
        tested = bent.having(name)
        line = TimeLine.fit(LOGARITHMIC, bent.source_s[~tested], bent.target_s[~tested])
        errors.append(np.abs(line(bent.source_s[tested]) / bent.target_s[tested] - 1))
    (score,) = [
        each
        for each in translation_scores(bent)
        if (each.form, each.quantity, each.members) == (LOGARITHMIC, "time", None)
    ]
    assert score.mape == pytest.approx(np.concatenate(errors).mean())


def test_a_model_on_one_device_and_a_line_to_the_other_are_scored_together() -> None:
    studies = studied().studies
    assert studies is not None
    assert not isinstance(studies.translations, str)
    (study,) = studies.translations
    assert (study.source, study.target, study.applications) == ("cpu", "other", len(APPLICATIONS))
    by_form = {each.form: each for each in study.predicted}
    # A power law without an error of its own takes the model's times there as they are.
    assert by_form[LOGARITHMIC].time_mape == pytest.approx(by_form[LOGARITHMIC].own_mape * EXPONENT, rel=0.3)
    assert by_form[LOGARITHMIC].rows == by_form[PLAIN].rows > 0


def test_the_same_device_twice_and_too_little_in_common_are_refused() -> None:
    with pytest.raises(InputError, match="expected two different ones, found cpu twice"):
        shared_times(counted_co_runs(), "cpu", "cpu")
    assert "timed on cpu and on moon, found none" in refusal(shared_times, counted_co_runs(), "cpu", "moon")
