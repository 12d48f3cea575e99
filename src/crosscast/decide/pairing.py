"""What is gained when jobs share a device: the time that they take one after another less that together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.corun.artefact import TrainedCoRunModel
from crosscast.predict.corun.forecast import LeftOut, check_profile, is_plausible, mix_times
from crosscast.tables.corun.solo import Solo
from crosscast.units import format_bytes


def pair_gain(lengths: Reals, slowdowns: Reals) -> Reals:
    """Gain of pairs, in the unit of the lengths; below 0 where they take longer together.

    Until the first ends, after ``t = min(La sa, Lb sb)``, they do ``t (1/sa + 1/sb)`` of work instead of
    ``t``; what is left of the other then runs alone. It is `bag_gain` of two members, and quicker.

    >>> round(float(pair_gain(np.array([1.0, 2.0]), np.array([1.5, 1.5]))), 6)
    0.5
    >>> float(pair_gain(np.array([1.0, 1.0]), np.array([2.0, 2.0])))
    0.0
    """
    ends = lengths * slowdowns
    first = np.minimum(ends[..., 0], ends[..., 1])
    gain: Reals = first * (1.0 / slowdowns[..., 0] + 1.0 / slowdowns[..., 1] - 1.0)
    return gain


def bag_gain(lengths: Reals, slowdowns: Reals, slowdowns_left: Callable[[Flags], Reals]) -> Reals:
    """Gain of ``b`` bags of ``n`` members each, of shape ``(b,)``."""
    gain: Reals = lengths.sum(axis=1) - mix_times(lengths, slowdowns, slowdowns_left).time_s
    return gain


def expected_gain(gains: Reals, fits: Reals) -> Reals:
    """What bags are worth before they run: the gain to be expected of those that are broken up if they lose.

    Bags that turn out to be slower than one job after another, or do not fit, are run one after another: they
    gain nothing. The mean of gains above 0 is not the gain of the mean: what is not known of a bag is a
    chance, too, as losses are cut off.
    Of shape ``(b,)``.
    """
    worth: Reals = np.maximum(gains, 0.0).mean(axis=0) * np.where(np.isnan(fits), 1.0, fits)
    return worth


LIKELY = 0.5
"""Bags that fit with a lower probability are not proposed."""

AT_ONCE = 1 << 14
"""So many gains are computed at once: more would not stay in the cache."""


def drawn_gains(lengths: Reals, slowdowns: Reals, spreads: Reals, relative: Reals, chosen: Integers) -> Reals:
    """Gains of pairs by errors of the model, of shape ``(k, p)``."""
    gains = np.empty((relative.shape[1], len(lengths)))
    step = max(1, AT_ONCE // max(1, len(lengths)))
    for start in range(0, len(gains), step):
        some = slice(start, start + step)
        errors = relative[:, some].swapaxes(0, 1)[:, chosen]
        gains[some] = pair_gain(lengths, turned_out(slowdowns, spreads, errors))
    return gains


def turned_out(slowdowns: Reals, spreads: Reals, relative: Reals) -> Reals:
    """True slowdowns, if predictions err so; arrays of shapes that fit each other.

    A bag makes nobody faster than alone, but for what was not measured well.
    """
    true: Reals = np.maximum(slowdowns * np.exp(-relative * spreads), 1.0)
    return true


def may_share(gains: Reals, fits: Reals) -> Flags:
    """Bags that gain something on average, and are no more likely not to fit than to fit, of shape
    ``(b,)``.
    """
    allowed: Flags = (gains.mean(axis=0) > 0) & ~(fits < LIKELY)
    return allowed


@dataclass(frozen=True, eq=False)
class SlowdownsLeft:
    """Slowdowns of those that still run, of bags of one size; each set of them is predicted once.

    Rows are the bags, again and again.
    """

    bags: Integers
    predicted: Callable[[Integers], Reals]
    _found: dict[int, Reals] = field(default_factory=dict)

    def turned_out(self, spreads: Reals, relative: Reals) -> Callable[[Flags], Reals]:
        """The same with errors; see `crosscast.decide.pairing.turned_out`."""

        def slowdowns(running: Flags) -> Reals:
            return turned_out(self._of(running), spreads, relative)

        return slowdowns

    def _of(self, running: Flags) -> Reals:
        result = np.ones(running.shape)
        bag = np.arange(len(running)) % len(self.bags)
        codes = running @ (1 << np.arange(running.shape[1]))
        for code in np.unique(codes).tolist():
            places = [place for place in range(running.shape[1]) if code >> place & 1]
            if len(places) < 2:
                continue
            if code not in self._found:
                found = np.ones(self.bags.shape)
                found[:, places] = self.predicted(self.bags[:, places])
                self._found[code] = found
            rows = codes == code
            result[rows] = self._found[code][bag[rows]]
        return result


ALLOWED, MEMORY, SLOWER, UNLIKELY, LOSES = range(5)
"""What a limit says of a bag: nothing; too much memory, too slow, likely not to fit; or nothing is gained."""


@dataclass(frozen=True)
class Limits:
    """What bags must keep to."""

    max_slowdown: float | None = None  # Most that any member slows down; `None` for no limit
    # Whether the upper limit of the interval of a slowdown keeps to it, not only what is predicted
    sure: bool = False
    memory_bytes: int | None = None  # Memory of the device, if it is known
    level: float = 0.9  # Probability of intervals

    def __post_init__(self) -> None:
        """Check them."""
        if self.max_slowdown is not None and not 1 <= self.max_slowdown < np.inf:
            raise InputError(f"max_slowdown: expected a number of at least 1, found {self.max_slowdown:g}")
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise InputError(f"memory_bytes: expected a number above 0, found {self.memory_bytes}")
        if not 0 < self.level < 1:
            raise InputError(f"level: expected a probability between 0 and 1, found {self.level:g}")


_STEPS = float(1 << 40)
"""Weights are whole numbers of so many steps to the largest, as the matching needs exact sums."""


def best_matching(weights: Reals) -> list[tuple[int, int]]:
    """Pairs of different nodes, none in two of them, whose weights add up to the most.

    It is exact (Edmonds' blossoms), but for weights that are rounded to a share of 1e-12 of the largest.
    """
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise InputError(f"weights: expected shape (n, n), found {weights.shape}")
    if np.isinf(weights).any():
        raise InputError("weights: expected finite numbers, found infinity")
    try:
        from rustworkx import PyGraph, max_weight_matching
    except ImportError as error:
        raise MissingExtraError("corun", "pairing jobs") from error
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
class ErrorBags:
    """Errors of ``b`` bags that were left out.

    Members of a bag err together (one that slows down more than predicted slows the other down), so that
    errors are drawn as they were found: those of one bag.
    """

    # Errors of members, as logarithms of the predicted over the true slowdown, relative to their spread
    # (`crosscast.predict.corun.forecast.LeftOut.spread`), of shape `(b, most members)`
    relative: Reals
    members: Integers  # How many of them each bag has, of shape `(b,)`

    @classmethod
    def of(cls, errors: LeftOut) -> ErrorBags:
        """Errors of slowdowns by their bags; each is a bag of its own where the bags are not known."""
        own = np.arange(len(errors.log_error)) if errors.bag is None else errors.bag
        order = np.lexsort((own, errors.group))
        group, bag = errors.group[order], own[order]
        new = np.append(True, (np.diff(group) != 0) | (np.diff(bag) != 0))
        number = np.cumsum(new) - 1
        starts = np.flatnonzero(new)
        place = np.arange(len(order)) - starts[number]
        known = np.zeros_like(errors.log_error) if errors.log_value is None else errors.log_value
        relative = errors.log_error / errors.spread(known)
        padded = np.zeros((len(starts), int(place.max()) + 1))
        padded[number, place] = relative[order]
        return cls(padded, np.bincount(number))

    def drawn(self, members: int, count: int, seed: int) -> Reals:
        """Relative errors of bags at random, for bags of so many members.

        All bags that are compared are given the same draws, so that none is taken because it was lucky. Each
        draw is there a second time with its members in the reverse order: two members are treated alike.
        Bags of more members than the one that is drawn take its errors from the start again.
        Of shape ``(2 * count, members)``.
        """
        random = np.random.default_rng(seed)
        chosen = random.integers(len(self.members), size=count)
        there = np.arange(self.relative.shape[1]) < self.members[chosen][:, None]
        order = np.argsort(np.where(there, random.random(there.shape), np.inf), axis=1)
        place = np.arange(members) % self.members[chosen][:, None]
        shuffled = np.take_along_axis(self.relative[chosen], order, axis=1)
        found = np.take_along_axis(shuffled, place, axis=1)
        return np.concatenate([found, found[:, ::-1]])


MOST_JOBS = 1000
"""More are not paired at once: all pairs of them are predicted."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """``n`` jobs, sorted by what is known of them, so that a plan does not depend on their order."""

    solos: tuple[Solo, ...]  # The jobs
    given: Integers  # Place of each among those that were given, of shape `(n,)`
    # A number for each, equal where all that is known alone is equal, of shape `(n,)`; it never falls
    kind: Integers
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
    ) -> Jobs:
        """Check jobs."""
        if not 2 <= len(solos) <= MOST_JOBS:
            raise InputError(f"jobs: expected 2 to {MOST_JOBS:,}, found {len(solos):,}")
        if lengths is not None and len(lengths) != len(solos):
            raise InputError(f"lengths: expected one for each of {len(solos)} jobs, found {len(lengths)}")
        times = [solo.time_s for solo in solos] if lengths is None else list(lengths)
        for solo, time_s in zip(solos, times, strict=True):
            _check(solo, time_s, device, memory_bytes)
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


def _check(solo: Solo, time_s: float | None, device: str, memory_bytes: int | None) -> None:
    check_profile(solo, device)
    if time_s is None or not is_plausible(time_s):
        found = "none" if time_s is None else f"{time_s:g}"
        raise InputError(f"{solo.name}: expected its time alone, a number of seconds above 0, found {found}")
    if memory_bytes is not None and solo.memory_bytes is not None and solo.memory_bytes > memory_bytes:
        raise InputError(
            f"{solo.name}: memory_bytes: expected at most the {format_bytes(memory_bytes)} of {device}, "
            f"found {format_bytes(solo.memory_bytes)}: it does not even fit alone"
        )


def _facts(solo: Solo) -> str:
    """All that a model sees of a job, as a text that sorts: first its name."""
    seen = (solo.key, solo.time_s, solo.runs, solo.power_w, solo.memory_bytes)
    return repr((*seen, sorted(solo.features.items())))


@dataclass(frozen=True, eq=False)
class KindPredictions:
    """Predictions of bags, each named by ascending places of its jobs."""

    jobs: Jobs  # The jobs
    model: TrainedCoRunModel  # What predicts
    _known: dict[int, _Known] = field(default_factory=dict)

    def slowdowns(self, bags: Integers) -> tuple[Reals, Reals]:
        """Predicted slowdowns of ``(b, n)`` members, and the probability that each bag fits, ``(b,)``.

        In bags of more than two, of which the model has seen none as large, slowdowns are at least what those
        of the pairs add up to: as where jobs take turns.
        """
        members = bags.shape[1]
        bases = len(self.jobs) ** np.arange(members)
        codes = self.jobs.kind[bags] @ bases
        known = self._known.get(members) or _Known(
            np.empty(0, dtype=np.int64), np.empty((0, members)), np.empty(0)
        )
        new = np.unique(codes[~known.has(codes)])
        if len(new):
            known = known.and_others(self._asked(new, new[:, None] // bases % len(self.jobs)))
            self._known[members] = known
        rows = np.searchsorted(known.codes, codes)
        return self._at_least_added(bags, known.slowdown[rows]), known.fits[rows]

    def added(self, members: int) -> bool:
        """Whether slowdowns of bags of so many are at least those that pairs add up to."""
        return members > 2 and members not in self.model.card.sizes

    def known(self, bags: Integers) -> Flags:
        """Whether all applications of each bag are among those of the training, of shape ``(b,)``."""
        return np.asarray(self._trained[bags].all(axis=1))

    def errors(self, *, known: bool) -> LeftOut:
        """Errors of slowdowns; see `crosscast.predict.corun.artefact.TrainedCoRunModel.errors_of`."""
        errors: Mapping[str, LeftOut] = self.model.errors_of(known=known)
        if "slowdown" not in errors:
            raise InputError(f"{self.model.folder}: expected a model with errors of slowdowns, found another")
        return errors["slowdown"]

    @cached_property
    def _trained(self) -> Flags:
        return np.array([self.model.knows((solo,)) for solo in self.jobs.solos])

    @cached_property
    def _solo_places(self) -> Integers:
        """For each kind, the place of a job of it."""
        return np.unique(self.jobs.kind, return_index=True)[1]

    def _asked(self, codes: Integers, kinds: Integers) -> _Known:
        solos = [self.jobs.solos[place] for place in self._solo_places.tolist()]
        found = self.model.predict([tuple(solos[kind] for kind in row) for row in kinds.tolist()])
        slowdown = np.concatenate(found.slowdown).reshape(kinds.shape)
        if np.isnan(slowdown).any():
            raise InputError(f"{self.model.folder}: expected a model that predicts slowdowns, found another")
        return _Known(codes, slowdown, found.fits)

    def _at_least_added(self, bags: Integers, slow: Reals) -> Reals:
        if not self.added(bags.shape[1]):
            return slow
        added = np.ones_like(slow)
        for one, other in combinations(range(bags.shape[1]), 2):
            pair, _ = self.slowdowns(bags[:, [one, other]])
            added[:, [one, other]] += np.maximum(pair - 1.0, 0.0)
        return np.maximum(slow, added)


@dataclass(frozen=True, eq=False)
class _Known:
    """Predictions of bags of one size by ascending codes of their kinds."""

    codes: Integers
    slowdown: Reals
    fits: Reals

    def has(self, codes: Integers) -> Flags:
        """Whether each code is among them."""
        if len(self.codes) == 0:
            return np.zeros(len(codes), dtype=np.bool_)
        rows = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        return np.asarray(self.codes[rows] == codes)

    def and_others(self, others: _Known) -> _Known:
        """The same with those of others."""
        codes = np.concatenate([self.codes, others.codes])
        order = np.argsort(codes)
        return _Known(
            codes[order],
            np.concatenate([self.slowdown, others.slowdown])[order],
            np.concatenate([self.fits, others.fits])[order],
        )
