"""Imports do not destroy other datasets."""

from pathlib import Path

import pytest
from source_rows import runtime, write_source

from crosscast.data.dataset import Dataset, read_dataset
from crosscast.data.sources.aiwc import import_aiwc2018
from crosscast.data.sources.own import import_own
from crosscast.data.sources.source import store
from crosscast.errors import InputError


def make(tmp_path: Path, time_us: float) -> Dataset:
    return import_aiwc2018(write_source(tmp_path / "s", runtimes=[runtime("gtx1080", 1, time_us)]))


def test_another_dataset_stays(tmp_path: Path) -> None:
    store(make(tmp_path, 1.0), tmp_path / "out")
    with pytest.raises(InputError, match="expected no other dataset"):
        store(make(tmp_path, 2.0), tmp_path / "out")
    assert read_dataset(tmp_path / "out").records.column("time_s").to_pylist() == [[1e-6]]


def test_it_goes_when_told_to(tmp_path: Path) -> None:
    store(make(tmp_path, 1.0), tmp_path / "out")
    store(make(tmp_path, 2.0), tmp_path / "out", replace=True)
    assert read_dataset(tmp_path / "out").records.column("time_s").to_pylist() == [[2e-6]]


def test_folders_may_be_texts(tmp_path: Path) -> None:
    store(import_aiwc2018(str(write_source(tmp_path / "s"))), str(tmp_path / "out"))
    store(import_own(str(tmp_path / "out")), str(tmp_path / "again"))
    assert read_dataset(tmp_path / "again").records.num_rows > 0


def test_a_damaged_dataset_stays(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "records.parquet").write_bytes(b"precious")
    with pytest.raises(InputError, match="expected no other dataset"):
        store(make(tmp_path, 1.0), tmp_path / "out")


def test_an_unfinished_build_stays(tmp_path: Path) -> None:
    part = tmp_path / "out" / "parts" / "records" / "lud.parquet"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"in the making")
    with pytest.raises(InputError, match="expected no other dataset"):
        store(make(tmp_path, 1.0), tmp_path / "out")
    assert part.exists()


def test_an_import_that_was_cut_off_may_be_done_again(tmp_path: Path) -> None:
    store(make(tmp_path, 1.0), tmp_path / "out")
    (tmp_path / "out" / ".unfinished").touch()
    with pytest.raises(InputError, match="import again"):
        read_dataset(tmp_path / "out")
    store(make(tmp_path, 2.0), tmp_path / "out")
    assert read_dataset(tmp_path / "out").records.column("time_s").to_pylist() == [[2e-6]]
