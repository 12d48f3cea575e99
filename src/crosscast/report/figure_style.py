"""How all pictures look: colours that are told apart without seeing all of them, grid, heading and legend."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PINK",
    "RED",
    "SKY",
    "heading",
    "legend_below",
    "tidy",
]

# Okabe and Ito's palette, without its yellow, which is too light for lines.
BLUE, RED, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
SKY, PINK, BLACK, GREY = "#56b4e9", "#cc79a7", "#000000", "#777777"

_LETTERS_PER_INCH = 11
"""Of headings."""


def tidy(axes: Any) -> None:
    """A light grid behind the data, and no frame on the right and above."""
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def heading(figure: Any, *sentences: str) -> None:
    """What a picture is of, above it on the left: each sentence on lines of its own, as wide as it is."""
    width = int(_LETTERS_PER_INCH * figure.get_figwidth())
    lines = [line for sentence in sentences for line in wrap(sentence, width)]
    figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=10.5)


def legend_below(figure: Any, handles: Sequence[Any], labels: Sequence[str], columns: int) -> None:
    """A legend outside the data, under the axes."""
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9, handlelength=3
    )
