"""What all figures are made of: one palette and style, and bars, heat maps, points and steps over arrays."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.files import made, whole_file
from crosscast.errors import InputError, MissingExtraError
from crosscast.report.document import Drawing, Figure, Heading, Report, visible
from crosscast.units import elapsed_unit, format_seconds

# Okabe and Ito's palette, for people who do not see all colours; without its yellow, too light for lines.
BLUE, RED, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
SKY, PINK, BLACK, GREY = "#56b4e9", "#cc79a7", "#000000", "#777777"
OLIVE, INDIGO = "#7a6a00", "#332288"
COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, OLIVE)
MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h")
DASHES = ("solid", (0, (5, 1.5)), (0, (1, 1.2)))
MAP = "cividis"
"""Colours of values: even in brightness, and the same for people who do not see all colours."""

FORMATS = (".png", ".svg", ".pdf")
"""Suffixes of the formats in which figures are written."""

WIDE = 30.0
"""Ratio of the greatest to the least value from which on an axis is logarithmic, and labels of decades do."""

_LETTERS_PER_INCH = 11
"""Of headings."""

# Date, version and the like.
_METADATA = re.compile(rb"\s*<metadata>.*?</metadata>", re.DOTALL)


def require_matplotlib() -> Any:
    """Module ``matplotlib.figure``."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingExtraError("report", "a figure") from error
    return matplotlib.figure


def check_suffix(option: str, path: Path) -> None:
    """Refuse a file name that says no known format."""
    if path.suffix.lower() not in FORMATS:
        raise InputError.of(
            where=option, expected=f"a file name with {', '.join(FORMATS)}", found=repr(path.name)
        )


def new_figure(width: float, height: float) -> Any:
    """An empty figure, its size in inches."""
    # Not pyplot's: no global state, and Agg without being told.
    return require_matplotlib().Figure(
        figsize=(width, height), dpi=150, facecolor="white", layout="constrained"
    )


def one_figure(width: float, height: float) -> tuple[Any, Any]:
    """An empty figure with one pair of axes, and these."""
    figure = new_figure(width, height)
    return figure, figure.subplots()


@contextmanager
def _settings(**style: Any) -> Iterator[None]:
    """The same bytes each time: parts of an SVG have random names without a salt."""
    import matplotlib

    with matplotlib.rc_context():
        settings: dict[Any, Any] = {"svg.hashsalt": "crosscast", **style}
        matplotlib.rcParams.update(settings)
        yield


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure in the format that the suffix says, and return the path."""
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    try:
        with whole_file(path) as temporary, _settings():
            figure.savefig(temporary, metadata=undated)
    except OSError as error:
        raise InputError(f"figures: cannot write {path} ({error.strerror or error})") from error
    return path


def save_figures(figures: Mapping[str, Any], folder: Path, suffix: str = ".png") -> list[Path]:
    """Write figures into a folder, which is made, by their names, which may begin with folders in it."""
    if suffix not in FORMATS:
        raise InputError.of(where="figures", expected=f"one of {', '.join(FORMATS)}", found=repr(suffix))
    made(folder, "figures")
    paths = [folder / f"{name}{suffix}" for name in figures]
    for place in {path.parent for path in paths}:
        made(place, "figures")
    return [save_figure(figure, path) for path, figure in zip(paths, figures.values(), strict=True)]


def as_svg(draw: Callable[[], Any], **style: Any) -> bytes:
    """Draw a figure for a page: the same bytes whatever the user's own settings of matplotlib are."""
    require_matplotlib()
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        with _settings(**style):
            draw().savefig(buffer, format="svg")
    return _METADATA.sub(b"", buffer.getvalue())


_MOST_MARKS = 3000
"""Of a picture, whose values a page tells; of more, it tells none."""


def as_drawing(draw: Callable[[], Any], **style: Any) -> Drawing:
    """A figure for a page, with the values of its marks, bars and fields."""
    figure: Any = None

    def once() -> Any:
        nonlocal figure
        figure = draw()
        return figure

    svg = as_svg(once, **style)
    marks = [mark for axes in figure.axes for mark in _marks_of(figure, axes)]
    return Drawing(svg, marks if len(marks) <= _MOST_MARKS else ())


