"""Axes are logarithmic where values are very different, and have plain numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosscast.report.figures import WIDE, logarithmic_axis, new_figure, spread_axis


def drawn(values: np.ndarray[Any, Any], scale: Callable[..., None]) -> Any:
    figure = new_figure(6, 4)
    axes = figure.subplots()
    axes.plot(values, np.ones_like(values), "o")
    scale(axes, "x", values)
    figure.draw_without_rendering()
    return axes


def labels(axes: Any) -> list[str]:
    """Those inside the picture."""
    low, high = axes.get_xlim()
    ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high]


@pytest.mark.parametrize(("greatest", "scale"), [(WIDE, "linear"), (WIDE * 1.01, "log")])
def test_very_different_values_have_a_logarithmic_axis(greatest: float, scale: str) -> None:
    axes = drawn(np.array([1.0, np.nan, greatest]), spread_axis)
    assert (axes.get_xscale(), axes.get_yscale()) == (scale, "linear")


def test_labels_are_decades_as_plain_numbers() -> None:
    axes = drawn(np.array([0.05, 2000.0]), spread_axis)
    assert labels(axes) == ["0.1", "1", "10", "100", "1000"]


def test_values_that_are_alike_have_labels_between_decades() -> None:
    axes = drawn(np.array([0.9, 8.0]), logarithmic_axis)
    assert axes.get_xscale() == "log"
    assert labels(axes) == ["1", "1.5", "2", "3", "5", "7"]
    assert {each.get_text() for each in axes.get_xticklabels(minor=True)} <= {""}
