"""Lines that translate times on one device to times on another (Moolchandani et al. 2022, section 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import CoRuns, MeasuredMix
from crosscast.errors import InputError

Form = Literal["plain", "logarithmic"]
"""A line through times, as published, or through their logarithms."""

PLAIN: Form = "plain"
LOGARITHMIC: Form = "logarithmic"


class TimeLine(msgspec.Struct, frozen=True):
    """A linear regression of times on times."""

    form: Form  # Plain: `slope * t + intercept`; logarithmic: `exp(intercept) * t ** slope`
    slope: float
    intercept: float  # In seconds for a plain line
    # The shortest time on the other device in the fit, and of predictions, as a plain line may fall below 0
    least_s: float

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