def _marks_of(figure: Any, axes: Any) -> Iterator[tuple[int, int, str]]:
    """Places of what is drawn in one pair of axes, and what it says, with the words of the axes."""
    if not axes.axison or axes.name == "polar":
        return
    width, height = figure.bbox.size
    shared = [each.get_text() if each is not None else "" for each in (figure._supxlabel, figure._supylabel)]
    names = [axes.get_xlabel() or shared[0], axes.get_ylabel() or shared[1]]
    title = axes.get_title()
    for x, y, label, value in _values_of(axes):
        across, down = axes.transData.transform((x, y)) / (width, height)
        if not (0 <= across <= 1 and 0 <= down <= 1):
            continue
        sides = zip(names, (axes.xaxis, axes.yaxis), (x, y), strict=True)
        texts = [f"{name} {_at(axis, each)}".strip() for name, axis, each in sides]
        words = [title, label, *([_at(axes.xaxis, x), _at(axes.yaxis, y), value] if value else texts)]
        said = ", ".join(" ".join(each.split()) for each in words if each)
        yield round(1e4 * across), round(1e4 * (1 - down)), said.replace(r"\$", "$")


def _values_of(axes: Any) -> Iterator[tuple[float, float, str, str]]:
    """Data coordinates, label and value of marks, ends of bars, and fields of maps."""
    from matplotlib.collections import PathCollection

    for line in axes.lines:
        label = "" if str(line.get_label()).startswith("_") else str(line.get_label())
        # A line with a name is of data, too, where it is not a border between two points.
        if line.get_marker() not in (None, "", "None") or (label and len(line.get_xdata()) > 2):
            yield from ((x, y, label, "") for x, y in _finite(line.get_xydata()))
    for cloud in axes.collections:
        if isinstance(cloud, PathCollection):
            label = "" if str(cloud.get_label()).startswith("_") else str(cloud.get_label())
            yield from ((x, y, label, "") for x, y in _finite(cloud.get_offsets()))
    for bar in (bar for container in axes.containers for bar in getattr(container, "patches", ())):
        # Bars lie: their end is the value, their middle the place.
        yield bar.get_x() + bar.get_width(), bar.get_y() + bar.get_height() / 2, "", ""
    for image in axes.images:
        for (row, column), value in np.ndenumerate(np.ma.filled(image.get_array(), np.nan)):
            if np.ndim(value) == 0 and np.isfinite(value):
                yield column, row, "", f"{value:.4g}"


def _finite(places: Any) -> list[list[float]]:
    found = np.ma.filled(np.ma.asarray(places, dtype=np.float64), np.nan)
    finite: list[list[float]] = found[np.isfinite(found).all(axis=1)].tolist()
    return finite


def _at(axis: Any, value: float) -> str:
    """A value as the axis writes it; on an axis of names, the name."""
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    formatter = axis.get_major_formatter()
    if isinstance(formatter, FixedFormatter):
        places = list(axis.get_majorticklocs())
        nearest = min(range(len(places)), key=lambda place: abs(places[place] - value), default=None)
        return "" if nearest is None else str(formatter(value, nearest))
    return str(formatter(value, 0)) if isinstance(formatter, FuncFormatter) else f"{value:.4g}"


def with_figures(report: Report, figures: Mapping[str, Any]) -> Report:
    """A report with figures in a section at its end, each described by its heading."""
    if not figures:
        return report
    drawn = [
        Figure(partial(as_drawing, partial(_same, figure)), heading_of(figure) or name)
        for name, figure in figures.items()
    ]
    return replace(report, parts=[*report.parts, Heading("Figures", 2), *drawn])


def _same(figure: Any) -> Any:
    return figure


