"""The importer of Lucid's pairs."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from corun_rows import Row, packed, single, write_csv

from crosscast.data.corun import co_runs
from crosscast.data.dataset import Dataset, validate
from crosscast.data.sources.corun import import_lucid
from crosscast.data.sources.source import store
from crosscast.data.table import notes_of
from crosscast.errors import InputError
from support.shared import shared_data

RESNET, BERT = single(), single("BERT", "SQuAD", amp=1, batchsize=64, speed=100.0, gmem=1024.5)


def folder(path: Path, jobs: Sequence[Row], pairs: Sequence[Row]) -> Path:
    write_csv(path / "lucid_single.csv", jobs)
    write_csv(path / "lucid_pairs.csv", pairs)
    return path


def made(path: Path, *pairs: Row) -> Dataset:
    dataset = import_lucid(folder(path, [RESNET, BERT], pairs or [packed(RESNET, BERT)]))
    validate(dataset)
    return dataset


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_lucid(path)
    return str(caught.value)


def test_a_job_alone_has_the_time_of_a_sample_and_what_the_gpu_was_used(tmp_path: Path) -> None:
    resnet, bert = made(tmp_path).solos.to_pylist()
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


def test_slowdowns_are_1_over_relative_speeds_and_members_are_known_alone(tmp_path: Path) -> None:
    (bag,) = co_runs(made(tmp_path)).bags
    assert bag.name == "ResNet18 CIFAR-10 b32 + BERT SQuAD b64 amp"
    assert [member.slowdown for member in bag.members] == [1 / 0.8, 2.0]
    assert [member.solo.time_s for member in bag.members] == [1 / 2000, 1 / 100]
    assert bag.fits


def test_a_job_beside_itself_may_have_two_speeds(tmp_path: Path) -> None:
    (bag,) = co_runs(made(tmp_path, packed(RESNET, RESNET, (0.8, 1.25)))).bags
    assert [member.slowdown for member in bag.members] == [1.25, 0.8]


def test_a_job_on_more_gpus_has_another_size(tmp_path: Path) -> None:
    (bag,) = co_runs(made(tmp_path, packed(RESNET, BERT, gpu_num1=2))).bags
    assert [solo.size for solo in bag.solos] == ["CIFAR-10 b32 2 GPUs", "SQuAD b64 amp"]
    assert bag.solos[0].time_s is None


def test_two_imports_give_the_same_bytes_and_notes_name_the_licence(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    for name in ("a", "b"):
        store(import_lucid(tmp_path), tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    assert "non-commercial" in notes_of(dataset.bags)["origin"]
    assert "label" in notes_of(dataset.solos)["left out"]


@pytest.mark.parametrize(
    ("jobs", "pairs", "message"),
    [
        ([single(speed=0)], [], "lucid_single.csv: column 'speed', row 1: expected more than 0, found 0"),
        (
            [single(gpu_util=101)],
            [],
            "lucid_single.csv: column 'gpu_util', row 1: expected at most 100, found 101",
        ),
        ([single(amp=2)], [], "lucid_single.csv: column 'amp', row 1: expected at most 1, found 2"),
        ([RESNET, RESNET], [], "lucid_single.csv: rows 1 and 2 are both of model ResNet18, dataset CIFAR-10"),
        (
            [],
            [packed(RESNET, BERT, (0.5, 0.0))],
            "lucid_pairs.csv: column 'speed2', row 1: expected more than 0",
        ),
        (
            [],
            [packed(RESNET, BERT, gpu_num2=0)],
            "lucid_pairs.csv: column 'gpu_num2', row 1: expected at least 1",
        ),
        ([], [packed(RESNET, BERT)] * 2, "lucid_pairs.csv: rows 1 and 2 are both of model1 ResNet18"),
        (
            [],
            [packed(RESNET, single(amp=3))],
            "lucid_pairs.csv: column 'amp2', row 1: expected at most 1, found 3",
        ),
    ],
)
def test_the_row_that_is_wrong_is_named(
    tmp_path: Path, jobs: list[Row], pairs: list[Row], message: str
) -> None:
    folder(tmp_path, jobs or [RESNET], pairs or [packed(RESNET, BERT)])
    assert refusal(tmp_path).startswith(f"{tmp_path}/{message}")


def test_a_missing_or_empty_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path).endswith("expected a folder with lucid_single.csv, found none")
    folder(tmp_path, [RESNET], [packed(RESNET, BERT)])
    path = tmp_path / "lucid_pairs.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    assert refusal(tmp_path) == f"{path}: expected rows of the table of lucid_pairs, found none"


def test_the_published_files_are_read() -> None:
    found = co_runs(import_lucid(shared_data("gpu_corun")))
    assert (len(found.solos), len(found.bags), len(found.applications)) == (48, 605, 8)
    assert all(member.solo.time_s for bag in found.bags for member in bag.members)
    assert all(bag.fits and len(bag.members) == 2 for bag in found.bags)
