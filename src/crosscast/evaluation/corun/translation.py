"""How well a line joins times of the same work on two devices (Moolchandani et al. 2022, section 9)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Bag, CoRuns
from crosscast.errors import InputError
from crosscast.prediction.corun.translation import (
    LOGARITHMIC,
    PLAIN,
    Form,
    TimeLine,
    TranslationCard,
    TranslationErrors,
)

_LEAST = 3


@dataclass(frozen=True, eq=False)
class SharedTimes:
    """Times of the same work on two devices: of applications alone, in mixes, and of whole mixes."""

    label: str  # Where they are from
    source: str  # Keys of the devices
    target: str
    source_s: Reals  # Times, in seconds, of shape `(n,)`
    target_s: Reals
    # Times of the same application alone, of shape `(n,)`; NaN but of co-runners
    alone_source_s: Reals
    alone_target_s: Reals
    members: Integers  # Applications at the same time, of shape `(n,)`: 1 alone
    applications: tuple[frozenset[str], ...]  # Of each, the names of all applications that ran

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all applications, sorted."""
        return tuple(sorted(frozenset().union(*self.applications)))

    def having(self, name: str) -> Flags:
        """Which of them an application is in, of shape ``(n,)``."""
        return np.array([name in each for each in self.applications], dtype=np.bool_)


def mix_key(bag: Bag) -> tuple[str, tuple[tuple[str, str], ...], int, str]:
    """What tells a mix from others, on whichever device it ran."""
    return bag.name, tuple((solo.application, solo.size) for solo in bag.solos), bag.repeat, bag.configuration


def shared_times(co_runs: CoRuns, source: str, target: str) -> SharedTimes:
    """Find work that was timed on both devices."""
    if source == target:
        raise InputError.of(where="target", expected="two different ones", found=f"{source} twice")
    rows: list[tuple[float, float, float, float, int, frozenset[str]]] = []
    # Work on several GPUs at once, say, is not what a line through mixes on one is for.
    settings = {"{}", *(bag.configuration for bag in co_runs.bags)}
    alone = [
        {
            (solo.application, solo.size, solo.configuration): solo
            for solo in co_runs.solos
            if solo.device == device and solo.configuration in settings
        }
        for device in (source, target)
    ]
    for key in sorted(set(alone[0]) & set(alone[1])):
        here_s, there_s = (each[key].time_s for each in alone)
        if here_s and there_s:
            rows.append((here_s, there_s, np.nan, np.nan, 1, frozenset([key[0]])))
    mixes = [
        {mix_key(bag): bag for bag in co_runs.bags if bag.device == device and not bag.failed}
        for device in (source, target)
    ]
    for mix in sorted(set(mixes[0]) & set(mixes[1])):
        here, there = (each[mix] for each in mixes)
        count, names = len(here.members), here.applications
        if here.time_s and there.time_s:
            rows.append((here.time_s, there.time_s, np.nan, np.nan, count, names))
        for one, other in zip(here.members, there.members, strict=True):
            a, b = one.solo.time_s, other.solo.time_s
            if a and b and one.slowdown and other.slowdown:
                rows.append((a * one.slowdown, b * other.slowdown, a, b, count, names))
    found = sorted(frozenset[str]().union(*(row[-1] for row in rows)))
    if len(found) < _LEAST:
        expected = f"at least {_LEAST} applications that were timed on {source} and on {target}"
        raise InputError.of(where=co_runs.label, expected=expected, found=", ".join(found) or "none")
    *times, members, applications = zip(*rows, strict=True)
    here_s, there_s, alone_s, alone_there_s = np.array(times, dtype=np.float64)
    counts = np.array(members, dtype=np.int64)
    return SharedTimes(
        co_runs.label, source, target, here_s, there_s, alone_s, alone_there_s, counts, applications
    )


class TranslationScore(msgspec.Struct, frozen=True):
    """How far a line is off where applications are left out."""

    form: str  # Form of the line
    quantity: str  # `time` or `slowdown`
    members: int | None  # Applications at the same time; `None` for all
    rows: int  # How many values were translated
    mape: float  # Mean absolute relative error, a fraction

    def to_dict(self) -> dict[str, object]:
        """As an object of JSON; what the paper calls accuracy is 1 less the error."""
        return {**msgspec.structs.asdict(self), "accuracy": 1 - self.mape}


def _left_out(shared: SharedTimes, form: Form) -> dict[str, tuple[Reals, Integers, Integers]]:
    """Errors by quantity, each application left out in turn, (e,) each.

    Logarithms of translated over true values; number of the application; and which of the shared times it is.
    """
    parts: dict[str, list[tuple[Reals, Integers, Integers]]] = {"time": [], "slowdown": []}
    for number, name in enumerate(shared.names):
        tested = shared.having(name)
        line = TimeLine.fit(form, shared.source_s[~tested], shared.target_s[~tested])
        places = np.flatnonzero(tested)
        slowed = places[np.isfinite(shared.alone_source_s[places])]
        alone = shared.alone_source_s[slowed]
        slowdown = line.slowdown(alone, shared.source_s[slowed] / alone)
        true = shared.target_s[slowed] / shared.alone_target_s[slowed]
        times = line(shared.source_s[places]) / shared.target_s[places]
        parts["time"].append((np.log(times), np.full(len(places), number), places))
        parts["slowdown"].append((np.log(slowdown / true), np.full(len(slowed), number), slowed))
    found = {}
    for quantity, every in parts.items():
        errors, group, place = (np.concatenate(each) for each in zip(*every, strict=True))
        if len(errors):
            found[quantity] = errors, group, place
    return found


def translation_scores(shared: SharedTimes) -> list[TranslationScore]:
    """Errors of both forms of lines, each application left out in turn."""
    scores = []
    for form in (PLAIN, LOGARITHMIC):
        for quantity, (log_error, _, place) in _left_out(shared, form).items():
            errors, counts = np.abs(np.expm1(log_error)), shared.members[place]
            for count in (None, *np.unique(counts).tolist()):
                some = errors if count is None else errors[counts == count]
                scores.append(TranslationScore(form, quantity, count, len(some), float(some.mean())))
    return scores


def train_translation(shared: SharedTimes) -> TranslationCard:
    """Make a card of the form that errs less in times of applications that are left out."""
    scores = translation_scores(shared)
    whole = {each.form: each.mape for each in scores if each.quantity == "time" and each.members is None}
    form = PLAIN if whole[PLAIN] <= whole[LOGARITHMIC] else LOGARITHMIC
    return TranslationCard(
        source=shared.source,
        target=shared.target,
        line=TimeLine.fit(form, shared.source_s, shared.target_s),
        shortest_s=float(shared.source_s.min()),
        longest_s=float(shared.source_s.max()),
        errors={
            quantity: TranslationErrors(log_error.tolist(), group.tolist(), list(shared.names))
            for quantity, (log_error, group, _) in _left_out(shared, form).items()
            if len(np.unique(group)) == len(shared.names)
        },
        training={
            "dataset": Path(shared.label).name,
            "applications": list(shared.names),
            "times": len(shared.source_s),
            "protocol": "leave-benchmark-out",
            "scores": [each.to_dict() for each in scores],
        },
    )
