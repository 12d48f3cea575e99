"""Forecasts of relative vectors: with intervals, an order, and how likely each device is the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.relative.held_out import HeldOut

__all__ = ["RelativeForecast", "check_level", "forecast_of"]


@dataclass(frozen=True, eq=False)
class RelativeForecast:
    """What is predicted of ``r`` runs on ``d`` devices; times relative to one of these, where less is better.

    Parameters
    ----------
    devices
        Keys of the devices.
    relative_to
        Device that times are relative to; ``None`` for the slowest of each run.
    centre, low, high
        Time over that on the device that it is relative to, and limits of its interval, of shape
        ``(r, d)``. On that device all are 1. Relative to the slowest, a predicted vector is scaled so that
        its largest entry is 1, which a model need not give; and as any device may be the slowest in truth,
        the interval of the one that is predicted so is not of width 0, but none reaches above 1.
    level
        Probability that was asked for.
    reached
        Probability that intervals have, of shape ``(r,)``: less than ``level`` where there are too few
        groups.
    order
        Places of the devices, fastest first, of shape ``(r, d)``.
    fastest
        Probability that each device is the fastest, of shape ``(r, d)``; their sum over a row is 1.
    same_order
        Probability that the whole order is as predicted, of shape ``(r,)``.
    warnings
        What makes each doubtful; sentences without a full stop.
    """

    devices: tuple[str, ...]
    relative_to: str | None
    centre: Reals
    low: Reals
    high: Reals
    level: float
    reached: Reals
    order: Integers
    fastest: Reals
    same_order: Reals
    warnings: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.centre)

    def in_order(self, row: int) -> tuple[str, ...]:
        """The devices of a run, fastest first."""
        return tuple(self.devices[place] for place in self.order[row])


def check_level(level: float) -> None:
    """Refuse what is no probability of an interval.

    Raises
    ------
    InputError
        If it is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise InputError(f"level: expected a probability between 0 and 1, found {level:g}")


def forecast_of(
    devices: Sequence[str],
    predicted: Reals,
    sources: Sequence[str],
    held_out: HeldOut,
    *,
    relative_to: str | None = None,
    level: float = 0.9,
    warnings: Sequence[Sequence[str]] | None = None,
) -> RelativeForecast:
    """Put intervals and probabilities to predicted vectors.

    Intervals are conformal (see `HeldOut.reach`): relative to a device, by the errors of such ratios.
    Probabilities are shares of the held-out errors, in which groups weigh the same: each error is taken as
    the one that was made this time. For both, the errors are those of what was counted on the same device,
    if there are any.

    Parameters
    ----------
    devices
        Keys of the ``d`` devices.
    predicted
        Predicted vectors, of shape ``(r, d)``, relative to whatever.
    sources
        Device that each run was counted on, of length ``r``.
    held_out
        Errors on groups that were left out.
    relative_to
        Device that times are to be relative to; the slowest of each run by default.
    level
        Probability that intervals are to hold.
    warnings
        What makes each doubtful already; that there are too few groups is added.

    Raises
    ------
    InputError
        If the device is unknown, the level no probability, or a predicted value no positive number.
    """
    check_level(level)
    if relative_to is not None and relative_to not in devices:
        raise InputError(f"relative_to: expected one of {', '.join(devices)}, found {relative_to!r}")
    if not (np.isfinite(predicted) & (predicted > 0)).all():
        raise InputError("model: expected it to predict numbers above 0, found others")
    base = None if relative_to is None else list(devices).index(relative_to)
    logs = np.log(predicted)
    logs -= logs.max(axis=1, keepdims=True) if base is None else logs[:, [base]]
    order = np.argsort(logs, axis=1, kind="stable").astype(np.int64)
    reach, fastest = np.empty_like(logs), np.empty_like(logs)
    same_order, reached = np.empty(len(logs)), np.empty(len(logs))
    for source in dict.fromkeys(sources):
        rows = np.flatnonzero([each == source for each in sources])
        errors = held_out.of_source(source)
        reach[rows] = errors.reach(level, base)
        reached[rows] = min(level, errors.most_level)
        for row in rows:
            fastest[row], same_order[row] = _shares(logs[row], order[row], errors)
    most = np.inf if base is not None else 1.0
    said = warnings if warnings is not None else [()] * len(logs)
    return RelativeForecast(
        devices=tuple(devices),
        relative_to=relative_to,
        centre=np.exp(logs),
        low=np.exp(logs - reach),
        high=np.minimum(np.exp(logs + reach), most),
        level=level,
        reached=reached,
        order=order,
        fastest=fastest,
        same_order=same_order,
        warnings=tuple((*one, *_too_few(level, sure)) for one, sure in zip(said, reached, strict=True)),
    )


def _shares(logs: Reals, order: Integers, errors: HeldOut) -> tuple[Reals, float]:
    """How often each device is the fastest, and the order the same, if an error is one of those."""
    truths = logs - errors.log_error
    best = truths == truths.min(axis=1, keepdims=True)
    same = (np.diff(truths[:, order], axis=1) >= 0).all(axis=1)
    shares = errors.weights @ (best / best.sum(axis=1, keepdims=True))
    return shares / shares.sum(), min(float(errors.weights @ same), 1.0)


def _too_few(level: float, reached: float) -> tuple[str, ...]:
    if reached >= level:
        return ()
    groups = round(reached / (1 - reached))
    needed = int(np.ceil(level / (1 - level) - 1e-6))
    return (
        f"the intervals are {100 * reached:.3g} % intervals: the model was tested on {groups} groups of runs "
        f"that it had not seen, and {100 * level:g} % takes {needed}",
    )
