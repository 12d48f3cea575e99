"""Placements by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from crosscast.cluster.placement import Placement
from crosscast.cluster.placements.completion import completion, oracle_completion
from crosscast.cluster.placements.model import model_near_order, model_order
from crosscast.cluster.placements.oracle import oracle_near_order, oracle_order
from crosscast.cluster.placements.random import random_machine
from crosscast.cluster.placements.round_robin import round_robin
from crosscast.cluster.placements.user import user_round_robin
from crosscast.cluster.placements.workload import Workload
from crosscast.errors import InputError

__all__ = ["NEEDS", "PLACEMENTS", "check_placements"]

Place = Callable[[Workload, np.random.Generator], Placement]

PLACEMENTS: Mapping[str, Place] = MappingProxyType(
    {
        "round-robin": lambda workload, _: round_robin(workload),
        "random": random_machine,
        "user": lambda workload, _: user_round_robin(workload),
        "model": lambda workload, _: model_order(workload),
        "oracle": lambda workload, _: oracle_order(workload),
        "model-near": lambda workload, _: model_near_order(workload),
        "oracle-near": lambda workload, _: oracle_near_order(workload),
        "completion": lambda workload, _: completion(workload),
        "oracle-completion": lambda workload, _: oracle_completion(workload),
    }
)
"""Each places a workload, with a generator for what is left to chance."""

NEEDS: Mapping[str, str] = MappingProxyType(
    {"model": "vector", "model-near": "vector", "completion": "seconds"}
)
"""What those need that go by predictions: vectors, or vectors as seconds."""


def check_placements(names: list[str]) -> None:
    """Refuse a placement that is not there.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    for name in names:
        if name not in PLACEMENTS:
            raise InputError(f"placement: expected one of {', '.join(PLACEMENTS)}, found {name!r}")
