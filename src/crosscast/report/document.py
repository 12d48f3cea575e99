"""Parts of a report, and its output as text, figures and an HTML page.

Heavy imports are avoided, as showing a prediction must not take longer than predicting.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from crosscast.arrays import AnyArray
from crosscast.data.files import atomic_file, make_folder
from crosscast.errors import InputError, importing

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure as PlotFigure
    from numpy.typing import ArrayLike


NONE = "—"
"""Text for an unknown value."""


@dataclass(frozen=True)
class Heading:
    """Heading of the parts that follow; level 1 is the title of a report."""

    text: str
    level: int = 2
    id: str = ""  # Name of the section on a page, for links


@dataclass(frozen=True)
class Text:
    """A paragraph, a list or preformatted lines; a plain string is a paragraph of one sentence."""

    lines: Sequence[str]
    kind: Literal["text", "note", "list", "code", "warnings", "facts", "made"] = "text"


@dataclass(frozen=True, eq=False)
class Ranges:
    """Intervals that a page draws beside the rows of a table: lines with dots on a common scale."""

    rows: Sequence[tuple[float, float, float] | None]  # Low, centre and high, all positive; or nothing
    write: Callable[[float], str]  # Format of the ends of the scale
    what: str  # Name of the quantity

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Least and greatest value of all intervals."""
        intervals = [interval for interval in self.rows if interval is not None]
        low = min((interval[0] for interval in intervals), default=1.0)
        high = max((interval[2] for interval in intervals), default=1.0)
        return low, high if high > low else 2 * low

    def position(self, value: float) -> float:
        """Position of a value on the logarithmic scale, in per cent.

        >>> Ranges([(2.0, 4.0, 8.0)], str, "time").position(4.0)
        50.0
        """
        low, high = self.ends
        return round(100 * math.log(value / low) / math.log(high / low), 2)


Write = Callable[[Any], str]
"""Format of the values of a column, which are of one type."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table: headings, rows of values, and formats of values by heading.

    Text is shown as it is, and unknown values (``None``, NaN) as a dash.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    formats: Mapping[str, Write] = field(default_factory=dict)
    words: Collection[int] = (0,)  # Columns of text, which are left-aligned; numbers are right-aligned
    bold: Collection[int] = ()  # Emphasized rows
    fold: str = ""  # If given, a page folds the table behind this summary
    sorts: bool = True  # Whether rows may be sorted
    ranges: Ranges | None = None  # Intervals that a page draws beside the rows

    def cells(self) -> list[list[str]]:
        """Texts of the cells, row by row."""
        writers = [self.formats.get(heading, str) for heading in self.headings]
        return [
            [_cell(value, write) for value, write in zip(row, writers, strict=False)] for row in self.rows
        ]

    def lines(self, bold: Callable[[str], str] = str) -> Iterator[str]:
        """Write the table as aligned columns of text."""
        rows = [list(map(visible, row)) for row in (self.headings, *self.cells())]
        columns = range(len(rows[0]))
        widths = [max(len(row[column]) for row in rows if column < len(row)) for column in columns]
        for number, row in enumerate(rows, -1):
            texts = [
                f"{cell:{'<' if column in self.words else '>'}{widths[column]}}"
                for column, cell in enumerate(row)
            ]
            line = "  ".join(texts).rstrip()
            yield bold(line) if number < 0 or number in self.bold else line


def _cell(value: object, write: Write) -> str:
    if isinstance(value, str):
        return value
    return NONE if value is None or (isinstance(value, float) and math.isnan(value)) else write(value)


class Drawing(NamedTuple):
    """A picture with tooltips."""

    svg: bytes
    marks: Sequence[tuple[int, int, str]] = ()  # Position from left and top in 1/10,000, and text


@dataclass(frozen=True)
class Figure:
    """A picture with an alternative text; a terminal leaves it out."""

    drawn: Callable[[], Drawing]
    alternative: str
    caption: str = ""


Part = str | Heading | Text | Table | Figure


@dataclass(frozen=True)
class Report:
    """Headings, sentences, tables and figures in order; an empty string is an empty line."""

    parts: Sequence[Part]
    name: str = ""  # Title of a page where no heading is one

    @property
    def title(self) -> str:
        """The first heading of level 1, or the name, or the first sentence."""
        titles = (part.text for part in self.parts if isinstance(part, Heading) and part.level == 1)
        texts = (part if isinstance(part, str) else getattr(part, "text", "") for part in self.parts)
        return next(filter(None, (*titles, self.name, *texts)), "Report")

    def to_text(self, bold: Callable[[str], str] = str) -> str:
        """Write the report as text for a terminal."""
        lines: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                lines.append(visible(part))
            elif isinstance(part, Heading):
                lines += [*([""] if lines and lines[-1] else []), bold(visible(part.text))]
            elif isinstance(part, Text):
                lines += [*([""] if part.kind == "note" else []), *map(visible, part.lines)]
            elif isinstance(part, Table):
                if part.caption:
                    lines += [*([""] if lines and lines[-1] else []), bold(visible(part.caption))]
                lines += part.lines(bold)
        return "".join(f"{line}\n" for line in lines)

    def print(self, stream: TextIO) -> None:
        """Write the report on a stream, with bold headings on a terminal unless ``NO_COLOR`` is set."""
        plain = os.environ.get("NO_COLOR") or not stream.isatty()
        bold = str if plain else (lambda text: f"\033[1m{text}\033[0m")
        stream.write(self.to_text(bold))

    def to_html(self) -> str:
        """Write the report as a page that loads nothing, and runs only its own script."""
        jinja2 = require_jinja2()
        environment = jinja2.Environment(
            autoescape=True,
            finalize=lambda value: visible(value) if type(value) is str else value,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        files = resources.files("crosscast.report")
        template, style, script = (
            files.joinpath(f"page.{suffix}").read_text(encoding="utf-8") for suffix in ("html", "css", "js")
        )
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
        parts = list(_of_page(self))
        page = environment.from_string(template).render(
            title=self.title,
            parts=parts,
            sections=[part for part in parts if isinstance(part, Heading) and part.id],
            style=style,
            script=script,
            digest=digest,
            kind=lambda part: type(part).__name__,
            uri=lambda svg: f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}",
            json=lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
            number=_number,
        )
        return f"{page}\n"

    def write_html(self, path: Path) -> Path:
        """Write the page atomically."""
        text = self.to_html()
        with atomic_file(path, field="page") as temporary:
            temporary.write_text(text, encoding="utf-8")
        return path


def _of_page(report: Report) -> Iterator[Part]:
    """Parts for a page: with one title, no gaps in the levels of headings, and indented lines as a list."""
    level = 1
    if not any(isinstance(part, Heading) and part.level == 1 for part in report.parts):
        yield Heading(report.title, 1)
    titled, facts = False, []
    for number, part in enumerate((*report.parts, "")):
        if isinstance(part, str) and part.startswith("  "):
            facts.append(part.strip())
            continue
        if facts:
            yield Text(tuple(facts), "facts")
            facts = []
        if isinstance(part, Heading):
            # Of several titles, such as those of machines that are compared, the first is the page's.
            level = min(max(part.level, 2) if titled else part.level, level + 1)
            titled = titled or part.level == 1
            yield Heading(part.text, level, part.id or (f"section-{number}" if level == 2 else ""))
        elif part:
            yield part


def _number(value: object, text: str) -> tuple[str, str] | None:
    """Sort key of a cell, marked as its value ("v") or as parsed from its text ("s")."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return "v", repr(value)
    number = _number_in(text)
    return None if number is None else ("s", repr(number))


