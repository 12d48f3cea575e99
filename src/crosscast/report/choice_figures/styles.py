"""How methods and devices look in pictures: told apart without seeing all colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosscast.decide.evaluation import ALONE
from crosscast.decide.scores import ChoiceResult
from crosscast.report.figure_style import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, RED, SKY

__all__ = [
    "Style",
    "alone",
    "device_styles",
    "method_label",
    "method_styles",
]

_COLOURS = (BLUE, RED, GREEN, ORANGE, PINK, SKY)
_FAMILIES = (
    "model",
    "published",
    "nearest",
    "gaussian-process",
    "regression",
    "fixed",
    "published-5",
    "published-log",
    "model-confident",
)
"""Those that look the same in all pictures; others follow."""

_MARKS = ("o", "s", "^", "D", "v", "P", "<", ">", "p", "h", "d")
_DASHES = {"": (0, (1, 1.2)), "+fl": (0, (5, 1.5)), "+steps": "solid"}
_LIMITER, _REFERENCE = "limiter", "oracle"


@dataclass(frozen=True)
class Style:
    """Colour of the line, mark with the colours of its inside and edge, and dashes of the line."""

    colour: str
    mark: str
    face: str
    edge: str
    dashes: object


def alone(results: Sequence[ChoiceResult]) -> list[ChoiceResult]:
    """Those with each program left out alone."""
    return [each for each in results if each.protocol == ALONE]


def method_label(result: ChoiceResult) -> str:
    """The name, with the confidence where there is one."""
    return f"{result.method} {100 * result.confidence:g} %" if result.confidence else result.method


def method_styles(results: Sequence[ChoiceResult]) -> dict[str, Style]:
    """A style for each method: a family, such as a model with and without limiting, shares colour and mark.

    The mark is hollow and the line dotted without limiting; with steps up, too, the mark has a black edge.
    """
    families = {family: place for place, family in enumerate(_FAMILIES)}
    styles = {}
    for result in results:
        family, suffix = _parts(result.method)
        place = families.setdefault(family, len(families))
        colour, mark = _COLOURS[place % len(_COLOURS)], _MARKS[place % len(_MARKS)]
        edge = BLACK if suffix == "+steps" else colour
        styles[result.method] = Style(colour, mark, colour if suffix else "white", edge, _DASHES[suffix])
    if _LIMITER in styles:
        styles[_LIMITER] = Style(BLACK, "X", BLACK, BLACK, "solid")
    if _REFERENCE in styles:
        styles[_REFERENCE] = Style(GREY, "*", GREY, GREY, "solid")
    return styles


def _parts(name: str) -> tuple[str, str]:
    for suffix in ("+fl", "+steps"):
        if name.endswith(suffix):
            return name.removesuffix(suffix), suffix
    return name, ""


def device_styles(devices: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and mark of each device."""
    return {
        device: (_COLOURS[place % len(_COLOURS)], _MARKS[place % len(_MARKS)])
        for place, device in enumerate(devices)
    }
