"""Rank all variants of a kernel by their forecast times on devices, of which some are profiled."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.architectures import known_unit
from crosscast.devices.catalogue import device_named
from crosscast.errors import InputError
from crosscast.evaluation.loop import State
from crosscast.kernel import MAX_BLOCK_SIZE
from crosscast.prediction.named_models import load_model, models_for_devices
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.time.terms import TERMS
from crosscast.profile import Profile, doubts
from crosscast.results import Tabular
from crosscast.tuning import LaunchRule, Space, Variants
from crosscast.tuning.profiling import Begin, Profiler, Progress, VariantCounts, spread
from crosscast.tuning.search import Candidates, Strategy

if TYPE_CHECKING:
    from crosscast.prediction.time.forecast import TimeForecast
    from crosscast.results import Column

PROFILES = 120
"""Number of variants that are profiled by default; counts of the others are estimated from these."""

MOST_RANKED = 20_000
_COVERING_SHARE = 0.7
"""Share of the profiles that cover the space; the others are of the fastest variants by these."""

_ROUNDS = 2
_BLOCK = 1000
"""Number of variants that are forecast between two reports of progress."""
_PROFILE_S, _FORECAST_S = 0.5, 1e-3
"""Approximate seconds of a profile, and of a forecast from estimated counts."""
_ONE_DEVIATION = math.erf(1 / math.sqrt(2))
_LEAST_DEVIATION = 0.02
_MEMORY_MARGIN = 1.25
_STATIC_BYTES = 48 << 10
"""Most local memory of a work-group on NVIDIA's GPUs, unless a launch asks for more (CUDA's guide)."""
_LEAST_IMPORTANCE = 0.2


class TermsModel(Protocol):
    """A trained model of times that takes profiles, and may split times into terms."""

    def predict(
        self,
        profiles: ProfileBatch,
        devices: Sequence[str | Device] | None = None,
        *,
        level: float = 0.9,
    ) -> TimeForecast:
        """Forecast times of all profiles on all devices."""


class Forecasts(NamedTuple):
    """Forecasts of ``n`` profiles on ``d`` devices."""

    log_time: Reals  # `(n, d)` Natural logarithms of seconds
    deviation: Reals  # `(n, d)` Of these
    shares: Reals  # `(n, d, t)` Of the time, by term


def forecasts(model: TermsModel, profiles: Sequence[Profile], devices: Sequence[str | Device]) -> Forecasts:
    """Forecast times of the profiles of variants by a model."""
    forecast = model.predict(ProfileBatch.of(profiles), devices, level=_ONE_DEVIATION)
    shares = np.zeros((*forecast.centre.shape, 0)) if forecast.terms is None else forecast.terms
    deviation = np.maximum(_half_width(forecast), _LEAST_DEVIATION)
    return Forecasts(np.log(forecast.centre), deviation, shares)


def _half_width(forecast: TimeForecast) -> Reals:
    """Return half the width of intervals in logarithms, as one end may be clipped at a physical bound."""
    half_width: Reals = 0.5 * np.log(forecast.high / forecast.low)
    return half_width


@dataclass(frozen=True, eq=False)
class Ranking(Tabular):
    """Forecast times of ``n`` variants of a kernel on ``d`` devices."""

    space: Space
    variants: Variants
    devices: tuple[str, ...]  # Keys
    log_time: Reals  # `(n, d)` Natural logarithms of seconds; infinite if a device cannot run a variant
    deviation: Reals  # `(n, d)` Of these, with the error of estimated counts
    shares: Reals  # `(n, d, t)` Of the time, by `crosscast.prediction.time.terms.TERMS`
    geometry: Reals  # `(n, g)` Sizes of work-groups and of their code and memory, as coordinates
    profiled: Flags  # `(n,)` Whether counts are of a profile, not estimated
    count_error: Reals  # `(d,)` Deviation of logarithms of times that estimated counts add
    level: float  # Probability that the intervals are to hold
    factor: float  # Half their width, in deviations
    failed: Mapping[str, str] = field(default_factory=dict)  # Why variants have no profile, by label
    notes: tuple[str, ...] = ()
    measured: Mapping[int, float] = field(default_factory=dict)  # Seconds, by row of the variants
    not_run: Mapping[int, str] = field(default_factory=dict)  # Why others could not be measured, by row

    def __len__(self) -> int:
        return len(self.variants)

    def column_of(self, device: str | None = None) -> int:
        """Return the column of a device, by default the first."""
        if device is None:
            return 0
        if device not in self.devices:
            expected = f"one of {', '.join(self.devices)}"
            raise InputError.of(where="device", expected=expected, found=repr(device))
        return self.devices.index(device)

    def order(self, device: str | None = None) -> Integers:
        """Return the variants that a device can run, by row, the fastest first.

        They are sorted by the time one deviation above the forecast, which prefers variants that were
        profiled.
        """
        column = self.column_of(device)
        times = self.log_time[:, column] + self.deviation[:, column]
        order = np.argsort(times, kind="stable")
        return order[np.isfinite(times[order])]

    def candidates(self, device: str | None = None) -> Candidates:
        """Return the forecasts with which a search on a device begins."""
        column = self.column_of(device)
        log_time = self.log_time[:, column]
        points = self.space.rule.coordinates(self.variants)
        points[:, : self.variants.coordinates.shape[1]] *= _importance(self.variants, log_time)
        return Candidates(
            log_time,
            self.deviation[:, column],
            self.shares[:, column],
            points,
            self.geometry,
        )

    def limits(self) -> tuple[Reals, Reals]:
        """Return the lower and upper ends of the intervals in seconds, ``(n, d)`` each."""
        half_width = self.factor * self.deviation
        return np.exp(self.log_time - half_width), np.exp(self.log_time + half_width)

    def savings(self, device: str | None = None) -> list[tuple[str, float] | None]:
        """Return the term of which each variant saves most against the space's median, and these seconds.

        ``None`` if it saves nothing, or the model has no terms.
        """
        column = self.column_of(device)
        if self.shares.shape[2] != len(TERMS):
            return [None] * len(self)
        can_run = np.isfinite(self.log_time[:, column])
        terms_s = np.exp(np.where(can_run, self.log_time[:, column], 0.0))[:, None] * self.shares[:, column]
        saved_s = np.median(terms_s[can_run], axis=0) - terms_s
        best = zip(saved_s.argmax(axis=1).tolist(), saved_s.max(axis=1).tolist(), strict=True)
        return [(TERMS[term], seconds) if seconds > 0 else None for term, seconds in best]

    def strategy(self, device: str | None = None, within: float = 0.02) -> Strategy:
        """Return the search on a device, by default the first, as a strategy of Kernel Tuner."""
        return Strategy(self.variants, self.candidates(device), within)

    def columns(self) -> Mapping[str, Column]:
        """Return a row for each variant and device that can run it, the fastest first."""
        low, high = self.limits()
        orders = [self.order(key).tolist() for key in self.devices]
        rows, devices = list(chain(*orders)), [device for device, order in enumerate(orders) for _ in order]
        variants = [self.variants[row] for row in rows]
        savings = list(map(self.savings, self.devices))
        saved = [savings[device][row] for device, row in zip(devices, rows, strict=True)]
        columns: dict[str, Column] = {
            "device": [self.devices[device] for device in devices],
            "rank": [rank for order in orders for rank in range(1, len(order) + 1)],
            **{name: [variant[name] for variant in variants] for name in self.variants.names},
            "time_s": np.exp(self.log_time)[rows, devices],
            "low_s": low[rows, devices],
            "high_s": high[rows, devices],
            "profiled": self.profiled[rows],
            "saves_most_of": [each and each[0] for each in saved],
            "saved_s": [math.nan if each is None else each[1] for each in saved],
        }
        if self.measured:
            columns["measured_s"] = [self.measured.get(row, math.nan) for row in rows]
        return columns

    def caption(self) -> str:
        """Return the number of variants, and of those that were profiled."""
        return f"{len(self)} variants, {int(self.profiled.sum())} of them profiled"


def rank(
    space: Space,
    devices: Sequence[str | Device],
    model: TermsModel,
    *,
    profiler: Profiler | None = None,
    profiles: int = PROFILES,
    seed: int = 0,
    level: float = 0.9,
    variants: Variants | None = None,
    progress: Progress = lambda state: None,
    begin: Begin = lambda variants, seconds: None,
) -> Ranking:
    """Forecast the times of variants of a space, by default all valid ones or `MOST_RANKED` at random.

    `profiles` of them are profiled: 70 % of these cover the space, the others are the fastest by these. By
    default profiles are kept in the user's cache. `begin` is called with the number of variants and the
    expected seconds, `progress` after each profile and each `_BLOCK` of forecasts.
    """
    variants = space.variants(most=MOST_RANKED, seed=seed) if variants is None else variants
    if profiles < min(2, len(variants)):
        # One says nothing of how well others are estimated from it.
        raise InputError.of(where="profiles", expected="at least 2", found=profiles)
    profiler = Profiler(space.rule) if profiler is None else profiler
    sizes, unsized = _group_items(space.rule, variants)
    left_out = []
    if (large := sizes > MAX_BLOCK_SIZE).any():
        left_out.append(f"{large.sum():,} variants have work-groups of over {MAX_BLOCK_SIZE} work-items")
    for label, reason in list(unsized.items())[:1]:
        left_out.append(f"Variants that cannot be launched: {len(unsized):,}, such as {label}: {reason}")
    variants = variants.take(np.flatnonzero((sizes > 0) & ~large))
    if not len(variants):
        found = f"none ({'; '.join(left_out)})"
        raise InputError.of(where=space.where, expected="a variant that can be launched", found=found)
    notes = [f"{each}." for each in left_out]
    if variants.drawn:
        notes.insert(0, f"There are more valid variants: these {len(sizes):,} were drawn of them at random.")
    passes = 1 + _ROUNDS * (profiles < len(variants))
    begin(len(variants), _PROFILE_S * min(profiles, len(variants)) + _FORECAST_S * passes * len(variants))
    profiled: dict[int, Profile] = {}
    attempted: set[int] = set()

    def profile(rows: Sequence[int]) -> None:
        attempted.update(rows)
        by_label = profiler.profiles([variants[row] for row in rows], progress)
        labels = {row: variants.labels[row] for row in rows}
        profiled.update({row: by_label[label] for row, label in labels.items() if label in by_label})
        if not profiled:
            label = labels[rows[0]]
            found = f"none of {len(rows)} ({label}: {profiler.failed[label]})"
            raise InputError.of(where=space.where, expected="variants that can be profiled", found=found)

    def estimated(counts: VariantCounts, passes_left: int) -> tuple[list[Profile], Forecasts]:
        estimates: list[Profile] = []
        parts, total, start = [], len(variants), time.monotonic()
        for first in range(0, total, _BLOCK):
            block = counts.profiles(range(total)[first : first + _BLOCK])
            estimates += block
            parts.append(forecasts(model, block, devices))
            done, elapsed_s = len(estimates), time.monotonic() - start
            left_s = elapsed_s / done * (total - done + passes_left * total)
            progress(State(done, total, elapsed_s, left_s, "forecasts"))
        return estimates, Forecasts(*map(np.concatenate, zip(*parts, strict=True)))

    first = profiles if len(variants) <= profiles else math.ceil(_COVERING_SHARE * profiles)
    profile(spread(space.rule.coordinates(variants), first, seed).tolist())
    for rounds_left in range(_ROUNDS, 0, -1):
        # In several rounds: if few are profiled, a fast forecast is often an error of estimated counts.
        if (more := (profiles - len(attempted)) // rounds_left) > 0 and len(attempted) < len(variants):
            _, forecast = estimated(VariantCounts(variants, space.rule, profiled), rounds_left)
            profile(_fastest(forecast.log_time, more, attempted))
    counts = VariantCounts(variants, space.rule, profiled)
    estimates, forecast = estimated(counts, 0)
    known = list(profiled.values())
    true, deviation_of_known, _ = forecasts(model, known, devices)
    at_level = model.predict(ProfileBatch.of(known), devices, level=level)
    error = np.zeros(len(devices))
    if len(profiled) < len(variants):
        without = forecasts(model, counts.leave_one_out(), devices).log_time
        error = np.sqrt(((without - true) ** 2).mean(axis=0))
    is_profiled = np.zeros(len(variants), dtype=np.bool_)
    is_profiled[list(profiled)] = True
    deviation = np.where(is_profiled[:, None], forecast.deviation, np.hypot(forecast.deviation, error))
    too_large = _too_large(estimates, is_profiled, devices, dynamic=space.rule.shared is not None)
    log_time = np.where(too_large, np.inf, forecast.log_time)
    log_time[[row for row, label in enumerate(variants.labels) if label in profiler.failed]] = np.inf
    keys = tuple(device if isinstance(device, str) else device.key for device in devices)
    for key, column, large in zip(keys, log_time.T, too_large.T, strict=True):
        if large.any():
            notes.append(
                f"Variants that need more local memory than {key} gives to a work-group: {large.sum():,}."
            )
        if not np.isfinite(column).any():
            raise InputError.of(
                where=space.where, expected=f"a variant that {key} has memory for", found="none"
            )
    beyond = [row for row in profiled if profiled[row].launch.get("read_beyond")]
    if beyond:
        doubt = doubts({"read_beyond": profiled[beyond[0]].launch["read_beyond"]})[0]
        label = variants.labels[beyond[0]]
        notes.append(f"Variants that read outside a buffer: {len(beyond)}, such as {label}, which {doubt}.")
    if profiler.failed:
        label, reason = next(iter(profiler.failed.items()))
        notes.append(f"{len(profiler.failed)} variants could not be profiled, such as {label}: {reason}.")
    return Ranking(
        space,
        variants,
        keys,
        log_time,
        deviation,
        forecast.shares,
        _geometry(estimates),
        is_profiled,
        error,
        level,
        float(np.median(_half_width(at_level) / deviation_of_known)),
        dict(profiler.failed),
        tuple(notes),
    )


def _group_items(rule: LaunchRule, variants: Variants) -> tuple[Integers, dict[str, str]]:
    """Return the work-items of each variant's groups, 0 for those without sizes, and why, by their labels."""
    items, unsized = np.zeros(len(variants), dtype=np.int64), {}
    for row, label in enumerate(variants.labels):
        try:
            rule.shared_bytes(variants[row])
            items[row] = min(math.prod(rule.groups(variants[row])[1]), MAX_BLOCK_SIZE + 1)
        except InputError as error:
            unsized[label] = str(error)
    return items, unsized


