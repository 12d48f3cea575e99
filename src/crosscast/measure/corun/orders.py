"""What a process is told: lines on a file, one an order."""

from __future__ import annotations

import json
import os
import select
from typing import Any

__all__ = ["Orders"]

_CHUNK = 1 << 16


class Orders:
    """Orders, each a line of JSON.

    Parameters
    ----------
    descriptor
        File that they come from.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = b""
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)

    def line(self) -> str | None:
        """The next line, waited for; ``None`` if there will be none."""
        while b"\n" not in self._held:
            chunk = os.read(self._descriptor, _CHUNK)
            if not chunk:
                return None
            self._held += chunk
        line, _, self._held = self._held.partition(b"\n")
        return line.decode()

    def next(self) -> dict[str, Any] | None:
        """The next order, waited for; ``None`` if there will be none."""
        line = self.line()
        return None if line is None else dict(json.loads(line))

    def waiting(self) -> bool:
        """Whether there is one, or there will be none: quick, as it is asked after every run."""
        return bool(self._held) or bool(self._poll.poll(0))