@dataclass(frozen=True)
class Look:
    """Colour, mark and the mark's face: what tells one of several things from all others."""

    colour: str
    mark: str
    face: str


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name; when the colours come again, the marks are other ones, and hollow in turn."""
    found = {}
    for place, name in enumerate(names):
        turn = place // len(COLOURS)
        colour, mark = COLOURS[place % len(COLOURS)], MARKS[(place + turn) % len(MARKS)]
        found[name] = Look(colour, mark, "white" if turn % 2 else colour)
    return found


def plain_text(text: str, longest: int | None = None) -> str:
    """A name as it can be drawn: not too long, and taken for no formula by matplotlib.

    >>> plain_text("cost in $ and $")
    'cost in \\\\$ and \\\\$'
    >>> plain_text("kernel_one", 8), plain_text("kernel_two", 8)
    ('kern…one', 'kern…two')
    """
    shown = visible(text)
    if longest is not None and len(shown) > longest:
        # What tells names apart is as often at their end.
        end = (longest - 1) // 2
        shown = f"{shown[: longest - 1 - end]}…{shown[len(shown) - end :]}"
    return shown.replace("$", r"\$")


def style_axes(axes: Any, *, x: str = "", y: str = "") -> None:
    """A light grid behind the data, no frame on the right and above, and labels."""
    if x:
        axes.set_xlabel(x)
    if y:
        axes.set_ylabel(y)
    axes.grid(visible=True, color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def titled(figure: Any, *sentences: str) -> Any:
    """The figure with what it is of above it on the left, each sentence on lines of its own."""
    width = int(_LETTERS_PER_INCH * figure.get_figwidth())
    lines = [line for sentence in sentences for line in wrap(sentence, width, break_on_hyphens=False)]
    figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=10.5)
    return figure


def heading_of(figure: Any) -> str:
    """The sentences above a figure, as words for those who do not see it."""
    title = figure.get_suptitle() or next((axes.get_title(loc="left") for axes in figure.axes), "")
    return " ".join(str(title).split()).replace(r"\$", "$")


def legend_below(figure: Any, columns: int, lines: Mapping[str, Any] | None = None) -> None:
    """A legend outside the data, under the axes: of the first of these, or of the lines by label."""
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


def label_beside(axes: Any, marks: Iterable[tuple[str, tuple[float, float]]]) -> None:
    """Names right of the axes at equal distances, the highest mark's first, each with a line to its mark."""
    ordered = sorted(marks, key=lambda each: (-each[1][1], each[1][0]))
    for place, (name, at) in enumerate(ordered):
        axes.annotate(
            name,
            at,
            xytext=(1.02, 1 - (place + 0.5) / len(ordered)),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkB": 4, "relpos": (0, 0.5)},
            zorder=4,
        )


def panels(count: int, columns: int, width: float, height: float, **how: Any) -> tuple[Any, list[Any]]:
    """A figure with so many axes in rows, of the size of one of them in inches."""
    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure = new_figure(width * columns, height * rows + 0.9)
    every = figure.subplots(rows, columns, squeeze=False, **how).ravel().tolist()
    for axes in every[count:]:
        axes.set_axis_off()
    for axes in every[max(count - columns, 0) : count]:
        axes.tick_params(labelbottom=True)
    return figure, every[:count]


def labels_below(axes: Any, names: Sequence[str], rotation: float = 45, size: float = 9) -> None:
    """Names along the horizontal axis."""
    axes.set_xticks(
        range(len(names)), names, rotation=rotation, ha="right", rotation_mode="anchor", fontsize=size
    )


def _label_rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.6)


_ROOM = 0.1
"""Share of the axis that a number takes."""


def bars(
    axes: Any,
    values: Mapping[str, float],
    *,
    write: Callable[[float], str] | None = None,
    colours: Any = BLUE,
    intervals: Sequence[tuple[float, float] | None] = (),
    rivals: Sequence[float] = (),
    labels: tuple[str, str] = ("_", "_"),
    end: float = math.inf,
) -> None:
    """A bar a name from above, with number, interval and a rival's mark; what is over the end is cut."""
    names, there = list(values), list(values.values())
    shown = [min(value, end) for value in there]
    axes.barh(range(len(names)), shown, color=colours, height=0.62, zorder=2, label=labels[0])
    right = list(shown)
    for place, interval in enumerate(intervals):
        if interval is not None and there[place] <= end:
            low, high = interval[0], min(interval[1], end)
            axes.plot([low, high], [place, place], color=BLACK, linewidth=1.5, zorder=3)
            right[place] = max(right[place], high)
    if len(rivals):
        axes.plot(
            rivals,
            range(len(names)),
            "D",
            color=GREY,
            markersize=6.5,
            markeredgecolor="white",
            zorder=3,
            label=labels[1],
            clip_on=False,
        )
    limit = max(each for each in (*right, *rivals, 1e-12) if math.isfinite(each))
    for place, value in enumerate(there if write is not None else ()):
        text = write(value) + (" →" if value > end else "") if write is not None else ""
        # Beside a mark, a number would seem to be the mark's.
        inside = len(rivals) > 0 and value > _ROOM * limit
        beyond = max(
            [right[place], *[each for each in rivals[place : place + 1] if each < value + 0.2 * limit]]
        )
        at, colour = (0.01 * limit, "white") if inside else (beyond + 0.015 * limit, BLACK)
        axes.text(at, place, text, va="center", fontsize=8.5, color=colour, zorder=4)
    _label_rows(axes, names)
    axes.set_xlim(min(0.0, *(1.1 * each for each in shown)), (1.15 if write is not None else 1.05) * limit)
    style_axes(axes)
    axes.grid(visible=False, axis="y")


