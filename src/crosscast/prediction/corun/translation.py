"""The line that takes times on one device to times on another (Moolchandani et al. 2022, section 9)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from crosscast.arrays import Reals
from crosscast.data.corun import Solo
from crosscast.data.fields import decode
from crosscast.data.files import whole_file
from crosscast.errors import InputError
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.forecast import Estimate, MixForecast, is_plausible
from crosscast.prediction.corun.residuals import CoRunResiduals

Form = Annotated[str, msgspec.Meta(pattern="^(plain|logarithmic)$")]
"""A line through times, as published, or one through their logarithms."""

PLAIN: Form = "plain"
LOGARITHMIC: Form = "logarithmic"

_Positive = Annotated[float, msgspec.Meta(gt=0)]


class TimeLine(msgspec.Struct, frozen=True):
    """A linear regression of times on times."""

    form: Form  # Plain: `slope * t + intercept`; logarithmic: `exp(intercept) * t ** slope`
    slope: float
    intercept: float  # That of a plain line is in seconds
    # The shortest time that it was fitted to reach: nothing below is predicted, where a plain line may fall
    # below 0
    least_s: _Positive

    @classmethod
    def fit(cls, form: Form, times: Reals, wanted: Reals) -> TimeLine:
        """Fit it by ordinary least squares.

        >>> line = TimeLine.fit(PLAIN, np.array([1.0, 2.0]), np.array([0.75, 1.25]))
        >>> round(float(line(np.array([3.0]))[0]), 6)
        1.75
        """
        different = len(np.unique(times))
        if different < 2:
            expected = "at least 2 different ones to draw a line"
            raise InputError.of(where="times", expected=expected, found=different)
        x, y = (np.log(times), np.log(wanted)) if form == LOGARITHMIC else (times, wanted)
        middle = x.mean()
        slope = float(((x - middle) * (y - y.mean())).sum() / ((x - middle) ** 2).sum())
        return cls(form, slope, float(y.mean() - slope * middle), float(wanted.min()))

    def __call__(self, times: Reals) -> Reals:
        """Times on the other device, in seconds, of the shape of ``times``."""
        if self.form == LOGARITHMIC:
            return np.asarray(np.exp(self.intercept + self.slope * np.log(times)))
        return np.maximum(self.slope * times + self.intercept, self.least_s)

    def slowdown(self, alone: Reals, slowdown: Reals) -> Reals:
        """Slowdown on the other device of work that takes so long alone, and so much longer in a mix."""
        return np.asarray(self(alone * slowdown) / self(alone))


FORMAT = "crosscast machine translation card"
"""What the field ``format`` of these files says."""


class TranslationErrors(msgspec.Struct, frozen=True):
    """Errors on applications that were left out."""

    log_error: list[float]  # Logarithms of translated over true values
    group: list[int]  # Number of the application of each, in `groups`
    groups: list[str]

    @property
    def left_out(self) -> CoRunResiduals:
        """The same as arrays."""
        return CoRunResiduals(np.array(self.log_error), np.array(self.group), tuple(self.groups))

    def check(self, where: str) -> None:
        """Refuse errors that are none."""
        field = f"{where}: group"
        if not self.group or len(self.group) != len(self.log_error):
            found = f"{len(self.group)} for {len(self.log_error)}"
            raise InputError.of(where=field, expected="one for each error", found=found)
        if sorted(set(self.group)) != [*range(len(self.groups))]:
            expected = f"all places in groups, 0 to {len(self.groups) - 1}"
            found = f"{min(self.group)} to {max(self.group)}"
            raise InputError.of(where=field, expected=expected, found=found)


class TranslationCard(msgspec.Struct, frozen=True, kw_only=True):
    """What takes times on one device to another, as its file has it."""

    format: str = FORMAT
    # Rises when a field changes its meaning; 1 had errors in `training` in per cent
    version: Annotated[int, msgspec.Meta(ge=1, le=2)] = 2
    source: str = msgspec.field(name="from")  # Keys of the devices
    target: str = msgspec.field(name="to")
    line: TimeLine
    shortest_s: _Positive  # Times on `source` between which it was fitted
    longest_s: _Positive
    errors: dict[str, TranslationErrors]  # By quantity: `time`, and `slowdown` where it is known
    training: dict[str, object]  # What it was fitted to, and how good it was, for people

    def to_dict(self) -> dict[str, object]:
        """The card as a JSON object."""
        card: dict[str, object] = msgspec.to_builtins(self)
        return card

    def check(self, where: str) -> None:
        """Refuse fields that do not fit each other."""
        if self.shortest_s > self.longest_s:
            expected, found = f"a number up to longest_s, {self.longest_s:g}", f"{self.shortest_s:g}"
            raise InputError.of(where=where, field="shortest_s", expected=expected, found=found)
        if "time" not in self.errors:
            found = ", ".join(self.errors) or "none"
            raise InputError.of(where=where, field="errors", expected="those of times", found=found)
        for name, errors in self.errors.items():
            errors.check(f"{where}: errors.{name}")


_MOST_BYTES = 1 << 24


def write_translation(card: TranslationCard, path: str | Path) -> None:
    """Write a card, in the place of what is there."""
    text = json.dumps(card.to_dict(), indent=1, allow_nan=False)
    try:
        with whole_file(Path(path)) as temporary:
            temporary.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot write the card ({error.strerror or error})") from error


def read_translation(path: str | Path) -> TranslationCard:
    """Read a card."""
    where, expected = str(path), "a machine translation card"
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{where}: cannot read the card ({error.strerror or error})") from error
    if len(content) > _MOST_BYTES:
        raise InputError.of(where=where, expected=expected, found="a file above 16 MiB")
    try:
        value = json.loads(content, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise InputError.of(where=where, expected=f"{expected} in JSON", found=f"none ({error})") from error
    # Of another file the format is what is wrong, whatever else it lacks.
    found = value.get("format") if isinstance(value, dict) else None
    if found != FORMAT:
        raise InputError.of(where=where, field="format", expected=f"a {FORMAT!r}", found=repr(found))
    card = decode(TranslationCard, value, where)
    card.check(where)
    return card


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"expected finite numbers, found {text}")
    return value


def translated_forecasts(
    model: TrainedCoRunModel, card: TranslationCard, mixes: Sequence[tuple[Solo, ...]], *, level: float = 0.9
) -> list[MixForecast]:
    """Forecast mixes on the device that a card translates to, from profiles on the one that it is from.

    If the model is of the device of the profiles, its forecasts are translated, as published. If it is of
    the other device, the times of the profiles are translated, and the model is asked with these; all other
    features are taken as they are. An interval that is translated is as wide as the errors of both would be
    together, if they do not depend on each other: the root of the sum of their squares.
    """
    other = next((solo for mix in mixes for solo in mix if solo.device != card.source), None)
    if other is not None:
        expected = f"the profile to be of {card.source}, from which the card translates"
        raise InputError.of(where=other.name, field="device", expected=expected, found=other.device)
    if model.card.device == card.source:
        return [_translated(found, card, level) for found in model.predict(mixes, level=level)]
    if model.card.device == card.target:
        there = model.predict([tuple(_there(solo, card) for solo in mix) for mix in mixes], level=level)
        return [_wider(found, card, mix, level) for found, mix in zip(there, mixes, strict=True)]
    expected = f"one of {card.source} or {card.target}, between which the card translates"
    raise InputError.of(where="model", expected=expected, found=f"one of {model.card.device}")


def _there(solo: Solo, card: TranslationCard) -> Solo:
    """An application alone on the other device, with what is known of it."""
    time_s = None if solo.time_s is None else _translated_s(card, solo.time_s)
    return replace(solo, device=card.target, time_s=time_s, power_w=None)


def _translated_s(card: TranslationCard, seconds: float) -> float:
    with np.errstate(over="ignore"):
        found = float(card.line(np.array([seconds]))[0])
    if not is_plausible(found):
        expected = f"one that takes {seconds:g} s to a time above 0"
        told = f"one that takes it to {found:g} s"
        raise InputError.of(where="translation", field="line", expected=expected, found=told)
    return found


def _translated(found: MixForecast, card: TranslationCard, level: float) -> MixForecast:
    """A forecast on the device of the profiles, as one on the other."""
    mix = tuple(_there(solo, card) for solo in found.mix)
    times = [solo.time_s for solo in mix if solo.time_s is not None]
    slowdowns: list[Estimate | None] = []
    for solo, own in zip(found.mix, found.slowdown, strict=True):
        value = math.nan
        if own is not None and solo.time_s is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(card.line.slowdown(np.array(solo.time_s), np.array(own.value)))
        slowdowns.append(own and _with_both_errors(value, own, card, "slowdown", level))
    whole = found.time_s
    return replace(
        found,
        mix=mix,
        slowdown=tuple(slowdowns),
        time_s=whole and _with_both_errors(_translated_s(card, whole.value), whole, card, "time", level),
        serial_s=sum(times) if len(times) == len(mix) else None,
        power_w=None,
        fits=None,
        warnings=(*found.warnings, *_range_warnings(card, found.mix, whole)),
    )


def _wider(found: MixForecast, card: TranslationCard, mix: Sequence[Solo], level: float) -> MixForecast:
    """A forecast on the other device, as sure as a model can be that was asked with translated times."""
    time, doubt = found.time_s, f"all but the times of the profiles is taken as it is on {card.source}"
    return replace(
        found,
        time_s=time and _with_both_errors(time.value, time, card, "time", level),
        warnings=(*found.warnings, doubt, *_range_warnings(card, mix, None)),
    )


def _with_both_errors(
    value: float, own: Estimate, card: TranslationCard, quantity: str, level: float
) -> Estimate | None:
    """A value whose interval has the errors of the model and of the card together."""
    if not is_plausible(value):
        return None
    errors = card.errors.get(quantity, card.errors["time"]).left_out
    factor = math.exp(math.hypot(math.log(own.high / own.value), float(errors.reach(level))))
    return Estimate(value, value / factor, value * factor, own.reached)


def _range_warnings(card: TranslationCard, mix: Sequence[Solo], whole: Estimate | None) -> list[str]:
    times = [solo.time_s for solo in mix if solo.time_s is not None]
    times += [] if whole is None else [whole.value]
    if not times or (card.shortest_s <= min(times) and max(times) <= card.longest_s):
        return []
    return [
        f"times from {min(times):.3g} to {max(times):.3g} s are translated, and the card was made of those "
        f"from {card.shortest_s:.3g} to {card.longest_s:.3g} s"
    ]
