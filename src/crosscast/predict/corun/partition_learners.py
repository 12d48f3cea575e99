"""What is looked at of each member of a mix: how it and the others do at levels of MPS."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import State, arrays_of, kept_reals
from crosscast.predict.trees import Trees, joined, trees_of_forest, trees_of_tree


def feature_count(levels: int) -> int:
    """Number of features where a mix was run at so many levels."""
    return 5 * levels + 1


def own_and_mean(levels: int) -> slice:
    """Those of them that are the member's own and the mean of the others."""
    return slice(0, 2 * levels)


def features_of(shared: Reals, judged: Flags) -> Reals:
    """Features of the members of ``n`` mixes that are judged.

    Logarithms are taken, and centred for each member, as its times are known relative to each other alone. A
    member's features do not depend on the order of the others.
    A row for each member that is judged, in the order of mixes and members: its own centred logarithms, the
    mean, maximum, minimum and standard deviation of those of the others, and the share of the members that
    are judged; of shape ``(r, 5 l + 1)``.
    """
    if shared.ndim != 3 or shared.shape[1] < 2 or judged.shape != shared.shape[:2]:
        raise InputError(
            f"shared: expected the shape (n, k, l), k at least 2, and judged (n, k), found {shared.shape} "
            f"and {judged.shape}"
        )
    if not (np.isfinite(shared) & (shared > 0)).all():
        raise InputError("shared: expected times above 0, found others")
    logs = np.log(shared)
    logs -= logs.mean(axis=2, keepdims=True)
    members = [_features_of_member(logs, place) for place in range(shared.shape[1])]
    count = np.broadcast_to(judged.mean(axis=1)[:, None, None], (*judged.shape, 1))
    features: Reals = np.concatenate([np.stack(members, axis=1), count], axis=2)[judged]
    return features


def _features_of_member(logs: Reals, place: int) -> Reals:
    # Sorted, so that sums do not depend on the order in which others are.
    others = np.sort(np.delete(logs, place, axis=1), axis=1)
    return np.concatenate(
        [
            logs[:, place],
            others.mean(axis=1),
            others.max(axis=1),
            others.min(axis=1),
            others.std(axis=1),
        ],
        axis=1,
    )


@dataclass(frozen=True)
class Amount:
    """How much work a fit may be."""

    trees: int  # Trees of a forest
    tree_rows: int  # Members that trees and kernels learn from, drawn at random where there are more
    ridge_rows: int


@dataclass(frozen=True, eq=False)
class Rows:
    """Members to learn from."""

    features: Reals  # Of shape `(r, f)`; see `crosscast.predict.corun.partition_learners`
    levels: int  # Levels of MPS that these are of
    alone: Reals  # Relative times on parts, of shape `(r, s)`


class Learned(Protocol):
    """What was learned: a function of features."""

    @property
    def form(self) -> str:
        """What it is kept as."""
        ...

    def predict(self, features: Reals) -> Reals:
        """Relative times on parts, of shape ``(r, s)``."""
        ...

    def state(self) -> State:
        """Arrays that it is kept as."""
        ...


class Learner(Protocol):
    """A way to learn, with choices that are made by what it does on members it has not seen."""

    @property
    def name(self) -> str:
        """Name of the model on the command line, and in tables."""
        ...

    @property
    def choices(self) -> int:
        """Among how many ways there is to choose."""
        ...

    def fit(self, rows: Rows, amount: Amount, seed: int, choice: int) -> Learned:
        """Learn in one of the ways."""
        ...

    def tried(self, rows: Rows, features: Reals, amount: Amount, seed: int) -> Reals:
        """Learn in all of the ways, and predict others: of shape ``(choices, r, s)``."""
        ...


def some_rows(rows: Rows, most: int, seed: int) -> Rows:
    """At most so many of the rows, drawn at random."""
    count = len(rows.features)
    if count <= most:
        return rows
    chosen = np.sort(np.random.default_rng(seed).choice(count, most, replace=False))
    return Rows(rows.features[chosen], rows.levels, rows.alone[chosen])


_PENALTY = 0.3
_TINY = 1e-9


