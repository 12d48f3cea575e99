"""Colours and marks of the six regressors of paper 004, the same in all pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from crosscast.report.figure_style import BLUE, GREEN, GREY, ORANGE, PINK, RED

__all__ = ["KIND_STYLES", "KindStyle"]


@dataclass(frozen=True)
class KindStyle:
    """How a regressor is drawn: its colour, and its mark for those who see no colours."""

    colour: str
    mark: str


KIND_STYLES: Mapping[str, KindStyle] = MappingProxyType(
    {
        "decision-tree": KindStyle(BLUE, "o"),
        "forest": KindStyle(GREEN, "s"),
        "boosting": KindStyle(RED, "^"),
        "linear": KindStyle(ORANGE, "D"),
        "mlp": KindStyle(PINK, "v"),
        "svr": KindStyle(GREY, "X"),
    }
)
