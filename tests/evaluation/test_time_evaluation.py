"""Splits hold whole groups out, each once."""

import math
from dataclasses import dataclass, field
from math import comb

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.evaluation.time.evaluation import FOLDS, MOST_SETS, evaluate_time, folds_of, probe_sets
from crosscast.prediction.time import Grid
from crosscast.prediction.time.forecast import Model
from crosscast.prediction.time.gaussian import Gaussian
from crosscast.prediction.time.models import DeviceMean
from support.models import MeanModel, Oracle, make_grid, random_grid
from support.refusals import refusals


@pytest.mark.parametrize("split", FOLDS)
def test_every_cell_is_held_out_exactly_once(split: str) -> None:
    grid = random_grid()
    times = np.zeros(grid.log_time.shape, dtype=int)
    for fold in folds_of(grid, split):
        times[np.ix_(fold.kernels.test, fold.devices.test)] += 1
    assert (times == 1).all()


@refusals("split sentence")
def test_too_few_groups_are_refused(split: str, sentence: str) -> None:
    grid = make_grid(np.zeros((3, 1)), ["a", "a", "a"])
    with pytest.raises(InputError, match=sentence):
        folds_of(grid, split)


def test_sets_of_probes_are_all_or_drawn_by_the_seed() -> None:
    sets = probe_sets(15, 2, seed=0)
    assert len(sets) == len(set(sets)) == 105
    assert all(first < second for first, second in sets)
    assert probe_sets(4, 0, seed=0) == ((),)
    many = probe_sets(30, 2, seed=1)
    assert len(set(many)) == MOST_SETS < comb(30, 2)
    assert many == probe_sets(30, 2, seed=1) != probe_sets(30, 2, seed=2)


@dataclass
class Memory:
    """Cells that a model has seen in its fits, a set a fit."""

    fits: list[set[tuple[str, str, str]]] = field(default_factory=list)

    def __call__(self, grid: Grid, seed: int) -> None:
        names = zip(grid.profiles.application, grid.profiles.kernel, strict=True)
        self.fits.append({(*name, device.key) for name in names for device in grid.devices})


@pytest.mark.parametrize("name", FOLDS)
def test_no_fit_sees_what_it_is_asked_about(name: str) -> None:
    grid, memory = random_grid(), Memory()
    evaluate_time(grid, [MeanModel(when_fitted=memory)], name)
    folds = folds_of(grid, name)
    assert len(memory.fits) == len(folds)
    for seen, fold in zip(memory.fits, folds, strict=True):
        inputs = {
            (grid.profiles.application[row], grid.profiles.kernel[row], grid.devices[column].key)
            for row in fold.kernels.test.tolist()
            for column in fold.devices.test.tolist()
        }
        assert inputs
        assert seen.isdisjoint(inputs)
        if name == "leave-application-out":
            assert {each[0] for each in seen}.isdisjoint({each[0] for each in inputs})
        if name == "leave-device-out":
            assert {each[2] for each in seen}.isdisjoint({each[2] for each in inputs})


def test_held_out_times_have_no_way_into_a_forecast() -> None:
    grid = random_grid()
    changed = grid.log_time.copy()
    changed[[0, 4, 8]] += 5.0
    other = make_grid(changed, grid.profiles.application)
    for probes in ((0,), (2,)):
        one, two = (
            evaluate_time(each, [MeanModel()], probes=probes).results[0].outcomes for each in (grid, other)
        )
        for first, second in zip(one, two, strict=True):
            mine = np.isin(first.rows, [0, 4, 8])
            hidden = mine[:, None] & ~first.known
            if probes == (0,):
                np.testing.assert_array_equal(first.centre[hidden], second.centre[hidden])
            else:
                # Only what was told moves the others.
                np.testing.assert_allclose(first.centre[hidden] + 5.0, second.centre[hidden])


