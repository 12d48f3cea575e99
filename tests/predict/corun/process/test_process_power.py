"""Power of a bag from the powers of its members alone."""

from dataclasses import replace
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest
from made_co_runs import NAMES, made_bag, made_co_runs, made_solo
from numpy.testing import assert_allclose, assert_array_equal

from crosscast.errors import InputError
from crosscast.predict.corun.process import Power, fit_power
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.solo import Solo

CO_RUNS = made_co_runs(NAMES, bags=(2, 3))
NEW = [made_solo(name) for name in ("gem", "hmm", "kmeans", "lud", "nw", "srad")]


def fitted(bags: tuple[Bag, ...]) -> Power:
    found = fit_power(bags)
    assert found is not None
    return found


def test_power_of_new_applications_is_found() -> None:
    """20 W, and 40 W for what is used of the device."""
    found = fitted(CO_RUNS.bags)
    for members in (2, 3):
        bags = list(combinations_with_replacement(NEW, members))
        truth = np.array([made_bag(solos).power_w for solos in bags], dtype=np.float64)
        assert np.abs(found.watts(bags) / truth - 1).mean() < 0.04


def test_nothing_beyond_the_training_is_predicted() -> None:
    found = fitted(CO_RUNS.bags)
    ratios = [(bag.power_w or 0.0) / max(solo.power_w or 0.0 for solo in bag.solos) for bag in CO_RUNS.bags]
    five = [(*NEW[:5],)]
    ratio = found.watts(five) / max(solo.power_w or 0.0 for solo in five[0])
    assert min(ratios) - 1e-9 <= ratio[0] <= max(ratios) + 1e-9


def test_the_order_of_members_does_not_matter_even_where_powers_are_the_same() -> None:
    found = fitted(CO_RUNS.bags)
    same = [
        replace(NEW[place], power_w=50.0, features={"utilisation": used})
        for place, used in enumerate((0.2, 0.9, 0.5))
    ]
    watts = found.watts(list(permutations(same)))
    assert_allclose(watts, watts[0], rtol=1e-12)


@pytest.mark.parametrize("power", [None, 0.0])
def test_power_is_not_told_where_that_of_a_member_is_not_known(power: float | None) -> None:
    found = fitted(CO_RUNS.bags)
    unknown = replace(NEW[0], power_w=power)
    assert np.isnan(found.watts([(unknown, NEW[1]), (NEW[1], unknown)])).all()


def test_a_member_whose_use_is_not_known_is_taken_to_use_as_much_as_the_median() -> None:
    found = fitted(CO_RUNS.bags)
    unknown = replace(NEW[0], features={})
    middle = replace(NEW[0], features={"utilisation": found.utilisation})
    assert_array_equal(found.watts([(unknown, NEW[1])]), found.watts([(middle, NEW[1])]))


def test_powers_without_any_use_known_are_predicted() -> None:
    def bare(solo: Solo) -> Solo:
        return replace(solo, features={})

    bags = tuple(
        replace(bag, members=tuple(replace(member, solo=bare(member.solo)) for member in bag.members))
        for bag in CO_RUNS.bags
    )
    assert np.isfinite(fitted(bags).watts([(bare(NEW[0]), bare(NEW[1]))])).all()


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


def test_it_comes_back_from_its_arrays() -> None:
    found = fitted(CO_RUNS.bags)
    again = Power.from_state(found.state())
    pairs = list(combinations_with_replacement(NEW, 2))
    assert_array_equal(again.watts(pairs), found.watts(pairs))
    with pytest.raises(InputError, match=r"^model: power: expected 3 rows of 4 numbers and 4 more"):
        Power.from_state({**found.state(), "scaled": np.zeros((3, 4))})
