import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import CheckFailed
from crosscast.suite.application import Parameters
from crosscast.suite.kmeans.driver import Kmeans
from crosscast.suite.registry import profiles_of


def nbytes(parameters: Parameters) -> int:
    points, features, clusters = (parameters[key] for key in ("points", "features", "clusters"))
    return 4 * (2 * points * features + clusters * features + points)


def small(points: int = 70, features: int = 3, clusters: int = 4, rounds: int = 2) -> Kmeans:
    extents = {"points": points, "features": features, "clusters": clusters, "rounds": rounds}
    return Kmeans(extents, seed=5)


@given(st.integers(8 << 10, 1 << 30))
def test_the_working_set_fills_what_it_may_and_no_more(limit: int) -> None:
    assert 0.9 * limit < nbytes(Kmeans.fit(limit)) <= limit


def test_the_arrays_are_the_working_set() -> None:
    parameters = Kmeans.fit(32 << 10)
    assert Kmeans(parameters, seed=1).nbytes == nbytes(parameters)


@pytest.mark.parametrize(("points", "features", "clusters"), [(70, 3, 4), (64, 1, 1), (65, 8, 2), (7, 5, 7)])
def test_it_agrees_with_scipy_at_any_extents(points: int, features: int, clusters: int) -> None:
    application = small(points, features, clusters)
    profiles_of(application, "tiny")
    assert np.array_equal(application.by_feature, application.points.T)


def test_each_round_is_one_launch_and_the_points_are_transposed_once() -> None:
    launched = [profile.kernel for profile in profiles_of(small(rounds=3), "tiny")]
    assert launched == ["invert_mapping"] + 3 * ["kmeansPoint"]


def test_a_second_run_starts_from_the_same_centres() -> None:
    application = small()
    profiles_of(application, "tiny")
    first = application.centres.copy()
    profiles_of(application, "tiny")
    assert np.array_equal(application.centres, first)


@pytest.mark.filterwarnings("ignore:One of the clusters is empty:UserWarning")
def test_a_centre_without_points_stays() -> None:
    application = small(clusters=2, rounds=1)
    application.points[1] = application.points[0]
    profiles_of(application, "tiny")
    assert np.array_equal(application.means[1], application.points[0])
    assert not application.membership.any()


@pytest.mark.parametrize("wrong", [-1, 4, 1 << 30])
def test_a_cluster_that_does_not_exist_fails_the_check(wrong: int) -> None:
    application = small()
    profiles_of(application, "tiny")
    application.membership[69] = wrong
    with pytest.raises(CheckFailed, match="membership: 1 of 70"):
        application.check()


def test_a_point_with_a_farther_centre_fails_the_check() -> None:
    application = small()
    profiles_of(application, "tiny")
    application.membership[69] = (application.membership[69] + 1) % 4
    with pytest.raises(CheckFailed, match="distance to the centre: 1 of 70"):
        application.check()


def test_centres_that_moved_elsewhere_fail_the_check() -> None:
    application = small()
    profiles_of(application, "tiny")
    application.means[2] += np.float32(0.01)
    with pytest.raises(CheckFailed, match="centres: 3 of 12"):
        application.check()
