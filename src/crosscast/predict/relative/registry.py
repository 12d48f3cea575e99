"""The models of relative performance by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from crosscast.errors import InputError
from crosscast.predict.relative.combined import Combined
from crosscast.predict.relative.extra_trees import ExtraTrees
from crosscast.predict.relative.model import RelativeModel
from crosscast.predict.relative.published.forest import PublishedForest
from crosscast.predict.relative.published.linear import PublishedLinear
from crosscast.predict.relative.published.mean import LogMean, PublishedMean
from crosscast.predict.relative.published.xgboost import PublishedXGBoost

__all__ = ["BASELINES", "DEFAULT_MODEL", "MODELS", "models_named"]

DEFAULT_MODEL = "combined"

BASELINES = ("published-mean", "log-mean")
"""Those that look at no counter: anything else must beat them."""

MODELS: Mapping[str, Callable[[], RelativeModel]] = MappingProxyType(
    {
        "published-mean": PublishedMean,
        "log-mean": LogMean,
        "published-linear": PublishedLinear,
        "published-forest": PublishedForest,
        "published-xgboost": PublishedXGBoost,
        "extra-trees": ExtraTrees,
        "combined": Combined,
    }
)
"""What makes each model, from the trivial to the strong."""


def models_named(names: Sequence[str]) -> list[RelativeModel]:
    """Make models, in the order of their names.

    Raises
    ------
    InputError
        If there is none of a name.
    """
    for name in names:
        if name not in MODELS:
            raise InputError(f"models: expected one of {', '.join(MODELS)}, found {name!r}")
    return [MODELS[name]() for name in dict.fromkeys(names)]
