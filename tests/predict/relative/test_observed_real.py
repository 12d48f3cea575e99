"""Relative vectors of the published data: how many, and what the mean alone predicts.

It lies beside the checkout, in ``shared/data``, or where ``CROSSCAST_DATA`` points.
"""

from collections import Counter

import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.predict.relative.data import Vectors, relative_to_slowest
from crosscast.predict.relative.observed import devices_left_out, vectors_of
from crosscast.tables.dataset import Dataset, validate
from crosscast.tables.importers.aiwc2018.dataset import import_aiwc2018
from crosscast.tables.importers.rajaperf import import_rajaperf
from crosscast.tables.importers.rodinia9 import import_rodinia9
from shared_data import shared_data


@pytest.fixture(scope="module")
def raja() -> Dataset:
    return import_rajaperf(shared_data("cross_architecture"), cores=36)


@pytest.fixture(scope="module")
def rodinia() -> Dataset:
    return import_rodinia9(shared_data("cross_architecture"))


@pytest.fixture(scope="module")
def launches(rodinia: Dataset) -> Vectors:
    return vectors_of(rodinia)


def names(values: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    return np.array(values)


def test_rajaperf_has_fifty_runs_of_sixty_kernels_on_both_clusters(raja: Dataset) -> None:
    validate(raja)
    vectors = vectors_of(raja)
    seen = vectors.observations
    assert vectors.devices == ("lassen", "quartz")
    assert set(Counter(zip(seen.application, seen.kernel, strict=True)).values()) == {50}
    assert (len(set(seen.kernel)), len(vectors)) == (60, 3000)
    assert Counter(seen.application).keys() == {
        *("Algorithm", "Apps", "Basic", "Lcals", "Polybench", "Stream")
    }
    assert (set(seen.size), set(seen.source)) == ({"8388608"}, {"quartz"})
    assert len(seen.names) == 20
    assert not np.isnan(seen.counters).any()
    assert seen.configuration == ()


def test_the_mean_ratio_of_other_groups_gives_the_known_figures(raja: Dataset) -> None:
    vectors = vectors_of(raja)
    log_ratio = np.log(vectors.times_s[:, 1] / vectors.times_s[:, 0])
    group = names(vectors.observations.application)
    predicted = np.array([log_ratio[group != each].mean() for each in group])
    vector = relative_to_slowest(np.stack([np.ones_like(predicted), np.exp(predicted)], axis=1))
    assert np.abs(vector - vectors.vector).mean() == pytest.approx(0.1354, abs=5e-5)
    assert np.mean(np.sign(predicted) == np.sign(log_ratio)) == pytest.approx(0.870, abs=5e-4)
    assert np.exp(np.abs(predicted - log_ratio).mean()) == pytest.approx(2.095, abs=5e-4)


def test_times_of_the_raja_suite_are_of_one_repetition(raja: Dataset) -> None:
    vectors = vectors_of(raja)
    moved = vectors.observations.counters[:, vectors.observations.names.index("Bytes/Rep")]
    memset = names(vectors.observations.kernel) == "Algorithm_MEMSET"
    # The V100's memory does 900 GB/s.
    np.testing.assert_allclose((moved / vectors.times_s[:, 0])[memset] / 1e9, 854, rtol=0.01)


def test_seven_gpus_have_all_launches_of_rodinia(rodinia: Dataset, launches: Vectors) -> None:
    validate(rodinia)
    seen = launches.observations
    assert launches.times_s.shape == (7 * 1094, 7)
    assert set(Counter(seen.source).values()) == {1094}
    assert devices_left_out(rodinia, launches) == ("gtx-970", "titanx")
    assert {kernel: count // 7 for kernel, count in Counter(seen.kernel).items()} == {
        "bpnn_adjust_weights_cuda": 57,
        "bpnn_layerforward_CUDA": 57,
        "calculate_temp": 20,
        "kernel": 85,
        "lud_diagonal": 32,
        "lud_perimeter": 843,
    }
    assert len(seen.names) == 72
    assert not np.isnan(seen.counters).any()


def test_nine_gpus_have_the_launches_of_five_kernels(rodinia: Dataset) -> None:
    devices = sorted(rodinia.devices.column("device").to_pylist())
    vectors = vectors_of(rodinia, devices=devices)
    assert vectors.times_s.shape == (9 * 251, 9)
    assert "lud_perimeter" not in vectors.observations.kernel


def test_the_mean_vector_of_other_kernels_is_as_far_off_as_known(launches: Vectors) -> None:
    # Kernels weigh the same; the mean is that of logarithms.
    assert np.mean(_left_out(launches)) == pytest.approx(0.149, abs=5e-4)


def _left_out(vectors: Vectors) -> list[float]:
    kernel, vector = names(vectors.observations.kernel), vectors.vector
    kernels = sorted(set(kernel.tolist()))
    means: dict[str, Reals] = {each: np.log(vector[kernel == each]).mean(axis=0) for each in kernels}
    return [
        float(np.abs(vector[kernel == each] - np.exp(others)).mean())
        for each in kernels
        for others in [np.mean([means[other] for other in kernels if other != each], axis=0)]
    ]


def test_profiles_of_2018_are_observations_of_fifteen_devices() -> None:
    vectors = vectors_of(import_aiwc2018(shared_data("aiwc2018")))
    seen = vectors.observations
    assert vectors.times_s.shape == (104, 15)
    assert len(set(seen.application)) == 11
    assert (set(seen.source), seen.configuration) == ({"none"}, ("invocations",))
    assert vectors.vector.max(axis=1).tolist() == [1.0] * 104
