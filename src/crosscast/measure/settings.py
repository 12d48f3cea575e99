"""How long to measure, and what with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crosscast.errors import InputError

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """How to measure one application on one device.

    Parameters
    ----------
    min_runs
        Runs to record at least; 50 as in the published study (paper 000, section III-A).
    min_time_s
        Seconds that the recorded runs take at least; 2 as in the same study.
    warmups
        Runs before, which are not recorded.
    timeout_s
        Seconds after which the process that measures is killed.
    sensor
        ``auto``, ``none``, or the name of a sensor of energy.
    counters
        Whether to count events of the CPU.
    """

    min_runs: int = 50
    min_time_s: float = 2.0
    warmups: int = 2
    timeout_s: float = 600.0
    sensor: str = "auto"
    counters: bool = True

    def __post_init__(self) -> None:
        for name, least in (("min_runs", 1), ("warmups", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name}: expected at least {least}, found {getattr(self, name)}")
        for name in ("min_time_s", "timeout_s"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0 or (name == "timeout_s" and value == 0):
                raise InputError(f"{name}: expected a number of seconds, found {value:g}")
        if self.min_time_s >= self.timeout_s:
            raise InputError(
                f"min_time_s: expected less than the time limit of {self.timeout_s:g} s, "
                f"found {self.min_time_s:g}"
            )
