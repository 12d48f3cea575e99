"""HTML in which every text is escaped unless it was made here."""

from __future__ import annotations

import base64
import io
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from crosscast.report.figures import require_matplotlib
from crosscast.units import format_seconds

_VOID = frozenset({"br", "img", "meta"})
_REPLACEMENT = "\ufffd"


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def clean(text: str) -> str:
    """Replace what cannot be shown (control characters, turns of the writing direction) in a name."""
    return "".join(each if each.isprintable() else _REPLACEMENT for each in text)


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """An element.

    >>> element("p", "1 < 2", element("br"), class_="note")
    '<p class="note">1 &lt; 2<br></p>'
    """
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    opening = "".join(f' {name}="{escape(_visible(value))}"' for name, value in names.items())
    if tag in _VOID:
        return Markup(f"<{tag}{opening}>")
    return Markup(f"<{tag}{opening}>{joined(children)}</{tag}>")


def joined(children: Iterable[str], separator: str = "") -> Markup:
    """Elements and texts one after the other."""
    return Markup(
        separator.join(
            child if isinstance(child, Markup) else escape(_visible(child), quote=False) for child in children
        )
    )


def paragraph(*sentences: str, **attributes: str) -> Markup:
    """A paragraph of sentences."""
    return element("p", joined(sentences, " "), **attributes)


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
    **attributes: str,
) -> Markup:
    """A table that scrolls on its own where it is wider than the page."""

    def kind(column: int) -> dict[str, str]:
        return {} if column < texts else {"class_": "number"}

    head = [element("th", text, scope="col", **kind(place)) for place, text in enumerate(headings)]
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", text, **kind(place)) for place, text in enumerate(row[1:], 1)),
        )
        for row in rows
    ]
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        "\n",
        element("tbody", joined(body, "\n")),
        **attributes,
    )
    # Who uses no mouse must be able to scroll too.
    return element("div", whole, class_="wide", tabindex="0", role="region", aria_label=caption)


def _visible(text: str) -> str:
    return "".join(each if each == "\n" else clean(each) for each in text)


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
    """Draw a figure as SVG."""
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
    """A figure of the page."""
    address = "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
    return element("figure", element("img", src=address, alt=alternative), element("figcaption", caption))


_ONE_DECADE = 1.2
_TWO_DECADES = 2.2


def scale_times(axis: Any, low: float, high: float, most: int) -> None:
    """Put ticks on an axis that is logarithmic already."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    decades = math.log10(high / low) if high > low > 0 else 1.0
    within = (1.0, 2.0, 5.0) if decades < _ONE_DECADE else (1.0, 3.0) if decades < _TWO_DECADES else (1.0,)
    axis.set_major_locator(LogLocator(subs=within, numticks=most))
    axis.set_major_formatter(FuncFormatter(lambda seconds, _: format_seconds(seconds)))
    axis.set_minor_locator(NullLocator())
