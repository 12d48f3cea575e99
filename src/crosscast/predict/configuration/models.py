"""The models of configurations that can be kept, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from crosscast.errors import InputError
from crosscast.predict.configuration.bailey2014 import PUBLISHED_CLUSTERS, PublishedModel
from crosscast.predict.configuration.forecast import ConfigurationModel
from crosscast.predict.configuration.process import ProcessModel

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
    """Make a model."""
    if name not in CONFIGURATION_MODELS:
        raise InputError(f"model: expected one of {', '.join(CONFIGURATION_MODELS)}, found {name!r}")
    return CONFIGURATION_MODELS[name]()
