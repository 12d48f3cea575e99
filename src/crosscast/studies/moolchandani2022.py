"""A study that a dataset does not allow, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluation.corun import (
    CoRunFold,
    CoRunResult,
    CoRunTask,
    answers_of,
    evaluate_corun,
    folds_of,
    measured,
    results_of,
    with_mixes,
)
from crosscast.evaluation.processes import Progress, one_thread
from crosscast.predict.corun.forecast import CoRunModel, CoRunPredictor
from crosscast.predict.corun.moolchandani2022 import (
    CONCURRENT,
    FAIRNESS,
    FIGURE_8,
    INDIVIDUAL,
    KINDS,
    PERFORMANCE,
    POWER,
    TABLE_7,
    Combination,
    Grown,
    Published,
    SizePredictor,
    other_features,
    unknown_features,
)
from crosscast.predict.trees import Trees
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns


@dataclass(frozen=True)
class NotMade:
    """What stands in the place of a study that cannot be made."""

    reason: str  # Why, as a sentence without a full stop

    def to_dict(self) -> dict[str, str]:
        """As an object of JSON."""
        return {"not_made": self.reason}


_LEAST = 5


def fewest_members(co_runs: CoRuns) -> int:
    """Members of the smallest bags: two, where there are pairs, as in sections 6 and 7."""
    return min((len(bag.members) for bag in co_runs.bags if len(bag.members) > 1), default=2)


def told_alone(co_runs: CoRuns, quantity: str, sizes: Sequence[int]) -> CoRuns:
    """The bags of some sizes of which a quantity is known, without what else is measured."""
    kept = [bag for bag in co_runs.bags if len(bag.members) in sizes and _known([bag], quantity)]
    return replace(co_runs, bags=tuple(_only(bag, quantity) for bag in kept))


def performance_of(co_runs: CoRuns, size: int) -> str:
    """What tells how fast bags of a size are: their time, as published, or the slowdowns of their members."""
    bags = [bag for bag in co_runs.bags if len(bag.members) == size]
    return "time" if _known(bags, "time") >= max(_LEAST, len(bags) // 2) else "slowdown"


def _known(bags: Sequence[Bag], quantity: str) -> int:
    values = measured(bags, quantity).value
    return int((values == values).sum())


def _only(bag: Bag, quantity: str) -> Bag:
    return replace(
        bag,
        members=tuple(
            replace(member, slowdown=member.slowdown if quantity == "slowdown" else None)
            for member in bag.members
        ),
        time_s=bag.time_s if quantity == "time" else None,
        power_w=bag.power_w if quantity == "power" else None,
    )


_MODELS = ("decision-tree", "boosting", "linear", "mlp", "forest", "svr")

_ROWS = (
    (4.65, 3.9, 7.52, 10, 3.87, 6.7),
    (6.75, 7.5, 10.95, 13, 8.1, 6.7),
    (4.65, 4.22, 6.2, 9.3, 3.72, 7.2),
    (4.55, 3.78, 7.48, 10.92, 3.8, 6.69),
    (4.49, 3.83, 4.57, 8.43, 3.95, 6.6),
    (4.41, 3.76, 4.53, 7.58, 3.88, 6.65),
    (13.5, 11.05, 10.3, 10.48, 11.34, 7.29),
    (9.42, 8.23, 21.17, 11.64, 8.75, 7.09),
    (9.8, 8.76, 12.67, 24.83, 8.89, 7.47),
    (8.68, 7.27, 16, 11.55, 7.49, 7.44),
    (8.09, 7.09, 16.44, 11.93, 7.44, 7.45),
    (9.85, 9.22, 18.2, 21.9, 9.2, 7.47),
    (13.82, 9.08, 12.67, 20.22, 10.76, 7.56),
    (8.8, 7.73, 13.39, 14.38, 7.56, 7.47),
    (9.9, 8.36, 23.4, 13.16, 8.6, 6.94),
    (4.3, 3.78, 7.14, 9.49, 3.59, 6.65),
    (4.65, 3.97, 5.40, 8.40, 3.41, 7.08),
    (4.83, 4.10, 6.39, 10.63, 3.68, 7.05),
    (4.75, 3.78, 16.66, 12.71, 3.66, 6.97),
    (4.17, 3.62, 16.86, 13.95, 3.66, 7.01),
)

REPORTED_MAPE: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        combination.name: MappingProxyType(dict(zip(_MODELS, row, strict=True)))
        for combination, row in zip(TABLE_7, _ROWS, strict=True)
    }
)
"""Mean absolute percentage error of power by combination and kind of model (table 7).

