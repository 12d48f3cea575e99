"""Errors by application and device, as a table whose cells are coloured."""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.report.numbers import NONE, percent
from crosscast.report.page.markup import Markup, element, joined, paragraph
from crosscast.report.page.subject import Subject

__all__ = ["heat_map"]

_DARKEST = 1.0
"""Error from which on the colour stays the same."""

_STEPS = (0.0, 0.25, 0.5, 0.75, 1.0)
_ALL = "all"


def heat_map(subject: Subject) -> Markup:
    """The median error of each application on each device, and over all of them."""
    names = subject.result.names
    columns = [subject.result.on(place) for place in range(len(subject.devices))]
    if len(columns) > 1:
        columns.append(subject.result)
    headings = [device.key for device in subject.devices] + [_ALL] * (len(columns) > len(subject.devices))
    rows = [(name, [column.applications[name].median_ape for column in columns]) for name in names] + [
        (_ALL, [column.scores.median_ape for column in columns])
    ]
    caption = "Median error by application and device"
    table = element(
        "table",
        element("caption", caption),
        element(
            "thead",
            element(
                "tr",
                element("th", "application", scope="col"),
                *(element("th", element("span", text), scope="col", class_="upright") for text in headings),
            ),
        ),
        "\n",
        element("tbody", joined((_row(name, errors) for name, errors in rows), "\n")),
        class_="heat",
    )
    return joined(
        [
            element("div", table, class_="wide", tabindex="0", role="region", aria_label=caption),
            paragraph(
                "The error of a cell is abs(predicted / measured − 1); each field is the median over the "
                f"kernels and sizes of one application on one device, and {_ALL} the median over all cells "
                "of the row or column.",
                "Darker is worse:",
                joined([_swatch(step) for step in _STEPS]),
                class_="note",
            ),
        ],
        "\n",
    )


def _row(name: str, errors: Sequence[float | None]) -> Markup:
    return element(
        "tr",
        element("th", name, scope="row"),
        *(
            element("td", NONE) if error is None else element("td", percent(error), style=_style(error))
            for error in errors
        ),
    )


def _swatch(error: float) -> Markup:
    text = percent(error) + (" and more" if error == _DARKEST else "")
    return element("span", text, class_="swatch", style=_style(error))


def _style(error: float) -> str:
    """Colours of a field: a scale that is even in brightness too, and letters that stand out from it."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    # The darker half of the scale is for letters that are white.
    red, green, blue, _ = colormaps["cividis"](1 - min(error, _DARKEST) / _DARKEST)
    brightness = 0.299 * red + 0.587 * green + 0.114 * blue
    return f"background:{to_hex((red, green, blue))};color:{'#000' if brightness > 0.5 else '#fff'}"
