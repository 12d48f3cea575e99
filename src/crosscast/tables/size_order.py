"""The order of problem sizes."""

from __future__ import annotations

__all__ = ["SIZES", "size_order"]

SIZES = ("tiny", "small", "medium", "large")
"""Those of the suite and of the published study, from the least."""


def size_order(size: str) -> tuple[int, str]:
    """Key to sort by: the known sizes in their order, then others in that of their names."""
    return (SIZES.index(size) if size in SIZES else len(SIZES), size)
