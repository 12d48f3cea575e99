"""Elements of all figures: palette and style, and bars, heat maps, points and steps over arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluation.resampling import SHARE, Interval
from crosscast.report.document import Write, require_matplotlib, visible
from crosscast.report.fields import UNITS, three_digits, value_of
from crosscast.units import elapsed_unit, format_seconds

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import ArrayLike

# Okabe and Ito's palette for colour-blind readers, without its yellow, which is too light for lines.
BLUE, RED, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
SKY, PINK, BLACK, GREY = "#56b4e9", "#cc79a7", "#000000", "#777777"
OLIVE, INDIGO = "#7a6a00", "#332288"
COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, OLIVE)
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
DASHES = ("solid", (0, (5, 1.5)), (0, (1, 1.2)))
MAP = "cividis"
"""Colour map, perceptually uniform and suitable for colour-blind readers."""


WIDE = 30.0
"""Ratio of greatest to least value above which an axis is logarithmic, with labels at decades only."""

_LETTERS_PER_INCH = 11
"""Width of headings."""


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of a size in inches."""
    # Without pyplot there is no global state, and the backend is Agg.
    return require_matplotlib()(figsize=(width, height), dpi=150, facecolor="white", layout="constrained")


def one_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Make an empty figure with one pair of axes."""
    figure = new_figure(width, height)
    return figure, figure.subplots()


@dataclass(frozen=True)
class Look:
    """Colour, mark and the mark's face of a series."""

    colour: str
    mark: str
    face: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Assign a look to each name; when colours repeat, marks differ and are hollow every other time."""
    result = {}
    for index, name in enumerate(names):
        cycle = index // len(COLOURS)
        colour, mark = COLOURS[index % len(COLOURS)], MARKS[(index + cycle) % len(MARKS)]
        result[name] = Look(colour, mark, "white" if cycle % 2 else colour)
    return result


def plain_text(text: str, longest: int | None = None) -> str:
    """Shorten a name, and escape it so that matplotlib does not read it as a formula.

    >>> plain_text("cost in $ and $")
    'cost in \\\\$ and \\\\$'
    >>> plain_text("kernel_one", 8), plain_text("kernel_two", 8)
    ('kern…one', 'kern…two')
    """
    shown = visible(text)
    if longest is not None and len(shown) > longest:
        # Names often differ at their end.
        end = (longest - 1) // 2
        shown = f"{shown[: longest - 1 - end]}…{shown[len(shown) - end :]}"
    return shown.replace("$", r"\$")


def style_axes(axes: Axes, *, x: str = "", y: str = "") -> None:
    """Set a light grid behind the data, no frame on the right and above, and labels."""
    if x:
        axes.set_xlabel(x)
    if y:
        axes.set_ylabel(y)
    axes.grid(visible=True, color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def titled(figure: Figure, *sentences: str) -> Figure:
    """Set the heading of a figure, each sentence on new lines, and return the figure."""
    width = int(_LETTERS_PER_INCH * figure.get_figwidth())
    lines = [line for sentence in sentences for line in wrap(sentence, width, break_on_hyphens=False)]
    figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=10.5)
    return figure


def legend_below(figure: Figure, columns: int, lines: Mapping[str, Artist] | None = None) -> None:
    """Draw a legend below the axes, of the first axes or of the given lines by label."""
    if lines is None:
        handles, labels = figure.axes[0].get_legend_handles_labels()
    else:
        labels, handles = list(lines), list(lines.values())
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(columns, max(len(labels), 1)),
        frameon=False,
        fontsize=9,
        handlelength=3,
    )


def label_beside(axes: Axes, marks: Iterable[tuple[str, tuple[float, float]]]) -> None:
    """Draw names right of the axes at equal distances, the highest mark's first, with lines to the marks."""
    ordered = sorted(marks, key=lambda mark: (-mark[1][1], mark[1][0]))
    for index, (name, point) in enumerate(ordered):
        axes.annotate(
            name,
            point,
            xytext=(1.02, 1 - (index + 0.5) / len(ordered)),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkB": 4, "relpos": (0, 0.5)},
            zorder=4,
        )


