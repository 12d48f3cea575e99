"""scikit-learn's regressors, or the sentence that says how to get them. Imported where models are fitted."""

from __future__ import annotations

from crosscast.errors import MissingExtraError

try:
    from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.tree import DecisionTreeRegressor
    from threadpoolctl import threadpool_limits
except ImportError as error:
    raise MissingExtraError("train", "fitting a model") from error

__all__ = [
    "DecisionTreeRegressor",
    "ExtraTreesRegressor",
    "HistGradientBoostingRegressor",
    "KernelRidge",
    "RandomForestRegressor",
    "threadpool_limits",
]
