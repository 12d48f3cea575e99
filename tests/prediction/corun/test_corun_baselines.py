"""Baselines, which ignore applications: means as by hand, and time sharing.

Whether mixes fit on a device, and what power they draw: what tells it, and where little tells.

Measured mixes that a process is told, and which mixes it names: laws of the posterior, and refusals.
"""

from dataclasses import replace
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix, Member
from crosscast.errors import InputError
from crosscast.prediction.corun.models import Mean, Sum
from crosscast.prediction.corun.probes import open_mixes, suggest_mixes, with_measured
from crosscast.prediction.corun.process import (
    CoRunProcessPredictor,
    Feasibility,
    Power,
    Process,
    fit_feasibility,
    fit_power,
)
from crosscast.prediction.corun.slowdowns import SlowdownProcess
from crosscast.prediction.corun.training import Hyperparameters, fit_slowdowns
from support.mixes import NAMES, made_co_runs, make_isolated_run, make_mix
from support.refusals import refusal

A = IsolatedRun("a", "s", "d", 1.0, power_w=30.0)
B = IsolatedRun("b", "s", "d", 3.0, power_w=50.0)
UNKNOWN = IsolatedRun("c", "s", "d", None)


def mix(*slowed: tuple[IsolatedRun, float | None], **known: float | bool | None) -> MeasuredMix:
    members = tuple(Member(isolated_run, slowdown) for isolated_run, slowdown in slowed)
    return MeasuredMix("mix", "d", members, **known)  # type: ignore[arg-type]


def runs(*mixes: MeasuredMix) -> CoRuns:
    return CoRuns("made-up", (A, B), mixes)


def test_the_mean_is_that_of_mixes_of_the_same_size() -> None:
    pairs = [
        mix((A, 1.0), (B, 4.0), power_w=80.0, fits=True),
        mix((A, 2.0), (B, 2.0), power_w=60.0, fits=False),
    ]
    three = mix((A, 8.0), (A, 8.0), (B, 8.0), power_w=100.0)
    said = Mean().fit(runs(*pairs, three)).predict([(A, B), (A, B, B)])
    assert said.slowdown[0] == pytest.approx([2.0, 2.0])
    assert said.slowdown[1] == pytest.approx([8.0] * 3)
    assert said.power_w.tolist() == [70.0, 100.0]
    # Of threes it is not known whether they fit: what is known of all mixes stands in.
    assert said.fits.tolist() == [0.5, 0.5]


def test_times_keep_their_place_between_the_longest_and_the_sum_or_follow_from_slowdowns() -> None:
    """3.25 s of 3 to 4 s is a quarter: 6.5 s of 6 to 8."""
    double = IsolatedRun("d", "s", "d", 2.0), IsolatedRun("e", "s", "d", 6.0)
    said = Mean().fit(runs(mix((A, None), (B, None), time_s=3.25))).predict([double])
    assert said.time_s == pytest.approx([6.5])
    assert np.isnan(said.slowdown[0]).all()
    said = Mean().fit(runs(mix((A, 2.0), (B, 2.0)))).predict([(A, B), (A, UNKNOWN)])
    assert said.time_s == pytest.approx([2.0 + 2.0, np.nan], nan_ok=True)


def test_failed_mixes_teach_nothing() -> None:
    failed = MeasuredMix("f", "d", (Member(A, 9.0), Member(B, None, "killed")))
    assert Mean().fit(runs(failed, mix((A, 2.0), (B, 2.0)))).predict([(A, B)]).slowdown[0] == pytest.approx(
        [2.0, 2.0]
    )
    assert refusal(Mean().fit, runs(failed)) == "made-up: expected mixes to learn from, found none"


def test_members_that_take_turns_wait_for_all() -> None:
    said = Sum().fit(runs()).predict([(A, B), (A, A, B), (A, UNKNOWN)])
    assert said.time_s == pytest.approx([4.0, 5.0, np.nan], nan_ok=True)
    assert [each.tolist() for each in said.slowdown] == [[2.0] * 2, [3.0] * 3, [2.0] * 2]
    assert said.power_w == pytest.approx([(30 + 150) / 4, (60 + 150) / 5, np.nan], nan_ok=True)


GIB = 1 << 30


def of_memory(name: str, gib: float) -> IsolatedRun:
    return replace(make_isolated_run(name), memory_bytes=int(gib * GIB))


