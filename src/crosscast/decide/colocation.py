"""Co-location: the jobs that share a device, those that run alone, and the gain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers
from crosscast.data.corun import IsolatedRun
from crosscast.decide.colocation_gains import (
    ALLOWED,
    LOSES,
    MEMORY,
    SLOWER,
    UNLIKELY,
    ColocationJobs,
    Group,
    MixJudge,
    best_matching,
)
from crosscast.errors import InputError
from crosscast.prediction.corun import Estimate
from crosscast.prediction.corun.artefact import TrainedCoRunModel, corun_warnings
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
    # `serial_s` less the time together, in seconds, both with its interval as of `crosscast predict corun`;
    # the lower limit may be below 0
    gain_s: Estimate
    warnings: tuple[str, ...] = ()  # Sentences without a full stop

    @property
    def label(self) -> str:
        """The names of the jobs, joined."""
        return " + ".join(run.name for run in self.isolated_runs)

    @property
    def worth_s(self) -> float:
        """The gain times the probability that they fit, which a plan maximizes, in seconds."""
        return self.gain_s.value * (1.0 if self.fits is None else self.fits)

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
    gain_s: Estimate  # Sum of the gains, each weighted by the probability that the mix fits, in seconds
    level: float  # Coverage of intervals

    @property
    def time_s(self) -> Estimate:
        """Time of all mixes and single jobs, one after another, in seconds."""
        gain, serial = self.gain_s, self.serial_s
        return Estimate(serial - gain.value, serial - gain.high, serial - gain.low, gain.reached)

    def to_dict(self, names: Sequence[str]) -> dict[str, object]:
        """Return the plan as a JSON object, with a name for each job."""

        def facts(job: int, run: IsolatedRun) -> dict[str, object]:
            return {"job": names[job], "application": run.application, "size": run.size}

        shared = [
            {
                "jobs": [
                    {**facts(job, run), "slowdown": slowdown.to_dict()}
                    for job, run, slowdown in zip(each.jobs, each.isolated_runs, each.slowdown, strict=True)
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
) -> ColocationPlan:
    """Choose which jobs share a device, for the least total time.

    The weight of a pair is its predicted gain times the probability that it fits, and the pairs are those of
    the matching of maximum weight. A pair is excluded if it takes more memory than the device has, slows a
    job down too much, is more likely not to fit than to fit, or gains nothing.

    Parameters
    ----------
    isolated_runs
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
        Most jobs at a time, 2 to 5. Larger groups are searched for from the best with one job less.
    level
        Coverage of intervals.

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
    judge = MixJudge(jobs, model, max_slowdown or np.inf, sure, memory or np.inf, level)
    judge.errors(known=bool(judge.known(np.arange(len(jobs))[None])[0]))
    first, second = np.triu_indices(len(jobs), 1)
    weights = np.zeros((len(jobs), len(jobs)))
    status = np.full(weights.shape, -1)
    weights[first, second], status[first, second] = judge.judge(np.column_stack([first, second]))
    status[second, first] = status[first, second]
    groups: list[Group] = list(best_matching(weights))
    # From the best groups of one job less, so that larger groups are not worse.
    for most in range(3, group_size + 1):
        groups = best_groups(judge, groups, most)
    return _plan(judge, [group for group in groups if len(group) > 1], status)


def _plan(judge: MixJudge, groups: Sequence[Group], status: Integers) -> ColocationPlan:
    jobs, level = judge.jobs, judge.level
    shared = [_shared(judge, group) for group in sorted(groups, key=lambda g: min(jobs.index[list(g)]))]
    # Errors of mixes are taken to go together: independent ones would seem to cancel, while the choice
    # itself favours mixes with overestimated gains.
    weights = [1.0 if mix.fits is None else mix.fits for mix in shared]
    value, low, high = (
        float(sum(weight * getattr(mix.gain_s, end) for weight, mix in zip(weights, shared, strict=True)))
        for end in ("value", "low", "high")
    )
    taken = {job for group in groups for job in group}
    alone = [
        _alone(judge, job, status[job])
        for job in sorted(set(range(len(jobs))) - taken, key=jobs.index.__getitem__)
    ]
    gain = Estimate(value, low, high, level)
    return ColocationPlan(tuple(shared), tuple(alone), float(jobs.length_s.sum()), gain, level)


def _shared(judge: MixJudge, group: Group) -> SharedMix:
    jobs, model = judge.jobs, judge.model
    group = tuple(sorted(group, key=lambda job: int(jobs.index[job])))
    isolated_runs, forecast = judge.isolated_runs(group), judge.forecast(group)
    known = bool(judge.known(np.array([group]))[0])
    warnings = list(corun_warnings(model.card, isolated_runs, model.ranges, known=known))
    if judge.from_pairs(len(group)):
        warnings.append("each slowdown is taken to be at least what those in its pairs add up to")
    serial_s, time = float(jobs.length_s[list(group)].sum()), forecast.time_s
    assert time is not None
    return SharedMix(
        jobs=tuple(int(jobs.index[job]) for job in group),
        isolated_runs=isolated_runs,
        slowdown=tuple(each for each in forecast.slowdown if each is not None),
        fits=forecast.fits,
        serial_s=serial_s,
        gain_s=Estimate(serial_s - time.value, serial_s - time.high, serial_s - time.low, judge.level),
        warnings=tuple(warnings),
    )


def _alone(judge: MixJudge, job: int, status: Integers) -> JobAlone:
    jobs, limit = judge.jobs, f"{judge.max_slowdown:g}×"
    reasons = {
        MEMORY: ("memory", "there is not the memory for both"),
        SLOWER: ("slowdown", f"one of both {'may' if judge.sure else 'would'} slow down more than {limit}"),
        UNLIKELY: ("fits", "it is more likely not to fit than to fit"),
        LOSES: ("gain", "nothing is gained"),
        ALLOWED: ("taken", "less is gained than where they run now"),
    }
    counted = [
        (int(count), *reason) for code, reason in reasons.items() if (count := (status == code).sum()) > 0
    ]
    others = len(jobs) - 1
    if len(counted) == 1:
        reason = f"with {f'each of {others} others' if others > 1 else 'the only other job'} {counted[0][-1]}"
    else:
        reason = f"of {others} others, " + ", ".join(f"with {count} {text}" for count, _, text in counted)
    counts = {name: count for count, name, _ in counted}
    return JobAlone(int(jobs.index[job]), jobs.isolated_runs[job], float(jobs.length_s[job]), counts, reason)
