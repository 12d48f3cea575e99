"""Parts of a report, and its output on a terminal and as an HTML page.

Heavy imports are avoided, as showing a prediction must not take longer than predicting.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from crosscast.data.files import atomic_file
from crosscast.errors import importing
from crosscast.report.numbers import NONE, number_in

if TYPE_CHECKING:
    from types import ModuleType


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
        """Position of a value on the logarithmic scale, in per cent."""
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
        template, style, script = (_file_of_page(f"page.{suffix}") for suffix in ("html", "css", "js"))
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
            uri=_uri,
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


def _file_of_page(name: str) -> str:
    return resources.files("crosscast.report").joinpath(name).read_text(encoding="utf-8")


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
    number = number_in(text)
    return None if number is None else ("s", repr(number))


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


def _uri(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
