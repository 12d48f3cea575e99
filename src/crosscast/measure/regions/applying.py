"""Applying configurations: what regions have set, so that it is set when it changes, and undone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from crosscast.configuration import Configuration

__all__ = ["Apply", "apply_changed"]

Apply = Callable[[Configuration | None], object]
"""Sets the machine to a configuration; none stands for what it is by default."""

_applied: tuple[Apply, Configuration | None] | None = None
"""What was applied last, and by which function."""
_regions: dict[str, Apply] = {}
"""Regions by name that have applied a configuration and not gone back, and by which function they did."""
_MOST_REGIONS = 1000
_applying = threading.RLock()


def apply_changed(region: str, apply: Apply, configuration: Configuration | None) -> None:
    """Apply a configuration, unless it is the last one that was applied, in this way.

    Parameters
    ----------
    region
        Name of the region that is entered.
    apply
        Sets the machine.
    configuration
        To what; none to go back to the default, unless neither this region nor this function has left it.
    """
    global _applied
    if configuration is not None and _applied == (apply, configuration):
        return
    # One after another, so that the last one that was applied is known to be.
    with _applying:
        if configuration is None:
            _go_back(region, apply)
        elif _applied != (apply, configuration):
            _applied = None
            # Before it is called: one that fails may have set something.
            _regions.pop(region, None)
            _regions[region] = apply
            while len(_regions) > _MOST_REGIONS:
                del _regions[next(iter(_regions))]
            apply(configuration)
            _applied = apply, configuration


def _go_back(region: str, apply: Apply) -> None:
    global _applied
    # A loop may make its function anew each time, so the function alone does not tell.
    left = [name for name, by in _regions.items() if name == region or by == apply]
    if left:
        _applied = None
        apply(None)
        _applied = apply, None
        for name in left:
            _regions.pop(name, None)


def _begin_anew() -> None:
    global _applying
    _applying = threading.RLock()


os.register_at_fork(after_in_child=_begin_anew)