Two applications on a Tesla T4, leaving one benchmark out; in per cent.
"""


@dataclass(frozen=True)
class Combined:
    """A `CoRunModel` that is named after its features, too."""

    kind: str  # Kind of regressor; see `crosscast.predict.corun.moolchandani2022.KINDS`
    combination: Combination  # Its features

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{self.kind} {self.combination.name}"

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunPredictor:
        """Fit it; see `CoRunModel.fit`."""
        return Published(self.kind, self.combination, self.combination).fit(co_runs, seed)


SPLITS = ("leave-benchmark-out", "random-80-20")
"""Sections 7.2 and 7.4."""

EVERYTHING = "all that is known"
"""The combination of whatever a dataset has, which is not published."""

_LEAST_APPLICATIONS, _LEAST_BAGS = 3, 5


@dataclass(frozen=True, eq=False)
class CombinationStudy:
    """Errors of six regressors with each combination of features."""

    quantity: str  # What is predicted: `time`, `slowdown` or `power`
    members: int  # Members of the bags, and how many bags there are
    bags: int
    kinds: tuple[str, ...]  # Kinds of regressors; see `crosscast.predict.corun.moolchandani2022.KINDS`
    combinations: tuple[Combination, ...]  # Combinations that could be made, then two of what there is
    # Features that are not known, by name of the combination that could not be made for want of them
    missing: Mapping[str, tuple[str, ...]]
    # By split, name of the combination, and kind of regressor
    results: Mapping[tuple[str, str, str], CoRunResult]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the combinations."""
        return tuple(each.name for each in self.combinations)

    def mape(self, split: str) -> Reals:
        """Mean absolute relative errors, of shape ``(combinations, kinds)``."""
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


@dataclass(frozen=True, eq=False)
class DecisionPaths:
    """How often the features of a tree decide on the way of ``b`` bags."""

    features: tuple[str, ...]  # Names of the `k` features, whichever member they are of
    times: Integers  # Splits at each feature on the path of each bag, of shape `(b, k)`: figure 10

    @property
    def share(self) -> Reals:
        """Share of the bags on whose path each feature is, of shape ``(k,)``: figure 9."""
        share: Reals = (self.times > 0).mean(axis=0)
        return share


def decision_paths(
    predictor: SizePredictor, bags: Sequence[tuple[Solo, ...]], target: str = "time_s"
) -> DecisionPaths:
    """Follow bags through the decision tree of a target."""
    fitted = predictor.targets.get(target)
    if fitted is None or not isinstance(fitted.regressor, Grown):
        raise InputError(f"{target}: expected a target that a decision tree predicts, found none")
    trees = fitted.regressor.trees
    if (trees.root >= 0).sum() > 1:
        raise InputError(f"{target}: expected one decision tree, found {int((trees.root >= 0).sum())}")
    rows, _ = predictor.rows(bags)
    titles = predictor.columns.titles
    seen = rows[:, 0, fitted.places(len(titles), predictor.members)]
    passed = splits_passed(trees, seen).reshape(len(bags), predictor.members, -1).sum(axis=1)
    return DecisionPaths(tuple(titles[column] for column in fitted.columns), passed)


def splits_passed(trees: Trees, rows: Reals) -> Integers:
    """How many splits at each feature each row passes, of all trees together. Of shape ``(n, f)``."""
    singles = rows.astype(np.float32)
    passed = np.zeros(rows.shape, dtype=np.int64)
    row = np.tile(np.arange(len(rows)), len(trees.root))
    at = np.repeat(trees.root, len(rows))
    while True:
        row, at = row[at >= 0], at[at >= 0]
        if not len(at):
            return passed
        feature = trees.feature[at]
        np.add.at(passed, (row, feature), 1)
        left = singles[row, feature] <= trees.threshold[at]
        at = np.where(left, trees.left[at], trees.right[at])


_TARGETS = {"time": "time_s", "slowdown": "slowdown", "power": "power_w"}
_LEAST_PATHS = 3


@dataclass(frozen=True, eq=False)
class PathStudy:
    """Paths of ``n`` bags, each through a tree that was fitted without a benchmark of it."""

    quantity: str  # What the trees predict
    as_published: bool  # Whether they have the features of the paper alone; else all that is known
    features: tuple[str, ...]  # Names of `k` features, those that decide most often first
    times: Integers  # Splits at each on the path of each bag, of shape `(n, k)`: figure 10

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
    """Paths of bags of the fewest members through trees for their time, or else for slowdowns."""
    size = fewest_members(co_runs)
    return _paths(co_runs, performance_of(co_runs, size), size, seed)


def power_paths(co_runs: CoRuns, seed: int) -> PathStudy | NotMade:
    """The same for power, which the paper does not look at; parameters and errors as there."""
    return _paths(co_runs, "power", fewest_members(co_runs), seed)


def _paths(co_runs: CoRuns, quantity: str, size: int, seed: int) -> PathStudy | NotMade:
    told = told_alone(co_runs, quantity, [size])
    if len(told.applications) < _LEAST_PATHS:
        return NotMade(f"paths take at least {_LEAST} applications with bags of known {quantity}")
    published = (POWER if quantity == "power" else PERFORMANCE).features
    as_published = not unknown_features(published, [bag.solos for bag in told.bags])
    model = Published("decision-tree", others=not as_published)
    parts = []
    with one_thread("following decision trees"):
        for fold in folds_of(told.bags, "leave-benchmark-out", seed):
            predictor = model.fit(with_mixes(told, fold.train), seed).of_size(size)
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


