"""A plan: which jobs share a device, which run alone, and what that gains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.decide.pairing import (
    ALLOWED,
    AT_ONCE,
    LIKELY,
    LOSES,
    MEMORY,
    SLOWER,
    UNLIKELY,
    ErrorBags,
    Jobs,
    KindPredictions,
    Limits,
    SlowdownsLeft,
    bag_gain,
    best_matching,
    drawn_gains,
    expected_gain,
    may_share,
    turned_out,
)
from crosscast.errors import InputError
from crosscast.predict.corun.artefact import TrainedCoRunModel, corun_warnings
from crosscast.predict.corun.forecast import Estimate, LeftOut
from crosscast.tables.corun.solo import Solo


@dataclass(frozen=True)
class SharedBag:
    """Jobs that are to share the device."""

    jobs: tuple[int, ...]  # Places of the jobs among those that were given, ascending
    solos: tuple[Solo, ...]  # The jobs, in that order
    slowdown: tuple[Estimate, ...]  # Of each: time while all run over its time alone
    # Probability that they fit on the device together; `None` where the model does not tell
    fits: float | None
    serial_s: float  # Time that they take one after another, in seconds
    # That less the time together, in seconds: the mean by errors of the model. The interval may reach below 0
    gain_s: Estimate
    # What was maximized: the gain to be expected if they run one after another where they lose or do not fit,
    # in seconds
    worth_s: float
    warnings: tuple[str, ...] = ()  # What makes it doubtful; sentences without a full stop

    @property
    def label(self) -> str:
        """What it is, for people."""
        return " + ".join(solo.name for solo in self.solos)

    @property
    def together_s(self) -> float:
        """Predicted time from the common start to the end of the last, in seconds."""
        return self.serial_s - self.gain_s.value


@dataclass(frozen=True)
class JobAlone:
    """A job that is to run alone."""

    job: int  # Its place among those that were given
    solo: Solo  # The job
    time_s: float  # Time that it takes, in seconds
    # How many of the other jobs are no partners for which reason, see `crosscast.decide.colocation`
    reasons: Mapping[str, int]
    reason: str  # The same as a sentence without a full stop


@dataclass(frozen=True)
class Plan:
    """What is to be done with jobs."""

    shared: tuple[SharedBag, ...]  # Bags, in the order of their first jobs
    alone: tuple[JobAlone, ...]  # Jobs that run alone, in their order
    serial_s: float  # Time of all jobs one after another, in seconds
    gain_s: Estimate  # What all bags gain together, each weighed by the probability that it fits, in seconds
    level: float  # Probability that was asked of intervals

    @property
    def time_s(self) -> Estimate:
        """Time of all bags and single jobs, one bag after another, in seconds."""
        gain = self.gain_s
        return Estimate(
            self.serial_s - gain.value, self.serial_s - gain.high, self.serial_s - gain.low, gain.reached
        )

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Everything as a JSON object."""
        return {
            "shared": [
                {
                    "jobs": [
                        {
                            "job": names[job],
                            "application": solo.application,
                            "size": solo.size,
                            "slowdown": slowdown.to_dict(),
                        }
                        for job, solo, slowdown in zip(each.jobs, each.solos, each.slowdown, strict=True)
                    ],
                    "fits": each.fits,
                    "together_s": each.together_s,
                    "one_after_another_s": each.serial_s,
                    "gain_s": each.gain_s.to_dict(),
                    "worth_s": each.worth_s,
                    "warnings": list(each.warnings),
                }
                for each in self.shared
            ],
            "alone": [
                {
                    "job": names[each.job],
                    "application": each.solo.application,
                    "size": each.solo.size,
                    "time_s": each.time_s,
                    "no_partner": dict(each.reasons),
                    "reason": each.reason,
                }
                for each in self.alone
            ],
            "time_s": self.time_s.to_dict(),
            "one_after_another_s": self.serial_s,
            "gain_s": self.gain_s.to_dict(),
            "level": self.level,
        }


DRAWS = 100
"""Draws of errors by which bags are compared."""


@dataclass(frozen=True, eq=False)
class JudgedBags:
    """What is thought of ``b`` bags."""

    # Gain in seconds, the mean by errors of the model, of shape `(b,)`; 0 where a limit is in the way
    gain: Reals
    # Gain to be expected, see `crosscast.decide.pairing.expected_gain`; 0 where a limit is in the way
    worth: Reals
    status: Integers  # `ALLOWED`, or the first limit that is in the way


