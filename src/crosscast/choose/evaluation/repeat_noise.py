"""How much time and power differ from one repeat to the next, estimated where there are no repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.choose.evaluation.cases import Integers
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["RepeatNoise", "repeat_noise"]

_LEAST = 5
"""Differences that an estimate is at least made of."""

_NORMAL = 1.482602218505602
"""Standard deviation of a normal distribution over its median absolute deviation."""


@dataclass(frozen=True, eq=False)
class RepeatNoise:
    """Standard deviation of the logarithm from repeat to repeat, of each of `n` kernels.

    A repeat is as noisy as a cell of the data, which may be the mean of several runs.

    Parameters
    ----------
    time, power
        ``(n,)`` That of time and of power.
    """

    time: Reals
    power: Reals


def repeat_noise(surfaces: Surfaces) -> RepeatNoise | None:
    """Estimate it by how far neighbouring configurations are from a line.

    Along each numeric knob, with all else the same, each configuration is compared with the line through the
    neighbours on both sides, in the logarithm. Were the surface linear there, these differences would be
    noise alone; their median absolute value gives a standard deviation that few bends do not move. It is
    taken along the knob where it is the least, as this is one that hardly bends the surface. Where a surface
    is curved along all knobs, the estimate is thus too high.

    Parameters
    ----------
    surfaces
        Times and powers, without repeats.

    Returns
    -------
    RepeatNoise or None
        The estimates; the median of all kernels for one with fewer than 5 differences along each knob, and
        ``None`` if there is no other kernel either.
    """
    triples = [_triples(surfaces.space, knob) for knob in range(len(surfaces.space.knobs))]
    time = _estimated(surfaces.space, np.log(surfaces.time_s), triples)
    power = _estimated(surfaces.space, np.log(surfaces.power_w), triples)
    return None if time is None or power is None else RepeatNoise(time, power)


def _triples(space: Space, knob: int) -> tuple[Integers, ...]:
    """First, middle and last of configurations that follow each other along a knob: ``(t,)`` each."""
    lines: dict[tuple[object, ...], list[int]] = {}
    for number, configuration in enumerate(space.configurations):
        if np.isnan(space.matrix[number, knob]):
            continue
        others = tuple((k, v) for k, v in configuration.settings.items() if k != space.knobs[knob])
        lines.setdefault((configuration.device, others), []).append(number)
    found = [line[start : start + 3] for line in lines.values() for start in range(len(line) - 2)]
    return tuple(np.array(found, np.int64).reshape(-1, 3).T)


def _estimated(space: Space, logs: Reals, triples: list[tuple[Integers, ...]]) -> Reals | None:
    estimates = np.full((len(triples), len(logs)), np.nan)
    for knob, (first, middle, last) in enumerate(triples):
        at = space.matrix[:, knob]
        share = (at[last] - at[middle]) / (at[last] - at[first])
        beside = logs[:, middle] - share * logs[:, first] - (1 - share) * logs[:, last]
        scaled = np.abs(beside) / np.sqrt(1 + share**2 + (1 - share) ** 2)
        for row, values in enumerate(scaled):
            known = values[np.isfinite(values)]
            if len(known) >= _LEAST:
                estimates[knob, row] = _NORMAL * np.median(known)
    least = np.min(np.where(np.isnan(estimates), np.inf, estimates), axis=0, initial=np.inf)
    found = np.isfinite(least)
    return np.where(found, least, np.median(least[found])) if found.any() else None