def fitted_ridge(rows: Rows, amount: Amount, seed: int, gamma: float) -> Ridge:
    """Fit it to some of the members."""
    from crosscast.predict.scikit import KernelRidge

    centre, spread = rows.features.mean(axis=0), rows.features.std(axis=0) + _TINY
    some = some_rows(rows, amount.ridge_rows, seed)
    vectors = (some.features - centre) / spread
    level = rows.alone.mean(axis=0)
    fitted = KernelRidge(alpha=_PENALTY, kernel="rbf", gamma=gamma).fit(vectors, some.alone - level)
    return Ridge(centre, spread, vectors, fitted.dual_coef_, level, gamma)


@dataclass(frozen=True, eq=False)
class Ridge:
    """A sum of Gaussians."""

    centre: Reals  # Mean and standard deviation of each feature, of shape `(f,)`
    spread: Reals
    vectors: Reals  # Standard scores of the `m` members that it learned from, of shape `(m, f)`
    slopes: Reals  # What likeness to each adds, of shape `(m, s)`
    level: Reals  # What is predicted far from all, of shape `(s,)`
    gamma: float  # How fast likeness falls with the squared distance

    def predict(self, features: Reals) -> Reals:
        """Relative times, held to 0 to 1, of shape ``(r, s)``."""
        scores = (features - self.centre) / self.spread
        sums = (scores**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1)
        squares = np.maximum(sums - 2.0 * (scores @ self.vectors.T), 0.0)
        values: Reals = np.exp(-self.gamma * squares) @ self.slopes + self.level
        return values.clip(0.0, 1.0)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {**vars(self), "gamma": np.array([self.gamma])}

    @classmethod
    def from_state(cls, state: State, levels: int) -> Ridge:
        """Make it from its arrays."""
        axes = {"centre": 1, "spread": 1, "vectors": 2, "slopes": 2, "level": 1, "gamma": 1}
        kept = {name: kept_reals(state, name, count) for name, count in axes.items()}
        gamma = kept.pop("gamma")
        found = cls(**kept, gamma=float(gamma[0]) if gamma.shape == (1,) else 0.0)
        features = feature_count(levels)
        fit = (
            found.centre.shape == found.spread.shape == (features,)
            and found.vectors.shape == (len(found.slopes), features)
            and found.level.shape == found.slopes.shape[1:]
        )
        if not fit or not (found.spread > 0).all() or not found.gamma > 0:
            raise InputError(
                f"model: vectors: expected arrays of a ridge on {features} features that fit each other, "
                f"found {found.vectors.shape} and others"
            )
        return found


def grown_median(rows: Rows, amount: Amount, seed: int) -> TreeMedian:
    """Grow trees whose leaves are single members."""
    from crosscast.predict.scikit import ExtraTreesRegressor

    some = some_rows(rows, amount.tree_rows, seed)
    forest = ExtraTreesRegressor(amount.trees, random_state=seed).fit(some.features, some.alone)
    return TreeMedian(joined([trees_of_tree(each) for each in forest.estimators_]))


@dataclass(frozen=True, eq=False)
class TreeMedian:
    """Trees, each of which proposes what a member that it has seen does.

    A mean over the proposals lies between jobs, where no job is; the median is of one of them, and the least
    wrong in absolute error.
    """

    trees: Trees

    def predict(self, features: Reals) -> Reals:
        """Median over the trees, of shape ``(r, s)``."""
        median: Reals = np.median(self.trees.each(features), axis=0)
        return median

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return self.trees.state()

    @classmethod
    def from_state(cls, state: State, levels: int) -> TreeMedian:
        """Make it from its arrays."""
        return cls(Trees.from_state(state, feature_count(levels)))


@dataclass(frozen=True)
class Constant:
    """The mean of each size of parts over the members."""

    name: ClassVar[str] = "mean"
    choices: ClassVar[int] = 1

    def fit(self, rows: Rows, amount: Amount, seed: int, choice: int = 0) -> LearnedConstant:
        """Take the mean; nothing is random."""
        return LearnedConstant(rows.alone.mean(axis=0))

    def tried(self, rows: Rows, features: Reals, amount: Amount, seed: int) -> Reals:
        """What it predicts, of shape ``(1, r, s)``."""
        return self.fit(rows, amount, seed).predict(features)[None]


@dataclass(frozen=True, eq=False)
class LearnedConstant:
    """Means, of shape ``(s,)``."""

    means: Reals
    form: ClassVar[str] = "constant"

    def predict(self, features: Reals) -> Reals:
        """The means, for each row."""
        return np.tile(self.means, (len(features), 1))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {"means": self.means}

    @classmethod
    def from_state(cls, state: State, levels: int) -> LearnedConstant:
        """Make it from its arrays."""
        return cls(kept_reals(state, "means", 1))


