"""Amounts of work that counters tell, by the names of several tools: how much is done, not how fast."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.artefact import kept_names, kept_reals
from crosscast.predict.relative.counters import Amount, by_plain_name, of, plain_name, total
from crosscast.predict.relative.data import Observations

LAUNCHES, ITEMS, INSTRUCTIONS, BYTES, OPERATIONS = "launches", "items", "instructions", "bytes", "operations"

_SECTOR = 32.0
"""Bytes of a memory transaction of nvprof, and of a sector of Nsight Compute."""


def _product(text: str, *names: str) -> Amount:
    def multiplied(*counts: Reals) -> Reals:
        whole: Reals = np.prod(counts, axis=0)
        return whole

    return Amount(text, tuple(name.lower() for name in names), multiplied)


_SASS = "smsp__sass_thread_inst_executed_op_"
AMOUNTS: Mapping[str, tuple[Amount, ...]] = {
    LAUNCHES: (total("Kernels/Rep"), total("launches")),
    ITEMS: (
        total("Iterations/Rep"),
        _product("threads of all blocks", "grid.x", "grid.y", "block.x", "block.y"),
        total("launch__thread_count"),
    ),
    INSTRUCTIONS: (
        total("inst_executed"),
        total("smsp__inst_executed.sum"),
        total("PAPI_TOT_INS"),
        total("instructions"),
    ),
    BYTES: (
        total("Bytes/Rep"),
        of((_SECTOR, "device_memory_read_transactions"), (_SECTOR, "l2_write_transactions")),
        of((_SECTOR, "dram_read_transactions"), (_SECTOR, "dram_write_transactions")),
        total("dram__bytes.sum"),
    ),
    OPERATIONS: (
        total("Flops/Rep"),
        total("fp_instructions.single.", "fp_instructions.double.", "integer_instructions"),
        total("flop_count_sp", "flop_count_dp", also=("inst_integer",)),
        total(f"{_SASS}fadd_pred_on.sum", f"{_SASS}ffma_pred_on.sum", also=(f"{_SASS}integer_pred_on.sum",)),
        total("PAPI_SP_OPS", "PAPI_DP_OPS"),
    ),
}
"""For each amount the ways to it; a run takes the first that it has the counters for."""


def amounts_of(observations: Observations) -> dict[str, Reals]:
    """Amounts by name, each of shape ``(r,)``; not a number where the counters do not tell."""
    (counters, _), rows = by_plain_name(observations), len(observations)
    found: dict[str, Reals] = {}
    for name, ways in AMOUNTS.items():
        amount = np.full(rows, np.nan)
        for way in ways:
            amount = np.where(np.isnan(amount), way.values(counters, rows), amount)
        found[name] = amount
    return found


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
    """Read what a kept model divides totals by."""
    base = kept_names(state, "base")
    if len(base) != 1 or base[0] not in BASES:
        known = ", ".join(map(repr, BASES))
        raise InputError(f"model: base: expected one of {known}, found {', '.join(base)[:60]!r}")
    return base[0]


def intensities_of(observations: Observations, base: str) -> Observations:
    """The same runs with other counters.

    Totals are divided by the instructions or the items; if by neither, they stay. Counters whose name says
    that they are no total stay, too. To these come logarithms of the amounts of work
    (`crosscast.predict.relative.sums`) and of their ratios, the time that the run took on its source
    among them: how near it came to what its source can do is what a profile tells first.

    The order of the counters does not matter, and no run's values depend on the other runs.
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
    """Counters of runs of which no intensity is made that is known."""
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


_TERMS = ("launch", "bytes", "operations", "one item")
_ROBUST = 0.5
"""Error of a logarithm from which on the loss grows with the error, and no longer with its square."""

_PULL = 0.2
"""How hard a price is pulled to where its term alone would make a third of the typical time."""

_THIRD = -1.0
_STARTS = (-2.0, -1.0, 0.0)
_LEAST = 1e-30


