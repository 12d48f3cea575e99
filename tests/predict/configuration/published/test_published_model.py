"""The published model, offline and online."""

import dataclasses

import numpy as np
import pytest
from linear_machine import linear_samples, linear_surfaces
from made_surfaces import made_surfaces

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.predict.configuration.bailey2014 import PublishedModel, PublishedPredictor
from crosscast.predict.configuration.data import KernelAt, Space, Surfaces
from crosscast.predict.configuration.forecast import ConfigurationModel, ConfigurationPredictor

SAMPLES = (11, 0)
BOTH = [PublishedModel(), PublishedModel(logarithms=True)]


def same_frontiers() -> Surfaces:
    """One device and one clock: more is faster and takes more, for every kernel."""
    space = Space(tuple(Configuration("gpu", {"clock_hz": clock * 1e9}) for clock in (1, 2, 3)))
    works = np.arange(1.0, 6.0)[:, None]
    clocks = space.matrix[:, 0] / 1e9
    return Surfaces(
        "one clock",
        tuple(KernelAt(f"app{number}", f"app{number}", "only") for number in range(5)),
        space,
        works / clocks,
        50 + works * clocks,
    )


def predictor(model: PublishedModel | None = None) -> PublishedPredictor:
    return (model or PublishedModel()).fit(made_surfaces(6, noise=0.02), SAMPLES)


def test_both_are_models_and_predictors() -> None:
    model: ConfigurationModel = PublishedModel()
    fitted: ConfigurationPredictor = predictor()
    assert model.name == "published"
    assert (fitted.space, fitted.samples) == (made_surfaces(1).space, SAMPLES)


def test_names_say_what_is_set() -> None:
    models = (PublishedModel(5), PublishedModel(logarithms=True), PublishedModel(5, True))
    assert [each.name for each in models] == ["published-5", "published-log", "published-log-5"]


def test_kernels_of_one_kind_are_one_cluster() -> None:
    surfaces = linear_surfaces(8)
    fitted = PublishedModel(2).fit(surfaces, linear_samples(surfaces.space))
    kinds = [{int(each.application[3:]) % 2 for each in members} for members in fitted.clusters.members]
    assert sorted(kinds, key=str) == [{0}, {1}]


def test_a_new_kernel_is_told_exactly_where_its_cluster_is_linear() -> None:
    surfaces = linear_surfaces(8)
    samples = linear_samples(surfaces.space)
    known = surfaces.rows_of(["app6", "app7"])
    fitted = PublishedModel().fit(surfaces.take(~known), samples)
    assert len(fitted.clusters.members) == 2
    for row in np.flatnonzero(known).tolist():
        found = fitted.forecast(surfaces.observed(row, samples))
        np.testing.assert_allclose(found.time.centre, surfaces.time_s[row], rtol=1e-9)
        np.testing.assert_allclose(found.power.centre, surfaces.power_w[row], rtol=1e-9)


def test_the_tree_asks_what_tells_the_clusters_apart() -> None:
    surfaces = linear_surfaces(8)
    fitted = PublishedModel(2).fit(surfaces, linear_samples(surfaces.space))
    text = fitted.tree.text()
    assert text.count("(4 training kernels)") == 2
    observed = [surfaces.observed(row, fitted.samples) for row in range(8)]
    found = [fitted.cluster_of(each) for each in observed]
    assert [surfaces.kernels[row] in fitted.clusters.members[found[row]] for row in range(8)] == [True] * 8


@pytest.mark.parametrize("model", BOTH, ids=str)
def test_forecasts_are_finite_and_above_zero(model: PublishedModel) -> None:
    surfaces = made_surfaces(7, noise=0.05)
    out = surfaces.rows_of(["app6"])
    fitted = model.fit(surfaces.take(~out), SAMPLES)
    for row in np.flatnonzero(out).tolist():
        found = fitted.forecast(surfaces.observed(row, SAMPLES))
        for quantity, true in ((found.time, surfaces.time_s[row]), (found.power, surfaces.power_w[row])):
            assert np.isfinite(quantity.centre).all()
            assert np.abs(np.log(quantity.centre / true)).mean() < 0.2