def _importance(variants: Variants, log_time: Reals) -> Reals:
    """Return how much each parameter that varies matters by the forecast, at most 1.

    Coordinates are scaled by it. Variants that differ in a parameter of little effect on the forecast are
    then near to each other, and the measured time of one informs that of the other.
    """
    can_run = np.isfinite(log_time)
    variances = []
    for parameter, indices in enumerate(variants.rows.T):
        if len(np.unique(indices)) < 2:
            continue
        others = np.delete(variants.rows, parameter, axis=1)[can_run]
        _, group = np.unique(others, axis=0, return_inverse=True)
        count = np.bincount(group)
        mean = np.bincount(group, log_time[can_run]) / count
        squares = np.bincount(group, (log_time[can_run] - mean[group]) ** 2)[count > 1]
        variances.append(squares.sum() / max(count[count > 1].sum(), 1))
    # Roots of deviations, which are closer to each other, as forecasts err in them.
    roots = np.array(variances) ** 0.25
    most = roots.max(initial=0.0)
    scales: Reals = np.clip(roots / most if most > 0 else np.ones(len(roots)), _LEAST_IMPORTANCE, 1.0)
    return scales


def _fastest(log_time: Reals, count: int, excluded: set[int]) -> list[int]:
    """Choose the fastest variants of each device in turn, other than those excluded."""
    orders = np.argsort(log_time, axis=0, kind="stable")
    chosen: dict[int, None] = {}
    for row in orders.ravel().tolist():
        if len(chosen) >= count:
            break
        if row not in excluded:
            chosen[row] = None
    return list(chosen)


