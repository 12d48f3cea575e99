"""Fitted parts of models by the names under which artefacts know them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

from crosscast.errors import InputError

__all__ = ["STORED", "Part", "State", "arrays_of", "part_of", "stored_name"]

State = Mapping[str, npt.NDArray[Any]]
"""Arrays of a part by name."""


@runtime_checkable
class Part(Protocol):
    """A fitted part of a model; its class has ``from_state``, which makes it again."""

    def state(self) -> State:
        """Arrays from which ``from_state`` makes it again."""
        ...


STORED: Mapping[str, str] = {
    "combined": "crosscast.predict.combined:CombinedPredictor",
    "corun-mean": "crosscast.predict.corun.baselines:FittedCoRunMean",
    "corun-process": "crosscast.predict.corun.process.model:ProcessPredictor",
    "corun-published": "crosscast.predict.corun.published.predictor:PublishedCoRunPredictor",
    "corun-sum": "crosscast.predict.corun.baselines:FittedSum",
    "forest": "crosscast.predict.published_forest:FittedForest",
    "mean": "crosscast.predict.baselines:FittedMean",
    "nearest": "crosscast.predict.baselines:FittedNearest",
    "partition": "crosscast.predict.corun.partition.model:FittedPartition",
    "physical": "crosscast.predict.physical.model:PhysicalPredictor",
    "process": "crosscast.predict.configuration.process.predictor:ProcessPredictor",
    "published": "crosscast.predict.configuration.published.model:PublishedPredictor",
    "relative-blend": "crosscast.predict.relative.blend.model:BlendPredictor",
    "relative-by-times": "crosscast.predict.relative.by_times:ByTimesPredictor",
    "relative-extra-trees": "crosscast.predict.relative.extra_trees:ExtraTreesPredictor",
    "relative-linear": "crosscast.predict.relative.published.linear:LinearPredictor",
    "relative-trees": "crosscast.predict.relative.published.trees:TreesPredictor",
    "relative-vector": "crosscast.predict.relative.published.mean:FittedVector",
    "trees": "crosscast.predict.two_parts:FittedTrees",
    "unseen": "crosscast.predict.unseen:UnseenDevices",
}
"""Where the class of each name is. A name that artefacts have been written with stays."""

_NAMES = {place: name for name, place in STORED.items()}


def stored_name(part: Part) -> str:
    """Name of a part's class.

    Raises
    ------
    InputError
        If artefacts do not know it.
    """
    kind = type(part)
    place = f"{kind.__module__}:{kind.__qualname__}"
    if place not in _NAMES:
        raise InputError(f"model: expected a part of a kind that can be kept, found {place}")
    return _NAMES[place]


def part_of(name: str, state: State) -> Any:
    """Make a part from its arrays; its module is imported now.

    Raises
    ------
    InputError
        If there is no such name, or the arrays are not those of such a part.
    """
    if name not in STORED:
        raise InputError(f"model: expected a part of one of the kinds {', '.join(STORED)}, found {name!r}")
    module, _, attribute = STORED[name].partition(":")
    return getattr(importlib.import_module(module), attribute).from_state(state)


def arrays_of(state: State, part: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a part, by their names within it.

    Examples
    --------
    >>> import numpy as np
    >>> arrays_of({"model.level": np.zeros(1), "held_out.group": np.ones(2)}, "held_out")
    {'group': array([1., 1.])}
    """
    return {
        name.removeprefix(f"{part}."): array for name, array in state.items() if name.startswith(f"{part}.")
    }
