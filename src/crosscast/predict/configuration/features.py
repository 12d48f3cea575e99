"""From times, powers and counters at the sample configurations to numbers that can be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_names, kept_reals
from crosscast.predict.configuration.data import Observed, Surfaces

_TOTALS = ("instructions", "instructions_executed", "inst_executed")
"""Counters that counts are divided by; the first that is there."""

_RATES = ("throughput", "_per_", "bandwidth")
"""Parts of the names of counters that are rates already: these are not divided."""

_LARGEST_RATIO = 100.0
"""A counter that is nowhere above is a ratio or a percentage, and is left as it is."""


@dataclass(frozen=True)
class SampleColumns:
    """What ``q`` sources tell at ``s`` samples."""

    sources: tuple[str, ...]  # `time` first, then `power`, `domain:name` and `counter:name`
    counts: frozenset[str]  # Counters that count events, or rates of events
    total: str  # Counter by which events are divided, which must be among the sources; empty for none

    def matrix(
        self, time_s: Reals, power_w: Reals, domains: Mapping[str, Reals], counters: Mapping[str, Reals]
    ) -> Reals:
        """Logarithms of powers and of times relative to the first sample; counters as the class says.
        ``(..., q, s)``; NaN where not known.
        """
        raw = np.empty((*time_s.shape[:-1], len(self.sources), time_s.shape[-1]))
        for place, (kind, name) in enumerate(self._parts):
            if kind == "time":
                raw[..., place, :] = time_s
            elif kind == "power":
                raw[..., place, :] = power_w
            else:
                raw[..., place, :] = (domains if kind == "domain" else counters).get(name, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = raw.copy()
            found[..., self._logarithms, :] = np.log(raw[..., self._logarithms, :])
            found[..., 0, :] -= found[..., 0, :1]
            found[..., self.counted, :] = np.log1p(raw[..., self.counted, :])
            if self.divided.size:
                by = raw[..., self.sources.index(f"counter:{self.total}"), None, :]
                found[..., self.divided, :] = raw[..., self.divided, :] / by
        found[~np.isfinite(found)] = np.nan
        return found

    @cached_property
    def _parts(self) -> list[tuple[str, str]]:
        return [(kind, name) for kind, _, name in (each.partition(":") for each in self.sources)]

    @cached_property
    def _logarithms(self) -> Integers:
        return np.array([place for place, (kind, _) in enumerate(self._parts) if kind != "counter"], np.int64)

    @cached_property
    def divided(self) -> Integers:
        """Places of the counters that are divided by the total."""
        return np.array([place for place in self._events if self._is_divided(place)], np.int64)

    @cached_property
    def counted(self) -> Integers:
        """Places of the counters that are logarithms, of one more than they are."""
        return np.array([place for place in self._events if not self._is_divided(place)], np.int64)

    @property
    def _events(self) -> list[int]:
        return [
            place
            for place, (kind, name) in enumerate(self._parts)
            if kind == "counter" and name in self.counts
        ]

    def _is_divided(self, place: int) -> bool:
        name = self._parts[place][1]
        return self.total not in ("", name) and not any(part in name for part in _RATES)


def counts_in(counters: Mapping[str, Reals]) -> frozenset[str]:
    """Names of the counters that reach above what a ratio or a percentage can be."""
    return frozenset(name for name, values in counters.items() if _is_count(values[np.isfinite(values)]))


def _is_count(known: Reals) -> bool:
    return bool(known.size) and bool(known.min() >= 0) and bool(known.max() > _LARGEST_RATIO)


def total_in(counters: Mapping[str, Reals]) -> str:
    """Name of the counter of instructions; empty if there is none."""
    return next((name for name in _TOTALS if name in counters), "")


_NAME = re.compile(r"(time|power|domain:.+|counter:.+)@[0-9]{1,6}", re.DOTALL)
_LIMIT = 3.0
_LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class SampleFeatures:
    """What is told of a kernel: ``f`` features of its runs at ``s`` sample configurations.

    Logarithms of power, of each domain's power and of the time relative to that at the first sample;
    counters as they are, but those that reach above 100: events are divided by the instructions where these
    were counted, else in logarithms, as rates are. A feature that no training kernel has, or that is the same
    for all, is left out.
    """

    names: tuple[str, ...]  # `(f,)` `kind:name@sample`, with the sample by its place among the samples
    # `(f,)` Mean and standard deviation over the training kernels; a missing value becomes the mean
    centre: Reals
    scale: Reals
    counts: tuple[str, ...]  # Counters that count events, so that they are divided or turned into logarithms
    total: str  # Counter that they are divided by; empty for none

    @classmethod
    def of(cls, surfaces: Surfaces, samples: Sequence[int]) -> tuple[SampleFeatures, Reals]:
        """Learn what the features are."""
        at = list(samples)
        time, power = surfaces.time_s[:, at], surfaces.power_w[:, at]
        domains = {name: values[:, at] for name, values in surfaces.domains.items()}
        # The domain that is the whole tells nothing more.
        domains = {name: values for name, values in domains.items() if not np.allclose(values, power)}
        counters = {name: values[:, at] for name, values in surfaces.counters.items()}
        sources = (
            "time",
            "power",
            *(f"domain:{name}" for name in sorted(domains)),
            *(f"counter:{name}" for name in sorted(counters)),
        )
        columns = SampleColumns(sources, counts_in(counters), total_in(counters))
        matrix = columns.matrix(time, power, domains, counters).reshape(len(time), -1)
        names = [f"{source}@{sample}" for source in sources for sample in range(len(at))]
        kept = [column for column in range(len(names)) if _tells(matrix[:, column])]
        matrix = matrix[:, kept]
        centre = np.nanmean(matrix, axis=0) if kept else np.empty(0)
        scale = np.nanstd(matrix, axis=0) + _LEAST_SCALE if kept else np.empty(0)
        features = cls(
            tuple(names[column] for column in kept),
            centre,
            scale,
            tuple(sorted(columns.counts)),
            columns.total,
        )
        return features, np.where(np.isnan(matrix), centre, matrix)

    def values(self, observed: Observed, places: Sequence[int]) -> Reals:
        """``(f,)`` Those of one kernel; what is missing is the mean of the training kernels."""
        at = np.array(places)
        found = self._columns.matrix(
            observed.time_s[at],
            observed.power_w[at],
            {name: values[at] for name, values in observed.domains.items()},
            {name: values[at] for name, values in observed.counters.items()},
        )[self._source_places, self._sample_places]
        return np.where(np.isnan(found), self.centre, found)

    @cached_property
    def _columns(self) -> SampleColumns:
        total = [f"counter:{self.total}"] if self.total else []
        sources = dict.fromkeys(["time", *(_source(name) for name in self.names), *total])
        return SampleColumns(tuple(sources), frozenset(self.counts), self.total)

    @cached_property
    def _source_places(self) -> Integers:
        places = [self._columns.sources.index(_source(name)) for name in self.names]
        return np.array(places, np.int64)

    @cached_property
    def _sample_places(self) -> Integers:
        return np.array([_sample(name) for name in self.names], np.int64)

    def standardized(self, values: Reals) -> Reals:
        """Values with mean 0 and deviation 1 over the training kernels, of the same shape.

        They are limited, so that nothing is stranger than three deviations. Counters, which may be many,
        together weigh as much as all other features together.
        """
        limited = np.clip((values - self.centre) / self.scale, -_LIMIT, _LIMIT)
        weighted: Reals = limited * self._weights
        return weighted

    @cached_property
    def _weights(self) -> Reals:
        counters = np.array([name.startswith("counter:") for name in self.names], np.bool_)
        others = max(int((~counters).sum()), 1)
        return np.where(counters, np.sqrt(others / max(int(counters.sum()), 1)), 1.0)

    @cached_property
    def readable_names(self) -> tuple[str, ...]:
        """``(f,)`` Names of the features as `readable` gives them, with samples counted from 1."""
        return tuple(self._readable_name(place) for place in range(len(self.names)))

    def _readable_name(self, place: int) -> str:
        kind, _, rest = _source(self.names[place]).partition(":")
        if self._source_places[place] in self._columns.divided:
            rest = f"{rest} / {self.total}"
        said = {"time": "time_ratio", "power": "power_w", "domain": f"{rest}_power_w", "counter": rest}
        return f"{said[kind]} at sample {_sample(self.names[place]) + 1}"

    def readable(self, values: Reals) -> Reals:
        """Values, of shape ``(..., f)``, with logarithms turned back: in watts, as ratios, as counts."""
        undone = np.where(self._in_logarithms, np.exp(np.where(self._in_logarithms, values, 0.0)), values)
        plain: Reals = undone - self._counted.astype(np.float64)
        return plain

    @cached_property
    def _counted(self) -> Flags:
        return np.isin(self._source_places, self._columns.counted)

    @cached_property
    def _in_logarithms(self) -> Flags:
        others = np.array([not name.startswith("counter:") for name in self.names], np.bool_)
        return others | self._counted

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "feature_names": np.array(self.names, np.str_),
            "feature_centre": self.centre,
            "feature_scale": self.scale,
            "feature_counts": np.array(self.counts, np.str_),
            "feature_total": np.array([self.total], np.str_),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]], samples: int | None = None) -> SampleFeatures:
        """Make it from its arrays, and check that they are of so many samples if that is said."""
        names = kept_names(state, "feature_names")
        for name in names:
            if not _NAME.fullmatch(name) or (samples is not None and _sample(name) >= samples):
                raise InputError(
                    f"model: feature_names: expected kind:name@sample with one of the samples, found {name!r}"
                )
        centre, scale = (kept_reals(state, name, 1) for name in ("feature_centre", "feature_scale"))
        total = kept_names(state, "feature_total")
        if not len(names) == len(centre) == len(scale) or len(total) != 1 or not (scale > 0).all():
            raise InputError(
                f"model: feature_scale: expected a mean and a scale above 0 of {len(names)} features, "
                f"found {len(centre)} and {len(scale)}"
            )
        return cls(names, centre, scale, kept_names(state, "feature_counts"), total[0])


def _source(name: str) -> str:
    return name.rpartition("@")[0]


def _sample(name: str) -> int:
    return int(name.rpartition("@")[2])


def _tells(values: Reals) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size) and bool(np.ptp(known) > _LEAST_SCALE * (1 + np.abs(known).max()))
