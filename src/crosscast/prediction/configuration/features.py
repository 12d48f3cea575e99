"""Features of a kernel's sample runs; variables of the configurations, and limits of times by physics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.configuration import Configuration, Setting
from crosscast.errors import InputError
from crosscast.prediction.configuration import (
    ConfigurationSpace,
    Observed,
    Surfaces,
    Values,
    reference_samples,
    sampled,
    values_at,
)
from crosscast.prediction.serialization import Array, Stored

_TOTALS = ("instructions", "instructions_executed", "inst_executed")
"""Counters by which counts are divided: the first that is present."""

_RATES = ("throughput", "_per_", "bandwidth")
"""Parts of the names of counters that are rates already: these are not divided."""

_LARGEST_RATIO = 100.0
"""A counter that is never above is a ratio or a percentage, and is not transformed."""

_NAME = re.compile(r"(?P<source>(time|power|domain:.+|counter:.+))@(?P<sample>[0-9]{1,6})", re.DOTALL)
_KINDS = ("plain", "count", "share")
"""Sources that are no counters; counts that enter as logarithms; shares of the total."""

_LIMIT = 3.0
_LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class SampleColumns:
    """Columns of ``q`` sources at ``s`` samples."""

    sources: tuple[str, ...]  # (q,) `time` first, then `power`, `domain:name` and `counter:name`
    counts: frozenset[str]  # Counters that count events, or rates of events
    total: str  # Counter by which events are divided, which must be among the sources; empty for none

    def matrix(self, runs: Values) -> Reals:
        """Logarithms of powers and relative times, and counters, ``(..., q, s)``; NaN where not known."""
        raw = np.empty((*runs.time_s.shape[:-1], len(self.sources), runs.time_s.shape[-1]))
        for row, source in enumerate(self.sources):
            kind, _, name = source.partition(":")
            columns = {"time": runs.time_s, "power": runs.power_w}
            group = runs.domains if kind == "domain" else runs.counters
            raw[..., row, :] = columns[kind] if kind in columns else group.get(name, np.nan)
        transformed, plain, counted, share = raw.copy(), *(self.kinds == kind for kind in _KINDS)
        with np.errstate(divide="ignore", invalid="ignore"):
            transformed[..., plain, :] = np.log(raw[..., plain, :])
            transformed[..., 0, :] -= transformed[..., 0, :1]
            transformed[..., counted, :] = np.log1p(raw[..., counted, :])
            if self.total:
                totals = raw[..., self.sources.index(f"counter:{self.total}"), None, :]
                transformed[..., share, :] = raw[..., share, :] / totals
        transformed[~np.isfinite(transformed)] = np.nan
        return transformed

    @cached_property
    def kinds(self) -> npt.NDArray[np.str_]:
        """Transformation of each source, ``(q,)``: one of `_KINDS`, or `ratio` for none."""
        kinds = []
        for kind, _, name in (source.partition(":") for source in self.sources):
            is_rate = self.total in ("", name) or any(part in name for part in _RATES)
            counter = "ratio" if name not in self.counts else "count" if is_rate else "share"
            kinds.append(counter if kind == "counter" else "plain")
        return np.array(kinds)


def counts_in(counters: Mapping[str, Reals]) -> frozenset[str]:
    """Names of the counters whose values exceed those of a ratio or a percentage."""
    known = {name: values[np.isfinite(values)] for name, values in counters.items()}
    return frozenset(
        name for name, each in known.items() if each.size and each.min() >= 0 and each.max() > _LARGEST_RATIO
    )


class _Parts(NamedTuple):
    """Parsed names of ``f`` features."""

    columns: SampleColumns
    samples: Integers  # (f,) The sample of each
    sources: Integers  # (f,) Index of its source in the columns
    weights: Reals  # (f,) Weight in distances


@dataclass(frozen=True)
class SampleFeatures(Stored):
    """Features of a kernel: ``f`` of its runs at ``s`` sample configurations.

    Logarithms of powers and of times relative to the first sample; counters, of which counts are divided by
    the instructions or enter as logarithms. Those that no training kernel has, or are constant, are dropped.
    """

    names: Annotated[tuple[str, ...], Array("f")]  # `source@sample`, with the index of the sample
    centre: Annotated[Reals, Array("f")]  # Mean over the training kernels, which replaces missing values
    scale: Annotated[Reals, Array("f", above=0)]  # Standard deviation over the training kernels
    counts: tuple[str, ...]  # Counters of events, which are divided or enter as logarithms
    total: str  # Counter by which they are divided; empty for none

    @classmethod
    def of(cls, surfaces: Surfaces, samples: Sequence[int]) -> tuple[SampleFeatures, Reals]:
        """Determine the features; return them with the training kernels' values ``(n, f)``."""
        runs = values_at(surfaces, (slice(None), np.array(samples, np.int64)))
        # A domain that equals the total is redundant.
        domains = [name for name, each in sorted(runs.domains.items()) if not np.allclose(each, runs.power_w)]
        counters = [f"counter:{name}" for name in sorted(runs.counters)]
        sources = ("time", "power", *(f"domain:{name}" for name in domains), *counters)
        total = next((name for name in _TOTALS if name in runs.counters), "")
        columns = SampleColumns(sources, counts_in(runs.counters), total)
        matrix = columns.matrix(runs).reshape(len(runs.time_s), -1)
        names = [f"{source}@{sample}" for source in sources for sample in range(len(samples))]
        used = [column for column in range(len(names)) if _varies(matrix[:, column])]
        matrix = matrix[:, used]
        centre = np.nanmean(matrix, axis=0) if used else np.empty(0)
        scale = np.nanstd(matrix, axis=0) + _LEAST_SCALE if used else np.empty(0)
        used_names = tuple(names[column] for column in used)
        features = cls(used_names, centre, scale, tuple(sorted(columns.counts)), total)
        return features, np.where(np.isnan(matrix), centre, matrix)

    def check(self) -> None:
        """Raise InputError unless all names are those of features."""
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise InputError.of(field="feature names", expected="kind:name@sample", found=repr(name))

    def check_samples(self, count: int) -> None:
        """Raise InputError for features of samples beyond `count`."""
        for name, sample in zip(self.names, self._parts.samples, strict=True):
            if sample >= count:
                expected = f"features of {count} samples"
                raise InputError.of(where="model", field="feature names", expected=expected, found=repr(name))

    def values(self, observed: Observed, indices: Sequence[int]) -> Reals:
        """Features ``(f,)`` of one kernel; missing ones are the mean of the training kernels."""
        columns, samples, sources, _ = self._parts
        values = columns.matrix(values_at(observed, np.array(indices)))[sources, samples]
        return np.where(np.isnan(values), self.centre, values)

    @cached_property
    def _parts(self) -> _Parts:
        parts = [name.rpartition("@") for name in self.names]
        total = [f"counter:{self.total}"] if self.total else []
        sources = tuple(dict.fromkeys(["time", *(source for source, _, _ in parts), *total]))
        samples = np.array([int(sample) for _, _, sample in parts], np.int64)
        source_indices = np.array([sources.index(source) for source, _, _ in parts], np.int64)
        counters = np.array([name.startswith("counter:") for name in self.names], np.bool_)
        others = max(int((~counters).sum()), 1)
        weights = np.where(counters, np.sqrt(others / max(int(counters.sum()), 1)), 1.0)
        return _Parts(
            SampleColumns(sources, frozenset(self.counts), self.total), samples, source_indices, weights
        )

    def standardized(self, values: Reals) -> Reals:
        """Values with mean 0 and deviation 1, limited to three; all counters weigh as much as all others."""
        limited = np.clip((values - self.centre) / self.scale, -_LIMIT, _LIMIT)
        return np.asarray(limited * self._parts.weights)

    def far(self, observed: Observed, indices: Sequence[int]) -> list[tuple[str, float, float, float]]:
        """Features of one kernel beyond three deviations; see `beyond`."""
        return self.beyond(self.values(observed, indices))

    def beyond(self, values: Reals) -> list[tuple[str, float, float, float]]:
        """Features beyond three deviations off: readable names and values, and both limits."""
        ends = (self.centre - _LIMIT * self.scale, self.centre + _LIMIT * self.scale)
        columns = [self.readable(each).tolist() for each in (values, *ends)]
        far = (values < ends[0]) | (values > ends[1])
        rows = zip(self.readable_names, *columns, far.tolist(), strict=True)
        return [(name, value, low, high) for name, value, low, high, is_far in rows if is_far]

    @cached_property
    def readable_names(self) -> tuple[str, ...]:
        """Names ``(f,)`` of the features of `readable`, with samples counted from 1."""
        columns, samples, source_indices, _ = self._parts
        names = []
        for source, sample in zip(source_indices.tolist(), samples.tolist(), strict=True):
            kind, _, name = columns.sources[source].partition(":")
            name = f"{name} / {self.total}" if columns.kinds[source] == "share" else name
            texts = {"time": "time_ratio", "power": "power_w", "domain": f"{name}_power_w", "counter": name}
            names.append(f"{texts[kind]} at sample {sample + 1}")
        return tuple(names)

    def readable(self, values: Reals) -> Reals:
        """Values ``(..., f)`` without logarithms: in watts, as ratios, as counts."""
        columns, _, source_indices, _ = self._parts
        # Logarithms are of powers and times, and of counts plus one.
        counted = columns.kinds[source_indices] == "count"
        logarithms = (columns.kinds[source_indices] == "plain") | counted
        original: Reals = np.where(logarithms, np.exp(np.where(logarithms, values, 0.0)), values) - counted
        return original


