"""The gain of jobs that share a device: their time one after another less their time together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import IsolatedRun
from crosscast.errors import InputError, importing
from crosscast.prediction.corun import (
    CoRunPrediction,
    CoRunResiduals,
    MixForecast,
    check_profile,
    is_plausible,
)
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.slowdowns import mix_times, pairs_added_up
from crosscast.units import format_bytes

LIKELY = 0.5  # Mixes that fit with a lower probability are not proposed
MOST_JOBS = 1000  # Limit, as all pairs of jobs are predicted
# Weights are integers, the largest of so many steps, as the matching needs exact sums
_STEPS = float(1 << 40)
Group = tuple[int, ...]  # Ascending indices of jobs; a job alone is a group, too


def pair_gain(lengths: Reals, slowdowns: Reals) -> Reals:
    """Return the gain of pairs, in the unit of the lengths; below 0 where they take longer together.

    Until the first ends, after ``t = min(La sa, Lb sb)``, they do ``t (1/sa + 1/sb)`` of work instead of
    ``t``; the rest of the other then runs alone. It equals `mix_times` of two jobs, and is faster.

    >>> round(float(pair_gain(np.array([1.0, 2.0]), np.array([1.5, 1.5]))), 6)
    0.5
    >>> float(pair_gain(np.array([1.0, 1.0]), np.array([2.0, 2.0])))
    0.0
    """
    ends = lengths * slowdowns
    first = np.minimum(ends[..., 0], ends[..., 1])
    return np.asarray(first * (1.0 / slowdowns[..., 0] + 1.0 / slowdowns[..., 1] - 1.0))


def best_matching(weights: Reals) -> list[tuple[int, int]]:
    """Return the matching of maximum weight: pairs of nodes, each node in one pair at most.

    It is exact (Edmonds' blossom algorithm), up to rounding of weights to 1e-12 of the largest.
    """
    if weights.shape != (len(weights), len(weights)):
        raise InputError.of(where="weights", expected="shape (n, n)", found=str(weights.shape))
    if np.isinf(weights).any():
        raise InputError.of(where="weights", expected="finite numbers", found="infinity")
    with importing("corun", "pairing jobs"):
        from rustworkx import PyGraph, max_weight_matching
    upper = np.triu(np.nan_to_num(weights), 1)
    first, second = np.nonzero(upper > 0)
    if not len(first):
        return []
    steps = np.maximum(np.round(upper[first, second] / upper.max() * _STEPS), 1.0).astype(np.int64)
    graph = PyGraph(multigraph=False)
    graph.add_nodes_from(range(len(weights)))
    graph.add_edges_from(list(zip(first.tolist(), second.tolist(), steps.tolist(), strict=True)))
    matching = max_weight_matching(graph, max_cardinality=False, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in matching)


_MOST_S = 1e9
"""Longest time of a job, in seconds."""


@dataclass(frozen=True, eq=False)
class ColocationJobs:
    """``n`` jobs, sorted by their facts, so that a plan does not depend on their order."""

    isolated_runs: tuple[IsolatedRun, ...]  # The jobs
    index: Integers  # Index of each in the input, of shape `(n,)`
    kind: Integers  # Its job kind, of shape `(n,)`, ascending: equal for jobs with equal facts
    length_s: Reals  # Times alone, in seconds, of shape `(n,)`
    memory_bytes: Reals  # Memory of each, 0 where it is not known, of shape `(n,)`

    def __len__(self) -> int:
        """Number of jobs."""
        return len(self.isolated_runs)

    @classmethod
    def of(
        cls,
        isolated_runs: Sequence[IsolatedRun],
        device: str,
        *,
        lengths: Sequence[float] | None = None,
        memory_bytes: int | None = None,
    ) -> ColocationJobs:
        """Check and sort jobs."""
        if not 2 <= len(isolated_runs) <= MOST_JOBS:
            raise InputError.of(where="jobs", expected=f"2 to {MOST_JOBS:,}", found=f"{len(isolated_runs):,}")
        if lengths is not None and len(lengths) != len(isolated_runs):
            expected = f"one for each of {len(isolated_runs)} jobs"
            raise InputError.of(where="lengths", expected=expected, found=len(lengths))
        times = [run.time_s for run in isolated_runs] if lengths is None else list(lengths)
        for run, time_s in zip(isolated_runs, times, strict=True):
            check_profile(run, device)
            if time_s is None or not (is_plausible(time_s) and time_s <= _MOST_S):
                where, whose = (run.name, "") if lengths is None else ("lengths", f"for {run.name} ")
                most = f" and at most {_MOST_S:g}" if time_s is not None and time_s > 0 else ""
                expected = f"{whose}its time alone, a number of seconds above 0{most}"
                found = "none" if time_s is None else f"{time_s:g}"
                raise InputError.of(where=where, expected=expected, found=found)
            if memory_bytes is not None and (run.memory_bytes or 0) > memory_bytes:
                expected = f"at most the {format_bytes(memory_bytes)} of {device}"
                found = f"{format_bytes(run.memory_bytes or 0)}: it does not even fit alone"
                raise InputError.of(where=run.name, field="memory_bytes", expected=expected, found=found)
        length_s = np.array(times, dtype=np.float64)
        facts = [_facts(run) for run in isolated_runs]
        order = sorted(range(len(isolated_runs)), key=lambda index: (facts[index], length_s[index]))
        kinds = {fact: number for number, fact in enumerate(sorted(set(facts)))}
        return cls(
            tuple(isolated_runs[index] for index in order),
            np.array(order, dtype=np.int64),
            np.array([kinds[facts[index]] for index in order], dtype=np.int64),
            length_s[order],
            np.array([isolated_runs[index].memory_bytes or 0 for index in order], dtype=np.float64),
        )


def _facts(run: IsolatedRun) -> str:
    """Return the facts of a job that a model uses, as a sortable text that begins with its name."""
    return repr((run.key, run.time_s, run.runs, run.power_w, run.memory_bytes, sorted(run.features.items())))


# Status of a mix: allowed; too much memory, too slow, likely not to fit; or no gain
ALLOWED, MEMORY, SLOWER, UNLIKELY, LOSES = range(5)


@dataclass(frozen=True, eq=False)
class MixJudge:
    """Slowdowns, times, gains and limits of mixes of jobs, each given by ascending indices of its jobs.

    Mixes of equal kinds are predicted once, and groups judged once.
    """

    jobs: ColocationJobs
    model: TrainedCoRunModel
    max_slowdown: float = np.inf  # Most that any job slows down
    # Whether the upper limit of a slowdown's interval must keep to it, not only the prediction
    sure: bool = False
    memory_bytes: float = np.inf  # Memory of the device, if it is known
    level: float = 0.9  # Coverage of intervals
    # By size of mixes: ascending codes of their job kinds; slowdowns, time and probability to fit of each
    _predicted: dict[int, tuple[Integers, Reals]] = field(default_factory=dict)
    _worth: dict[Group, float] = field(default_factory=dict)

    def judge(self, mixes: Integers) -> tuple[Reals, Integers]:
        """Return the worth in seconds of ``m`` mixes of ``n`` jobs, and the status of each.

        The worth is the gain times the probability that the mix fits, and 0 where a limit excludes it.
        """
        slow, fits = self.slowdowns(mixes), self.fits(mixes)
        memory = self.jobs.memory_bytes[mixes].sum(axis=1)
        too_slow = (self._limited_slowdowns(mixes, slow) > self.max_slowdown).any(axis=1)
        gain = self.jobs.length_s[mixes].sum(axis=1) - self.together(mixes)
        limits = [memory > self.memory_bytes, too_slow, fits < LIKELY, gain <= 0]
        status = np.select(limits, [MEMORY, SLOWER, UNLIKELY, LOSES], ALLOWED)
        return np.where(status == ALLOWED, gain * np.where(np.isnan(fits), 1.0, fits), 0.0), status

    def _limited_slowdowns(self, mixes: Integers, slow: Reals) -> Reals:
        """The slowdowns that must keep to the limit: predicted ones, or upper limits of intervals."""
        if not (self.sure and np.isfinite(self.max_slowdown)):
            return slow
        known, high = self.known(mixes), np.empty_like(slow)
        for each in np.unique(known).tolist():
            rows = known == each
            high[rows] = self.errors(known=each).limits(self.level, slow[rows])[1]
        for row, mix in enumerate(mixes.tolist() if self.model.measured.by_key else ()):
            if self.isolated_runs(mix) in self.model.measured:
                high[row] = [each.high for each in self.forecast(tuple(mix)).slowdown if each is not None]
        return high

    def worth_of(self, groups: Iterable[Group]) -> dict[Group, float]:
        """Return the worth of groups, each judged once; minus infinity where a limit excludes one."""
        requested = set(groups)
        new = requested - self._worth.keys()
        for size in sorted({len(group) for group in new}):
            some = sorted(group for group in new if len(group) == size)
            if size < 2:
                self._worth.update(dict.fromkeys(some, 0.0))
                continue
            worth, status = self.judge(np.array(some))
            self._worth.update(zip(some, np.where(status == ALLOWED, worth, -np.inf).tolist(), strict=True))
        return {group: self._worth[group] for group in requested}

    def isolated_runs(self, group: Sequence[int]) -> tuple[IsolatedRun, ...]:
        """Return the isolated runs of some jobs."""
        return tuple(self.jobs.isolated_runs[job] for job in group)

    def slowdowns(self, mixes: Integers) -> Reals:
        """Return predicted slowdowns of ``(m, n)`` jobs, at least the sum over pairs where `from_pairs`."""
        size = mixes.shape[1]
        slow = self._of_kinds(mixes)[:, :size]
        if self.from_pairs(size):
            slow = np.maximum(slow, pairs_added_up(len(mixes), size, lambda *p: self.slowdowns(mixes[:, p])))
        return slow

    def fits(self, mixes: Integers) -> Reals:
        """Return the probability that each mix fits, ``(m,)``; NaN where the model does not tell it."""
        return self._of_kinds(mixes)[:, -1]

    def together(self, mixes: Integers) -> Reals:
        """Return the time of each mix, ``(m,)``, as of `crosscast predict corun`.

        Where a job is not as long as its profile, or slowdowns are those of pairs, it follows from slowdowns.
        """
        lengths, size = self.jobs.length_s[mixes], mixes.shape[1]
        time_s = self._of_kinds(mixes)[:, size].copy()
        profiled = self._as_profiled[mixes].all(axis=1)
        others = np.flatnonzero(~(profiled & np.isfinite(time_s) & (not self.from_pairs(size))))
        rest, lengths = mixes[others], lengths[others]

        def of_running(rows: Integers, columns: Integers) -> Reals:
            return self.slowdowns(rest[np.ix_(rows, columns)])

        if size == 2:
            time_s[others] = lengths.sum(axis=1) - pair_gain(lengths, self.slowdowns(rest))
        elif len(others):
            time_s[others] = mix_times(lengths, self.slowdowns(rest), of_running)
        return time_s

    def forecast(self, group: Group) -> MixForecast:
        """Return the forecast of a mix of jobs of these lengths, with intervals."""
        mix, runs = np.array([group]), self.isolated_runs(group)
        lengths = self.jobs.length_s[list(group)].tolist()
        timed = tuple(replace(run, time_s=time_s) for run, time_s in zip(runs, lengths, strict=True))
        slowdowns = (self.slowdowns(mix)[0],)
        predicted = CoRunPrediction(slowdowns, self.together(mix), np.full(1, np.nan), self.fits(mix))
        return self.model.forecast([timed], predicted, self.level)[0]

    def _of_kinds(self, mixes: Integers) -> Reals:
        """Return rows of the predictions of mixes, which are made once for equal kinds of jobs."""
        size = mixes.shape[1]
        bases = len(self.jobs) ** np.arange(size)
        codes = self.jobs.kind[mixes] @ bases
        known, table = self._predicted.get(size, (np.empty(0, dtype=np.int64), np.empty((0, size + 2))))
        # Not setdiff1d, which would sort all known codes for each mix.
        absent = np.searchsorted(known, codes, "right") == np.searchsorted(known, codes)
        new = np.unique(codes[absent])
        if len(new):
            known = np.concatenate([known, new])
            table = np.concatenate([table, self._predict(new[:, None] // bases % len(self.jobs))])
            order = np.argsort(known)
            known, table = self._predicted[size] = known[order], table[order]
        rows: Reals = table[np.searchsorted(known, codes)]
        return rows

    def _predict(self, kinds: Integers) -> Reals:
        """Return slowdowns, times and fits of mixes of job kinds, of shape ``(m, n + 2)``."""
        first = self.isolated_runs(np.unique(self.jobs.kind, return_index=True)[1].tolist())
        forecast = self.model.predicted([tuple(first[kind] for kind in row) for row in kinds.tolist()])
        slowdown = np.concatenate(forecast.slowdown).reshape(kinds.shape)
        if np.isnan(slowdown).any():
            expected = "a model that predicts slowdowns"
            raise InputError.of(where=self.model.folder, expected=expected, found="another")
        return np.column_stack([slowdown, forecast.time_s, forecast.fits])

    def from_pairs(self, size: int) -> bool:
        """Whether the sum over pairs bounds the slowdowns of mixes of so many jobs."""
        return size > 2 and size not in self.model.card.sizes

    def known(self, mixes: Integers) -> Flags:
        """Return whether the training had all applications of each mix, of shape ``(m,)``."""
        return np.asarray(self._trained[mixes].all(axis=1))

    @cached_property
    def _trained(self) -> Flags:
        return np.array([self.model.knows((run,)) for run in self.jobs.isolated_runs])

    @cached_property
    def _as_profiled(self) -> Flags:
        return np.equal(self.jobs.length_s, [run.time_s or 0.0 for run in self.jobs.isolated_runs])

    def errors(self, *, known: bool) -> CoRunResiduals:
        """Return errors of slowdowns; see `TrainedCoRunModel.errors_of`."""
        errors = self.model.errors_of(known=known)
        if "slowdown" not in errors:
            expected, found = "a model with errors of slowdowns", f"errors of {', '.join(errors) or 'none'}"
            raise InputError.of(where=self.model.folder, expected=expected, found=found)
        return errors["slowdown"]
