"""Scores are what their names say: against cases worked by hand, scikit-learn and scipy."""

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau
from sklearn.metrics import mean_absolute_error, mean_absolute_percentage_error, root_mean_squared_error

from crosscast.arrays import Reals
from crosscast.data.dataset import bundled_dataset
from crosscast.evaluation.time.evaluation import always_the_same, noise_floor
from crosscast.evaluation.time.question import effect_of
from crosscast.evaluation.time.scores import Scores, TimeOutcome, of_applications, scores
from crosscast.prediction.time import Grid, ProfileBatch, Toolchain
from crosscast.prediction.time.datasets import grid_of
from crosscast.profile import METRICS
from support.grids import NAMES, lawful_grid
from support.models import make_grid

LEVEL = 0.9


def outcome_of(measured: Reals, centre: Reals, applications: str = "", half: float = 1.0) -> TimeOutcome:
    n, _ = measured.shape
    everything = np.ones(measured.shape, dtype=np.bool_)
    return TimeOutcome(
        tuple(applications or "a" * n),
        measured,
        centre,
        centre - half,
        centre + half,
        everything,
        ~everything,
        np.arange(n),
    )


def random_outcome(seed: int = 0, n: int = 9, d: int = 5) -> TimeOutcome:
    rng = np.random.default_rng(seed)
    measured = rng.normal(-7, 2, (n, d))
    return outcome_of(measured, measured + rng.normal(0, 0.7, (n, d)), ("abc" * n)[:n])


def test_errors_by_hand() -> None:
    # Of application a two cells are 2 and two 4 times too slow, of b one is exact and one half as slow.
    centre = np.log([[2.0, 4.0], [4.0, 2.0], [1.0, 0.5]])
    result = scores([outcome_of(np.zeros((3, 2)), centre, "aab")], LEVEL)
    ln2 = math.log(2)
    assert result.rmse_log == pytest.approx(math.sqrt((2 * (1 + 4) + 0 + 1) * ln2**2 / 6))
    assert result.rmse_log_by_application == pytest.approx(ln2 * (math.sqrt(2.5) + math.sqrt(0.5)) / 2)
    assert result.median_ape_by_application == pytest.approx((2 + 0.25) / 2)
    assert result.mape_by_application == pytest.approx((2 + 0.25) / 2)


def test_applications_are_all_their_kernels_as_often_as_they_are_launched() -> None:
    launches = np.array([3, 1, 2, 5])
    profiles = ProfileBatch(tuple("aabb"), tuple("klkm"), tuple("sstt"), np.ones((4, len(METRICS))), launches)
    measured = np.log([[1.0, 2.0], [5.0, 4.0], [1.0, 1.0], [1.0, np.nan]])
    centre = np.log([[2.0, 1.0], [6.0, 7.0], [1.0, 1.0], [3.0, 1.0]])
    outcome = outcome_of(measured, centre, "aabb", half=0.5)
    totals = of_applications(outcome, profiles)
    assert totals.application == ("a", "b")
    assert np.exp(totals.measured) == pytest.approx(np.array([[8.0, 10.0], [7.0, np.nan]]), nan_ok=True)
    assert np.exp(totals.centre) == pytest.approx(np.array([[12.0, 10.0], [17.0, 7.0]]))
    # Without a correlation, errors are the same for all kernels.
    assert totals.high - totals.centre == pytest.approx(0.5)
    assert scores([totals], LEVEL).median_ape == pytest.approx(0.5)
    loose = replace(outcome, correlation=np.zeros((4, 2)))
    shares = np.array([6.0, 6.0]) / 12
    half = 0.5 * math.sqrt(float(shares @ shares))
    assert (of_applications(loose, profiles).high - totals.centre)[0, 0] == pytest.approx(half)
    # An application of which a kernel was not asked about does not count, nor a time that was told.
    part = replace(outcome, **{name: getattr(outcome, name)[1:] for name in ("measured", "centre", "rows")})
    part = replace(part, **{name: getattr(outcome, name)[1:] for name in ("low", "high", "scored", "known")})
    assert of_applications(replace(part, application=tuple("abb")), profiles).application == ("b",)
    known = np.array([[True, False]] * 4)
    assert not of_applications(replace(outcome, known=known, scored=~known), profiles).counted[:, 0].any()


