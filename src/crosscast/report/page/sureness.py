"""By application: how often intervals hold the measured time, and what the recommended device costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosscast.report.canvas import new_figure
from crosscast.report.numbers import factor, percent
from crosscast.report.page.markup import Markup
from crosscast.report.page.pictures import BLUE, GREY, RED, drawn, picture, plain
from crosscast.report.page.subject import Subject

__all__ = ["sureness"]

_LOGARITHMIC_FROM = 4.0


def sureness(subject: Subject) -> Markup:
    """The picture of coverage and, where there is a choice, of slowdown."""
    scores, level = subject.result.scores, f"{100 * subject.result.level:g} %"
    alternative = [
        f"Intervals hold {percent(scores.coverage)} of the measured times where {level} are wanted, and "
        f"{percent(scores.coverage_worst_application)} in the worst application."
    ]
    caption = [
        f"Coverage: share of an application's cells whose measured time is within its {level} interval; the "
        "dashed line is what is wanted. Intervals of an application far to the left of it were too sure."
    ]
    if scores.slowdown_mean is not None:
        alternative.append(
            f"The recommended device takes {factor(scores.slowdown_mean)} the least time on average."
        )
        caption.append(
            "Slowdown: measured time on the recommended device over that on the fastest one, mean over an "
            f"application's kernels and sizes; 1 is perfect.{_beside(subject)}"
        )
    return picture(drawn(lambda: _figure(subject)), " ".join(alternative), " ".join(caption))


def _beside(subject: Subject) -> str:
    always = subject.study.always
    if always is None:
        return ""
    return f" Squares: always taking {always[0]}, the one device that is best afterwards."


def _figure(subject: Subject) -> Any:
    names = _ordered(subject)
    choice = subject.result.scores.slowdown_mean is not None
    figure = new_figure(10 if choice else 6.5, 1.2 + 0.27 * len(names))
    all_axes = figure.subplots(1, 2 if choice else 1, sharey=True, squeeze=False).ravel()
    _draw_coverage(all_axes[0], subject, names)
    if choice:
        _draw_slowdown(all_axes[1], subject, names)
    # Not both axes: they are one.
    all_axes[0].set_yticks(range(len(names)), [plain(name) for name in names])
    all_axes[0].set_ylim(-0.6, len(names) - 0.4)
    return figure


def _ordered(subject: Subject) -> list[str]:
    """Applications, that with the least coverage at the top."""
    applications = subject.result.applications
    there = [(each.coverage, name) for name, each in applications.items() if each.coverage is not None]
    return [name for _, name in sorted(there, reverse=True)]


def _draw_coverage(axes: Any, subject: Subject, names: Sequence[str]) -> None:
    applications = subject.result.applications
    shares = [100 * (applications[name].coverage or 0.0) for name in names]
    level = 100 * subject.result.level
    axes.axvline(level, color=RED, linewidth=1.2, linestyle="--")
    axes.hlines(range(len(names)), [level] * len(names), shares, color=BLUE, linewidth=1.5)
    axes.plot(shares, range(len(names)), "o", color=BLUE, markersize=5.5)
    axes.set_xlim(min(50.0, *shares) - 2, 102)
    axes.set_xlabel("cells within their interval, %")
    axes.set_title(f"Coverage, {level:g} % wanted")


def _draw_slowdown(axes: Any, subject: Subject, names: Sequence[str]) -> None:
    always = subject.study.always
    fixed = {} if always is None else always[1].applications
    most = 1.0
    for place, name in enumerate(names):
        own = subject.result.applications[name].slowdown_mean
        other = fixed[name].slowdown_mean if name in fixed else None
        most = max(most, own or 1.0, other or 1.0)
        if other is not None:
            axes.plot([other], [place], "s", color=GREY, markersize=8, markerfacecolor="white")
        if own is not None:
            axes.plot([1.0, own], [place, place], color=BLUE, linewidth=1.5)
            axes.plot([own], [place], "o", color=BLUE, markersize=5.5)
    if most > _LOGARITHMIC_FROM:
        from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(1.0, color=RED, linewidth=1.2, linestyle="--")
    axes.set_xlabel("measured time on the recommended device / on the fastest")
    axes.set_title("Slowdown, 1 is perfect")
