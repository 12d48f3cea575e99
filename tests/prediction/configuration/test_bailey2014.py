"""Groups are those of average linkage, one within the other."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.tree import DecisionTreeClassifier

from crosscast.arrays import Integers, Reals
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.prediction.configuration.bailey2014 import (
    Amounts,
    ClassificationTree,
    ClusterModels,
    Clusters,
    PublishedModel,
    Training,
    choose_amounts,
    dissimilarities,
    fit_classification_tree,
    fit_cluster_models,
    groupings,
    rank_correlation,
    rank_correlations,
)
from crosscast.prediction.configuration.data import ConfigurationSpace, KernelAt, Surfaces, reference_samples
from crosscast.prediction.configuration.features import TrainingRuns, design_of
from support.examples import examples
from support.grids import linear_samples, linear_space, linear_surfaces
from support.refusals import refusal
from support.surfaces import made_surfaces


def random_matrix(seed: int, n: int) -> Reals:
    apart = np.random.default_rng(seed).random((n, n))
    apart = (apart + apart.T) / 2
    np.fill_diagonal(apart, 0)
    return apart


@given(st.integers(0, 1000), st.integers(2, 12))
@settings(deadline=None)  # it loads SciPy
def test_they_are_those_of_another_implementation(seed: int, n: int) -> None:
    apart = random_matrix(seed, n)
    for count, labels in enumerate(groupings(apart, 6), 1):
        other = AgglomerativeClustering(count, metric="precomputed", linkage="average").fit(apart)
        assert adjusted_rand_score(labels, other.labels_) == pytest.approx(1)


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(1, 9))
def test_there_is_one_for_each_number_up_to_the_most_or_the_kernels(seed: int, n: int, most: int) -> None:
    result = groupings(random_matrix(seed, n), most)
    assert [len(set(labels.tolist())) for labels in result] == list(range(1, min(n, most) + 1))
    for labels in result:
        first = [labels.tolist().index(group) for group in range(labels.max() + 1)]
        assert first == sorted(first)


def test_variables_are_the_settings_of_each_device_with_products_and_words() -> None:
    design = design_of(linear_space())
    assert design.names == ("cpu: clock_hz", "cpu: threads", "cpu: clock_hz * threads", "gpu: clock_hz")
    row = linear_space().number_of(Configuration("cpu", {"clock_hz": 2e9, "threads": 2}))
    np.testing.assert_allclose(design.matrix[row], [2 / 3, 2 / 4, 4 / 12, 0])
    np.testing.assert_allclose(design.matrix[-1], [0, 0, 0, 1])
    np.testing.assert_array_equal(design.with_constants[[0, -1], 4:], np.eye(2))
    space = ConfigurationSpace(
        tuple(Configuration("d", {"mode": mode, "n": n}) for mode in ("fast", "slow") for n in (1, 2))
    )
    assert design_of(space).names == (
        "d: n",
        "d: mode=fast",
        "d: mode=slow",
        "d: n * mode=fast",
        "d: n * mode=slow",
    )


def test_what_does_not_vary_is_a_constant_and_what_is_lacking_counts_as_none() -> None:
    space = ConfigurationSpace(
        (Configuration("a", {"n": 1}), Configuration("a", {"n": 2}), Configuration("b", {"n": 5}))
    )
    design = design_of(space)
    assert design.names == ("a: n", "b: 1")
    assert design.matrix.tolist() == [[0.5, 0], [1, 0], [0, 1]]
    space = ConfigurationSpace(
        (Configuration("a", {}), Configuration("a", {"n": 2}), Configuration("a", {"n": 4}))
    )
    assert design_of(space).matrix[:, 0].tolist() == [0, 0.5, 1]


frontiers = st.lists(st.integers(0, 12), unique=True, max_size=12)


def counted(first: list[int], second: list[int]) -> float:
    shared = [each for each in first if each in second]
    pairs = list(combinations(shared, 2))
    agree = sum(second.index(before) < second.index(after) for before, after in pairs)
    return (2 * agree - len(pairs)) / len(pairs)


@given(frontiers, frontiers)
def test_it_is_concordant_less_discordant_pairs_over_all(first: list[int], second: list[int]) -> None:
    correlation = rank_correlation(np.array(first, np.int64), np.array(second, np.int64))
    if len(set(first) & set(second)) < 2:
        assert np.isnan(correlation)
    else:
        assert correlation == pytest.approx(counted(first, second))


def test_correlations_of_all_pairs_become_dissimilarities() -> None:
    orders = [np.array(each) for each in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1], [9, 8])]
    correlations = rank_correlations(orders)
    np.testing.assert_array_equal(correlations, correlations.T)
    np.testing.assert_array_equal(np.diag(correlations), 1)
    assert correlations[0, 1] == -1
    assert correlations[0, 2] == pytest.approx(1 / 3)
    assert np.isnan(correlations[3, :3]).all()
    assert dissimilarities(np.array([1.0, 0.0, -1.0, np.nan])).tolist() == [0, 0.5, 1, 0.5]


NAMES = ("a", "b", "c")


def sample(seed: int, n: int = 40) -> tuple[Reals, Integers]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)).round(1)
    kinds = np.unique((rows[:, 0] > 0) + 2 * (rows[:, 1] > 0.3) + (rng.random(n) < 0.2), return_inverse=True)
    return rows, kinds[1].astype(np.int64)


def grown(seed: int = 0, depth: int = 3) -> ClassificationTree:
    return fit_classification_tree(NAMES, *sample(seed), depth=depth, seed=seed)


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_it_classifies_as_scikit_learn_does(seed: int, depth: int) -> None:
    rows, kinds = sample(seed)
    tree = grown(seed, depth)
    other = DecisionTreeClassifier(max_depth=depth, random_state=seed).fit(rows, kinds)
    queries = np.concatenate([rows, sample(seed + 1)[0]])
    assert [tree.cluster_of(row) for row in queries] == other.predict(queries).tolist()
    assert max(line.count("|   ") for line in tree.text().splitlines()) == other.get_depth()


def test_its_text_has_a_line_a_branch() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 5.0]])
    tree = fit_classification_tree(("watts", "misses"), rows, np.array([0, 0, 1]), depth=1, seed=3)
    feature = tree.names[tree.feature[0]]
    threshold = {"watts": "1.5", "misses": "3"}[str(feature)]
    assert tree.text().splitlines() == [
        f"{feature} <= {threshold}",
        "|   cluster 0 (2 training kernels)",
        f"{feature} > {threshold}",
        "|   cluster 1 (1 training kernel)",
    ]


@given(st.data())
@examples(60)
def test_a_state_with_any_one_node_changed_is_refused_or_still_a_tree(data: st.DataObject) -> None:
    tree = grown()
    state = tree.state()
    name = data.draw(st.sampled_from(["feature", "left", "right"]))
    array = state[name].copy()
    array[data.draw(st.integers(0, len(array) - 1))] = data.draw(st.integers(-3, 30))
    try:
        again = ClassificationTree.from_state({**state, name: array})
    except InputError:
        return
    assert all(0 <= again.cluster_of(row) < tree.counts.shape[1] for row in sample(1)[0])


SURFACES = linear_surfaces()
DESIGN = design_of(SURFACES.space)
KINDS = np.arange(6) % 2


def relative() -> Reals:
    samples = linear_samples(SURFACES.space)
    at = np.array(samples)[reference_samples(SURFACES.space, samples)]
    return np.asarray(SURFACES.time_s[:, at] / SURFACES.time_s)


def fitted(performance: Reals, power: Reals) -> ClusterModels:
    return fit_cluster_models(DESIGN, performance, power, KINDS)


def noisy() -> tuple[Reals, Reals]:
    wobble = np.exp(0.1 * np.random.default_rng(0).normal(size=(2, *SURFACES.time_s.shape)))
    return relative() * wobble[0], SURFACES.power_w * wobble[1]


def test_coefficients_solve_the_normal_equations_of_each_device() -> None:
    performance, power = noisy()
    result = fitted(performance, power)
    pairs = (DESIGN.with_constants, power, result.power), (DESIGN.matrix, performance, result.performance)
    for variables, values, coefficients in pairs:
        rows = np.tile(variables, (3, 1))
        for kind in (0, 1):
            wanted = np.linalg.solve(rows.T @ rows, rows.T @ values[kind == KINDS].ravel())
            np.testing.assert_allclose(coefficients[kind], wanted, rtol=1e-8)


def test_cells_that_did_not_run_do_not_count() -> None:
    performance, power = relative(), SURFACES.power_w.copy()
    for row, column in ((0, 3), (3, 11), (5, 0)):
        performance[row, column] = power[row, column] = np.nan
    result = fitted(performance, power)
    np.testing.assert_allclose(result.relative_performance(DESIGN)[KINDS], relative(), rtol=1e-10)


def test_a_cluster_that_never_ran_on_a_device_takes_the_model_of_all() -> None:
    performance, power = noisy()
    performance[np.ix_(KINDS == 0, DESIGN.on_device[:, 1] > 0)] = np.nan
    result = fitted(performance, power)
    gpu = DESIGN.on_device[:, 1] > 0
    np.testing.assert_allclose(
        result.relative_performance(DESIGN)[0, gpu], result.relative_performance(DESIGN)[1, gpu]
    )


def test_a_device_on_which_nothing_ran_is_unknown_and_the_others_are_not() -> None:
    performance, power = relative(), SURFACES.power_w.copy()
    gpu = DESIGN.on_device[:, 1] > 0
    performance[:, gpu] = power[:, gpu] = np.nan
    result = fitted(performance, power)
    assert np.isnan(result.relative_performance(DESIGN)[:, gpu]).all()
    assert np.isnan(result.power_w(DESIGN)[:, gpu]).all()
    np.testing.assert_allclose(result.power_w(DESIGN)[KINDS][:, ~gpu], SURFACES.power_w[:, ~gpu], rtol=1e-10)
    assert np.isnan(ClusterModels.from_state(result.state()).power_w(DESIGN)[:, gpu]).all()


def test_a_line_that_runs_below_what_was_seen_is_cut() -> None:
    performance, power = relative(), SURFACES.power_w.copy()
    performance[:, :9] = np.where(DESIGN.matrix[:9, 0] > 0.99, 1.0, 0.01)
    result = fitted(performance, power)
    uncut = DESIGN.matrix @ result.performance[0]
    assert uncut.min() < 0
    assert result.relative_performance(DESIGN)[:, :9].min() == 0.01


KERNELS = tuple(KernelAt(name, name, "big") for name in "abcd")
CORRELATIONS = np.array([[1, 0.5, -1, 1], [0.5, 1, np.nan, 1], [-1, np.nan, 1, 1], [1, 1, 1, 1.0]])


def found(clusters: int | None = None) -> Clusters:
    return Clusters.of(KERNELS, np.array([0, 1, 0, 2]), CORRELATIONS, clusters)


def test_members_and_the_range_of_correlations_are_told() -> None:
    clusters = found()
    assert clusters.members == ((KERNELS[0], KERNELS[2]), (KERNELS[1],), (KERNELS[3],))
    assert (clusters.least_correlation, clusters.most_correlation, clusters.undefined) == (-1, 1, 1)
    assert not clusters.nothing_to_cluster
    assert clusters.note == "3 clusters of 2, 1, 1 kernels, as many as predict best inside the training data"
    assert found(3).note == "3 clusters of 2, 1, 1 kernels, as many as asked for"


TRIED = (1, 2, 3, 4), (1, 2)


def test_amounts_are_chosen_of_those_asked_for_and_the_largest_without_a_test() -> None:
    surfaces = linear_surfaces(8)
    training = Training.of(TrainingRuns.of(surfaces, linear_samples(surfaces.space)))
    assert choose_amounts(training, (3,), (1, 2), seed=0).clusters == 3
    surfaces = made_surfaces(1)
    training = Training.of(TrainingRuns.of(surfaces, (11, 0)))
    assert choose_amounts(training, *TRIED, seed=0) == Amounts(4, 2)


SAMPLES = (11, 0)


def same_frontiers() -> Surfaces:
    """One device and one clock: more is faster and takes more, for every kernel."""
    space = ConfigurationSpace(tuple(Configuration("gpu", {"clock_hz": clock * 1e9}) for clock in (1, 2, 3)))
    works = np.arange(1.0, 6.0)[:, None]
    clocks = space.matrix[:, 0] / 1e9
    return Surfaces(
        "one clock",
        tuple(KernelAt(f"app{number}", f"app{number}", "only") for number in range(5)),
        space,
        works / clocks,
        50 + works * clocks,
    )


def test_a_new_kernel_is_told_exactly_where_its_cluster_is_linear() -> None:
    surfaces = linear_surfaces(8)
    samples = linear_samples(surfaces.space)
    known = surfaces.rows_of(["app6", "app7"])
    fitted = PublishedModel().fit(surfaces.take(~known), samples)
    assert len(fitted.fitted.clusters.members) == 2
    for row in np.flatnonzero(known).tolist():
        forecast = fitted.forecast(surfaces.observed(row, samples))
        np.testing.assert_allclose(forecast.time.centre, surfaces.time_s[row], rtol=1e-9)
        np.testing.assert_allclose(forecast.power.centre, surfaces.power_w[row], rtol=1e-9)


def test_where_all_orders_agree_there_is_nothing_to_cluster_and_it_says_so() -> None:
    for model in (PublishedModel(), PublishedModel(5)):
        clusters = model.fit(same_frontiers(), (2,)).fitted.clusters
        assert clusters.nothing_to_cluster
        assert clusters.sizes == (5,)
        assert clusters.note.startswith("nothing to cluster: Kendall's tau is 1")


def test_few_kernels_are_as_many_clusters() -> None:
    surfaces = made_surfaces(2)
    few = surfaces.take(np.array([0, 2, 3]))
    clusters = PublishedModel(5).fit(few, SAMPLES).fitted.clusters
    assert clusters.sizes == (1, 1, 1)
    assert clusters.note == (
        "3 clusters of 1, 1, 1 kernels instead of the 5 asked for, as there are no more kernels"
    )
    surfaces = made_surfaces(1).take(np.array([0]))
    fitted = PublishedModel().fit(surfaces, SAMPLES)
    assert fitted.fitted.clusters.sizes == (1,)
    assert fitted.fitted.clusters.least_correlation is None
    assert not fitted.fitted.clusters.nothing_to_cluster
    assert np.isfinite(fitted.forecast(surfaces.observed(0, SAMPLES)).time.centre).all()


@pytest.mark.parametrize("count", [0, -3])
def test_no_clusters_are_refused(count: int) -> None:
    assert f"clusters: expected at least 1, found {count}" in refusal(PublishedModel, count)