def test_choices_by_hand() -> None:
    # Kernel 0: the fastest is chosen. Kernel 1: one that is 1.05 times as slow. Kernel 2: one twice as slow.
    measured = np.log([[1.0, 2.0, 3.0], [1.0, 1.05, 2.0], [4.0, 2.0, 8.0]])
    centre = np.log([[5.0, 6.0, 7.0], [2.0, 1.0, 3.0], [1.0, 2.0, 3.0]])
    result = scores([outcome_of(measured, centre, "aab")], LEVEL)
    assert result.top1 == pytest.approx(1 / 3)
    assert result.within_10 == pytest.approx(2 / 3)
    assert result.slowdown_mean == pytest.approx((1 + 1.05 + 2) / 3)
    assert result.slowdown_geomean == pytest.approx((1 * 1.05 * 2) ** (1 / 3))
    assert result.slowdown_mean_by_application == pytest.approx((1.025 + 2) / 2)
    assert result.kendall_tau == pytest.approx((1 + 1 / 3 + 1 / 3) / 3)


def test_intervals_by_hand() -> None:
    measured = np.array([[0.0, 0.5], [0.1, 0.2], [2.0, -3.0]])
    result = scores([outcome_of(measured, np.zeros((3, 2)), "aab")], LEVEL)
    assert result.coverage == pytest.approx(0.5)
    assert result.coverage_over_cells == pytest.approx(4 / 6)
    assert result.coverage_worst_application == 0.0
    assert result.width == pytest.approx(math.exp(2))
    # Two cells are missed, by 1 and by 2; a miss costs 20 times its size at 90 %.
    assert result.interval_score == pytest.approx(2 + 20 * 3 / 6)


def test_errors_are_those_of_scikit_learn() -> None:
    outcome = random_outcome()
    result = scores([outcome], LEVEL)
    measured, centre = outcome.measured.ravel(), outcome.centre.ravel()
    assert result.rmse_log == pytest.approx(root_mean_squared_error(measured, centre))
    assert result.mae_log == pytest.approx(mean_absolute_error(measured, centre))
    assert result.mape == pytest.approx(mean_absolute_percentage_error(np.exp(measured), np.exp(centre)))
    assert result.median_ape == pytest.approx(np.median(np.abs(np.exp(centre - measured) - 1)))


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_correlation_is_that_of_scipy_ties_included(seed: int) -> None:
    rng = np.random.default_rng(seed)
    measured, centre = rng.integers(0, 4, (2, 6, 7)).astype(float)
    result = scores([outcome_of(measured, centre)], LEVEL)
    taus = [kendalltau(c, m).statistic for c, m in zip(centre, measured, strict=True)]
    assert result.kendall_tau == pytest.approx(np.nanmean(taus))


times = arrays(np.float64, (6, 3), elements=st.floats(-12, 3))


@given(times, st.permutations(range(6)), st.permutations(range(3)))
def test_the_order_of_kernels_and_devices_does_not_matter(
    measured: Reals, rows: list[int], columns: list[int]
) -> None:
    # Forecasts that differ, as a tie goes to the first device.
    centre = measured[::-1] + np.arange(18).reshape(6, 3) / 7
    one = outcome_of(measured, centre, "aabbbc")
    other = outcome_of(
        measured[np.ix_(rows, columns)], centre[np.ix_(rows, columns)], "".join("aabbbc"[row] for row in rows)
    )
    assume(all(len(np.unique(row)) == 3 for row in centre))
    first, second = (asdict(scores([each], LEVEL)) for each in (one, other))
    if first["kendall_tau"] is None:
        assert second.pop("kendall_tau") is first.pop("kendall_tau")
    assert first == pytest.approx(second, rel=1e-9, abs=1e-9)


def test_known_times_are_used_to_choose_and_are_not_scored() -> None:
    measured, centre = np.array([[0.0, 1.0, 2.0]]), np.array([[9.0, 1.0, 2.5]])
    known = np.array([[True, False, False]])
    outcome = replace(outcome_of(measured, centre), known=known, scored=~known)
    result = scores([outcome], LEVEL)
    assert result.slowdown_mean == 1
    assert result.rmse_log == pytest.approx(math.sqrt(0.25 / 2))


def test_no_score_is_told_where_nothing_defines_one_or_a_forecast_is_beyond_numbers() -> None:
    single = scores([outcome_of(np.zeros((2, 1)), np.ones((2, 1)))], LEVEL)
    assert single.slowdown_mean is single.top1 is single.kendall_tau is None
    assert single.rmse_log == 1
    nothing = scores([outcome_of(np.full((1, 2), np.nan), np.ones((1, 2)))], LEVEL)
    assert nothing == Scores()
    result = scores([outcome_of(np.zeros((1, 2)), np.array([[0.0, 1e4]]))], LEVEL)
    assert result.mape is None
    assert result.rmse_log == pytest.approx(1e4 / math.sqrt(2))


