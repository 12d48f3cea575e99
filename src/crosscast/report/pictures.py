"""Output of matplotlib figures to files and pages, with reproducible bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.arrays import AnyArray
from crosscast.data.files import atomic_file, make_folder
from crosscast.errors import InputError, importing
from crosscast.report.document import Drawing, Figure, Heading, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as PlotFigure
    from numpy.typing import ArrayLike

FORMATS = (".png", ".svg", ".pdf")
"""Suffixes of the formats in which figures are written."""

# Metadata has the date and the version.
_METADATA = re.compile(rb"\s*<metadata>.*?</metadata>", re.DOTALL)

_MOST_MARKS = 3000
"""Largest number of a picture's marks for which a page has tooltips."""


def require_matplotlib() -> type[PlotFigure]:
    """Import the class of figures of matplotlib."""
    with importing("report", "a figure"):
        import matplotlib.figure
    return matplotlib.figure.Figure


def check_suffix(option: str, path: Path) -> None:
    """Raise InputError unless a file's suffix is a known format."""
    if path.suffix.lower() not in FORMATS:
        raise InputError.of(
            where=option, expected=f"a file name with {', '.join(FORMATS)}", found=repr(path.name)
        )


@contextmanager
def _settings() -> Iterator[None]:
    """Use settings that give reproducible bytes: without a salt, ids in an SVG are random."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcParams["svg.hashsalt"] = "crosscast"
        yield


def save_figure(figure: PlotFigure, path: Path) -> Path:
    """Write a figure in the format of the suffix, and return the path."""
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    with atomic_file(path, field="figures") as temporary, _settings():
        figure.savefig(temporary, metadata=undated)
    return path


def save_figures(figures: Mapping[str, PlotFigure], folder: Path) -> list[Path]:
    """Write figures into a folder, which is created, by their names, which may contain subfolders."""
    make_folder(folder, "figures")
    paths = [folder / f"{name}.png" for name in figures]
    for parent in {path.parent for path in paths}:
        make_folder(parent, "figures")
    return [save_figure(figure, path) for path, figure in zip(paths, figures.values(), strict=True)]


def as_drawing(draw: Callable[[], PlotFigure]) -> Drawing:
    """Draw a figure for a page, with tooltips for the values of its marks, bars and cells.

    It is independent of the user's settings of matplotlib.
    """
    require_matplotlib()
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        with _settings():
            figure = draw()
            figure.savefig(buffer, format="svg")
    marks = [mark for axes in figure.axes for mark in _marks_of(figure, axes)]
    return Drawing(_METADATA.sub(b"", buffer.getvalue()), marks if len(marks) <= _MOST_MARKS else ())


def _marks_of(figure: PlotFigure, axes: Axes) -> Iterator[tuple[int, int, str]]:
    """Positions and tooltips of the values drawn in axes, with the labels of the axes."""
    if not axes.axison or axes.name == "polar":
        return
    width, height = figure.bbox.size
    titles = [getattr(figure, name) for name in ("_supxlabel", "_supylabel")]
    shared = ["" if label is None else label.get_text() for label in titles]
    names = [axes.get_xlabel() or shared[0], axes.get_ylabel() or shared[1]]
    title = axes.get_title()
    for x, y, label, value in _values_of(axes):
        across, down = axes.transData.transform((x, y)) / (width, height)
        if not (0 <= across <= 1 and 0 <= down <= 1):
            continue
        sides = zip(names, (axes.xaxis, axes.yaxis), (x, y), strict=True)
        texts = [f"{name} {_format(axis, number)}".strip() for name, axis, number in sides]
        words = [title, label, *([_format(axes.xaxis, x), _format(axes.yaxis, y), value] if value else texts)]
        tooltip = ", ".join(" ".join(text.split()) for text in words if text)
        yield round(1e4 * across), round(1e4 * (1 - down)), tooltip.replace(r"\$", "$")


def _values_of(axes: Axes) -> Iterator[tuple[float, float, str, str]]:
    """Data coordinates, label and value of marks, ends of bars, and cells of heat maps."""
    # Imported here, and below: commands that may draw import this module, and most draw nothing.
    import numpy as np
    from matplotlib.collections import PathCollection

    for line in axes.lines:
        label = "" if str(line.get_label()).startswith("_") else str(line.get_label())
        # A labelled line of more than two points is data, too.
        if line.get_marker() not in (None, "", "None") or (label and np.size(line.get_xdata()) > 2):
            yield from ((x, y, label, "") for x, y in _finite(line.get_xydata()))
    for cloud in axes.collections:
        if isinstance(cloud, PathCollection):
            label = "" if str(cloud.get_label()).startswith("_") else str(cloud.get_label())
            yield from ((x, y, label, "") for x, y in _finite(cloud.get_offsets()))
    for bar in (bar for container in axes.containers for bar in getattr(container, "patches", ())):
        # Bars are horizontal: the end is the value.
        yield bar.get_x() + bar.get_width(), bar.get_y() + bar.get_height() / 2, "", ""
    for image in axes.images:
        values: AnyArray = np.ma.filled(np.ma.asarray(image.get_array()), np.nan)
        for (row, column), value in np.ndenumerate(values):
            if np.ndim(value) == 0 and np.isfinite(value):
                yield column, row, "", f"{value:.4g}"


def _finite(points: ArrayLike) -> list[list[float]]:
    import numpy as np

    filled = np.ma.filled(np.ma.asarray(points, dtype=np.float64), np.nan)
    finite: list[list[float]] = filled[np.isfinite(filled).all(axis=1)].tolist()
    return finite


def _format(axis: Axis, value: float) -> str:
    """Format a value as its axis does; on an axis of names, return the name."""
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    formatter = axis.get_major_formatter()
    if isinstance(formatter, FixedFormatter):
        ticks = list(axis.get_majorticklocs())
        nearest = min(range(len(ticks)), key=lambda index: abs(ticks[index] - value), default=None)
        return "" if nearest is None else str(formatter(value, nearest))
    return str(formatter(value, 0)) if isinstance(formatter, FuncFormatter) else f"{value:.4g}"


def with_figures(report: Report, figures: Mapping[str, PlotFigure]) -> Report:
    """Append figures to a report in a section."""
    if not figures:
        return report
    return replace(report, parts=[*report.parts, Heading("Figures", 2), *figure_parts(figures)])


def figure_parts(figures: Mapping[str, PlotFigure]) -> list[Figure]:
    """Figures as parts of a report, each with its heading as alternative text."""

    def drawing(figure: PlotFigure) -> Callable[[], Drawing]:
        return lambda: as_drawing(lambda: figure)

    return [Figure(drawing(figure), heading_of(figure) or name) for name, figure in figures.items()]


def heading_of(figure: PlotFigure) -> str:
    """Heading of a figure as plain text."""
    title = figure.get_suptitle() or next((axes.get_title(loc="left") for axes in figure.axes), "")
    return " ".join(str(title).split()).replace(r"\$", "$")
