"""Local names for values, slots and labels that instrumentation adds to a kernel."""

from __future__ import annotations

__all__ = ["Names"]


class Names:
    """Gives names that nothing else in the kernel has."""

    def __init__(self) -> None:
        self._serial = 0

    def unique(self, stem: str) -> str:
        """Return a new name that begins with ``%cc.`` and `stem`."""
        self._serial += 1
        return f"%cc.{stem}{self._serial}"