_NUMBER = re.compile(r"\s*(>?)\s*([-+−]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([^\W\d_]+(?:/s)?|%)?")
_UNIT_SCALES = dict(
    zip("ns µs ms s min h d".split(), (1e-9, 1e-6, 1e-3, 1.0, 60.0, 3600.0, 86400.0), strict=True)
) | {"kHz": 1e3, "MHz": 1e6, "GHz": 1e9, "%": 0.01, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}


def _number_in(text: str) -> float | None:
    """Parse the number at the start of a text, in its base unit, as a sort key of a column.

    >>> _number_in("1.18 ms"), _number_in("1,560 [1, 2]"), _number_in("−3 %"), _number_in("2 h 30 min")
    (0.00118, 1560.0, -0.03, 9000.0)
    >>> _number_in("—"), _number_in("titanx")
    (None, None)
    """
    total: float | None = None
    position = 0
    while (match := _NUMBER.match(text, position)) is not None:
        scale = _UNIT_SCALES.get(match[3] or "", 1.0)
        value = float(match[2].replace(",", "").replace("−", "-")) * scale
        if total is None:
            total = value
        elif match[3] in ("s", "min"):
            total += value
        else:
            break
        position = match.end()
    return total


def require_jinja2() -> ModuleType:
    """Import ``jinja2``."""
    with importing("report", "a page"):
        import jinja2
    return jinja2


def visible(text: str) -> str:
    """Replace characters that cannot be shown, such as control and bidirectional ones."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)


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


_SALT = "crosscast"
"""Setting `svg.hashsalt` of matplotlib, without which ids in an SVG are random."""


def save_figure(figure: PlotFigure, path: Path) -> Path:
    """Write a figure in the format of the suffix, and return the path."""
    import matplotlib

    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
    with atomic_file(path, field="figures") as temporary, matplotlib.rc_context({"svg.hashsalt": _SALT}):
        figure.savefig(temporary, metadata=undated)
    return path


def save_figures(figures: Mapping[str, PlotFigure], folder: Path) -> list[Path]:
    """Write figures into a folder, which is created, by their names, which may contain subfolders."""
    make_folder(folder, "figures")
    paths = [folder / f"{name}.png" for name in figures]
    for parent in {path.parent for path in paths}:
        make_folder(parent, "figures")
    return [save_figure(figure, path) for path, figure in zip(paths, figures.values(), strict=True)]


def as_drawing(figure: PlotFigure) -> Drawing:
    """Draw a figure for a page, with tooltips for the values of its marks, bars and cells."""
    import matplotlib

    buffer = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = _SALT
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


def figure_parts(figures: Mapping[str, PlotFigure]) -> list[Figure]:
    """Figures as parts of a report, each with its heading as alternative text."""
    return [
        Figure(partial(as_drawing, figure), heading_of(figure) or name) for name, figure in figures.items()
    ]


def heading_of(figure: PlotFigure) -> str:
    """Heading of a figure as plain text."""
    title = figure.get_suptitle() or next((axes.get_title(loc="left") for axes in figure.axes), "")
    return " ".join(str(title).split()).replace(r"\$", "$")
