"""The models that an evaluation compares."""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.evaluate.bootstrap import BASELINES
from crosscast.predict import registry
from crosscast.predict.model import Model

__all__ = ["with_baselines"]


def with_baselines(names: Sequence[str]) -> list[Model]:
    """Models by name, each once, and the baselines after them.

    Raises
    ------
    InputError
        If there is no model of a name.
    """
    baselines = [name for name in BASELINES if name in registry.MODELS]
    return [registry.model_named(name) for name in dict.fromkeys([*names, *baselines])]