def terms_of(observations: Observations) -> Reals:
    """Amounts that are priced, of shape ``(r, 4)``: launches, bytes, operations, bytes of an item a launch.

    The last stands for the time that no parallelism shortens. Not a number where counters do not tell; a run
    that does not say how often it launched something is taken as one launch.
    """
    amounts = amounts_of(observations)
    launches = np.where(amounts[LAUNCHES] > 0, amounts[LAUNCHES], 1.0)
    items = np.where(amounts[ITEMS] > 0, amounts[ITEMS], np.nan)
    return np.column_stack([launches, amounts[BYTES], amounts[OPERATIONS], launches * amounts[BYTES] / items])


@dataclass(frozen=True, eq=False)
class FittedSums:
    """Prices of work on ``d`` devices."""

    devices: tuple[str, ...]  # Keys of the devices
    # Seconds for a unit of each term, of shape `(4, d)`; 0 of a term that training runs do not have
    prices: Reals

    def log_relative(self, observations: Observations, *, anchored: bool) -> Reals:
        """Logarithms of times less their mean over the devices, of shape ``(r, d)``.

        Rows without an amount are not a number.
        """
        terms = terms_of(observations)
        used = self.prices.any(axis=1)
        times = np.log(np.maximum(terms[:, used] @ self.prices[used], _LEAST))
        for column, device in enumerate(self.devices if anchored else ()):
            own = np.array([source == device for source in observations.source]) & (observations.time_s > 0)
            times[own, column] = np.log(observations.time_s[own])
        centred: Reals = times - times.mean(axis=1, keepdims=True)
        return centred

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {"priced_devices": np.array(self.devices, dtype=np.str_), "prices": self.prices}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedSums:
        """Make it from its arrays."""
        devices, prices = kept_names(state, "priced_devices"), kept_reals(state, "prices", 2)
        if prices.shape != (len(_TERMS), len(devices)) or (prices < 0).any() or not prices.any(axis=0).all():
            raise InputError(
                f"model: prices: expected {len(_TERMS)} prices from 0 on for each of {len(devices)} devices, "
                f"found shape {prices.shape}"
            )
        return cls(devices, prices)


def fit_sums(
    observations: Observations, devices: tuple[str, ...], log_time: Reals, weights: Reals
) -> FittedSums | None:
    """Fit prices to runs; ``None`` if their counters tell of no work but launches."""
    terms = terms_of(observations)
    told = np.isfinite(terms).all(axis=0) & (terms > 0).any(axis=0)
    if told.sum() < 2:
        return None
    prices = np.zeros((len(_TERMS), len(devices)))
    root = np.sqrt(weights / weights.mean())
    for column in range(len(devices)):
        prices[told, column] = _prices(terms[:, told], log_time[:, column], root)
    return FittedSums(devices, prices)


def _prices(terms: Reals, log_time: Reals, root: Reals) -> Reals:
    try:
        from scipy.optimize import least_squares
    except ImportError as error:
        raise MissingExtraError("train", "fitting a model") from error

    typical = np.array([_typical(log_time, column) for column in terms.T])
    scaled = terms * typical

    def errors(prices: Reals) -> Reals:
        found = np.log(np.maximum(scaled @ np.exp(prices), _LEAST)) - log_time
        return np.concatenate([found * root, _PULL * (prices - _THIRD)])

    fits = [
        least_squares(errors, np.full(terms.shape[1], start), loss="soft_l1", f_scale=_ROBUST)
        for start in _STARTS
    ]
    best = min(fits, key=lambda fit: float(fit.cost))
    found: Reals = typical * np.exp(best.x)
    return found


def _typical(log_time: Reals, term: Reals) -> float:
    """Price at which the term alone makes the typical time of the runs that have it."""
    has = term > 0
    return float(np.exp(np.median(log_time[has] - np.log(term[has]))))
