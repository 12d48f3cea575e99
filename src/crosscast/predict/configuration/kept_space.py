"""Configurations and samples of a predictor as arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.predict.configuration.space import Space
from crosscast.predict.state import kept_integers, kept_names

__all__ = ["kept_space", "space_state"]


def space_state(space: Space, samples: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
    """Arrays from which `kept_space` reads a space and its sample configurations."""
    settings = [json.dumps(dict(each.settings), sort_keys=True) for each in space.configurations]
    return {
        "configuration_device": np.array([each.device for each in space.configurations], np.str_),
        "configuration_settings": np.array(settings, np.str_),
        "samples": np.array(samples, np.int64),
    }


def kept_space(state: Mapping[str, npt.NDArray[Any]]) -> tuple[Space, tuple[int, ...]]:
    """Read a space and the places of its sample configurations.

    Raises
    ------
    InputError
        If an array is missing or damaged, or they are no configurations in their order.
    """
    devices, settings = (
        kept_names(state, name) for name in ("configuration_device", "configuration_settings")
    )
    if len(devices) != len(settings):
        raise InputError(
            f"model: configuration_settings: expected those of {len(devices)} configurations, found "
            f"{len(settings)}"
        )
    found = tuple(Configuration.of(*each) for each in zip(devices, settings, strict=True))
    space = Space(found)
    if space.configurations != found:
        raise InputError("model: configuration_settings: expected configurations in order, found others")
    samples = kept_integers(state, "samples", 1, (0, len(space)))
    if not len(samples):
        raise InputError("model: samples: expected at least one sample configuration, found none")
    return space, tuple(int(each) for each in samples)
