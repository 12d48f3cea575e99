"""The models of configurations that can be kept, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from crosscast.errors import InputError
from crosscast.predict.configuration.model import ConfigurationModel
from crosscast.predict.configuration.process.model import ProcessModel
from crosscast.predict.configuration.published.model import PUBLISHED_CLUSTERS, PublishedModel

__all__ = ["CONFIGURATION_MODELS", "DEFAULT_CONFIGURATION_MODEL", "configuration_model_named"]

DEFAULT_CONFIGURATION_MODEL = "model"

CONFIGURATION_MODELS: Mapping[str, Callable[[], ConfigurationModel]] = MappingProxyType(
    {
        "model": ProcessModel,
        "published": PublishedModel,
        f"published-{PUBLISHED_CLUSTERS}": lambda: PublishedModel(PUBLISHED_CLUSTERS),
        "published-log": lambda: PublishedModel(logarithms=True),
    }
)
"""What makes each."""


def configuration_model_named(name: str) -> ConfigurationModel:
    """Make a model.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in CONFIGURATION_MODELS:
        raise InputError(f"model: expected one of {', '.join(CONFIGURATION_MODELS)}, found {name!r}")
    return CONFIGURATION_MODELS[name]()