def panels(
    count: int, columns: int, width: float, height: float, *, shared: bool = False
) -> tuple[Figure, list[Axes]]:
    """Make a figure with `count` axes in rows; width and height are of one of them in inches."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = new_figure(width * columns, height * rows + 0.9)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=shared, sharey=shared)
    all_axes: list[Axes] = grid.ravel().tolist()
    for axes in all_axes[count:]:
        axes.set_axis_off()
    for axes in all_axes[max(count - columns, 0) : count]:
        axes.tick_params(labelbottom=True)
    return figure, all_axes[:count]


def labels_below(axes: Axes, names: Sequence[str], rotation: float = 45, size: float = 9) -> None:
    """Set names along the horizontal axis."""
    axes.set_xticks(
        range(len(names)), names, rotation=rotation, ha="right", rotation_mode="anchor", fontsize=size
    )


_ROOM = 0.1
"""Width of a number as a share of the axis."""


def bars(
    axes: Axes,
    values: Mapping[str, float],
    *,
    write: Callable[[float], str] | None = None,
    intervals: Sequence[tuple[float, float] | None] = (),
    rivals: Sequence[float] = (),
    labels: tuple[str, str] = ("_", "_"),
) -> None:
    """Draw horizontal bars with numbers, intervals and rivals' marks, the first on top."""
    names, lengths = list(values), list(values.values())
    axes.barh(range(len(names)), lengths, color=BLUE, height=0.62, zorder=2, label=labels[0])
    right = list(lengths)
    for row, interval in enumerate(intervals):
        if interval is not None:
            low, high = interval
            axes.plot([low, high], [row, row], color=BLACK, linewidth=1.5, zorder=3)
            right[row] = max(right[row], high)
    if len(rivals):
        marks: dict[str, Any] = {
            "color": GREY,
            "markersize": 6.5,
            "markeredgecolor": "white",
            "clip_on": False,
        }
        axes.plot(rivals, range(len(names)), "D", zorder=3, label=labels[1], **marks)
    limit = max(value for value in (*right, *rivals, 1e-12) if math.isfinite(value))
    for row, text in enumerate(map(write, lengths) if write is not None else ()):
        length = lengths[row]
        # Beside a rival's mark, the number would seem to be the rival's.
        inside = len(rivals) > 0 and length > _ROOM * limit
        near = [rival for rival in rivals[row : row + 1] if rival < length + 0.2 * limit]
        beyond = max([right[row], *near])
        x, colour = (0.01 * limit, "white") if inside else (beyond + 0.015 * limit, BLACK)
        axes.text(x, row, text, va="center", fontsize=8.5, color=colour, zorder=4)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(min(0.0, *(1.1 * each for each in lengths)), (1.15 if write else 1.05) * limit)
    style_axes(axes)
    axes.grid(visible=False, axis="y")


class ScoredModel(NamedTuple):
    """A model with its scores and their confidence intervals."""

    name: str
    baseline: bool
    scores: object
    intervals: Mapping[str, Interval]


_OFF_SCALE = 2.5
"""Scores above this multiple of the median score are clipped, as they would hide other differences."""