def _varies(values: Reals) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size) and bool(np.ptp(known) > _LEAST_SCALE * (1 + np.abs(known).max()))


class TrainingRuns(NamedTuple):
    """Training data of every model: the ``n`` kernels that ran at all samples."""

    surfaces: Surfaces  # Their times and powers at ``c`` configurations
    features: SampleFeatures
    values: Reals  # (n, f) the features of their sample runs
    scaled_from: Integers  # (c,) index of the sample configuration from which each configuration is scaled
    groups: Integers  # (n,) a number for each application

    @classmethod
    def of(cls, surfaces: Surfaces, samples: Sequence[int]) -> TrainingRuns:
        """The training kernels of a machine."""
        kernels = sampled(surfaces, samples)
        _, groups = np.unique([each.application for each in kernels.kernels], return_inverse=True)
        scaled_from = np.array(samples)[reference_samples(surfaces.space, samples)]
        features = SampleFeatures.of(kernels, samples)
        return cls(kernels, *features, scaled_from, groups.astype(np.int64))


@dataclass(frozen=True)
class Design:
    """``p`` variables of ``c`` configurations, and a constant for each of ``d`` devices."""

    names: tuple[str, ...]  # (p,) `device: variable`
    # (c, p) A variable is 0 at the configurations of other devices. Each is divided by its largest absolute
    # value, which does not change a linear model, and makes it well conditioned
    matrix: Reals
    devices: tuple[str, ...]  # (d,)
    on_device: Reals  # (c, d) 1 for the device of a configuration

    @property
    def with_constants(self) -> Reals:
        """The variables, and the devices' constants, ``(c, p + d)``."""
        return np.hstack([self.matrix, self.on_device])


