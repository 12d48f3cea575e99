"""The gain of jobs that share a device: their time one after another less their time together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import IsolatedRun
from crosscast.errors import InputError, importing
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.forecast import CoRunResiduals, check_profile, is_plausible
from crosscast.prediction.corun.slowdowns import mix_times, pairs_added_up
from crosscast.units import format_bytes

LIKELY = 0.5  # Mixes that fit with a lower probability are not proposed
MOST_JOBS = 1000  # Limit, as all pairs of jobs are predicted
ERROR_SAMPLES = 100  # Errors drawn for the comparison of mixes; each is used in both orders
_AT_ONCE = 1 << 14  # Gains computed at once: more would not stay in the cache
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


def expected_gain(gains: Reals, fits: Reals) -> Reals:
    """Return the expected gains of mixes before they run, by samples of their gains, of shape ``(m,)``.

    Mixes that prove slower than one job after another, or do not fit, are broken up and gain nothing. As this
    cuts losses off, the mean of the gains exceeds the gain of the mean, and uncertainty raises it.
    """
    return np.asarray(np.maximum(gains, 0.0).mean(axis=0) * np.where(np.isnan(fits), 1.0, fits))


def may_share(gains: Reals, fits: Reals) -> Flags:
    """Return the mask of mixes that gain on average, and are at least as likely to fit as not."""
    return np.asarray((gains.mean(axis=0) > 0) & ~(fits < LIKELY))


def sample_slowdowns(slowdowns: Reals, spreads: Reals, relative: Reals) -> Reals:
    """Return samples of true slowdowns by relative errors; a job is no faster in a mix than alone."""
    return np.maximum(slowdowns * np.exp(-relative * spreads), 1.0)


def sample_pair_gains(lengths: Reals, slowdowns: Reals, spreads: Reals, relative: Reals) -> Reals:
    """Return gains of ``p`` pairs, ``(k, p)``, by relative errors, ``(k, p, 2)`` or ``(k, 1, 2)``."""
    gains = np.empty((len(relative), len(lengths)))
    step = max(1, _AT_ONCE // max(1, len(lengths)))
    for start in range(0, len(gains), step):
        some = slice(start, start + step)
        gains[some] = pair_gain(lengths, sample_slowdowns(slowdowns, spreads, relative[some]))
    return gains


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
class JointErrors:
    """Errors of ``m`` held-out mixes.

    Errors of co-runners are correlated (one that slows down more than predicted slows the other down), so
    that the errors of one mix are drawn together.
    """

    # Logarithms of predicted over true slowdowns, over their spread (`CoRunResiduals.spread`), of shape
    # `(m, most jobs)`
    relative: Reals
    count: Integers  # Jobs of each mix, of shape `(m,)`

    @classmethod
    def of(cls, errors: CoRunResiduals) -> JointErrors:
        """Group errors of slowdowns by mix; each is a mix of its own where mixes are not known."""
        mixes = np.arange(len(errors.log_error)) if errors.mix is None else errors.mix
        order = np.lexsort((mixes, errors.group))
        group, mix = errors.group[order], mixes[order]
        new = np.append(True, (np.diff(group) != 0) | (np.diff(mix) != 0))
        number, starts = np.cumsum(new) - 1, np.flatnonzero(new)
        column = np.arange(len(order)) - starts[number]
        values = np.zeros_like(errors.log_error) if errors.log_value is None else errors.log_value
        padded = np.zeros((len(starts), int(column.max()) + 1))
        padded[number, column] = (errors.log_error / errors.spread(values))[order]
        return cls(padded, np.bincount(number))

    def sample(self, jobs: int, count: int, seed: int) -> Reals:
        """Draw relative errors for mixes of so many jobs, of shape ``(2 * count, jobs)``.

        All compared mixes share one sample, so that none is chosen for a lucky draw. Each draw is repeated
        with its jobs in reverse order, which treats both jobs of a pair alike. Mixes of more jobs than the
        drawn one cycle through its errors.
        """
        random = np.random.default_rng(seed)
        chosen = random.integers(len(self.count), size=count)
        is_job = np.arange(self.relative.shape[1]) < self.count[chosen][:, None]
        order = np.argsort(np.where(is_job, random.random(is_job.shape), np.inf), axis=1)
        column = np.arange(jobs) % self.count[chosen][:, None]
        shuffled = np.take_along_axis(self.relative[chosen], order, axis=1)
        drawn = np.take_along_axis(shuffled, column, axis=1)
        return np.concatenate([drawn, drawn[:, ::-1]])


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
        times = [isolated_run.time_s for isolated_run in isolated_runs] if lengths is None else list(lengths)
        for isolated_run, time_s in zip(isolated_runs, times, strict=True):
            check_profile(isolated_run, device)
            if time_s is None or not (is_plausible(time_s) and time_s <= _MOST_S):
                most = f" and at most {_MOST_S:g}" if time_s is not None and time_s > 0 else ""
                expected, found = (
                    f"its time alone, a number of seconds above 0{most}",
                    "none" if time_s is None else f"{time_s:g}",
                )
                if lengths is not None:
                    expected = f"for {isolated_run.name} {expected}"
                    raise InputError.of(where="lengths", expected=expected, found=found)
                raise InputError.of(where=isolated_run.name, expected=expected, found=found)
            if memory_bytes is not None and (isolated_run.memory_bytes or 0) > memory_bytes:
                expected = f"at most the {format_bytes(memory_bytes)} of {device}"
                found = f"{format_bytes(isolated_run.memory_bytes or 0)}: it does not even fit alone"
                raise InputError.of(
                    where=isolated_run.name, field="memory_bytes", expected=expected, found=found
                )
        length_s = np.array(times, dtype=np.float64)
        facts = [_facts(isolated_run) for isolated_run in isolated_runs]
        order = sorted(range(len(isolated_runs)), key=lambda index: (facts[index], length_s[index]))
        kinds = {fact: number for number, fact in enumerate(sorted(set(facts)))}
        return cls(
            tuple(isolated_runs[index] for index in order),
            np.array(order, dtype=np.int64),
            np.array([kinds[facts[index]] for index in order], dtype=np.int64),
            length_s[order],
            np.array([isolated_runs[index].memory_bytes or 0 for index in order], dtype=np.float64),
        )


def _facts(isolated_run: IsolatedRun) -> str:
    """Return the facts of a job that a model uses, as a sortable text that begins with its name."""
    seen = (
        isolated_run.key,
        isolated_run.time_s,
        isolated_run.runs,
        isolated_run.power_w,
        isolated_run.memory_bytes,
    )
    return repr((*seen, sorted(isolated_run.features.items())))


# Status of a mix: allowed; too much memory, too slow, likely not to fit; or no gain
ALLOWED, MEMORY, SLOWER, UNLIKELY, LOSES = range(5)


@dataclass(frozen=True, eq=False)
class MixJudge:
    """Slowdowns, gains and limits of mixes of jobs, each given by ascending indices of its jobs.

    Mixes of equal kinds are predicted once, and groups judged once.
    """

    jobs: ColocationJobs
    model: TrainedCoRunModel
    max_slowdown: float = np.inf  # Most that any job slows down
    # Whether the upper limit of a slowdown's interval must keep to it, not only the prediction
    sure: bool = False
    memory_bytes: float = np.inf  # Memory of the device, if it is known
    level: float = 0.9  # Coverage of intervals
    seed: int = 0
    # By size of mixes: ascending codes of their job kinds, and slowdowns and the probability to fit of each
    _predicted: dict[int, tuple[Integers, Reals]] = field(default_factory=dict)
    _worth: dict[Group, float] = field(default_factory=dict)

    def judge(self, mixes: Integers) -> tuple[Reals, Integers]:
        """Return the worth in seconds of ``m`` mixes of ``n`` jobs, and the status of each.

        The worth is `expected_gain`, and 0 where a limit excludes the mix.
        """
        slow, fits = self.slowdowns(mixes)
        memory = self.jobs.memory_bytes[mixes].sum(axis=1)
        most = slow
        if self.sure and np.isfinite(self.max_slowdown):
            new, known = (
                self.errors(known=each).half_width(self.level, np.log(slow)) for each in (False, True)
            )
            most = slow * np.exp(np.where(self.known(mixes)[:, None], known, new))
        too_slow = (most > self.max_slowdown).any(axis=1)
        status = np.select(
            [memory > self.memory_bytes, too_slow, fits < LIKELY], [MEMORY, SLOWER, UNLIKELY], ALLOWED
        )
        worth = np.zeros(len(mixes))
        allowed = np.flatnonzero(status == ALLOWED)
        if len(allowed):
            gains = self.sample_gains(mixes[allowed])
            worth[allowed] = expected_gain(gains, fits[allowed])
            status[allowed[~may_share(gains, fits[allowed])]] = LOSES
        return np.where(status == ALLOWED, worth, 0.0), status

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

    def slowdowns(self, mixes: Integers) -> tuple[Reals, Reals]:
        """Return predicted slowdowns of ``(m, n)`` jobs, and the probability that each mix fits, ``(m,)``.

        In mixes of more than two, if the model was trained with none as large, slowdowns are at least the sum
        over pairs, as for time sharing.
        """
        size = mixes.shape[1]
        bases = len(self.jobs) ** np.arange(size)
        codes = self.jobs.kind[mixes] @ bases
        known, table = self._predicted.get(size, (np.empty(0, dtype=np.int64), np.empty((0, size + 1))))
        # Not setdiff1d, which would sort all known codes for each mix.
        absent = np.searchsorted(known, codes, "right") == np.searchsorted(known, codes)
        new = np.unique(codes[absent])
        if len(new):
            known = np.concatenate([known, new])
            table = np.concatenate([table, self._predict(new[:, None] // bases % len(self.jobs))])
            order = np.argsort(known)
            known, table = self._predicted[size] = known[order], table[order]
        rows = table[np.searchsorted(known, codes)]
        slow, fits = rows[:, :-1], rows[:, -1]
        if self.from_pairs(size):
            added = pairs_added_up(len(mixes), size, lambda *pair: self.slowdowns(mixes[:, pair])[0])
            slow = np.maximum(slow, added)
        return slow, fits

    def _predict(self, kinds: Integers) -> Reals:
        """Return slowdowns and fits of mixes of job kinds, of shape ``(m, n + 1)``."""
        first = [
            self.jobs.isolated_runs[index]
            for index in np.unique(self.jobs.kind, return_index=True)[1].tolist()
        ]
        forecast = self.model.predicted([tuple(first[kind] for kind in row) for row in kinds.tolist()])
        slowdown = np.concatenate(forecast.slowdown).reshape(kinds.shape)
        if np.isnan(slowdown).any():
            expected = "a model that predicts slowdowns"
            raise InputError.of(where=self.model.folder, expected=expected, found="another")
        return np.column_stack([slowdown, forecast.fits])

    def from_pairs(self, size: int) -> bool:
        """Whether the sum over pairs bounds the slowdowns of mixes of so many jobs."""
        return size > 2 and size not in self.model.card.sizes

    def known(self, mixes: Integers) -> Flags:
        """Return whether the training had all applications of each mix, of shape ``(m,)``."""
        return np.asarray(self._trained[mixes].all(axis=1))

    @cached_property
    def _trained(self) -> Flags:
        return np.array([self.model.knows((isolated_run,)) for isolated_run in self.jobs.isolated_runs])

    def errors(self, *, known: bool) -> CoRunResiduals:
        """Return errors of slowdowns; see `TrainedCoRunModel.errors_of`."""
        errors = self.model.errors_of(known=known)
        if "slowdown" not in errors:
            expected, found = "a model with errors of slowdowns", f"errors of {', '.join(errors) or 'none'}"
            raise InputError.of(where=self.model.folder, expected=expected, found=found)
        return errors["slowdown"]

    def sample_gains(self, mixes: Integers) -> Reals:
        """Return gains in seconds by errors that all mixes share, of shape ``(2 * ERROR_SAMPLES, m)``."""
        known = self.known(mixes)
        gains = np.empty((2 * ERROR_SAMPLES, len(mixes)))
        for each in np.unique(known).tolist():
            errors = self.errors(known=each)
            relative = JointErrors.of(errors).sample(mixes.shape[1], ERROR_SAMPLES, self.seed)
            gains[:, known == each] = self._gains(mixes[known == each], errors, relative)
        return gains

    def _gains(self, mixes: Integers, errors: CoRunResiduals, relative: Reals) -> Reals:
        """Return gains in seconds of mixes of one size by relative errors, of shape ``(k, m)``."""
        (count, size), lengths = mixes.shape, self.jobs.length_s[mixes]
        slow, _ = self.slowdowns(mixes)
        spreads = errors.spread(np.log(slow))
        if size == 2:
            return sample_pair_gains(lengths, slow, spreads, relative[:, None])
        gains = np.empty((len(relative), count))
        step = max(1, _AT_ONCE // count)
        predicted: dict[Group, Reals] = {}

        for start in range(0, len(relative), step):
            errors_of_step = np.repeat(relative[start : start + step], count, axis=0)
            times, slows, spread = (
                np.tile(each, (len(errors_of_step) // count, 1)) for each in (lengths, slow, spreads)
            )

            def slowdowns_of(
                rows: Integers,
                columns: Integers,
                spread: Reals = spread,
                errors_of_step: Reals = errors_of_step,
            ) -> Reals:
                """Return slowdowns of the jobs that still run, of the mixes repeated for each draw."""
                subset, cells = tuple(columns.tolist()), np.ix_(rows, columns)
                if subset not in predicted:
                    predicted[subset] = self.slowdowns(mixes[:, columns])[0]
                return sample_slowdowns(predicted[subset][rows % count], spread[cells], errors_of_step[cells])

            together = mix_times(times, sample_slowdowns(slows, spread, errors_of_step), slowdowns_of)
            gains[start : start + step] = (times.sum(axis=1) - together).reshape(-1, count)
        return gains
