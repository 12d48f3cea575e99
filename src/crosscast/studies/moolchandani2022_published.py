"""Published data of Moolchandani, Kumar and Sarangi (2022): combinations of features, and reported errors."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

from crosscast.prediction.corun.moolchandani2022_features import (
    FAIRNESS,
    INSTRUCTION_MIX,
    PERFORMANCE,
    Combination,
)

PUBLISHED_COUNT = 3  # Clusters of mixes, which three microbenchmarks stand for (silhouette score 0.75)
TIGHT = 0.7  # Silhouette score above which the paper calls clusters tightly bound
TRANSLATION_ERRORS = (7.0, 9.0)  # Tesla T4 to P100, two to five applications, per cent: accuracy 93 to 91 %

FIGURE_7 = (
    Combination("insmix", INSTRUCTION_MIX),
    Combination("insmix+CPU_time", (*INSTRUCTION_MIX, "CPU_time")),
    Combination("insmix+CPU_time+fairness", (*INSTRUCTION_MIX, "CPU_time", FAIRNESS)),
    PERFORMANCE,
)
"""The four schemes of figure 7; the first is of Baldini, Fink and Altman (2014)."""

FIGURE_8 = tuple(
    tuple(
        Combination("+".join((row, *times)), (*features, *times))
        for times in ((), ("CPU_time",), ("GPU_time",), ("CPU_time", "GPU_time"))
    )
    for row, features in (
        ("insmix", INSTRUCTION_MIX),
        ("insmix+fairness", (*INSTRUCTION_MIX, FAIRNESS)),
        ("ALU+SSE", ("ALU", "SSE")),
        ("ALU+SSE+fairness", ("ALU", "SSE", FAIRNESS)),
        ("MEM", ("MEM",)),
        ("MEM+fairness", ("MEM", FAIRNESS)),
        ("fairness", (FAIRNESS,)),
    )
)
"""The grid of figure 8: parts of table 4 (rows) with neither time, either, or both (columns).

The rows are those of section 6.3, with and without fairness.
"""

_TEXT = files("crosscast.studies").joinpath("moolchandani2022_table_7.csv").read_text(encoding="utf-8")
_ROWS = tuple(csv.DictReader(_TEXT.splitlines()))

TABLE_7 = tuple(Combination(row["combination"], tuple(row["features"].split())) for row in _ROWS)
"""The combinations of table 7, in its order."""

REPORTED_MAPE: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {row["combination"]: {kind: float(error) for kind, error in list(row.items())[2:]} for row in _ROWS}
)
"""Mean absolute percentage error of power by combination and kind of model (table 7), in per cent.

Two applications on a Tesla T4, leaving one benchmark out.
"""