@dataclass(frozen=True, eq=False)
class PredictedBags:
    """Bags of jobs, each named by ascending places of its jobs."""

    predictions: KindPredictions  # Of which jobs, and what a model predicts of them
    limits: Limits  # What bags must keep to
    seed: int  # Start of all random numbers

    @property
    def jobs(self) -> Jobs:
        """The jobs."""
        return self.predictions.jobs

    def judged(self, bags: Integers) -> JudgedBags:
        """Predict bags of ``n`` members, of shape ``(b, n)``, and judge them."""
        if len(bags) == 0:
            return JudgedBags(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
        slow, fits = self.predictions.slowdowns(bags)
        status = np.select(
            [self._beyond_memory(bags), self._too_slow(bags, slow), fits < LIKELY],
            [MEMORY, SLOWER, UNLIKELY],
            ALLOWED,
        )
        gain, worth = np.zeros(len(bags)), np.zeros(len(bags))
        left = np.flatnonzero(status == ALLOWED)
        if len(left):
            gains = self.gains_by_errors(bags[left])
            gain[left], worth[left] = gains.mean(axis=0), expected_gain(gains, fits[left])
            status[left[~may_share(gains, fits[left])]] = LOSES
        return JudgedBags(gain, np.where(status == ALLOWED, worth, 0.0), status)

    def gains(self, bags: Integers, relative: Reals) -> Reals:
        """Gains, in seconds, of bags whose slowdowns turn out to be others than predicted. Of shape ``(k,
        b)``.
        """
        slow, _ = self.predictions.slowdowns(bags)
        lengths = self.jobs.length_s[bags]
        spreads = self.predictions.errors(known=bool(self.predictions.known(bags)[0])).spread(np.log(slow))
        if bags.shape[1] == 2:
            return drawn_gains(lengths, slow, spreads, relative[None], np.zeros(len(bags), dtype=np.int64))
        left = SlowdownsLeft(bags, lambda some: self.predictions.slowdowns(some)[0])
        gains = np.empty((len(relative), len(bags)))
        step = max(1, AT_ONCE // len(bags))
        for start in range(0, len(relative), step):
            draws = relative[start : start + step]
            errors = np.repeat(draws, len(bags), axis=0)
            times, slows, sure = (np.tile(each, (len(draws), 1)) for each in (lengths, slow, spreads))
            found = bag_gain(times, turned_out(slows, sure, errors), left.turned_out(sure, errors))
            gains[start : start + step] = found.reshape(len(draws), -1)
        return gains

    def gains_by_errors(self, bags: Integers) -> Reals:
        """Gains, in seconds, by draws of errors that all bags share, of shape ``(2 * DRAWS, b)``."""
        known = self.predictions.known(bags)
        gains = np.empty((2 * DRAWS, len(bags)))
        for each in np.unique(known).tolist():
            errors = ErrorBags.of(self.predictions.errors(known=each))
            relative = errors.drawn(bags.shape[1], DRAWS, self.seed)
            gains[:, known == each] = self.gains(bags[known == each], relative)
        return gains

    def _beyond_memory(self, bags: Integers) -> Flags:
        limit = np.inf if self.limits.memory_bytes is None else self.limits.memory_bytes
        return np.asarray(self.jobs.memory_bytes[bags].sum(axis=1) > limit)

    def _too_slow(self, bags: Integers, slow: Reals) -> Flags:
        limit = self.limits.max_slowdown
        if limit is None:
            return np.zeros(len(bags), dtype=np.bool_)
        most = slow
        if self.limits.sure:
            new, known = (
                self.predictions.errors(known=each).reach(self.limits.level, np.log(slow))
                for each in (False, True)
            )
            most = slow * np.exp(np.where(self.predictions.known(bags)[:, None], known, new))
        return np.asarray((most > limit).any(axis=1))


Group = tuple[int, ...]
"""Ascending places of jobs; one that is alone is a group, too."""

_LEAST = 1e-9
"""What a step adds at least, as a share of what all jobs take one after another."""


def grown_groups(bags: PredictedBags, pairs: Iterable[tuple[int, int]], most: int) -> list[Group]:
    """Groups of ``most`` jobs at the most."""
    groups: list[Group] = list(pairs)
    groups += [
        (job,) for job in sorted(set(range(len(bags.jobs))) - {job for pair in groups for job in pair})
    ]
    worth = _Worth(bags)
    before: list[Group] = []
    while groups != before:
        before = groups
        groups = _dissolved(worth, _moved(worth, _merged(worth, groups, most), most), most)
    return groups


class _Worth:
    """Worth of groups, each asked once; less than anything where a limit is in the way."""

    def __init__(self, bags: PredictedBags) -> None:
        self._bags = bags
        self._known: dict[Group, float] = {}
        self.least = _LEAST * float(bags.jobs.length_s.sum())

    def ask(self, groups: Iterable[Group]) -> None:
        """Ask the model of groups, those of a size together."""
        new = {group for group in groups if group not in self._known}
        for size in sorted({len(group) for group in new}):
            some = sorted(group for group in new if len(group) == size)
            if size < 2:
                self._known.update(dict.fromkeys(some, 0.0))
                continue
            judged = self._bags.judged(np.array(some))
            worth = np.where(judged.status == ALLOWED, judged.worth, -np.inf)
            self._known.update(zip(some, worth.tolist(), strict=True))

    def __getitem__(self, group: Group) -> float:
        return self._known[group]


def _merged(worth: _Worth, groups: list[Group], most: int) -> list[Group]:
    """Groups two and two together, where that is worth more."""
    while True:
        found = {
            (one, other): tuple(sorted(groups[one] + groups[other]))
            for one in range(len(groups))
            for other in range(one + 1, len(groups))
            if len(groups[one]) + len(groups[other]) <= most
        }
        worth.ask([*groups, *found.values()])
        added = np.zeros((len(groups), len(groups)))
        for (one, other), whole in found.items():
            rise = worth[whole] - worth[groups[one]] - worth[groups[other]]
            added[one, other] = rise if rise > worth.least else 0.0
        pairs = best_matching(added)
        if not pairs:
            return groups
        gone = {place for pair in pairs for place in pair}
        kept = [group for place, group in enumerate(groups) if place not in gone]
        groups = sorted([*kept, *(found[pair] for pair in pairs)])


def _moved(worth: _Worth, groups: list[Group], most: int) -> list[Group]:
    """Groups after all moves of single jobs that are worth something."""
    while True:
        moves = list(_moves(groups, most))
        worth.ask(group for move in moves for group in (move[2], move[3]) if group)
        rises = [_rise(worth, groups, move) for move in moves]
        touched: set[int] = set()
        after = dict(enumerate(groups))
        for place in sorted(range(len(moves)), key=lambda place: (-rises[place], place)):
            source, target, left, joined = moves[place]
            if rises[place] <= worth.least:
                break
            if not touched & {source, target}:
                touched |= {source, target}
                after[source], after[target] = left, joined
        if not touched:
            return groups
        groups = sorted(group for group in after.values() if group)


_Move = tuple[int, int, Group, Group]


def _moves(groups: list[Group], most: int) -> Iterator[_Move]:
    """From which group, to which, and what becomes of both."""
    for source, group in enumerate(groups):
        for job in group:
            left = tuple(each for each in group if each != job)
            for target, other in enumerate(groups):
                if target != source and len(other) < most:
                    yield source, target, left, tuple(sorted((*other, job)))


def _rise(worth: _Worth, groups: list[Group], move: _Move) -> float:
    source, target, left, joined = move
    after = (worth[left] if left else 0.0) + worth[joined]
    return after - worth[groups[source]] - worth[groups[target]]


def _dissolved(worth: _Worth, groups: list[Group], most: int) -> list[Group]:
    """Groups after the first of them that is worth less than what its jobs add to others has dissolved."""
    ways: dict[int, list[tuple[int, Group]]] = {}
    for source, target, _, joined in _moves(groups, most):
        ways.setdefault(source, []).append((target, joined))
    worth.ask(joined for way in ways.values() for _, joined in way)
    for source, group in enumerate(groups):
        added = sorted(
            (worth[groups[target]] - worth[joined], target, joined) for target, joined in ways.get(source, ())
        )
        left, after, rise = set(group), dict(enumerate(groups)), -worth[group]
        del after[source]
        for lost, target, joined in added:
            (job,) = set(joined) - set(groups[target])
            if job in left and after[target] == groups[target] and lost < 0:
                left.remove(job)
                after[target], rise = joined, rise - lost
        if rise > worth.least:
            return sorted([*after.values(), *((job,) for job in left)])
    return groups


LARGEST_GROUP = 5
"""Most jobs of a group, which is what paper 004 measured (section 8)."""


def choose_pairs(
    solos: Sequence[Solo],
    model: TrainedCoRunModel,
    *,
    lengths: Sequence[float] | None = None,
    max_slowdown: float | None = None,
    sure: bool = False,
    memory_bytes: int | None = None,
    group_size: int = 2,
    level: float = 0.9,
    seed: int = 0,
) -> Plan:
    """Choose which jobs share a device, for the least total time.

    The weight of a pair is what it is worth before it runs (`crosscast.decide.pairing.expected_gain`),
    and the pairs are those of the matching of maximum weight. A pair is left out if it takes more memory
    than there is, slows a member down too much, is more likely not to fit than to fit, or gains nothing on
    average.
    """
    if not 2 <= group_size <= LARGEST_GROUP:
        raise InputError(f"group_size: expected 2 to {LARGEST_GROUP}, found {group_size}")
    memory = model.card.memory_bytes if memory_bytes is None else memory_bytes
    limits = Limits(max_slowdown, sure, memory, level)
    jobs = Jobs.of(solos, model.card.device, lengths=lengths, memory_bytes=memory)
    bags = PredictedBags(KindPredictions(jobs, model), limits, seed)
    every = np.column_stack(np.triu_indices(len(jobs), 1))
    judged = bags.judged(every)
    weights = np.zeros((len(jobs), len(jobs)))
    weights[tuple(every.T)] = judged.worth
    status = np.full((len(jobs), len(jobs)), -1)
    status[tuple(every.T)] = status[tuple(every[:, ::-1].T)] = judged.status
    pairs = best_matching(weights)
    groups: list[Group] = list(pairs)
    if group_size > 2:
        groups = [group for group in grown_groups(bags, pairs, group_size) if len(group) > 1]
    return _plan(bags, groups, status)


def _plan(bags: PredictedBags, groups: Sequence[Group], status: Integers) -> Plan:
    jobs, level = bags.jobs, bags.limits.level
    shared: list[SharedBag] = []
    # All bags err alike in a draw: else their errors would seem to cancel, where the choice itself favours
    # bags of which too much is expected.
    expected, total = 0.0, np.zeros(2 * DRAWS)
    for group in sorted(groups, key=lambda group: min(jobs.given[list(group)])):
        made, gains = _shared(bags, group)
        fits = 1.0 if made.fits is None else made.fits
        shared.append(made)
        expected, total = expected + fits * made.gain_s.value, total + fits * gains
    return Plan(
        tuple(shared),
        _alone(bags, groups, status),
        float(jobs.length_s.sum()),
        _ranged(expected, total, level),
        level,
    )


def _shared(bags: PredictedBags, group: Group) -> tuple[SharedBag, Reals]:
    """A bag, and its gains by errors."""
    jobs, level, predictions = bags.jobs, bags.limits.level, bags.predictions
    asked = np.array([group])
    (slow,), fits = predictions.slowdowns(asked)
    known = bool(predictions.known(asked)[0])
    errors, gains = predictions.errors(known=known), bags.gains_by_errors(asked)
    order = sorted(range(len(group)), key=lambda member: int(jobs.given[group[member]]))
    solos = tuple(jobs.solos[group[member]] for member in order)
    found = SharedBag(
        tuple(int(jobs.given[group[member]]) for member in order),
        solos,
        tuple(_slowdown(float(slow[member]), errors, level) for member in order),
        None if np.isnan(fits[0]) else float(fits[0]),
        float(jobs.length_s[list(group)].sum()),
        _ranged(float(gains.mean()), gains[:, 0], level),
        float(expected_gain(gains, fits)[0]),
        (*corun_warnings(predictions.model.card, solos, known=known), *_added(predictions, group)),
    )
    return found, gains[:, 0]


def _added(predictions: KindPredictions, group: Group) -> list[str]:
    if not predictions.added(len(group)):
        return []
    return ["each slowdown is taken to be at least what those in its pairs add up to"]


def _slowdown(value: float, errors: LeftOut, level: float) -> Estimate:
    factor = float(np.exp(errors.reach(level, np.log(value))))
    return Estimate(value, value / factor, value * factor, level)


def _ranged(value: float, drawn: Reals, level: float) -> Estimate:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Estimate(value, min(low, value), max(high, value), level)


def _alone(bags: PredictedBags, groups: Sequence[Group], status: Integers) -> tuple[JobAlone, ...]:
    taken = {job for group in groups for job in group}
    jobs = bags.jobs
    left = sorted(set(range(len(jobs))) - taken, key=jobs.given.__getitem__)
    found = []
    for job in left:
        counts = {
            name: int((status[job] == code).sum())
            for code, name in _NAMES.items()
            if (status[job] == code).any()
        }
        solo, time_s = jobs.solos[job], float(jobs.length_s[job])
        reason = _reason(counts, len(jobs) - 1, bags.limits)
        found.append(JobAlone(int(jobs.given[job]), solo, time_s, counts, reason))
    return tuple(found)


_NAMES = {MEMORY: "memory", SLOWER: "slowdown", UNLIKELY: "fits", LOSES: "gain", ALLOWED: "taken"}


def _reason(counts: dict[str, int], others: int, limits: Limits) -> str:
    limit = f"{limits.max_slowdown:g}×" if limits.max_slowdown is not None else ""
    told = {
        "memory": "there is not the memory for both",
        "slowdown": f"one of both {'may' if limits.sure else 'would'} slow down more than {limit}",
        "fits": "it is more likely not to fit than to fit",
        "gain": "nothing is gained",
        "taken": "less is gained than where these run now",
    }
    found = [(counts[name], text) for name, text in told.items() if name in counts]
    if len(found) == 1:
        return f"with {f'all {others} others' if others > 1 else 'the only other job'} {found[0][1]}"
    return f"of {others} others, " + ", ".join(f"with {count} {text}" for count, text in found)
