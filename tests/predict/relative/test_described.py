"""What is known of devices goes with the vectors, in the order of the devices, and into their hash."""

from dataclasses import replace

import pytest
from made_runs_seen import dataset_of_runs, run

import crosscast
from crosscast.device import Device
from crosscast.evaluate.relative import vectors_digest
from crosscast.predict.relative.data import Vectors
from crosscast.predict.relative.observed import vectors_of
from made_vectors import DEVICES, made_vectors


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
    assert len(vectors_digest(vectors)) == 64


@pytest.mark.parametrize("described", [True, False])
def test_some_of_the_devices_keep_their_descriptions(described: bool) -> None:
    known = tuple(Device(key) for key in DEVICES) if described else ()
    vectors = replace(made_vectors(applications=2), described=known)
    assert keys(vectors.on(["gpu", "cpu"])) == (("gpu", "cpu") if described else ())


def test_another_description_is_another_hash() -> None:
    plain = made_vectors(applications=2)
    known = tuple(Device(key, type="gpu", numbers={"cores": 4.0}) for key in DEVICES)
    other = (Device(DEVICES[0], type="gpu", numbers={"cores": 5.0}), *known[1:])
    hashes = [vectors_digest(replace(plain, described=each)) for each in ((), known, other, known)]
    assert len(set(hashes)) == 3
    assert hashes[1] == hashes[3]
