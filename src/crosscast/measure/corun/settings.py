"""How long to measure bags, and what with."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crosscast.errors import InputError

__all__ = ["CoRunSettings"]


@dataclass(frozen=True)
class CoRunSettings:
    """How to measure a bag: applications that run at the same time on one device.

    Parameters
    ----------
    round_s
        Seconds that a job takes alone at least, where its number of runs is not given.
    window_s
        Seconds that all members run together at least.
    jobs
        Whole jobs of each member in that time at least.
    rounds
        How often all members start one job together.
    warmups
        Runs of each member before, which are not recorded.
    timeout_s
        Seconds after which a member that does not answer is given up.
    sensor
        ``auto``, ``none``, or the name of a sensor of energy.
    counters
        Whether to count events of the CPU.
    threads
        Threads that each member may use on a CPU device of PoCL; ``None`` for all cores.
    """

    round_s: float = 0.2
    window_s: float = 0.6
    jobs: int = 3
    rounds: int = 3
    warmups: int = 1
    timeout_s: float = 60.0
    sensor: str = "auto"
    counters: bool = True
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("jobs", 1), ("rounds", 1), ("warmups", 0), ("threads", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}: expected at least {least}, found {value}")
        for name in ("round_s", "window_s", "timeout_s"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0 or (name == "timeout_s" and value == 0):
                raise InputError(f"{name}: expected a number of seconds, found {value:g}")
        for name in ("round_s", "window_s"):
            if getattr(self, name) >= self.timeout_s:
                raise InputError(
                    f"{name}: expected less than the time limit of {self.timeout_s:g} s, "
                    f"found {getattr(self, name):g}"
                )
