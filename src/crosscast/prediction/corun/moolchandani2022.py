"""The models of Moolchandani, Kumar and Sarangi (2022): six regressors, a predictor per size of mixes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Annotated, Any, Protocol

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import CoRuns, MeasuredMix
from crosscast.errors import InputError, expect_known, importing
from crosscast.prediction.corun import CoRunModel, CoRunPrediction, CoRunPredictor, Mix
from crosscast.prediction.corun.features import (
    PERFORMANCE,
    POWER,
    Combination,
    MixColumns,
    isolated_times,
    other_features,
    unknown_features,
)
from crosscast.prediction.corun.slowdowns import even_slowdown, mix_times, with_fewer
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.trained import single_threaded, squared_distances
from crosscast.prediction.trees import (
    Trees,
    constant,
    joined,
    trees_of_forest,
    trees_of_gradient_boosting,
    trees_of_tree,
)


class Regressor(Protocol):
    """A fitted function of rows of features."""

    def predict(self, rows: Reals) -> Reals:
        """Predictions ``(r,)`` of rows ``(r, f)``."""
        ...

    def check_width(self, features: int) -> None:
        """Raise InputError unless it is of `features` features."""
        ...


@dataclass(frozen=True, eq=False)
class Grown(Stored, kind="corun-trees"):
    """A decision tree, a forest or boosted trees: a sum of trees with one output."""

    trees: Annotated[Trees, Nested(flat=True)]

    def predict(self, rows: Reals) -> Reals:
        """Sum of the trees."""
        return np.asarray(self.trees.sum(rows)[:, 0])

    def check_width(self, features: int) -> None:
        """See `Regressor`."""
        self.trees.check_width(features, 1)


@dataclass(frozen=True, eq=False)
class Linear(Stored, kind="corun-linear"):
    """A linear function."""

    slopes: Annotated[Reals, Array("f")]
    level: float  # Value where all features are 0

    def predict(self, rows: Reals) -> Reals:
        """Values of the function."""
        return np.asarray(rows @ self.slopes + self.level)

    def check_width(self, features: int) -> None:
        """See `Regressor`."""
        _check_width("slopes", len(self.slopes), features)


@dataclass(frozen=True, eq=False)
class Network(Stored, kind="corun-network"):
    """A perceptron with one hidden layer of ``h`` logistic units."""

    hidden: Annotated[Reals, Array("f h")]  # Weights of the features
    bias: Annotated[Reals, Array("h")]
    output: Annotated[Linear, Nested(flat=True)]  # A linear function of the units

    def predict(self, rows: Reals) -> Reals:
        """Values of the function."""
        # The logistic function, without an exponential that might overflow.
        return self.output.predict(0.5 + 0.5 * np.tanh(0.5 * (rows @ self.hidden + self.bias)))

    def check_width(self, features: int) -> None:
        """See `Regressor`."""
        _check_width("hidden", len(self.hidden), features)
        self.output.check_width(len(self.bias))


@dataclass(frozen=True, eq=False)
class SupportVectors(Stored, kind="corun-kernels"):
    """A linear function of Gaussian kernels of the distances to ``m`` support vectors."""

    vectors: Annotated[Reals, Array("m f")]
    output: Annotated[Linear, Nested(flat=True)]  # A linear function of the kernels
    gamma: float  # Coefficient of the squared distance

    def predict(self, rows: Reals) -> Reals:
        """Values of the function."""
        return self.output.predict(np.exp(-self.gamma * squared_distances(rows, self.vectors)))

    def check_width(self, features: int) -> None:
        """See `Regressor`."""
        _check_width("vectors", self.vectors.shape[1], features)
        self.output.check_width(len(self.vectors))


def _check_width(field: str, found: int, expected: int) -> None:
    if found != expected:
        raise InputError.of(field=field, expected=f"weights of {expected} features", found=found)


DEPTH, PERFORMANCE_DEPTH = 10, 7
"""Most splits from the root to a leaf of the decision tree and the forest; and of the decision tree of times
(section 5.4.1)."""

_FEW = 16
"""Number of mixes up to which one pass through the trees of all targets is faster than one for each."""

_TREES, _UNITS = 100, 100
"""Trees of the forest, and units of the perceptron's hidden layer."""

_GROWN: Mapping[str, Callable[..., Trees]] = {
    "decision-tree": trees_of_tree,
    "forest": trees_of_forest,
    "boosting": trees_of_gradient_boosting,
}

KINDS = (*_GROWN, "linear", "mlp", "svr")
"""The regressors of table 6."""


