"""How far scores and their differences would move with other applications: a bootstrap over applications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluate.confidence import DRAWS, Confidence, Difference, Interval, difference_of, interval_of
from crosscast.evaluate.protocol import Evaluation, Result, application_names
from crosscast.evaluate.scores import HIGHER_IS_BETTER, LOWER_IS_BETTER, score_values

__all__ = ["BASELINES", "bootstrap"]

BASELINES = ("device-mean", "nearest")
"""Names of the models that anything else must beat."""


def bootstrap(
    evaluation: Evaluation, *, baselines: Sequence[str] = BASELINES, draws: int = DRAWS
) -> tuple[Confidence, ...]:
    """Draw the applications again and again, with replacement, and score each draw.

    All results see the same draws, so differences between them are of pairs. Draws without any value of a
    score do not count for it. Kernels and cells of an application stay together: they resemble each other,
    and intervals that took them for independent would be too narrow.

    Parameters
    ----------
    evaluation
        What models forecast.
    baselines
        Names of the models to compare with; those that are not in the evaluation do not matter.
    draws
        Number of draws.

    Returns
    -------
    tuple
        For each result, what is sure of it.

    Raises
    ------
    InputError
        If `draws` is not positive.
    """
    if draws < 1:
        raise InputError(f"draws: expected at least 1, found {draws}")
    count = len(application_names(evaluation.grid))
    rng = np.random.default_rng(evaluation.seed)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float64)
    drawn = [score_values(result.tallies, weights) for result in evaluation.results]
    answers = []
    for result, values in zip(evaluation.results, drawn, strict=True):
        rivals = [
            (other, of_other)
            for other, of_other in zip(evaluation.results, drawn, strict=True)
            if other.model in baselines and other.probes == result.probes
        ]
        known = result.model not in baselines and rivals
        answers.append(Confidence(_intervals(values), _differences(result, values, rivals) if known else {}))
    return tuple(answers)


def _intervals(values: Mapping[str, Reals]) -> dict[str, Interval]:
    return {name: found for name, drawn in values.items() if (found := interval_of(drawn)) is not None}


def _differences(
    result: Result, drawn: Mapping[str, Reals], rivals: Sequence[tuple[Result, Mapping[str, Reals]]]
) -> dict[str, Difference]:
    found = {}
    for name in sorted(LOWER_IS_BETTER | HIGHER_IS_BETTER):
        own = getattr(result.scores, name)
        there = [(score, each) for each in rivals if (score := getattr(each[0].scores, name)) is not None]
        if own is None or not there:
            continue
        sign = 1 if name in HIGHER_IS_BETTER else -1
        score, (baseline, of_baseline) = max(there, key=lambda pair: sign * pair[0])
        both = np.isfinite(drawn[name]) & np.isfinite(of_baseline[name])
        difference = difference_of(
            baseline.model, own - score, drawn[name][both] - of_baseline[name][both], sign
        )
        if difference is not None:
            found[name] = difference
    return found
