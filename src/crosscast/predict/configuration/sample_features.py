"""Features of a kernel from its runs at the sample configurations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError
from crosscast.predict.configuration.surfaces import Observed, Surfaces
from crosscast.predict.grid import Flags, Reals
from crosscast.predict.state import kept_names, kept_reals

__all__ = ["SampleFeatures"]

_TOTALS = ("instructions", "instructions_executed", "inst_executed")
"""Counters that counts are divided by; the first that is there."""

_RATES = ("throughput", "_per_", "bandwidth")
"""Parts of the names of counters that are rates already: these are not divided."""

_LARGEST_RATIO = 100.0
"""A counter that is nowhere above is a ratio or a percentage, and is left as it is."""

_LIMIT = 3.0
_LEAST_SCALE = 1e-9


@dataclass(frozen=True)
class SampleFeatures:
    """What is told of a kernel: ``f`` features of its runs at ``s`` sample configurations.

    Logarithms of power, of each domain's power and of the time relative to that at the first sample;
    counters as they are, but those that reach above 100: events are divided by the instructions where these
    were counted, else in logarithms, as rates are. A feature that no training kernel has, or that is the same
    for all, is left out.

    Parameters
    ----------
    names
        ``(f,)`` ``kind:name@sample``, with the sample by its place among the samples.
    centre, scale
        ``(f,)`` Mean and standard deviation over the training kernels; a missing value becomes the mean.
    counts
        Counters that count events, so that they are divided or turned into logarithms.
    total
        Counter that they are divided by; empty for none.
    """

    names: tuple[str, ...]
    centre: Reals
    scale: Reals
    counts: tuple[str, ...]
    total: str

    @classmethod
    def of(cls, surfaces: Surfaces, samples: Sequence[int]) -> tuple[SampleFeatures, Reals]:
        """Learn what the features are.

        Parameters
        ----------
        surfaces
            ``n`` training kernels, all of which ran at the samples.
        samples
            Places of the sample configurations.

        Returns
        -------
        tuple
            The features, and their values ``(n, f)`` for these kernels, none missing.
        """
        total = next((name for name in _TOTALS if name in surfaces.counters), "")
        at = {name: values[:, list(samples)] for name, values in surfaces.counters.items()}
        counts = tuple(sorted(name for name, values in at.items() if _is_count(values)))
        domains = {name: values[:, list(samples)] for name, values in surfaces.domains.items()}
        columns = _columns(
            surfaces.time_s[:, list(samples)], surfaces.power_w[:, list(samples)], domains, at, counts, total
        )
        kept = {name: values for name, values in columns.items() if _tells(values)}
        matrix = np.stack(list(kept.values()), axis=1) if kept else np.empty((len(surfaces.kernels), 0))
        centre = np.nanmean(matrix, axis=0) if kept else np.empty(0)
        scale = np.nanstd(matrix, axis=0) + _LEAST_SCALE if kept else np.empty(0)
        return cls(tuple(kept), centre, scale, counts, total), np.where(np.isnan(matrix), centre, matrix)

    def values(self, observed: Observed, places: Sequence[int]) -> Reals:
        """``(f,)`` Those of one kernel; what is missing is the mean of the training kernels.

        Parameters
        ----------
        observed
            Its runs.
        places
            Which of them are those at the samples, in the samples' order.
        """
        at = np.array(places)
        columns = _columns(
            observed.time_s[at],
            observed.power_w[at],
            {name: values[at] for name, values in observed.domains.items()},
            {name: values[at] for name, values in observed.counters.items()},
            self.counts,
            self.total,
        )
        found = np.array([columns.get(name, np.nan) for name in self.names], np.float64)
        return np.where(np.isfinite(found), found, self.centre)

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
        return tuple(self._readable_name(name) for name in self.names)

    def _readable_name(self, name: str) -> str:
        kind, _, rest = name.rpartition("@")[0].partition(":")
        if kind == "counter" and rest in self.counts and _is_divided(rest, self.total):
            rest = f"{rest} / {self.total}"
        said = {"time": "time_ratio", "power": "power_w", "domain": f"{rest}_power_w", "counter": rest}
        return f"{said.get(kind, kind)} at sample {int(name.rpartition('@')[2]) + 1}"

    def readable(self, values: Reals) -> Reals:
        """Values, of shape ``(..., f)``, with logarithms turned back: in watts, as ratios, as counts."""
        undone = np.where(self._in_logarithms, np.exp(np.where(self._in_logarithms, values, 0.0)), values)
        return undone - self._plus_one

    @cached_property
    def _plus_one(self) -> Reals:
        counted = [name for name in self.counts if not _is_divided(name, self.total)]
        of = [name.partition(":")[2].rpartition("@")[0] for name in self.names]
        kinds = [name.startswith("counter:") for name in self.names]
        flags = [kind and name in counted for kind, name in zip(kinds, of, strict=True)]
        return np.array(flags, np.float64)

    @cached_property
    def _in_logarithms(self) -> Flags:
        others = np.array([not name.startswith("counter:") for name in self.names], np.bool_)
        return others | (self._plus_one > 0)

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
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> SampleFeatures:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        names = kept_names(state, "feature_names")
        if not all(
            re.fullmatch(r"(time|power|domain:.+|counter:.+)@\d{1,6}", name, re.DOTALL) for name in names
        ):
            raise InputError("model: feature_names: expected kind:name@sample, found others")
        centre, scale = (kept_reals(state, name, 1) for name in ("feature_centre", "feature_scale"))
        total = kept_names(state, "feature_total")
        if not len(names) == len(centre) == len(scale) or len(total) != 1 or not (scale > 0).all():
            raise InputError(
                f"model: feature_scale: expected a mean and a scale above 0 of {len(names)} features, "
                f"found {len(centre)} and {len(scale)}"
            )
        return cls(names, centre, scale, kept_names(state, "feature_counts"), total[0])


def _is_count(values: Reals) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size) and bool(known.min() >= 0) and bool(known.max() > _LARGEST_RATIO)


def _is_divided(name: str, total: str) -> bool:
    return total not in ("", name) and not any(part in name for part in _RATES)


def _tells(values: Reals) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size) and bool(np.ptp(known) > _LEAST_SCALE * (1 + np.abs(known).max()))


def _columns(
    time_s: Reals,
    power_w: Reals,
    domains: Mapping[str, Reals],
    counters: Mapping[str, Reals],
    counts: Sequence[str],
    total: str,
) -> dict[str, Reals]:
    """Features by name from values of shape ``(..., s)``, each of shape ``(...)``."""
    columns: dict[str, Reals] = {}
    with np.errstate(divide="ignore", invalid="ignore"):
        _put(columns, "time", np.log(time_s / time_s[..., :1]))
        _put(columns, "power", np.log(power_w))
        for name in sorted(domains):
            _put(columns, f"domain:{name}", np.log(domains[name]))
        for name in sorted(counters):
            values = counters[name]
            if name in counts:
                divided = _is_divided(name, total)
                values = values / counters.get(total, np.nan) if divided else np.log1p(values)
            _put(columns, f"counter:{name}", values)
    return columns


def _put(columns: dict[str, Reals], name: str, values: Reals) -> None:
    finite = np.where(np.isfinite(values), values, np.nan)
    for sample in range(values.shape[-1]):
        columns[f"{name}@{sample}"] = finite[..., sample]