def estimator(kind: str, seed: int, depth: int = DEPTH) -> Any:
    """The regressor of scikit-learn, not fitted."""
    with importing("train", "fitting a model"):
        from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
        from sklearn.linear_model import LinearRegression
        from sklearn.neural_network import MLPRegressor
        from sklearn.svm import SVR
        from sklearn.tree import DecisionTreeRegressor
    state = {"random_state": seed % 2**31}
    regressors = {
        "decision-tree": DecisionTreeRegressor(max_depth=depth, **state),
        "forest": RandomForestRegressor(_TREES, max_depth=depth, **state),
        "boosting": GradientBoostingRegressor(loss="squared_error", **state),
        "linear": LinearRegression(fit_intercept=True),
        "mlp": MLPRegressor(hidden_layer_sizes=(_UNITS,), activation="logistic", **state),
        "svr": SVR(kernel="rbf"),
    }
    return regressors[kind]


def fit_regressor(kind: str, rows: Reals, target: Reals, seed: int, *, depth: int = DEPTH) -> Regressor:
    """Fit a regressor, in one thread: the same rows and seed give the same numbers."""
    low = float(target.min())
    span = float(target.max()) - low or 1.0
    fitted = estimator(kind, seed, depth)
    from sklearn.exceptions import ConvergenceWarning

    with single_threaded(), warnings.catch_warnings():
        # The table has a perceptron with the default number of rounds, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(rows, (target - low) / span)
    if kind in _GROWN:
        return Grown(joined([constant(np.array([low])), _GROWN[kind](fitted).project(np.array([[span]]))]))
    if kind == "linear":
        return Linear(fitted.coef_ * span, float(fitted.intercept_) * span + low)
    if kind == "mlp":
        (hidden, output), (bias, level) = fitted.coefs_, fitted.intercepts_
        return Network(hidden, bias, Linear(output[:, 0] * span, float(level[0]) * span + low))
    output = Linear(fitted.dual_coef_[0] * span, float(fitted.intercept_[0]) * span + low)
    return SupportVectors(fitted.support_vectors_, output, float(fitted._gamma))


TARGETS = ("slowdown", "time_s", "power_w")
"""Predicted quantities: of each co-runner, and of the mix."""


def own_first(members: int) -> Integers:
    """For each co-runner of a mix, the index of itself and then of the others, ``(n, n)``."""
    indices = range(members)
    return np.array([[own, *(other for other in indices if other != own)] for own in indices], np.int64)


@dataclass(frozen=True, eq=False)
class Target(Stored):
    """Predictor of one of `TARGETS`."""

    columns: Annotated[Integers, Array("c", low=0, least=1)]  # Columns of its features for each co-runner
    regressor: Regressor
    # The least value in the training and of predictions, as a linear function may fall below 0
    least: float


@dataclass(frozen=True, eq=False)
class SizePredictor(Stored):
    """Predicts mixes of ``n`` co-runners."""

    members: Annotated[int, Array(low=2, below=1 << 10)]  # `n`
    columns: Annotated[MixColumns, Nested(flat=True)]  # Columns of each co-runner
    slowdown: Target | None  # Predictor of each of `TARGETS`; `None` without training values
    time_s: Target | None
    power_w: Target | None

    def check(self) -> None:
        """Raise InputError unless targets are of these columns."""
        width = len(self.columns.titles)
        for target in self.targets.values():
            if target.columns.max() >= width:
                column = int(target.columns.max())
                raise InputError.of(field="columns", expected=f"indices below {width}", found=column)
            target.regressor.check_width(len(target.columns) * self.members)
        if not self.targets:
            raise InputError.of(expected=f"one of {', '.join(TARGETS)}", found="none")

    @cached_property
    def targets(self) -> Mapping[str, Target]:
        """Predictors of the predicted `TARGETS`."""
        return {name: target for name in TARGETS if (target := getattr(self, name)) is not None}

    @cached_property
    def views(self) -> Mapping[str, Integers]:
        """For each target, columns of its features in a row of a whole mix, ``(views, f)``.

        Each co-runner's own come first, then the others'. Targets of mixes have one view, of the first and
        longest co-runner.
        """
        width, first = len(self.columns.titles), own_first(self.members)
        return {
            name: (first[:, :, None] * width + target.columns).reshape(self.members, -1)[
                : None if name == "slowdown" else 1
            ]
            for name, target in self.targets.items()
        }

    @cached_property
    def _all_trees(self) -> Trees | None:
        """Trees of all targets and views, on the columns of a whole mix, with an output for each."""
        parts = [
            (target.regressor.trees, view)
            for name, target in self.targets.items()
            if isinstance(target.regressor, Grown)
            for view in self.views[name]
        ]
        if len(parts) < sum(map(len, self.views.values())):
            return None
        outputs = zip(parts, np.eye(len(parts))[:, None], strict=True)
        return joined([trees.with_columns(view).project(output) for (trees, view), output in outputs])

    def predict(self, mixes: Sequence[Mix]) -> dict[str, Reals]:
        """Predict ``b`` mixes of its size: slowdowns ``(b, n)``, other quantities ``(b,)``."""
        values, order = self.columns.of(mixes)
        b, predictions, start = len(mixes), {}, 0
        flat = values.reshape(b, -1)
        sums = self._all_trees.sum(flat) if b <= _FEW and self._all_trees is not None else None
        for name, target in self.targets.items():
            views = self.views[name]
            if sums is None:
                of_views = target.regressor.predict(flat[:, views].reshape(b * len(views), -1)).reshape(b, -1)
            else:
                of_views = sums[:, start : start + len(views)]
            predictions[name], start = np.maximum(of_views, target.least), start + len(views)
        slowdown = np.empty(order.shape)
        if "slowdown" in predictions:
            np.put_along_axis(slowdown, order, predictions["slowdown"], axis=1)
        return {name: slowdown if name == "slowdown" else each[:, 0] for name, each in predictions.items()}


