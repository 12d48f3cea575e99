"""Warnings of predictions, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

__all__ = ["Doubted", "warn_of"]


class Doubted(Protocol):
    """A prediction that may be doubtful."""

    @property
    def label(self) -> str:
        """What it is of, for people."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What makes it doubtful; sentences without a full stop."""
        ...


def warn_of(predictions: Sequence[Doubted]) -> None:
    """Print each warning once, with what it is about."""
    about: dict[str, list[str]] = {}
    for prediction in predictions:
        for warning in prediction.warnings:
            about.setdefault(warning, []).append(prediction.label)
    for warning, labels in about.items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        print(f"crosscast: warning: {labels[0]}{more}: {warning}", file=sys.stderr)
