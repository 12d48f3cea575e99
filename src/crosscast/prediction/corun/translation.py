"""Lines that translate times on one device to times on another (Moolchandani et al. 2022, section 9)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix
from crosscast.data.fields import decode
from crosscast.data.files import atomic_file
from crosscast.errors import InputError
from crosscast.prediction.corun import CoRunResiduals, Estimate, MixForecast, is_plausible
from crosscast.prediction.corun.artefact import TrainedCoRunModel

Form = Annotated[str, msgspec.Meta(pattern="^(plain|logarithmic)$")]
"""A line through times, as published, or through their logarithms."""

PLAIN: Form = "plain"
LOGARITHMIC: Form = "logarithmic"

_Positive = Annotated[float, msgspec.Meta(gt=0)]


class TimeLine(msgspec.Struct, frozen=True):
    """A linear regression of times on times."""

    form: Form  # Plain: `slope * t + intercept`; logarithmic: `exp(intercept) * t ** slope`
    slope: float
    intercept: float  # In seconds for a plain line
    # The shortest time on the other device in the fit, and of predictions, as a plain line may fall below 0
    least_s: _Positive

    @classmethod
    def fit(cls, form: Form, times: Reals, target: Reals) -> TimeLine:
        """Fit by ordinary least squares.

        >>> line = TimeLine.fit(PLAIN, np.array([1.0, 2.0]), np.array([0.75, 1.25]))
        >>> round(float(line(np.array([3.0]))[0]), 6)
        1.75
        """
        distinct = len(np.unique(times))
        if distinct < 2:
            expected = "at least 2 different ones to draw a line"
            raise InputError.of(where="times", expected=expected, found=distinct)
        x, y = (np.log(times), np.log(target)) if form == LOGARITHMIC else (times, target)
        middle = x.mean()
        slope = float(((x - middle) * (y - y.mean())).sum() / ((x - middle) ** 2).sum())
        return cls(form, slope, float(y.mean() - slope * middle), float(target.min()))

    def __call__(self, times: Reals) -> Reals:
        """Times on the other device, in seconds, of the shape of ``times``."""
        if self.form == LOGARITHMIC:
            return np.asarray(np.exp(self.intercept + self.slope * np.log(times)))
        return np.maximum(self.slope * times + self.intercept, self.least_s)

    def slowdown(self, alone: Reals, slowdown: Reals) -> Reals:
        """Slowdown on the other device, from isolated times and slowdowns on this one."""
        return np.asarray(self(alone * slowdown) / self(alone))


FORMAT = "crosscast machine translation card"
"""The field ``format`` of these files."""


class TranslationErrors(msgspec.Struct, frozen=True):
    """Errors on held-out applications."""

    log_error: list[float]  # Logarithms of translated over true values
    group: list[int]  # Number of the application of each, in `groups`
    groups: list[str]

    @property
    def residuals(self) -> CoRunResiduals:
        """The errors as residuals."""
        return CoRunResiduals(np.array(self.log_error), np.array(self.group), tuple(self.groups))

    def check(self, where: str) -> None:
        """Raise InputError unless the errors and groups are consistent."""
        field = f"{where}: group"
        if not self.group or len(self.group) != len(self.log_error):
            found = f"{len(self.group)} for {len(self.log_error)}"
            raise InputError.of(where=field, expected="one for each error", found=found)
        if sorted(set(self.group)) != [*range(len(self.groups))]:
            expected = f"all indices of groups, 0 to {len(self.groups) - 1}"
            found = f"{min(self.group)} to {max(self.group)}"
            raise InputError.of(where=field, expected=expected, found=found)


class TranslationCard(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a translation of times between two devices."""

    format: str = FORMAT
    # Rises when a field changes its meaning; 1 had errors in `training` in per cent
    version: Annotated[int, msgspec.Meta(ge=1, le=2)] = 2
    source: str = msgspec.field(name="from")  # Keys of the devices
    target: str = msgspec.field(name="to")
    line: TimeLine
    shortest_s: _Positive  # Range of the times on `source` in the fit
    longest_s: _Positive
    errors: dict[str, TranslationErrors]  # By quantity: `time`, and `slowdown` if known
    training: dict[str, object]  # Training data and scores, for people

    def to_dict(self) -> dict[str, object]:
        """The card as a JSON object."""
        card: dict[str, object] = msgspec.to_builtins(self)
        return card

    def check(self, where: str) -> None:
        """Raise InputError unless the fields are consistent."""
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
    """Write a card; a file at the path is replaced."""
    text = json.dumps(card.to_dict(), indent=1, allow_nan=False)
    with atomic_file(Path(path), "card") as temporary:
        temporary.write_text(f"{text}\n", encoding="utf-8")


