"""What amount of a machine a run used: runs of the same work at the same scale are compared."""

from __future__ import annotations

from collections.abc import Mapping

from crosscast.configuration import Setting, setting_text

__all__ = ["SCALE", "scale_of"]

SCALE = "scale"
"""Setting that names the scale of a run in words, such as `one node`."""


def scale_of(settings: Mapping[str, Setting], size: str) -> str:
    """The scale of a run: its setting `scale`; else its `nodes` and `cores`; else the size of its input.

    Examples
    --------
    >>> scale_of({"nodes": 2.0, "cores": 72.0}, "big"), scale_of({"compiler": "gcc"}, "big")
    ('2 nodes, 72 cores', 'big')
    """
    if SCALE in settings:
        return setting_text(settings[SCALE])
    amounts = ((settings[name], name) for name in ("nodes", "cores") if name in settings)
    return ", ".join(f"{setting_text(value)} {name}" for value, name in amounts) or size
