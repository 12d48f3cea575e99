"""Probes are chosen by what is known of others, and not by what came of them."""

from dataclasses import replace

import pytest
from made_co_runs import NAMES, made_co_runs

from crosscast.evaluate.corun.probing import probing_of
from crosscast.evaluate.corun.splits import folds_of
from crosscast.tables.corun.bag import Bag


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