def read_translation(path: str | Path) -> TranslationCard:
    """Read a card."""
    where, expected = str(path), "a machine translation card"
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError.of(
            where=where, problem=f"cannot read the card ({error.strerror or error})"
        ) from error
    if len(content) > _MOST_BYTES:
        raise InputError.of(where=where, expected=expected, found="a file above 16 MiB")
    try:
        value = json.loads(content, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise InputError.of(where=where, expected=f"{expected} in JSON", found=f"none ({error})") from error
    # Check the format first, so that other files are refused for it.
    form = value.get("format") if isinstance(value, dict) else None
    if form != FORMAT:
        raise InputError.of(where=where, field="format", expected=f"a {FORMAT!r}", found=repr(form))
    card = decode(TranslationCard, value, where)
    card.check(where)
    return card


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"expected finite numbers, found {text}")
    return value


def translated_forecasts(
    model: TrainedCoRunModel,
    card: TranslationCard,
    mixes: Sequence[tuple[IsolatedRun, ...]],
    *,
    level: float = 0.9,
) -> list[MixForecast]:
    """Forecast mixes on the device that a card translates to, from profiles on the one that it is from.

    If the model is of the device of the profiles, its forecasts are translated, as published. If it is of the
    other device, the times of the profiles are translated before it predicts; all other features are used
    unchanged. The half-width of a translated interval is the root of the sum of the squares of the model's
    and the translation's, as for independent errors.
    """
    other = next((run for mix in mixes for run in mix if run.device != card.source), None)
    if other is not None:
        expected = f"the profile to be of {card.source}, from which the card translates"
        raise InputError.of(where=other.name, field="device", expected=expected, found=other.device)
    if model.card.device == card.source:
        return [_translated(forecast, card, level) for forecast in model.predict(mixes, level=level)]
    if model.card.device == card.target:
        on_target = [tuple(_run_on_target(run, card) for run in mix) for mix in mixes]
        forecasts = model.predict(on_target, level=level)
        return [_widened(forecast, card, mix, level) for forecast, mix in zip(forecasts, mixes, strict=True)]
    expected = f"one of {card.source} or {card.target}, between which the card translates"
    raise InputError.of(where="model", expected=expected, found=f"one of {model.card.device}")


def _run_on_target(run: IsolatedRun, card: TranslationCard) -> IsolatedRun:
    """An isolated run on the other device, with a translated time."""
    time_s = None if run.time_s is None else _translated_s(card, run.time_s)
    return replace(run, device=card.target, time_s=time_s, power_w=None)


def _translated_s(card: TranslationCard, seconds: float) -> float:
    with np.errstate(over="ignore"):
        translated = float(card.line(np.array([seconds]))[0])
    if not is_plausible(translated):
        expected = f"one that takes {seconds:g} s to a time above 0"
        actual = f"one that takes it to {translated:g} s"
        raise InputError.of(where="translation", field="line", expected=expected, found=actual)
    return translated


def _translated(forecast: MixForecast, card: TranslationCard, level: float) -> MixForecast:
    """Translate a forecast on the device of the profiles to the other."""
    mix = tuple(_run_on_target(run, card) for run in forecast.mix)
    times = [run.time_s for run in mix if run.time_s is not None]
    slowdowns: list[Estimate | None] = []
    for run, estimate in zip(forecast.mix, forecast.slowdown, strict=True):
        value = math.nan
        if estimate is not None and run.time_s is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(card.line.slowdown(np.array(run.time_s), np.array(estimate.value)))
        slowdowns.append(estimate and _with_both_errors(value, estimate, card, "slowdown", level))
    time = forecast.time_s
    return replace(
        forecast,
        mix=mix,
        slowdown=tuple(slowdowns),
        time_s=time and _with_both_errors(_translated_s(card, time.value), time, card, "time", level),
        serial_s=sum(times) if len(times) == len(mix) else None,
        power_w=None,
        fits=None,
        warnings=(*forecast.warnings, *_range_warnings(card, forecast.mix, time)),
    )


