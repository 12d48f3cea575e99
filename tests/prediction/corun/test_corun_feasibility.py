"""Whether mixes fit on a device, and what power they draw: what tells it, and where little tells."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from crosscast.data.corun import Bag, Member, Solo
from crosscast.prediction.corun.process import Feasibility, Power, fit_feasibility, fit_power
from support.mixes import NAMES, made_bag, made_co_runs, made_solo

GIB = 1 << 30


def of_memory(name: str, gib: float) -> Solo:
    return replace(made_solo(name), memory_bytes=int(gib * GIB))


SOLOS = [of_memory(name, gib) for name, gib in zip(NAMES, (1, 2, 4, 6, 8, 10), strict=True)]
PAIRS = [(first, second) for place, first in enumerate(SOLOS) for second in SOLOS[place:]]


def bag(solos: tuple[Solo, ...], fits: bool | None) -> Bag:
    return Bag("bag", "cpu", tuple(Member(solo) for solo in solos), fits=fits)


def gib_of(solos: tuple[Solo, ...]) -> float:
    return sum(solo.memory_bytes or 0 for solo in solos) / GIB


BAGS = [bag(pair, gib_of(pair) <= 10) for pair in PAIRS]


def feasibility(bags: list[Bag]) -> Feasibility:
    fits = fit_feasibility(bags)
    assert fits is not None
    return fits


def test_memory_is_found_to_be_what_tells() -> None:
    result = feasibility(BAGS)
    assert result.wanted == "memory_bytes"
    assert result.slope < 0
    probability = result.probability(PAIRS)
    fits = np.array([each.fits for each in BAGS])
    assert probability[fits].min() > 0.5 > probability[~fits].max()


def test_odds_are_those_of_scikit_learn() -> None:
    numbers = np.log([gib_of(pair) for pair in PAIRS])
    scaled = (numbers - numbers.mean()) / numbers.std()
    design = np.column_stack([np.ones_like(scaled), scaled])
    truth = [each.fits for each in BAGS]
    peer = LogisticRegression(C=100.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(design, truth)
    fits = feasibility(BAGS)
    assert_allclose([fits.intercept, fits.slope], peer.coef_[0], rtol=1e-4)
    assert_allclose(fits.probability(PAIRS), peer.predict_proba(design)[:, 1], atol=1e-5)


def test_it_is_not_told_where_memory_is_not_known() -> None:
    unknown = replace(SOLOS[0], memory_bytes=None)
    assert np.isnan(feasibility(BAGS).probability([(unknown, SOLOS[1])])).all()


@pytest.mark.parametrize(
    "bags",
    [
        [],
        made_co_runs().bags,
        [replace(each, fits=None) for each in BAGS],
        [bag(pair, gib_of(pair) <= 18) for pair in PAIRS],
    ],
    ids=["none", "all fit", "unknown", "two do not fit"],
)
def test_bags_that_tell_too_little_give_nothing(bags: list[Bag]) -> None:
    assert fit_feasibility(bags) is None


def test_applications_that_are_all_alike_give_nothing() -> None:
    same = Solo("a", "s", "d", 1.0, memory_bytes=GIB)
    assert fit_feasibility([bag((same, same), fits) for fits in [True, False] * 4]) is None


CO_RUNS = made_co_runs(NAMES, bags=(2, 3))
NEW = [made_solo(name) for name in ("gem", "hmm", "kmeans", "lud", "nw", "srad")]


def power_of(bags: tuple[Bag, ...]) -> Power:
    power = fit_power(bags)
    assert power is not None
    return power


def test_power_of_new_applications_is_found() -> None:
    """20 W, and 40 W for what is used of the device."""
    power = power_of(CO_RUNS.bags)
    for members in (2, 3):
        bags = list(combinations_with_replacement(NEW, members))
        truth = np.array([made_bag(solos).power_w for solos in bags], dtype=np.float64)
        assert np.abs(power.watts(bags) / truth - 1).mean() < 0.04


def test_nothing_beyond_the_training_is_predicted() -> None:
    power = power_of(CO_RUNS.bags)
    ratios = [(bag.power_w or 0.0) / max(solo.power_w or 0.0 for solo in bag.solos) for bag in CO_RUNS.bags]
    five = [(*NEW[:5],)]
    ratio = power.watts(five) / max(solo.power_w or 0.0 for solo in five[0])
    assert min(ratios) - 1e-9 <= ratio[0] <= max(ratios) + 1e-9


def test_the_order_of_members_does_not_matter_even_where_powers_are_the_same() -> None:
    power = power_of(CO_RUNS.bags)
    same = [
        replace(NEW[index], power_w=50.0, features={"utilisation": used})
        for index, used in enumerate((0.2, 0.9, 0.5))
    ]
    watts = power.watts(list(permutations(same)))
    assert_allclose(watts, watts[0], rtol=1e-12)


@pytest.mark.parametrize("power", [None, 0.0])
def test_power_is_not_told_where_that_of_a_member_is_not_known(power: float | None) -> None:
    result = power_of(CO_RUNS.bags)
    unknown = replace(NEW[0], power_w=power)
    assert np.isnan(result.watts([(unknown, NEW[1]), (NEW[1], unknown)])).all()


def test_a_member_whose_use_is_not_known_is_taken_to_use_as_much_as_the_median() -> None:
    power = power_of(CO_RUNS.bags)
    unknown = replace(NEW[0], features={})
    middle = replace(NEW[0], features={"utilisation": power.utilisation})
    assert_array_equal(power.watts([(unknown, NEW[1])]), power.watts([(middle, NEW[1])]))


def test_powers_without_any_use_known_are_predicted() -> None:
    def bare(solo: Solo) -> Solo:
        return replace(solo, features={})

    bags = tuple(
        replace(bag, members=tuple(replace(member, solo=bare(member.solo)) for member in bag.members))
        for bag in CO_RUNS.bags
    )
    assert np.isfinite(power_of(bags).watts([(bare(NEW[0]), bare(NEW[1]))])).all()


@pytest.mark.parametrize("unknown", ["bags", "members", "few"])
def test_too_few_powers_give_nothing(unknown: str) -> None:
    bags = CO_RUNS.bags
    if unknown == "bags":
        bags = tuple(replace(bag, power_w=0.0) for bag in bags)
    elif unknown == "few":
        bags = bags[:4]
    else:
        bags = tuple(
            replace(
                bag,
                members=tuple(replace(each, solo=replace(each.solo, power_w=None)) for each in bag.members),
            )
            for bag in bags
        )
    assert fit_power(bags) is None
