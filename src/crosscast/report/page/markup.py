"""HTML in which every text is escaped unless it was made here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["Markup", "clean", "element", "joined", "paragraph", "table"]

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

    Parameters
    ----------
    tag
        Its name.
    children
        What is in it: elements, and texts, which are escaped.
    attributes
        Its attributes; underscores at the end of a name are left out, others are written as hyphens.

    Examples
    --------
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
    """A table that scrolls on its own where it is wider than the page.

    Parameters
    ----------
    caption
        What it shows.
    headings
        Headings of the columns.
    rows
        Cells of each row; the first is its heading.
    texts
        Columns at the left that hold texts; the others hold numbers.
    attributes
        Attributes of the element.
    """

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