def _widened(
    forecast: MixForecast, card: TranslationCard, mix: Sequence[IsolatedRun], level: float
) -> MixForecast:
    """Add the errors of translated times to the interval of a forecast on the other device."""
    time, warning = forecast.time_s, f"all but the times of the profiles is taken as it is on {card.source}"
    return replace(
        forecast,
        time_s=time and _with_both_errors(time.value, time, card, "time", level),
        warnings=(*forecast.warnings, warning, *_range_warnings(card, mix, None)),
    )


def _with_both_errors(
    value: float, estimate: Estimate, card: TranslationCard, quantity: str, level: float
) -> Estimate | None:
    """A value whose interval combines the errors of the model and of the card."""
    if not is_plausible(value):
        return None
    errors = card.errors.get(quantity, card.errors["time"]).residuals
    factor = math.exp(math.hypot(math.log(estimate.high / estimate.value), float(errors.half_width(level))))
    return Estimate(value, value / factor, value * factor, estimate.reached)


def _range_warnings(
    card: TranslationCard, mix: Sequence[IsolatedRun], mix_time: Estimate | None
) -> list[str]:
    times = [run.time_s for run in mix if run.time_s is not None]
    times += [] if mix_time is None else [mix_time.value]
    if not times or (card.shortest_s <= min(times) and max(times) <= card.longest_s):
        return []
    return [
        f"times from {min(times):.3g} to {max(times):.3g} s are translated, and the card was made of those "
        f"from {card.shortest_s:.3g} to {card.longest_s:.3g} s"
    ]


_LEAST_APPLICATIONS = 3


@dataclass(frozen=True, eq=False)
class SharedTimes:
    """Times of the same work on two devices: isolated runs, co-runners, and whole mixes."""

    label: str  # Of the dataset
    source: str  # Keys of the devices
    target: str
    source_s: Reals  # Times, in seconds, of shape `(n,)`
    target_s: Reals
    # Times of a co-runner's isolated run, of shape `(n,)`; NaN for others
    alone_source_s: Reals
    alone_target_s: Reals
    members: Integers  # Applications that run at the same time, of shape `(n,)`
    applications: tuple[frozenset[str], ...]  # Names of these

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all applications, sorted."""
        return tuple(sorted(frozenset().union(*self.applications)))

    def having(self, name: str) -> Flags:
        """Mask of the times with an application, of shape ``(n,)``."""
        return np.array([name in each for each in self.applications], dtype=np.bool_)


def mix_key(mix: MeasuredMix) -> tuple[str, tuple[tuple[str, str], ...], int, str]:
    """Key of a mix, equal on all devices."""
    return (
        mix.name,
        tuple((run.application, run.size) for run in mix.isolated_runs),
        mix.repeat,
        mix.configuration,
    )


def shared_times(co_runs: CoRuns, source: str, target: str) -> SharedTimes:
    """Times of work that was timed on both devices."""
    if source == target:
        raise InputError.of(where="target", expected="two different ones", found=f"{source} twice")
    rows: list[tuple[float, float, float, float, int, frozenset[str]]] = []
    # Only configurations of mixes: no work on several GPUs at once, for example.
    settings = {"{}", *(mix.configuration for mix in co_runs.mixes)}
    alone = [
        {
            (run.application, run.size, run.configuration): run
            for run in co_runs.isolated_runs
            if run.device == device and run.configuration in settings
        }
        for device in (source, target)
    ]
    for key in sorted(set(alone[0]) & set(alone[1])):
        one_s, other_s = (runs[key].time_s for runs in alone)
        if one_s and other_s:
            rows.append((one_s, other_s, np.nan, np.nan, 1, frozenset([key[0]])))
    by_key = [
        {mix_key(mix): mix for mix in co_runs.mixes if mix.device == device and not mix.failed}
        for device in (source, target)
    ]
    for mix in sorted(set(by_key[0]) & set(by_key[1])):
        on_source, on_target = (mixes[mix] for mixes in by_key)
        count, names = len(on_source.members), on_source.applications
        if on_source.time_s and on_target.time_s:
            rows.append((on_source.time_s, on_target.time_s, np.nan, np.nan, count, names))
        for one, other in zip(on_source.members, on_target.members, strict=True):
            a, b = one.isolated_run.time_s, other.isolated_run.time_s
            if a and b and one.slowdown and other.slowdown:
                rows.append((a * one.slowdown, b * other.slowdown, a, b, count, names))
    timed = sorted(frozenset[str]().union(*(row[-1] for row in rows)))
    if len(timed) < _LEAST_APPLICATIONS:
        expected = f"at least {_LEAST_APPLICATIONS} applications that were timed on {source} and on {target}"
        raise InputError.of(where=co_runs.label, expected=expected, found=", ".join(timed) or "none")
    *times, members, applications = zip(*rows, strict=True)
    source_s, target_s, alone_source_s, alone_target_s = np.array(times, dtype=np.float64)
    return SharedTimes(
        co_runs.label,
        source,
        target,
        source_s,
        target_s,
        alone_source_s,
        alone_target_s,
        np.array(members, dtype=np.int64),
        applications,
    )


class TranslationScore(msgspec.Struct, frozen=True):
    """Error of a line on held-out applications."""

    form: str  # Of the line
    quantity: str  # `time` or `slowdown`
    members: int | None  # Applications that run at the same time; `None` for all
    rows: int  # Number of translated values
    mape: float  # Mean absolute relative error, a fraction

    def to_dict(self) -> dict[str, object]:
        """The score, as an object of JSON; the paper's accuracy is 1 less the error."""
        return {**msgspec.structs.asdict(self), "accuracy": 1 - self.mape}


