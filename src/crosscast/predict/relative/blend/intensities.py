"""Counters as intensities: by instruction, and as rates of work to each other and to the run's own time.

Totals say how long a run is. What a device makes of it is in the ratios, by which runs of unlike length, and
of kernels that a model has not seen, can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.relative.blend.work import (
    AMOUNTS,
    BYTES,
    INSTRUCTIONS,
    ITEMS,
    LAUNCHES,
    OPERATIONS,
    amounts_of,
)
from crosscast.predict.relative.counter_names import plain_name
from crosscast.predict.relative.observations import Observations
from crosscast.predict.state import kept_names

__all__ = ["BASES", "base_of", "intensities_of", "is_total", "kept_base", "unknown_counters"]

NO_BASE = ""
BASES = (INSTRUCTIONS, ITEMS, NO_BASE)
"""Amounts that totals may be divided by; by none of them where runs tell neither."""

_ORDER = (LAUNCHES, ITEMS, INSTRUCTIONS, BYTES, OPERATIONS)

_IS_RATIO = re.compile(
    r"""throughput|efficiency|utili[sz]ation|occupancy|(?<![a-z])(ratio|rate)|percent|pct|avg|ipc|topdown
    |_per_|\.per[._]|eligible|(^|[._])(grid|block|input|static|dynamic|registers|smem|launch_|stall_)
    |overhead|(busy|stalled|hitrate|cachehit|bankconflict)$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Names of what is no total over a run."""


def is_total(counter: str) -> bool:
    """Whether a counter is a total over a run, by its name.

    Examples
    --------
    >>> is_total("Iterations/Rep"), is_total("l1tex__hit_rate"), is_total("achieved_occupancy")
    (True, False, False)
    """
    return _IS_RATIO.search(counter) is None


def base_of(observations: Observations) -> str:
    """What totals of such runs are divided by: instructions or items, whichever more of the runs tell.

    It is chosen by the runs that a model is fitted to, so that a feature means the same in all others.
    """
    amounts = amounts_of(observations)
    told = {name: int(np.isfinite(amounts[name]).sum()) for name in (INSTRUCTIONS, ITEMS)}
    return max(told, key=lambda name: told[name]) if any(told.values()) else NO_BASE


def kept_base(state: Mapping[str, npt.NDArray[Any]]) -> str:
    """Read what a kept model divides totals by.

    Raises
    ------
    InputError
        If it is not there, or not one of `BASES`.
    """
    base = kept_names(state, "base")
    if len(base) != 1 or base[0] not in BASES:
        known = ", ".join(map(repr, BASES))
        raise InputError(f"model: base: expected one of {known}, found {', '.join(base)[:60]!r}")
    return base[0]


def intensities_of(observations: Observations, base: str) -> Observations:
    """The same runs with other counters.

    Totals are divided by the instructions or the items; if by neither, they stay. Counters whose name says
    that they are no total stay, too. To these come logarithms of the amounts of work
    (`crosscast.predict.relative.blend.work`) and of their ratios, the time that the run took on its source
    among them: how near it came to what its source can do is what a profile tells first.

    The order of the counters does not matter, and no run's values depend on the other runs.

    Parameters
    ----------
    observations
        ``r`` runs.
    base
        What totals are divided by: one of `BASES`, as `base_of` has it of the runs that a model is fitted to.
    """
    amounts = amounts_of(observations)
    columns: dict[str, Reals] = {}
    for place, name in sorted(enumerate(observations.names), key=lambda each: each[1]):
        values = observations.counters[:, place]
        divided = base != NO_BASE and is_total(name)
        columns[_name(name, base)] = _over(values, amounts[base]) if divided else values
    logs = {name: _log(amounts[name] + 1.0) for name in _ORDER if np.isfinite(amounts[name]).any()}
    if np.isfinite(observations.time_s).any():
        logs["time"] = _log(observations.time_s)
    columns |= {_log_of(name): values for name, values in logs.items()}
    if "time" in logs:
        columns |= {f"log time over {name}": logs["time"] - logs[name] for name in logs if name != "time"}
    if BYTES in logs and OPERATIONS in logs:
        columns["log operations over bytes"] = logs[OPERATIONS] - logs[BYTES]
    counters = np.column_stack([*columns.values()]) if columns else np.empty((len(observations), 0))
    return replace(observations, names=tuple(columns), counters=counters.astype(np.float64))


def unknown_counters(observations: Observations, base: str, known: Collection[str]) -> tuple[str, ...]:
    """Counters of runs of which no intensity is made that is known.

    Parameters
    ----------
    observations
        The runs.
    base
        What totals are divided by.
    known
        Names of intensities.
    """
    ways = [way for name in _ORDER if _log_of(name) in known for way in AMOUNTS[name]]
    amounts = {counter for way in ways for counter in (*way.needs, *way.may_use)}
    return tuple(
        name
        for name in observations.names
        if _name(name, base) not in known and plain_name(name) not in amounts
    )


def _name(counter: str, base: str) -> str:
    return f"{counter} a unit" if base != NO_BASE and is_total(counter) else counter


def _log_of(amount: str) -> str:
    return f"log {amount}"


def _over(values: Reals, base: Reals) -> Reals:
    return np.divide(values, base, out=np.full_like(values, np.nan), where=base > 0)


def _log(values: Reals) -> Reals:
    return np.log(values, out=np.full_like(values, np.nan), where=values > 0)
