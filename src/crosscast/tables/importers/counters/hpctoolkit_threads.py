"""What a database of HPCToolkit says of a thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Thread"]


@dataclass(frozen=True)
class Thread:
    """A thread, or a stream of a GPU.

    Parameters
    ----------
    process
        Number of its process.
    values
        Inclusive values of the whole, by metric.
    """

    process: int
    values: Mapping[str, float]