def design_of(space: ConfigurationSpace) -> Design:
    """Variables of the configurations of each device: numbers that vary, texts by value, products of two.

    Bailey et al. 2014, section III-B: first-order interactions. Where nothing varies, the variable is 1.
    """
    names: list[str] = []
    columns: list[Reals] = []
    for number, device in enumerate(space.devices):
        rows = space.device_numbers == number
        variables = list(_variables(space, rows)) or [("1", np.ones(len(space)))]
        products = [
            (f"{other} * {name}", values * others)
            for index, (name, values) in enumerate(variables)
            for other, others in variables[:index]
        ]
        variables += [(name, product) for name, product in products if product.any()]
        for name, values in variables:
            names.append(f"{device}: {name}")
            columns.append(np.where(rows, values, 0.0))
    matrix = np.stack(columns, axis=1)
    on_device = (space.device_numbers[:, None] == np.arange(len(space.devices))).astype(np.float64)
    return Design(tuple(names), matrix / np.abs(matrix).max(axis=0), space.devices, on_device)


def _variables(space: ConfigurationSpace, rows: Flags) -> Iterator[tuple[str, Reals]]:
    for name, values in zip(space.knobs, space.matrix.T, strict=True):
        if len(np.unique(values[rows])) > 1:
            # A configuration of the device without the setting counts as 0.
            yield name, np.where(np.isfinite(values), values, 0.0)
    for name in space.words:
        settings = space.values_of(name)
        texts = np.unique(settings[rows])
        if len(texts) > 1:
            yield from ((f"{name}={text}", (settings == text).astype(np.float64)) for text in texts)


