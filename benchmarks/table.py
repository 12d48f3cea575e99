"""Plain text tables, and verdicts on figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, the others to the right.

    Examples
    --------
    >>> print(text_table(["a", "b"], [["x", "10"]]))
    a   b
    x  10
    """
    cells = [head, *rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def number(value: float | None, digits: int = 2) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def milliseconds(values: Sequence[float]) -> str:
    """Smallest and median of seconds, in milliseconds."""
    if not values:
        return "-"
    middle = sorted(values)[len(values) // 2]
    return f"{_three_digits(1e3 * min(values))} / {_three_digits(1e3 * middle)}"


def _three_digits(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


@dataclass(frozen=True)
class Verdict:
    """One figure, and whether it is met."""

    title: str  # What is asked, with its limit
    found: str  # What was measured
    met: bool | None  # `None` if nothing was measured

    def __str__(self) -> str:
        word = {True: "PASS", False: "FAIL", None: "----"}[self.met]
        return f"{word}  {self.title}: {self.found}"
