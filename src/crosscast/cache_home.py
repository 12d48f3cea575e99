"""Where Crosscast keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_home"]


def cache_home() -> Path:
    """The folder ``crosscast`` in ``XDG_CACHE_HOME``, or in ``~/.cache``; it may not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "crosscast"
