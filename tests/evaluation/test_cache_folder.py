"""What results depend on besides their data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from crosscast.evaluation.cache_folder import cache_key, cached_arrays, fingerprint, sources_digest


def test_arrays_are_read_back_by_name(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    np.savez_compressed(path, one=np.arange(3), other=np.ones(2))
    found = cached_arrays(path, ["one"])
    assert [*found] == ["one"]
    assert found["one"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_what_is_cut_off_is_as_good_as_nothing(tmp_path: Path, share: float) -> None:
    path = tmp_path / "kept.npz"
    np.savez_compressed(path, one=np.random.default_rng(0).random(1000))
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    assert cached_arrays(path, ["one"]) == {}


def test_neither_is_another_archive_nor_none(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "kept.npz", other=np.ones(2))
    assert cached_arrays(tmp_path / "kept.npz", ["one"]) == {}
    assert cached_arrays(tmp_path / "missing.npz", ["one"]) == {}


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    np.savez_compressed(path, one=np.array([print], dtype=object))
    assert cached_arrays(path, ["one"]) == {}


def test_a_key_is_of_the_facts_and_not_of_their_order() -> None:
    assert cache_key({"a": 1, "b": [2]}) == cache_key({"b": [2], "a": 1}) != cache_key({"a": 1, "b": [3]})


@dataclass(frozen=True)
class Model:
    size: int


class Plain:
    pass


def test_parameters_tell_models_apart() -> None:
    assert fingerprint(Model(1)) == fingerprint(Model(1))
    assert fingerprint(Model(1)) != fingerprint(Model(2))
    assert fingerprint(Model(1)).endswith("Model Model(size=1)")


def test_what_is_no_dataclass_is_known_by_its_name() -> None:
    assert fingerprint(Plain()) == fingerprint(Plain()) == f"{__name__}.Plain"
    assert fingerprint(fingerprint) == "crosscast.evaluation.cache_folder.fingerprint"


def test_a_hash_is_of_the_files_that_are_named() -> None:
    assert sources_digest(("units.py",)) == sources_digest(("units.py",))
    assert sources_digest(("units.py",)) != sources_digest(("errors.py",))
    assert sources_digest(("decide",)) != sources_digest(("predict",))
