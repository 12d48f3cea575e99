"""The default model of co-running: traits, covariances, what it predicts, its laws, and what it refuses."""

import math
from dataclasses import replace
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crosscast.arrays import Reals
from crosscast.data.corun import CoRuns, IsolatedRun, MeasuredMix, Member
from crosscast.errors import InputError
from crosscast.prediction.corun import CoRunPrediction
from crosscast.prediction.corun.features import CoRunnerRows, Traits, applications_of
from crosscast.prediction.corun.models import CoRunProcessPredictor, Process
from crosscast.prediction.corun.slowdowns import LINKS, KernelSizes, Scale, SlowdownCovariance
from crosscast.prediction.corun.training import SlowdownPosterior, fit_slowdowns, inverse_of, weights_of
from support.mixes import NAMES, made_co_runs, make_isolated_run, make_mix, mix_time
from support.published_mixes import featureless

BOTH = made_co_runs(NAMES, mixes=(2, 3))
NEW = [make_isolated_run(name) for name in ("gem", "hmm", "kmeans")]
ASKED = [
    (NEW[0], NEW[1]),
    (NEW[2], BOTH.isolated_runs[0]),
    tuple(NEW),
    (*NEW, BOTH.isolated_runs[1]),
    (NEW[0], NEW[0]),
]


@pytest.fixture(scope="module")
def fitted() -> CoRunProcessPredictor:
    return Process().fit(BOTH, 0)


def changed(mixes: tuple[MeasuredMix, ...], slowdown: float) -> tuple[MeasuredMix, ...]:
    return tuple(
        replace(mix, members=tuple(replace(each, slowdown=slowdown) for each in mix.members)) for mix in mixes
    )


def assert_same(first: CoRunPrediction, second: CoRunPrediction) -> None:
    for one, other in zip(first.slowdown, second.slowdown, strict=True):
        assert_array_equal(one, other)
    for name in ("time_s", "power_w", "fits"):
        assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("copies", [1, 20], ids=["few", "many"])
def test_times_follow_from_slowdowns_of_those_left(fitted: CoRunProcessPredictor, copies: int) -> None:
    mix = ASKED[3]

    def slowdowns_of(columns: tuple[int, ...]) -> list[float]:
        part = tuple(mix[index] for index in columns)
        predicted: list[float] = fitted.predict([part]).slowdown[0].tolist()
        return predicted

    time = mix_time([each.time_s or 0.0 for each in mix], slowdowns_of)
    assert_allclose(fitted.predict([mix] * copies).time_s, fitted.time_factor * time, rtol=1e-9)


@pytest.mark.parametrize("features", [True, False], ids=["traits", "no traits"])
def test_small_arrays_say_what_the_whole_covariance_says(features: bool) -> None:
    """Covariances with all training rows, times what each weighs; of new applications and known ones."""
    runs = BOTH if features else featureless(BOTH)
    process = fit_slowdowns(runs.mixes, 0, trees=False)
    twice = (NEW[0], NEW[1], NEW[1], runs.mixes[0].isolated_runs[0])
    mixes = [*ASKED, twice] if features else [mix.isolated_runs[::-1] for mix in runs.mixes[::9]]
    training = [mix.isolated_runs for mix in runs.mixes]
    isolated_runs, indices = applications_of([*training, *mixes])
    rows = CoRunnerRows.of(indices, len(isolated_runs))
    n = sum(len(mix) for mix in training)
    covariance = SlowdownCovariance(process.traits.matrix(isolated_runs), rows).matrix(process.sizes)
    slowdown = np.array([each.slowdown for mix in runs.mixes for each in mix.members], dtype=np.float64)
    values = process.scale.to(slowdown, rows.members[:n])
    inverse, _ = inverse_of(covariance[:n, :n], process.sizes.noise)
    whole = process.scale.back(covariance[n:, :n] @ inverse @ values, rows.members[n:])
    result, indices = process.of_mixes(mixes)
    assert_allclose(np.concatenate(result.slowdowns(indices)), whole, rtol=1e-6)


