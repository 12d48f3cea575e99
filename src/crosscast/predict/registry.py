"""The models by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from crosscast.errors import InputError
from crosscast.predict.gaussian import Gaussian
from crosscast.predict.physical.model import Physical

__all__ = ["DEFAULT_MODEL", "MODELS", "model_named"]

DEFAULT_MODEL = "physical"

_POINTS: tuple[Callable[[], Physical], ...] = (Physical,)

MODELS: Mapping[str, Callable[[], Gaussian]] = {point().name: partial(Gaussian, point()) for point in _POINTS}
"""What makes each model, in the order in which tables show them."""


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
