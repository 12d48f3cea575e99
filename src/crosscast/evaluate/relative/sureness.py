"""How far scores would move with other applications, kernels or sizes: a bootstrap over groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.evaluate.confidence import DRAWS, Confidence, Difference, difference_of, interval_of
from crosscast.evaluate.relative.metrics import RelativeMetrics, RowScores, metrics_of

__all__ = ["RESAMPLED", "Scored", "confidences"]

RESAMPLED = {"mae": -1, "same_order": 1, "top1": 1, "regret": -1, "typical_factor": -1}
"""Metrics with intervals, and whether more (1) or less (-1) of them is better."""


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of a model.

    Parameters
    ----------
    name
        Its name.
    baseline
        Whether others are compared with it.
    scores
        Scores of ``r`` rows.
    """

    name: str
    baseline: bool
    scores: RowScores


def confidences(
    models: Sequence[Scored], groups: Sequence[str], weights: Reals, seed: int, draws: int = DRAWS
) -> tuple[Confidence, ...]:
    """Draw the groups again and again, with replacement, and score each draw.

    All models see the same draws, so differences between them are of pairs. Rows of a group stay together:
    they resemble each other, and intervals that took them for independent would be too narrow. With a single
    group there are no intervals.

    Parameters
    ----------
    models
        Models, all scored on the same rows.
    groups
        Group of each row, of length ``r``.
    weights
        What each row counts, of shape ``(r,)``.
    seed
        Start of the random numbers.
    draws
        Number of draws.

    Returns
    -------
    tuple
        For each model, what is sure of it.
    """
    names, group = np.unique(np.array(groups), return_inverse=True)
    count = len(names)
    if count < 2:
        return tuple(Confidence({}) for _ in models)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float64)
    values = [_drawn(model.scores, group.astype(np.int64), weights, drawn) for model in models]
    whole = [metrics_of(model.scores, weights) for model in models]
    baselines = [place for place, model in enumerate(models) if model.baseline]
    answers = []
    for place, model in enumerate(models):
        intervals = {
            metric: interval
            for metric, each in values[place].items()
            if (interval := interval_of(each)) is not None
        }
        differences = {
            metric: difference
            for metric in (RESAMPLED if baselines and not model.baseline else ())
            if (difference := _difference(metric, place, baselines, models, whole, values)) is not None
        }
        answers.append(Confidence(intervals, differences))
    return tuple(answers)


def _drawn(scores: RowScores, place: Integers, weights: Reals, drawn: Reals) -> dict[str, Reals]:
    """Each metric in each draw, of shape ``(draws,)``."""

    def mean(values: Reals) -> Reals:
        count = drawn.shape[1]
        over: Reals = drawn @ np.bincount(place, weights * values, minlength=count)
        under: Reals = drawn @ np.bincount(place, weights, minlength=count)
        return over / under

    return {
        "mae": mean(scores.absolute_error),
        "same_order": mean(scores.same_order),
        "top1": mean(scores.top1),
        "regret": mean(scores.regret),
        "typical_factor": np.exp(mean(scores.log_error)),
    }


def _difference(
    metric: str,
    place: int,
    baselines: Sequence[int],
    models: Sequence[Scored],
    whole: Sequence[RelativeMetrics],
    values: Sequence[dict[str, Reals]],
) -> Difference | None:
    """The difference of a model from the baseline that is best in a metric."""
    sign = RESAMPLED[metric]
    best = max(baselines, key=lambda baseline: sign * getattr(whole[baseline], metric))
    apart = getattr(whole[place], metric) - getattr(whole[best], metric)
    return difference_of(models[best].name, apart, values[place][metric] - values[best][metric], sign)
