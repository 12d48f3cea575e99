"""Times of one device are translated to another by a line that left-out applications judge."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.evaluation.corun.translation import (
    SharedTimes,
    shared_times,
    train_translation,
    translation_scores,
)
from crosscast.prediction.corun.translation import LOGARITHMIC, PLAIN, TimeLine
from support.mixes import APPLICATIONS, EXPONENT, FACTOR, counted_co_runs, studied
from support.refusals import refusal


def shared() -> SharedTimes:
    return shared_times(counted_co_runs(), "cpu", "other")


def test_a_power_law_is_found_and_is_better_than_a_plain_line() -> None:
    card = train_translation(shared())
    assert card.line.form == LOGARITHMIC
    assert card.line.slope == pytest.approx(EXPONENT)
    assert card.line.intercept == pytest.approx(math.log(FACTOR))
    result = translation_scores(shared())
    scores = {(each.form, each.quantity, each.members): each for each in result}
    assert scores[LOGARITHMIC, "time", None].mape == pytest.approx(0, abs=1e-6)
    assert scores[LOGARITHMIC, "slowdown", 2].mape == pytest.approx(0, abs=1e-6)
    assert scores[PLAIN, "time", None].mape > 0.005
    assert scores[PLAIN, "time", 1].to_dict()["accuracy"] == 1 - scores[PLAIN, "time", 1].mape


def test_errors_are_those_of_lines_without_the_application() -> None:
    times = shared()
    # What one application does elsewhere does not lessen its own error.
    odd = times.having("bfs")
    bent = replace(times, target_s=np.where(odd, 3 * times.target_s, times.target_s))
    card = train_translation(bent)
    errors = card.errors["time"].residuals
    of_bfs = errors.log_error[errors.group == errors.groups.index("bfs")]
    line = TimeLine.fit(card.line.form, bent.source_s[~odd], bent.target_s[~odd])
    np.testing.assert_allclose(
        np.sort(of_bfs), np.sort(np.log(line(bent.source_s[odd]) / bent.target_s[odd]))
    )
    assert abs(of_bfs).max() > 1


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
