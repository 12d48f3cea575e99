"""Measured mixes that a process is told, and which mixes it names: laws of the posterior, and refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from crosscast.data.corun import MeasuredMix
from crosscast.errors import InputError
from crosscast.prediction.corun.probes import open_mixes, suggest_mixes, with_measured
from crosscast.prediction.corun.process import CoRunProcessPredictor, Process
from crosscast.prediction.corun.slowdowns import SlowdownProcess
from crosscast.prediction.corun.training import Hyperparameters, fit_slowdowns
from support.mixes import made_co_runs, make_isolated_run, make_mix
from support.refusals import refusal

RUNS = made_co_runs(mixes=(2, 3))
NEW = make_isolated_run("new")
PAIRS = [(NEW, run) for run in RUNS.isolated_runs]
TYPICAL = 0.1


@pytest.fixture(scope="module")
def fitted() -> CoRunProcessPredictor:
    return Process().fit(RUNS, 0)


@pytest.fixture(scope="module")
def process(fitted: CoRunProcessPredictor) -> SlowdownProcess:
    return fitted.slowdowns


def slower(mix: MeasuredMix, factor: float = 2.0) -> MeasuredMix:
    """A mix whose co-runners are slower than the law says."""
    members = tuple(replace(each, slowdown=factor * (each.slowdown or 0)) for each in mix.members)
    return replace(mix, members=members)


def predicted(process: SlowdownProcess) -> np.ndarray:
    slowdowns, indices = process.of_mixes(PAIRS)
    return np.concatenate(slowdowns.slowdowns(indices))


@pytest.mark.parametrize("trees", [True, False])
def test_telling_mixes_is_the_same_as_a_fit_with_them(trees: bool) -> None:
    """As they are hardly known, neither sizes nor trees nor the scale of a fit come from them."""
    mixes = RUNS.mixes
    probes = tuple(slower(make_mix(pair)) for pair in PAIRS[:2])
    before = fit_slowdowns(mixes, 0, trees=trees)
    fitted = Hyperparameters(before.scale.link, before.traits.names, before.sizes)
    whole = fit_slowdowns((*mixes, *probes), 0, trees=trees, known=fitted)
    assert_allclose(predicted(with_measured(before, probes)), predicted(whole), rtol=1e-8)


def test_less_is_open_of_a_measured_mix_and_nothing_becomes_less_sure(process: SlowdownProcess) -> None:
    before = open_mixes(process, PAIRS)
    conditioned = open_mixes(with_measured(process, [make_mix(PAIRS[0])]), PAIRS)
    assert_allclose(conditioned.covariance, before.given(0).covariance, atol=1e-9)
    assert (conditioned.deviations <= before.deviations + 1e-12).all()
    assert (conditioned.deviations[:2] < before.deviations[:2]).all()
    fall = np.diag(before.covariance - before.given(0).covariance).sum()
    assert before.gain(0) == pytest.approx(fall)


def test_the_mix_that_lowers_the_variances_most_is_named(process: SlowdownProcess) -> None:
    before = open_mixes(process, PAIRS)
    gains = [before.gain(index) for index in range(len(PAIRS))]
    suggestion = suggest_mixes(process, 1, PAIRS, PAIRS, TYPICAL)
    assert suggestion.mixes == (PAIRS[int(np.argmax(gains))],)
    assert suggestion.error < suggestion.error_before == pytest.approx(np.expm1(TYPICAL))
    more = suggest_mixes(process, 3, PAIRS, PAIRS, TYPICAL)
    assert more.mixes[:1] == suggestion.mixes
    assert len({run.name for mix in more.mixes for run in mix}) == 4


def test_what_was_measured_counts_and_is_not_named_again(process: SlowdownProcess) -> None:
    first = suggest_mixes(process, 1, PAIRS, PAIRS, TYPICAL)
    conditioned = with_measured(process, [make_mix(first.mixes[0])])
    again = suggest_mixes(conditioned, 1, PAIRS, PAIRS, TYPICAL, process)
    assert again.mixes != first.mixes
    assert again.error < again.error_before < first.error_before


def test_only_mixes_that_can_be_measured_are_named_each_once(process: SlowdownProcess) -> None:
    among = [PAIRS[1], PAIRS[1][::-1], PAIRS[2]]
    suggestion = suggest_mixes(process, 2, [PAIRS[0]], among, TYPICAL)
    assert {run.name for mix in suggestion.mixes for run in mix} == {"new small", "cfd small", "crc small"}
    with pytest.raises(InputError, match="suggest-probes: expected from 1 to 2, as 2 mixes can be measured"):
        suggest_mixes(process, 3, [PAIRS[0]], among, TYPICAL)
    assert "from 1 to 5, as 6 mixes" in refusal(suggest_mixes, process, 6, PAIRS, PAIRS, TYPICAL)
    with pytest.raises(InputError, match="no mix can be measured but the one that is asked for"):
        suggest_mixes(process, 1, [PAIRS[0]], [PAIRS[0]], TYPICAL)


def test_too_many_are_refused(process: SlowdownProcess) -> None:
    many = list(combinations([make_isolated_run(f"app{index}") for index in range(72)], 2))
    with pytest.raises(InputError, match="at most 5,000 co-runners to compare, found 5,112"):
        suggest_mixes(process, 1, many, many, TYPICAL)


def test_a_process_that_keeps_no_mixes_is_refused(process: SlowdownProcess) -> None:
    with pytest.raises(InputError, match="expected a process that was better than the mean"):
        with_measured(replace(process, learned=None), [make_mix(PAIRS[0])])
