"""Probes are chosen by what is known of others, and not by what came of them."""

from dataclasses import replace
from itertools import combinations_with_replacement

import pytest
from made_co_runs import NAMES, made_bag, made_co_runs, made_solo

from crosscast.evaluate.corun import folds_of, probing_of
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns


def chosen(bags: tuple[Bag, ...], name: str, probes: int) -> list[Bag]:
    co_runs = made_co_runs()
    (fold,) = (fold for fold in folds_of(bags, "leave-benchmark-out", 0) if fold.held_out == name)
    known, new = ([bags[place] for place in side.tolist()] for side in (fold.train, fold.test))
    probing = probing_of(replace(co_runs, bags=tuple(known)), 0)
    return [new[place] for place in probing.places(known, new, name, probes)]


@pytest.mark.parametrize("probes", [1, 3])
def test_so_many_bags_of_each_input_are_chosen_with_other_applications(probes: int) -> None:
    bags = made_co_runs(NAMES[:5], sizes=("small", "tiny")).bags
    found = chosen(bags, "cfd", probes)
    own = [solo.name for bag in found for solo in bag.solos if solo.application == "cfd"]
    assert sorted(own) == sorted(["cfd small", "cfd tiny"] * probes)
    assert len({bag.name for bag in found}) == 2 * probes


def test_probes_do_not_depend_on_what_came_of_bags() -> None:
    bags = made_co_runs(NAMES[:4]).bags
    other = tuple(
        replace(bag, members=tuple(replace(each, slowdown=9.0) for each in bag.members), time_s=1.0)
        if "cfd" in bag.applications
        else bag
        for bag in bags
    )
    first, second = (chosen(each, "cfd", 2) for each in (bags, other))
    assert [bag.name for bag in first] == [bag.name for bag in second]


def test_a_part_of_the_bags_with_other_traits_in_common_is_probed_too() -> None:
    """Of seven applications four have a trait; of six, three."""
    some = [
        replace(
            made_solo(name), features={"utilisation": 0.5, **({"slowdown_low": 2.0} if place < 4 else {})}
        )
        for place, name in enumerate((*NAMES, "gem"))
    ]
    bags = tuple(made_bag(pair) for pair in combinations_with_replacement(some, 2))
    probing = probing_of(CoRuns("some", tuple(some), bags), 0)
    known = [bag for bag in bags if NAMES[0] not in bag.applications]
    new = [bag for bag in bags if NAMES[0] in bag.applications]
    assert len(probing.places(known, new, NAMES[0], 2)) == 2
