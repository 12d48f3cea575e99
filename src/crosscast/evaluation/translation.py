"""Times of the same work on two devices, and how well a line joins them (paper 004, section 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.forecast import LeftOut
from crosscast.predict.corun.translation import LOGARITHMIC, PLAIN, TimeLine, TranslationCard
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns

REPORTED = (7.0, 9.0)
"""Errors of times from a Tesla T4 to a P100, of two to five applications, that the paper reports.

It says an accuracy of 91 to 93 %.
"""

_LEAST = 3


@dataclass(frozen=True, eq=False)
class SharedTimes:
    """Times of the same work on two devices: of applications alone, in bags, and of whole bags."""

    label: str  # Where they are from
    source: str  # Keys of the devices
    target: str
    source_s: Reals  # Times, in seconds, of shape `(n,)`
    target_s: Reals
    # Times of the same application alone, of shape `(n,)`; not a number but of members of bags
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


@dataclass(frozen=True)
class TranslationScore:
    """How far a line is off where applications are left out."""

    form: str  # Form of the line
    quantity: str  # `time` or `slowdown`
    members: int | None  # Applications at the same time; `None` for all
    rows: int  # How many values were translated
    mape: float  # Mean absolute percentage error

    @property
    def accuracy(self) -> float:
        """What the paper calls accuracy: 100 % less the error."""
        return 100 - self.mape

    def to_dict(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {**vars(self), "accuracy": self.accuracy}


def shared_times(co_runs: CoRuns, source: str, target: str) -> SharedTimes:
    """Find work that was timed on both devices."""
    if source == target:
        raise InputError(f"devices: expected two different ones, found {source} twice")
    rows: list[tuple[float, float, float, float, int, frozenset[str]]] = []
    # Work on several GPUs at once, say, is not what a line through bags on one is for.
    settings = {"{}", *(bag.configuration for bag in co_runs.bags)}
    alone = {
        device: {
            _of_solo(solo): solo
            for solo in co_runs.solos
            if solo.device == device and solo.configuration in settings
        }
        for device in (source, target)
    }
    for key, one in sorted(alone[source].items()):
        other = alone[target].get(key)
        if other is not None and one.time_s and other.time_s:
            rows.append((one.time_s, other.time_s, np.nan, np.nan, 1, frozenset([one.application])))
    bags = {
        device: {bag_key(bag): bag for bag in co_runs.bags if bag.device == device and not bag.failed}
        for device in (source, target)
    }
    for name, here in sorted(bags[source].items()):
        there = bags[target].get(name)
        if there is not None:
            rows += _of_both(here, there)
    names = frozenset[str]().union(*(row[-1] for row in rows))
    if len(names) < _LEAST:
        raise InputError(
            f"{co_runs.label}: expected at least {_LEAST} applications that were timed on {source} and on "
            f"{target}, found {', '.join(sorted(names)) or 'none'}"
        )
    numbers = np.array([row[:5] for row in rows], dtype=np.float64)
    return SharedTimes(
        co_runs.label,
        source,
        target,
        source_s=numbers[:, 0],
        target_s=numbers[:, 1],
        alone_source_s=numbers[:, 2],
        alone_target_s=numbers[:, 3],
        members=numbers[:, 4].astype(np.int64),
        applications=tuple(row[-1] for row in rows),
    )


def _of_solo(solo: Solo) -> tuple[str, str, str]:
    return solo.application, solo.size, solo.configuration


def bag_key(bag: Bag) -> tuple[Any, ...]:
    """What tells a bag from others, on whichever device it ran."""
    return bag.name, tuple((solo.application, solo.size) for solo in bag.solos), bag.repeat, bag.configuration


def _of_both(here: Bag, there: Bag) -> list[tuple[float, float, float, float, int, frozenset[str]]]:
    rows = []
    count, names = len(here.members), here.applications
    if here.time_s and there.time_s:
        rows.append((here.time_s, there.time_s, np.nan, np.nan, count, names))
    for one, other in zip(here.members, there.members, strict=True):
        a, b = one.solo.time_s, other.solo.time_s
        if a and b and one.slowdown and other.slowdown:
            rows.append((a * one.slowdown, b * other.slowdown, a, b, count, names))
    return rows


def translation_scores(shared: SharedTimes) -> list[TranslationScore]:
    """Errors of both forms of lines, each application left out in turn."""
    scores = []
    for form in (PLAIN, LOGARITHMIC):
        for quantity, (logs, _, places) in _left_out(shared, form).items():
            errors = np.abs(np.expm1(logs))
            scores.append(TranslationScore(form, quantity, None, len(logs), 100 * float(errors.mean())))
            counts = shared.members[places]
            for count in np.unique(counts).tolist():
                some = errors[counts == count]
                scores.append(TranslationScore(form, quantity, count, len(some), 100 * float(some.mean())))
    return scores


def train_translation(shared: SharedTimes) -> TranslationCard:
    """Make a card of the form that errs less in times of applications that are left out."""
    scores = translation_scores(shared)
    times = [each for each in scores if each.quantity == "time" and each.members is None]
    form = min(times, key=lambda each: each.mape).form
    errors = {
        quantity: LeftOut(logs, group, shared.names)
        for quantity, (logs, group, _) in _left_out(shared, form).items()
        if len(np.unique(group)) == len(shared.names)
    }
    training = {
        "dataset": Path(shared.label).name,
        "applications": list(shared.names),
        "times": len(shared.source_s),
        "protocol": "leave-benchmark-out",
        "scores": [each.to_dict() for each in scores],
    }
    return TranslationCard(
        shared.source,
        shared.target,
        TimeLine.fit(form, shared.source_s, shared.target_s),
        float(shared.source_s.min()),
        float(shared.source_s.max()),
        errors,
        training,
    )


def _left_out(shared: SharedTimes, form: str) -> Mapping[str, tuple[Reals, Integers, Integers]]:
    """Logarithms of translated over true values, number of what was left out, and place, by quantity."""
    parts: dict[str, list[tuple[Reals, Integers, Integers]]] = {"time": [], "slowdown": []}
    for number, name in enumerate(shared.names):
        tested = shared.having(name)
        line = TimeLine.fit(form, shared.source_s[~tested], shared.target_s[~tested])
        places = np.flatnonzero(tested)
        logs = np.log(line(shared.source_s[places]) / shared.target_s[places])
        parts["time"].append((logs, np.full(len(places), number), places))
        slowed = places[np.isfinite(shared.alone_source_s[places])]
        alone = shared.alone_source_s[slowed]
        found = line.slowdown(alone, shared.source_s[slowed] / alone)
        true = shared.target_s[slowed] / shared.alone_target_s[slowed]
        parts["slowdown"].append((np.log(found / true), np.full(len(slowed), number), slowed))
    joined = {
        name: (
            np.concatenate([each[0] for each in found]),
            np.concatenate([each[1] for each in found]),
            np.concatenate([each[2] for each in found]),
        )
        for name, found in parts.items()
    }
    return {name: found for name, found in joined.items() if len(found[0])}