OWN, ALL = "bags of that size", "bags of all sizes"
"""What models were fitted to; the third is `fitted_to_fewest`."""

_SPLIT = "leave-benchmark-out"
_SHOWN = ("slowdown", "time", "power")


@dataclass(frozen=True, eq=False)
class SizeResult:
    """How good a model is at bags of a size."""

    fitted_to: str  # Which of the bags without the benchmark it was fitted to
    result: CoRunResult  # Its errors at one quantity


@dataclass(frozen=True, eq=False)
class SizeStudy:
    """Models on bags of several sizes, each benchmark left out."""

    sizes: tuple[int, ...]  # Members of the bags, ascending
    results: tuple[SizeResult, ...]  # By size, what the model was fitted to, quantity, and model
    of_one_size: tuple[str, ...]  # Models that predict bags of the sizes that they were fitted to alone

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {
            "sizes": list(self.sizes),
            "one_predictor_a_size": list(self.of_one_size),
            "results": [
                {
                    "model": each.result.model,
                    "fitted_to": each.fitted_to,
                    "bag_size": each.result.bag_size,
                    "quantity": each.result.quantity,
                    "rows": each.result.rows,
                    "mape": each.result.mape,
                }
                for each in self.results
            ],
        }


def fitted_to_fewest(size: int) -> str:
    """What a model was fitted to that is asked for larger bags."""
    return f"bags of {size} alone"


def sizes_study(
    co_runs: CoRuns,
    models: Sequence[CoRunModel],
    seed: int,
    *,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> SizeStudy | NotMade:
    """Fit models to bags of the size that is asked for, of all sizes, and of the smallest size alone."""
    counts = np.array([len(bag.members) for bag in co_runs.bags], dtype=np.int64)
    sizes = tuple(size for size in np.unique(counts).tolist() if size > 1)
    if len(sizes) < 2:
        found = f"all have {sizes[0]} members" if sizes else "there are none"
        return NotMade(f"sizes take bags of at least two sizes, and {found}")
    folds = folds_of(co_runs.bags, _SPLIT, seed)
    flexible = {model.name: _any_size(co_runs, model, counts == sizes[0], sizes[1]) for model in models}
    asked = []
    for model in models:
        for size in sizes:
            asked.append((model, OWN, size, _folds(folds, counts == size, counts == size)))
            if flexible[model.name]:
                asked.append((model, ALL, size, _folds(folds, counts > 1, counts == size)))
                if size > sizes[0]:
                    few = _folds(folds, counts == sizes[0], counts == size)
                    asked.append((model, fitted_to_fewest(sizes[0]), size, few))
    tasks = [CoRunTask(model, fold, _SPLIT, 0, None, seed) for model, _, _, parts in asked for fold in parts]
    answers = iter(answers_of(co_runs, tasks, progress=progress, cache=cache, jobs=jobs))
    results = []
    for model, fitted_to, _, parts in asked:
        scored = results_of(co_runs, model.name, False, _SPLIT, 0, parts, [next(answers) for _ in parts])
        results += [
            SizeResult(fitted_to, each) for each in scored if each.bag_size and each.quantity in _SHOWN
        ]
    order = {name: place for place, name in enumerate(dict.fromkeys(model.name for model in models))}
    ways = (OWN, ALL, fitted_to_fewest(sizes[0]))
    results.sort(
        key=lambda each: (
            _SHOWN.index(each.result.quantity),
            order[each.result.model],
            ways.index(each.fitted_to),
            each.result.bag_size or 0,
        )
    )
    single = tuple(name for name, every in flexible.items() if not every)
    return SizeStudy(sizes, tuple(results), single)


def _any_size(co_runs: CoRuns, model: CoRunModel, smallest: Any, size: int) -> bool:
    """Whether a model that was fitted to the smallest bags predicts larger ones."""
    larger = next(bag for bag in co_runs.bags if len(bag.members) == size)
    with one_thread("fitting a model"):
        fitted = model.fit(with_mixes(co_runs, np.flatnonzero(smallest)), 0)
        try:
            fitted.predict([larger.solos])
        except InputError:
            return False
    return True


def _folds(folds: Sequence[CoRunFold], train: Any, test: Any) -> list[CoRunFold]:
    """The same folds with some of the bags; none where nothing is left to fit to, or to test on."""
    cut = [CoRunFold(fold.held_out, _where(fold.train, train), _where(fold.test, test)) for fold in folds]
    return [fold for fold in cut if len(fold.train) and len(fold.test)]


def _where(places: Integers, chosen: Any) -> Integers:
    kept: Integers = places[chosen[places]]
    return kept
