"""How much of what the best pairing gains over a random one the predicted pairing keeps.

Jobs are drawn from inputs of which all pairs were measured, and paired by predictions of models that had not
seen the pairs, or not one of the benchmarks. What was measured then tells what the pairing gains. A pair that
turns out to lose, or does not fit, runs one after another and gains nothing, in whichever pairing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.choose.pairing.gain import expected_gain, pair_gain
from crosscast.choose.pairing.matching import best_matching
from crosscast.choose.pairing.weights import drawn_gains, may_share
from crosscast.errors import InputError
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo

__all__ = ["EQUAL", "LOGNORMAL", "Predicted", "Truth", "share_kept"]

EQUAL, LOGNORMAL = "equal", "lognormal"
"""Lengths of jobs: all 1, or with a logarithm of mean 0 and standard deviation 1."""


@dataclass(frozen=True, eq=False)
class Truth:
    """What was measured of all pairs of ``t`` inputs.

    Parameters
    ----------
    solos
        The inputs, sorted by their keys.
    slowdown
        Slowdown of each (row) beside each (column); not a number where they did not fit, of shape ``(t, t)``.
    """

    solos: tuple[Solo, ...]
    slowdown: Reals

    @classmethod
    def of(cls, bags: Sequence[Bag]) -> Truth:
        """From bags of one device; those of more than two do not matter.

        Raises
        ------
        InputError
            If a pair is missing, or a member of one failed.
        """
        pairs = [bag for bag in bags if len(bag.members) == 2]
        found = {solo.key: solo for bag in pairs for solo in bag.solos}
        keys = sorted(found)
        place = {key: number for number, key in enumerate(keys)}
        logs = np.zeros((len(keys), len(keys)))
        counts = np.zeros_like(logs)
        for bag in pairs:
            first, second = (place[solo.key] for solo in bag.solos)
            slow = [np.nan if member.slowdown is None else member.slowdown for member in bag.members]
            if bag.failed or (np.isnan(slow).any() and bag.fits is not False):
                continue
            for one, other, value in ((first, second, slow[0]), (second, first, slow[1])):
                logs[one, other] += np.log(value)
                counts[one, other] += 1
        if not keys or (counts == 0).any():
            missing = [found[keys[place]].name for place in np.argwhere(counts == 0)[:1].ravel().tolist()]
            which = f"none of {' and '.join(missing)}" if missing else "none"
            raise InputError(f"bags: expected all pairs of inputs, measured, found {which}")
        return cls(tuple(found[key] for key in keys), np.exp(logs / counts))

    def gain(self, kinds: Integers, lengths: Reals) -> Reals:
        """What each pair of jobs gains, of shape ``(m, m)``."""
        gain = _pair_gains(kinds, lengths, self.slowdown)
        return np.where(np.isnan(gain), 0.0, np.maximum(gain, 0.0))


@dataclass(frozen=True, eq=False)
class Predicted:
    """What models predict of pairs that they had not seen.

    Parameters
    ----------
    slowdown
        As `Truth` has it, of shape ``(t, t)``.
    fits
        Probability that each pair fits; not a number where it is not told, of shape ``(t, t)``.
    spread
        How large errors of the slowdowns are, of shape ``(t, t)``.
    relative
        Sets of relative errors, of shape ``(sets, k, 2)``.
    chosen
        Which set is that of each pair, of shape ``(t, t)``.
    """

    slowdown: Reals
    fits: Reals
    spread: Reals
    relative: Reals
    chosen: Integers

    def weights(self, kinds: Integers, lengths: Reals) -> Reals:
        """Weights of pairs of jobs, of shape ``(m, m)``, in the upper triangle."""
        first, second = np.triu_indices(len(kinds), 1)
        one, other = kinds[first], kinds[second]
        both = np.stack([lengths[first], lengths[second]], axis=-1)
        slowdowns, spreads = (
            np.stack([each[one, other], each[other, one]], axis=-1) for each in (self.slowdown, self.spread)
        )
        gains = drawn_gains(both, slowdowns, spreads, self.relative, self.chosen[one, other])
        fits = self.fits[one, other]
        weights = np.zeros((len(kinds), len(kinds)))
        weights[first, second] = np.where(may_share(gains, fits), expected_gain(gains, fits), 0.0)
        return weights


def share_kept(
    truth: Truth,
    predicted: Sequence[Predicted],
    lengths: str,
    *,
    jobs: int = 100,
    repeats: int = 56,
    seed: int = 0,
) -> Reals:
    """Of each repeat, what the predicted pairing gains over a random one over what the best does.

    Parameters
    ----------
    truth
        What was measured.
    predicted
        Predictions, which repeats take in turn.
    lengths
        `EQUAL` or `LOGNORMAL`.
    jobs
        Jobs of a repeat; each is of any input with the same probability.
    repeats
        How many repeats. The same number and seed draw the same jobs for any predictions.
    seed
        Start of all random numbers.

    Returns
    -------
    array
        Of shape ``(repeats,)``.

    Raises
    ------
    InputError
        If there are no such lengths, or nothing can be gained.
    MissingExtraError
        If rustworkx is not installed.
    """
    if lengths not in (EQUAL, LOGNORMAL):
        raise InputError(f"lengths: expected {EQUAL} or {LOGNORMAL}, found {lengths!r}")
    shares = []
    for repeat in range(repeats):
        random = np.random.default_rng((seed, repeat))
        kinds = random.integers(len(truth.solos), size=jobs)
        times = np.exp(random.standard_normal(jobs)) if lengths == LOGNORMAL else np.ones(jobs)
        gain = truth.gain(kinds, times)
        # The mean of all pairings: each pair is in one of jobs - 1.
        by_lot = float(np.triu(gain, 1).sum()) / (jobs - 1)
        best = _gained(gain, gain) - by_lot
        if best <= 0:
            raise InputError("bags: expected pairs by which something is gained, found none")
        weights = predicted[repeat % len(predicted)].weights(kinds, times)
        shares.append((_gained(weights, gain) - by_lot) / best)
    return np.array(shares)


def _gained(weights: Reals, gain: Reals) -> float:
    return sum(float(gain[pair]) for pair in best_matching(weights))


def _pair_gains(kinds: Integers, lengths: Reals, slowdown: Reals) -> Reals:
    both = slowdown[kinds[:, None], kinds]
    times = np.broadcast_to(lengths[:, None], both.shape)
    return pair_gain(np.stack([times, times.T], axis=-1), np.stack([both, both.T], axis=-1))
