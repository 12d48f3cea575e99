"""What a benchmark finds out about characterizing one kernel, and the figures that it is held to."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import geometric_mean
from typing import Any

from benchmarks.command_line import MEMORY_BASE_BYTES, MEMORY_PER_BUFFER_BYTE, memory_limit
from benchmarks.table import Verdict


@dataclass(frozen=True)
class Simulated:
    """A time on a simulator, measured at a reduced size and scaled by the amount of work."""

    platform: str
    run_s: float  # Seconds of CPU time at the reduced size
    size: int  # That size
    factor: float  # Work of the full size by that of the reduced one

    @property
    def scaled_s(self) -> float:
        """Seconds at the full size."""
        return self.run_s * self.factor


@dataclass
class Row:
    """Times and memory of one kernel; lists are in the order of measurement."""

    kernel: str
    size: int
    buffer_bytes: int  # Of the kernel's buffers
    native_s: list[float] = field(default_factory=list)  # PoCL on one thread, and its CPU time
    native_cpu_s: list[float] = field(default_factory=list)
    cold_cpu_s: list[float] = field(default_factory=list)  # CPU time of PoCL with its caches emptied before
    one_s: list[float] = field(default_factory=list)  # Run, reduction and metrics on one thread, and CPU time
    one_cpu_s: list[float] = field(default_factory=list)
    two_s: list[float] = field(default_factory=list)  # On two threads
    # Compile and instrument of the first run, with an empty cache; medians of the CPU time of the others
    phases_s: dict[str, float] = field(default_factory=dict)
    instructions: int | None = None
    oclgrind: Simulated | None = None
    peak_bytes: int | None = None  # Peak memory of a whole characterization
    faults: list[str] = field(default_factory=list)  # Wrong outputs, and what could not be run

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


MEAN_RATIO = 1.8
WORST_RATIO = 4.5
TWO_THREADS_RATIO = 1.2
SHAPE, SHAPE_RATIO = "stencil-16x4", 3.0
TIMES_FASTER = 100.0


def judge(rows: Sequence[Row], shapes: Sequence[Row] = ()) -> list[Verdict]:
    """Hold rows of kernels, and those of a stencil in work-groups of many shapes, against every figure."""
    return [
        _mean("CPU time of run, reduction and metrics", [row.ratio for row in rows], MEAN_RATIO),
        _extreme(
            f"none above {WORST_RATIO:g} x native",
            [(row.ratio, row.kernel) for row in rows if row.ratio is not None],
            at_most=WORST_RATIO,
        ),
        _extreme(
            f"stencil 2048², groups 16 x 4 <= {SHAPE_RATIO:g} x native",
            [(row.ratio, row.kernel) for row in shapes if row.kernel == SHAPE and row.ratio is not None],
            at_most=SHAPE_RATIO,
        ),
        _mean("the same on two threads, wall time", [row.two_ratio for row in rows], TWO_THREADS_RATIO),
        _extreme(
            f">= {TIMES_FASTER:g} x faster than Oclgrind on every kernel",
            [(row.times_faster, row.kernel) for row in rows if row.times_faster is not None],
            at_least=TIMES_FASTER,
        ),
        _extreme(
            f"peak memory <= {MEMORY_PER_BUFFER_BYTE} x buffers + {MEMORY_BASE_BYTES // 10**6} MB (share)",
            [
                (row.peak_bytes / memory_limit(row.buffer_bytes), row.kernel)
                for row in rows
                if row.peak_bytes is not None
            ],
            at_most=1.0,
        ),
        _outputs([*rows, *shapes]),
    ]


def _mean(what: str, ratios: Sequence[float | None], at_most: float) -> Verdict:
    """Judge by the geometric mean."""
    measured = [ratio for ratio in ratios if ratio is not None]
    title = f"{what}: geometric mean <= {at_most:g} x native"
    if not measured:
        return Verdict(title, "not measured", None)
    mean = geometric_mean(measured)
    return Verdict(title, f"{mean:.2f} over {len(measured)} kernels", mean <= at_most)


def _extreme(
    title: str,
    values: Sequence[tuple[float, str]],
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> Verdict:
    """Judge by the worst of (value, kernel) pairs."""
    if not values:
        return Verdict(title, "not measured", None)
    if at_most is not None:
        value, kernel = max(values)
        return Verdict(title, f"worst {value:.2f} ({kernel})", value <= at_most)
    assert at_least is not None
    value, kernel = min(values)
    return Verdict(title, f"worst {value:.2f} ({kernel})", value >= at_least)


def _outputs(rows: Sequence[Row]) -> Verdict:
    faulty = [row.kernel for row in rows if row.faults]
    found = f"faults in {', '.join(faulty)}" if faulty else f"all {len(rows)} kernels"
    return Verdict("outputs equal NumPy's, profiles of one and two threads equal", found, not faulty)
