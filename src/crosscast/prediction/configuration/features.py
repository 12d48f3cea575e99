"""What models see: features of a kernel's sample runs, and variables of the configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.configuration.data import (
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
"""Counters that counts are divided by; the first that is there."""

_RATES = ("throughput", "_per_", "bandwidth")
"""Parts of the names of counters that are rates already: these are not divided."""

_LARGEST_RATIO = 100.0
"""A counter that is nowhere above is a ratio or a percentage, and is left as it is."""

_NAME = re.compile(r"(?P<source>(time|power|domain:.+|counter:.+))@(?P<sample>[0-9]{1,6})", re.DOTALL)
_KINDS = ("plain", "count", "share")
"""Sources that are no counters, counts of which logarithms are taken, and shares of the total."""

_LIMIT = 3.0
_LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class SampleColumns:
    """What ``q`` sources tell at ``s`` samples."""

    sources: tuple[str, ...]  # (q,) `time` first, then `power`, `domain:name` and `counter:name`
    counts: frozenset[str]  # Counters that count events, or rates of events
    total: str  # Counter by which events are divided, which must be among the sources; empty for none

    def matrix(self, runs: Values) -> Reals:
        """``(..., q, s)`` Logarithms of powers and relative times, and counters; NaN where not known."""
        raw = np.empty((*runs.time_s.shape[:-1], len(self.sources), runs.time_s.shape[-1]))
        for place, source in enumerate(self.sources):
            kind, _, name = source.partition(":")
            whole = {"time": runs.time_s, "power": runs.power_w}
            group = runs.domains if kind == "domain" else runs.counters
            raw[..., place, :] = whole[kind] if kind in whole else group.get(name, np.nan)
        found, plain, counted, share = raw.copy(), *(self.kinds == kind for kind in _KINDS)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[..., plain, :] = np.log(raw[..., plain, :])
            found[..., 0, :] -= found[..., 0, :1]
            found[..., counted, :] = np.log1p(raw[..., counted, :])
            if self.total:
                by = raw[..., self.sources.index(f"counter:{self.total}"), None, :]
                found[..., share, :] = raw[..., share, :] / by
        found[~np.isfinite(found)] = np.nan
        return found

    @cached_property
    def kinds(self) -> npt.NDArray[np.str_]:
        """``(q,)`` How each source is told: one of `_KINDS`, or a counter as it is, `ratio`."""
        kinds = []
        for kind, _, name in (source.partition(":") for source in self.sources):
            is_rate = self.total in ("", name) or any(part in name for part in _RATES)
            counter = "ratio" if name not in self.counts else "count" if is_rate else "share"
            kinds.append(counter if kind == "counter" else "plain")
        return np.array(kinds)


def counts_in(counters: Mapping[str, Reals]) -> frozenset[str]:
    """Names of the counters that reach above what a ratio or a percentage can be."""
    known = {name: values[np.isfinite(values)] for name, values in counters.items()}
    return frozenset(
        name for name, each in known.items() if each.size and each.min() >= 0 and each.max() > _LARGEST_RATIO
    )


class _Parts(NamedTuple):
    """What the names of ``f`` features say."""

    columns: SampleColumns
    samples: Integers  # (f,) The sample of each
    sources: Integers  # (f,) Its source, by the place in the columns
    weights: Reals  # (f,) What it is multiplied by where features are compared


@dataclass(frozen=True)
class SampleFeatures(Stored):
    """What is told of a kernel: ``f`` features of its runs at ``s`` sample configurations.

    Logarithms of powers and of times relative to the first sample; counters, divided by the instructions or
    in logarithms where they count. A feature that no training kernel has, or that is the same for all, is
    left out.
    """

    names: Annotated[tuple[str, ...], Array("f")]  # `source@sample`, the sample by its place among them
    centre: Annotated[Reals, Array("f")]  # Mean over the training kernels, which a missing value becomes
    scale: Annotated[Reals, Array("f", above=0)]  # Standard deviation over the training kernels
    counts: tuple[str, ...]  # Counters that count events, so that they are divided or turned into logarithms
    total: str  # Counter that they are divided by; empty for none

    @classmethod
    def of(cls, surfaces: Surfaces, samples: Sequence[int]) -> tuple[SampleFeatures, Reals]:
        """Learn what the features are; they, and the training kernels' values ``(n, f)``."""
        runs = values_at(surfaces, (slice(None), np.array(samples, np.int64)))
        # The domain that is the whole tells nothing more.
        domains = [name for name, each in sorted(runs.domains.items()) if not np.allclose(each, runs.power_w)]
        counters = [f"counter:{name}" for name in sorted(runs.counters)]
        sources = ("time", "power", *(f"domain:{name}" for name in domains), *counters)
        total = next((name for name in _TOTALS if name in runs.counters), "")
        columns = SampleColumns(sources, counts_in(runs.counters), total)
        matrix = columns.matrix(runs).reshape(len(runs.time_s), -1)
        names = [f"{source}@{sample}" for source in sources for sample in range(len(samples))]
        kept = [column for column in range(len(names)) if _tells(matrix[:, column])]
        matrix = matrix[:, kept]
        centre = np.nanmean(matrix, axis=0) if kept else np.empty(0)
        scale = np.nanstd(matrix, axis=0) + _LEAST_SCALE if kept else np.empty(0)
        own_names = tuple(names[column] for column in kept)
        features = cls(own_names, centre, scale, tuple(sorted(columns.counts)), total)
        return features, np.where(np.isnan(matrix), centre, matrix)

    def check(self) -> None:
        """Refuse names of features that there are not."""
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise InputError.of(field="feature names", expected="kind:name@sample", found=repr(name))

    def check_samples(self, count: int) -> None:
        """Refuse features of samples beyond so many."""
        for name, sample in zip(self.names, self._parts.samples, strict=True):
            if sample >= count:
                expected = f"features of {count} samples"
                raise InputError.of(where="model", field="feature names", expected=expected, found=repr(name))

    def values(self, observed: Observed, places: Sequence[int]) -> Reals:
        """``(f,)`` Those of one kernel; what is missing is the mean of the training kernels."""
        columns, samples, sources, _ = self._parts
        found = columns.matrix(values_at(observed, np.array(places)))[sources, samples]
        return np.where(np.isnan(found), self.centre, found)

    @cached_property
    def _parts(self) -> _Parts:
        parts = [name.rpartition("@") for name in self.names]
        total = [f"counter:{self.total}"] if self.total else []
        sources = tuple(dict.fromkeys(["time", *(source for source, _, _ in parts), *total]))
        samples = np.array([int(sample) for _, _, sample in parts], np.int64)
        places = np.array([sources.index(source) for source, _, _ in parts], np.int64)
        counters = np.array([name.startswith("counter:") for name in self.names], np.bool_)
        others = max(int((~counters).sum()), 1)
        weights = np.where(counters, np.sqrt(others / max(int(counters.sum()), 1)), 1.0)
        return _Parts(SampleColumns(sources, frozenset(self.counts), self.total), samples, places, weights)

    def standardized(self, values: Reals) -> Reals:
        """Values with mean 0 and deviation 1 over the training kernels, at most three deviations off.

        Counters, which may be many, together weigh as much as all other features together.
        """
        limited = np.clip((values - self.centre) / self.scale, -_LIMIT, _LIMIT)
        return np.asarray(limited * self._parts.weights)

    @cached_property
    def readable_names(self) -> tuple[str, ...]:
        """``(f,)`` Names of the features as `readable` gives them, with samples counted from 1."""
        columns, samples, places, _ = self._parts
        found = []
        for place, sample in zip(places.tolist(), samples.tolist(), strict=True):
            kind, _, name = columns.sources[place].partition(":")
            name = f"{name} / {self.total}" if columns.kinds[place] == "share" else name
            words = {"time": "time_ratio", "power": "power_w", "domain": f"{name}_power_w", "counter": name}
            found.append(f"{words[kind]} at sample {sample + 1}")
        return tuple(found)

    def readable(self, values: Reals) -> Reals:
        """Values, of shape ``(..., f)``, with logarithms turned back: in watts, as ratios, as counts."""
        columns, _, places, _ = self._parts
        # Logarithms are those of powers and times, and those of one more than was counted.
        counted = columns.kinds[places] == "count"
        logarithms = (columns.kinds[places] == "plain") | counted
        plain: Reals = np.where(logarithms, np.exp(np.where(logarithms, values, 0.0)), values) - counted
        return plain


