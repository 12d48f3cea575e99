"""Fits of models that several methods choose by: each is made once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from crosscast.predict.configuration.surfaces import Surfaces
from crosscast.predict.configuration.surfaces_digest import surfaces_digest

__all__ = ["fitted", "model_of"]

Predictor = TypeVar("Predictor", covariant=True)

_MOST = 4
_LATEST: OrderedDict[tuple[object, ...], Any] = OrderedDict()
"""The latest fits of this process, by all that they depend on."""
_LOCK = threading.Lock()


class _Model(Protocol[Predictor]):
    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Predictor: ...


def fitted(model: _Model[Predictor], surfaces: Surfaces, samples: Sequence[int], seed: int) -> Predictor:
    """Fit a model, or give the fit that another method has just made of the same.

    Models are the same if they are equal, as frozen dataclasses with the same parameters are. What cannot be
    looked up, as it may change, is fitted each time.

    Parameters
    ----------
    model, surfaces, samples, seed
        As `ConfigurationModel.fit` has them.

    Raises
    ------
    InputError
        If there is too little to learn from.
    """
    if not _has_hash(model):
        return model.fit(surfaces, samples, seed)
    key = (model, surfaces_digest(surfaces), tuple(samples), seed)
    with _LOCK:
        found: Predictor | None = _LATEST.get(key)
    if found is None:
        found = model.fit(surfaces, samples, seed)
        with _LOCK:
            _LATEST[key] = found
            while len(_LATEST) > _MOST:
                _LATEST.popitem(last=False)
    return found


def _has_hash(model: object) -> bool:
    # A frozen dataclass has one only if all of its fields have.
    try:
        hash(model)
    except TypeError:
        return False
    return True


def model_of(method: object) -> object | None:
    """The model that a method learns, or the method that it limits does; ``None`` for one without."""
    inner: object | None = getattr(method, "inner", None)
    model: object | None = getattr(method, "model", None)
    return model if inner is None else model_of(inner)
