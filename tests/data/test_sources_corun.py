"""Sources of co-running: Gavel's and Lucid's pairs."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.corun import co_runs
from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources import import_source
from support.refusals import refusal
from support.shared import shared_data
from support.tables import BERT, JOBS, LARGE, RESNET, SMALL, Row, alone, packed, pair, write_rows


def folder(path: Path, jobs: Sequence[Row], pairs: Sequence[Row]) -> Path:
    write_rows(path / "gavel_standalone.csv", jobs)
    write_rows(path / "gavel_pairs.csv", pairs)
    return path


def made(path: Path, jobs: Sequence[Row] = JOBS, pairs: Sequence[Row] | None = None) -> Dataset:
    dataset = import_source("gavel_pairs", folder(path, jobs, [pair()] if pairs is None else pairs))
    validate(dataset)
    return dataset


refused = partial(refusal, import_source, "gavel_pairs")


def mixes(dataset: Dataset, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in dataset.mixes.to_pylist()]


def test_a_job_alone_has_its_time_a_step_and_its_speeds_on_all_gpus(tmp_path: Path) -> None:
    rows = {(row["size"], row["device"]): row for row in made(tmp_path).isolated_runs.to_pylist()}
    row = rows["batch size 5", "v100"]
    assert (row["application"], row["time_s"], row["configuration"], row["failure"]) == (
        "LM",
        1 / 8,
        "{}",
        None,
    )
    assert json.loads(row["features"]) == {"batch_size": 5, "k80_steps_per_s": 2, "v100_steps_per_s": 8}
    assert json.loads(rows["batch size 80", "v100"]["features"]) == {"batch_size": 80, "v100_steps_per_s": 4}


def test_orders_with_other_numbers_are_repeats_of_a_mix(tmp_path: Path) -> None:
    dataset = made(tmp_path, pairs=[pair(), pair((LARGE, SMALL), (2.0, 5.0))])
    assert len(set(mixes(dataset, "mix"))) == 1
    assert mixes(dataset, "repeat", "position", "size", "slowdown") == [
        (0, 0, "batch size 5", 2.0),
        (0, 1, "batch size 80", 4.0),
        (1, 0, "batch size 5", 1.6),
        (1, 1, "batch size 80", 2.0),
    ]


def test_numbers_of_gpus_are_settings_and_pairs_not_measured_there_are_left_out(tmp_path: Path) -> None:
    more = [alone(job, steps=12.0, gpus=2) for job in (SMALL, LARGE)]
    dataset = made(tmp_path, [*JOBS, *more], [pair(), pair(steps=(0.0, 0.0), gpus=2)])
    assert set(mixes(dataset, "configuration")) == {("{}",)}
    settings = [(row["configuration"], row["time_s"]) for row in dataset.isolated_runs.to_pylist()]
    assert settings.count(('{"gpus": 2}', 1 / 12)) == 2
    dataset = made(tmp_path, [*JOBS, *more], [pair(steps=(6.0, 4.0), gpus=2)])
    assert mixes(dataset, "configuration", "slowdown") == [('{"gpus": 2}', 2.0), ('{"gpus": 2}', 3.0)]


def test_what_spread_gpus_have_once_more_is_left_out(tmp_path: Path) -> None:
    spread = "v100_unconsolidated"
    copies = [alone(gpu=spread, steps=8.0), alone(LARGE, spread, 4.0), alone(gpu=spread, steps=3.0, gpus=2)]
    # Copies first: the order of the rows tells nothing.
    dataset = made(tmp_path, [*copies, *JOBS], [pair(gpu=spread), pair()])
    assert set(mixes(dataset, "device")) == {("v100",)}
    found = [(row["device"], row["configuration"]) for row in dataset.isolated_runs.to_pylist()]
    assert [place for place in found if place[0] == spread] == [(spread, '{"gpus": 2}')]
    dataset = made(tmp_path, [*copies, *JOBS], [pair(gpu=spread, steps=(2.0, 2.0)), pair()])
    assert set(mixes(dataset, "device")) == {("v100",), (spread,)}


def test_rows_of_the_file_that_contradicts_itself_are_passed_over(tmp_path: Path) -> None:
    other: Row = {"file": "physical_cluster_throughputs"}
    dataset = made(
        tmp_path, [*JOBS, {**alone(steps=9.0), **other}], [pair(steps=(1.0, 1.0), **other), pair()]
    )
    assert mixes(dataset, "slowdown") == [(2.0,), (4.0,)]
    assert refused(folder(tmp_path, JOBS, [pair(**other)])).endswith(
        "gavel_pairs.csv: expected rows whose file is simulation_throughputs, found none"
    )


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([pair(gpus2=2)], "gavel_pairs.csv: column 'gpus2', row 1: expected 1 as gpus1, found 2"),
        ([pair(), pair(("A3C", SMALL))], "gavel_pairs.csv: row 2: expected jobs with a speed in"),
    ],
)
def test_the_row_that_is_wrong_is_named(tmp_path: Path, pairs: list[Row], message: str) -> None:
    assert refused(folder(tmp_path, JOBS, pairs)).startswith(f"{tmp_path}/{message}")


def test_the_published_files_are_read() -> None:
    found = co_runs(import_source("gavel_pairs", shared_data("gpu_corun")))
    assert Counter((mix.device, mix.fits) for mix in found.mixes) == {
        ("p100", True): 340,
        ("p100", False): 11,
        ("v100", True): 330,
        ("v100", False): 21,
    }
    assert found.applications == (
        *("A3C", "CycleGAN", "LM", "Recommendation", "ResNet-18", "ResNet-50", "Transformer"),
    )
    assert all(member.isolated_run.time_s for mix in found.mixes for member in mix.members)
    assert min(m.slowdown for mix in found.mixes for m in mix.members if m.slowdown is not None) == 1


def folder_lucid(path: Path, jobs: Sequence[Row], pairs: Sequence[Row]) -> Path:
    write_rows(path / "lucid_single.csv", jobs)
    write_rows(path / "lucid_pairs.csv", pairs)
    return path


def made_lucid(path: Path, *pairs: Row) -> Dataset:
    dataset = import_source("lucid", folder_lucid(path, [RESNET, BERT], pairs or [packed(RESNET, BERT)]))
    validate(dataset)
    return dataset


def test_a_job_alone_has_the_time_of_a_sample_and_what_the_gpu_was_used(tmp_path: Path) -> None:
    resnet, bert = made_lucid(tmp_path).isolated_runs.to_pylist()
    assert (resnet["application"], resnet["size"], resnet["device"]) == (
        "ResNet18",
        "CIFAR-10 b32",
        "lucid-gpu",
    )
    assert (bert["application"], bert["size"]) == ("BERT", "SQuAD b64 amp")
    assert (resnet["time_s"], resnet["memory_bytes"]) == (1 / 2000, 2360 << 20)
    assert bert["memory_bytes"] == (2049 << 20) / 2
    assert json.loads(resnet["features"]) == {
        "batch_size": 32,
        "amp": 0,
        "utilisation": 0.58,
        "memory_utilisation": 0.25,
        "dataset_cifar_10": 1,
        "dataset_squad": 0,
    }


def test_a_job_beside_itself_may_have_two_speeds(tmp_path: Path) -> None:
    (mix,) = co_runs(made_lucid(tmp_path, packed(RESNET, RESNET, (0.8, 1.25)))).mixes
    assert [member.slowdown for member in mix.members] == [1.25, 0.8]


def test_a_job_on_more_gpus_has_another_size(tmp_path: Path) -> None:
    (mix,) = co_runs(made_lucid(tmp_path, packed(RESNET, BERT, gpu_num1=2))).mixes
    assert [each.size for each in mix.isolated_runs] == [
        "CIFAR-10 b32 2 GPUs",
        "SQuAD b64 amp",
    ]
    assert mix.isolated_runs[0].time_s is None


def test_the_published_files_are_read_lucid() -> None:
    found = co_runs(import_source("lucid", shared_data("gpu_corun")))
    assert (len(found.isolated_runs), len(found.mixes), len(found.applications)) == (48, 605, 8)
    assert all(member.isolated_run.time_s for mix in found.mixes for member in mix.members)
    assert all(mix.fits and len(mix.members) == 2 for mix in found.mixes)
