"""Which features predict bags, by which regressor (paper 004, table 7 and figures 7, 8 and 11 to 15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluate.corun.protocol import evaluate_corun
from crosscast.evaluate.corun.result import CoRunResult
from crosscast.evaluate.corun.studies.alone_quantity import fewest_members, performance_of, told_alone
from crosscast.evaluate.corun.studies.combined import Combined
from crosscast.evaluate.corun.studies.not_made import NotMade
from crosscast.evaluate.processes import Progress
from crosscast.predict.corun.published.combinations import FIGURE_8, TABLE_7, Combination
from crosscast.predict.corun.published.features import (
    CONCURRENT,
    FAIRNESS,
    INDIVIDUAL,
    other_features,
    unknown_features,
)
from crosscast.predict.corun.published.table_6 import KINDS
from crosscast.tables.corun.view import CoRuns

__all__ = [
    "EVERYTHING",
    "SPLITS",
    "CombinationStudy",
    "performance_combinations",
    "power_combinations",
    "why_missing",
]

SPLITS = ("leave-benchmark-out", "random-80-20")
"""Sections 7.2 and 7.4."""

EVERYTHING = "all that is known"
"""The combination of whatever a dataset has, which is not published."""

_LEAST_APPLICATIONS, _LEAST_BAGS = 3, 5


@dataclass(frozen=True, eq=False)
class CombinationStudy:
    """Errors of six regressors with each combination of features.

    Parameters
    ----------
    quantity
        What is predicted: ``time``, ``slowdown`` or ``power``.
    members, bags
        Members of the bags, and how many bags there are.
    kinds
        Kinds of regressors; see `crosscast.predict.corun.published.table_6.KINDS`.
    combinations
        Combinations that could be made, then two of what there is.
    missing
        Features that are not known, by name of the combination that could not be made for want of them.
    results
        By split, name of the combination, and kind of regressor.
    """

    quantity: str
    members: int
    bags: int
    kinds: tuple[str, ...]
    combinations: tuple[Combination, ...]
    missing: Mapping[str, tuple[str, ...]]
    results: Mapping[tuple[str, str, str], CoRunResult]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the combinations."""
        return tuple(each.name for each in self.combinations)

    def mape(self, split: str) -> Reals:
        """Mean absolute percentage errors, of shape ``(combinations, kinds)``."""
        return np.array(
            [[self.results[split, name, kind].mape for kind in self.kinds] for name in self.names], np.float64
        )

    def by_benchmark(self) -> dict[str, Reals]:
        """The same where each benchmark is left out, by its name."""
        first = self.results[SPLITS[0], self.names[0], self.kinds[0]].by_group or {}
        return {
            group: np.array(
                [
                    [
                        (self.results[SPLITS[0], name, kind].by_group or {}).get(group, np.nan)
                        for kind in self.kinds
                    ]
                    for name in self.names
                ]
            )
            for group in first
        }

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "quantity": self.quantity,
            "bag_size": self.members,
            "bags": self.bags,
            "results": [
                {
                    "split": split,
                    "combination": name,
                    "features": list(next(each.features for each in self.combinations if each.name == name)),
                    "model": kind,
                    "mape": result.mape,
                    "by_group": result.by_group,
                }
                for (split, name, kind), result in self.results.items()
            ],
            "not_made": {name: why_missing(features) for name, features in self.missing.items()},
        }


def performance_combinations(
    co_runs: CoRuns,
    seed: int,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> CombinationStudy | NotMade:
    """The combinations of figure 8, those of figure 7 among them, for times of bags.

    Where no times of bags are known, for slowdowns.

    Parameters
    ----------
    co_runs
        Bags of one device; those of the fewest members are looked at, as sections 6 and 7 do.
    kinds
        Kinds of regressors.
    seed, progress, cache, jobs
        As `evaluate_corun` has them.

    Raises
    ------
    InputError
        If a model cannot be fitted, or the cache cannot be written.
    """
    size = fewest_members(co_runs)
    asked = [each for row in FIGURE_8 for each in row]
    quantity = performance_of(co_runs, size)
    return _study(co_runs, quantity, size, asked, "GPU_time", kinds, seed, progress, cache, jobs)


def power_combinations(
    co_runs: CoRuns,
    seed: int,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> CombinationStudy | NotMade:
    """The combinations of table 7, for power; parameters and errors as `performance_combinations`."""
    return _study(
        co_runs, "power", fewest_members(co_runs), TABLE_7, "GPU_power", kinds, seed, progress, cache, jobs
    )


def _study(
    co_runs: CoRuns,
    quantity: str,
    size: int,
    asked: Sequence[Combination],
    alone: str,
    kinds: Sequence[str],
    seed: int,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> CombinationStudy | NotMade:
    told = told_alone(co_runs, quantity, [size])
    if not told.bags:
        return NotMade(f"the {quantity} of no bag is known")
    if len(told.applications) < _LEAST_APPLICATIONS or len(told.bags) < _LEAST_BAGS:
        return NotMade(
            f"combinations take at least {_LEAST_APPLICATIONS} applications and {_LEAST_BAGS} bags of known "
            f"{quantity}"
        )
    solos = [bag.solos for bag in told.bags]
    missing = {each.name: left for each in asked if (left := unknown_features(each.features, solos))}
    combinations = [each for each in asked if each.name not in missing]
    combinations += _of_dataset(alone, solos)
    if not combinations:
        return NotMade("nothing is known of applications alone")
    models = [Combined(kind, each) for each in combinations for kind in kinds]
    results = {}
    for split in SPLITS:
        evaluation = evaluate_corun(
            told, models, split, level=None, seed=seed, progress=progress, cache=cache, jobs=jobs
        )
        by_name = {
            each.model: each
            for each in evaluation.results
            if each.quantity == quantity and each.bag_size is None
        }
        for model in models:
            results[split, model.combination.name, model.kind] = by_name[model.name]
    return CombinationStudy(
        quantity, size, len(told.bags), tuple(kinds), tuple(combinations), missing, results
    )


def why_missing(features: Sequence[str]) -> str:
    """Why a combination cannot be made without some features, as part of a sentence."""
    of_bags = [name for name in features if name in CONCURRENT]
    others = [name for name in features if name not in CONCURRENT]
    parts = []
    if of_bags:
        parts.append(f"{', '.join(of_bags)} only told by running the bag itself")
    if others:
        parts.append(f"{', '.join(others)} known of no application here")
    return "; ".join(parts)


def _of_dataset(alone: str, bags: Sequence[tuple[Any, ...]]) -> list[Combination]:
    """What the device itself tells of an application alone, and all that is known."""
    known = [
        *(name for name in (*INDIVIDUAL, FAIRNESS) if not unknown_features([name], bags)),
        *other_features(bags),
    ]
    single = [Combination(alone, (alone,))] if alone in known else []
    return [*single, *([Combination(EVERYTHING, tuple(known))] if set(known) - {alone} else [])]
