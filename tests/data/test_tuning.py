"""Caches of Kernel Tuner and T4 results: what is read, what is left out, what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.dataset import validate
from crosscast.data.sources import import_source
from crosscast.data.table import notes_of
from crosscast.errors import InputError
from support.refusals import refusals

CACHE = {
    "device_name": "NVIDIA GeForce RTX 3090",
    "kernel_name": "saxpy",
    "cache": {
        "64,1": {"block_size_x": 64, "tile": 1, "time": 2.0, "times": [1.0, 2.0, 9.0], "compile_time": 5.0},
        "128,1": {"block_size_x": 128, "tile": 1, "time": "CompilationFailedConfig"},
        "256,1": {"block_size_x": 256, "tile": 1, "time": 1e20},
    },
}


def t4(*results: tuple[dict[str, Any], Any, str], **head: Any) -> dict[str, Any]:
    rows = [
        {
            "configuration": parameters,
            "invalidity": "correct" if value is not None else "compile",
            "measurements": [{"name": "time", "value": value, "unit": unit}] if value is not None else [],
        }
        for parameters, value, unit in results
    ]
    return {"results": rows, "metadata": {"device_name": "RTX 3090", "kernel_name": "saxpy"}, **head}


def written(folder: Path, content: Any) -> Path:
    path = folder / "saxpy_3090.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def times(path: Path, **options: Any) -> dict[str, float]:
    dataset = import_source("tuning", path, **options)
    validate(dataset)
    return {row["size"]: row["time_s"][0] for row in dataset.records.to_pylist()}


def test_of_a_cache_the_median_in_seconds_is_kept_and_failures_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, CACHE)
    assert times(path) == {"block_size_x=64;tile=1": 0.002}
    dataset = import_source("tuning", path)
    assert notes_of(dataset.records)["left out"] == "2 of 3 configurations failed."
    assert dataset.devices.to_pylist()[0]["device"] == "rtx3090"


def test_a_cache_that_was_cut_off_after_an_entry_is_read(tmp_path: Path) -> None:
    assert times(written(tmp_path, json.dumps(CACHE)[:-2] + ",")) == {"block_size_x=64;tile=1": 0.002}


def test_results_in_milliseconds_and_seconds_may_be_mixed(tmp_path: Path) -> None:
    content = t4(({"x": 1}, 2.0, "ms"), ({"x": 2}, 0.002, "seconds"), ({"x": 3}, None, ""))
    assert times(written(tmp_path, content)) == {"x=1": 0.002, "x=2": 0.002}


@refusals("content reason")
def test_what_cannot_be_read_is_one_sentence(content: Any, reason: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=reason) as caught:
        import_source("tuning", path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the results of tuning \(No such file"):
        import_source("tuning", tmp_path / "nowhere.json")
