"""Bags are clustered by what is known of them, and three clusters are found where there are three."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_co_runs import made_co_runs, made_solo

from crosscast.studies.corun import COUNTS, Clusters, cluster_bags
from crosscast.studies.moolchandani2022 import NotMade
from crosscast.tables.corun.bag import Bag, Member

LEVELS = (0.1, 0.5, 0.9)


def blob(level: float, place: int) -> Bag:
    """A pair whose misses and fairness lie near one of three points."""
    random = np.random.default_rng([place, int(10 * level)])
    near = [level + float(random.normal(0, 0.01)) for _ in range(3)]
    solo = made_solo(f"app{level}", f"s{place}", llc_miss=near[0], l1_miss=near[1])
    members = (Member(solo, 1.0), Member(solo, 1.0 / near[2]))
    return Bag(f"b{level} {place}", "cpu", members)


def test_three_clusters_are_found_where_there_are_three_and_named_by_their_application() -> None:
    found = cluster_bags([blob(level, place) for level in LEVELS for place in range(8)], 0)
    assert isinstance(found, Clusters)
    assert found.features == ("fairness", "LLC misses", "L1 misses")
    assert found.best == 3
    assert found.as_published
    assert found.scores[3] > 0.9
    assert [each.application for each in found.clusters] == ["app0.9", "app0.5", "app0.1"]
    assert [each.bags for each in found.clusters] == [8, 8, 8]
    assert all(each.share == 1.0 for each in found.clusters)
    assert found.clusters[1].means["LLC misses"] == pytest.approx(0.5, abs=0.02)
    assert list(found.to_dict()["silhouette"]) == [str(count) for count in COUNTS]
    json.dumps(found.to_dict(), allow_nan=False)


def test_silhouettes_are_those_of_the_labels() -> None:
    found = cluster_bags([blob(level, place) for level in LEVELS for place in range(8)], 0)
    assert isinstance(found, Clusters)
    assert found.silhouettes.mean() == pytest.approx(found.scores[3])


def test_without_counters_other_features_stand_in_and_are_named() -> None:
    found = cluster_bags(made_co_runs(bags=(2,)).bags, 0)
    assert isinstance(found, Clusters)
    assert found.features == (
        "fairness",
        "slowdown of High, summed",
        "bandwidth in bytes/s, summed",
    )


def test_bags_that_were_measured_twice_count_once_and_those_that_failed_not_at_all() -> None:
    bags = [blob(level, place) for level in LEVELS for place in range(8)]
    broken = replace(bags[0], members=(replace(bags[0].members[0], failure="crashed"), bags[0].members[1]))
    found = cluster_bags([*bags, replace(bags[1], repeat=1), broken], 0)
    assert isinstance(found, Clusters)
    assert len(found.values) == len(bags)


@pytest.mark.parametrize("count", [0, 8])
def test_too_few_bags_are_said(count: int) -> None:
    found = cluster_bags([blob(0.5, place) for place in range(count)], 0)
    assert isinstance(found, NotMade)
    assert "more than 8 different bags" in found.reason


def test_bags_of_which_nothing_but_slowdowns_is_known_are_not_clustered() -> None:
    bags = [
        replace(
            bag, members=tuple(replace(each, solo=replace(each.solo, features={})) for each in bag.members)
        )
        for bag in made_co_runs(bags=(2,)).bags
    ]
    found = cluster_bags(bags, 0)
    assert isinstance(found, NotMade)
    assert "none is known" in found.reason