_CORES = ("cores", "threads")
_CLOCK = "clock_hz"
_CACHES, _NOISE = 1.05, 1.02
"""Largest speed-up over the ratio of cores and clocks: more cores have more caches, and runs have noise."""


@dataclass(frozen=True, eq=False)
class SpeedLimits:
    """Cores and clocks of ``c`` configurations: so many more make a kernel so many times faster at most."""

    # (c,) Number of the group of each: those of a device that differ in nothing but cores and clocks
    group: Integers
    cores: Reals  # (a, c) Numbers of cores; 1 where there is no such setting
    clocks: Reals  # (b, c) Clocks; 1 where there is no such setting

    @classmethod
    def of(cls, space: ConfigurationSpace) -> SpeedLimits:
        """The limits of a space."""
        names = {name for each in space.configurations for name in each.settings}
        clocks = sorted(name for name in names if name.endswith(_CLOCK))
        groups = [_others(each) for each in space.configurations]
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}

        def rows(wanted: list[str]) -> Reals:
            values = [[_number(each.settings.get(name)) for each in space.configurations] for name in wanted]
            return np.array([np.ones(len(space)), *values], np.float64)

        cores = [name for name in _CORES if name in names]
        return cls(np.array([numbers[group] for group in groups], np.int64), rows(cores), rows(clocks))

    def times(self, numbers: Integers, time_s: Reals) -> tuple[Reals, Reals]:
        """Least and most times ``(c,)`` of a kernel, from its times at some configurations."""
        least, most = np.zeros(len(self.group)), np.full(len(self.group), np.inf)
        for number, seconds in zip(numbers.tolist(), time_s.tolist(), strict=True):
            like = self.group == self.group[number]
            to, back = (self._largest_speed_up(number, sign) for sign in (1, -1))
            least = np.where(like, np.maximum(least, seconds / to), least)
            most = np.where(like, np.minimum(most, seconds * back), most)
        # Runs that contradict each other limit nothing.
        consistent = least <= most
        return np.where(consistent, least, 0.0), np.where(consistent, most, np.inf)

    def _largest_speed_up(self, number: int, sign: int) -> Reals:
        """Largest speed-up ``(c,)`` from a configuration to each, or with a sign of -1 from each to it."""
        ratios = [(values / values[:, [number]]) ** sign for values in (self.cores, self.clocks)]
        cores, clocks = (np.maximum(each.max(axis=0), 1.0) for each in ratios)
        as_many: Flags = (self.cores == self.cores[:, [number]]).all(axis=0)
        return np.asarray(cores * clocks * np.where(as_many, _NOISE, _CACHES))


def _others(configuration: Configuration) -> tuple[object, ...]:
    """Device and settings but cores and clocks, of which only the names matter."""
    settings = configuration.settings
    is_speed = {name: name in _CORES or name.endswith(_CLOCK) for name in settings}
    return configuration.device, *((name, not is_speed[name] and settings[name]) for name in settings)


def _number(setting: Setting | None) -> float:
    """A number above 0; 1 where there is none."""
    return setting if isinstance(setting, float) and setting > 0 else 1.0
