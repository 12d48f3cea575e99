"""All variants of a kernel by their forecast times on devices; only some of them are profiled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.errors import InputError
from crosscast.kernel import MAX_BLOCK_SIZE
from crosscast.prediction.named_models import load_model, models_for_devices
from crosscast.prediction.time.data import ProfileBatch
from crosscast.prediction.time.terms import TERMS
from crosscast.profile import Profile
from crosscast.results import Tabular
from crosscast.tuning.counts import VariantCounts, spread
from crosscast.tuning.kernel_tuner import Strategy
from crosscast.tuning.profiling import Profiler, Progress
from crosscast.tuning.search import Candidates
from crosscast.tuning.spaces import Space, Variants

if TYPE_CHECKING:
    from crosscast.prediction.time.forecast import TimeForecast
    from crosscast.results import Column

PROFILES = 120
"""Variants that are profiled by default; the counts of the others follow from theirs."""

MOST_RANKED = 20_000
_FIRST = 0.7
"""Share of the profiles that cover the space; the others are of the best by these."""

_ROUNDS = 2
_ONE_DEVIATION = math.erf(1 / math.sqrt(2))
_LEAST_ERROR = 0.02
_ROOM = 1.25
_LEAST_MATTER = 0.2


class TermsModel(Protocol):
    """What is asked for times: a trained model that takes profiles and says terms."""

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
    """Ask a model: the one way from profiles of variants to times."""
    found = model.predict(ProfileBatch.of(profiles), devices, level=_ONE_DEVIATION)
    shares = np.zeros((*found.centre.shape, 0)) if found.terms is None else found.terms
    # Half of the interval: its ends may be cut at what physics allows.
    deviation = 0.5 * np.log(found.high / found.low)
    return Forecasts(np.log(found.centre), np.maximum(deviation, _LEAST_ERROR), shares)


@dataclass(frozen=True, eq=False)
class Ranking(Tabular):
    """Forecast times of ``n`` variants of a kernel on ``d`` devices."""

    space: Space
    variants: Variants
    devices: tuple[str, ...]  # Keys
    log_time: Reals  # `(n, d)` Natural logarithms of seconds; infinite of a variant that a device cannot run
    deviation: Reals  # `(n, d)` Of these, with what counts that were not run may be off by
    shares: Reals  # `(n, d, t)` Of the time, by `crosscast.prediction.time.terms.TERMS`
    geometry: Reals  # `(n, g)` Sizes of work-groups, and what they hold, as coordinates
    ran: Flags  # `(n,)` Which were profiled
    count_error: Reals  # `(d,)` Deviation of logarithms that counts which were not run add
    level: float = 0.9
    failed: Mapping[str, str] = field(default_factory=dict)  # Why variants have no profile, by label
    notes: tuple[str, ...] = ()
    measured: Mapping[int, float] = field(default_factory=dict)  # Seconds, by number of the variant
    tried: Mapping[int, str] = field(default_factory=dict)  # Why others that were measured did not run

    def __len__(self) -> int:
        return len(self.variants)

    def place(self, device: str | None = None) -> int:
        """Column of a device; by default the first."""
        if device is None:
            return 0
        if device not in self.devices:
            expected = f"one of {', '.join(self.devices)}"
            raise InputError.of(where="device", expected=expected, found=repr(device))
        return self.devices.index(device)

    def order(self, device: str | None = None) -> Integers:
        """Variants by their time on a device, the fastest first; those that it cannot run are left out.

        What counts is the time one deviation above the forecast: variants that were profiled are surer.
        """
        place = self.place(device)
        times = self.log_time[:, place] + self.deviation[:, place]
        order = np.argsort(times, kind="stable")
        return order[np.isfinite(times[order])]

    def candidates(self, device: str | None = None) -> Candidates:
        """What a search on a device begins with."""
        place = self.place(device)
        log_time = self.log_time[:, place]
        points = self.space.rule.coordinates(self.variants)
        points[:, : self.variants.coordinates.shape[1]] *= _matters(self.variants, log_time)
        return Candidates(
            log_time,
            self.deviation[:, place],
            self.shares[:, place],
            np.concatenate([points, self.geometry], axis=1),
        )

    def limits(self) -> tuple[Reals, Reals]:
        """Ends of the intervals in seconds, ``(n, d)`` each."""
        # Imported here: what looks at a space needs none of it.
        from scipy.special import ndtri

        factor = float(ndtri(0.5 + self.level / 2))
        return np.exp(self.log_time - factor * self.deviation), np.exp(
            self.log_time + factor * self.deviation
        )

    def saved(self, row: int, device: str | None = None) -> tuple[str, float] | None:
        """The term of which a variant saves most against the middle of the space, and seconds of that."""
        place = self.place(device)
        seconds = np.exp(self.log_time[:, place])
        known = np.isfinite(seconds)
        if self.shares.shape[2] != len(TERMS):
            return None
        parts = seconds[known, None] * self.shares[known, place]
        less = np.median(parts, axis=0) - seconds[row] * self.shares[row, place]
        best = int(np.argmax(less))
        return (TERMS[best], float(less[best])) if less[best] > 0 else None

    def strategy(self, device: str | None = None, within: float = 0.02) -> Strategy:
        """The search on a device, by default the first, as a strategy of Kernel Tuner."""
        return Strategy(self.variants, self.candidates(device), within)

    def columns(self) -> Mapping[str, Column]:
        """A row for each variant and device that can run it, the fastest first."""
        low, high = self.limits()
        pairs = [(row, place) for place, key in enumerate(self.devices) for row in self.order(key).tolist()]
        rows, places = (list(each) for each in zip(*pairs, strict=True)) if pairs else ([], [])
        chosen = [self.variants[row] for row in rows]
        ranks: list[int] = []
        for key in self.devices:
            ranks += range(1, len(self.order(key)) + 1)
        columns: dict[str, Column] = {
            "device": [self.devices[place] for place in places],
            "rank": ranks,
            **{name: [each[name] for each in chosen] for name in self.variants.names},
            "time_s": np.exp(self.log_time)[rows, places],
            "low_s": low[rows, places],
            "high_s": high[rows, places],
            "profiled": self.ran[rows],
        }
        if self.measured:
            columns["measured_s"] = [self.measured.get(row, math.nan) for row in rows]
        return columns

    def caption(self) -> str:
        """How many variants were profiled."""
        return f"{len(self)} variants, {int(self.ran.sum())} of them profiled"


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
) -> Ranking:
    """Forecast the times of all variants of a space.

    Parameters
    ----------
    space
        The space, with the launch of its variants.
    devices
        Devices that `model` knows, or descriptions.
    model
        A model of times that takes whole profiles.
    profiler
        What profiles variants; by default one that keeps them in the user's cache.
    profiles
        How many are profiled. Two thirds of them cover the space; the others are the fastest by these.
    variants
        Those to rank; by default all that are valid, or `MOST_RANKED` drawn of them.

    Raises
    ------
    InputError
        If there is no valid variant, none that a device can run, or none that can be profiled.
    """
    if profiles < 1:
        raise InputError.of(where="profiles", expected="at least 1", found=profiles)
    variants = space.variants(most=MOST_RANKED, seed=seed) if variants is None else variants
    profiler = Profiler(space.rule) if profiler is None else profiler
    fits = np.array([math.prod(space.rule.groups(variants[row])[1]) for row in range(len(variants))])
    whole, variants = len(variants), variants.take(np.flatnonzero(fits <= MAX_BLOCK_SIZE))
    if not len(variants):
        expected = f"a variant with work-groups of at most {MAX_BLOCK_SIZE} work-items"
        raise InputError.of(where=space.where, expected=expected, found=f"{int(fits.min())} at least")
    notes = []
    if variants.drawn:
        notes.append(f"There are more valid variants: these {whole:,} were drawn of them at random.")
    if whole > len(variants):
        notes.append(
            f"{whole - len(variants)} variants have work-groups of over {MAX_BLOCK_SIZE} work-items."
        )
    ran: dict[int, Profile] = {}
    tried: set[int] = set()

    def run(rows: Sequence[int]) -> None:
        tried.update(rows)
        found = profiler.profiles([variants[row] for row in rows], progress)
        ran.update({row: found[variants.labels[row]] for row in rows if variants.labels[row] in found})

    everything = range(len(variants))
    first = profiles if len(variants) <= profiles else math.ceil(_FIRST * profiles)
    run(spread(space.rule.coordinates(variants), first, seed).tolist())
    for left in range(_ROUNDS, 0, -1):
        # Where few counts say that a variant is fast, it is often their error that says so.
        if (more := (profiles - len(tried)) // left) > 0 and len(tried) < len(variants):
            found = forecasts(model, VariantCounts(variants, space.rule, ran).profiles(everything), devices)
            run(_fastest(found.log_time, more, tried))
    counts = VariantCounts(variants, space.rule, ran)
    said = counts.profiles(everything)
    found = forecasts(model, said, devices)
    error = np.zeros(len(devices))
    if len(ran) < len(variants):
        true = forecasts(model, list(ran.values()), devices).log_time
        left_out = forecasts(model, counts.left_out(), devices).log_time
        error = np.sqrt(((left_out - true) ** 2).mean(axis=0))
    was_run = np.zeros(len(variants), dtype=np.bool_)
    was_run[list(ran)] = True
    deviation = np.where(was_run[:, None], found.deviation, np.hypot(found.deviation, error))
    log_time = np.where(_too_large(said, was_run, devices), np.inf, found.log_time)
    log_time[[row for row, label in enumerate(variants.labels) if label in profiler.failed]] = np.inf
    keys = tuple(each if isinstance(each, str) else each.key for each in devices)
    for key, column in zip(keys, log_time.T, strict=True):
        if not np.isfinite(column).any():
            raise InputError.of(
                where=space.where, expected=f"a variant that {key} has memory for", found="none"
            )
    if profiler.failed:
        label, reason = next(iter(profiler.failed.items()))
        notes.append(f"{len(profiler.failed)} variants could not be profiled, such as {label}: {reason}.")
    return Ranking(
        space,
        variants,
        keys,
        log_time,
        deviation,
        found.shares,
        _geometry(said),
        was_run,
        error,
        level,
        dict(profiler.failed),
        tuple(notes),
    )


def _matters(variants: Variants, log_time: Reals) -> Reals:
    """How much the parameters that vary matter by the forecast, from `_LEAST_MATTER` to 1 for the most.

    Coordinates are scaled by it: variants that are forecast alike, whatever a parameter is, are near to each
    other, so that what is measured of one is known of the other.
    """
    known = np.isfinite(log_time)
    found = []
    for number, places in enumerate(variants.rows.T):
        if len(np.unique(places)) < 2:
            continue
        others = np.delete(variants.rows, number, axis=1)[known]
        _, group = np.unique(others, axis=0, return_inverse=True)
        count = np.bincount(group)
        mean = np.bincount(group, log_time[known]) / count
        squares = np.bincount(group, (log_time[known] - mean[group]) ** 2)[count > 1]
        found.append(squares.sum() / max(count[count > 1].sum(), 1))
    # Roots of deviations, as a forecast is not sure of what matters.
    roots = np.array(found) ** 0.25
    most = roots.max(initial=0.0)
    scales: Reals = np.clip(roots / most if most > 0 else np.ones(len(roots)), _LEAST_MATTER, 1.0)
    return scales


def _fastest(log_time: Reals, count: int, without: set[int]) -> list[int]:
    """Variants that are fast on one device or another, as many of each, that are not among others."""
    orders = np.argsort(log_time, axis=0, kind="stable")
    chosen: dict[int, None] = {}
    for row in orders.ravel().tolist():
        if len(chosen) >= count:
            break
        if row not in without:
            chosen[row] = None
    return list(chosen)


def _too_large(profiles: Sequence[Profile], ran: Flags, devices: Sequence[str | Device]) -> Flags:
    """Which variants need more local memory than a device gives to a work-group, ``(n, d)``."""
    # What was not counted but said must be so with room to spare.
    needed = np.array([_local_bytes(each) for each in profiles]) / np.where(ran, 1.0, _ROOM)
    sizes = [
        math.inf if isinstance(each, str) else each.numbers.get("local_memory_bytes", math.inf)
        for each in devices
    ]
    large: Flags = needed[:, None] > np.array(sizes)
    return large


def _local_bytes(profile: Profile) -> float:
    return float(sum((profile.launch.get("geometry", {}).get("local_bytes") or {}).values()))


def _geometry(profiles: Sequence[Profile]) -> Reals:
    """Sizes of a work-group, of what it holds, of the code and of its longest path, as coordinates."""
    found = []
    for each in profiles:
        geometry = each.launch.get("geometry", {})
        sizes = [geometry.get(name, 0) for name in ("group_items", "registers", "kept_values", "code")]
        path = each.launch.get("path", {}).get("instructions", 0)
        found.append([*sizes, _local_bytes(each), path])
    logs = np.log2(1 + np.array(found, dtype=np.float64))
    spreads = logs.std(axis=0)
    coordinates: Reals = (logs - logs.mean(axis=0)) / np.where(spreads > 0, spreads, 1.0)
    return coordinates


def model_for(model: str | Path | None, devices: Sequence[str | Device]) -> tuple[TermsModel, list[Device]]:
    """The model to ask, and the devices as it describes them, or the catalogue.

    Where no model is named, one that was calibrated on a device that is named is asked.
    """
    if model is None:
        keys = {each if isinstance(each, str) else each.key for each in devices}
        first = models_for_devices("time", keys)[0]
        model = first.folder if first.calibrated else "launch-times"
    chosen = load_model(model, "time")
    known = {each.key: each for each in chosen.devices}
    described = [
        each if isinstance(each, Device) else known.get(each) or device_named(each) for each in devices
    ]
    return chosen, [known.get(each.key, each) for each in described]
