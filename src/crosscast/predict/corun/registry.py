"""The models of co-running by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from crosscast.errors import InputError
from crosscast.predict.corun.baselines import Mean, Sum
from crosscast.predict.corun.model import CoRunModel
from crosscast.predict.corun.process.model import Process
from crosscast.predict.corun.published.model import Published
from crosscast.predict.corun.published.table_6 import KINDS

__all__ = ["BASELINES", "DEFAULT_MODEL", "MODELS", "models_named"]

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
    """Make models, in the order of their names.

    Raises
    ------
    InputError
        If there is none of a name.
    """
    for name in names:
        if name not in MODELS:
            raise InputError(f"models: expected one of {', '.join(MODELS)}, found {name!r}")
    return [MODELS[name]() for name in dict.fromkeys(names)]
