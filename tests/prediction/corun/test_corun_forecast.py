"""Errors on mixes that were left out, times of mixes, baselines, and mixes that a process is told."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix, Member
from crosscast.errors import InputError
from crosscast.prediction.corun import CoRunPrediction, CoRunResiduals, models, physical
from crosscast.prediction.corun.models import Mean
from crosscast.prediction.corun.probes import suggest_mixes, with_measured
from crosscast.prediction.corun.slowdowns import SlowdownProcess, even_slowdown, mix_times, with_fewer
from crosscast.prediction.corun.training import Hyperparameters, fit_slowdowns
from support.mixes import NAMES, made_co_runs, make_isolated_run, make_mix, mix_time
from support.refusals import refusal


def made(seed: int, slope: float) -> CoRunResiduals:
    """Errors of eight groups, 60 each, whose spread rises with the logarithm of what is predicted."""
    random = np.random.default_rng(seed)
    log_value = random.uniform(-0.2, 1.0, 480)
    spread = 0.05 + slope * np.maximum(log_value, 0)
    errors, groups = random.normal(0, spread), np.repeat(np.arange(8), 60)
    return CoRunResiduals(errors, groups, tuple("abcdefgh"), np.arange(480) // 2, log_value)


def test_intervals_hold_as_often_as_they_say_or_somewhat_more_by_caution() -> None:
    shares: dict[float, list[float]] = {0.5: [], 0.9: []}
    for seed in range(12):
        errors, new = made(seed, 0.2), made(seed + 100, 0.2)
        assert new.log_value is not None
        for level, result in shares.items():
            held = np.abs(new.log_error) <= errors.half_width(level, new.log_value)
            result.append(float(held.mean()))
    for level, result in shares.items():
        assert level <= np.mean(result) <= level + 0.06


TIMES = st.lists(st.floats(0.01, 100), min_size=2, max_size=5)


def by_number(each: dict[int, float]) -> Callable[[tuple[int, ...]], list[float]]:
    """Slowdowns that depend on how many run."""
    return lambda running: [each[len(running)]] * len(running)


def test_the_one_that_ends_first_is_told_by_its_slowdown_not_by_its_time_alone() -> None:
    """The short one is slowed down so much that the long one ends first, after 3 s; 0.7 s are left."""
    calls = []

    def slowdowns(running: tuple[int, ...]) -> list[float]:
        calls.append(running)
        return [10.0, 1.5]

    assert mix_time([1.0, 2.0], slowdowns) == pytest.approx(3 + 0.7)
    assert calls == [(0, 1)]


@given(TIMES, st.data())
def test_times_lie_between_the_longest_and_the_sum(times: list[float], data: st.DataObject) -> None:
    """If nobody is faster in company, nor slower than if they took turns."""
    each = {n: data.draw(st.floats(1, n)) for n in range(2, len(times) + 1)}
    time = mix_time(times, by_number(each))
    assert max(times) * (1 - 1e-9) <= time <= sum(times) * (1 + 1e-9)


@given(st.lists(TIMES.filter(lambda times: len(times) >= 3).map(lambda times: times[:3]), min_size=1))
def test_many_mixes_take_what_each_takes_by_itself(mixes: list[list[float]]) -> None:
    slowed = np.array([2.0, 1.5, 1.2])

    def left(rows: Integers, columns: Integers) -> Reals:
        return np.tile(slowed[columns] - 0.1, (len(rows), 1))

    together = mix_times(np.array(mixes), np.tile(slowed, (len(mixes), 1)), left)
    for index, times in enumerate(mixes):
        alone = mix_time(
            times, lambda running: [slowed[each] - (0.1 if len(running) < 3 else 0.0) for each in running]
        )
        assert alone == pytest.approx(together[index])


def test_what_is_not_known_makes_a_time_unknown_and_none_is_at_or_below_0() -> None:
    for times, slowed in (([np.nan, 1.0], 2.0), ([1.0, 1.0], np.nan)):
        assert np.isnan(mix_time(times, by_number({2: slowed})))
    for times, slowed, what in (([0.0, 1.0], 2.0, "isolated times"), ([1.0, 2.0], -1.0, "slowdowns")):
        sentence = refusal(mix_time, times, by_number({2: slowed}))
        assert sentence.startswith(f"{what}: expected numbers above 0")


@given(TIMES, st.floats(1, 5))
def test_an_even_slowdown_is_found_again_from_the_time(times: list[float], slowdown: float) -> None:
    members = len(times)
    time = mix_time(
        times, lambda running: with_fewer(np.full(len(running), slowdown), members, len(running)).tolist()
    )
    result = even_slowdown(np.array([times]), np.array([time]))
    assert result == pytest.approx([slowdown], rel=1e-6, abs=1e-6)


A = IsolatedRun("a", "s", "d", 1.0, power_w=30.0)
B = IsolatedRun("b", "s", "d", 3.0, power_w=50.0)
UNKNOWN = IsolatedRun("c", "s", "d", None)


def mix(*slowed: tuple[IsolatedRun, float | None], **known: float | bool | None) -> MeasuredMix:
    members = tuple(Member(isolated_run, slowdown) for isolated_run, slowdown in slowed)
    return MeasuredMix("mix", "d", members, **known)  # type: ignore[arg-type]


def runs(*mixes: MeasuredMix) -> CoRuns:
    return CoRuns("made-up", (A, B), mixes)


def test_no_slowdown_is_below_1_nor_a_mix_shorter_than_its_longest_run() -> None:
    nothing = np.array([np.nan])
    result = CoRunPrediction((np.array([0.8, 1.5]),), np.array([2.0]), nothing, nothing)
    bounded = physical(result, [(A, B)])
    assert (bounded.slowdown[0].tolist(), bounded.time_s.tolist()) == ([1.0, 1.5], [3.0])


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


def feasibility(mixes: list[MeasuredMix]) -> models.Feasibility:
    fits = models.fit_feasibility(mixes)
    assert fits is not None
    return fits


def test_odds_are_those_of_scikit_learn() -> None:
    numbers = np.log([gib_of(pair) for pair in PAIRS])
    scaled = (numbers - numbers.mean()) / numbers.std()
    design = np.column_stack([np.ones_like(scaled), scaled])
    truth = [each.fits for each in MIXES]
    peer = LogisticRegression(C=100.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(design, truth)
    fits = feasibility(MIXES)
    assert_allclose([fits.intercept, fits.slope], peer.coef_[0], rtol=1e-4)
    assert_allclose(fits.probability(PAIRS), peer.predict_proba(design)[:, 1], atol=1e-5)


def test_mixes_that_tell_too_little_give_nothing() -> None:
    same = IsolatedRun("a", "s", "d", 1.0, memory_bytes=GIB)
    for mixes in (
        [],
        made_co_runs().mixes,
        [replace(each, fits=None) for each in MIXES],
        # Two do not fit; or all applications are alike.
        [fitting_mix(pair, gib_of(pair) <= 18) for pair in PAIRS],
        [fitting_mix((same, same), fits) for fits in [True, False] * 4],
    ):
        assert models.fit_feasibility(mixes) is None


CO_RUNS = made_co_runs(NAMES, mixes=(2, 3))
NEW = [make_isolated_run(name) for name in ("gem", "hmm")]


def test_power_is_told_where_that_of_members_is_known_with_the_median_for_an_unknown_use() -> None:
    result = models.fit_power(CO_RUNS.mixes)
    assert result is not None
    for power in (None, 0.0):
        unknown = replace(NEW[0], power_w=power)
        assert np.isnan(result.watts([(unknown, NEW[1]), (NEW[1], unknown)])).all()
    without, middle = (replace(NEW[0], features=each) for each in ({}, {"utilisation": result.utilisation}))
    assert_array_equal(result.watts([(without, NEW[1])]), result.watts([(middle, NEW[1])]))


RUNS = made_co_runs(mixes=(2, 3))
UNSEEN = make_isolated_run("new")
OPEN_PAIRS = [(UNSEEN, run) for run in RUNS.isolated_runs]
TYPICAL = 0.1


@pytest.fixture(scope="module")
def fitted() -> models.CoRunProcessPredictor:
    return models.Process().fit(RUNS, 0)


@pytest.fixture(scope="module")
def process(fitted: models.CoRunProcessPredictor) -> SlowdownProcess:
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


def test_only_mixes_that_can_be_measured_are_named_each_once(process: SlowdownProcess) -> None:
    among = [OPEN_PAIRS[1], OPEN_PAIRS[1][::-1], OPEN_PAIRS[2]]
    suggestion = suggest_mixes(process, 2, [OPEN_PAIRS[0]], among, TYPICAL)
    assert {run.name for mix in suggestion.mixes for run in mix} == {"new small", "cfd small", "crc small"}
    with pytest.raises(InputError, match="suggest-probes: expected from 1 to 2, as 2 mixes can be measured"):
        suggest_mixes(process, 3, [OPEN_PAIRS[0]], among, TYPICAL)
    assert "from 1 to 5, as 6 mixes" in refusal(suggest_mixes, process, 6, OPEN_PAIRS, OPEN_PAIRS, TYPICAL)
    with pytest.raises(InputError, match="no mix can be measured but the one that is asked for"):
        suggest_mixes(process, 1, [OPEN_PAIRS[0]], [OPEN_PAIRS[0]], TYPICAL)


def test_too_many_mixes_and_a_process_that_keeps_none_are_refused(process: SlowdownProcess) -> None:
    many = list(combinations([make_isolated_run(f"app{index}") for index in range(72)], 2))
    assert "at most 5,000 co-runners to compare, found 5,112" in refusal(
        suggest_mixes, process, 1, many, many, TYPICAL
    )
    bare = replace(process, learned=None)
    assert "expected a process that was better than the mean" in refusal(
        with_measured, bare, [make_mix(OPEN_PAIRS[0])]
    )
