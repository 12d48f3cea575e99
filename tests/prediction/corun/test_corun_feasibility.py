"""Whether mixes fit on a device, and what power they draw: what tells it, and where little tells."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from crosscast.data.corun import IsolatedRun, MeasuredMix, Member
from crosscast.prediction.corun.process import Feasibility, Power, fit_feasibility, fit_power
from support.mixes import NAMES, made_co_runs, make_isolated_run, make_mix

GIB = 1 << 30


def of_memory(name: str, gib: float) -> IsolatedRun:
    return replace(make_isolated_run(name), memory_bytes=int(gib * GIB))


ISOLATED_RUNS = [of_memory(name, gib) for name, gib in zip(NAMES, (1, 2, 4, 6, 8, 10), strict=True)]
PAIRS = [(first, second) for place, first in enumerate(ISOLATED_RUNS) for second in ISOLATED_RUNS[place:]]


def mix(isolated_runs: tuple[IsolatedRun, ...], fits: bool | None) -> MeasuredMix:
    return MeasuredMix("mix", "cpu", tuple(Member(isolated_run) for isolated_run in isolated_runs), fits=fits)


def gib_of(isolated_runs: tuple[IsolatedRun, ...]) -> float:
    return sum(isolated_run.memory_bytes or 0 for isolated_run in isolated_runs) / GIB


MIXES = [mix(pair, gib_of(pair) <= 10) for pair in PAIRS]


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
        [mix(pair, gib_of(pair) <= 18) for pair in PAIRS],
    ],
    ids=["none", "all fit", "unknown", "two do not fit"],
)
def test_mixes_that_tell_too_little_give_nothing(mixes: list[MeasuredMix]) -> None:
    assert fit_feasibility(mixes) is None


def test_applications_that_are_all_alike_give_nothing() -> None:
    same = IsolatedRun("a", "s", "d", 1.0, memory_bytes=GIB)
    assert fit_feasibility([mix((same, same), fits) for fits in [True, False] * 4]) is None


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
