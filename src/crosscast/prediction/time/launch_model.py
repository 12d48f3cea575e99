"""The trained model of launch times: its forecasts, with warnings and expected numbers of data sheets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Arrays, Reals
from crosscast.device import Device
from crosscast.devices.architectures import NO_DOUBLES
from crosscast.devices.catalogue import Filled, device_named, filled
from crosscast.devices.device_files import NUMBERS
from crosscast.errors import InputError
from crosscast.prediction.intervals import CONFORMAL
from crosscast.prediction.store import StoredModel
from crosscast.prediction.time import ProfileBatch
from crosscast.prediction.time.card import (
    Probes,
    Suggestion,
    TimeCard,
    TrainedTimes,
    check_count,
    doubt_of_probe,
)
from crosscast.prediction.time.counts import work_of
from crosscast.prediction.time.forecast import Assumed, NearestLaunch, TimeForecast
from crosscast.prediction.time.launch_times import (
    DeviceErrors,
    LaunchEstimates,
    LaunchModels,
    LaunchTimes,
    OnDevices,
    in_common,
    limits,
    shared_part,
    side_of,
)
from crosscast.prediction.time.work import Work
from crosscast.prediction.trained import format_names, of_counts
from crosscast.profile import Profile, compiler_options
from crosscast.units import format_quantity

_WORTH = 0.005
"""Least share of the variance of a number that a warning recommends to look up."""

_WIDE = 0.98
"""Level of the interval outside of which a measured time is doubted."""

_NEEDED = {"compute_units", "clock_hz", "bandwidth_bytes_per_s", "peak_flop_per_s"}
"""Numbers whose lack is always warned of."""

MODEL = "terms"
"""Name of the model on its card."""


_MOST_DEVICES = 4
_METRICS_ALONE = "its profile has no counts by sub-groups, so that times are less sure: characterize it again"
_NOT_UNROLLED = (
    "it was profiled at -Oz, and drivers unroll loops of constant length: predict its launch file or trace, "
    "or characterize it with --option -O3"
)


@dataclass(frozen=True, eq=False)
class TrainedLaunchTimes(TrainedTimes[LaunchModels]):
    """A model of the times of kernels on devices, from terms with units.

    A profile without counts by sub-groups, as of the published tool, is predicted from its metrics alone,
    with wider intervals.
    """

    intervals = CONFORMAL

    @classmethod
    def read(cls, card: TimeCard, stored: StoredModel) -> LaunchModels:
        """The fitted predictor."""
        return LaunchModels.from_state(stored.arrays, str(stored.path))

    def arrays(self) -> Arrays:
        """The arrays of the predictor."""
        return self.predictor.state()

    def _predict(
        self, batch: ProfileBatch, devices: Sequence[Device], probes: Probes | None, level: float
    ) -> TimeForecast:
        if not batch.launches:
            raise InputError.of(where="profiles", expected="profiles of launches", found="metrics alone")
        # Probes may be of devices that are not requested.
        of_probes = zip(probes.devices, probes.seconds.T, strict=True) if probes is not None else ()
        probed = {device: seconds for device, seconds in of_probes if np.isfinite(seconds).any()}
        on = self._on(tuple({each.key: each for each in (*devices, *probed)}.values() if probed else devices))
        counted = [
            all(launch.launch.get("sub_groups") is not None for launch in launches)
            for launches in batch.launches
        ]
        times = np.full((len(batch), len(on.keys)), np.nan)
        for device, seconds in probed.items():
            times[:, on.keys.index(device.key)] = seconds
        is_measured = np.isfinite(times)
        work = work_of([launch for launches in batch.launches for launch in launches])
        estimates, assumed, errors = self._with_doubts(batch, work, counted, on, times)
        before_probes = np.log(estimates.seconds)
        log_time, deviation = (
            errors.conditioned(before_probes) if probed else (before_probes, errors.deviation)
        )
        least = np.where(is_measured, 0.0, estimates.least)
        most = np.where(is_measured, np.inf, estimates.most)
        doubts = {kind: self.predictor.of(kind).doubt for kind in set(counted)}
        level = min(level, *(each.most_level for each in doubts.values()))
        factors = {kind: each.factor(level) for kind, each in doubts.items()}
        factor = np.array([[factors[each]] for each in counted])
        middle, low, high = limits(np.exp(log_time), deviation, factor, least, most)
        keys = tuple(each.key for each in devices)
        of_chosen = tuple(each for each in assumed if each.device in keys)
        common = list(_sentences(of_chosen))
        if probed and len(batch) == 1:
            common += self._doubts_of(times[0], errors, before_probes[0], counted[0])
        columns = slice(None) if keys == on.keys else [on.keys.index(key) for key in keys]
        return TimeForecast(
            batch,
            keys,
            middle[:, columns],
            low[:, columns],
            high[:, columns],
            level,
            is_measured[:, columns],
            warnings=tuple(
                (
                    *_of_profiles(of_kernel, is_counted=is_counted),
                    *_of_doubles(of_kernel, devices),
                    *common,
                    *of_counts(of_kernel),
                )
                for is_counted, of_kernel in zip(counted, batch.launches, strict=True)
            ),
            terms=estimates.shares[:, columns],
            nearest=tuple(
                NearestLaunch(self.predictor.of(kind).correction.names[number], round(similarity, 4))
                for kind, number, similarity in zip(
                    counted, estimates.nearest.tolist(), estimates.similarity.tolist(), strict=True
                )
            ),
            deviation=deviation[:, columns],
            errors=errors,
            assumed=of_chosen,
        )

    def _named_probes(self, names: Iterable[str], devices: Sequence[Device]) -> Mapping[str, Device]:
        """All devices may have measured times: those that the model knows, that are asked for, or by name."""
        known = {each.key: each for each in (*self.devices, *devices)}
        for name in names:
            try:
                known[name] = known.get(name) or device_named(name)
            except InputError as error:
                near = (error.found or "").removeprefix(repr(name))
                expected = f"{error.expected}{near}"
                raise InputError.of(where="probe", expected=expected, found=repr(name)) from error
        return known

    @cached_property
    def _on(self) -> Callable[[tuple[Device, ...]], _Completed]:
        """Function that completes, and remembers, devices."""
        return lru_cache(64)(partial(_completed, self.predictor.counted))

    def _with_doubts(
        self, batch: ProfileBatch, work: Work, counted: Sequence[bool], on: _Completed, times: Reals
    ) -> tuple[LaunchEstimates, list[Assumed], DeviceErrors]:
        """Estimates without measured times, and their errors, of which those of `times` ``(n, d)`` are known.

        Where a data sheet lacks numbers, those of siblings stand, and their doubt adds to that of the times.
        """
        of_models = {kind: self.predictor.of(kind).on(on.devices) for kind in set(counted)}
        of_all = self._of_kernels(batch, work, counted, of_models)
        queried = slice(len(on.keys))
        *of_devices, nearest, similarity = of_all
        of_queried = [each[:, queried] for each in of_devices]
        estimates = LaunchEstimates._make([*of_queried, nearest, similarity])
        assumed = []
        if on.lacking:
            # Of log times, by their origin: the device, or a number that it lacks.
            shift = np.log(of_all.seconds[:, len(on.keys) :] / estimates.seconds[:, on.origin])
            variance = np.concatenate([estimates.deviation, shift], axis=1) ** 2
            means = variance.mean(axis=0).tolist()
            estimates.deviation[:] = np.sqrt(variance @ on.origins)
            for column, sheet, variants in on.lacking:
                assumed.append(_assumed(sheet, means[column], means[variants]))
                estimates.least[:, column] = of_all.least[:, variants.stop]
        deviations = np.array([of_models[kind].deviations[queried] for kind in counted])
        shared = shared_part(estimates.shares, deviations)
        known = np.log(times) - np.log(estimates.seconds)
        return estimates, assumed, DeviceErrors(on.keys, estimates.deviation, shared, on.together, known)

    def _of_kernels(
        self, batch: ProfileBatch, work: Work, counted: Sequence[bool], on: Mapping[bool, OnDevices]
    ) -> LaunchEstimates:
        """Estimates of each kernel: means over its launches, and what is most similar to the middle one."""
        # A kernel whose launches were not all counted is predicted from metrics alone.
        if len(on) == 1:
            estimates = self.predictor.of(counted[0]).predict(work, on[counted[0]])
        else:
            of_launches = np.repeat(counted, [len(each) for each in batch.launches])
            rows = [np.flatnonzero(of_launches == kind) for kind in (False, True)]
            parts = [
                self.predictor.of(kind).predict(work.take(each), on[kind])
                for kind, each in zip((False, True), rows, strict=True)
            ]
            order = np.argsort(np.concatenate(rows))
            estimates = LaunchEstimates(*(np.concatenate(each)[order] for each in zip(*parts, strict=True)))
        mean, seconds = batch.mean_of_launches, estimates.seconds
        centre = mean(seconds)
        shares = mean(estimates.shares * seconds[..., None]) / centre[..., None]
        deviation = mean(estimates.deviation * seconds) / centre
        counts = [len(each) for each in batch.launches]
        middle = [end - (count + 1) // 2 for end, count in zip(accumulate(counts), counts, strict=True)]
        of_middle = estimates.nearest[middle], estimates.similarity[middle]
        return LaunchEstimates(
            centre, shares, deviation, mean(estimates.least), mean(estimates.most), *of_middle
        )

    def _doubts_of(self, times: Reals, errors: DeviceErrors, log_time: Reals, counted: bool) -> Iterator[str]:
        """Warn of measured times of a kernel far from its forecasts ``(d,)`` without them."""
        half = self.predictor.of(counted).doubt.factor(_WIDE) * errors.deviation[0]
        for column in np.flatnonzero(np.isfinite(times)).tolist():
            key, seconds = errors.devices[column], float(times[column])
            if doubt := doubt_of_probe(key, seconds, log_time[column], half[column], _WIDE):
                yield doubt

    def suggest_probes(
        self, count: int, *, among: Sequence[str] | None = None, measured: Sequence[str] = ()
    ) -> Suggestion:
        """Name devices to measure next, one after another: each leaves the least error on the others.

        Errors are those of a kernel whose times are not of memory.
        """
        keys = [device.key for device in self.devices]
        free = [key for key in keys if (among is None or key in among) and key not in measured]
        check_count(count, len(free))
        sides = [side_of(device) for device in self.devices]
        deviation = np.median(self.predictor.counted.doubt.deviations, axis=1)[None, sides]
        together = self.predictor.counted.together[in_common(self.devices)]

        def error(known: Sequence[str]) -> float:
            is_known = np.isin(keys, known)
            zero = np.where(is_known, 0.0, np.nan)[None]
            errors = DeviceErrors(tuple(keys), deviation, np.ones(deviation.shape), together, zero)
            _, left = errors.conditioned(np.zeros(deviation.shape))
            others = left[0, np.isin(keys, free) & ~is_known]
            return float(np.expm1(others * np.sqrt(2 / np.pi)).mean()) if len(others) else 0.0

        chosen: list[str] = []
        while len(chosen) < count:
            rest = [key for key in free if key not in chosen]
            chosen.append(min(rest, key=lambda key: error([*measured, *chosen, key])))
        return Suggestion(tuple(chosen), error([*measured, *chosen]), error(measured))


def _of_profiles(profiles: Sequence[Profile], *, is_counted: bool) -> Iterator[str]:
    """Warn of profiles that lack counts, or whose loops are not as drivers compile them."""
    if not is_counted:
        yield _METRICS_ALONE
    elif any(
        "indexing" in each.launch.get("instructions", {})
        and "branches" in each.launch["instructions"]["indexing"]
        and each.program.get("form") == "opencl-c"
        and not any(option.startswith("-O") for option in compiler_options(each.program))
        for each in profiles
    ):
        yield _NOT_UNROLLED


def _of_doubles(profiles: Sequence[Profile], devices: Sequence[Device]) -> Iterator[str]:
    """Warn of double precision on devices without it."""
    has_doubles = any((each.launch.get("instructions") or {}).get("fp64") for each in profiles)
    if has_doubles and (without := [device.key for device in devices if device.series in NO_DOUBLES]):
        yield (
            f"{format_names(without, _MOST_DEVICES)} {'has' if len(without) == 1 else 'have'} no double "
            "precision: runtimes emulate it, or refuse the kernel"
        )


def _assumed(sheet: Filled, usual: float, variances: Sequence[float]) -> Assumed:
    """The numbers of siblings with their shares of the variance, of which one is that of any device."""
    total = usual + sum(variances)
    by_share = sorted(zip(sheet.taken, variances, strict=True), key=lambda each: -each[1])
    shares = {name: round(variance / total, 4) for name, variance in by_share}
    return Assumed(sheet.device.key, sheet.taken, shares)


class _Completed(NamedTuple):
    """``d`` devices with the numbers of siblings where their data sheets lack some."""

    keys: tuple[str, ...]
    devices: tuple[Device, ...]  # These, and then the variants of all that lack any number
    # Position and sheet of these, and positions of its variants but the last
    lacking: list[tuple[int, Filled, slice]]
    origin: list[int]  # Positions of the devices of the variants
    origins: Reals  # `(all, d)`, 1 where the variance of a device or variant is one of the device, else 0
    together: Reals  # `(d, d)` Correlation of the shared parts of errors


def _completed(model: LaunchTimes, devices: tuple[Device, ...]) -> _Completed:
    """Complete those of the devices that were not measured."""
    complete, lacking, origin = list(devices), [], list[int]()
    for column, device in enumerate(devices):
        if not model.measured(device) and (sheet := filled(device)).taken:
            complete[column] = sheet.device
            variants = _variants(sheet)
            lacking.append((column, sheet, slice(len(complete), len(complete) + len(variants) - 1)))
            complete += variants
            origin += [column] * len(variants)
    origins = np.eye(len(complete), len(devices))
    for column, _, of_device in lacking:
        origins[of_device, column] = 1.0
    together = model.together[in_common(complete[: len(devices)])]
    keys = tuple(each.key for each in devices)
    return _Completed(keys, tuple(complete), lacking, origin, origins, together)


def _variants(sheet: Filled) -> list[Device]:
    """The device with each number from siblings one deviation higher, and last with all two higher.

    The last has the physical lower limits of times, if all these numbers are better than expected.
    """

    def higher(deviations: float, names: Iterable[str]) -> Device:
        numbers = {
            name: sheet.taken[name].value * float(np.exp(deviations * sheet.taken[name].deviation))
            for name in names
        }
        return replace(sheet.device, numbers={**sheet.device.numbers, **numbers})

    return [*(higher(1.0, [name]) for name in sheet.taken), higher(2.0, sheet.taken)]


def _sentences(assumed: Sequence[Assumed]) -> tuple[str, ...]:
    """Warnings of devices that lack relevant numbers: one sentence each, or one for all of several."""
    relevant = [(each, text) for each in assumed if (text := _sentence(each))]
    if len(relevant) < 2:
        return tuple(text for _, text in relevant)
    gains = [f"{each.most} of {each.device}" for each, _ in relevant if each.shares[each.most] >= _WORTH]
    most = f"; forecasts would gain most from {format_names(gains, _MOST_DEVICES)}" if gains else ""
    which = format_names([each.device for each, _ in relevant], _MOST_DEVICES)
    return (f"data sheets of {which} lack numbers, for which siblings stand{most}",)


def _sentence(assumed: Assumed) -> str:
    """Warning of the numbers that a data sheet lacks, and which to look up; empty if none is relevant."""
    share = assumed.shares[assumed.most]
    if share < _WORTH and not assumed.numbers.keys() & _NEEDED:
        return ""
    taken = ", ".join(
        f"{name} ({format_quantity(each.value, NUMBERS[name].unit.replace('count', '')).strip()}, as "
        f"{each.count} of its {each.of} have)"
        for name, each in assumed.numbers.items()
    )
    gains = (
        f"the forecast would gain most from {assumed.most}, {100 * share:.0f} % of its doubt"
        if share >= _WORTH
        else "none of them matters to the forecast, which would gain from times measured on it"
    )
    return f"the data sheet of {assumed.device} lacks {taken}, for which siblings stand; {gains}"