ISOLATED_RUNS = [of_memory(name, gib) for name, gib in zip(NAMES, (1, 2, 4, 6, 8, 10), strict=True)]
PAIRS = [(first, second) for place, first in enumerate(ISOLATED_RUNS) for second in ISOLATED_RUNS[place:]]


def fitting_mix(isolated_runs: tuple[IsolatedRun, ...], fits: bool | None) -> MeasuredMix:
    return MeasuredMix("mix", "cpu", tuple(Member(each) for each in isolated_runs), fits=fits)


def gib_of(isolated_runs: tuple[IsolatedRun, ...]) -> float:
    return sum(each.memory_bytes or 0 for each in isolated_runs) / GIB


MIXES = [fitting_mix(pair, gib_of(pair) <= 10) for pair in PAIRS]


def feasibility(mixes: list[MeasuredMix]) -> Feasibility:
    fits = fit_feasibility(mixes)
    assert fits is not None
    return fits


def test_memory_is_found_to_be_what_tells() -> None:
    result = feasibility(MIXES)
    assert result.wanted == "memory_bytes"
    assert result.slope < 0
    probability = result.probability(PAIRS)
    fits = np.array([each.fits for each in MIXES])
    assert probability[fits].min() > 0.5 > probability[~fits].max()


def test_odds_are_those_of_scikit_learn() -> None:
    numbers = np.log([gib_of(pair) for pair in PAIRS])
    scaled = (numbers - numbers.mean()) / numbers.std()
    design = np.column_stack([np.ones_like(scaled), scaled])
    truth = [each.fits for each in MIXES]
    peer = LogisticRegression(C=100.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(design, truth)
    fits = feasibility(MIXES)
    assert_allclose([fits.intercept, fits.slope], peer.coef_[0], rtol=1e-4)
    assert_allclose(fits.probability(PAIRS), peer.predict_proba(design)[:, 1], atol=1e-5)


@pytest.mark.parametrize(
    "mixes",
    [
        [],
        made_co_runs().mixes,
        [replace(each, fits=None) for each in MIXES],
        [fitting_mix(pair, gib_of(pair) <= 18) for pair in PAIRS],
    ],
    ids=["none", "all fit", "unknown", "two do not fit"],
)
def test_mixes_that_tell_too_little_give_nothing(mixes: list[MeasuredMix]) -> None:
    assert fit_feasibility(mixes) is None


def test_applications_that_are_all_alike_give_nothing() -> None:
    same = IsolatedRun("a", "s", "d", 1.0, memory_bytes=GIB)
    assert fit_feasibility([fitting_mix((same, same), fits) for fits in [True, False] * 4]) is None


CO_RUNS = made_co_runs(NAMES, mixes=(2, 3))
NEW = [make_isolated_run(name) for name in ("gem", "hmm", "kmeans", "lud", "nw", "srad")]


def power_of(mixes: tuple[MeasuredMix, ...]) -> Power:
    power = fit_power(mixes)
    assert power is not None
    return power


def test_power_of_new_applications_is_found() -> None:
    """20 W, and 40 W for what is used of the device."""
    power = power_of(CO_RUNS.mixes)
    for members in (2, 3):
        mixes = list(combinations_with_replacement(NEW, members))
        truth = np.array([make_mix(isolated_runs).power_w for isolated_runs in mixes], dtype=np.float64)
        assert np.abs(power.watts(mixes) / truth - 1).mean() < 0.04


@pytest.mark.parametrize("power", [None, 0.0])
def test_power_is_not_told_where_that_of_a_member_is_not_known(power: float | None) -> None:
    result = power_of(CO_RUNS.mixes)
    unknown = replace(NEW[0], power_w=power)
    assert np.isnan(result.watts([(unknown, NEW[1]), (NEW[1], unknown)])).all()


def test_a_member_whose_use_is_not_known_is_taken_to_use_as_much_as_the_median() -> None:
    power = power_of(CO_RUNS.mixes)
    unknown = replace(NEW[0], features={})
    middle = replace(NEW[0], features={"utilisation": power.utilisation})
    assert_array_equal(power.watts([(unknown, NEW[1])]), power.watts([(middle, NEW[1])]))


RUNS = made_co_runs(mixes=(2, 3))
UNSEEN = make_isolated_run("new")
OPEN_PAIRS = [(UNSEEN, run) for run in RUNS.isolated_runs]
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
    slowdowns, indices = process.of_mixes(OPEN_PAIRS)
    return np.concatenate(slowdowns.slowdowns(indices))


@pytest.mark.parametrize("trees", [True, False])
def test_telling_mixes_is_the_same_as_a_fit_with_them(trees: bool) -> None:
    """As they are hardly known, neither sizes nor trees nor the scale of a fit come from them."""
    mixes = RUNS.mixes
    probes = tuple(slower(make_mix(pair)) for pair in OPEN_PAIRS[:2])
    before = fit_slowdowns(mixes, 0, trees=trees)
    fitted = Hyperparameters(before.scale.link, before.traits.names, before.sizes)
    whole = fit_slowdowns((*mixes, *probes), 0, trees=trees, known=fitted)
    assert_allclose(predicted(with_measured(before, probes)), predicted(whole), rtol=1e-8)


def test_less_is_open_of_a_measured_mix_and_nothing_becomes_less_sure(process: SlowdownProcess) -> None:
    before = open_mixes(process, OPEN_PAIRS)
    conditioned = open_mixes(with_measured(process, [make_mix(OPEN_PAIRS[0])]), OPEN_PAIRS)
    assert_allclose(conditioned.covariance, before.given(0).covariance, atol=1e-9)
    assert (conditioned.deviations <= before.deviations + 1e-12).all()
    assert (conditioned.deviations[:2] < before.deviations[:2]).all()
    fall = np.diag(before.covariance - before.given(0).covariance).sum()
    assert before.gain(0) == pytest.approx(fall)


def test_the_mix_that_lowers_the_variances_most_is_named(process: SlowdownProcess) -> None:
    before = open_mixes(process, OPEN_PAIRS)
    gains = [before.gain(index) for index in range(len(OPEN_PAIRS))]
    suggestion = suggest_mixes(process, 1, OPEN_PAIRS, OPEN_PAIRS, TYPICAL)
    assert suggestion.mixes == (OPEN_PAIRS[int(np.argmax(gains))],)
    assert suggestion.error < suggestion.error_before == pytest.approx(np.expm1(TYPICAL))
    more = suggest_mixes(process, 3, OPEN_PAIRS, OPEN_PAIRS, TYPICAL)
    assert more.mixes[:1] == suggestion.mixes
    assert len({run.name for mix in more.mixes for run in mix}) == 4


def test_what_was_measured_counts_and_is_not_named_again(process: SlowdownProcess) -> None:
    first = suggest_mixes(process, 1, OPEN_PAIRS, OPEN_PAIRS, TYPICAL)
    conditioned = with_measured(process, [make_mix(first.mixes[0])])
    again = suggest_mixes(conditioned, 1, OPEN_PAIRS, OPEN_PAIRS, TYPICAL, process)
    assert again.mixes != first.mixes
    assert again.error < again.error_before < first.error_before


def test_only_mixes_that_can_be_measured_are_named_each_once(process: SlowdownProcess) -> None:
    among = [OPEN_PAIRS[1], OPEN_PAIRS[1][::-1], OPEN_PAIRS[2]]
    suggestion = suggest_mixes(process, 2, [OPEN_PAIRS[0]], among, TYPICAL)
    assert {run.name for mix in suggestion.mixes for run in mix} == {"new small", "cfd small", "crc small"}
    with pytest.raises(InputError, match="suggest-probes: expected from 1 to 2, as 2 mixes can be measured"):
        suggest_mixes(process, 3, [OPEN_PAIRS[0]], among, TYPICAL)
    assert "from 1 to 5, as 6 mixes" in refusal(suggest_mixes, process, 6, OPEN_PAIRS, OPEN_PAIRS, TYPICAL)
    with pytest.raises(InputError, match="no mix can be measured but the one that is asked for"):
        suggest_mixes(process, 1, [OPEN_PAIRS[0]], [OPEN_PAIRS[0]], TYPICAL)


def test_too_many_are_refused(process: SlowdownProcess) -> None:
    many = list(combinations([make_isolated_run(f"app{index}") for index in range(72)], 2))
    with pytest.raises(InputError, match="at most 5,000 co-runners to compare, found 5,112"):
        suggest_mixes(process, 1, many, many, TYPICAL)


def test_a_process_that_keeps_no_mixes_is_refused(process: SlowdownProcess) -> None:
    with pytest.raises(InputError, match="expected a process that was better than the mean"):
        with_measured(replace(process, learned=None), [make_mix(OPEN_PAIRS[0])])
