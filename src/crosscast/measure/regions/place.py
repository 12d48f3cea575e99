"""Where a region was entered, without saying where files lie on this machine."""

from __future__ import annotations

from types import FrameType

__all__ = ["MOST_CHARACTERS", "MOST_PLACES", "site_of"]

MOST_PLACES = 16
MOST_CHARACTERS = 200
"""Length of a place."""


def site_of(frame: FrameType | None, depth: int) -> tuple[str, ...]:
    """Tell the place of a call, and of those that led there.

    Parameters
    ----------
    frame
        Who entered the region.
    depth
        How many callers of it to tell as well.
    """
    places: list[str] = []
    while frame is not None and len(places) <= depth:
        module = frame.f_globals.get("__name__")
        # A stack of contexts enters them for somebody else.
        if module != "contextlib":
            place = f"{module}.{frame.f_code.co_qualname}:{frame.f_lineno}"
            places.append(place[-MOST_CHARACTERS:])
        frame = frame.f_back
    return tuple(places)
