"""What is gained when jobs share a device: the time that they take one after another less that together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Solo
from crosscast.errors import InputError, importing
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.forecast import check_profile, is_plausible
from crosscast.prediction.corun.mix_times import mix_times, pairs_added_up
from crosscast.prediction.corun.residuals import CoRunResiduals
from crosscast.units import format_bytes

LIKELY = 0.5  # Mixes that fit with a lower probability are not proposed
MOST_JOBS = 1000  # More are not placed at once: all pairs of them are predicted
ERROR_SAMPLES = 100  # Errors that are drawn to compare mixes; each is there in both orders
_AT_ONCE = 1 << 14  # So many gains are computed at once: more would not stay in the cache
# Weights are whole numbers of so many steps to the largest, as the matching needs exact sums
_STEPS = float(1 << 40)
Group = tuple[int, ...]  # Ascending places of jobs; one that is alone is a group, too


def pair_gain(lengths: Reals, slowdowns: Reals) -> Reals:
    """Gain of pairs, in the unit of the lengths; below 0 where they take longer together.

    Until the first ends, after ``t = min(La sa, Lb sb)``, they do ``t (1/sa + 1/sb)`` of work instead of
    ``t``; what is left of the other then runs alone. It is what `mix_times` tells of two jobs, and quicker.

    >>> round(float(pair_gain(np.array([1.0, 2.0]), np.array([1.5, 1.5]))), 6)
    0.5
    >>> float(pair_gain(np.array([1.0, 1.0]), np.array([2.0, 2.0])))
    0.0
    """
    ends = lengths * slowdowns
    first = np.minimum(ends[..., 0], ends[..., 1])
    return np.asarray(first * (1.0 / slowdowns[..., 0] + 1.0 / slowdowns[..., 1] - 1.0))


def expected_gain(gains: Reals, fits: Reals) -> Reals:
    """What mixes are worth before they run, by samples of their gains, of shape ``(m,)``.

    Mixes that prove slower than one job after another, or do not fit, are broken up: they gain nothing. The
    mean of gains above 0 is not the gain of the mean: as losses are cut off, what is uncertain is a chance.
    """
    return np.asarray(np.maximum(gains, 0.0).mean(axis=0) * np.where(np.isnan(fits), 1.0, fits))


def may_share(gains: Reals, fits: Reals) -> Flags:
    """Mixes that gain something on average, and are no more likely not to fit than to fit."""
    return np.asarray((gains.mean(axis=0) > 0) & ~(fits < LIKELY))


def sample_slowdowns(slowdowns: Reals, spreads: Reals, relative: Reals) -> Reals:
    """True slowdowns, if predictions err so; nobody is faster in a mix than alone, but for noise."""
    return np.maximum(slowdowns * np.exp(-relative * spreads), 1.0)


def sample_pair_gains(lengths: Reals, slowdowns: Reals, spreads: Reals, relative: Reals) -> Reals:
    """Gains of ``p`` pairs, of shape ``(k, p)``, by relative errors, ``(k, p, 2)`` or ``(k, 1, 2)``."""
    gains = np.empty((len(relative), len(lengths)))
    step = max(1, _AT_ONCE // max(1, len(lengths)))
    for start in range(0, len(gains), step):
        some = slice(start, start + step)
        gains[some] = pair_gain(lengths, sample_slowdowns(slowdowns, spreads, relative[some]))
    return gains


def best_matching(weights: Reals) -> list[tuple[int, int]]:
    """Pairs of different nodes, none in two of them, whose weights add up to the most.

    It is exact (Edmonds' blossoms), but for weights that are rounded to a share of 1e-12 of the largest.
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
    found = max_weight_matching(graph, max_cardinality=False, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in found)


@dataclass(frozen=True, eq=False)
class JointErrors:
    """Errors of ``m`` mixes that were left out.

    Co-runners err together (one that slows down more than predicted slows the other down), so that errors are
    drawn as they were found: those of one mix.
    """

    # Logarithms of predicted over true slowdowns, over their spread (`CoRunResiduals.spread`), of shape
    # `(m, most jobs)`
    relative: Reals
    count: Integers  # Jobs of each mix, of shape `(m,)`

    @classmethod
    def of(cls, errors: CoRunResiduals) -> JointErrors:
        """Errors of slowdowns by their mixes; each is a mix of its own where these are not known."""
        own = np.arange(len(errors.log_error)) if errors.mix is None else errors.mix
        order = np.lexsort((own, errors.group))
        group, mix = errors.group[order], own[order]
        new = np.append(True, (np.diff(group) != 0) | (np.diff(mix) != 0))
        number, starts = np.cumsum(new) - 1, np.flatnonzero(new)
        place = np.arange(len(order)) - starts[number]
        values = np.zeros_like(errors.log_error) if errors.log_value is None else errors.log_value
        padded = np.zeros((len(starts), int(place.max()) + 1))
        padded[number, place] = (errors.log_error / errors.spread(values))[order]
        return cls(padded, np.bincount(number))

    def sample(self, jobs: int, count: int, seed: int) -> Reals:
        """Relative errors at random, for mixes of so many jobs, of shape ``(2 * count, jobs)``.

        All mixes that are compared are given the same sample, so that none is taken because it was lucky.
        Each draw is there a second time with its jobs in the reverse order: two are treated alike. Mixes of
        more jobs than the one that is drawn take its errors from the start again.
        """
        random = np.random.default_rng(seed)
        chosen = random.integers(len(self.count), size=count)
        there = np.arange(self.relative.shape[1]) < self.count[chosen][:, None]
        order = np.argsort(np.where(there, random.random(there.shape), np.inf), axis=1)
        place = np.arange(jobs) % self.count[chosen][:, None]
        shuffled = np.take_along_axis(self.relative[chosen], order, axis=1)
        found = np.take_along_axis(shuffled, place, axis=1)
        return np.concatenate([found, found[:, ::-1]])


@dataclass(frozen=True, eq=False)
class ColocationJobs:
    """``n`` jobs, sorted by what is known of them, so that a plan does not depend on their order."""

    solos: tuple[Solo, ...]  # The jobs
    given: Integers  # Place of each among those that were given, of shape `(n,)`
    kind: Integers  # Its job kind, of shape `(n,)`: equal where all that a model sees is; it never falls
    length_s: Reals  # Times alone, in seconds, of shape `(n,)`
    memory_bytes: Reals  # Memory that each takes; 0 where it is not known, of shape `(n,)`

    def __len__(self) -> int:
        """Number of jobs."""
        return len(self.solos)

    @classmethod
    def of(
        cls,
        solos: Sequence[Solo],
        device: str,
        *,
        lengths: Sequence[float] | None = None,
        memory_bytes: int | None = None,
    ) -> ColocationJobs:
        """Check jobs."""
        if not 2 <= len(solos) <= MOST_JOBS:
            raise InputError.of(where="jobs", expected=f"2 to {MOST_JOBS:,}", found=f"{len(solos):,}")
        if lengths is not None and len(lengths) != len(solos):
            expected = f"one for each of {len(solos)} jobs"
            raise InputError.of(where="lengths", expected=expected, found=len(lengths))
        times = [solo.time_s for solo in solos] if lengths is None else list(lengths)
        for solo, time_s in zip(solos, times, strict=True):
            check_profile(solo, device)
            if time_s is None or not is_plausible(time_s):
                expected, found = (
                    "its time alone, a number of seconds above 0",
                    "none" if time_s is None else f"{time_s:g}",
                )
                raise InputError.of(where=solo.name, expected=expected, found=found)
            if memory_bytes is not None and (solo.memory_bytes or 0) > memory_bytes:
                expected = f"at most the {format_bytes(memory_bytes)} of {device}"
                found = f"{format_bytes(solo.memory_bytes or 0)}: it does not even fit alone"
                raise InputError.of(where=solo.name, field="memory_bytes", expected=expected, found=found)
        known = np.array(times, dtype=np.float64)
        facts = [_facts(solo) for solo in solos]
        order = sorted(range(len(solos)), key=lambda place: (facts[place], known[place]))
        kinds = {fact: number for number, fact in enumerate(sorted(set(facts)))}
        return cls(
            tuple(solos[place] for place in order),
            np.array(order, dtype=np.int64),
            np.array([kinds[facts[place]] for place in order], dtype=np.int64),
            known[order],
            np.array([solos[place].memory_bytes or 0 for place in order], dtype=np.float64),
        )


def _facts(solo: Solo) -> str:
    """All that a model sees of a job, as a text that sorts: first its name."""
    seen = (solo.key, solo.time_s, solo.runs, solo.power_w, solo.memory_bytes)
    return repr((*seen, sorted(solo.features.items())))


# What a limit says of a mix: nothing; too much memory, too slow, likely not to fit; or nothing is gained
ALLOWED, MEMORY, SLOWER, UNLIKELY, LOSES = range(5)


@dataclass(frozen=True, eq=False)
class MixJudge:
    """What is thought of mixes of jobs, each named by ascending places of its jobs.

    Those of equal kinds are predicted once, and groups judged once.
    """

    jobs: ColocationJobs
    model: TrainedCoRunModel
    max_slowdown: float = np.inf  # Most that any job slows down
    # Whether the upper limit of the interval of a slowdown keeps to it, not only what is predicted
    sure: bool = False
    memory_bytes: float = np.inf  # Memory of the device, if it is known
    level: float = 0.9  # Probability of intervals
    seed: int = 0
    # By size of mixes: ascending codes of their job kinds, and slowdowns and the probability to fit of each
    _predicted: dict[int, tuple[Integers, Reals]] = field(default_factory=dict)
    _worth: dict[Group, float] = field(default_factory=dict)

    def judge(self, mixes: Integers) -> tuple[Reals, Integers]:
        """Worth in seconds of ``m`` mixes of ``n`` jobs, and the first limit that is in the way of each.

        The worth is `expected_gain`, and 0 where a limit is in the way.
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
        left = np.flatnonzero(status == ALLOWED)
        if len(left):
            gains = self.sample_gains(mixes[left])
            worth[left] = expected_gain(gains, fits[left])
            status[left[~may_share(gains, fits[left])]] = LOSES
        return np.where(status == ALLOWED, worth, 0.0), status

    def worth_of(self, groups: Iterable[Group]) -> dict[Group, float]:
        """Worth of groups, each judged once; less than anything where a limit is in the way."""
        asked = set(groups)
        new = asked - self._worth.keys()
        for size in sorted({len(group) for group in new}):
            some = sorted(group for group in new if len(group) == size)
            if size < 2:
                self._worth.update(dict.fromkeys(some, 0.0))
                continue
            worth, status = self.judge(np.array(some))
            self._worth.update(zip(some, np.where(status == ALLOWED, worth, -np.inf).tolist(), strict=True))
        return {group: self._worth[group] for group in asked}

    def slowdowns(self, mixes: Integers) -> tuple[Reals, Reals]:
        """Predicted slowdowns of ``(m, n)`` jobs, and the probability that each mix fits, ``(m,)``.

        In mixes of more than two, if the model has seen none as large, slowdowns are at least what those of
        the pairs add up to: as where jobs take turns.
        """
        size = mixes.shape[1]
        bases = len(self.jobs) ** np.arange(size)
        codes = self.jobs.kind[mixes] @ bases
        known, table = self._predicted.get(size, (np.empty(0, dtype=np.int64), np.empty((0, size + 1))))
        # Not setdiff1d, which would sort all that is known for each mix.
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
        """Slowdowns and fits of mixes of job kinds, of shape ``(m, n + 1)``."""
        first = [self.jobs.solos[place] for place in np.unique(self.jobs.kind, return_index=True)[1].tolist()]
        found = self.model.predicted([tuple(first[kind] for kind in row) for row in kinds.tolist()])
        slowdown = np.concatenate(found.slowdown).reshape(kinds.shape)
        if np.isnan(slowdown).any():
            expected = "a model that predicts slowdowns"
            raise InputError.of(where=self.model.folder, expected=expected, found="another")
        return np.column_stack([slowdown, found.fits])

    def from_pairs(self, size: int) -> bool:
        """Whether slowdowns of mixes of so many are at least those that pairs add up to."""
        return size > 2 and size not in self.model.card.sizes

    def known(self, mixes: Integers) -> Flags:
        """Whether all applications of each mix are among those of the training, of shape ``(m,)``."""
        return np.asarray(self._trained[mixes].all(axis=1))

    @cached_property
    def _trained(self) -> Flags:
        return np.array([self.model.knows((solo,)) for solo in self.jobs.solos])

    def errors(self, *, known: bool) -> CoRunResiduals:
        """Errors of slowdowns; see `TrainedCoRunModel.errors_of`."""
        errors = self.model.errors_of(known=known)
        if "slowdown" not in errors:
            expected, found = "a model with errors of slowdowns", f"errors of {', '.join(errors) or 'none'}"
            raise InputError.of(where=self.model.folder, expected=expected, found=found)
        return errors["slowdown"]

    def sample_gains(self, mixes: Integers) -> Reals:
        """Gains in seconds by errors that all mixes share, of shape ``(2 * ERROR_SAMPLES, m)``."""
        known = self.known(mixes)
        gains = np.empty((2 * ERROR_SAMPLES, len(mixes)))
        for each in np.unique(known).tolist():
            errors = self.errors(known=each)
            relative = JointErrors.of(errors).sample(mixes.shape[1], ERROR_SAMPLES, self.seed)
            gains[:, known == each] = self._gains(mixes[known == each], errors, relative)
        return gains

    def _gains(self, mixes: Integers, errors: CoRunResiduals, relative: Reals) -> Reals:
        """Gains in seconds of mixes of one size if predictions err so, of shape ``(k, m)``."""
        (count, size), lengths = mixes.shape, self.jobs.length_s[mixes]
        slow, _ = self.slowdowns(mixes)
        spreads = errors.spread(np.log(slow))
        if size == 2:
            return sample_pair_gains(lengths, slow, spreads, relative[:, None])
        gains = np.empty((len(relative), count))
        step = max(1, _AT_ONCE // count)
        predicted: dict[Group, Reals] = {}

        for start in range(0, len(relative), step):
            some = np.repeat(relative[start : start + step], count, axis=0)
            times, slows, spread = (
                np.tile(each, (len(some) // count, 1)) for each in (lengths, slow, spreads)
            )

            def left(rows: Integers, places: Integers, spread: Reals = spread, some: Reals = some) -> Reals:
                """Slowdowns of the jobs that still run, of the mixes again and again."""
                subset, there = tuple(places.tolist()), np.ix_(rows, places)
                if subset not in predicted:
                    predicted[subset] = self.slowdowns(mixes[:, places])[0]
                return sample_slowdowns(predicted[subset][rows % count], spread[there], some[there])

            together = mix_times(times, sample_slowdowns(slows, spread, some), left)
            gains[start : start + step] = (times.sum(axis=1) - together).reshape(-1, count)
        return gains
