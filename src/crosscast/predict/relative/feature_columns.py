"""Single features: where their values are from, and how training rows scale them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.relative.feature_rules import INTENSITIES
from crosscast.predict.relative.observations import NO_SOURCE, Observations
from crosscast.predict.relative.own_counters import AS_IS, LOGARITHM, on_scale, scale_for
from crosscast.predict.relative.table3 import COUNTED, SETTINGS, Counted, set_to

__all__ = ["COUNTED_FEATURE", "SETTING", "SOURCE", "Column", "Which", "candidates", "fitted", "raw_values"]

Which = Literal["table3", "own", "all"]

COUNTED_FEATURE, SETTING, OWN_COUNTER, OWN_SETTING, SOURCE = range(5)
"""Origins of values: features of Table III, counters and settings of the dataset, devices."""

_USES_GPU = SETTINGS[-1]


@dataclass(frozen=True)
class Column:
    """A feature.

    Parameters
    ----------
    origin
        Where its values are from: `COUNTED_FEATURE` and so on.
    key
        Name of the feature of Table III, counter, setting or device.
    scale
        The scale of its values, as `crosscast.predict.relative.own_counters.on_scale` knows it.
    mean, deviation
        Those of the training rows on that scale; 0 and 1 where values stay as they are.
    has_gaps
        Whether a training row has no value.
    """

    origin: int
    key: str
    scale: int
    mean: float
    deviation: float
    has_gaps: bool

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