def test_members_that_leave_the_memory_system_idle_have_a_slowdown_of_their_own() -> None:
    idle = make_isolated_run("idle", memory_utilisation=0.0)
    busy = [make_isolated_run(name, memory_utilisation=0.5) for name in NAMES[:4]]
    mixes = []
    for first in busy:
        for second in [*busy, idle]:
            mix = make_mix((first, second))
            members = tuple(
                replace(each, slowdown=1.01) if each.isolated_run is idle else each for each in mix.members
            )
            mixes.append(replace(mix, members=members))
    fitted = Process().fit(CoRuns("idle", (*busy, idle), tuple(mixes)), 0)
    predicted = fitted.predict([(idle, busy[0]), (busy[0], busy[1])]).slowdown
    assert predicted[0][0] == pytest.approx(1.01)
    assert predicted[1].min() > 1.05


@pytest.mark.parametrize("runs", [BOTH, featureless(BOTH)], ids=["traits", "no traits"])
def test_slowdowns_that_are_all_the_same_are_predicted(runs: CoRuns) -> None:
    fitted = Process().fit(replace(runs, mixes=changed(runs.mixes, 1.5)), 0)
    assert_allclose(fitted.predict([runs.mixes[0].isolated_runs]).slowdown[0], 1.5, rtol=1e-6)


def test_mixes_with_a_failed_member_or_without_slowdowns_teach_nothing(fitted: CoRunProcessPredictor) -> None:
    wrong = [
        replace(mix, members=(replace(mix.members[0], slowdown=9.0, failure="killed"), *mix.members[1:]))
        for mix in changed(BOTH.mixes[:5], 9.0)
    ]
    zero = [
        MeasuredMix("mix", "cpu", (Member(mix.members[0].isolated_run, unknown), *mix.members[1:]))
        for mix, unknown in zip(BOTH.mixes[5:7], (0.0, None), strict=True)
    ]
    runs = replace(BOTH, mixes=(*BOTH.mixes, *wrong, *zero))
    assert_same(Process().fit(runs, 0).predict(ASKED), fitted.predict(ASKED))
    # A refit takes what was found.
    again = Process().refit(fitted).fit(replace(BOTH, mixes=BOTH.mixes[:40]), 0)
    assert_array_equal(again.slowdowns.sizes.variances, fitted.slowdowns.sizes.variances)


def test_a_refit_finds_its_own_where_a_part_has_other_traits_in_common() -> None:
    """Four of seven applications have it; of six, three, which is not most."""
    known = [make_isolated_run(name) for name in NAMES[:4]]
    others = [
        replace(make_isolated_run(name), features={"utilisation": 0.5}) for name in ("nw", "gem", "hmm")
    ]
    isolated_runs = [
        replace(isolated_run, features={**isolated_run.features, "slowdown_low": 1.5 + 0.1 * index})
        for index, isolated_run in enumerate(known)
    ]
    mixes = tuple(make_mix(pair) for pair in combinations_with_replacement([*isolated_runs, *others], 2))
    runs = CoRuns("some", (*isolated_runs, *others), mixes)
    fitted = Process().fit(runs, 0)
    assert "slowdown_low" in fitted.slowdowns.traits.names
    part = replace(runs, mixes=tuple(mix for mix in mixes if NAMES[0] not in mix.applications))
    again = Process().refit(fitted).fit(part, 0)
    assert "slowdown_low" not in again.slowdowns.traits.names
    assert np.isfinite(np.concatenate(again.predict([mixes[0].isolated_runs]).slowdown)).all()


def test_no_mixes_are_predicted_as_nothing_and_two_are_too_few(fitted: CoRunProcessPredictor) -> None:
    predicted = fitted.predict([])
    assert (predicted.slowdown, predicted.time_s.shape) == ((), (0,))
    with pytest.raises(InputError, match=r"^made up: expected at least 3 mixes with slowdowns .* found 2$"):
        Process().fit(replace(BOTH, mixes=BOTH.mixes[:2]), 0)


