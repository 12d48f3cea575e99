"""The published offline stage on all programs, as it is shown."""

import json

import pytest

from chosen_study import named_surfaces, other_machine
from crosscast.decide.training import offline_stage
from crosscast.errors import InputError
from crosscast.predict.configuration.bailey2014 import PublishedModel


def test_it_is_the_published_model_of_all_programs() -> None:
    surfaces = named_surfaces()
    stage = offline_stage(surfaces)
    fitted = PublishedModel().fit(surfaces, (11, 0))
    assert stage.samples == (11, 0)
    assert stage.predictor.clusters == fitted.clusters
    assert stage.predictor.tree.text() == fitted.tree.text()


def test_its_object_of_json_has_the_clusters_and_the_tree() -> None:
    stage = offline_stage(named_surfaces())
    found = stage.to_dict()
    assert not found["nothing_to_cluster"]
    assert sorted(name for group in found["clusters"] for name in group) == sorted(
        str(kernel) for kernel in named_surfaces().kernels
    )
    assert found["tree"] == stage.predictor.tree.text()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_where_there_is_nothing_to_cluster_there_are_no_clusters() -> None:
    found = offline_stage(other_machine()).to_dict()
    assert found["nothing_to_cluster"]
    assert found["note"].startswith("nothing to cluster: Kendall's tau is 1 for every pair of kernels")
    assert found["least_correlation"] == found["most_correlation"] == 1
    assert found["clusters"] == []
    assert found["tree"] is None


def test_samples_may_be_named() -> None:
    surfaces = named_surfaces()
    named = [surfaces.space.configurations[number] for number in (3, 5)]
    assert offline_stage(surfaces, samples=named).samples == (3, 5)
    with pytest.raises(InputError, match="configuration: expected one of the 12 that are known"):
        offline_stage(surfaces, samples=other_machine().space.configurations[:1])
