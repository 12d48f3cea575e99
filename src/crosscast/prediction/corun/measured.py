"""Mixes whose slowdowns were measured after the training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.prediction.corun.forecast import CoRunPrediction, Mix, longest_alone
from crosscast.prediction.corun.slowdowns import mix_times

MixKey = tuple[str, ...]
"""Names of the applications of a mix, with their sizes, sorted."""


def mix_key(mix: Mix) -> MixKey:
    """Key of a mix, equal for all orders of its co-runners."""
    return tuple(sorted(run.qualified_name for run in mix))


def _by_name(mix: Mix) -> list[int]:
    """Positions of the co-runners, in the order of the key."""
    return sorted(range(len(mix)), key=lambda position: mix[position].qualified_name)


class MixMeasurement(NamedTuple):
    """Measured slowdowns of one mix."""

    log_slowdown: Reals  # (co-runners,), in the order of the key; the mean over the repeats
    repeats: int


@dataclass(frozen=True, eq=False)
class MeasuredMixes:
    """Measured slowdowns of mixes, which replace what a model predicts of the same mixes."""

    by_key: Mapping[MixKey, MixMeasurement]

    def __contains__(self, mix: Mix) -> bool:
        return mix_key(mix) in self.by_key

    def repeats(self, mix: Mix) -> int:
        """Number of measurements of a mix."""
        return self.by_key[mix_key(mix)].repeats

    def with_mixes(self, mixes: Sequence[tuple[Mix, Sequence[float]]]) -> MeasuredMixes:
        """These and further measurements; those of the same mix are averaged."""
        by_key = dict(self.by_key)
        for mix, slowdowns in mixes:
            key, measured = mix_key(mix), np.log(np.array(slowdowns, np.float64)[_by_name(mix)])
            mean, repeats = by_key.get(key, MixMeasurement(np.zeros(len(mix)), 0))
            by_key[key] = MixMeasurement(mean + (measured - mean) / (repeats + 1), repeats + 1)
        return MeasuredMixes(by_key)

    def replaced(
        self,
        prediction: CoRunPrediction,
        mixes: Sequence[Mix],
        unlimited: CoRunPrediction,
        predict: Callable[[Sequence[Mix]], CoRunPrediction],
    ) -> CoRunPrediction:
        """A prediction with measured slowdowns where there are any, and times that follow from them.

        `unlimited` is the prediction before physical limits, and `predict` makes such ones.
        """
        known = [index for index, mix in enumerate(mixes) if mix in self] if self.by_key else []
        slowdown, time_s = list(prediction.slowdown), prediction.time_s.copy()
        for index in known:
            mix, predicted = mixes[index], unlimited.slowdown[index]
            measured = slowdown[index] = self._slowdowns(mix)
            ratio = _time(mix, measured, predict) / _time(mix, predicted, predict)
            time_s[index] = max(unlimited.time_s[index] * ratio, longest_alone(mix, measured.tolist()))
        return replace(prediction, slowdown=tuple(slowdown), time_s=time_s)

    def _slowdowns(self, mix: Mix) -> Reals:
        slowdowns = np.empty(len(mix))
        slowdowns[_by_name(mix)] = np.exp(self.by_key[mix_key(mix)].log_slowdown)
        return slowdowns


def _time(mix: Mix, slowdown: Reals, predict: Callable[[Sequence[Mix]], CoRunPrediction]) -> float:
    """Time of a mix from its slowdowns, and from predicted ones when the first have ended."""

    def of_running(rows: Integers, columns: Integers) -> Reals:
        return np.stack(predict([tuple(mix[column] for column in columns.tolist())]).slowdown)

    alone = np.array([[math.nan if run.time_s is None else run.time_s for run in mix]])
    return float(mix_times(alone, slowdown[None], of_running)[0])


NO_MIXES = MeasuredMixes({})
