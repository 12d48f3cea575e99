"""Which features decide in a decision tree, for bags with a benchmark that it has not seen (section 6.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.evaluate.corun.splits import folds_of
from crosscast.evaluate.corun.studies.alone_quantity import fewest_members, performance_of, told_alone
from crosscast.evaluate.corun.studies.not_made import NotMade
from crosscast.evaluate.corun.task import with_bags
from crosscast.evaluate.processes import one_thread
from crosscast.predict.corun.published.combinations import PERFORMANCE, POWER
from crosscast.predict.corun.published.decision_paths import decision_paths
from crosscast.predict.corun.published.features import unknown_features
from crosscast.predict.corun.published.model import Published
from crosscast.tables.corun.view import CoRuns

__all__ = ["PathStudy", "performance_paths", "power_paths"]

_TARGETS = {"time": "time_s", "slowdown": "slowdown", "power": "power_w"}
_LEAST = 3


@dataclass(frozen=True, eq=False)
class PathStudy:
    """Paths of ``n`` bags, each through a tree that was fitted without a benchmark of it.

    Parameters
    ----------
    quantity
        What the trees predict.
    as_published
        Whether they have the features of the paper alone; else all that is known.
    features
        Names of ``k`` features, those that decide most often first.
    times
        Splits at each on the path of each bag, of shape ``(n, k)``: figure 10.
    """

    quantity: str
    as_published: bool
    features: tuple[str, ...]
    times: Integers

    @property
    def share(self) -> Reals:
        """Share of the bags on whose path each feature is, of shape ``(k,)``: figure 9."""
        share: Reals = (self.times > 0).mean(axis=0)
        return share

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        mean = self.times.mean(axis=0)
        return {
            "quantity": self.quantity,
            "as_published": self.as_published,
            "bags": len(self.times),
            "features": {
                name: {"share": float(self.share[place]), "times": float(mean[place])}
                for place, name in enumerate(self.features)
            },
        }


def performance_paths(co_runs: CoRuns, seed: int) -> PathStudy | NotMade:
    """Paths of bags of the fewest members through trees for their time, or else for slowdowns.

    Parameters
    ----------
    co_runs
        Bags of one device.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If a tree cannot be fitted.
    """
    size = fewest_members(co_runs)
    return _paths(co_runs, performance_of(co_runs, size), size, seed)


def power_paths(co_runs: CoRuns, seed: int) -> PathStudy | NotMade:
    """The same for power, which the paper does not look at; parameters and errors as there."""
    return _paths(co_runs, "power", fewest_members(co_runs), seed)


def _paths(co_runs: CoRuns, quantity: str, size: int, seed: int) -> PathStudy | NotMade:
    told = told_alone(co_runs, quantity, [size])
    if len(told.applications) < _LEAST:
        return NotMade(f"paths take at least {_LEAST} applications with bags of known {quantity}")
    published = (POWER if quantity == "power" else PERFORMANCE).features
    as_published = not unknown_features(published, [bag.solos for bag in told.bags])
    model = Published("decision-tree", others=not as_published)
    parts = []
    with one_thread("following decision trees"):
        for fold in folds_of(told.bags, "leave-benchmark-out", seed):
            predictor = model.fit(with_bags(told, fold.train), seed).of_size(size)
            bags = [told.bags[place].solos for place in fold.test.tolist()]
            parts.append(decision_paths(predictor, bags, _TARGETS[quantity]))
    names = list(dict.fromkeys(name for part in parts for name in part.features))
    # Where no training bag told a feature, no tree split at it.
    times = np.concatenate(
        [
            np.stack(
                [
                    part.times[:, part.features.index(name)]
                    if name in part.features
                    else np.zeros(len(part.times), np.int64)
                    for name in names
                ],
                axis=1,
            )
            for part in parts
        ]
    )
    order = sorted(range(len(names)), key=lambda place: (-times[:, place].mean(), place))
    return PathStudy(quantity, as_published, tuple(names[place] for place in order), times[:, order])
