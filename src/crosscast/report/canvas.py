"""Pictures without any window system or global state, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosscast.errors import InputError, MissingExtraError
from crosscast.tables.whole_file import whole_file

__all__ = ["FORMATS", "new_figure", "require_matplotlib", "save_figure"]

FORMATS = (".png", ".svg", ".pdf")
"""Suffixes of the formats in which pictures are written."""


def require_matplotlib() -> Any:
    """Module ``matplotlib.figure``.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingExtraError("report", "a picture") from error
    return matplotlib.figure


def new_figure(width: float, height: float) -> Any:
    """An empty figure, its size in inches.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    # Not pyplot's: no global state, and Agg without being told.
    return require_matplotlib().Figure(
        figsize=(width, height), dpi=150, facecolor="white", layout="constrained"
    )


def save_figure(figure: Any, path: Path) -> Path:
    """Write a figure in the format that the suffix says, and return the path.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        with whole_file(path) as temporary:
            figure.savefig(temporary)
    except OSError as error:
        raise InputError(f"figures: cannot write {path} ({error.strerror or error})") from error
    return path