def letters_on(colour: Sequence[float]) -> str:
    """Black or white: of the two, that with more contrast by WCAG 2, which is always 4.5 and more."""
    light = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour[:3]]
    luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
    return "#000000" if (luminance + 0.05) ** 2 > 0.05 * 1.05 else "#ffffff"


def heat_map(
    axes: Any,
    values: Reals,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    write: Callable[[float], str] | None,
    limits: tuple[float, float],
    label: str = "",
    reverse: bool = False,
    rotation: float = 45,
) -> Any:
    """A cell a value, with its number; what is not known stays empty, and colours end at the limits."""
    image = axes.imshow(
        values, cmap=f"{MAP}_r" if reverse else MAP, vmin=limits[0], vmax=limits[1], aspect="auto"
    )
    for (row, column), value in np.ndenumerate(values) if write is not None else ():
        if np.isfinite(value) and write is not None:
            colour = letters_on(image.cmap(image.norm(value)))
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


def robust_limits(values: Reals) -> tuple[float, float]:
    """Ends of the colours: what is far off would make all the rest look alike."""
    known = values[np.isfinite(values)]
    low = float(known.min())
    return low, max(min(float(known.max()), 3 * float(np.median(known))), low + 1e-3)


def points(axes: Any, x: Any, y: Any, look: Look, label: str, *, size: float = 4.0, **how: Any) -> None:
    """Marks of one of several things."""
    axes.plot(
        x,
        y,
        look.mark,
        **{
            "color": look.colour,
            "markerfacecolor": look.face,
            "markersize": size,
            "markeredgewidth": 0 if look.face == look.colour else 0.8,
            "label": label,
            "zorder": 3,
            **how,
        },
    )


def steps(axes: Any, x: Any, y: Any, **how: Any) -> None:
    """A line that keeps its value up to the next."""
    axes.plot(x, y, **{"drawstyle": "steps-post", "linewidth": 1.2, "zorder": 2, **how})


def diagonal(axes: Any, limits: tuple[float, float]) -> None:
    """Logarithmic axes of predicted over measured: lines where they are equal, and half and twice as much."""
    ends = np.array(limits)
    axes.plot(ends, ends, color=GREY, linewidth=1.0, zorder=1)
    for ratio in (0.5, 2.0):
        axes.plot(ends, ratio * ends, color=GREY, linewidth=0.6, linestyle=(0, (4, 3)), zorder=1)
    axes.set(xscale="log", yscale="log", xlim=limits, ylim=limits, aspect="equal")


def spread_axis(axes: Any, name: Literal["x", "y"], values: Reals) -> None:
    """Make an axis logarithmic if the values are very different, as over small devices and large ones."""
    if _wide(values):
        logarithmic_axis(axes, name, values)


def logarithmic_axis(axes: Any, name: Literal["x", "y"], values: Reals) -> None:
    """Make an axis logarithmic, with plain numbers, and more of them where values are not so different."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{name}scale": "log"})
    axis = getattr(axes, f"{name}axis")
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    if not _wide(values):
        axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))


def _wide(values: Reals) -> bool:
    return bool(np.nanmax(values) > WIDE * np.nanmin(values))


_ONE_DECADE = 1.2
_TWO_DECADES = 2.2


def time_axis(axis: Any, low: float, high: float, most: int) -> None:
    """Ticks with units on a logarithmic axis of times."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    decades = math.log10(high / low) if high > low > 0 else 1.0
    within = (1.0, 2.0, 5.0) if decades < _ONE_DECADE else (1.0, 3.0) if decades < _TWO_DECADES else (1.0,)
    axis.set_major_locator(LogLocator(subs=within, numticks=most))
    axis.set_major_formatter(FuncFormatter(lambda seconds, _: format_seconds(seconds)))
    axis.set_minor_locator(NullLocator())


def label_elapsed(axes: Any, from_s: float, to_s: float) -> float:
    """Set the limits and the label of a horizontal axis of times; return the seconds of its unit."""
    unit_s, name = elapsed_unit(to_s)
    axes.set_xlim(from_s / unit_s, max(to_s, from_s + 1e-9) / unit_s)
    axes.set_xlabel(f"time since the first submission, {name}")
    return unit_s
