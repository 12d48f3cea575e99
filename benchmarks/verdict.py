"""The figures that the characterization is held to, and whether rows of a benchmark meet them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from benchmarks.rows import Row

MEAN_RATIO = 1.8
WORST_RATIO = 4.5
TWO_THREADS_RATIO = 1.2
SHAPE, SHAPE_RATIO = "stencil-16x4", 3.0
TIMES_FASTER = 100.0
MEMORY_PER_BUFFER_BYTE = 3
MEMORY_BASE_BYTES = 120_000_000


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