def test_logarithms_are_exact_where_they_are_linear() -> None:
    surfaces = same_frontiers()
    clocks = surfaces.space.matrix[:, 0] / 1e9
    works = np.arange(1.0, 6.0)[:, None]
    exponential = dataclasses.replace(
        surfaces, time_s=works * np.exp(-0.3 * clocks), power_w=np.exp(3 + 0.5 * clocks) + 0 * works
    )
    out = surfaces.rows_of(["app4"])
    fitted = PublishedModel(logarithms=True).fit(exponential.take(~out), (2, 0))
    found = fitted.forecast(exponential.observed(4, (2, 0)))
    np.testing.assert_allclose(found.time.centre, exponential.time_s[4])
    np.testing.assert_allclose(found.power.centre, exponential.power_w[4])


def test_where_all_orders_agree_there_is_nothing_to_cluster_and_it_says_so() -> None:
    for model in (PublishedModel(), PublishedModel(5)):
        clusters = model.fit(same_frontiers(), (2,)).clusters
        assert clusters.nothing_to_cluster
        assert clusters.sizes == (5,)
        assert clusters.note.startswith("nothing to cluster: Kendall's tau is 1")


def test_fewer_kernels_than_clusters_make_as_many_clusters_as_kernels() -> None:
    surfaces = made_surfaces(2)
    few = surfaces.take(np.array([0, 2, 3]))
    clusters = PublishedModel(5).fit(few, SAMPLES).clusters
    assert clusters.sizes == (1, 1, 1)
    assert clusters.note == (
        "3 clusters of 1, 1, 1 kernels instead of the 5 asked for, as there are no more kernels"
    )


def test_one_kernel_alone_is_a_cluster() -> None:
    surfaces = made_surfaces(1).take(np.array([0]))
    fitted = PublishedModel().fit(surfaces, SAMPLES)
    assert fitted.clusters.sizes == (1,)
    assert fitted.clusters.least_correlation is None
    assert not fitted.clusters.nothing_to_cluster
    assert np.isfinite(fitted.forecast(surfaces.observed(0, SAMPLES)).time.centre).all()


def test_configurations_that_some_kernels_lack_are_predicted_for_all() -> None:
    surfaces = made_surfaces(6)
    for row, column in ((0, 3), (2, 3), (5, 7), (4, 1)):
        surfaces.time_s[row, column] = surfaces.power_w[row, column] = np.nan
    found = PublishedModel().fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isfinite(found.time.centre).all()
    assert np.isfinite(found.power.centre).all()


def test_no_sample_may_be_missing() -> None:
    surfaces = made_surfaces(6)
    with pytest.raises(InputError, match="expected a run at node: cpu_cap_w 60, gpu_cap_w 100, found none"):
        predictor().forecast(surfaces.observed(0, (11,)))


@pytest.mark.parametrize("count", [0, -3])
def test_no_clusters_are_refused(count: int) -> None:
    with pytest.raises(InputError, match=f"clusters: expected at least 1, found {count}"):
        PublishedModel(count)


@pytest.mark.parametrize("model", BOTH, ids=str)
def test_it_comes_back_from_its_state_byte_by_byte(model: PublishedModel) -> None:
    fitted = predictor(model)
    state = fitted.state()
    assert {array.dtype.kind for array in state.values()} <= set("fiuU")
    again = PublishedPredictor.from_state(state)
    assert {name: array.tobytes() for name, array in again.state().items()} == {
        name: array.tobytes() for name, array in state.items()
    }
    assert again.clusters == fitted.clusters
    observed = made_surfaces(6).observed(3, SAMPLES)
    one, other = fitted.forecast(observed), again.forecast(observed)
    assert one.time.centre.tobytes() == other.time.centre.tobytes()
    assert one.power.centre.tobytes() == other.power.centre.tobytes()


def test_parts_that_do_not_belong_together_are_refused() -> None:
    state = PublishedModel(2).fit(made_surfaces(6), SAMPLES).state()
    merged = {**state, "cluster_sizes": np.array([12])}
    with pytest.raises(InputError, match="model: cluster_sizes: expected those of 2 clusters, found 1"):
        PublishedPredictor.from_state(merged)


@pytest.mark.parametrize("name", sorted(PublishedModel(2).fit(made_surfaces(3), SAMPLES).state()))
def test_a_state_that_lacks_an_array_is_refused(name: str) -> None:
    state = PublishedModel(2).fit(made_surfaces(3), SAMPLES).state()
    del state[name]
    with pytest.raises(InputError, match=f"model: .*{name}"):
        PublishedPredictor.from_state(state)


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, second = (predictor().state() for _ in range(2))
    assert {name: array.tobytes() for name, array in first.items()} == {
        name: array.tobytes() for name, array in second.items()
    }
