"""The trained model of launch times: its forecasts, with warnings and expected numbers of data sheets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Arrays, Integers, Reals
from crosscast.device import Device
from crosscast.devices.architectures import NO_DOUBLES, sheets_of
from crosscast.devices.catalogue import Filled, device_named, filled
from crosscast.devices.device_files import NUMBERS
from crosscast.errors import InputError
from crosscast.prediction.intervals import CONFORMAL
from crosscast.prediction.store import StoredModel
from crosscast.prediction.time.card import Probes, Suggestion, TimeCard, TrainedTimes, doubt_of_probe
from crosscast.prediction.time.data import ProfileBatch
from crosscast.prediction.time.forecast import Assumed, NearestLaunch, TimeForecast
from crosscast.prediction.time.launch_times import (
    DeviceErrors,
    LaunchModels,
    bounds,
    in_common,
    limits,
    side_of,
)
from crosscast.prediction.time.terms import TERMS
from crosscast.prediction.time.work import Work, traits_of, work_of
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
class _Launches:
    """The launches of ``n`` kernels to predict, with their work, which is the same on all devices."""

    batch: ProfileBatch
    work: Work  # Of all launches, kernel by kernel
    counted: Sequence[bool]  # Whether each kernel's profiles have counts by sub-groups

    @property
    def middle(self) -> list[int]:
        """Index of the middle launch of each kernel."""
        counts = [len(launches) for launches in self.batch.launches]
        return [end - count + count // 2 for end, count in zip(accumulate(counts), counts, strict=True)]


class _Estimates(NamedTuple):
    """Means over the launches of ``n`` kernels on ``d`` devices, ``(n, d)``."""

    seconds: Reals
    shares: Reals  # `(n, d, len(TERMS))` Of the terms
    deviation: Reals
    shared: Reals  # Part of the deviation that devices share
    least: Reals  # Physical limits
    most: Reals


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
        probes = probes or Probes((), np.zeros((len(batch), 0)))
        probed = np.flatnonzero(np.isfinite(probes.seconds).any(axis=0)).tolist()
        by_key = {each.key: each for each in (*devices, *(probes.devices[index] for index in probed))}
        all_keys, keys = list(by_key), [each.key for each in devices]
        counted = [
            all(launch.launch.get("sub_groups") is not None for launch in launches)
            for launches in batch.launches
        ]
        work = work_of([launch for launches in batch.launches for launch in launches])
        launches = _Launches(batch, work, counted)
        times = np.full((len(batch), len(by_key)), np.nan)
        for index in probed:
            times[:, all_keys.index(probes.devices[index].key)] = probes.seconds[:, index]
        is_measured = np.isfinite(times)
        estimates, assumed, errors = self._with_doubts(launches, list(by_key.values()), times)
        before_probes = np.log(estimates.seconds)
        log_time, deviation = errors.conditioned(before_probes)
        least = np.where(is_measured, 0.0, estimates.least)
        most = np.where(is_measured, np.inf, estimates.most)
        doubts = [self.predictor.of(each).doubt for each in counted]
        level = min(level, *(each.most_level for each in doubts))
        factor = np.array([[each.factor(level)] for each in doubts])
        middle, low, high = limits(np.exp(log_time), deviation, factor, least, most)
        of_chosen = tuple(each for each in assumed if each.device in keys)
        common = list(_sentences(of_chosen))
        if probed and len(batch) == 1:
            common += self._doubts_of(times[0], errors, before_probes[0], counted[0])
        columns = [all_keys.index(key) for key in keys]
        return TimeForecast(
            batch,
            tuple(keys),
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
            nearest=self._nearest(launches),
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

    def _with_doubts(
        self, launches: _Launches, devices: Sequence[Device], times: Reals
    ) -> tuple[_Estimates, list[Assumed], DeviceErrors]:
        """Estimates without measured times, and their errors, of which those of `times` ``(n, d)`` are known.

        Where a data sheet lacks numbers, those of siblings stand, and their doubt adds to that of the times.
        """
        measured = self.predictor.counted.measured
        complete = _completed(tuple((each, measured(each)) for each in devices))
        variants = chain.from_iterable(each for _, _, each in complete.lacking)
        of_all = self._of_launches(launches, [*complete.devices, *variants])
        keys = [each.key for each in devices]
        estimates = _Estimates(*(each[:, : len(keys)] for each in of_all))
        assumed, end = [], len(keys)
        for column, sheet, of_device in complete.lacking:
            start, end = end, end + len(of_device)
            shift = np.log(of_all.seconds[:, start : end - 1] / estimates.seconds[:, [column]]).T
            estimates.least[:, column] = of_all.least[:, end - 1]
            deviation = estimates.deviation[:, column]
            assumed.append(_assumed(sheet, shift, deviation))
            estimates.deviation[:, column] = np.sqrt(deviation**2 + (shift**2).sum(axis=0))
        together = self.predictor.counted.together[complete.common]
        known = np.log(times) - np.log(estimates.seconds)
        errors = DeviceErrors(tuple(keys), estimates.deviation, estimates.shared, together, known)
        return estimates, assumed, errors

    def _doubts_of(self, times: Reals, errors: DeviceErrors, log_time: Reals, counted: bool) -> Iterator[str]:
        """Warn of measured times of a kernel far from its forecasts ``(d,)`` without them."""
        half = self.predictor.of(counted).doubt.factor(_WIDE) * errors.deviation[0]
        for column in np.flatnonzero(np.isfinite(times)).tolist():
            seconds = float(times[column])
            low, high = (float(np.exp(log_time + side * half)[column]) for side in (-1, 1))
            if (doubt := doubt_of_probe(errors.devices[column], seconds, low, high, _WIDE)) is not None:
                yield doubt

    def _nearest(self, launches: _Launches) -> tuple[NearestLaunch, ...]:
        """The training launch most similar to the middle launch of each kernel."""
        nearest = []
        traits = traits_of(launches.work.take(launches.middle))
        for row, counted in enumerate(launches.counted):
            (name,), (distance,) = self.predictor.of(counted).correction.nearest(traits[row : row + 1])
            nearest.append(NearestLaunch(name, round(float(np.exp(-distance)), 4)))
        return tuple(nearest)

    def suggest_probes(
        self, count: int, *, among: Sequence[str] | None = None, measured: Sequence[str] = ()
    ) -> Suggestion:
        """Name devices to measure next, one after another: each leaves the least error on the others.

        Errors are those of a kernel whose times are not of memory.
        """
        keys = [device.key for device in self.devices]
        free = [key for key in keys if (among is None or key in among) and key not in measured]
        if not 1 <= count <= len(free):
            expected = f"from 1 to {len(free)} devices"
            raise InputError.of(where="suggest_probes", expected=expected, found=count)
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

    def _of_launches(self, launches: _Launches, devices: Sequence[Device]) -> _Estimates:
        """Estimates of each kernel."""
        batch, work = launches.batch, launches.work
        # A kernel whose launches were not all counted is predicted from metrics alone.
        counted = np.repeat(launches.counted, [len(each) for each in batch.launches])
        seconds, deviation = np.zeros((2, len(work), len(devices)))
        shares = np.zeros((len(work), len(devices), len(TERMS)))
        for kind in np.unique(counted).tolist():
            rows = counted == kind
            model = self.predictor.of(kind)
            seconds[rows], shares[rows], deviation[rows] = model.predict(work.take(rows), devices)
        least, most = bounds(work, sheets_of(devices))
        mean = batch.mean_of_launches
        centre = mean(seconds)
        parts = mean(shares * seconds[..., None]) / centre[..., None]
        shared = np.zeros(centre.shape)
        for kind in set(launches.counted):
            kernels = np.array(launches.counted) == kind
            shared[kernels] = self.predictor.of(kind).shared(parts[kernels], devices)
        return _Estimates(centre, parts, mean(deviation * seconds) / centre, shared, mean(least), mean(most))


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
    without = [device.key for device in devices if device.series in NO_DOUBLES]
    if without and any((each.launch.get("instructions") or {}).get("fp64") for each in profiles):
        yield (
            f"{format_names(without, _MOST_DEVICES)} {'has' if len(without) == 1 else 'have'} no double "
            "precision: runtimes emulate it, or refuse the kernel"
        )


def _assumed(sheet: Filled, shifts: Reals, deviation: Reals) -> Assumed:
    """The numbers of siblings with their shares of the variance, from the shift of log times by each."""
    variance = (shifts**2).mean(axis=1)
    shares = variance / float(variance.sum() + (deviation**2).mean())
    order = np.argsort(-shares, kind="stable").tolist()
    names = list(sheet.taken)
    return Assumed(sheet.device.key, sheet.taken, {names[k]: round(float(shares[k]), 4) for k in order})


class _Completed(NamedTuple):
    """``d`` devices with the numbers of siblings where their data sheets lack some."""

    devices: list[Device]
    lacking: list[tuple[int, Filled, list[Device]]]  # Position, sheet and variants of those that lack any
    common: Integers  # ``(d, d)``, see `in_common`


@lru_cache(64)
def _completed(devices: tuple[tuple[Device, bool], ...]) -> _Completed:
    """Complete those of the devices that were not measured."""
    sheets = [None if is_measured else filled(device) for device, is_measured in devices]
    complete = [
        device if sheet is None else sheet.device for sheet, (device, _) in zip(sheets, devices, strict=True)
    ]
    lacking = [(column, each, _variants(each)) for column, each in enumerate(sheets) if each and each.taken]
    return _Completed(complete, lacking, in_common(complete))


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
