"""The models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from crosscast.errors import InputError
from crosscast.predict.time.baselines import DeviceMean, Nearest
from crosscast.predict.time.combined import Combined
from crosscast.predict.time.gaussian import Gaussian
from crosscast.predict.time.johnston2018 import PublishedForest
from crosscast.predict.time.physical import Physical
from crosscast.predict.time.regressors import Boosting, ExtraTrees

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
    """Make a model."""
    if name not in MODELS:
        raise InputError(f"model: expected one of {', '.join(MODELS)}, found {name!r}")
    return MODELS[name]()