@dataclass(frozen=True, eq=False)
class PublishedCoRunPredictor(Stored, CoRunPredictor, kind="corun-published"):
    """A predictor for each size of mixes (sections 5.1.3 and 8).

    Where the training mixes of a size had slowdowns and no times, times follow from slowdowns by `mix_times`;
    slowdowns of fewer co-runners are predicted, or those of `with_fewer` without a predictor of their size.
    Where they had times and no slowdowns, slowdowns are those of `even_slowdown`.
    """

    sizes: tuple[SizePredictor, ...]  # Predictors by ascending numbers of co-runners

    def check(self) -> None:
        """Raise InputError unless sizes are ascending."""
        sizes = [each.members for each in self.sizes]
        if not sizes or sorted(set(sizes)) != sizes:
            raise InputError.of(field="sizes", expected="predictors of ascending sizes", found=sizes)

    @cached_property
    def by_size(self) -> Mapping[int, SizePredictor]:
        """Predictors by number of co-runners."""
        return {each.members: each for each in self.sizes}

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of the sizes in the training."""
        slowdown = [np.full(len(mix), np.nan) for mix in mixes]
        time_s, power_w, fits = np.full((3, len(mixes)), np.nan)
        for members in sorted({len(mix) for mix in mixes}):
            indices = [index for index, mix in enumerate(mixes) if len(mix) == members]
            of_size = [mixes[index] for index in indices]
            predictions = self._completed(self.of_size(members).predict(of_size), of_size)
            for index, of_mix in zip(indices, predictions.get("slowdown", ()), strict=False):
                slowdown[index] = of_mix
            time_s[indices] = predictions.get("time_s", np.nan)
            power_w[indices] = predictions.get("power_w", np.nan)
        return CoRunPrediction(tuple(slowdown), time_s, power_w, fits)

    def of_size(self, members: int) -> SizePredictor:
        """The predictor of mixes of so many co-runners."""
        if members not in self.by_size:
            known = ", ".join(map(str, self.by_size))
            expected = f"as many applications as in mixes that the model was trained on ({known})"
            raise InputError.of(where="mix", expected=expected, found=members)
        return self.by_size[members]

    def _completed(self, predictions: dict[str, Reals], mixes: Sequence[Mix]) -> dict[str, Reals]:
        """Derive times from slowdowns, or slowdowns from times, where only one of both is predicted."""
        if ("slowdown" in predictions) == ("time_s" in predictions):
            return predictions
        isolated_s, count = isolated_times(mixes), len(mixes[0])
        if "time_s" in predictions:
            common = even_slowdown(isolated_s, predictions["time_s"])
            return {**predictions, "slowdown": np.repeat(common[:, None], count, axis=1)}
        slowdown = predictions["slowdown"]

        def of_running(rows: Integers, columns: Integers) -> Reals:
            predictor = self.by_size.get(len(columns))
            if predictor is None or predictor.slowdown is None:
                return with_fewer(slowdown[np.ix_(rows, columns)], count, len(columns))
            running = [tuple(mixes[row][column] for column in columns) for row in rows]
            return predictor.predict(running)["slowdown"]

        return {**predictions, "time_s": mix_times(isolated_s, slowdown, of_running)}


@dataclass(frozen=True)
class Published(CoRunModel):
    """A regressor of table 6 for each size of mixes, and for each of mix time, power and slowdown.

    The paper predicts time and power. Slowdowns, for data without times, are predicted from the features of
    times, with those of the co-runner itself first.
    """

    kind: str  # Of the regressor, see `KINDS`
    performance: Combination = PERFORMANCE  # Features of times and slowdowns, and of power
    power: Combination = POWER
    # Whether to use all other features of the isolated runs, too, unlike the paper. They are always used
    # where no training run has any feature of a combination
    others: bool = False
    title: str = ""  # Name of the model; by default after its kind

    def __post_init__(self) -> None:
        """Raise InputError for an unknown kind, or features that are known only after a mix ran."""
        expect_known(self.kind, KINDS, where="model")
        for each in (self.performance, self.power):
            if each.concurrent:
                found = f"{', '.join(each.concurrent)}, which only a run of the mix itself tells"
                raise InputError.of(where=each.name, expected="features of applications alone", found=found)

    @property
    def name(self) -> str:
        """Name on the command line and in tables."""
        return self.title or f"published-{self.kind}"

    @property
    def is_by_size(self) -> bool:
        """Whether mixes of each size have a predictor of their own: yes."""
        return True

    def fit(self, co_runs: CoRuns, seed: int) -> PublishedCoRunPredictor:
        """Fit to mixes in which no application failed."""
        sound = [mix for mix in co_runs.mixes if not mix.failed and len(mix.members) > 1]
        fitted = [
            self._fit_size([mix for mix in sound if len(mix.members) == size], seed)
            for size in sorted({len(mix.members) for mix in sound})
        ]
        sizes = tuple(each for each in fitted if each is not None)
        if not sizes:
            expected = "mixes with a slowdown, a time or a power to learn from"
            raise InputError.of(where=co_runs.label, expected=expected, found="none")
        return PublishedCoRunPredictor(sizes)

    def _fit_size(self, mixes: Sequence[MeasuredMix], seed: int) -> SizePredictor | None:
        """Fit a predictor of mixes of one size; ``None`` if they have no target."""
        known = {name: _known(name, mixes) for name in TARGETS}
        usable = np.any([~np.isnan(each).all(axis=1) for each in known.values()], axis=0)
        if not usable.any():
            return None
        all_runs = [mix.isolated_runs for mix in mixes]
        performance, power = (self._complete(each, all_runs) for each in (self.performance, self.power))
        features = {name: power if name == "power_w" else performance for name in TARGETS}
        values_of = {name: each[usable] for name, each in known.items() if not np.isnan(each).all()}
        names = tuple(dict.fromkeys(name for target in values_of for name in features[target]))
        runs = [all_runs[index] for index in np.flatnonzero(usable)]
        columns = MixColumns.fit(names, runs)
        values, order = columns.of(runs)
        targets: dict[str, Target] = {}
        for name, each in values_of.items():
            used = columns.indices(features[name])
            if len(used):
                ordered = np.take_along_axis(each, order, axis=1) if name == "slowdown" else each
                rows, aims = _rows(values[:, :, used], ordered)
                depth = PERFORMANCE_DEPTH if self.kind == "decision-tree" and name != "power_w" else DEPTH
                regressor = fit_regressor(self.kind, rows, aims, seed, depth=depth)
                targets[name] = Target(used, regressor, float(aims.min()))
        return SizePredictor(len(mixes[0].members), columns, *(targets.get(name) for name in TARGETS))

    def _complete(self, combination: Combination, mixes: Sequence[Mix]) -> tuple[str, ...]:
        """Features of a combination, with the others where they are to be used."""
        features = combination.features
        if not self.others and len(unknown_features(features, mixes)) < len(features):
            return features
        return (*features, *(name for name in other_features(mixes) if name not in features))


def _known(target: str, mixes: Sequence[MeasuredMix]) -> Reals:
    """Measured values of a target: slowdowns ``(b, n)``, other quantities ``(b, 1)``."""
    if target == "slowdown":
        return np.array([[member.slowdown for member in mix.members] for mix in mixes], dtype=np.float64)
    return np.array([[getattr(mix, target)] for mix in mixes], dtype=np.float64)


def _rows(values: Reals, known: Reals) -> tuple[Reals, Reals]:
    """Training rows and their targets: slowdowns of ``n`` co-runners, or one value of each mix.

    Mixes of two and three are used in every order, as the paper permutes benchmarks (section 5.2).
    Predictions use one order, so that they do not depend on that of the mix.
    """
    b, n, _ = values.shape
    of_each = known.shape[1] > 1
    orders = own_first(n) if of_each else own_first(n)[:1]
    if n <= _MOST_PERMUTED:
        ends = [(order[:of_each], order[of_each:]) for order in orders.tolist()]
        orders = np.array([[*fixed, *each] for fixed, rest in ends for each in permutations(rest)])
    aims = known[:, orders[:, 0]] if of_each else np.repeat(known, len(orders), axis=1)
    rows, aims = values[:, orders].reshape(b * len(orders), -1), aims.ravel()
    is_known = ~np.isnan(aims)
    return rows[is_known], aims[is_known]


_MOST_PERMUTED = 3
"""Larger mixes are used in one order only."""
