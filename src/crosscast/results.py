"""Results that are tables: for pandas, for JSON and for notebooks."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from crosscast.errors import importing

if TYPE_CHECKING:
    import pandas

    from crosscast.arrays import AnyArray

    Column = Sequence[object] | AnyArray

Value = TypeVar("Value")

_MOST_LINES = 10
_MOST_WIDTH = 110
_MOST_ROWS = 50
_DIGITS = 4
_PLAIN = frozenset({str, int, bool, type(None)})


class Brief:
    """Base of results whose `repr` is a few lines, also where the class is a large dataclass."""

    def __init_subclass__(cls, **options: object) -> None:
        """Set `__repr__` in the class itself, as `dataclass` would otherwise generate one."""
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Brief.__repr__  # type: ignore[method-assign]

    def lines(self) -> list[str]:
        """Lines of the summary, the most important first."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return at most ten lines of limited width."""
        shown = [f"<{type(self).__name__}>", *self.lines()][:_MOST_LINES]
        return "\n".join(shorten(line, _MOST_WIDTH) for line in shown)


def shorten(text: str, most: int) -> str:
    """Cut a text to one line of at most `most` characters.

    >>> shorten("abcdefgh", 5)
    'abcd…'
    """
    line = " ".join(text.splitlines())
    return line if len(line) <= most else f"{line[: most - 1]}…"


class Tabular(Brief):
    """A result that can be shown as a table, whose columns its class defines."""

    def lines(self) -> list[str]:
        """The caption, the first rows, and the number of further rows."""
        columns = {name: _as_list(column) for name, column in self.columns().items()}
        count = max((len(column) for column in columns.values()), default=0)
        caption = self.caption()
        most = _MOST_LINES - (4 if caption else 3)
        cells = [
            list(columns),
            *([_text(column[row]) for column in columns.values()] for row in range(min(count, most))),
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        more = [f"... {count - most} more rows (to_pandas() has all)"] if count > most else []
        return [*([caption] if caption else []), *table, *more]

    def columns(self) -> Mapping[str, Column]:
        """Columns of one length by name."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas data frame, a row for each entry.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        with importing("pandas", "a table of pandas"):
            import pandas
        return pandas.DataFrame({name: _as_list(column) for name, column in self.columns().items()})

    def to_dict(self) -> dict[str, object]:
        """Return the columns as lists of JSON values; numbers that are missing or not finite are ``None``."""
        return {**self.plain_columns()}

    def plain_columns(self) -> dict[str, list[object]]:
        """The columns in the form that `to_dict` returns by default."""
        return {name: [plain(value) for value in _as_list(column)] for name, column in self.columns().items()}

    def caption(self) -> str:
        """Caption of the table in a notebook."""
        return ""

    def _repr_html_(self) -> str:
        """A small table for notebooks."""
        return html_table(self.columns(), self.caption())


def columns_of(rows: Sequence[Mapping[str, object]], names: Iterable[str] = ()) -> dict[str, list[object]]:
    """Columns of rows; all by default, and ``None`` where a row lacks one."""
    return {name: [row.get(name) for row in rows] for name in names or (rows[0] if rows else ())}


def rows_of(columns: Mapping[str, Column]) -> list[dict[str, object]]:
    """Rows of columns of one length.

    >>> rows_of({"a": [1, 2], "b": "xy"})
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'y'}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def to_json(value: object) -> str:
    """Write a result as a line of JSON, in which numbers that are not finite are null."""
    return json.dumps(plain(value), allow_nan=False)


def spelled(number: Value) -> Value | str:
    """Return a number in a form that JSON can hold: one that is not finite by its name.

    >>> spelled(float("-inf")), spelled(2.5)
    ('-inf', 2.5)
    """
    return str(number) if isinstance(number, float) and not math.isfinite(number) else number


def html_table(columns: Mapping[str, Column], caption: str = "") -> str:
    """Write columns of one length as an HTML table of their first rows."""
    listed = {name: _as_list(column) for name, column in columns.items()}
    count = max((len(column) for column in listed.values()), default=0)
    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in listed)
    rows = "".join(
        f"<tr>{''.join(_cell(column[row]) for column in listed.values())}</tr>"
        for row in range(min(count, _MOST_ROWS))
    )
    more = f"<p>{count - _MOST_ROWS} more rows</p>" if count > _MOST_ROWS else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _as_list(column: Column) -> list[object]:
    """Convert a column to a list; the numbers of an array become Python numbers."""
    return list(column.tolist() if hasattr(column, "tolist") else column)


def plain(value: object) -> object:
    """A value of JSON; numbers that are missing or not finite are ``None``."""
    # Most values are of these types, and a column may be long.
    if type(value) in _PLAIN or (type(value) is float and math.isfinite(value)):
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return value


def _text(value: object) -> str:
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return shorten("" if value is None else str(value), 24)


def _cell(value: object) -> str:
    value = plain(value)
    if value is None:
        return "<td></td>"
    if isinstance(value, float):
        return f'<td style="text-align: right">{value:.{_DIGITS}g}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value}</td>'
    return f"<td>{html.escape(str(value))}</td>"
