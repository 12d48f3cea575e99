"""Features of models of relative performance: Table III of the paper, and what else a dataset counts.

In the paper (Nichols et al. 2024, section V-D) intensities stay ratios, and the amounts of Table III are
centred and divided by their deviation. Here everything that was counted is, intensities too, for the sake of
linear models (trees do not care); and of amounts the logarithm is taken before, as they span many powers of
ten. What is 0 or 1, devices and the use of a GPU, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.relative.feature_columns import (
    COUNTED_FEATURE,
    SETTING,
    SOURCE,
    Column,
    Which,
    candidates,
    fitted,
    raw_values,
)
from crosscast.predict.relative.observations import Observations
from crosscast.predict.relative.own_counters import on_scale
from crosscast.predict.relative.table3 import COUNTED, SETTINGS, Counted, counted
from crosscast.predict.state import kept_integers, kept_names, kept_reals

__all__ = ["FeatureScale", "FittedFeatures", "Which"]

_MISSING = "is missing"
_SHOWN = 5


@dataclass(frozen=True)
class FeatureScale:
    """What features are made of, before any row is seen.

    Parameters
    ----------
    which
        ``table3`` for the features of the paper's table, as far as the counters give them; ``own`` for the
        dataset's counters as they are; ``all`` for the table, and the counters that are in none of its
        features. What a run was set to, and the device that it was counted on, belong to each.
    fill
        Whether what is missing gets the mean of the training rows, and a feature of its own that says so.
        Else it stays not a number, which XGBoost takes.
    """

    which: Which = "all"
    fill: bool = False

    def fit(self, observations: Observations) -> FittedFeatures:
        """Choose and scale features by these rows alone; constant ones are left out.

        Raises
        ------
        InputError
            If nothing differs between the rows.
        """
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
    """Features as training rows fixed them; made by `FeatureScale.fit`.

    Parameters
    ----------
    columns
        The features.
    fill
        Whether what is missing is filled.
    known
        Names of all counters of the training rows.
    """

    columns: tuple[Column, ...]
    fill: bool
    known: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ``k`` features, in the order of the columns of `transform`."""
        names = [column.name for column in self.columns]
        return (*names, *(f"{column.name} {_MISSING}" for column in self._with_gaps()))

    def transform(self, observations: Observations) -> Reals:
        """Features of ``r`` runs, of shape ``(r, k)``.

        The columns of counters have mean 0 and deviation 1 over the training rows that have them. A device
        that no training row is from has 0 in each column of devices.

        Raises
        ------
        InputError
            If a run has counters, and the model knows none of them.
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
        """Make them from their arrays.

        Raises
        ------
        InputError
            If these are not arrays of features.
        """
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
