"""Which jobs should share a device: the pairs that are worth most together, or groups grown from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.choose.pairing.bags import DRAWS, PredictedBags
from crosscast.choose.pairing.gain import expected_gain
from crosscast.choose.pairing.groups import Group, grown_groups
from crosscast.choose.pairing.jobs import Jobs
from crosscast.choose.pairing.kind_predictions import KindPredictions
from crosscast.choose.pairing.limits import ALLOWED, LOSES, MEMORY, SLOWER, UNLIKELY, Limits
from crosscast.choose.pairing.matching import best_matching
from crosscast.choose.pairing.plan import JobAlone, Plan, SharedBag
from crosscast.errors import InputError
from crosscast.predict.corun.artefact import TrainedCoRunModel
from crosscast.predict.corun.doubts import doubts_of
from crosscast.predict.corun.forecast import Ranged
from crosscast.predict.corun.left_out import LeftOut
from crosscast.tables.corun.solo import Solo

__all__ = ["LARGEST_GROUP", "choose_pairs"]

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

    The weight of a pair is what it is worth before it runs (`crosscast.choose.pairing.gain.expected_gain`),
    and the pairs are those of the matching of maximum weight. A pair is left out if it takes more memory
    than there is, slows a member down too much, is more likely not to fit than to fit, or gains nothing on
    average.

    Parameters
    ----------
    solos
        The jobs, alone on the model's device; one may be there several times.
    model
        A trained model.
    lengths
        Time of each job alone, in seconds; by default that of a job of its solo run.
    max_slowdown
        Most that any member of a bag may slow down, as predicted; no limit by default.
    sure
        Whether the upper limit of the interval of each slowdown must keep to it.
    memory_bytes
        Memory of the device; by default what the model's card says, if it does.
    group_size
        Most jobs of a bag, 2 to `LARGEST_GROUP`; more than two by `crosscast.choose.pairing.groups`.
    level
        Probability that the intervals are to hold.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If there are fewer than two jobs, or one of another device, without a time, or too large for the
        device; a limit is wrong; or the model does not tell slowdowns or how sure they are, or cannot
        predict bags of as many.
    MissingExtraError
        If rustworkx is not installed.
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
        (*doubts_of(predictions.model.card, solos, known=known), *_added(predictions, group)),
    )
    return found, gains[:, 0]


def _added(predictions: KindPredictions, group: Group) -> list[str]:
    if not predictions.added(len(group)):
        return []
    return ["each slowdown is taken to be at least what those in its pairs add up to"]


def _slowdown(value: float, errors: LeftOut, level: float) -> Ranged:
    factor = float(np.exp(errors.reach(level, np.log(value))))
    return Ranged(value, value / factor, value * factor, level)


def _ranged(value: float, drawn: Reals, level: float) -> Ranged:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Ranged(value, min(low, value), max(high, value), level)


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
