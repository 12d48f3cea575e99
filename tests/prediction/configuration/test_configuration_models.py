"""Models of configurations: the published clusters, the nearest kernels, and what is kept of them."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from crosscast.arrays import Integers, Reals
from crosscast.data.configuration import Configuration
from crosscast.errors import InputError
from crosscast.prediction.configuration import ConfigurationSpace, Surfaces, bailey2014, reference_samples
from crosscast.prediction.configuration.artefact import (
    NearestKernels,
    TrainedConfigurationModel,
    model_named,
)
from crosscast.prediction.configuration.choice import choice_of
from crosscast.prediction.configuration.features import TrainingRuns, design_of
from crosscast.prediction.named_models import load_model
from support.choices import other_machine
from support.grids import linear_samples, linear_surfaces
from support.models import chooser_card, kept_chooser
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
    for count, labels in enumerate(bailey2014.groupings(apart, 6), 1):
        other = AgglomerativeClustering(count, metric="precomputed", linkage="average").fit(apart)
        assert adjusted_rand_score(labels, other.labels_) == pytest.approx(1)


def designed(
    *settings: Mapping[str, float | str], devices: str = "aaaa"
) -> tuple[tuple[str, ...], list[list[float]]]:
    configurations = zip(devices, settings, strict=False)
    design = design_of(ConfigurationSpace(tuple(Configuration(*each) for each in configurations)))
    return design.names, design.matrix.tolist()


def test_words_are_variables_what_does_not_vary_is_a_constant_and_what_is_lacking_counts_as_none() -> None:
    names, _ = designed(*({"mode": mode, "n": n} for mode in ("fast", "slow") for n in (1, 2)))
    assert names == ("a: n", "a: mode=fast", "a: mode=slow", "a: n * mode=fast", "a: n * mode=slow")
    constant = designed({"n": 1}, {"n": 2}, {"n": 5}, devices="aab")
    assert constant == (("a: n", "b: 1"), [[0.5, 0], [1, 0], [0, 1]])
    assert [row[0] for row in designed({}, {"n": 2}, {"n": 4})[1]] == [0, 0.5, 1]


frontiers = st.lists(st.integers(0, 12), unique=True, max_size=12)


def counted(first: list[int], second: list[int]) -> float:
    shared = [each for each in first if each in second]
    pairs = list(combinations(shared, 2))
    agree = sum(second.index(before) < second.index(after) for before, after in pairs)
    return (2 * agree - len(pairs)) / len(pairs)


@given(frontiers, frontiers)
def test_it_is_concordant_less_discordant_pairs_over_all(first: list[int], second: list[int]) -> None:
    correlation = bailey2014.rank_correlation(np.array(first, np.int64), np.array(second, np.int64))
    if len(set(first) & set(second)) < 2:
        assert np.isnan(correlation)
    else:
        assert correlation == pytest.approx(counted(first, second))


def test_where_no_correlation_is_defined_kernels_are_half_dissimilar() -> None:
    assert bailey2014.dissimilarities(np.array([1.0, 0.0, -1.0, np.nan])).tolist() == [0, 0.5, 1, 0.5]


NAMES = ("a", "b", "c")


def sample(seed: int, n: int = 40) -> tuple[Reals, Integers]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)).round(1)
    kinds = np.unique((rows[:, 0] > 0) + 2 * (rows[:, 1] > 0.3) + (rng.random(n) < 0.2), return_inverse=True)
    return rows, kinds[1].astype(np.int64)


def grown(seed: int = 0, depth: int = 3) -> bailey2014.ClassificationTree:
    return bailey2014.fit_classification_tree(NAMES, *sample(seed), depth=depth, seed=seed)


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_it_classifies_as_scikit_learn_does(seed: int, depth: int) -> None:
    rows, kinds = sample(seed)
    tree = grown(seed, depth)
    other = DecisionTreeClassifier(max_depth=depth, random_state=seed).fit(rows, kinds)
    queries = np.concatenate([rows, sample(seed + 1)[0]])
    assert [tree.cluster_of(row) for row in queries] == other.predict(queries).tolist()
    assert max(line.count("|   ") for line in tree.text().splitlines()) == other.get_depth()


SURFACES = linear_surfaces()
DESIGN = design_of(SURFACES.space)
KINDS, GPU = np.arange(6) % 2, DESIGN.on_device[:, 1] > 0


def relative() -> Reals:
    samples = linear_samples(SURFACES.space)
    at = np.array(samples)[reference_samples(SURFACES.space, samples)]
    return np.asarray(SURFACES.time_s[:, at] / SURFACES.time_s)


def fitted(performance: Reals, power: Reals) -> bailey2014.ClusterModels:
    return bailey2014.fit_cluster_models(DESIGN, performance, power, KINDS)


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


def test_cells_that_did_not_run_do_not_count_nor_does_a_device_on_which_nothing_ran() -> None:
    performance, power = relative(), SURFACES.power_w.copy()
    for row, column in ((0, 3), (3, 11), (5, 0)):
        performance[row, column] = power[row, column] = np.nan
    result = fitted(performance, power)
    np.testing.assert_allclose(result.relative_performance(DESIGN)[KINDS], relative(), rtol=1e-10)
    performance[:, GPU] = power[:, GPU] = np.nan
    result = fitted(performance, power)
    assert np.isnan(result.relative_performance(DESIGN)[:, GPU]).all()
    np.testing.assert_allclose(result.power_w(DESIGN)[KINDS][:, ~GPU], SURFACES.power_w[:, ~GPU], rtol=1e-10)
    assert np.isnan(bailey2014.ClusterModels.from_state(result.state()).power_w(DESIGN)[:, GPU]).all()


def test_a_cluster_that_never_ran_on_a_device_takes_the_model_of_all_and_lines_are_cut() -> None:
    performance, power = noisy()
    performance[np.ix_(KINDS == 0, GPU)] = np.nan
    result = fitted(performance, power).relative_performance(DESIGN)
    np.testing.assert_allclose(result[0, GPU], result[1, GPU])
    performance = relative()
    performance[:, :9] = np.where(DESIGN.matrix[:9, 0] > 0.99, 1.0, 0.01)
    cut = fitted(performance, power)
    assert (DESIGN.matrix @ cut.performance[0]).min() < 0
    assert cut.relative_performance(DESIGN)[:, :9].min() == 0.01


TRIED = (1, 2, 3, 4), (1, 2)


def test_amounts_are_chosen_of_those_asked_for_and_the_largest_without_a_test() -> None:
    surfaces = linear_surfaces(8)
    training = bailey2014.Training.of(TrainingRuns.of(surfaces, linear_samples(surfaces.space)))
    assert bailey2014.choose_amounts(training, (3,), (1, 2), seed=0).clusters == 3
    surfaces = made_surfaces(1)
    training = bailey2014.Training.of(TrainingRuns.of(surfaces, (11, 0)))
    assert bailey2014.choose_amounts(training, *TRIED, seed=0) == bailey2014.Amounts(4, 2)


SAMPLES = (11, 0)


def test_a_new_kernel_is_told_exactly_where_its_cluster_is_linear() -> None:
    surfaces = linear_surfaces(8)
    samples = linear_samples(surfaces.space)
    known = surfaces.rows_of(["app6", "app7"])
    fitted = bailey2014.PublishedModel().fit(surfaces.take(~known), samples)
    assert len(fitted.fitted.clusters.members) == 2
    for row in np.flatnonzero(known).tolist():
        forecast = fitted.forecast(surfaces.observed(row, samples))
        np.testing.assert_allclose(forecast.time.centre, surfaces.time_s[row], rtol=1e-9)
        np.testing.assert_allclose(forecast.power.centre, surfaces.power_w[row], rtol=1e-9)


def test_where_all_orders_agree_there_is_nothing_to_cluster_and_few_kernels_are_as_many_clusters() -> None:
    for model in (bailey2014.PublishedModel(), bailey2014.PublishedModel(5)):
        clusters = model.fit(other_machine(), (6,)).fitted.clusters
        assert clusters.nothing_to_cluster
        assert (clusters.sizes, clusters.note[:25]) == ((12,), "nothing to cluster: Kenda")
    few = (
        bailey2014.PublishedModel(5).fit(made_surfaces(2).take(np.array([0, 2, 3])), SAMPLES).fitted.clusters
    )
    assert few.sizes == (1, 1, 1)
    assert few.note.endswith("instead of the 5 asked for, as there are no more kernels")
    surfaces = made_surfaces(1).take(np.array([0]))
    fitted = bailey2014.PublishedModel().fit(surfaces, SAMPLES)
    clusters = fitted.fitted.clusters
    assert (clusters.sizes, clusters.least_correlation, clusters.nothing_to_cluster) == ((1,), None, False)
    assert np.isfinite(fitted.forecast(surfaces.observed(0, SAMPLES)).time.centre).all()
    assert "clusters: expected at least 1, found 0" in refusal(bailey2014.PublishedModel, 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept_chooser(tmp_path / "capmodel")


def test_a_model_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    card = chooser_card()
    nearest = NearestKernels().fit(made_surfaces(), card.numbers)
    with pytest.raises(InputError, match=r"expected one that can be kept \(.*\), found nearest"):
        card = msgspec.structs.replace(card, model="nearest")
        TrainedConfigurationModel(card, nearest).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    assert "model: expected one of model, published" in refusal(model_named, "magic")


def measured(number: int, row: int = 2) -> dict[str, float]:
    surfaces = made_surfaces()
    given = {"time_s": surfaces.time_s[row, number], "power_w": surfaces.power_w[row, number]}
    given |= {f"{name}_w": values[row, number] for name, values in surfaces.domains.items()}
    return given | {name: values[row, number] for name, values in surfaces.counters.items()}


def test_it_chooses_by_runs_that_are_named_by_their_configurations(folder: Path) -> None:
    model = load_model(folder)
    space = model.predictor.space
    runs = {space.configurations[number]: measured(number) for number in (0, 11)}
    forecast = model.predictor.forecast(made_surfaces().observed(2, (0, 11)))
    np.testing.assert_array_equal(model.predict(runs).time.centre, forecast.time.centre)
    choice = model.choose(runs, 250.0)
    assert choice == choice_of(forecast, space, 250.0)
    assert choice.recommended is not None
    assert len(choice.columns()["time_s"]) == len(choice.frontier)
    assert str(choice.recommended.configuration) in choice._repr_html_()
    assert model.choose(runs, 250.0, "energy").objective == "energy"
    assert model.choose(runs, 1.0).recommended is None


def test_runs_that_are_not_there_are_named(folder: Path) -> None:
    model = load_model(folder)
    highest = model.samples[0]
    with pytest.raises(InputError, match="expected a run at node: cpu cap 60 W, gpu cap 100 W, found none"):
        model.predict({highest: measured(11)})
    with pytest.raises(InputError, match=r"runs: node: .*: power_w: expected a number, found time_s"):
        model.predict({highest: {"time_s": 1.0}})
    with pytest.raises(InputError, match=r"runs: node: .*: time_s: expected a number, found 'long'"):
        model.predict({highest: {**measured(11), "time_s": "long"}})


def changes(surfaces: Surfaces) -> tuple[Reals, Reals, Reals]:
    """Points, and targets of baselines: logarithms over those at the sample of the same device."""
    known = TrainingRuns.of(surfaces, SAMPLES)
    values = (known.surfaces.time_s, known.surfaces.power_w)
    time, power = (np.log(each / each[:, known.scaled_from]) for each in values)
    return known.features.standardized(known.values), time, power


def test_it_predicts_what_scikit_learn_does() -> None:
    surfaces = made_surfaces(7, noise=0.05)
    out = surfaces.rows_of(["app2"])
    points, times, powers = changes(surfaces.take(~out))
    other = KNeighborsRegressor(3, weights="distance")
    fitted = NearestKernels().fit(surfaces.take(~out), SAMPLES)
    for row in np.flatnonzero(out).tolist():
        observed = surfaces.observed(row, SAMPLES)
        point = fitted.features.standardized(fitted.features.values(observed, [0, 1]))[None]
        forecast = fitted.forecast(observed)
        rest = ~forecast.measured
        time = observed.time_s[0] * np.exp(other.fit(points, times).predict(point)[0])
        power = observed.power_w[0] * np.exp(other.fit(points, powers).predict(point)[0])
        np.testing.assert_allclose(forecast.time.centre[rest], time[rest])
        np.testing.assert_allclose(forecast.power.centre[rest], power[rest])


def test_what_the_nearest_lack_comes_from_all_others_and_from_none_is_unknown() -> None:
    surfaces = made_surfaces(3).take(np.arange(4))
    alone = NearestKernels().fit(surfaces.take(np.array([3])), SAMPLES)
    expected = alone.forecast(surfaces.observed(0, SAMPLES)).time.centre
    # The three others are nearer, the kernel itself among them.
    surfaces.time_s[:3, 5] = surfaces.power_w[:3, 5] = np.nan
    surfaces.time_s[:, 6] = surfaces.power_w[:, 6] = np.nan
    forecast = NearestKernels().fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isnan([forecast.time.centre[6], forecast.power.centre[6]]).all()
    assert np.isfinite(np.delete(forecast.time.centre, 6)).all()
    assert forecast.time.centre[5] == pytest.approx(expected[5])
    # One application is enough.
    surfaces = made_surfaces(1)
    forecast = NearestKernels().fit(surfaces, SAMPLES).forecast(surfaces.observed(0, SAMPLES))
    assert np.isfinite([forecast.time.centre, forecast.power.centre]).all()
