"""Profiles are observations of no device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import crosscast
from crosscast.device import Device
from crosscast.evaluation.keep import digest
from crosscast.prediction.relative.data import (
    NO_SOURCE,
    Observations,
    Vectors,
    kernel_weights,
    observations_of_profiles,
)
from crosscast.prediction.relative.observed import vectors_of
from crosscast.prediction.time.data import ProfileBatch
from crosscast.profile import METRICS
from support.runs_seen import dataset_of_runs, run
from support.vectors import DEVICES, made_vectors


def observations() -> Observations:
    none = np.empty((4, 0))
    return Observations(
        application=("a", "a", "a", "b"),
        kernel=("k", "k", "l", "k"),
        size=("1", "2", "1", "1"),
        scale=("one", "one", "two", "one"),
        source=("x", "y", "x", "x"),
        names=(),
        counters=none,
        configuration=(),
        settings=none,
        time_s=np.ones(4),
    )


def test_kernels_of_one_name_in_two_applications_are_two() -> None:
    assert observations().counts == {"applications": 2, "kernels": 3, "kernels_at_a_size": 4}
    assert observations().rows(np.array([0, 1])).counts == {
        "applications": 1,
        "kernels": 1,
        "kernels_at_a_size": 2,
    }
    seen = made_vectors(applications=2, kernels=1, sizes=1).observations
    assert kernel_weights(seen).sum() == 2
    assert observations().works == [
        ("a", "k", "1", "one"),
        ("a", "k", "2", "one"),
        ("a", "l", "1", "two"),
        ("b", "k", "1", "one"),
    ]


def test_kernels_weigh_the_same_however_often_they_were_run() -> None:
    seen = made_vectors(applications=3, kernels=2).observations
    seen = seen.rows(np.array([0, 1, 2, 3, 4, 4, 4, 5, 9]))
    weights = kernel_weights(seen)
    kernels = np.array([f"{one} {two}" for one, two in zip(seen.application, seen.kernel, strict=True)])
    assert {weights[kernels == kernel].sum().round(12) for kernel in kernels} == {1.0}


def test_metrics_that_some_have_are_counters_by_their_names() -> None:
    metrics = np.full((2, len(METRICS)), np.nan)
    metrics[:, 0], metrics[1, 2] = (3, 4), 7
    seen = observations_of_profiles(
        ProfileBatch(("a", "b"), ("k", "l"), ("s", "t"), metrics, np.array([1, 9]))
    )
    assert seen.names == (METRICS[0].name, METRICS[2].name)
    np.testing.assert_array_equal(seen.counters, [[3, np.nan], [4, 7]])
    assert (seen.application, seen.kernel) == (("a", "b"), ("k", "l"))
    assert seen.size == seen.scale == ("s", "t")
    assert seen.source == (NO_SOURCE, NO_SOURCE)
    assert seen.settings.tolist() == [[1], [9]]


def keys(vectors: Vectors) -> tuple[str, ...]:
    return tuple(device.key for device in vectors.described)


def test_devices_of_counted_runs_are_described() -> None:
    vectors = vectors_of(
        dataset_of_runs([run("cpu", 8.0, counters={"loads": 5.0}), run("gpu", 2.0)]), devices=["gpu", "cpu"]
    )
    assert keys(vectors) == vectors.devices == ("gpu", "cpu")
    assert keys(vectors.rows(vectors.times_s[:, 0] > 0)) == ("gpu", "cpu")


def test_devices_of_profiles_are_described_with_what_the_dataset_says_of_them() -> None:
    vectors = vectors_of(crosscast.bundled_dataset())
    assert keys(vectors) == vectors.devices
    assert all(device.type in ("cpu", "gpu", "accelerator") for device in vectors.described)
    assert len(digest(vectors)) == 64


def test_another_description_is_another_hash() -> None:
    plain = made_vectors(applications=2)
    known = tuple(Device(key, type="gpu", numbers={"cores": 4.0}) for key in DEVICES)
    other = (Device(DEVICES[0], type="gpu", numbers={"cores": 5.0}), *known[1:])
    hashes = [digest(replace(plain, described=each)) for each in ((), known, other, known)]
    assert len(set(hashes)) == 3
    assert hashes[1] == hashes[3]