@dataclass(frozen=True)
class Forest:
    """The mean over the trees, with scikit-learn's defaults.

    Paper 004 has no parts of GPUs; this is its kind of model, on what is known of the member itself and of
    the others together.
    """

    name: ClassVar[str] = "published-forest"
    choices: ClassVar[int] = 1

    def fit(self, rows: Rows, amount: Amount, seed: int, choice: int = 0) -> LearnedForest:
        """Grow it."""
        from crosscast.predict.scikit import RandomForestRegressor

        some = some_rows(rows, amount.tree_rows, seed)
        forest = RandomForestRegressor(amount.trees, random_state=seed)
        forest.fit(some.features[:, own_and_mean(rows.levels)], some.alone)
        return LearnedForest(rows.levels, trees_of_forest(forest))

    def tried(self, rows: Rows, features: Reals, amount: Amount, seed: int) -> Reals:
        """What it predicts, of shape ``(1, r, s)``."""
        return self.fit(rows, amount, seed).predict(features)[None]


@dataclass(frozen=True, eq=False)
class LearnedForest:
    """Trees on those features of so many levels that the forest looks at."""

    levels: int
    trees: Trees
    form: ClassVar[str] = "forest"

    def predict(self, features: Reals) -> Reals:
        """Mean over the trees."""
        return self.trees.sum(features[:, own_and_mean(self.levels)])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return self.trees.state()

    @classmethod
    def from_state(cls, state: State, levels: int) -> LearnedForest:
        """Make it from its arrays."""
        return cls(levels, Trees.from_state(state, own_and_mean(levels).stop))


_GAMMAS = (0.01, 0.03, 0.1)
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_WAYS = tuple(product(_GAMMAS, _WEIGHTS))


@dataclass(frozen=True)
class Blend:
    """A mean of both, with a weight and a width of Gaussians that do best on what is left out in training."""

    name: ClassVar[str] = "partition"
    choices: ClassVar[int] = len(_WAYS)

    def fit(self, rows: Rows, amount: Amount, seed: int, choice: int) -> LearnedBlend:
        """Fit both."""
        gamma, weight = _WAYS[choice]
        return LearnedBlend(grown_median(rows, amount, seed), fitted_ridge(rows, amount, seed, gamma), weight)

    def tried(self, rows: Rows, features: Reals, amount: Amount, seed: int) -> Reals:
        """What it predicts with each weight and width, of shape ``(choices, r, s)``."""
        median = grown_median(rows, amount, seed).predict(features)
        smooth = {gamma: fitted_ridge(rows, amount, seed, gamma).predict(features) for gamma in _GAMMAS}
        return np.stack([_between(median, smooth[gamma], weight) for gamma, weight in _WAYS])


def _between(median: Reals, smooth: Reals, weight: float) -> Reals:
    return (1.0 - weight) * median + weight * smooth


@dataclass(frozen=True, eq=False)
class LearnedBlend:
    """Both, and the weight of the ridge, from 0 to 1."""

    median: TreeMedian
    ridge: Ridge
    weight: float
    form: ClassVar[str] = "blend"

    def predict(self, features: Reals) -> Reals:
        """The mean of both, of shape ``(r, s)``."""
        return _between(self.median.predict(features), self.ridge.predict(features), self.weight)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        parts = {"median": self.median.state(), "ridge": self.ridge.state()}
        arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
        return {**arrays, "weight": np.array([self.weight])}

    @classmethod
    def from_state(cls, state: State, levels: int) -> LearnedBlend:
        """Make it from its arrays."""
        weight = kept_reals(state, "weight", 1)
        if weight.shape != (1,) or not 0 <= weight[0] <= 1:
            raise InputError("model: weight: expected one number of 0 to 1, found others")
        median = TreeMedian.from_state(arrays_of(state, "median"), levels)
        ridge = Ridge.from_state(arrays_of(state, "ridge"), levels)
        if median.trees.value.shape[1] != len(ridge.level):
            raise InputError(
                f"model: leaf_value: expected {len(ridge.level)} outputs, found {median.trees.value.shape[1]}"
            )
        return cls(median, ridge, float(weight[0]))
