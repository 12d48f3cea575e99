"""The metrics of choices under power caps: those of the published table, and a score that joins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from crosscast.arrays import Reals
from crosscast.choose.evaluation.cases import Cases
from crosscast.choose.limit import GUARD, within_cap

__all__ = ["HIGHER_IS_BETTER", "LOWER_IS_BETTER", "METRICS", "Metrics", "metric_values", "tallies_of"]

_TALLIED = 9

Changes = Reals | np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass(frozen=True)
class Metrics:
    """How good choices are, as fractions; ``None`` where no case defines one (Table III of paper 002).

    A case is under the limit if the measured power keeps to the cap, else over it. Performance relative to
    the oracle is the oracle's time over that of the choice; power relative to it the choice's power over the
    oracle's. Cases are weighted as `crosscast.choose.evaluation.cases.cases_of` says, programs equally.

    Parameters
    ----------
    under_limit_share
        Share of the cases that are under the limit.
    under_performance, under_power
        Performance and power relative to the oracle's, mean over the cases under the limit.
    over_power, over_performance
        The same over the cases over the limit.
    score
        Mean of performance relative to the oracle over all cases, with those over the limit counting 0: the
        share under the limit times the performance there.
    extra_runs
        Changes of configuration after the first one, mean.
    violations
        Share of the cases that are over the limit.
    under_limit_share_within_1pct, under_performance_within_1pct
        Share of the cases that are at most 1 % above the cap, and the performance there, which may be more
        than the oracle's.
    """

    under_limit_share: float | None = None
    under_performance: float | None = None
    under_power: float | None = None
    over_power: float | None = None
    over_performance: float | None = None
    score: float | None = None
    extra_runs: float | None = None
    violations: float | None = None
    under_limit_share_within_1pct: float | None = None
    under_performance_within_1pct: float | None = None

    @classmethod
    def of(cls, tallies: Reals) -> Metrics:
        """Metrics of tallies of shape ``(p, 9)``, with all programs weighing the same."""
        values = metric_values(tallies, np.ones((1, len(tallies))))
        return cls(
            **{name: float(each[0]) if np.isfinite(each[0]) else None for name, each in values.items()}
        )


METRICS = tuple(field.name for field in fields(Metrics))
"""Names of all metrics."""

HIGHER_IS_BETTER = frozenset(
    {
        "under_limit_share",
        "under_performance",
        "score",
        "under_limit_share_within_1pct",
        "under_performance_within_1pct",
    }
)
LOWER_IS_BETTER = frozenset({"over_power", "extra_runs", "violations"})
"""The power under the limit and the performance over it are neither."""


def tallies_of(cases: Cases, time_s: Reals, power_w: Reals, changes: Changes) -> Reals:
    """What metrics are made of, for each program.

    Parameters
    ----------
    cases
        The ``m`` cases of ``p`` programs.
    time_s, power_w
        ``(..., m)`` Time and power of what was chosen.
    changes
        ``(..., m)`` Changes of configuration.

    Returns
    -------
    ndarray
        ``(..., p, 9)`` Weighted sums over the cases of a program: those under the limit, their performance
        and power; those over it, their power and performance; changes; those within 1 %, their performance.
    """
    performance = cases.oracle_time_s / time_s
    power = power_w / cases.power_cap
    under = within_cap(power_w, cases.power_cap)
    close = within_cap(power_w, cases.power_cap, GUARD)
    columns = [
        under,
        np.where(under, performance, 0.0),
        np.where(under, power, 0.0),
        ~under,
        np.where(under, 0.0, power),
        np.where(under, 0.0, performance),
        np.broadcast_to(changes, under.shape),
        close,
        np.where(close, performance, 0.0),
    ]
    assert len(columns) == _TALLIED
    tallies: Reals = cases.within_programs @ np.stack([column.astype(np.float64) for column in columns], -1)
    return tallies


def metric_values(tallies: Reals, weights: Reals) -> Mapping[str, Reals]:
    """Metrics with the programs weighted in `b` ways.

    Parameters
    ----------
    tallies
        ``(p, 9)`` As `tallies_of` gives them.
    weights
        ``(b, p)`` How often each program is there.

    Returns
    -------
    Mapping
        Arrays of shape ``(b,)`` by name; not a number where no case defines one.
    """
    sums = weights @ tallies
    under, performance, power, over, over_power, over_performance, changes, close, close_performance = sums.T
    total = weights.sum(axis=1)
    return {
        "under_limit_share": _share(under, total),
        "under_performance": _over(performance, under),
        "under_power": _over(power, under),
        "over_power": _over(over_power, over),
        "over_performance": _over(over_performance, over),
        "score": performance / total,
        "extra_runs": changes / total,
        "violations": _share(over, total),
        "under_limit_share_within_1pct": _share(close, total),
        "under_performance_within_1pct": _over(close_performance, close),
    }


def _share(sums: Reals, total: Reals) -> Reals:
    # Weights of cases may add up to a little more than 1.
    shares: Reals = np.minimum(sums / total, 1.0)
    return shares


def _over(sums: Reals, weights: Reals) -> Reals:
    values = np.full(sums.shape, np.nan)
    np.divide(sums, weights, out=values, where=weights > 0)
    return values
