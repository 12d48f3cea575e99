"""Counters as intensities: by instruction, and as rates of work to each other and to the run's own time.

Totals say how long a run is. What a device makes of it is in the ratios, by which runs of unlike length, and
of kernels that a model has not seen, can be compared.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from crosscast.predict.grid import Reals
from crosscast.predict.relative.blend.work import (
    BYTES,
    INSTRUCTIONS,
    ITEMS,
    LAUNCHES,
    OPERATIONS,
    amounts_of,
)
from crosscast.predict.relative.observations import Observations

__all__ = ["intensities_of"]

_IS_RATIO = re.compile(
    r"""throughput|efficiency|utili[sz]ation|occupancy|(?<![a-z])(ratio|rate)|percent|pct|avg|ipc|topdown
    |_per_|\.per[._]|eligible|(^|[._])(grid|block|input|static|dynamic|registers|smem|launch_)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Names of what is no total over a run."""


def intensities_of(observations: Observations) -> Observations:
    """The same runs with other counters.

    Totals are divided by the instructions, where the runs count them; else by the items. Counters whose name
    says that they are no total stay. To these come logarithms of the amounts of work
    (`crosscast.predict.relative.blend.work`) and of their ratios, the time that the run took on its source
    among them: how near it came to what its source can do is what a profile tells first.
    """
    amounts = {name: values for name, values in amounts_of(observations).items() if np.isfinite(values).any()}
    base = amounts.get(INSTRUCTIONS, amounts.get(ITEMS))
    columns: dict[str, Reals] = {}
    for place, name in enumerate(observations.names):
        values = observations.counters[:, place]
        if _IS_RATIO.search(name):
            columns[name] = values
        elif base is not None:
            columns[f"{name} a unit"] = _over(values, base)
    logs = {name: _log(amounts[name] + 1.0) for name in _ORDER if name in amounts}
    if np.isfinite(observations.time_s).any():
        logs["time"] = _log(observations.time_s)
    columns |= {f"log {name}": values for name, values in logs.items()}
    if "time" in logs:
        columns |= {f"log time over {name}": logs["time"] - logs[name] for name in logs if name != "time"}
    if BYTES in logs and OPERATIONS in logs:
        columns["log operations over bytes"] = logs[OPERATIONS] - logs[BYTES]
    return replace(
        observations, names=tuple(columns), counters=np.column_stack([*columns.values()]).astype(np.float64)
    )


_ORDER = (LAUNCHES, ITEMS, INSTRUCTIONS, BYTES, OPERATIONS)


def _over(values: Reals, base: Reals) -> Reals:
    return np.divide(values, base, out=np.full_like(values, np.nan), where=base > 0)


def _log(values: Reals) -> Reals:
    return np.log(values, out=np.full_like(values, np.nan), where=values > 0)
