"""Co-location: the jobs that share a device, those that run alone, and the gain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import IsolatedRun
from crosscast.decide.colocation_gains import (
    ALLOWED,
    ERROR_SAMPLES,
    LOSES,
    MEMORY,
    SLOWER,
    UNLIKELY,
    ColocationJobs,
    Group,
    MixJudge,
    best_matching,
    expected_gain,
)
from crosscast.errors import InputError
from crosscast.prediction.corun.artefact import TrainedCoRunModel, corun_warnings
from crosscast.prediction.corun.forecast import Estimate
from crosscast.prediction.corun.slowdowns import mix_times
from crosscast.prediction.intervals import check_level

LARGEST_GROUP = 5  # Most jobs of a mix, which is what Moolchandani et al. 2022 measured (section 8).
_LEAST = 1e-9  # Least gain of a step of the search, as a share of the serial time of all jobs


@dataclass(frozen=True)
class SharedMix:
    """Jobs to run on the device at the same time."""

    jobs: tuple[int, ...]  # Indices of the jobs, ascending
    isolated_runs: tuple[IsolatedRun, ...]  # The jobs, in that order
    slowdown: tuple[Estimate, ...]  # Of each: its time while all run, over its time alone
    fits: float | None  # Probability that they fit on the device together; `None` where the model has none
    serial_s: float  # Their total time in isolation, in seconds
    # `serial_s` less the predicted time together, in seconds, as of `crosscast predict corun`; the interval
    # is by errors of the model, and its lower limit may be below 0
    gain_s: Estimate
    worth_s: float  # The objective of the matching: see `expected_gain`, in seconds
    warnings: tuple[str, ...] = ()  # Sentences without a full stop

    @property
    def label(self) -> str:
        """The names of the jobs, joined."""
        return " + ".join(isolated_run.name for isolated_run in self.isolated_runs)

    @property
    def together_s(self) -> float:
        """Predicted time from the common start to the end of the last, in seconds."""
        return self.serial_s - self.gain_s.value


@dataclass(frozen=True)
class JobAlone:
    """A job that is to run alone."""

    job: int  # Its index
    isolated_run: IsolatedRun
    time_s: float
    reasons: Mapping[str, int]  # Number of the other jobs by the reason against sharing: see `_alone`
    reason: str  # The same as a sentence without a full stop


@dataclass(frozen=True)
class ColocationPlan:
    """A partition of jobs into mixes and jobs alone, with times and gains."""

    shared: tuple[SharedMix, ...]  # In the order of their first jobs
    alone: tuple[JobAlone, ...]  # Jobs that run alone, in their order
    serial_s: float  # Time of all jobs one after another, in seconds
    gain_s: Estimate  # Gain of all mixes, each weighted by the probability that it fits, in seconds
    level: float  # Coverage of intervals

    @property
    def time_s(self) -> Estimate:
        """Time of all mixes and single jobs, one after another, in seconds."""
        gain, serial = self.gain_s, self.serial_s
        return Estimate(serial - gain.value, serial - gain.high, serial - gain.low, gain.reached)

    def to_dict(self, names: Sequence[str]) -> dict[str, object]:
        """Return the plan as a JSON object, with a name for each job."""

        def facts(job: int, isolated_run: IsolatedRun) -> dict[str, object]:
            return {"job": names[job], "application": isolated_run.application, "size": isolated_run.size}

        shared = [
            {
                "jobs": [
                    {**facts(job, isolated_run), "slowdown": slowdown.to_dict()}
                    for job, isolated_run, slowdown in zip(
                        each.jobs, each.isolated_runs, each.slowdown, strict=True
                    )
                ],
                "fits": each.fits,
                "together_s": each.together_s,
                "one_after_another_s": each.serial_s,
                "gain_s": each.gain_s.to_dict(),
                "worth_s": each.worth_s,
                "warnings": list(each.warnings),
            }
            for each in self.shared
        ]
        alone = [
            facts(each.job, each.isolated_run)
            | {"time_s": each.time_s, "no_partner": dict(each.reasons), "reason": each.reason}
            for each in self.alone
        ]
        return {
            "shared": shared,
            "alone": alone,
            "time_s": self.time_s.to_dict(),
            "one_after_another_s": self.serial_s,
            "gain_s": self.gain_s.to_dict(),
            "level": self.level,
        }


def best_groups(judge: MixJudge, pairs: Iterable[Group], most: int) -> list[Group]:
    """Search for groups of up to ``most`` jobs by local steps from pairs; a better grouping may exist."""
    jobs = judge.jobs
    least = _LEAST * float(jobs.length_s.sum())
    groups: list[Group] = list(pairs)
    groups += [(job,) for job in sorted(set(range(len(jobs))).difference(*groups))]
    before: list[Group] = []
    while groups != before:
        before = groups
        for step in (_merged, _moved, _dissolved):
            groups = step(judge, groups, most, least)
    return groups


def _merged(judge: MixJudge, groups: list[Group], most: int, least: float) -> list[Group]:
    """Merge pairs of groups, as far as that is worth more."""
    while True:
        merged = {
            (one, other): tuple(sorted(groups[one] + groups[other]))
            for one in range(len(groups))
            for other in range(one + 1, len(groups))
            if len(groups[one]) + len(groups[other]) <= most
        }
        worth = judge.worth_of([*groups, *merged.values()])
        added = np.zeros((len(groups), len(groups)))
        for (one, other), union in merged.items():
            rise = worth[union] - worth[groups[one]] - worth[groups[other]]
            added[one, other] = rise if rise > least else 0.0
        pairs = best_matching(added)
        if not pairs:
            return groups
        matched = {index for pair in pairs for index in pair}
        unmatched = [group for index, group in enumerate(groups) if index not in matched]
        groups = sorted([*unmatched, *(merged[pair] for pair in pairs)])


def _moves(groups: list[Group], most: int) -> Iterator[tuple[int, int, Group, Group]]:
    """Yield moves of one job: source, target, and both groups after the move."""
    for source, group in enumerate(groups):
        for job in group:
            rest = tuple(each for each in group if each != job)
            for target, other in enumerate(groups):
                if target != source and len(other) < most:
                    yield source, target, rest, tuple(sorted((*other, job)))


def _moved(judge: MixJudge, groups: list[Group], most: int, least: float) -> list[Group]:
    """Move single jobs between groups, as far as that is worth more."""
    while True:
        moves = list(_moves(groups, most))
        worth = {(): 0.0, **judge.worth_of(group for move in moves for group in move[2:] if group)}
        worth |= judge.worth_of(groups)
        rises = [
            worth[rest] + worth[joined] - worth[groups[source]] - worth[groups[target]]
            for source, target, rest, joined in moves
        ]
        touched: set[int] = set()
        after = dict(enumerate(groups))
        for index in sorted(range(len(moves)), key=lambda index: (-rises[index], index)):
            source, target, rest, joined = moves[index]
            if rises[index] <= least:
                break
            if not touched & {source, target}:
                touched |= {source, target}
                after[source], after[target] = rest, joined
        if not touched:
            return groups
        groups = sorted(group for group in after.values() if group)


def _dissolved(judge: MixJudge, groups: list[Group], most: int, least: float) -> list[Group]:
    """Dissolve the first group that is worth less than its jobs add to others."""
    moves: dict[int, list[tuple[int, Group]]] = {}
    for source, target, _, joined in _moves(groups, most):
        moves.setdefault(source, []).append((target, joined))
    worth = judge.worth_of([*groups, *(joined for each in moves.values() for _, joined in each)])
    for source, group in enumerate(groups):
        added = sorted(
            (worth[groups[target]] - worth[joined], target, joined)
            for target, joined in moves.get(source, ())
        )
        remaining, after, rise = set(group), dict(enumerate(groups)), -worth[group]
        del after[source]
        for lost, target, joined in added:
            (job,) = set(joined) - set(groups[target])
            if job in remaining and after[target] == groups[target] and lost < 0:
                remaining.remove(job)
                after[target], rise = joined, rise - lost
        if rise > least:
            return sorted([*after.values(), *((job,) for job in remaining)])
    return groups


def choose_colocation(
    isolated_runs: Sequence[IsolatedRun],
    model: TrainedCoRunModel,
    *,
    lengths: Sequence[float] | None = None,
    max_slowdown: float | None = None,
    sure: bool = False,
    memory_bytes: int | None = None,
    group_size: int = 2,
    level: float = 0.9,
    seed: int = 0,
) -> ColocationPlan:
    """Choose which jobs share a device, for the least total time.

    The weight of a pair is its expected gain (`expected_gain`), and the pairs are those of the matching of
    maximum weight. A pair is excluded if it takes more memory than the device has, slows a job down too much,
    is more likely not to fit than to fit, or gains nothing on average.

    Parameters
    ----------
    isolated runs
        Isolated runs of 2 to 1,000 jobs, as `crosscast.read_corun_profile` reads them; the same one several
        times for equal jobs.
    model
        A model of co-runs on their device.
    lengths
        Seconds that each job takes in isolation; by default the times of the isolated runs.
    max_slowdown
        Largest predicted slowdown of a job, a ratio of at least 1; no limit by default.
    sure
        Hold the upper limits of the slowdowns' intervals to `max_slowdown`, too.
    memory_bytes
        Memory of the device; by default that of the model's device, if it is known.
    group_size
        Most jobs at a time, 2 to 5. Larger groups than pairs are searched for from the best pairs.
    level
        Coverage of intervals.
    seed
        Random seed.

    Returns
    -------
    ColocationPlan
        Mixes that share the device and jobs that run alone, with times and gains in seconds.

    Raises
    ------
    InputError
        If there are too few or too many jobs, one is of another device or fits no device, or a limit is not
        as expected.
    MissingExtraError
        If the library of matchings is not installed.
    """
    if not 2 <= group_size <= LARGEST_GROUP:
        raise InputError.of(where="group_size", expected=f"2 to {LARGEST_GROUP}", found=group_size)
    check_level(level)
    if max_slowdown is not None and not 1 <= max_slowdown < np.inf:
        found = f"{max_slowdown:g}"
        raise InputError.of(where="max_slowdown", expected="a number of at least 1", found=found)
    if memory_bytes is not None and memory_bytes < 1:
        raise InputError.of(where="memory_bytes", expected="a number above 0", found=memory_bytes)
    memory = model.card.memory_bytes if memory_bytes is None else memory_bytes
    jobs = ColocationJobs.of(isolated_runs, model.card.device, lengths=lengths, memory_bytes=memory)
    judge = MixJudge(jobs, model, max_slowdown or np.inf, sure, memory or np.inf, level, seed)
    first, second = np.triu_indices(len(jobs), 1)
    weights = np.zeros((len(jobs), len(jobs)))
    status = np.full(weights.shape, -1)
    weights[first, second], status[first, second] = judge.judge(np.column_stack([first, second]))
    status[second, first] = status[first, second]
    groups: list[Group] = list(best_matching(weights))
    if group_size > 2:
        groups = [group for group in best_groups(judge, groups, group_size) if len(group) > 1]
    return _plan(judge, groups, status)


def _plan(judge: MixJudge, groups: Sequence[Group], status: Integers) -> ColocationPlan:
    jobs, level = judge.jobs, judge.level
    shared: list[SharedMix] = []
    # All mixes share the errors of a sample: independent errors would seem to cancel, while the choice itself
    # favours mixes with overestimated gains.
    expected, total = 0.0, np.zeros(2 * ERROR_SAMPLES)
    for group in sorted(groups, key=lambda group: min(jobs.index[list(group)])):
        made, gains = _shared(judge, group)
        fits = 1.0 if made.fits is None else made.fits
        shared.append(made)
        expected, total = expected + fits * made.gain_s.value, total + fits * gains
    taken = {job for group in groups for job in group}
    alone = [
        _alone(judge, job, status[job])
        for job in sorted(set(range(len(jobs))) - taken, key=jobs.index.__getitem__)
    ]
    gain = _estimate(expected, total, level)
    return ColocationPlan(tuple(shared), tuple(alone), float(jobs.length_s.sum()), gain, level)


def _shared(judge: MixJudge, group: Group) -> tuple[SharedMix, Reals]:
    """Return a mix, and samples of its gain."""
    jobs, level, mix = judge.jobs, judge.level, np.array([group])
    (slow,), fits = judge.slowdowns(mix)
    known = bool(judge.known(mix)[0])
    errors, gains = judge.errors(known=known), judge.sample_gains(mix)
    order = sorted(range(len(group)), key=lambda index: int(jobs.index[group[index]]))
    isolated_runs = tuple(jobs.isolated_runs[group[index]] for index in order)
    ends = np.column_stack([slow[order], *errors.limits(level, slow[order])]).tolist()
    slowdowns = tuple(Estimate(value, low, high, level) for value, low, high in ends)
    warnings = list(corun_warnings(judge.model.card, isolated_runs, judge.model.ranges, known=known))
    if judge.from_pairs(len(group)):
        warnings.append("each slowdown is taken to be at least what those in its pairs add up to")
    serial_s = float(jobs.length_s[list(group)].sum())
    shared = SharedMix(
        jobs=tuple(int(jobs.index[group[index]]) for index in order),
        isolated_runs=isolated_runs,
        slowdown=slowdowns,
        fits=None if np.isnan(fits[0]) else float(fits[0]),
        serial_s=serial_s,
        gain_s=_estimate(serial_s - _together(judge, group, isolated_runs), gains[:, 0], level),
        worth_s=float(expected_gain(gains, fits)[0]),
        warnings=tuple(warnings),
    )
    return shared, gains[:, 0]


def _together(judge: MixJudge, group: Group, isolated_runs: tuple[IsolatedRun, ...]) -> float:
    """Return the time of a mix: the model's where jobs are as long as their profiles, else by slowdowns."""
    lengths = judge.jobs.length_s[list(group)]
    (time_s,) = judge.model.predicted([isolated_runs]).time_s
    as_profiled = sorted(lengths.tolist()) == sorted(
        isolated_run.time_s or 0.0 for isolated_run in isolated_runs
    )
    if as_profiled and np.isfinite(time_s) and not judge.from_pairs(len(group)):
        return float(time_s)

    def slowdowns_of(rows: Integers, columns: Integers) -> Reals:
        return judge.slowdowns(np.array([group])[np.ix_(rows, columns)])[0]

    return float(mix_times(lengths[None], judge.slowdowns(np.array([group]))[0], slowdowns_of)[0])


def _estimate(value: float, samples: Reals, level: float) -> Estimate:
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Estimate(value, min(low, value), max(high, value), level)


def _alone(judge: MixJudge, job: int, status: Integers) -> JobAlone:
    jobs, limit = judge.jobs, f"{judge.max_slowdown:g}×"
    reasons = {
        MEMORY: ("memory", "there is not the memory for both"),
        SLOWER: ("slowdown", f"one of both {'may' if judge.sure else 'would'} slow down more than {limit}"),
        UNLIKELY: ("fits", "it is more likely not to fit than to fit"),
        LOSES: ("gain", "nothing is gained"),
        ALLOWED: ("taken", "less is gained than where these run now"),
    }
    counted = [
        (int(count), *reason) for code, reason in reasons.items() if (count := (status == code).sum()) > 0
    ]
    others = len(jobs) - 1
    if len(counted) == 1:
        reason = f"with {f'all {others} others' if others > 1 else 'the only other job'} {counted[0][-1]}"
    else:
        reason = f"of {others} others, " + ", ".join(f"with {count} {text}" for count, _, text in counted)
    counts = {name: count for count, name, _ in counted}
    return JobAlone(int(jobs.index[job]), jobs.isolated_runs[job], float(jobs.length_s[job]), counts, reason)