def test_more_members_than_were_trained_on_slow_down_by_what_pairs_add_up_to_at_least() -> None:
    co_runs = made_co_runs()
    predictor = Process().fit(co_runs, 0)
    for mix in combinations(co_runs.isolated_runs, 4):
        pairs = {
            (i, j): slow
            for (i, j) in combinations(range(4), 2)
            for slow in predictor.predict([(mix[i], mix[j])]).slowdown
        }
        for index, slowdown in enumerate(predictor.predict([mix]).slowdown[0].tolist()):
            excess = [max(slow[pair.index(index)] - 1, 0.0) for pair, slow in pairs.items() if index in pair]
            assert slowdown >= 1 + sum(excess) - 1e-12


def covariance_of(seed: int) -> Reals:
    half = np.random.default_rng(seed).normal(size=(15, 4))
    return np.asarray(half @ half.T)


@given(st.integers(0, 1000), st.integers(1, 10))
@settings(max_examples=25, deadline=None)
def test_what_is_said_without_some_rows_is_what_a_fit_without_them_says(seed: int, out: int) -> None:
    random = np.random.default_rng(seed)
    covariance, values = covariance_of(seed), random.normal(size=15)
    rows = random.choice(15, out, replace=False)
    rest = np.setdiff1d(np.arange(15), rows)
    refit = SlowdownPosterior.of(covariance[np.ix_(rest, rest)], 0.1, values[rest])
    assert_allclose(
        SlowdownPosterior.of(covariance, 0.1, values).without(rows),
        covariance[np.ix_(rows, rest)] @ refit.weights,
        rtol=1e-8,
        atol=1e-8,
    )


def test_an_inverse_and_its_determinant_are_those_of_numpy_also_where_rows_are_alike() -> None:
    # Last the least noise that is fitted, beside the largest variance.
    for covariance, noise in ((covariance_of(5), 0.2), (np.full((400, 400), 40.0), 2.5e-4)):
        noisy = covariance + noise * np.eye(len(covariance))
        inverse, log_determinant = inverse_of(covariance, noise)
        assert_allclose(inverse @ noisy, np.eye(len(covariance)), atol=1e-5)
        assert log_determinant == pytest.approx(np.linalg.slogdet(noisy)[1], rel=1e-9)
    with pytest.raises(InputError, match=r"^mixes: expected slowdowns and features of usual size"):
        inverse_of(-np.eye(3), 0.1)


def bare(name: str, **features: float) -> IsolatedRun:
    return IsolatedRun(name, "s", "d", 1.0, features=features)


def test_traits_are_what_more_than_half_of_the_applications_have_and_may_be() -> None:
    runs = [bare(name, utilisation=used) for name, used in zip("abc", (0.5, 0.7, 0.9), strict=True)]
    runs += [bare("d", ipc=2.0), bare("e", slowdown_low=1.0)]
    traits = Traits.of(runs)
    assert traits.names == ("utilisation",)
    assert_array_equal(traits.matrix(runs).near[:, 0], [0.5, 0.7, 0.9, 0.7, 0.7])
    # A slowdown with a microbenchmark that cannot be is not known.
    for value in (0.0, -1.0, float("nan")):
        runs = [bare(name, slowdown_low=each) for name, each in zip("abc", (1.5, 3.0, value), strict=True)]
        assert_allclose(Traits.of(runs).matrix(runs).near[:, 0], np.log([1.5, 3.0, np.sqrt(4.5)]))


def test_without_traits_the_load_is_the_lowest_rate_or_else_the_time_alone() -> None:
    isolated_runs = [bare("a", k80_steps_per_s=1.0, v100_steps_per_s=2.0), bare("b", k80_steps_per_s=2.0)]
    both = [replace(each, features={"v100_steps_per_s": 4.0, **each.features}) for each in isolated_runs]
    assert Traits.of(both).load == "k80_steps_per_s"
    # Slower is more load.
    load = Traits.of(both).matrix(both).load
    assert load[0] > load[1]
    isolated_runs = [bare("a"), replace(bare("b"), time_s=math.e**2), replace(bare("c"), time_s=None)]
    traits = Traits.of(isolated_runs)
    assert traits.load == "time_s"
    assert_allclose(traits.matrix(isolated_runs).load[2], 0.0, atol=1e-12)
    unknown = [replace(each, time_s=None) for each in isolated_runs]
    assert_array_equal(Traits.of(unknown).matrix(unknown).load, np.zeros(3))
    # One that is not known is the mean of the training, whoever else is asked about.
    known = [bare("a", k80_steps_per_s=1.0), bare("b", k80_steps_per_s=9.0)]
    for inputs in ([bare("c")], [bare("c"), known[0]]):
        assert_allclose(Traits.of(known).matrix(inputs).load[0], 0.0, atol=1e-12)


