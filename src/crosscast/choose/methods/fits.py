"""Fits of models that several methods choose by: each is made once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from crosscast.evaluate.fingerprint import fingerprint
from crosscast.predict.configuration.surfaces import Surfaces
from crosscast.predict.configuration.surfaces_digest import surfaces_digest

__all__ = ["fitted", "model_of"]

Predictor = TypeVar("Predictor", covariant=True)

_MOST = 4
_LATEST: OrderedDict[tuple[object, ...], Any] = OrderedDict()
"""The latest fits of this process, by all that they depend on."""


class _Model(Protocol[Predictor]):
    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Predictor: ...


def fitted(model: _Model[Predictor], surfaces: Surfaces, samples: Sequence[int], seed: int) -> Predictor:
    """Fit a model, or give the fit that another method has just made of the same.

    Parameters
    ----------
    model, surfaces, samples, seed
        As `ConfigurationModel.fit` has them.

    Raises
    ------
    InputError
        If there is too little to learn from.
    """
    key = (fingerprint(model), surfaces_digest(surfaces), tuple(samples), seed)
    if key not in _LATEST:
        _LATEST[key] = model.fit(surfaces, samples, seed)
        while len(_LATEST) > _MOST:
            _LATEST.popitem(last=False)
    found: Predictor = _LATEST[key]
    return found


def model_of(method: object) -> object | None:
    """The model that a method learns, or the method that it limits does; ``None`` for one without."""
    inner: object | None = getattr(method, "inner", None)
    model: object | None = getattr(method, "model", None)
    return model if inner is None else model_of(inner)
