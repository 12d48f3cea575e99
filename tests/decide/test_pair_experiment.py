"""The experiment: what pairing by predictions keeps, between a random pairing and the best one."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.pair_experiment import (
    EQUAL,
    LOGNORMAL,
    PredictedPairs,
    Truth,
    known_pairs,
    share_kept,
)

from crosscast.evaluation.corun.evaluation import of_one_device
from crosscast.prediction.corun.models import Mean
from support.mixes import made_co_runs
from support.refusals import refusal
from support.shared import published

RUNS = made_co_runs(sizes=("small", "tiny"))


def exact(truth: Truth) -> PredictedPairs:
    """Predictions without errors."""
    fits = np.where(np.isnan(truth.slowdown), 0.0, 1.0)
    slowdown = np.where(np.isnan(truth.slowdown), 9.0, truth.slowdown)
    return PredictedPairs(slowdown, fits)


@pytest.mark.parametrize("lengths", [EQUAL, LOGNORMAL])
def test_who_knows_the_truth_keeps_all(lengths: str) -> None:
    truth = Truth.of(RUNS.mixes)
    assert share_kept(truth, [exact(truth)], lengths, jobs=20, repeats=4) == pytest.approx(np.ones(4))


def test_who_knows_nothing_keeps_nothing_of_jobs_of_equal_length() -> None:
    truth = Truth.of(RUNS.mixes)
    blind = replace(exact(truth), slowdown=np.full_like(truth.slowdown, 1.5))
    shares = share_kept(truth, [blind], EQUAL, jobs=40, repeats=40)
    assert abs(shares.mean()) < 4 * shares.std() / np.sqrt(40)
    # Of unequal lengths, something is gained by pairing long jobs with long ones.
    assert share_kept(truth, [blind], LOGNORMAL, jobs=40, repeats=40).mean() > 0.2


def test_pairs_that_do_not_fit_gain_nothing() -> None:
    mixes = [
        replace(mix, fits=False, members=tuple(replace(each, slowdown=None) for each in mix.members))
        if len(mix.applications) == 1
        else mix
        for mix in RUNS.mixes
    ]
    truth = Truth.of(mixes)
    gain = truth.gain(np.array([0, 0, 2]), np.ones(3))
    assert gain[0, 1] == 0 and gain[0, 2] > 0


def test_pairs_that_were_not_measured_and_other_lengths_are_refused() -> None:
    assert "mixes: expected all pairs of inputs, measured, found none of" in refusal(Truth.of, RUNS.mixes[1:])
    assert "found none" in refusal(Truth.of, [])
    truth = Truth.of(RUNS.mixes)
    assert "found 'long'" in refusal(share_kept, truth, [exact(truth)], "long")


@pytest.mark.system
def test_the_mean_keeps_on_published_pairs_what_is_known_of_it() -> None:
    from crosscast.data.corun import co_runs

    runs = of_one_device(co_runs(published("gavel_pairs", "gpu_corun")), "v100")
    truth = Truth.of(runs.mixes)
    predicted = [known_pairs(runs, Mean(), truth)]
    assert share_kept(truth, predicted, EQUAL, repeats=12).mean() == pytest.approx(-0.05, abs=0.06)
    assert share_kept(truth, predicted, LOGNORMAL, repeats=12).mean() == pytest.approx(0.40, abs=0.06)
