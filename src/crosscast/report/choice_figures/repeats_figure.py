"""How often caps are kept when the chosen configurations are run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosscast.decide.scores import ChoiceResult, Metrics
from crosscast.report.canvas import new_figure
from crosscast.report.choice_figures.styles import method_label
from crosscast.report.figure_style import BLUE, GREY, RED, heading, legend_below, tidy

__all__ = ["repeats_figure"]

_SERIES = (
    ("same run", GREY, "o"),
    ("same run, 1 % tolerance", GREY, "s"),
    ("other repeats (simulated), 1 % tolerance", BLUE, "D"),
    ("other repeats (simulated), told 1 % less", RED, "X"),
)
_HOLLOW = ("same run",)


def repeats_figure(results: Sequence[ChoiceResult], split_half: Metrics, title: str) -> Any:
    """A row a method, and one for the split-half oracle.

    Parameters
    ----------
    results
        A result for each method.
    split_half
        The oracle that knows one repeat and is scored on another.
    title
        What it is of.
    """
    rows = [(method_label(each), _shares(each)) for each in results]
    rows.append(("split-half oracle", (None, None, split_half.under_limit_share_within_1pct, None)))
    rows.reverse()
    figure = new_figure(8, 1.9 + 0.3 * len(rows))
    axes = figure.subplots()
    for place, (name, colour, mark) in enumerate(_SERIES):
        known = [(shares[place], row) for row, (_, shares) in enumerate(rows) if shares[place] is not None]
        axes.plot(
            [100 * (share or 0.0) for share, _ in known],
            [row for _, row in known],
            mark,
            color=colour,
            markerfacecolor="white" if name in _HOLLOW else colour,
            markersize=10 if name in _HOLLOW else 6.5,
            label=name,
            clip_on=False,
            zorder=3 + place,
        )
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlabel("cases within the cap, %")
    tidy(axes)
    handles, labels = axes.get_legend_handles_labels()
    legend_below(figure, handles, labels, 2)
    heading(figure, title)
    return figure


def _shares(result: ChoiceResult) -> tuple[float | None, ...]:
    metrics, again = result.metrics, result.on_repeats
    return (
        metrics.under_limit_share,
        metrics.under_limit_share_within_1pct,
        None if again is None else again.tolerated[0],
        None if again is None else again.told_less.under_limit_share,
    )
