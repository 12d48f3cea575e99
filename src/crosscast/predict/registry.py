"""The models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from crosscast.errors import InputError
from crosscast.predict.baselines import DeviceMean, Nearest
from crosscast.predict.boosting import Boosting
from crosscast.predict.combined import Combined
from crosscast.predict.extra_trees import ExtraTrees
from crosscast.predict.gaussian import Gaussian
from crosscast.predict.physical.model import Physical
from crosscast.predict.published_forest import PublishedForest

__all__ = ["DEFAULT_MODEL", "MODELS", "model_named"]

DEFAULT_MODEL = "combined"

_FEW_TREES = 60


MODELS: Mapping[str, Callable[[], Gaussian]] = {
    "device-mean": partial(Gaussian, DeviceMean()),
    "nearest": partial(Gaussian, Nearest()),
    "published-forest": partial(Gaussian, PublishedForest(), PublishedForest(trees=_FEW_TREES)),
    "extra-trees": partial(Gaussian, ExtraTrees()),
    "boosting": partial(Gaussian, Boosting()),
    "physical": partial(Gaussian, Physical()),
    "combined": partial(Gaussian, Combined()),
}
"""What makes each model, from the trivial to the strong."""


def model_named(name: str) -> Gaussian:
    """Make a model.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in MODELS:
        raise InputError(f"model: expected one of {', '.join(MODELS)}, found {name!r}")
    return MODELS[name]()
