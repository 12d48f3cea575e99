"""Breadth-first search: the graph, its number of levels, and that the check sees a wrong depth."""

import numpy as np
import pytest

from crosscast.characterization.run import Options
from crosscast.errors import CheckFailed
from crosscast.suite.bfs.driver import Bfs
from crosscast.suite.registry import profiles_of


@pytest.mark.parametrize("nbytes", [8 << 10, 31 * 999, 50_001, 8 << 20])
def test_the_working_set_fills_what_was_asked_for(nbytes: int) -> None:
    assert nbytes - 62 < Bfs(Bfs.fit(nbytes), seed=0).nbytes <= nbytes


@pytest.mark.parametrize("vertices", [1, 2, 257])
def test_any_number_of_vertices_is_searched(vertices: int) -> None:
    profiles_of(Bfs({"vertices": vertices}, seed=1), "odd", options=Options(check_bounds=True))  # checks


def test_edges_go_both_ways() -> None:
    application = Bfs({"vertices": 500}, seed=2)
    tails = np.repeat(np.arange(500), application.nodes[:, 1])
    there = sorted(zip(tails, application.edges, strict=True))
    assert there == sorted(zip(application.edges, tails, strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_a_level_is_a_pair_of_launches_and_there_are_few(seed: int) -> None:
    application = Bfs(Bfs.fit(8 << 10), seed=seed)
    profiles = profiles_of(application, "tiny")
    assert len(profiles) == 2 * (application.depth.max() + 1) <= 30


def test_a_second_run_starts_from_the_same_input() -> None:
    application = Bfs({"vertices": 40}, seed=3)
    first = [profile.metrics for profile in profiles_of(application, "odd")]
    assert [profile.metrics for profile in profiles_of(application, "odd")] == first


def test_a_vertex_that_was_not_reached_fails_the_check() -> None:
    application = Bfs({"vertices": 100}, seed=4)
    profiles_of(application, "odd")
    application.depth[application.depth.argmax()] = 0
    with pytest.raises(CheckFailed, match="depth: 1 of 100"):
        application.check()
