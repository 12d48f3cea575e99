"""What makes a forecast of a relative vector doubtful: a run unlike those that the model was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from crosscast.errors import InputError
from crosscast.predict.listed import listed
from crosscast.predict.relative.card import RelativeCard
from crosscast.predict.relative.model import RelativePredictor
from crosscast.predict.relative.observations import NO_SOURCE, Observations

__all__ = ["check_counters", "doubts_of", "unknown_counters"]

_MOST_NAMED = 5


@runtime_checkable
class _KnowsCounters(Protocol):
    """A model, or the features of one, that can tell which counters it looks at."""

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Names of the counters of runs that it does not know."""
        ...


def unknown_counters(
    predictor: RelativePredictor, card: RelativeCard, observations: Observations
) -> tuple[str, ...]:
    """Names of counters of runs that a model does not know.

    The model says it, or its ``features`` do: they may know counters of other tools by what these mean. Else
    it is those that the training did not have.
    """
    for part in (predictor, getattr(predictor, "features", None)):
        if isinstance(part, _KnowsCounters):
            return part.unknown_counters(observations)
    return tuple(name for name in observations.names if name not in card.counters)


def check_counters(card: RelativeCard, observations: Observations, unknown: Sequence[str]) -> None:
    """Refuse runs of which the model knows no counter.

    Parameters
    ----------
    card
        Card of the model.
    observations
        The runs.
    unknown
        Names of their counters that the model does not know.

    Raises
    ------
    InputError
        If a run has no counter that the model knows.
    """
    columns = [place for place, name in enumerate(observations.names) if name not in set(unknown)]
    told = np.isfinite(observations.counters[:, columns]).any(axis=1)
    if not told.all():
        row = int(np.flatnonzero(~told)[0])
        there = np.isfinite(observations.counters[row])
        found = [name for name, one in zip(observations.names, there, strict=True) if one]
        raise InputError(
            f"{_label(observations, row)}: expected counters that the model knows, such as "
            f"{_named(card.counters)}, found {_named(found) or 'none'}"
        )


def doubts_of(
    card: RelativeCard, observations: Observations, unknown: Sequence[str]
) -> list[tuple[str, ...]]:
    """What is doubtful of each run; sentences without a full stop.

    Parameters
    ----------
    card
        Card of the model.
    observations
        The runs, ``r`` of them.
    unknown
        Names of their counters that the model does not know.

    Returns
    -------
    list
        Of length ``r``.
    """
    return [
        tuple(
            filter(None, (_passed_over(observations, row, unknown), _source(card, observations.source[row])))
        )
        for row in range(len(observations))
    ]


def _passed_over(observations: Observations, row: int, unknown: Sequence[str]) -> str:
    there = np.isfinite(observations.counters[row])
    found = [
        name for name, one in zip(observations.names, there, strict=True) if one and name in set(unknown)
    ]
    return f"counters that the model does not know are passed over: {_named(found)}" if found else ""


def _source(card: RelativeCard, source: str) -> str:
    if source in card.sources:
        return ""
    if source == NO_SOURCE:
        return "the profile does not say on which device it was counted"
    return (
        f"counted on {source}, and the model was trained on what was counted on {_named(card.sources)}, so "
        "that nothing tells how sure this is"
    )


def _label(observations: Observations, row: int) -> str:
    names = (observations.application[row], observations.kernel[row], observations.size[row])
    return " ".join(dict.fromkeys(filter(None, names))) or "profile"


def _named(names: Sequence[str]) -> str:
    return listed(names, _MOST_NAMED)