def test_intervals_of_a_fold_are_those_of_a_fit_that_knows_no_residuals() -> None:
    """Residuals of all folds come from fits without two applications, each in the folds of both."""
    grid, model = random_grid(), Gaussian(DeviceMean())
    ((outcome,),) = (each.outcomes for each in evaluate_time(grid, [model]).results)
    for fold in folds_of(grid, "leave-application-out"):
        fitted = model.fit(grid.take(fold.kernels.train), 0)
        forecast = fitted.predict(grid.profiles.take(fold.kernels.test))
        rows = np.isin(outcome.rows, fold.kernels.test)
        for found, expected in ((outcome.low, forecast.low), (outcome.high, forecast.high)):
            np.testing.assert_allclose(found[rows], np.log(expected))


def test_the_mean_of_devices_by_hand() -> None:
    grid = make_grid(np.array([[0.0, 1.0], [2.0, 2.0], [4.0, 6.0]]), ["a", "b", "b"])
    (result,) = evaluate_time(grid, [MeanModel()]).results
    (outcome,) = result.outcomes
    order = np.argsort(outcome.rows)
    np.testing.assert_allclose(outcome.centre[order], [[3.0, 4.0], [0.0, 1.0], [0.0, 1.0]])
    squares = [9, 9, 4, 1, 16, 25]
    assert result.scores.rmse_log == pytest.approx(math.sqrt(sum(squares) / 6))
    assert result.applications["a"].rmse_log == result.without["b"].rmse_log == pytest.approx(3)


@pytest.mark.parametrize("name", FOLDS)
def test_an_oracle_is_perfect(name: str) -> None:
    grid = random_grid()
    (result,) = evaluate_time(grid, [Oracle(grid)], name).results
    scores = result.scores
    assert scores.rmse_log == pytest.approx(0, abs=1e-12)
    assert (scores.slowdown_mean, scores.top1, scores.coverage) == (1, 1, 1)


def test_probes_are_all_pairs_never_scored_and_all_others_of_a_new_device() -> None:
    grid = random_grid(d=5)
    without, with_two = evaluate_time(grid, [MeanModel()], probes=(0, 2)).results
    assert (without.probes, len(without.outcomes)) == (0, 1)
    assert (with_two.probes, len(with_two.outcomes)) == (2, 10)
    known = {tuple(np.flatnonzero(outcome.known[0]).tolist()) for outcome in with_two.outcomes}
    assert len(known) == 10
    for outcome in with_two.outcomes:
        assert not (outcome.known & outcome.scored).any()
        assert (outcome.known | outcome.scored).all()
    grid = random_grid(d=4)
    (result,) = evaluate_time(grid, [MeanModel()], "leave-device-out").results
    (outcome,) = result.outcomes
    assert result.probes == 3
    assert len(outcome.rows) == 4 * len(grid.profiles)
    assert (outcome.scored.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(outcome.known, ~outcome.scored)


def test_what_a_model_refuses_says_which_model_and_fold() -> None:
    def refuse(grid: Grid, seed: int) -> None:
        raise InputError("grid: expected 9 applications, found 3")

    with pytest.raises(InputError, match="device-mean, a0 held out: grid: expected 9 applications"):
        evaluate_time(random_grid(), [MeanModel(when_fitted=refuse)])


def test_a_model_that_is_always_better_is_better_beyond_doubt() -> None:
    grid = random_grid()
    models: list[Model] = [MeanModel(), Oracle(grid)]
    evaluation = evaluate_time(grid, models, probes=(0, 1))
    baseline, _, oracle, _ = evaluation.confidences
    assert not baseline.differences
    difference = oracle.differences["rmse_log"]
    assert difference.baseline == "device-mean"
    score = evaluation.results[0].scores.rmse_log
    assert score is not None
    assert difference.value == pytest.approx(-score)
    assert difference.better
    assert difference.interval.high < 0
    assert oracle.differences["top1"].better
    assert oracle.differences["top1"].interval.low > 0
    assert "coverage" not in oracle.differences
