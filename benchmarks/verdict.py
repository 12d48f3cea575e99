"""The figures that the characterization is held to, and whether rows of a benchmark meet them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from benchmarks.rows import Row

__all__ = ["Verdict", "judge", "memory_limit"]

MEAN_RATIO = 2.2
WORST_RATIO = 6.0
SPEED_UP = 1.6
SPEED_UP_FROM_S = 0.050
TIMES_FASTER = 100.0
MEMORY_PER_BUFFER_BYTE = 3
MEMORY_BASE_BYTES = 250_000_000


@dataclass(frozen=True)
class Verdict:
    """One figure, and what was found.

    Parameters
    ----------
    title
        What is asked, with its limit.
    found
        What was measured.
    met
        Whether it holds; ``None`` if nothing was measured.
    """

    title: str
    found: str
    met: bool | None

    def __str__(self) -> str:
        word = {True: "PASS", False: "FAIL", None: "----"}[self.met]
        return f"{word}  {self.title}: {self.found}"


def memory_limit(buffer_bytes: int) -> int:
    """Most bytes that a characterization may take at its peak."""
    return MEMORY_PER_BUFFER_BYTE * buffer_bytes + MEMORY_BASE_BYTES


def judge(rows: Sequence[Row]) -> list[Verdict]:
    """Hold rows against every figure."""
    return [
        _mean(rows),
        _extreme(
            f"none above {WORST_RATIO:g} x native",
            [(row.ratio, row.kernel) for row in rows if row.ratio is not None],
            at_most=WORST_RATIO,
        ),
        _extreme(
            f"two threads >= {SPEED_UP:g} x one on runs over {SPEED_UP_FROM_S * 1e3:g} ms",
            [
                (row.speed_up, row.kernel)
                for row in rows
                if row.speed_up is not None and min(row.one_s) > SPEED_UP_FROM_S
            ],
            at_least=SPEED_UP,
        ),
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
        _outputs(rows),
    ]


def _mean(rows: Sequence[Row]) -> Verdict:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    title = f"geometric mean <= {MEAN_RATIO:g} x native"
    if not ratios:
        return Verdict(title, "not measured", None)
    mean = geometric_mean(ratios)
    return Verdict(title, f"{mean:.2f} over {len(ratios)} kernels", mean <= MEAN_RATIO)


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
