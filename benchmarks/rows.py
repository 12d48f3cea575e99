"""What the benchmark of the characterization finds out about one kernel."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Simulated:
    """A time on a simulator, measured at a reduced size and scaled by the amount of work.

    Parameters
    ----------
    platform
        Which simulator.
    run_s
        Seconds of CPU time at the reduced size.
    size
        That size.
    factor
        Work of the full size by that of the reduced one.
    """

    platform: str
    run_s: float
    size: int
    factor: float

    @property
    def scaled_s(self) -> float:
        """Seconds at the full size."""
        return self.run_s * self.factor


@dataclass
class Row:
    """Times and memory of one kernel; lists are in the order of measurement.

    Parameters
    ----------
    kernel
        Its name.
    size
        Size of the case.
    buffer_bytes
        Bytes of the kernel's buffers.
    native_s, native_cpu_s
        Seconds of PoCL on one thread, and of its CPU time.
    cold_cpu_s
        CPU time of PoCL with its caches emptied before.
    one_s, one_cpu_s
        Seconds of Crosscast's run, reduction and metrics on one thread, and of their CPU time.
    two_s
        The same on two threads.
    phases_s
        Crosscast's phases: compile and instrument of the first run, with an empty cache; medians of the CPU
        time of the run, and of reduction and metrics.
    instructions
        Executed instructions.
    oclgrind
        Time of Oclgrind; ``None`` if not measured.
    peak_bytes
        Peak memory of a whole characterization; ``None`` if not measured.
    faults
        Wrong outputs, and what could not be run.
    """

    kernel: str
    size: int
    buffer_bytes: int
    native_s: list[float] = field(default_factory=list)
    native_cpu_s: list[float] = field(default_factory=list)
    cold_cpu_s: list[float] = field(default_factory=list)
    one_s: list[float] = field(default_factory=list)
    one_cpu_s: list[float] = field(default_factory=list)
    two_s: list[float] = field(default_factory=list)
    phases_s: dict[str, float] = field(default_factory=dict)
    instructions: int | None = None
    oclgrind: Simulated | None = None
    peak_bytes: int | None = None
    faults: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> float | None:
        """Crosscast by native in CPU time, one thread each, best of the repeats."""
        return _divide(min, self.one_cpu_s, self.native_cpu_s)

    @property
    def median_ratio(self) -> float | None:
        """The same by medians."""
        return _divide(statistics.median, self.one_cpu_s, self.native_cpu_s)

    @property
    def wall_ratio(self) -> float | None:
        """The same by wall time."""
        return _divide(min, self.one_s, self.native_s)

    @property
    def cold_ratio(self) -> float | None:
        """Crosscast by native with cold caches."""
        return _divide(min, self.one_cpu_s, self.cold_cpu_s)

    @property
    def two_ratio(self) -> float | None:
        """Crosscast on two threads by native, in wall time, best of the repeats."""
        return _divide(min, self.two_s, self.native_s)

    @property
    def times_faster(self) -> float | None:
        """Oclgrind by Crosscast on one thread, both in CPU time."""
        if self.oclgrind is None or not self.one_cpu_s:
            return None
        return self.oclgrind.scaled_s / min(self.one_cpu_s)

    def to_dict(self) -> dict[str, Any]:
        """All of it, derived values included, for JSON."""
        derived = ("ratio", "median_ratio", "wall_ratio", "cold_ratio", "two_ratio", "times_faster")
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}


def _divide(
    summary: Callable[[Sequence[float]], float], numerator: Sequence[float], denominator: Sequence[float]
) -> float | None:
    """Ratio of a summary of two measurements; ``None`` if either was not made."""
    if not numerator or not denominator:
        return None
    return summary(numerator) / summary(denominator)
