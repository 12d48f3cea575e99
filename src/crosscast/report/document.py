"""One model of a report, and how it is shown: on a terminal and as a page of HTML.

Nothing heavy is imported here: showing a prediction must not take longer than predicting.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO, TypedDict, TypeVar, Unpack

from crosscast.data.files import whole_file
from crosscast.errors import InputError, MissingExtraError
from crosscast.report.numbers import NONE, number_in

if TYPE_CHECKING:
    from types import ModuleType


Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Heading:
    """What follows is about; level 1 is the title of a report."""

    text: str
    level: int = 2
    id: str = ""  # Name of the section on a page, for links


@dataclass(frozen=True)
class Text:
    """Sentences that belong together, or lines as they are; a plain string is a sentence of its own."""

    lines: Sequence[str]
    kind: Literal["text", "note", "list", "code", "warnings", "facts", "made"] = "text"


@dataclass(frozen=True, eq=False)
class Ranges:
    """What a page draws beside the rows of a table: a line from low to high, and a dot, on one scale."""

    rows: Sequence[tuple[float, float, float] | None]  # Low, centre and high, all over 0; or nothing
    write: Callable[[float], str]  # How an end of the scale is written
    what: str  # What lies between the ends

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Least and greatest value."""
        there = [each for each in self.rows if each is not None]
        low, high = (
            min((each[0] for each in there), default=1.0),
            max((each[2] for each in there), default=1.0),
        )
        return low, high if high > low else 2 * low

    def place(self, value: float) -> float:
        """Where a value is on the logarithmic scale, in per cent."""
        low, high = self.ends
        return round(100 * math.log(value / low) / math.log(high / low), 2)


Write = Callable[[Any], str]
"""How the values of a column are written, which are of one type."""


class TableStyle(TypedDict, total=False):
    """Fields of a `Table` besides its headings and rows, as keyword arguments."""

    caption: str
    formats: Mapping[str, Write]
    words: Collection[int]
    bold: Collection[int]
    fold: str
    sorts: bool
    ranges: Ranges | None


@dataclass(frozen=True, eq=False)
class Table:
    """A table: headings, rows of values, and how values are written, by heading.

    Text is shown as it is, and what is not known (``None``, not a number) as a dash.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    formats: Mapping[str, Write] = field(default_factory=dict)
    words: Collection[int] = (0,)  # Columns of words, which are on the left; numbers are on the right
    bold: Collection[int] = ()  # Rows that stand out
    fold: str = ""  # On a page, the table is behind these words
    sorts: bool = True  # Whether rows say the same in any order
    ranges: Ranges | None = None  # What a page draws beside the rows

    @classmethod
    def of(
        cls,
        things: Iterable[Thing],
        columns: Mapping[str, Callable[[Thing], object]],
        **style: Unpack[TableStyle],
    ) -> Table:
        """A row a thing, a column a function of it."""
        return cls(list(columns), [[value(thing) for value in columns.values()] for thing in things], **style)

    def cells(self) -> list[list[str]]:
        """Texts of the cells, row by row."""
        writers = [self.formats.get(heading, str) for heading in self.headings]
        return [
            [_cell(value, write) for value, write in zip(row, writers, strict=False)] for row in self.rows
        ]

    def lines(self, bold: Callable[[str], str] = str) -> Iterator[str]:
        """The table as aligned columns of text."""
        rows = [list(map(visible, row)) for row in (self.headings, *self.cells())]
        widths = [max(len(row[place]) for row in rows if place < len(row)) for place in range(len(rows[0]))]
        for number, row in enumerate(rows, -1):
            texts = [
                f"{cell:{'<' if place in self.words else '>'}{widths[place]}}"
                for place, cell in enumerate(row)
            ]
            line = "  ".join(texts).rstrip()
            yield bold(line) if number < 0 or number in self.bold else line


def _cell(value: object, write: Write) -> str:
    if isinstance(value, str):
        return value
    return NONE if value is None or (isinstance(value, float) and math.isnan(value)) else write(value)


class Drawing(NamedTuple):
    """A picture, and what is said of the places that are marked in it."""

    svg: bytes
    marks: Sequence[tuple[int, int, str]] = ()  # Place from the left and the top, in 1/10,000, and words


@dataclass(frozen=True)
class Figure:
    """A picture with words for those who do not see it; a terminal leaves it out."""

    drawn: Callable[[], Drawing]
    alternative: str
    caption: str = ""


Part = str | Heading | Text | Table | Figure


@dataclass(frozen=True)
class Report:
    """Headings, sentences, tables and figures in their order; an empty string is an empty line."""

    parts: Sequence[Part]
    name: str = ""  # Title of a page where no heading is one
    language: str = "en"

    @property
    def title(self) -> str:
        """The first heading of level 1, or the name, or the first sentence."""
        titles = (each.text for each in self.parts if isinstance(each, Heading) and each.level == 1)
        texts = (each if isinstance(each, str) else getattr(each, "text", "") for each in self.parts)
        return next(filter(None, (*titles, self.name, *texts)), "Report")

    def to_text(self, bold: Callable[[str], str] = str) -> str:
        """The report for a terminal."""
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
        """The report as one page that loads nothing, and runs no script but its own."""
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
        found = environment.from_string(template).render(
            title=self.title,
            language=self.language,
            parts=parts,
            sections=[each for each in parts if isinstance(each, Heading) and each.id],
            style=style,
            script=script,
            digest=digest,
            kind=lambda part: type(part).__name__,
            uri=_uri,
            json=lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
            number=_number,
        )
        return f"{found}\n"

    def write_html(self, path: Path) -> Path:
        """Write the page, whole or not at all."""
        text = self.to_html()
        try:
            with whole_file(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InputError.of(
                field="page", problem=f"cannot write {path} ({error.strerror or error})"
            ) from error
        return path


def _file_of_page(name: str) -> str:
    return resources.files("crosscast.report").joinpath(name).read_text(encoding="utf-8")


def _of_page(report: Report) -> Iterator[Part]:
    """Parts as a page has them: one title, no level of headings left out, and indented lines as a list."""
    level = 1
    if not any(isinstance(each, Heading) and each.level == 1 for each in report.parts):
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
            # Of several titles, as those of machines that are compared, the first is the page's.
            level = min(max(part.level, 2) if titled else part.level, level + 1)
            titled = titled or part.level == 1
            yield Heading(part.text, level, part.id or (f"section-{number}" if level == 2 else ""))
        elif part:
            yield part


def _number(value: object, text: str) -> tuple[str, str] | None:
    """By what a cell is sorted, and whether that is its value or read from its text."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return "v", repr(value)
    found = number_in(text)
    return None if found is None else ("s", repr(found))


def require_jinja2() -> ModuleType:
    """Module ``jinja2``."""
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError("report", "a page") from error
    return jinja2


def visible(text: str) -> str:
    """Text with what cannot be shown (control characters, turns of the writing direction) replaced."""
    return "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)


def _uri(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
