"""Forecasts of bags on one device from profiles on another, by a machine translation card (section 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.corun.artefact import TrainedCoRunModel
from crosscast.predict.corun.forecast import CoRunForecast, Ranged, is_told
from crosscast.predict.corun.translation import TranslationCard
from crosscast.tables.corun.solo import Solo

__all__ = ["translated_forecasts"]


def translated_forecasts(
    model: TrainedCoRunModel,
    card: TranslationCard,
    bags: Sequence[tuple[Solo, ...]],
    *,
    level: float = 0.9,
) -> list[CoRunForecast]:
    """Forecast bags on the device that a card translates to, from profiles on the one that it is from.

    If the model is of the device of the profiles, its forecasts are translated, as published. If it is of
    the other device, the times of the profiles are translated, and the model is asked with these; all other
    features are taken as they are. What is translated has an interval that reaches as far as the errors of
    both would together, if they do not depend on each other: the root of the sum of their squares.

    Parameters
    ----------
    model
        The model.
    card
        The card.
    bags
        Applications alone on ``card.source``.
    level
        Probability that intervals are to hold.

    Raises
    ------
    InputError
        If the model is of neither device, a profile is of another one, the model cannot forecast a bag, or
        the line takes a time to none.
    """
    for bag in bags:
        for solo in bag:
            if solo.device != card.source:
                raise InputError(
                    f"{solo.name}: device: expected the profile to be of {card.source}, from which the card "
                    f"translates, found {solo.device}"
                )
    if model.card.device == card.source:
        return [_translated(found, card, level) for found in model.forecast(bags, level=level)]
    if model.card.device == card.target:
        there = [tuple(_there(solo, card) for solo in bag) for bag in bags]
        return [
            _less_sure(found, card, bag, level)
            for found, bag in zip(model.forecast(there, level=level), bags, strict=True)
        ]
    raise InputError(
        f"model: expected one of {card.source} or {card.target}, between which the card translates, found "
        f"one of {model.card.device}"
    )


def _there(solo: Solo, card: TranslationCard) -> Solo:
    """An application alone on the other device, with what is known of it."""
    time_s = None if solo.time_s is None else _one(card, solo.time_s)
    return replace(solo, device=card.target, time_s=time_s, power_w=None)


def _one(card: TranslationCard, seconds: float) -> float:
    with np.errstate(over="ignore"):
        found = float(card.line(np.array([seconds]))[0])
    if not is_told(found):
        raise InputError(
            f"translation: line: expected one that takes {seconds:g} s to a time above 0, found one that "
            f"takes it to {found:g} s"
        )
    return found


def _translated(found: CoRunForecast, card: TranslationCard, level: float) -> CoRunForecast:
    bag = tuple(_there(solo, card) for solo in found.bag)
    times = [solo.time_s for solo in bag if solo.time_s is not None]
    together = found.time_s
    return replace(
        found,
        bag=bag,
        slowdown=tuple(
            _slowdown(solo, each, card, level) for solo, each in zip(found.bag, found.slowdown, strict=True)
        ),
        time_s=None
        if together is None
        else _joined(_one(card, together.value), together, card, "time", level),
        serial_s=sum(times) if len(times) == len(bag) else None,
        power_w=None,
        fits=None,
        warnings=(*found.warnings, *_doubts(card, found.bag, None if together is None else together.value)),
    )


def _slowdown(solo: Solo, own: Ranged | None, card: TranslationCard, level: float) -> Ranged | None:
    if own is None or solo.time_s is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        found = float(card.line.slowdown(np.array(solo.time_s), np.array(own.value)))
    return _joined(found, own, card, "slowdown", level)


def _less_sure(
    found: CoRunForecast, card: TranslationCard, bag: tuple[Solo, ...], level: float
) -> CoRunForecast:
    time = found.time_s
    return replace(
        found,
        time_s=None if time is None else _joined(time.value, time, card, "time", level),
        warnings=(
            *found.warnings,
            f"all but the times of the profiles is taken as it is on {card.source}",
            *_doubts(card, bag, None),
        ),
    )


def _joined(value: float, own: Ranged, card: TranslationCard, quantity: str, level: float) -> Ranged | None:
    """A value whose interval reaches as far as errors of the model and of the card do together."""
    if not is_told(value):
        return None
    errors = card.errors.get(quantity, card.errors["time"])
    factor = math.exp(math.hypot(math.log(own.high / own.value), float(errors.reach(level))))
    return Ranged(value, value / factor, value * factor, own.reached)


def _doubts(card: TranslationCard, bag: Sequence[Solo], together: float | None) -> list[str]:
    times: Reals = np.array(
        [*(solo.time_s for solo in bag if solo.time_s is not None), *filter(None, [together])]
    )
    if not len(times) or (card.shortest_s <= times.min() and times.max() <= card.longest_s):
        return []
    return [
        f"times from {times.min():.3g} to {times.max():.3g} s are translated, and the card was made of those "
        f"from {card.shortest_s:.3g} to {card.longest_s:.3g} s"
    ]
