"""Paths of left-out bags through decision trees, of all folds together."""

import json
from dataclasses import replace

from counted_co_runs import APPLICATIONS, counted_co_runs, studied

from crosscast.evaluate.corun import of_one_device
from crosscast.studies.moolchandani2022 import NotMade, PathStudy, performance_paths


def test_each_bag_is_followed_once_for_each_of_its_applications() -> None:
    studies = studied().studies
    assert studies is not None
    study = studies.performance_paths
    assert isinstance(study, PathStudy)
    pairs = [bag for bag in counted_co_runs().bags if bag.device == "cpu" and len(bag.members) == 2]
    assert len(study.times) == sum(len(bag.applications) for bag in pairs)
    # All that is known was taken, as the published features are not all there.
    assert not study.as_published
    assert {"MEM", "GPU_time", "utilisation"} <= set(study.features)
    means = study.times.mean(axis=0).tolist()
    assert means == sorted(means, reverse=True)
    assert (study.share == (study.times > 0).mean(axis=0)).all()
    json.dumps(study.to_dict(), allow_nan=False)


def test_two_applications_leave_nothing_to_leave_out() -> None:
    co_runs = of_one_device(counted_co_runs(), "cpu")
    few = [bag for bag in co_runs.bags if bag.applications <= set(APPLICATIONS[:2])]
    assert isinstance(performance_paths(replace(co_runs, bags=tuple(few)), 0), NotMade)
