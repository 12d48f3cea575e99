"""The line that takes times on one device to times on another (paper 004, section 9)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.predict.artefact import required_number, required_table, required_text
from crosscast.predict.corun.artefact import TrainedCoRunModel
from crosscast.predict.corun.forecast import CoRunForecast, Estimate, LeftOut, is_plausible
from crosscast.tables.corun.solo import Solo
from crosscast.tables.whole_file import whole_file

PLAIN, LOGARITHMIC = "plain", "logarithmic"
"""A line through times, as published, and one through their logarithms."""


@dataclass(frozen=True)
class TimeLine:
    """A linear regression of times on times."""

    form: str  # `PLAIN`: `slope * t + intercept`; `LOGARITHMIC`: `exp(intercept) * t ** slope`
    slope: float  # Its coefficients; the intercept of a plain line is in seconds
    intercept: float
    # The shortest time that it was fitted to reach: nothing below is predicted, where a plain line may fall
    # below 0
    least_s: float

    @classmethod
    def fit(cls, form: str, times: Reals, wanted: Reals) -> TimeLine:
        """Fit it by ordinary least squares.

        >>> line = TimeLine.fit(PLAIN, np.array([1.0, 2.0]), np.array([0.75, 1.25]))
        >>> round(float(line(np.array([3.0]))[0]), 6)
        1.75
        """
        if len(np.unique(times)) < 2:
            raise InputError(
                f"times: expected at least 2 different ones to draw a line, found {len(np.unique(times))}"
            )
        x, y = (np.log(times), np.log(wanted)) if form == LOGARITHMIC else (times, wanted)
        middle = x.mean()
        slope = float(((x - middle) * (y - y.mean())).sum() / ((x - middle) ** 2).sum())
        return cls(form, slope, float(y.mean() - slope * middle), float(wanted.min()))

    def __call__(self, times: Reals) -> Reals:
        """Times on the other device, in seconds, of the shape of ``times``."""
        if self.form == LOGARITHMIC:
            result: Reals = np.exp(self.intercept + self.slope * np.log(times))
            return result
        straight: Reals = np.maximum(self.slope * times + self.intercept, self.least_s)
        return straight

    def slowdown(self, alone: Reals, slowdown: Reals) -> Reals:
        """Slowdown on the other device of work that takes so long alone, and so much longer in a bag."""
        result: Reals = self(alone * slowdown) / self(alone)
        return result


FORMAT = "crosscast machine translation card"
"""What the field ``format`` of these files says."""

VERSION = 1
"""Rises when a field changes its name, type or meaning."""

QUANTITIES = ("time", "slowdown")
"""What is translated."""

_MOST_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class TranslationCard:
    """What takes times on one device to another."""

    source: str  # Keys of the devices
    target: str
    line: TimeLine  # The line through times
    shortest_s: float  # Times on `source` between which it was fitted, in seconds
    longest_s: float
    errors: Mapping[str, LeftOut]  # Errors on applications that were left out, by quantity of `QUANTITIES`
    training: Mapping[str, Any]  # What it was fitted to, and how good it was, for people

    def to_dict(self) -> dict[str, Any]:
        """The card as a JSON object."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "from": self.source,
            "to": self.target,
            "line": dict(vars(self.line)),
            "shortest_s": self.shortest_s,
            "longest_s": self.longest_s,
            "errors": {
                name: {key: array.tolist() for key, array in each.state().items()}
                for name, each in self.errors.items()
            },
            "training": dict(self.training),
        }

    @classmethod
    def from_dict(cls, card: Mapping[str, Any], where: str) -> TranslationCard:
        """Read a card."""
        fields = Fields(card, where)
        if fields.take("format") != FORMAT:
            raise InputError(f"{where}: format: expected {FORMAT!r}, found {card.get('format')!r}")
        if fields.take("version") != VERSION:
            raise InputError(f"{where}: version: expected {VERSION}, found {card.get('version')!r}")
        line = required_table(fields, "line")
        form = required_text(line, "form")
        if form not in (PLAIN, LOGARITHMIC):
            raise line.fail("form", f"{PLAIN} or {LOGARITHMIC}")
        numbers = {name: required_number(line, name) for name in ("slope", "intercept", "least_s")}
        shortest, longest = (required_number(fields, name) for name in ("shortest_s", "longest_s"))
        if not 0 < shortest <= longest:
            raise InputError(f"{where}: shortest_s: expected a number above 0 and up to longest_s")
        if numbers["least_s"] <= 0:
            raise line.fail("least_s", "a number above 0")
        errors = required_table(fields, "errors")
        found = cls(
            required_text(fields, "from"),
            required_text(fields, "to"),
            TimeLine(form, **numbers),
            shortest,
            longest,
            {name: _errors(errors, name) for name in QUANTITIES if name in errors},
            dict(required_table(fields, "training").items()),
        )
        if "time" not in found.errors:
            raise InputError(f"{where}: errors: expected those of times, found none")
        return found


def write_translation(card: TranslationCard, path: str | Path) -> None:
    """Write a card, in the place of what is there."""
    path = Path(path)
    text = json.dumps(card.to_dict(), indent=1, allow_nan=False)
    try:
        with whole_file(path) as temporary:
            temporary.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot write the card ({error.strerror or error})") from error


def read_translation(path: str | Path) -> TranslationCard:
    """Read a card."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot read the card ({error.strerror or error})") from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: expected a machine translation card, found a file above 16 MiB")
    try:
        card = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected a machine translation card, found no JSON") from error
    if not isinstance(card, dict):
        raise InputError(f"{path}: expected an object of JSON, found another value")
    return TranslationCard.from_dict(card, str(path))


def _errors(errors: Fields, name: str) -> LeftOut:
    table = required_table(errors, name)
    logs, group, groups = table.numbers("log_error"), table.take("group"), table.texts("groups")
    where = f"{table.where}: {name}"
    if logs is None or not isinstance(group, list) or not all(type(place) is int for place in group):
        raise InputError(f"{where}: expected log_error and group, lists of numbers, found others")
    if any(not 0 <= place < len(groups) for place in group):
        raise InputError(f"{where}: group: expected places in groups, found others")
    try:
        return LeftOut.from_state(
            {
                "log_error": np.array(logs, dtype=np.float64),
                "group": np.array(group, dtype=np.int64),
                "groups": np.array(groups, dtype=np.str_),
            }
        )
    except (InputError, OverflowError) as error:
        raise InputError(f"{where}: {error}") from error


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
    if not is_plausible(found):
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


def _slowdown(solo: Solo, own: Estimate | None, card: TranslationCard, level: float) -> Estimate | None:
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


def _joined(
    value: float, own: Estimate, card: TranslationCard, quantity: str, level: float
) -> Estimate | None:
    """A value whose interval reaches as far as errors of the model and of the card do together."""
    if not is_plausible(value):
        return None
    errors = card.errors.get(quantity, card.errors["time"])
    factor = math.exp(math.hypot(math.log(own.high / own.value), float(errors.reach(level))))
    return Estimate(value, value / factor, value * factor, own.reached)


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
