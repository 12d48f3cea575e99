"""The models of parts by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from crosscast.errors import InputError
from crosscast.predict.corun.partition.blend import Blend
from crosscast.predict.corun.partition.constant import Constant
from crosscast.predict.corun.partition.forest import Forest
from crosscast.predict.corun.partition.learner import Learner
from crosscast.predict.corun.partition.left_out import Jobs
from crosscast.predict.corun.partition.model import PartitionModel

__all__ = ["PARTITION_BASELINES", "PARTITION_MODELS", "partition_models"]

PARTITION_BASELINES = ("mean",)
"""Those that look at no member: anything else must beat them."""

PARTITION_MODELS: Mapping[str, Learner] = MappingProxyType(
    {each.name: each for each in (Constant(), Forest(), Blend())}
)
"""The ways to learn, from the trivial to the strong."""


def partition_models(names: Sequence[str], jobs: Jobs) -> list[PartitionModel]:
    """Make models, in the order of their names.

    Raises
    ------
    InputError
        If there is none of a name.
    """
    for name in names:
        if name not in PARTITION_MODELS:
            raise InputError(f"models: expected one of {', '.join(PARTITION_MODELS)}, found {name!r}")
    return [PartitionModel(PARTITION_MODELS[name], jobs) for name in dict.fromkeys(names)]
