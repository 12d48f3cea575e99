"""Combinations of features that paper 004 compares (figures 7 and 8, table 7)."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.predict.corun.published.features import CONCURRENT, FAIRNESS, MIX

__all__ = ["FIGURE_7", "FIGURE_8", "PERFORMANCE", "POWER", "TABLE_7", "Combination"]


@dataclass(frozen=True)
class Combination:
    """Features that a predictor is given.

    Parameters
    ----------
    name
        Its name.
    features
        Features of each member, and ``fairness``, as `crosscast.predict.corun.published.features` names
        them.
    """

    name: str
    features: tuple[str, ...]

    @property
    def concurrent(self) -> tuple[str, ...]:
        """Those that only a run of the bag itself would tell."""
        return tuple(name for name in self.features if name in CONCURRENT)


PERFORMANCE = Combination("all", ("CPU_time", "GPU_time", *MIX, FAIRNESS))
"""All features of table 4, which the performance predictor takes."""

FIGURE_7 = (
    Combination("insmix", MIX),
    Combination("insmix+CPU_time", (*MIX, "CPU_time")),
    Combination("insmix+CPU_time+fairness", (*MIX, "CPU_time", FAIRNESS)),
    PERFORMANCE,
)
"""The four schemes of figure 7; the first is of Baldini, Fink and Altman (2014)."""

_ROWS = (
    ("insmix", MIX),
    ("insmix+fairness", (*MIX, FAIRNESS)),
    ("ALU+SSE", ("ALU", "SSE")),
    ("ALU+SSE+fairness", ("ALU", "SSE", FAIRNESS)),
    ("MEM", ("MEM",)),
    ("MEM+fairness", ("MEM", FAIRNESS)),
    ("fairness", (FAIRNESS,)),
)

_COLUMNS = (
    ("", ()),
    ("CPU_time", ("CPU_time",)),
    ("GPU_time", ("GPU_time",)),
    ("CPU_time+GPU_time", ("CPU_time", "GPU_time")),
)

FIGURE_8 = tuple(
    tuple(
        Combination("+".join(filter(None, (row, column))), (*features, *times)) for column, times in _COLUMNS
    )
    for row, features in _ROWS
)
"""The grid of figure 8: parts of table 4 (rows) with neither time, either, or both (columns).

The rows are those that section 6.3 speaks of, and the same without fairness.
"""

_MISSES = ("Branch_miss", "L1_miss", "DTLB_miss")
_MISSES_SH = ("Branch_miss_sh", "L1_miss_sh", "DTLB_miss_sh")

_TABLE_7: tuple[tuple[str, ...], ...] = (
    ("CPU_power", "GPU_power", "IPC", "LLC_miss", FAIRNESS),
    ("CPU_power", "IPC", "LLC_miss", FAIRNESS),
    ("GPU_power", "IPC", "LLC_miss", FAIRNESS),
    ("CPU_power", "GPU_power", "IPC", "LLC_miss"),
    ("CPU_power", "GPU_power", "IPC", FAIRNESS),
    ("CPU_power", "GPU_power", "IPC"),
    ("CPU_power_sh", "IPC_sh", "LLC_miss_sh", FAIRNESS),
    ("CPU_power_sh", "IPC_sh", "LLC_miss_sh", FAIRNESS, *_MISSES_SH),
    ("IPC_sh", "LLC_miss_sh", FAIRNESS, *_MISSES_SH),
    ("IPC", "LLC_miss", *_MISSES, FAIRNESS),
    ("IPC", "LLC_miss", *_MISSES),
    ("IPC_sh", "LLC_miss_sh", *_MISSES_SH),
    ("IPC", "LLC_miss", FAIRNESS),
    ("IPC", "LLC_miss", "Branch_miss", "L1_miss", FAIRNESS),
    ("CPU_power_sh", "IPC_sh", *_MISSES_SH),
    ("CPU_power", "GPU_power", "LLC_miss", FAIRNESS),
    ("GPU_power", "LLC_miss", FAIRNESS, "CPU_power_sh"),
    ("GPU_power", "IPC", "LLC_miss", FAIRNESS, "CPU_power_sh"),
    ("GPU_power", "IPC", "LLC_miss", *_MISSES, FAIRNESS, "CPU_power_sh"),
    ("GPU_power", "CPU_power_sh", "IPC_sh", "LLC_miss_sh", *_MISSES_SH, FAIRNESS),
)

TABLE_7 = tuple(Combination(f"comb{place}", features) for place, features in enumerate(_TABLE_7, start=1))
"""The combinations of table 7, in its order."""

POWER = TABLE_7[15]
"""``comb16``, which the paper chooses for power: it needs no run of the bag (section 7.3)."""
