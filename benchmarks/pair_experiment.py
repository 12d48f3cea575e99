"""How much of what the best pairing gains over a random one the predicted pairing keeps.

Jobs are drawn from inputs of which all pairs were measured, and paired by predictions of models that had not
seen the pairs, or not one of the benchmarks. What was measured then tells what the pairing gains. A pair that
turns out to lose, or does not fit, runs one after another and gains nothing, in whichever pairing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix
from crosscast.decide.colocation_gains import LIKELY, best_matching, pair_gain
from crosscast.errors import InputError
from crosscast.evaluation.corun.evaluation import (
    FITS,
    CoRunTask,
    answers_of,
    folds_of,
    with_mixes,
)
from crosscast.evaluation.loop import one_thread
from crosscast.prediction.corun import CoRunModel

EQUAL, LOGNORMAL = "equal", "lognormal"
"""Lengths of jobs: all 1, or with a logarithm of mean 0 and standard deviation 1."""


@dataclass(frozen=True, eq=False)
class Truth:
    """What was measured of all pairs of ``t`` inputs."""

    isolated_runs: tuple[IsolatedRun, ...]  # The inputs, sorted by their keys
    # Slowdown of each (row) beside each (column); not a number where they did not fit, of shape `(t, t)`
    slowdown: Reals

    @classmethod
    def of(cls, mixes: Sequence[MeasuredMix]) -> Truth:
        """From mixes of one device; those of more than two do not matter."""
        pairs = [mix for mix in mixes if len(mix.members) == 2]
        found = {isolated_run.key: isolated_run for mix in pairs for isolated_run in mix.isolated_runs}
        keys = sorted(found)
        place = {key: number for number, key in enumerate(keys)}
        logs = np.zeros((len(keys), len(keys)))
        counts = np.zeros_like(logs)
        for mix in pairs:
            first, second = (place[isolated_run.key] for isolated_run in mix.isolated_runs)
            slow = [np.nan if member.slowdown is None else member.slowdown for member in mix.members]
            if mix.failed or (np.isnan(slow).any() and mix.fits is not False):
                continue
            for one, other, value in ((first, second, slow[0]), (second, first, slow[1])):
                logs[one, other] += np.log(value)
                counts[one, other] += 1
        if not keys or (counts == 0).any():
            missing = [found[keys[place]].name for place in np.argwhere(counts == 0)[:1].ravel().tolist()]
            which = f"none of {' and '.join(missing)}" if missing else "none"
            raise InputError(f"mixes: expected all pairs of inputs, measured, found {which}")
        return cls(tuple(found[key] for key in keys), np.exp(logs / counts))

    def gain(self, kinds: Integers, lengths: Reals) -> Reals:
        """What each pair of jobs gains, of shape ``(m, m)``."""
        gain = _pair_gains(kinds, lengths, self.slowdown)
        return np.where(np.isnan(gain), 0.0, np.maximum(gain, 0.0))


@dataclass(frozen=True, eq=False)
class PredictedPairs:
    """What models predict of pairs that they had not seen."""

    slowdown: Reals  # As `Truth` has it, of shape `(t, t)`
    fits: Reals  # Probability that each pair fits; not a number where it is not told, of shape `(t, t)`

    def weights(self, kinds: Integers, lengths: Reals) -> Reals:
        """Weights of pairs of jobs, of shape ``(m, m)``, in the upper triangle."""
        fits = self.fits[kinds[:, None], kinds]
        gain = _pair_gains(kinds, lengths, self.slowdown) * np.where(np.isnan(fits), 1.0, fits)
        return np.triu(np.where((gain > 0) & ~(fits < LIKELY), gain, 0.0), 1)

    def put(self, truth: Truth, mixes: Sequence[MeasuredMix], slowdowns: Reals, fits: Reals) -> None:
        """Put in pairs that were left out."""
        place = {isolated_run.key: place for place, isolated_run in enumerate(truth.isolated_runs)}
        for row, (mix, slow) in enumerate(zip(mixes, slowdowns.reshape(-1, 2), strict=True)):
            first, second = (place[isolated_run.key] for isolated_run in mix.isolated_runs)
            for member, pair in enumerate(((first, second), (second, first))):
                self.slowdown[pair], self.fits[pair] = slow[member], fits[row]


def share_kept(
    truth: Truth,
    predicted: Sequence[PredictedPairs],
    lengths: str,
    *,
    jobs: int = 100,
    repeats: int = 56,
    seed: int = 0,
) -> Reals:
    """Of each repeat, what the predicted pairing gains over a random one over what the best does. Of shape
    ``(repeats,)``.
    """
    if lengths not in (EQUAL, LOGNORMAL):
        raise InputError(f"lengths: expected {EQUAL} or {LOGNORMAL}, found {lengths!r}")
    shares = []
    for repeat in range(repeats):
        random = np.random.default_rng((seed, repeat))
        kinds = random.integers(len(truth.isolated_runs), size=jobs)
        times = np.exp(random.standard_normal(jobs)) if lengths == LOGNORMAL else np.ones(jobs)
        gain = truth.gain(kinds, times)
        # The mean of all pairings: each pair is in one of jobs - 1.
        by_lot = float(np.triu(gain, 1).sum()) / (jobs - 1)
        best = _gained(gain, gain) - by_lot
        if best <= 0:
            raise InputError("mixes: expected pairs by which something is gained, found none")
        weights = predicted[repeat % len(predicted)].weights(kinds, times)
        shares.append((_gained(weights, gain) - by_lot) / best)
    return np.array(shares)


def _gained(weights: Reals, gain: Reals) -> float:
    return sum(float(gain[pair]) for pair in best_matching(weights))


def _pair_gains(kinds: Integers, lengths: Reals, slowdown: Reals) -> Reals:
    both = slowdown[kinds[:, None], kinds]
    times = np.broadcast_to(lengths[:, None], both.shape)
    return pair_gain(np.stack([times, times.T], axis=-1), np.stack([both, both.T], axis=-1))


_MIXES, _BENCHMARKS = "leave-mix-out", "leave-benchmark-out"


def known_pairs(
    co_runs: CoRuns, model: CoRunModel, truth: Truth, seed: int = 0, *, cache: Path | None = None
) -> PredictedPairs:
    """Pairs of applications that a model knows, each by one that was fitted without the pair."""
    folds = folds_of(co_runs.mixes, _MIXES, seed)
    tasks = [CoRunTask(model, fold, seed, _MIXES, 0, None) for fold in folds]
    answers = answers_of(co_runs, tasks, cache=cache)
    result = PredictedPairs(*(np.full(truth.slowdown.shape, np.nan) for _ in range(2)))
    for fold, answer in zip(folds, answers, strict=True):
        tested = [co_runs.mixes[place] for place in fold.test.tolist()]
        result.put(truth, tested, answer["slowdown"], answer[FITS])
    return result


def unseen_pairs(
    co_runs: CoRuns, model: CoRunModel, truth: Truth, seed: int = 0, *, cache: Path | None = None
) -> list[PredictedPairs]:
    """The same with each benchmark left out in turn: no model has seen any pair with it.

    The other pairs are those of `known_pairs` among the others, but that what a model refits with comes from
    all of these.
    """
    found = []
    for fold in folds_of(co_runs.mixes, _BENCHMARKS, seed):
        rest = with_mixes(co_runs, fold.train)
        mixes = [co_runs.mixes[place] for place in fold.test.tolist()]
        with one_thread("pairing jobs"):
            predictor = model.fit(rest, seed)
            answer = predictor.predict([mix.isolated_runs for mix in mixes])
        refit = model.refit(predictor)
        result = known_pairs(rest, refit, truth, seed, cache=cache)
        result.put(truth, mixes, np.concatenate(answer.slowdown), answer.fits)
        found.append(result)
    return found
