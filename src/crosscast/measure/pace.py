"""How long the rest of a campaign will take, by what its pieces took so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["Pace"]


class Pace:
    """Estimates the time left from the time that pieces of each kind took.

    Parameters
    ----------
    todo
        The pieces; their types are their kinds.
    guess_s
        Seconds of a piece of each kind before one was done, by the name of its type.
    """

    def __init__(self, todo: Sequence[object], guess_s: Mapping[str, float]) -> None:
        self._guess_s = guess_s
        self._left: dict[str, int] = {}
        self._took: dict[str, list[float]] = {}
        for piece in todo:
            kind = type(piece).__name__
            self._left[kind] = self._left.get(kind, 0) + 1

    def took(self, piece: object, seconds: float) -> None:
        """Note a piece that is over."""
        kind = type(piece).__name__
        self._left[kind] -= 1
        self._took.setdefault(kind, []).append(seconds)

    def left_s(self) -> float:
        """Seconds for all that is left."""
        means = {kind: sum(seconds) / len(seconds) for kind, seconds in self._took.items() if seconds}
        return sum(count * means.get(kind, self._guess_s[kind]) for kind, count in self._left.items())
