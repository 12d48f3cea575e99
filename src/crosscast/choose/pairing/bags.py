"""Bags of jobs as they are predicted, and judged by the limits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.choose.pairing.draws import ErrorBags
from crosscast.choose.pairing.gain import bag_gain, expected_gain
from crosscast.choose.pairing.jobs import Jobs
from crosscast.choose.pairing.kind_predictions import KindPredictions
from crosscast.choose.pairing.limits import ALLOWED, LOSES, MEMORY, SLOWER, UNLIKELY, Limits
from crosscast.choose.pairing.slowdowns_left import SlowdownsLeft
from crosscast.choose.pairing.weights import AT_ONCE, LIKELY, drawn_gains, may_share, turned_out

__all__ = ["DRAWS", "JudgedBags", "PredictedBags"]

DRAWS = 100
"""Draws of errors by which bags are compared."""


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
    predictions
        Of which jobs, and what a model predicts of them.
    limits
        What bags must keep to.
    seed
        Start of all random numbers.
    """

    predictions: KindPredictions
    limits: Limits
    seed: int

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
