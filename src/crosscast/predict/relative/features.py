"""Single features: where their values are from, and how training rows scale them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_integers, kept_names, kept_reals
from crosscast.predict.relative.counters import (
    AS_IS,
    COUNTED,
    INTENSITIES,
    LOGARITHM,
    SETTINGS,
    Counted,
    counted,
    on_scale,
    scale_for,
    set_to,
)
from crosscast.predict.relative.data import NO_SOURCE, Observations

Which = Literal["table3", "own", "all"]

COUNTED_FEATURE, SETTING, OWN_COUNTER, OWN_SETTING, SOURCE = range(5)
"""Origins of values: features of Table III, counters and settings of the dataset, devices."""

_USES_GPU = SETTINGS[-1]


@dataclass(frozen=True)
class Column:
    """A feature."""

    origin: int  # Where its values are from: `COUNTED_FEATURE` and so on
    key: str  # Name of the feature of Table III, counter, setting or device
    scale: int  # The scale of its values, as `crosscast.predict.relative.counters.on_scale` knows it
    mean: float  # Those of the training rows on that scale; 0 and 1 where values stay as they are
    deviation: float
    has_gaps: bool  # Whether a training row has no value

    @property
    def name(self) -> str:
        """Name of the feature, for people."""
        if self.origin == SOURCE:
            return f"source {self.key}"
        return f"setting {self.key}" if self.origin == OWN_SETTING else self.key


def candidates(which: Which, observations: Observations, found: Counted) -> Iterator[tuple[int, str]]:
    """Origins and keys of all features that rows might have."""
    if which != "own":
        yield from ((COUNTED_FEATURE, name) for name in COUNTED)
    yield from ((SETTING, name) for name in SETTINGS)
    if which != "table3":
        taken = frozenset[str]().union(*found.used) if which == "all" else frozenset[str]()
        yield from ((OWN_COUNTER, name) for name in observations.names if name not in taken)
        yield from ((OWN_SETTING, name) for name in observations.configuration if name not in SETTINGS)
    yield from ((SOURCE, key) for key in sorted(set(observations.source) - {NO_SOURCE}))


def raw_values(origin: int, key: str, observations: Observations, found: Counted) -> Reals:
    """Values of a feature, of shape ``(r,)``, before they are scaled."""
    if origin == COUNTED_FEATURE:
        return found.values[:, COUNTED.index(key)]
    if origin == SETTING:
        return set_to(observations)[:, SETTINGS.index(key)]
    if origin == SOURCE:
        return np.array([float(source == key) for source in observations.source])
    names, table = (
        (observations.names, observations.counters)
        if origin == OWN_COUNTER
        else (observations.configuration, observations.settings)
    )
    return table[:, names.index(key)] if key in names else np.full(len(observations), np.nan)


def fitted(origin: int, key: str, raw: Reals) -> Column | None:
    """The feature on its scale; ``None`` if it is constant, or no row has it."""
    there = raw[np.isfinite(raw)]
    if there.size == 0 or there.min() == there.max():
        return None
    scale = _scale(origin, key, raw)
    has_gaps = there.size < raw.size
    if origin == SOURCE or key == _USES_GPU:
        return Column(origin, key, scale, 0.0, 1.0, has_gaps)
    values = on_scale(there, scale)
    mean, deviation = float(values.mean()), float(values.std())
    # Values that differ in their last digits only are constant but for rounding.
    if deviation <= 1e-12 * max(abs(mean), 1e-300):
        return None
    return Column(origin, key, scale, mean, deviation, has_gaps)


def _scale(origin: int, key: str, raw: Reals) -> int:
    if origin in (OWN_COUNTER, OWN_SETTING):
        return scale_for(raw)
    return AS_IS if origin == SOURCE or key in INTENSITIES or key == _USES_GPU else LOGARITHM


_MISSING = "is missing"
_SHOWN = 5


@dataclass(frozen=True)
class FeatureScale:
    """What features are made of, before any row is seen."""

    # `table3` for the features of the paper's table, as far as the counters give them; `own` for the
    # dataset's counters as they are; `all` for the table, and the counters that are in none of its features.
    # What a run was set to, and the device that it was counted on, belong to each
    which: Which = "all"
    # Whether what is missing gets the mean of the training rows, and a feature of its own that says so. Else
    # it stays not a number, which XGBoost takes
    fill: bool = False

    def fit(self, observations: Observations) -> FittedFeatures:
        """Choose and scale features by these rows alone; constant ones are left out."""
        found = counted(observations)
        columns = [
            column
            for origin, key in candidates(self.which, observations, found)
            if (column := fitted(origin, key, raw_values(origin, key, observations, found))) is not None
        ]
        if not columns:
            wanted = "of Table III, and " if self.which == "table3" else ""
            raise InputError(
                f"counters: expected some {wanted}that differ between {len(observations)} runs, found none "
                f"among {', '.join(observations.names)[:200] or 'none'}"
            )
        return FittedFeatures(tuple(columns), self.fill, observations.names)


@dataclass(frozen=True, eq=False)
class FittedFeatures:
    """Features as training rows fixed them; made by `FeatureScale.fit`."""

    columns: tuple[Column, ...]  # The features
    fill: bool  # Whether what is missing is filled
    known: tuple[str, ...]  # Names of all counters of the training rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ``k`` features, in the order of the columns of `transform`."""
        names = [column.name for column in self.columns]
        return (*names, *(f"{column.name} {_MISSING}" for column in self._with_gaps()))

    def transform(self, observations: Observations) -> Reals:
        """Features of ``r`` runs, of shape ``(r, k)``.

        The columns of counters have mean 0 and deviation 1 over the training rows that have them. A device
        that no training row is from has 0 in each column of devices.
        """
        found = counted(observations)
        self._expect_known(observations, found)
        raw = [raw_values(each.origin, each.key, observations, found) for each in self.columns]
        rows: Reals = np.column_stack(
            [
                (on_scale(values, each.scale) - each.mean) / each.deviation
                for values, each in zip(raw, self.columns, strict=True)
            ]
        )
        if not self.fill:
            return rows
        missing = np.isnan(rows)
        gaps = [place for place, each in enumerate(self.columns) if each.has_gaps]
        return np.hstack([np.where(missing, 0.0, rows), missing[:, gaps].astype(np.float64)])

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters that the rows have and the training rows did not, and that no feature is made of."""
        used = self._used(counted(observations))
        there: Flags = np.asarray(np.isfinite(observations.counters).any(axis=0))
        return tuple(
            name
            for name, has in zip(observations.names, there, strict=True)
            if has and name not in used and name not in self.known
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes them again."""
        return {
            "feature_origins": np.array([each.origin for each in self.columns], dtype=np.int64),
            "feature_keys": np.array([each.key for each in self.columns], dtype=np.str_),
            "feature_scales": np.array([each.scale for each in self.columns], dtype=np.int64),
            "feature_means": np.array([each.mean for each in self.columns]),
            "feature_deviations": np.array([each.deviation for each in self.columns]),
            "feature_gaps": np.array([each.has_gaps for each in self.columns], dtype=np.int64),
            "feature_fill": np.array([self.fill], dtype=np.int64),
            "counters": np.array(self.known, dtype=np.str_),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedFeatures:
        """Make them from their arrays."""
        origins = kept_integers(state, "feature_origins", 1, (0, SOURCE + 1))
        keys = kept_names(state, "feature_keys")
        scales = kept_integers(state, "feature_scales", 1, (0, 3))
        means = kept_reals(state, "feature_means", 1)
        deviations = kept_reals(state, "feature_deviations", 1)
        gaps = kept_integers(state, "feature_gaps", 1, (0, 2))
        fill = kept_integers(state, "feature_fill", 1, (0, 2))
        lengths = {len(each) for each in (origins, keys, scales, means, deviations, gaps)}
        if len(lengths) > 1 or 0 in lengths or len(fill) != 1 or (deviations <= 0).any():
            raise InputError(
                f"model: expected features with a mean and a deviation above 0 each, found {sorted(lengths)}"
            )
        columns = tuple(
            Column(*each)
            for each in zip(
                origins.tolist(),
                keys,
                scales.tolist(),
                means.tolist(),
                deviations.tolist(),
                (gaps == 1).tolist(),
                strict=True,
            )
        )
        for each in columns:
            if each.origin in (COUNTED_FEATURE, SETTING) and each.key not in (*COUNTED, *SETTINGS):
                raise InputError(
                    f"model: feature_keys: expected features of Table III, found {each.key[:60]!r}"
                )
        return cls(columns, bool(fill[0]), kept_names(state, "counters"))

    def _with_gaps(self) -> Iterator[Column]:
        return (column for column in self.columns if self.fill and column.has_gaps)

    def _used(self, found: Counted) -> set[str]:
        """Counters that the features of Table III are made of, by the names that rows have for them."""
        keys = {column.key for column in self.columns if column.origin == COUNTED_FEATURE}
        return {name for key in keys for name in found.used[COUNTED.index(key)]}

    def _expect_known(self, observations: Observations, found: Counted) -> None:
        used = self._used(found)
        known = np.array([name in used or name in self.known for name in observations.names], dtype=np.bool_)
        there = np.isfinite(observations.counters)
        strange = there.any(axis=1) & ~there[:, known].any(axis=1)
        if strange.any() and self.known:
            row = int(np.argmax(strange))
            names = [name for name, has in zip(observations.names, there[row], strict=True) if has]
            raise InputError(
                f"{observations.application[row]}: expected counters that the model knows, such as "
                f"{', '.join(self.known[:_SHOWN])}, found a profile whose counters the model does not know: "
                f"{', '.join(names[:_SHOWN])}"
            )