def _held_out_errors(shared: SharedTimes, form: Form) -> dict[str, tuple[Reals, Integers, Integers]]:
    """Errors by quantity, with each application held out in turn, ``(e,)`` each.

    Logarithms of translated over true values; number of the application; and row of the shared time.
    """
    parts: dict[str, list[tuple[Reals, Integers, Integers]]] = {"time": [], "slowdown": []}
    for number, name in enumerate(shared.names):
        tested = shared.having(name)
        line = TimeLine.fit(form, shared.source_s[~tested], shared.target_s[~tested])
        rows = np.flatnonzero(tested)
        slowed = rows[np.isfinite(shared.alone_source_s[rows])]
        alone = shared.alone_source_s[slowed]
        slowdown = line.slowdown(alone, shared.source_s[slowed] / alone)
        true = shared.target_s[slowed] / shared.alone_target_s[slowed]
        times = line(shared.source_s[rows]) / shared.target_s[rows]
        parts["time"].append((np.log(times), np.full(len(rows), number), rows))
        parts["slowdown"].append((np.log(slowdown / true), np.full(len(slowed), number), slowed))
    by_quantity = {}
    for quantity, of_applications in parts.items():
        errors, group, row = (np.concatenate(each) for each in zip(*of_applications, strict=True))
        if len(errors):
            by_quantity[quantity] = errors, group, row
    return by_quantity


def translation_scores(shared: SharedTimes) -> list[TranslationScore]:
    """Errors of both forms of lines, with each application held out in turn."""
    scores = []
    for form in (PLAIN, LOGARITHMIC):
        for quantity, (log_error, _, row) in _held_out_errors(shared, form).items():
            errors, counts = np.abs(np.expm1(log_error)), shared.members[row]
            for count in (None, *np.unique(counts).tolist()):
                chosen = errors if count is None else errors[counts == count]
                scores.append(TranslationScore(form, quantity, count, len(chosen), float(chosen.mean())))
    return scores


def train_translation(shared: SharedTimes) -> TranslationCard:
    """Fit a line of the form with the smaller error of times on held-out applications."""
    scores = translation_scores(shared)
    of_times = {each.form: each.mape for each in scores if each.quantity == "time" and each.members is None}
    form = PLAIN if of_times[PLAIN] <= of_times[LOGARITHMIC] else LOGARITHMIC
    return TranslationCard(
        source=shared.source,
        target=shared.target,
        line=TimeLine.fit(form, shared.source_s, shared.target_s),
        shortest_s=float(shared.source_s.min()),
        longest_s=float(shared.source_s.max()),
        errors={
            quantity: TranslationErrors(log_error.tolist(), group.tolist(), list(shared.names))
            for quantity, (log_error, group, _) in _held_out_errors(shared, form).items()
            if len(np.unique(group)) == len(shared.names)
        },
        training={
            "dataset": Path(shared.label).name,
            "applications": list(shared.names),
            "times": len(shared.source_s),
            "folds": "leave-benchmark-out",
            "scores": [each.to_dict() for each in scores],
        },
    )
