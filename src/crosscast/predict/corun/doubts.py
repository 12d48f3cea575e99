"""What makes a forecast of a bag doubtful: a bag unlike those that the model was fitted to."""

from __future__ import annotations

from collections.abc import Sequence

from crosscast.predict.corun.card import CoRunCard
from crosscast.predict.listed import listed
from crosscast.tables.corun.solo import Solo

__all__ = ["doubts_of"]

_MOST_NAMED = 5


def doubts_of(card: CoRunCard, bag: Sequence[Solo], *, known: bool) -> tuple[str, ...]:
    """What is doubtful of a forecast; sentences without a full stop.

    Parameters
    ----------
    card
        Card of the model.
    bag
        The applications.
    known
        Whether all of them are among those of the training.
    """
    return tuple(filter(None, (_size(card, bag), _untimed(bag), _several_new(card, bag, known))))


def _size(card: CoRunCard, bag: Sequence[Solo]) -> str:
    if len(bag) in card.sizes:
        return ""
    sizes = " and ".join(map(str, card.sizes))
    return (
        f"{len(bag)} applications at once, and the model was trained on bags of {sizes}: it is asked beyond "
        "what it was tested on, and its intervals are those of these"
    )


def _untimed(bag: Sequence[Solo]) -> str:
    names = list(dict.fromkeys(solo.name for solo in bag if solo.time_s is None))
    if not names:
        return ""
    return f"no time alone is known of {listed(names, _MOST_NAMED)}, so that no time of the bag is told"


def _several_new(card: CoRunCard, bag: Sequence[Solo], known: bool) -> str:
    new = sorted({solo.application for solo in bag} - set(card.applications))
    if known or len(new) < 2:
        return ""
    return (
        f"{listed(new, _MOST_NAMED)} are all new to the model, and its intervals come from bags with one new "
        "application"
    )