WITH = [make_isolated_run(name, size) for name in NAMES for size in ("small", "tiny")]
WITHOUT = [replace(each, features={}) for each in WITH]


def training(mixes: list[tuple[IsolatedRun, ...]]) -> SlowdownCovariance:
    isolated_runs, indices = applications_of(mixes)
    return SlowdownCovariance(
        Traits.of(isolated_runs).matrix(isolated_runs), CoRunnerRows.of(indices, len(isolated_runs))
    )


def mixes_of(isolated_runs: list[IsolatedRun], seed: int, count: int = 12) -> list[tuple[IsolatedRun, ...]]:
    random = np.random.default_rng(seed)
    return [
        tuple(isolated_runs[index] for index in random.choice(len(isolated_runs), size=random.integers(2, 5)))
        for _ in range(count)
    ]


def moved(covariance: SlowdownCovariance, seed: int) -> KernelSizes:
    sizes = KernelSizes.unfitted(covariance.features.near.shape[1])
    return sizes.from_vector(sizes.vector + np.random.default_rng(seed).normal(0, 0.7, len(sizes.vector)))


@pytest.mark.parametrize("isolated_runs", [WITH, WITHOUT], ids=["traits", "no traits"])
def test_its_slope_is_that_of_finite_differences(isolated_runs: list[IsolatedRun]) -> None:
    mixes = training(mixes_of(isolated_runs, 3))
    sizes = moved(mixes, 3)
    half = np.random.default_rng(3).normal(size=(len(mixes.rows.own), len(mixes.rows.own)))
    weights = half + half.T
    slope = mixes.slope(sizes, weights)
    assert len(slope) == len(sizes.vector) - 1
    for index, result in enumerate(slope):
        step = np.zeros(len(sizes.vector))
        step[index] = 1e-5
        up, down = (
            (weights * mixes.matrix(sizes.from_vector(sizes.vector + way * step))).sum() for way in (1, -1)
        )
        assert result == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("isolated_runs", [WITH, WITHOUT], ids=["traits", "no traits"])
@pytest.mark.parametrize("count", [12, 400], ids=["fewer rows than pairs", "more"])
def test_weights_are_those_of_the_whole_covariance(isolated_runs: list[IsolatedRun], count: int) -> None:
    mixes = training(mixes_of(isolated_runs, 4, count))
    sizes, rows = moved(mixes, 4), mixes.rows
    values = np.random.default_rng(4).normal(size=len(rows.own))
    weights = np.linalg.solve(mixes.matrix(sizes) + sizes.noise * np.eye(len(values)), values)
    alone, beside = weights_of(mixes, sizes, values)
    chosen = np.eye(len(alone))[rows.own]
    # Weights differ where applications are alike, but not what they say.
    pairs = mixes.of_pairs(sizes)
    expected = np.column_stack([(chosen.T * weights) @ rows.beside, chosen.T @ weights])
    result = np.column_stack([beside, alone])
    assert_allclose(pairs @ result.ravel(), pairs @ expected.ravel(), rtol=1e-6, atol=1e-6)


@given(st.sampled_from(sorted(LINKS)), st.floats(0.05, 49), st.integers(2, 9), st.floats(-0.5, 0.5))
def test_slowdowns_come_back(link: str, slowdown: float, members: int, slope: float) -> None:
    scale = Scale(link, -0.3, slope, 0.2)
    values, count = np.array([slowdown]), np.array([float(members)])
    assert scale.back(scale.to(values, count), count)[0] == pytest.approx(slowdown, rel=1e-9)


@given(st.sampled_from(sorted(LINKS)), st.floats(-1e6, 1e6))
def test_whatever_the_number_the_slowdown_is_one(link: str, number: float) -> None:
    slowdown = LINKS[link].back(np.array([number]))[0]
    assert 0 <= slowdown <= 50 + 1e-9
    assert np.isfinite(slowdown)
