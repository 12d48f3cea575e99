"""The models of co-running by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from crosscast.errors import InputError
from crosscast.predict.corun.baselines import Mean, Sum
from crosscast.predict.corun.forecast import CoRunModel
from crosscast.predict.corun.moolchandani2022 import KINDS, Published
from crosscast.predict.corun.process import Process

DEFAULT_MODEL = "process"

BASELINES = ("mean", "sum")
"""Those that look at no application: anything else must beat them."""

MODELS: Mapping[str, Callable[[], CoRunModel]] = MappingProxyType(
    {
        "mean": Mean,
        "sum": Sum,
        **{f"published-{kind}": partial(Published, kind) for kind in KINDS},
        "process-alone": partial(Process, trees=False),
        "process": Process,
    }
)
"""What makes each model, from the trivial to the strong."""


def models_named(names: Sequence[str]) -> list[CoRunModel]:
    """Make models, in the order of their names."""
    for name in names:
        if name not in MODELS:
            raise InputError(f"models: expected one of {', '.join(MODELS)}, found {name!r}")
    return [MODELS[name]() for name in dict.fromkeys(names)]
