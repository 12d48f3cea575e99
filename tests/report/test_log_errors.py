"""Axes of errors have some ticks, whatever the errors span, and these are where they say."""

import math

import pytest

from crosscast.report.canvas import new_figure
from crosscast.report.corun_figures.log_errors import error_scale


@pytest.mark.parametrize("errors", [[5.0], [8.1, 8.4], [3.0, 30.0], [0.0, 0.5, 4000.0], [math.nan, 7.0]])
def test_ticks_are_enough_and_true(errors: list[float]) -> None:
    axes = new_figure(4, 4).subplots()
    error_scale(axes, errors)
    ticks = [float(label.get_text()) for label in axes.get_yticklabels()]
    assert 1 <= len(ticks) <= 12
    assert [10**place for place in axes.get_yticks()] == pytest.approx(ticks, rel=1e-3)
    low, high = axes.get_ylim()
    assert all(low <= math.log10(max(error, 0.1)) <= high for error in errors if error == error)
