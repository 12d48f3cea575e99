"""The bags that come with the package: whole, small, and of the kernels as they are now."""

import json

import pytest

from crosscast.data.corun import CoRuns, co_runs
from crosscast.data.dataset import BUNDLED_CORUN, bundled_folder, bundled_named
from crosscast.kernel import Program
from crosscast.suite.application import working_set
from crosscast.suite.registry import application, names

MOST_BYTES = 2_000_000


@pytest.fixture(scope="module")
def found() -> CoRuns:
    dataset = bundled_named(BUNDLED_CORUN)
    assert dataset is not None
    return co_runs(dataset)


def test_the_whole_suite_is_there_alone_and_in_bags_of_two_and_three(found: CoRuns) -> None:
    assert set(found.applications) == set(names())
    assert {len(bag.members) for bag in found.bags} == {2, 3}
    assert not any(bag.failed for bag in found.bags)
    assert all(member.slowdown and member.solo.time_s for bag in found.bags for member in bag.members)


def test_everything_is_known_beside_the_microbenchmarks(found: CoRuns) -> None:
    for solo in found.solos:
        for level in ("low", "medium", "high"):
            assert {f"{what}_{level}" for what in ("slowdown", "inflicted", "fairness")} <= set(solo.features)


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in bundled_folder(BUNDLED_CORUN).iterdir()) <= MOST_BYTES


def test_it_was_made_from_the_problems_as_they_are_now() -> None:
    dataset = bundled_named(BUNDLED_CORUN)
    assert dataset is not None
    for row in dataset.solos.to_pylist():
        kind = application(row["application"])
        problem = json.loads(row["environment"])["problem"]
        assert problem["parameters"] == kind.fit(working_set(row["size"]))
        assert problem["source_sha256"] == Program.from_file(kind.source_path()).sha256


def test_a_word_that_stands_for_nothing_is_no_dataset() -> None:
    assert bundled_named("bundled-other") is None