def test_the_noise_floor_is_the_spread_of_single_runs_by_seed_and_level() -> None:
    dataset = bundled_dataset()
    grid = grid_of(dataset)
    scores = noise_floor(dataset, grid, seed=0).scores
    # About the median instead of the mean, so a little more than the standard deviation.
    spread = np.sqrt(np.mean(grid.spread**2))
    assert scores.rmse_log == pytest.approx(spread, rel=0.15)
    # One of 50 runs is within quantiles of the others less often than within those of the distribution.
    assert scores.coverage == pytest.approx(0.9 * 49 / 51, abs=0.02)
    assert scores.slowdown_mean is not None
    assert scores.slowdown_mean > 1
    wide, again, other, narrow = (
        noise_floor(dataset, grid, seed, level).scores
        for seed, level in ((0, 0.9), (0, 0.9), (1, 0.9), (0, 0.5))
    )
    assert wide == again != other
    assert narrow.coverage == pytest.approx(0.5, abs=0.05)
    assert wide.width is not None and narrow.width is not None
    assert wide.width > narrow.width


def test_one_run_of_each_cell_tells_no_noise() -> None:
    dataset = bundled_dataset()
    single = pc.field("run") == 0
    dataset = replace(dataset, records=dataset.records.filter(single & (pc.field("repeat") == 0)))
    assert noise_floor(dataset, grid_of(dataset), seed=0).scores == Scores()


def test_the_best_fixed_device_by_hand() -> None:
    # d1 is the fastest for two kernels, and far off for the third; d2 is never far off.
    grid = make_grid(np.log([[9.0, 1.0, 2.0], [9.0, 1.0, 2.0], [9.0, 30.0, 3.0]]), ["a", "a", "b"])
    always = always_the_same(grid)
    assert always is not None
    device, result = always
    assert device == "d2"
    scores = result.scores
    assert scores.slowdown_mean == pytest.approx((2 + 2 + 1) / 3)
    assert scores.top1 == pytest.approx(1 / 3)
    assert scores.rmse_log is scores.coverage is None
    # One that lacks a kernel is not taken always, and one alone is no choice.
    lacking = always_the_same(make_grid(np.log([[2.0, 1.0], [2.0, np.nan], [2.0, 1.0]]), ["a", "a", "b"]))
    assert lacking is not None
    assert lacking[0] == "d0"
    assert always_the_same(make_grid(np.zeros((2, 1)), ["a", "b"])) is None


OTHER = Toolchain("gcc", ("-O0",))


@dataclass(frozen=True)
class Counting:
    """A model by which time is instructions, times the number of launches."""

    def log_time(self, profiles: ProfileBatch) -> Reals:
        times: Reals = np.log(profiles.metric("total_instruction_count") * profiles.invocations)[:, None]
        return times


def changed(grid: Grid, name: str, factor: Reals | float) -> Grid:
    metrics = grid.profiles.metrics.copy()
    metrics[:, NAMES.index(name)] *= factor
    return replace(grid, profiles=replace(grid.profiles, metrics=metrics))


def test_the_effect_is_the_ratio_of_predictions_over_all_launches_in_both() -> None:
    grid = lawful_grid()
    factors = np.linspace(0.8, 1.6, len(grid.profiles))
    effect = effect_of(Counting(), grid, changed(grid, "total_instruction_count", factors), OTHER)
    assert effect is not None
    assert (effect.compiler, effect.options, effect.kernels) == ("gcc", ("-O0",), 48)
    assert effect.factor == pytest.approx(1.2, rel=1e-3)
    assert effect.low == pytest.approx(0.88, rel=1e-3)
    assert effect.high == pytest.approx(1.52, rel=1e-3)


def test_only_launches_of_the_same_work_are_compared() -> None:
    grid = lawful_grid()
    factors = np.where(np.arange(len(grid.profiles)) < 40, 3.0, 1.5)
    effect = effect_of(Counting(), grid, changed(grid, "total_instruction_count", factors), OTHER)
    assert effect is not None
    assert effect.kernels == 8
    renamed = replace(grid.profiles, kernel=tuple(f"{name}_" for name in grid.profiles.kernel))
    for others in (changed(grid, "work_items", 2.0), replace(grid, profiles=renamed)):
        assert effect_of(Counting(), grid, others, OTHER) is None
    # How often a kernel was launched is no effect.
    often = replace(grid, profiles=replace(grid.profiles, invocations=np.full(48, 9)))
    effect = effect_of(Counting(), grid, often, OTHER)
    assert effect is not None
    assert effect.factor == pytest.approx(1)