def _too_large(
    profiles: Sequence[Profile], is_profiled: Flags, devices: Sequence[str | Device], *, dynamic: bool
) -> Flags:
    """Return which variants need more local memory than a device gives to a work-group, ``(n, d)``."""
    # An estimate excludes a variant only if it exceeds the memory by a margin.
    margin = np.where(is_profiled, 1.0, _MEMORY_MARGIN)
    needed = np.array([_local_bytes(profile) for profile in profiles]) / margin
    large: Flags = needed[:, None] > np.array([_most_local_bytes(device, dynamic) for device in devices])
    return large


def _most_local_bytes(device: str | Device, dynamic: bool) -> float:
    """Return the most local memory of a work-group; `dynamic` if the launch says how much."""
    if isinstance(device, str):
        return math.inf
    unit = known_unit(device)
    most = math.inf if unit is None else float(unit.local_bytes)
    if device.vendor == "Nvidia" and not dynamic:
        most = min(most, _STATIC_BYTES)
    return device.numbers.get("local_memory_bytes", most)


def _local_bytes(profile: Profile) -> float:
    return float(sum((profile.launch.get("geometry", {}).get("local_bytes") or {}).values()))


def _geometry(profiles: Sequence[Profile]) -> Reals:
    """Return sizes of work-groups, their registers, memory, code and longest path, as coordinates."""
    rows = []
    for profile in profiles:
        geometry = profile.launch.get("geometry", {})
        sizes = [geometry.get(name, 0) for name in ("group_items", "registers", "kept_values", "code")]
        path = profile.launch.get("path", {}).get("instructions", 0)
        rows.append([*sizes, _local_bytes(profile), path])
    logs = np.log2(1 + np.array(rows, dtype=np.float64))
    spreads = logs.std(axis=0)
    coordinates: Reals = (logs - logs.mean(axis=0)) / np.where(spreads > 0, spreads, 1.0)
    return coordinates


def model_for(model: str | Path | None, devices: Sequence[str | Device]) -> tuple[TermsModel, list[Device]]:
    """Load a model, and the descriptions of devices by it or by the catalogue.

    By default it is a model that was calibrated on one of the devices, or else ``launch-times``.
    """
    if model is None:
        keys = {device if isinstance(device, str) else device.key for device in devices}
        first = models_for_devices("time", keys)[0]
        model = first.folder if first.calibrated else "launch-times"
    chosen = load_model(model, "time")
    known = {device.key: device for device in chosen.devices}
    described = [
        device if isinstance(device, Device) else known.get(device) or device_named(device)
        for device in devices
    ]
    return chosen, [known.get(device.key, device) for device in described]
