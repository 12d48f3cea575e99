"""How much work a run did, by the counters of several tools; intensities and prices of work."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError, importing
from crosscast.predict.relative.counters import Formula, by_plain_name, plain_name
from crosscast.predict.relative.data import Observations
from crosscast.predict.serialization import Array, Stored

LAUNCHES, BYTES, OPERATIONS = "launches", "bytes", "operations"
ITEMS: Final = "items"
INSTRUCTIONS: Final = "instructions"
_KINDS = (LAUNCHES, ITEMS, INSTRUCTIONS, BYTES, OPERATIONS)

_SASS = "smsp__sass_thread_inst_executed_op_"
# A memory transaction of nvprof, and a sector of Nsight Compute, has 32 bytes.
_FORMULAS: Mapping[str, tuple[str, ...]] = {
    LAUNCHES: ("Kernels/Rep", "launches"),
    ITEMS: ("Iterations/Rep", "grid.x · grid.y · block.x · block.y", "launch__thread_count"),
    INSTRUCTIONS: ("inst_executed", "smsp__inst_executed.sum", "PAPI_TOT_INS", "instructions"),
    BYTES: (
        "Bytes/Rep",
        "32 · device_memory_read_transactions + 32 · l2_write_transactions",
        "32 · dram_read_transactions + 32 · dram_write_transactions",
        "dram__bytes.sum",
    ),
    OPERATIONS: (
        "Flops/Rep",
        "fp_instructions.single. + fp_instructions.double. + integer_instructions",
        "flop_count_sp + flop_count_dp + [inst_integer]",
        f"{_SASS}fadd_pred_on.sum + {_SASS}ffma_pred_on.sum + [{_SASS}integer_pred_on.sum]",
        "PAPI_SP_OPS + PAPI_DP_OPS",
    ),
}
AMOUNTS = {kind: tuple(map(Formula, texts)) for kind, texts in _FORMULAS.items()}
"""Ways to each amount; a run takes the first that it has the counters for."""

Base = Literal["instructions", "items", ""]
"""What totals are divided by, if by anything."""


def amounts_of(observations: Observations) -> dict[str, Reals]:
    """Amounts ``(r,)`` by kind; NaN where the counters do not tell."""
    (counters, _), rows = by_plain_name(observations), len(observations)
    found: dict[str, Reals] = {}
    for kind, formulas in AMOUNTS.items():
        amount = np.full(rows, np.nan)
        for formula in formulas:
            amount = np.where(np.isnan(amount), formula.values(counters, rows), amount)
        found[kind] = amount
    return found


_NOT_A_TOTAL = re.compile(
    r"""throughput|efficiency|utili[sz]ation|occupancy|(?<![a-z])(ratio|rate)|percent|pct|avg|ipc|topdown
    |_per_|\.per[._]|eligible|(^|[._])(grid|block|input|static|dynamic|registers|smem|launch_|stall_)
    |overhead|(busy|stalled|hitrate|cachehit|bankconflict)$""",
    re.IGNORECASE | re.VERBOSE,
)


def is_total(counter: str) -> bool:
    """Whether a counter is a total over a run, by its name.

    >>> is_total("Iterations/Rep"), is_total("l1tex__hit_rate"), is_total("achieved_occupancy")
    (True, False, False)
    """
    return _NOT_A_TOTAL.search(counter) is None


def base_of(observations: Observations) -> Base:
    """What totals of such runs are divided by: instructions or items, whichever more of the runs tell.

    The training runs choose it, so that a feature means the same in all others.
    """
    amounts = amounts_of(observations)
    instructions, items = (np.isfinite(amounts[kind]).sum() for kind in (INSTRUCTIONS, ITEMS))
    if not (instructions or items):
        return ""
    return INSTRUCTIONS if instructions >= items else ITEMS


def intensities_of(observations: Observations, base: Base) -> Observations:
    """The same runs with other counters.

    Totals are divided by the base, if there is one; other counters stay. To these come logarithms of the
    amounts of work and of their ratios, also to the time that the run took on its source: how near it came to
    what its source can do is what a profile tells first.

    The order of the counters does not matter, and no run's values depend on the other runs.
    """
    amounts = amounts_of(observations)
    columns: dict[str, Reals] = {}
    for place, name in sorted(enumerate(observations.names), key=lambda each: each[1]):
        values = observations.counters[:, place]
        if base and is_total(name):
            divisor = amounts[base]
            values = np.divide(values, divisor, out=np.full_like(values, np.nan), where=divisor > 0)
        columns[_intensity(name, base)] = values
    logs = {kind: _log(amounts[kind] + 1.0) for kind in _KINDS if np.isfinite(amounts[kind]).any()}
    if np.isfinite(observations.time_s).any():
        logs["time"] = _log(observations.time_s)
    columns |= {f"log {name}": values for name, values in logs.items()}
    if "time" in logs:
        columns |= {f"log time over {name}": logs["time"] - logs[name] for name in logs if name != "time"}
    if BYTES in logs and OPERATIONS in logs:
        columns["log operations over bytes"] = logs[OPERATIONS] - logs[BYTES]
    counters = np.column_stack([*columns.values()]) if columns else np.empty((len(observations), 0))
    return replace(observations, names=tuple(columns), counters=counters.astype(np.float64))


def unknown_counters(observations: Observations, base: Base, known: Collection[str]) -> tuple[str, ...]:
    """Counters of runs of which no intensity is made that is among the known ones."""
    formulas = [formula for kind in _KINDS if f"log {kind}" in known for formula in AMOUNTS[kind]]
    used = {counter for formula in formulas for counter in (*formula.needs, *formula.may_use)}
    return tuple(
        name
        for name in observations.names
        if _intensity(name, base) not in known and plain_name(name) not in used
    )


def _intensity(counter: str, base: Base) -> str:
    return f"{counter} a unit" if base and is_total(counter) else counter


def _log(values: Reals) -> Reals:
    return np.log(values, out=np.full_like(values, np.nan), where=values > 0)


_ROBUST = 0.5
"""Error of a logarithm from which on the loss grows with the error, and no longer with its square."""

_PULL = 0.2
"""How hard a price is pulled to where its term alone would make a third of the typical time."""

_THIRD = -1.0
_LEAST = 1e-30


def terms_of(observations: Observations) -> Reals:
    """Amounts that have a price, of shape ``(r, 4)``: launches, bytes, operations, bytes of an item a launch.

    The last stands for the time that no parallelism shortens. NaN where counters do not tell; a run that does
    not say how often it launched something is taken as one launch.
    """
    amounts = amounts_of(observations)
    launches = np.where(amounts[LAUNCHES] > 0, amounts[LAUNCHES], 1.0)
    items = np.where(amounts[ITEMS] > 0, amounts[ITEMS], np.nan)
    return np.column_stack([launches, amounts[BYTES], amounts[OPERATIONS], launches * amounts[BYTES] / items])


@dataclass(frozen=True, eq=False)
class WorkPrices(Stored):
    """Prices of work on ``d`` devices: a time is the sum of the terms times their prices."""

    devices: Annotated[tuple[str, ...], Array("d")]
    # Seconds for a unit of each term; 0 of a term that training runs do not have.
    prices: Annotated[Reals, Array("4 d", low=0)]

    def check(self) -> None:
        """Refuse a device on which all is free."""
        if not self.prices.any(axis=0).all():
            raise InputError.of(field="prices", expected="one above 0 for each device", found="none")

    def log_relative(self, observations: Observations, *, anchored: bool) -> Reals:
        """Logarithms of times less their mean over the devices, of shape ``(r, d)``.

        Rows without an amount are NaN. If anchored, a run's own time stands for its source.
        """
        terms = terms_of(observations)
        used = self.prices.any(axis=1)
        times = np.log(np.maximum(terms[:, used] @ self.prices[used], _LEAST))
        for column, device in enumerate(self.devices if anchored else ()):
            own = np.array([source == device for source in observations.source]) & (observations.time_s > 0)
            times[own, column] = np.log(observations.time_s[own])
        centred: Reals = times - times.mean(axis=1, keepdims=True)
        return centred


def fit_prices(
    observations: Observations, devices: tuple[str, ...], log_time: Reals, weights: Reals
) -> WorkPrices | None:
    """Fit prices to logarithms of times ``(r, d)``; ``None`` if counters tell of no work but launches."""
    terms = terms_of(observations)
    told = np.isfinite(terms).all(axis=0) & (terms > 0).any(axis=0)
    if told.sum() < 2:
        return None
    prices = np.zeros((terms.shape[1], len(devices)))
    root = np.sqrt(weights / weights.mean())
    for column in range(len(devices)):
        prices[told, column] = _prices(terms[:, told], log_time[:, column], root)
    return WorkPrices(devices, prices)


def _prices(terms: Reals, log_time: Reals, root: Reals) -> Reals:
    with importing("train", "fitting a model"):
        from scipy.optimize import least_squares
    # Prices at which each term alone makes the typical time of the runs that have it.
    typical = np.exp([np.median(log_time[term > 0] - np.log(term[term > 0])) for term in terms.T])
    scaled = terms * typical

    def errors(prices: Reals) -> Reals:
        found = np.log(np.maximum(scaled @ np.exp(prices), _LEAST)) - log_time
        return np.concatenate([found * root, _PULL * (prices - _THIRD)])

    starts = (np.full(terms.shape[1], start) for start in (-2.0, -1.0, 0.0))
    fits = [least_squares(errors, start, loss="soft_l1", f_scale=_ROBUST) for start in starts]
    best = min(fits, key=lambda fit: float(fit.cost))
    found: Reals = typical * np.exp(best.x)
    return found
