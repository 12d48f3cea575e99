"""The six regressors of paper 004 (table 6), fitted with scikit-learn and kept as numbers.

What the table does not name is scikit-learn's default. Targets are scaled to 0 to 1 like the features, as
"all the values are normalized" (section 5.3); only the perceptron and the support vectors notice. That the
latter leave errors below a tenth of the range alone would explain why theirs hardly change with the features.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import MissingExtraError
from crosscast.predict.corun.published.kept import Grown, Kernels, Linear, Network, Regressor
from crosscast.predict.grown import trees_of_forest, trees_of_gradient_boosting, trees_of_tree
from crosscast.predict.trees import Trees, constant, joined

__all__ = ["DEPTH", "KINDS", "PERFORMANCE_DEPTH", "TREES", "UNITS", "estimator", "fit_regressor"]

DEPTH = 10
"""Splits from the root to a leaf, at most, of the decision tree and the forest."""

PERFORMANCE_DEPTH = 7
"""The same of the decision tree that predicts times (section 5.4.1)."""

TREES = 100
"""Trees of the forest."""

UNITS = 100
"""Units of the perceptron's hidden layer."""


def fit_regressor(kind: str, rows: Reals, wanted: Reals, seed: int, *, depth: int = DEPTH) -> Regressor:
    """Fit a regressor, in one thread: the same rows and seed give the same numbers.

    Parameters
    ----------
    kind
        One of `KINDS`.
    rows
        Features, scaled to 0 to 1, of shape ``(r, f)``.
    wanted
        What is to be predicted, of shape ``(r,)``; scaled and scaled back here.
    seed
        Start of all random numbers.
    depth
        Depth of a decision tree, or of the trees of a forest.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    low = float(wanted.min())
    span = float(wanted.max()) - low or 1.0
    fitted = estimator(kind, seed, depth)
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        # A perceptron that has not converged after the default number of rounds is what the table asks for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted.fit(rows, (wanted - low) / span)
    _, kept = KINDS[kind]
    return kept(fitted, low, span)


def estimator(kind: str, seed: int, depth: int = DEPTH) -> Any:
    """The regressor of scikit-learn, not fitted.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    try:
        import sklearn.ensemble
        import sklearn.linear_model
        import sklearn.neural_network
        import sklearn.svm
        import sklearn.tree
    except ImportError as error:
        raise MissingExtraError("train", "fitting a model") from error
    made, _ = KINDS[kind]
    return made(sklearn, seed % 2**31, depth)


def _tree(fitted: Any, low: float, span: float) -> Regressor:
    return _moved(trees_of_tree(fitted), low, span)


def _forest(fitted: Any, low: float, span: float) -> Regressor:
    return _moved(trees_of_forest(fitted), low, span)


def _boosting(fitted: Any, low: float, span: float) -> Regressor:
    return _moved(trees_of_gradient_boosting(fitted), low, span)


def _moved(trees: Trees, low: float, span: float) -> Grown:
    scaled = trees.onto(np.array([[span]]))
    return Grown(joined([constant(np.array([low])), scaled]))


def _linear(fitted: Any, low: float, span: float) -> Regressor:
    return Linear(fitted.coef_ * span, float(fitted.intercept_) * span + low)


def _network(fitted: Any, low: float, span: float) -> Regressor:
    (hidden, output), (bias, level) = fitted.coefs_, fitted.intercepts_
    return Network(hidden, bias, Linear(output[:, 0] * span, float(level[0]) * span + low))


def _kernels(fitted: Any, low: float, span: float) -> Regressor:
    output = Linear(fitted.dual_coef_[0] * span, float(fitted.intercept_[0]) * span + low)
    return Kernels(fitted.support_vectors_, output, float(fitted._gamma))


_Made = Callable[[Any, int, int], Any]
_Kept = Callable[[Any, float, float], Regressor]

KINDS: Mapping[str, tuple[_Made, _Kept]] = MappingProxyType(
    {
        "decision-tree": (
            lambda sk, seed, depth: sk.tree.DecisionTreeRegressor(max_depth=depth, random_state=seed),
            _tree,
        ),
        "forest": (
            lambda sk, seed, depth: sk.ensemble.RandomForestRegressor(
                TREES, max_depth=depth, random_state=seed
            ),
            _forest,
        ),
        "boosting": (
            lambda sk, seed, depth: sk.ensemble.GradientBoostingRegressor(
                loss="squared_error", random_state=seed
            ),
            _boosting,
        ),
        "linear": (lambda sk, seed, depth: sk.linear_model.LinearRegression(fit_intercept=True), _linear),
        "mlp": (
            lambda sk, seed, depth: sk.neural_network.MLPRegressor(
                hidden_layer_sizes=(UNITS,), activation="logistic", random_state=seed
            ),
            _network,
        ),
        "svr": (lambda sk, seed, depth: sk.svm.SVR(kernel="rbf"), _kernels),
    }
)
"""For each kind, what makes scikit-learn's regressor, and what keeps a fitted one as numbers."""
