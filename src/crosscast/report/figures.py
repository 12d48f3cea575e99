"""How all pictures look: colours that are told apart without seeing all of them, grid, heading and legend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.files import whole_file
from crosscast.errors import InputError, MissingExtraError
from crosscast.units import elapsed_unit

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


FORMATS = (".png", ".svg", ".pdf")
"""Suffixes of the formats in which pictures are written."""


def require_matplotlib() -> Any:
    """Module ``matplotlib.figure``."""
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingExtraError("report", "a picture") from error
    return matplotlib.figure


def new_figure(width: float, height: float) -> Any:
    """An empty figure, its size in inches."""
    # Not pyplot's: no global state, and Agg without being told.
    return require_matplotlib().Figure(
        figsize=(width, height), dpi=150, facecolor="white", layout="constrained"
    )


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure in the format that the suffix says, and return the path."""
    try:
        with whole_file(path) as temporary:
            figure.savefig(temporary)
    except OSError as error:
        raise InputError(f"figures: cannot write {path} ({error.strerror or error})") from error
    return path


WIDE = 30.0
"""Ratio of the greatest to the least value from which on an axis is logarithmic, and labels of decades do."""


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


def label_elapsed(axes: Any, from_s: float, to_s: float) -> float:
    """Set the limits and the label of a horizontal axis of times; return the seconds of its unit."""
    unit_s, name = elapsed_unit(to_s)
    axes.set_xlim(from_s / unit_s, max(to_s, from_s + 1e-9) / unit_s)
    axes.set_xlabel(f"time since the first submission, {name}")
    return unit_s


def plain_text(text: str) -> str:
    """Text that matplotlib takes for no formula.

    >>> plain_text("cost in $ and $")
    'cost in \\\\$ and \\\\$'
    """
    return text.replace("$", r"\$")
