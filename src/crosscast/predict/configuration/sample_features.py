"""Features of a kernel from its runs at the sample configurations."""

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
from crosscast.predict.configuration.sample_columns import SampleColumns, counts_in, total_in
from crosscast.predict.configuration.surfaces import Observed, Surfaces
from crosscast.predict.state import kept_names, kept_reals

__all__ = ["SampleFeatures"]

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
            Numbers of the sample configurations.

        Returns
        -------
        tuple
            The features, and their values ``(n, f)`` for these kernels, none missing.
        """
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
        """``(f,)`` Those of one kernel; what is missing is the mean of the training kernels.

        Parameters
        ----------
        observed
            Its runs.
        places
            Which of them are those at the samples, in the samples' order.
        """
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
        """Make it from its arrays, and check that they are of so many samples if that is said.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
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
