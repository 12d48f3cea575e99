"""Models by the names that were typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crosscast.cli.words import words_of
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.predict.time.gaussian import Model

__all__ = ["models_named"]


def models_named(text: str) -> list[Model]:
    """The models that are asked for, and the baselines after them.

    Parameters
    ----------
    text
        Names, separated by commas, or ``all``.

    Raises
    ------
    InputError
        If there is no model of a name.
    """
    from crosscast.evaluation.time_study import with_baselines
    from crosscast.predict.time.models import MODELS

    names = list(MODELS) if text == "all" else words_of("--models", text)
    for name in names:
        if name not in MODELS:
            raise InputError(f"--models: expected all or some of {', '.join(MODELS)}, found {name!r}")
    return with_baselines(names)
