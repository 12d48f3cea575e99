"""Limiters of one knob, and of one device: CPU+FL and GPU+FL for the knobs of any data."""

from __future__ import annotations

import re

from crosscast.choose.methods.limiter import Limiter
from crosscast.predict.configuration.space import Space

__all__ = ["knob_limiters"]


def knob_limiters(space: Space) -> tuple[Limiter, ...]:
    """The limiters that Bailey et al. 2014 (section V-A) compare with, generalised.

    The paper limits the clock of one device and holds the other's. Here, for each numeric knob one limiter
    starts with all knobs at their maximum and steps that knob alone down, so all others stay at their
    maximum. It is named after the knob, without what says its unit and kind: ``cpu+fl`` for ``cpu_cap_w``,
    ``core_clock+fl`` for ``core_clock_hz``. Where there are several devices, there is one limiter for each
    device, which steps all its knobs, in place of those.

    Parameters
    ----------
    space
        The configurations to choose from.
    """
    if len(space.devices) > 1:
        return tuple(Limiter(f"{device}+fl", device=device) for device in space.devices)
    return tuple(Limiter(f"{_short(knob)}+fl", knobs=(knob,)) for knob in space.knobs)


def _short(knob: str) -> str:
    return re.sub(r"(_cap)?(_w|_hz|_s|_j)?$", "", knob) or knob