def _tells(values: Reals) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size) and bool(np.ptp(known) > _LEAST_SCALE * (1 + np.abs(known).max()))


class TrainingRuns(NamedTuple):
    """What every model learns from: the ``n`` kernels that ran at all samples."""

    surfaces: Surfaces  # Their times and powers at ``c`` configurations
    features: SampleFeatures
    values: Reals  # (n, f) the features of their sample runs
    scaled_from: Integers  # (c,) number of the sample configuration that each configuration is scaled from
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
    # (c, p) A variable is 0 at the configurations of other devices. Each is divided by its largest size,
    # which leaves a linear model what it is, and makes it well scaled
    matrix: Reals
    devices: tuple[str, ...]  # (d,)
    on_device: Reals  # (c, d) 1 for the device of a configuration

    @property
    def with_constants(self) -> Reals:
        """``(c, p + d)`` The variables, and the devices' constants."""
        return np.hstack([self.matrix, self.on_device])


def design_of(space: ConfigurationSpace) -> Design:
    """Variables of the configurations of each device: numbers that vary, words by value, products of two.

    Bailey et al. 2014, section III-B: first-order interactions. Where nothing varies there is the variable 1.
    """
    names: list[str] = []
    columns: list[Reals] = []
    for number, device in enumerate(space.devices):
        rows = space.device_numbers == number
        variables = list(_variables(space, rows)) or [("1", np.ones(len(space)))]
        products = [
            (f"{other} * {name}", values * others)
            for place, (name, values) in enumerate(variables)
            for other, others in variables[:place]
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
            # A configuration of the device that lacks the setting: as if it were 0.
            yield name, np.where(np.isfinite(values), values, 0.0)
    for name in space.words:
        settings = space.values_of(name)
        words = np.unique(settings[rows])
        if len(words) > 1:
            yield from ((f"{name}={word}", (settings == word).astype(np.float64)) for word in words)
