"""Bags of jobs as they are predicted: each is asked of the model once, and judged by the limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np

from crosscast.choose.pairing.draws import ErrorBags
from crosscast.choose.pairing.gain import bag_gain, expected_gain
from crosscast.choose.pairing.jobs import Jobs
from crosscast.choose.pairing.weights import AT_ONCE, LIKELY, drawn_gains, may_share, turned_out
from crosscast.errors import InputError
from crosscast.predict.corun.artefact import TrainedCoRunModel
from crosscast.predict.corun.left_out import LeftOut
from crosscast.predict.grid import Flags, Integers, Reals

__all__ = [
    "ALLOWED",
    "DRAWS",
    "LOSES",
    "MEMORY",
    "SLOWER",
    "UNLIKELY",
    "JudgedBags",
    "Limits",
    "PredictedBags",
]

ALLOWED, MEMORY, SLOWER, UNLIKELY, LOSES = range(5)
"""What a limit says of a bag: nothing; too much memory, too slow, likely not to fit; or nothing is gained."""

DRAWS = 100
"""Draws of errors by which bags are compared."""


@dataclass(frozen=True)
class Limits:
    """What bags must keep to.

    Parameters
    ----------
    max_slowdown
        Most that any member slows down; ``None`` for no limit.
    sure
        Whether the upper limit of the interval of a slowdown keeps to it, not only what is predicted.
    memory_bytes
        Memory of the device, if it is known.
    level
        Probability of intervals.
    """

    max_slowdown: float | None = None
    sure: bool = False
    memory_bytes: int | None = None
    level: float = 0.9

    def __post_init__(self) -> None:
        """Check them."""
        if self.max_slowdown is not None and not 1 <= self.max_slowdown < np.inf:
            raise InputError(f"max_slowdown: expected a number of at least 1, found {self.max_slowdown:g}")
        if self.memory_bytes is not None and self.memory_bytes < 1:
            raise InputError(f"memory_bytes: expected a number above 0, found {self.memory_bytes}")
        if not 0 < self.level < 1:
            raise InputError(f"level: expected a probability between 0 and 1, found {self.level:g}")


@dataclass(frozen=True, eq=False)
class JudgedBags:
    """What is thought of ``b`` bags.

    Parameters
    ----------
    gain
        Gain in seconds, the mean by errors of the model, of shape ``(b,)``; 0 where a limit is in the way.
    worth
        Gain to be expected, see `crosscast.choose.pairing.gain.expected_gain`; 0 where a limit is in the way.
    status
        `ALLOWED`, or the first limit that is in the way.
    """

    gain: Reals
    worth: Reals
    status: Integers


@dataclass(frozen=True, eq=False)
class PredictedBags:
    """Bags of jobs, each named by ascending places of its jobs.

    Parameters
    ----------
    jobs, model, limits
        Of which jobs, by which model, and what bags must keep to.
    seed
        Start of all random numbers.
    """

    jobs: Jobs
    model: TrainedCoRunModel
    limits: Limits
    seed: int
    _known: dict[tuple[int, ...], tuple[Reals, float]] = field(default_factory=dict)

    def slowdowns(self, bags: Integers) -> tuple[Reals, Reals]:
        """Predicted slowdowns of ``(b, n)`` members, and the probability that each bag fits, ``(b,)``.

        Bags of the same kinds of jobs are asked once. In bags of more than two, of which the model has seen
        none as large, slowdowns are at least what those of the pairs add up to: as where jobs take turns.

        Raises
        ------
        InputError
            If the model does not tell slowdowns, or nothing of bags of that size.
        """
        kinds, places = np.unique(self.jobs.kind[bags], axis=0, return_inverse=True)
        keys = [tuple(row) for row in kinds.tolist()]
        new = [key for key in keys if key not in self._known]
        if new:
            of_kind = dict(zip(self.jobs.kind.tolist(), self.jobs.solos, strict=True))
            found = self.model.predict([tuple(of_kind[kind] for kind in key) for key in new])
            for key, slowdown, fits in zip(new, found.slowdown, found.fits.tolist(), strict=True):
                self._known[key] = slowdown, fits
        slow = np.stack([self._known[key][0] for key in keys])
        if np.isnan(slow).any():
            raise InputError(f"{self.model.folder}: expected a model that predicts slowdowns, found another")
        fit = np.array([self._known[key][1] for key in keys])
        places = places.ravel()
        return self._at_least_added(bags, slow[places]), fit[places]

    def _at_least_added(self, bags: Integers, slow: Reals) -> Reals:
        members = bags.shape[1]
        if members == 2 or members in self.model.card.sizes:
            return slow
        added = np.ones_like(slow)
        for one, other in combinations(range(members), 2):
            pair, _ = self.slowdowns(bags[:, [one, other]])
            added[:, [one, other]] += np.maximum(pair - 1.0, 0.0)
        return np.maximum(slow, added)

    def judged(self, bags: Integers) -> JudgedBags:
        """Predict bags of ``n`` members, of shape ``(b, n)``, and judge them."""
        if len(bags) == 0:
            return JudgedBags(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
        slow, fits = self.slowdowns(bags)
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
        """Gains, in seconds, of bags whose slowdowns turn out to be others than predicted.

        Parameters
        ----------
        bags
            Bags of ``n`` members, all known or all not, of shape ``(b, n)``.
        relative
            Relative errors, as `crosscast.choose.pairing.draws` draws them, of shape ``(k, n)``. A member
            errs alike while only some of its bag run.

        Returns
        -------
        array
            Of shape ``(k, b)``.
        """
        slow, _ = self.slowdowns(bags)
        lengths = self.jobs.length_s[bags]
        spreads = self.errors(known=bool(self.known(bags)[0])).spread(np.log(slow))
        if bags.shape[1] == 2:
            return drawn_gains(lengths, slow, spreads, relative[None], np.zeros(len(bags), dtype=np.int64))
        left = _Left(bags, lambda some: self.slowdowns(some)[0])
        gains = np.empty((len(relative), len(bags)))
        step = max(1, AT_ONCE // len(bags))
        for start in range(0, len(relative), step):
            draws = relative[start : start + step]
            errors = np.repeat(draws, len(bags), axis=0)
            times, slows, sure = (np.tile(each, (len(draws), 1)) for each in (lengths, slow, spreads))
            found = bag_gain(times, turned_out(slows, sure, errors), left.turned_out(sure, errors))
            gains[start : start + step] = found.reshape(len(draws), -1)
        return gains

    def known(self, bags: Integers) -> Flags:
        """Whether all applications of each bag are among those of the training, of shape ``(b,)``."""
        return np.asarray(self._trained[bags].all(axis=1))

    @cached_property
    def _trained(self) -> Flags:
        return np.array([self.model.knows((solo,)) for solo in self.jobs.solos])

    def errors(self, *, known: bool) -> LeftOut:
        """Errors of slowdowns.

        Raises
        ------
        InputError
            If the model does not know them.
        """
        errors: Mapping[str, LeftOut] = self.model.errors_of(known=known)
        if "slowdown" not in errors:
            raise InputError(f"{self.model.folder}: expected a model with errors of slowdowns, found another")
        return errors["slowdown"]

    def gains_by_errors(self, bags: Integers) -> Reals:
        """Gains, in seconds, by draws of errors that all bags share, of shape ``(2 * DRAWS, b)``."""
        known = self.known(bags)
        gains = np.empty((2 * DRAWS, len(bags)))
        for each in np.unique(known).tolist():
            errors = ErrorBags.of(self.errors(known=each))
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
                self.errors(known=each).reach(self.limits.level, np.log(slow)) for each in (False, True)
            )
            most = slow * np.exp(np.where(self.known(bags)[:, None], known, new))
        return np.asarray((most > limit).any(axis=1))


@dataclass(frozen=True, eq=False)
class _Left:
    """Slowdowns of those that still run, of bags of one size; each set of them is predicted once.

    Rows are the bags, again and again.
    """

    bags: Integers
    predicted: Callable[[Integers], Reals]
    _found: dict[int, Reals] = field(default_factory=dict)

    def turned_out(self, spreads: Reals, relative: Reals) -> Callable[[Flags], Reals]:
        """The same with errors; see `crosscast.choose.pairing.weights.turned_out`."""

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
