"""Intervals are as wide as errors scatter at the predicted time, and reach most of nearly any application."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crosscast.prediction.time.gaussian import fit_spread
from crosscast.prediction.time.models import model_named
from support.grids import noisy_grid

GRID = noisy_grid()
TIMES = np.linspace(-12, -2, GRID.log_time.size).reshape(GRID.log_time.shape)


def test_the_power_of_the_time_is_found() -> None:
    spread = fit_spread(np.exp(0.2 * TIMES), TIMES, GRID)
    assert spread is not None
    assert spread.power == pytest.approx(0.2, abs=0.02)
    near = np.array([spread.centre, spread.centre + 1, spread.high + 5])
    assert spread.at(near)[0] == 1
    assert spread.at(near)[2] == spread.at(np.array([spread.high]))[0]


def test_of_few_applications_or_one_time_nothing_is_learned() -> None:
    few = GRID.take(np.isin(GRID.profiles.groups("application"), range(4)))
    assert fit_spread(np.ones_like(few.log_time), few.log_time, few) is None
    assert fit_spread(np.ones_like(TIMES), np.full_like(TIMES, -5.0), GRID) is None


def test_the_default_has_wider_intervals_at_longer_times_where_these_are_less_sure() -> None:
    random = np.random.default_rng(1)
    noise = random.normal(size=GRID.log_time.shape) * np.exp(0.4 * (GRID.log_time - GRID.log_time.mean()))
    grid = replace(GRID, log_time=GRID.log_time + 0.2 * noise)
    predictor = replace(model_named("combined"), trivial=None).fit_with_errors(grid, 0, None)[0]
    assert predictor.spread is not None
    assert predictor.spread.power > 0.1
    forecast = predictor.predict(grid.profiles)
    width = np.log(forecast.high / forecast.low).mean(axis=1)
    order = np.argsort(forecast.centre.mean(axis=1))
    assert width[order[-10:]].mean() > 1.2 * width[order[:10]].mean()
