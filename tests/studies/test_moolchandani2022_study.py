"""Combinations of features are compared where they can be made; paths through trees are scikit-learn's."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import MeasuredMix, Member
from crosscast.errors import InputError
from crosscast.evaluation.corun.evaluation import of_one_device
from crosscast.prediction.corun.models import models_named
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.trees import trees_of_tree
from crosscast.studies import moolchandani2022
from crosscast.studies.moolchandani2022_features import (
    CombinationStudy,
    combination_study,
    decision_paths,
    path_study,
    splits_passed,
)
from crosscast.studies.moolchandani2022_report import study_report
from support.golden import assert_printed
from support.mixes import APPLICATIONS, counted_co_runs, made_co_runs, make_isolated_run, studied
from support.published_mixes import made_co_runs as published_co_runs
from support.refusals import refusals


def test_what_is_printed_of_all_studies_is_as_it_was() -> None:
    path = Path(__file__).with_name("golden") / "moolchandani2022.txt"
    assert_printed(study_report(studied()).to_text(), path)
    json.dumps(studied().studies.to_dict(), allow_nan=False)


def test_without_times_of_mixes_slowdowns_are_predicted_and_without_power_nothing_of_it() -> None:
    made = made_co_runs(("bfs", "cfd", "crc", "csr"), power=False)
    untimed = made_co_runs(("bfs", "cfd", "crc", "csr")).mixes
    co_runs = replace(made, mixes=tuple(replace(mix, time_s=None, power_w=None) for mix in untimed))
    study = combination_study(co_runs, "performance", 0, kinds=["linear"])
    assert isinstance(study, CombinationStudy)
    assert study.quantity == "slowdown"
    power = combination_study(co_runs, "power", 0)
    assert power == "the power of no mix is known"


def test_two_applications_leave_nothing_to_leave_out() -> None:
    co_runs = of_one_device(counted_co_runs(), "cpu")
    few = [mix for mix in co_runs.mixes if mix.applications <= set(APPLICATIONS[:2])]
    assert path_study(replace(co_runs, mixes=tuple(few)), "performance", 0) == (
        "paths take at least 3 applications with mixes of known slowdown"
    )


def test_mixes_of_one_size_are_not_compared_with_others() -> None:
    pairs = of_one_device(counted_co_runs((2,)), "cpu")
    found = moolchandani2022.size_study(pairs, models_named(["mean"]), 0)
    assert isinstance(found, str)
    assert "all have 2 members" in found


LEVELS = (0.1, 0.5, 0.9)


def blob(level: float, place: int) -> MeasuredMix:
    """A pair whose misses and fairness lie near one of three points."""
    random = np.random.default_rng([place, int(10 * level)])
    near = [level + float(random.normal(0, 0.01)) for _ in range(3)]
    isolated_run = make_isolated_run(f"app{level}", f"s{place}", llc_miss=near[0], l1_miss=near[1])
    members = (Member(isolated_run, 1.0), Member(isolated_run, 1.0 / near[2]))
    return MeasuredMix(f"b{level} {place}", "cpu", members)


BLOBS = [blob(level, place) for level in LEVELS for place in range(8)]


def clustered(mixes: Sequence[MeasuredMix]) -> moolchandani2022.ClusterStudy:
    found = moolchandani2022.cluster_mixes(mixes, 0)
    assert isinstance(found, moolchandani2022.ClusterStudy)
    return found


def test_three_clusters_are_found_where_there_are_three_and_named_by_their_application() -> None:
    found = clustered(BLOBS)
    assert found.features == ("fairness", "LLC misses", "L1 misses")
    assert found.best == 3
    assert found.scores[3] > 0.9
    assert [each.application for each in found.clusters] == ["app0.9", "app0.5", "app0.1"]
    assert [each.mixes for each in found.clusters] == [8, 8, 8]
    assert all(each.share == 1.0 for each in found.clusters)
    assert found.clusters[1].means["LLC misses"] == pytest.approx(0.5, abs=0.02)
    told: dict[str, Any] = found.to_dict()
    assert list(told["silhouette"]) == [str(count) for count in moolchandani2022.CLUSTER_COUNTS]
    json.dumps(found.to_dict(), allow_nan=False)


def test_without_counters_other_features_stand_in_and_are_named() -> None:
    found = clustered(made_co_runs(mixes=(2,)).mixes)
    assert found.features == ("fairness", "slowdown of High, summed", "bandwidth in bytes/s, summed")


def test_mixes_count_once_and_only_where_more_than_slowdowns_is_known() -> None:
    first, second = BLOBS[:2]
    broken = replace(first, members=(replace(first.members[0], failure="crashed"), first.members[1]))
    assert clustered([*BLOBS, replace(second, repeat=1), broken]).mixes == len(BLOBS)
    mixes = [
        replace(
            mix,
            members=tuple(
                replace(each, isolated_run=replace(each.isolated_run, features={})) for each in mix.members
            ),
        )
        for mix in made_co_runs(mixes=(2,)).mixes
    ]
    found = moolchandani2022.cluster_mixes(mixes, 0)
    assert isinstance(found, str)
    assert "none is known" in found


@pytest.mark.parametrize("count", [0, 8])
def test_too_few_mixes_are_said(count: int) -> None:
    found = moolchandani2022.cluster_mixes([blob(0.5, place) for place in range(count)], 0)
    assert isinstance(found, str)
    assert "more than 8 different mixes" in found


RNG = np.random.default_rng(2)
ROWS, WANTED = RNG.random((80, 5)), RNG.random(80)


def passed(tree: DecisionTreeRegressor, rows: Reals) -> Integers:
    """Splits at each feature on the path of each row, by scikit-learn."""
    nodes = tree.decision_path(rows).toarray()
    features = tree.tree_.feature
    return np.stack([nodes[:, features == place].sum(axis=1) for place in range(rows.shape[1])], axis=1)


def test_splits_passed_are_those_of_scikit_learn() -> None:
    tree = DecisionTreeRegressor(max_depth=7, random_state=0).fit(ROWS, WANTED)
    others = RNG.random((40, 5))
    np.testing.assert_array_equal(splits_passed(trees_of_tree(tree), others), passed(tree, others))


@refusals("kind target words")
def test_only_one_tree_has_a_path(kind: str, target: str, words: str) -> None:
    co_runs = published_co_runs((2,), applications=5)
    predictor = Published(kind).fit(co_runs, 0).of_size(2)
    with pytest.raises(InputError, match=f"^{target}: {words}$"):
        decision_paths(predictor, [co_runs.mixes[0].isolated_runs], target)