def scores_figure(rows: Sequence[ScoredModel], scores: Mapping[str, str], *sentences: str) -> Figure:
    """Draw a panel for each score with a dot for each model; scores with % in the label are in per cent."""
    figure = new_figure(4.0 * len(scores), 1.6 + 0.3 * len(rows))
    all_axes = figure.subplots(1, len(scores), sharey=True, squeeze=False)[0]
    for axes, (score, label) in zip(all_axes, scores.items(), strict=True):
        scale = 100.0 if "%" in label else 1.0
        values = [value_of(row.scores, score) for row in rows]
        known = sorted(value for value in values if value is not None and math.isfinite(value))
        end = scale * max(_OFF_SCALE * known[len(known) // 2], 1e-9) if known else math.inf
        for y, (row, value) in enumerate(zip(rows, values, strict=True)):
            colour, interval = GREY if row.baseline else BLUE, row.intervals.get(score)
            if interval is not None and value is not None and scale * value <= end:
                limits = [min(scale * limit, end) for limit in (interval.low, interval.high)]
                axes.plot(limits, [y, y], color=colour, linewidth=2, alpha=0.5)
            if value is not None and scale * value <= end:
                axes.plot([scale * value], [y], "o", color=colour, markersize=6)
            elif value is not None:
                text = f"{three_digits(scale * value)} →"
                axes.annotate(text, (end, y), ha="right", va="center", fontsize=8.5)
        if known and scale * known[-1] > end:
            axes.set_xlim(right=end)
        style_axes(axes, x=label)
    # The first model is at the top.
    all_axes[0].set_yticks(range(len(rows)), [plain_text(row.name) for row in rows])
    all_axes[0].set_ylim(len(rows) - 0.4, -0.6)
    drawn = f", lines hold {100 * SHARE:g} % of bootstrap draws of what is left out"
    with_lines = any(row.intervals for row in rows)
    return titled(figure, *sentences, f"dots are scores{drawn if with_lines else ''}; grey: baselines")


def groups_figure(
    model: str,
    values: Mapping[str, float],
    rival: tuple[str, Mapping[str, float]] | None,
    *sentences: str,
    label: str,
    write: Callable[[float], str],
    line: tuple[str, float] | None = None,
) -> Figure:
    """Draw a bar for each held-out group, marks for the best baseline, and a line with a name."""
    figure, axes = one_figure(8, 2.0 + 0.29 * len(values))
    name, others = rival or ("", {})
    marks = [others.get(group, math.nan) for group in values] if rival else []
    bars(axes, values, write=write, rivals=marks, labels=(model, f"{name} (baseline)"))
    if line is not None:
        axes.axvline(line[1], color=BLACK, linewidth=1, linestyle="--", zorder=4, label=line[0])
    axes.set_xlabel(label)
    legend_below(figure, 3)
    return titled(figure, *sentences)


def letters_on(colour: Sequence[float]) -> str:
    """Choose black or white text for a background by contrast (WCAG 2), which is then at least 4.5."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "#ffffff"


def heat_map(
    axes: Axes,
    values: Reals,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    write: Callable[[float], str] | None,
    limits: tuple[float, float],
    label: str = "",
    reverse: bool = False,
    rotation: float = 45,
) -> AxesImage:
    """Draw a cell with a number for each value; NaN stays empty, and colours are clipped to the limits."""
    from matplotlib.colors import Normalize

    norm = Normalize(*limits)
    image = axes.imshow(values, cmap=f"{MAP}_r" if reverse else MAP, norm=norm, aspect="auto")
    for (row, column), value in np.ndenumerate(values) if write is not None else ():
        if np.isfinite(value) and write is not None:
            colour = letters_on(image.cmap(norm(float(value))))
            axes.text(column, row, write(value), ha="center", va="center", fontsize=8.5, color=colour)
    labels_below(axes, columns, rotation, 9 if write is not None else 8)
    axes.set_yticks(range(len(rows)), rows, fontsize=9 if write is not None else 8)
    axes.set_facecolor("#f2f2f2")
    axes.spines[:].set_visible(False)
    if label:
        beyond = "max" if np.nanmax(values, initial=-np.inf) > limits[1] else "neither"
        bar = axes.figure.colorbar(image, ax=axes, label=label, pad=0.02, extend=beyond)
        bar.outline.set_visible(False)
    return image


def points(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    look: Look,
    label: str,
    *,
    size: float = 4.0,
    **style: Any,
) -> None:
    """Draw the marks of a series."""
    defaults: dict[str, Any] = {
        "color": look.colour,
        "markerfacecolor": look.face,
        "markersize": size,
        "markeredgewidth": 0 if look.face == look.colour else 0.8,
        "label": label,
        "zorder": 3,
    }
    axes.plot(x, y, look.mark, **defaults | style)


def steps(axes: Axes, x: ArrayLike, y: ArrayLike, **style: Any) -> None:
    """Draw a step function, which keeps its value up to the next."""
    axes.plot(x, y, **{"drawstyle": "steps-post", "linewidth": 1.2, "zorder": 2, **style})


def diagonal(axes: Axes, limits: tuple[float, float]) -> None:
    """Set logarithmic axes, and draw lines where predicted is equal to, half of and twice the measured."""
    ends = np.array(limits)
    axes.plot(ends, ends, color=GREY, linewidth=1.0, zorder=1)
    for ratio in (0.5, 2.0):
        axes.plot(ends, ratio * ends, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    axes.set(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")


def spread_axis(axes: Axes, name: Literal["x", "y"], values: Reals) -> None:
    """Make an axis logarithmic if the values span a wide range."""
    if _wide(values):
        logarithmic_axis(axes, name, values)


def logarithmic_axis(axes: Axes, name: Literal["x", "y"], values: Reals) -> None:
    """Make an axis logarithmic with plain numbers, and with more ticks where the range is small."""
    axes.set(**{f"{name}scale": "log"})
    within = (1.0,) if _wide(values) else (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    _log_ticks(getattr(axes, f"{name}axis"), "{:g}".format, within)


def _log_ticks(
    axis: Axis, write: Write, within: Sequence[float], base: float = 10.0, most: int | None = None
) -> None:
    """Set labelled ticks at multiples of the powers of a base, and none between them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base, within, numticks=most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axis.set_minor_locator(NullLocator())


def _wide(values: Reals) -> bool:
    return bool(np.nanmax(values) > WIDE * np.nanmin(values))


_ONE_DECADE = 1.2
_TWO_DECADES = 2.2


def time_axis(axis: Axis, low: float, high: float, most: int) -> None:
    """Set ticks with units on a logarithmic axis of times."""
    decades = math.log10(high / low) if high > low > 0 else 1.0
    within = (1.0, 2.0, 5.0) if decades < _ONE_DECADE else (1.0, 3.0) if decades < _TWO_DECADES else (1.0,)
    _log_ticks(axis, format_seconds, within, most=most)


def unit_axis(axis: Axis, unit: str, base: float = 10.0) -> None:
    """Set ticks with their unit on a logarithmic axis, of less than two decades also at 2 and 5."""
    low, high = axis.get_view_interval()
    within = (1.0, 2.0, 5.0) if base == 10 and high < 100 * low else (1.0,)
    _log_ticks(axis, UNITS[unit], within, base)


def label_elapsed(axes: Axes, from_s: float, to_s: float) -> float:
    """Set the limits and the label of a horizontal axis of times; return the seconds of its unit."""
    unit_s, name = elapsed_unit(to_s)
    axes.set_xlim(from_s / unit_s, max(to_s, from_s + 1e-9) / unit_s)
    axes.set_xlabel(f"time since the first submission, {name}")
    return unit_s
