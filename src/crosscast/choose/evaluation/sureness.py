"""How far metrics and their differences would move with other programs: a bootstrap over programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.choose.evaluation.metrics import (
    HIGHER_IS_BETTER,
    LOWER_IS_BETTER,
    METRICS,
    metric_values,
)
from crosscast.evaluate.confidence import DRAWS, Confidence, Difference, difference_of, interval_of

__all__ = ["Tallied", "bootstrap_choices"]


@dataclass(frozen=True, eq=False)
class Tallied:
    """What is drawn from.

    Parameters
    ----------
    method
        Name of the method.
    baseline
        Whether others are compared with it.
    tallies
        ``(p, 9)`` Its tallies by program.
    """

    method: str
    baseline: bool
    tallies: Reals


def bootstrap_choices(methods: Sequence[Tallied], seed: int, draws: int = DRAWS) -> tuple[Confidence, ...]:
    """Draw the programs again and again, with replacement, and evaluate each draw.

    All methods see the same draws, so differences between them are of pairs. Draws in which no case defines a
    metric do not count for it. Cases of a program stay together, as they resemble each other.

    Parameters
    ----------
    methods
        The methods, all with the same programs.
    seed
        Start of the random numbers.
    draws
        Number of draws.

    Returns
    -------
    tuple
        For each method, intervals of all metrics, and differences from the baseline that is best in each
        metric; none for the baselines themselves.
    """
    count = len(methods[0].tallies)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float64)
    drawn = [metric_values(method.tallies, weights) for method in methods]
    plain = [metric_values(method.tallies, np.ones((1, count))) for method in methods]
    baselines = [place for place, method in enumerate(methods) if method.baseline]
    answers = []
    for place, method in enumerate(methods):
        intervals = {name: each for name in METRICS if (each := interval_of(drawn[place][name])) is not None}
        differences: dict[str, Difference] = {}
        for name in METRICS if not method.baseline else ():
            rivals = [rival for rival in baselines if np.isfinite(plain[rival][name][0])]
            if name in HIGHER_IS_BETTER | LOWER_IS_BETTER and rivals:
                sign = 1 if name in HIGHER_IS_BETTER else -1
                best = max(rivals, key=lambda rival: sign * plain[rival][name][0])
                found = difference_of(
                    methods[best].method,
                    float(plain[place][name][0] - plain[best][name][0]),
                    drawn[place][name] - drawn[best][name],
                    sign,
                )
                differences |= {name: found} if found else {}
        answers.append(Confidence(intervals, differences))
    return tuple(answers)
