"""Pictures within the page: the same bytes whenever, wherever and for whomever they are drawn."""

from __future__ import annotations

import base64
import io
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosscast.report.canvas import require_matplotlib
from crosscast.report.page.markup import Markup, clean, element

__all__ = ["BLUE", "COLOURS", "GREY", "MARKS", "RED", "drawn", "picture", "plain", "written"]

# Told apart by people who do not see all colours (Okabe and Ito's palette).
BLUE, RED, GREY = "#0072b2", "#d55e00", "#777777"
COLOURS = (BLUE, RED, "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
MARKS = ("o", "s", "D", "^", "v", "P", "X")

# Date, version and the like.
_METADATA = re.compile(rb"\s*<metadata>.*?</metadata>", re.DOTALL)


def plain(name: str, longest: int = 32) -> str:
    """A name as it can be drawn: not too long, and no dollar sign in it begins a formula."""
    shown = clean(name)
    if len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return shown.replace("$", r"\$")


_STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
}


@contextmanager
def _settings(style: Mapping[str, Any]) -> Iterator[None]:
    """Whatever the user's own settings of matplotlib are, the page looks the same."""
    require_matplotlib()
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # Without a salt, parts of the picture have random names.
        settings: dict[Any, Any] = {"svg.hashsalt": "crosscast", **style}
        matplotlib.rcParams.update(settings)
        yield


def drawn(draw: Callable[[], Any]) -> bytes:
    """Draw a figure as SVG.

    Parameters
    ----------
    draw
        Makes the figure.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    buffer = io.BytesIO()
    with _settings(_STYLE):
        draw().savefig(buffer, format="svg")
    return _METADATA.sub(b"", buffer.getvalue())


def written(write: Callable[[Path], None]) -> bytes:
    """What a function writes into an SVG file; see `drawn`."""
    with _settings({}), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        write(path)
        return _METADATA.sub(b"", path.read_bytes())


def picture(svg: bytes, alternative: str, caption: str) -> Markup:
    """A figure of the page.

    Parameters
    ----------
    svg
        The picture. As an image it cannot run anything, and its inner names stay its own.
    alternative
        What it shows, for those who do not see it.
    caption
        How to read it.
    """
    address = "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
    return element("figure", element("img", src=address, alt=alternative), element("figcaption", caption))
