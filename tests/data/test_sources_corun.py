"""Sources of co-running: Gavel's and Lucid's pairs, MISO's mixes."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crosscast.data.corun import DUMMY, co_runs
from crosscast.data.dataset import Dataset, read_dataset, validate
from crosscast.data.sources import import_source
from crosscast.data.sources.source import store
from crosscast.data.table import notes_of
from crosscast.errors import InputError
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


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_source("gavel_pairs", path)
    return str(caught.value)


def bags(dataset: Dataset, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in dataset.bags.to_pylist()]


def test_a_job_alone_has_its_time_a_step_and_its_speeds_on_all_gpus(tmp_path: Path) -> None:
    rows = {(row["size"], row["device"]): row for row in made(tmp_path).solos.to_pylist()}
    row = rows["batch size 5", "v100"]
    assert (row["application"], row["time_s"], row["configuration"], row["failure"]) == (
        "LM",
        1 / 8,
        "{}",
        None,
    )
    assert json.loads(row["features"]) == {"batch_size": 5, "k80_steps_per_s": 2, "v100_steps_per_s": 8}
    assert json.loads(rows["batch size 80", "v100"]["features"]) == {"batch_size": 80, "v100_steps_per_s": 4}


def test_a_job_that_does_not_fit_alone_has_failed(tmp_path: Path) -> None:
    (row,) = (row for row in made(tmp_path).solos.to_pylist() if row["failure"])
    assert (row["size"], row["device"], row["time_s"]) == ("batch size 80", "k80", None)
    assert len(co_runs(made(tmp_path)).solos) == 3


def test_a_job_without_a_batch_size_is_an_application_of_its_own(tmp_path: Path) -> None:
    dataset = made(tmp_path, [alone("A3C")], [pair(("A3C", "A3C"), (5.0, 5.0))])
    (solo,) = dataset.solos.to_pylist()
    assert (solo["application"], solo["size"], json.loads(solo["features"])) == (
        *("A3C", "-"),
        {"v100_steps_per_s": 8},
    )
    assert bags(dataset, "bag", "position", "slowdown") == [
        ("A3C - + A3C -", 0, 1.6),
        ("A3C - + A3C -", 1, 1.6),
    ]


def test_slowdowns_are_steps_alone_over_steps_in_the_pair(tmp_path: Path) -> None:
    assert bags(made(tmp_path), "bag", "size", "slowdown", "fits", "device") == [
        ("LM batch size 5 + LM batch size 80", "batch size 5", 2.0, 1, "v100"),
        ("LM batch size 5 + LM batch size 80", "batch size 80", 4.0, 1, "v100"),
    ]


def test_a_pair_of_0_steps_does_not_fit_and_has_no_slowdown(tmp_path: Path) -> None:
    dataset = made(tmp_path, pairs=[pair(steps=(0.0, 0.0))])
    assert bags(dataset, "fits", "slowdown") == [(0, None), (0, None)]


def test_a_pair_that_is_there_in_both_orders_is_one_bag(tmp_path: Path) -> None:
    dataset = made(tmp_path, pairs=[pair(), pair((LARGE, SMALL), (1.0, 4.0))])
    assert bags(dataset, "size", "slowdown") == [("batch size 5", 2.0), ("batch size 80", 4.0)]


def test_orders_with_other_numbers_are_repeats_of_a_bag(tmp_path: Path) -> None:
    dataset = made(tmp_path, pairs=[pair(), pair((LARGE, SMALL), (2.0, 5.0))])
    assert len(set(bags(dataset, "bag"))) == 1
    assert bags(dataset, "repeat", "position", "size", "slowdown") == [
        (0, 0, "batch size 5", 2.0),
        (0, 1, "batch size 80", 4.0),
        (1, 0, "batch size 5", 1.6),
        (1, 1, "batch size 80", 2.0),
    ]


def test_numbers_of_gpus_are_settings_and_pairs_that_nobody_measured_there_are_left_out(
    tmp_path: Path,
) -> None:
    more = [alone(job, steps=12.0, gpus=2) for job in (SMALL, LARGE)]
    dataset = made(tmp_path, [*JOBS, *more], [pair(), pair(steps=(0.0, 0.0), gpus=2)])
    assert set(bags(dataset, "configuration")) == {("{}",)}
    settings = [(row["configuration"], row["time_s"]) for row in dataset.solos.to_pylist()]
    assert settings.count(('{"gpus": 2}', 1 / 12)) == 2
    dataset = made(tmp_path, [*JOBS, *more], [pair(steps=(6.0, 4.0), gpus=2)])
    assert bags(dataset, "configuration", "slowdown") == [('{"gpus": 2}', 2.0), ('{"gpus": 2}', 3.0)]


def test_what_spread_gpus_have_once_more_is_left_out(tmp_path: Path) -> None:
    spread = "v100_unconsolidated"
    copies = [alone(gpu=spread, steps=8.0), alone(LARGE, spread, 4.0), alone(gpu=spread, steps=3.0, gpus=2)]
    # Copies first: the order of the rows tells nothing.
    dataset = made(tmp_path, [*copies, *JOBS], [pair(gpu=spread), pair()])
    assert set(bags(dataset, "device")) == {("v100",)}
    found = [(row["device"], row["configuration"]) for row in dataset.solos.to_pylist()]
    assert [place for place in found if place[0] == spread] == [(spread, '{"gpus": 2}')]
    dataset = made(tmp_path, [*copies, *JOBS], [pair(gpu=spread, steps=(2.0, 2.0)), pair()])
    assert set(bags(dataset, "device")) == {("v100",), (spread,)}


def test_rows_of_the_file_that_contradicts_itself_are_passed_over(tmp_path: Path) -> None:
    other: Row = {"file": "physical_cluster_throughputs"}
    dataset = made(
        tmp_path, [*JOBS, {**alone(steps=9.0), **other}], [pair(steps=(1.0, 1.0), **other), pair()]
    )
    assert bags(dataset, "slowdown") == [(2.0,), (4.0,)]
    assert refusal(folder(tmp_path, JOBS, [pair(**other)])).endswith(
        "gavel_pairs.csv: expected rows whose file is simulation_throughputs, found none"
    )


def test_a_packed_file_gives_the_same(tmp_path: Path) -> None:
    plain = made(tmp_path)
    path = tmp_path / "gavel_pairs.csv"
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    packed = import_source("gavel_pairs", tmp_path)
    assert (packed.bags, packed.solos, packed.devices) == (plain.bags, plain.solos, plain.devices)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([pair(gpus2=2)], "gavel_pairs.csv: column 'gpus2', row 1: expected 1 as gpus1, found 2"),
        (
            [pair(), pair(("A3C", SMALL))],
            "gavel_pairs.csv: row 2: expected jobs with a speed in gavel_standalone.csv on the same GPUs, "
            "found 'A3C' on 1 v100",
        ),
    ],
)
def test_the_row_that_is_wrong_is_named(tmp_path: Path, pairs: list[Row], message: str) -> None:
    assert refusal(folder(tmp_path, JOBS, pairs)).startswith(f"{tmp_path}/{message}")


def test_the_published_files_are_read() -> None:
    found = co_runs(import_source("gavel_pairs", shared_data("gpu_corun")))
    assert Counter((bag.device, bag.fits) for bag in found.bags) == {
        ("p100", True): 340,
        ("p100", False): 11,
        ("v100", True): 330,
        ("v100", False): 21,
    }
    assert found.applications == (
        *("A3C", "CycleGAN", "LM", "Recommendation", "ResNet-18", "ResNet-50", "Transformer"),
    )
    assert all(member.solo.time_s for bag in found.bags for member in bag.members)
    assert min(m.slowdown for bag in found.bags for m in bag.members if m.slowdown is not None) == 1


def folder_lucid(path: Path, jobs: Sequence[Row], pairs: Sequence[Row]) -> Path:
    write_rows(path / "lucid_single.csv", jobs)
    write_rows(path / "lucid_pairs.csv", pairs)
    return path


def made_lucid(path: Path, *pairs: Row) -> Dataset:
    dataset = import_source("lucid", folder_lucid(path, [RESNET, BERT], pairs or [packed(RESNET, BERT)]))
    validate(dataset)
    return dataset


def test_a_job_alone_has_the_time_of_a_sample_and_what_the_gpu_was_used(tmp_path: Path) -> None:
    resnet, bert = made_lucid(tmp_path).solos.to_pylist()
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
    (bag,) = co_runs(made_lucid(tmp_path)).bags
    assert bag.name == "ResNet18 CIFAR-10 b32 + BERT SQuAD b64 amp"
    assert [member.slowdown for member in bag.members] == [1 / 0.8, 2.0]
    assert [member.solo.time_s for member in bag.members] == [1 / 2000, 1 / 100]
    assert bag.fits


def test_a_job_beside_itself_may_have_two_speeds(tmp_path: Path) -> None:
    (bag,) = co_runs(made_lucid(tmp_path, packed(RESNET, RESNET, (0.8, 1.25)))).bags
    assert [member.slowdown for member in bag.members] == [1.25, 0.8]


def test_a_job_on_more_gpus_has_another_size(tmp_path: Path) -> None:
    (bag,) = co_runs(made_lucid(tmp_path, packed(RESNET, BERT, gpu_num1=2))).bags
    assert [solo.size for solo in bag.solos] == ["CIFAR-10 b32 2 GPUs", "SQuAD b64 amp"]
    assert bag.solos[0].time_s is None


def test_the_published_files_are_read_lucid() -> None:
    found = co_runs(import_source("lucid", shared_data("gpu_corun")))
    assert (len(found.solos), len(found.bags), len(found.applications)) == (48, 605, 8)
    assert all(member.solo.time_s for bag in found.bags for member in bag.members)
    assert all(bag.fits and len(bag.members) == 2 for bag in found.bags)


FIRST, SECOND, NOTHING = (0.5, 0.75, 1.0), (0.25, 0.75, 1.0), (0.8889, 1.0, 0.8889)
MIG = np.array([[FIRST, NOTHING, SECOND], [SECOND, SECOND, NOTHING]], dtype=np.float32).transpose(0, 2, 1)
MPS = np.linspace(0.1, 1, 18, dtype=np.float32).reshape(2, 3, 3).round(4)


def written(folder: Path, **arrays: Any) -> Path:
    path = folder / "miso_mps_mig.npz"
    np.savez_compressed(path, **{"mps": MPS, "mig": MIG, **arrays})
    return path


def refusal_miso(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_source("miso", path)
    return str(caught.value)


def test_a_mix_is_a_bag_at_three_levels_and_on_three_parts(tmp_path: Path) -> None:
    dataset = import_source("miso", written(tmp_path))
    validate(dataset)
    found = {(bag.name, bag.configuration): bag for bag in co_runs(dataset).bags}
    assert len(found) == 2 * 6
    for mix in range(2):
        for level, percent in enumerate((100, 50, 14)):
            bag = found[f"mix {mix + 1}", f'{{"mps_percent": {percent}}}']
            assert [member.slowdown for member in bag.members] == pytest.approx(MPS[mix, level], abs=1e-6)
            assert bag.fits
        for level, slices in enumerate((7, 4, 3)):
            bag = found[f"mix {mix + 1}", f'{{"mig_gpcs": {slices}}}']
            assert [member.slowdown for member in bag.members] == pytest.approx(MIG[mix, level], abs=1e-6)
            assert bag.fits is None


def test_jobs_are_told_apart_by_their_numbers_of_mig_and_dummies_are_named(tmp_path: Path) -> None:
    bags = co_runs(import_source("miso", written(tmp_path))).bags
    names = {bag.name: [member.solo.application for member in bag.members] for bag in bags}
    assert names == {"mix 1": ["job 02", DUMMY, "job 01"], "mix 2": ["job 01", "job 01", DUMMY]}


def test_a_mix_without_dummies_is_read(tmp_path: Path) -> None:
    bags = co_runs(import_source("miso", written(tmp_path, mps=MPS[:, :, ::2], mig=MIG[:, :, ::2]))).bags
    assert {name for bag in bags for name in bag.applications} == {"job 01", "job 02", DUMMY}
    assert {len(bag.members) for bag in bags} == {2}


def test_orders_of_the_same_numbers_are_one_bag_and_other_numbers_of_the_same_jobs_repeats(
    tmp_path: Path,
) -> None:
    turned = [2, 0, 1]
    again = MPS[:1] * np.float32(0.5)
    mps = np.concatenate([MPS, MPS[:, :, turned], again, again[:, :, turned]])
    mig = np.concatenate([MIG, MIG[:, :, turned], MIG[:1], MIG[:1, :, turned]])
    bags = [
        bag
        for bag in co_runs(import_source("miso", written(tmp_path, mps=mps, mig=mig))).bags
        if "100" in bag.configuration
    ]
    assert [(bag.name, bag.repeat) for bag in bags] == [("mix 1", 0), ("mix 1", 1), ("mix 2", 0)]
    for bag, expected in zip(bags, (MPS[0, 0], again[0, 0], MPS[1, 0]), strict=True):
        assert [member.slowdown for member in bag.members] == pytest.approx(expected, abs=1e-6)


def test_a_number_of_0_says_nothing(tmp_path: Path) -> None:
    mps = MPS.copy()
    mps[0, 0, 1] = 0
    slowdowns = import_source("miso", written(tmp_path, mps=mps)).bags.column("slowdown").to_pylist()
    assert slowdowns[:3] == [pytest.approx(0.1), None, pytest.approx(mps[0, 0, 2], abs=1e-6)]
    assert slowdowns.count(None) == 1


def test_a_folder_is_read_too_and_gives_the_same_bytes(tmp_path: Path) -> None:
    path = written(tmp_path)
    store(import_source("miso", path), tmp_path / "a")
    store(import_source("miso", tmp_path), tmp_path / "b")
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    dataset = read_dataset(tmp_path / "a")
    assert {"origin", "slowdown", "order of rows", "MIG", "orders", "jobs"} == notes_of(dataset.bags).keys()
    assert "MIT" in notes_of(dataset.bags)["origin"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"mps": MPS[:1]}, "expected arrays mps and mig of one shape, found (1, 3, 3) and (2, 3, 3)"),
        (
            {"mig": MIG[:, :2]},
            "array 'mig': expected the shape (n, 3, k), n up to 100,000 and k from 2 to 16",
        ),
        ({"mig": MIG[:, :, :1]}, "array 'mig': expected the shape (n, 3, k)"),
        ({"mps": MPS[:0]}, "array 'mps': expected the shape (n, 3, k)"),
        ({"mps": np.ones(3)}, "array 'mps': expected the shape (n, 3, k)"),
        ({"mps": np.ones((2, 3, 3), dtype=np.int64)}, "array 'mps': expected real numbers, found int64"),
        ({"mps": MPS.astype(object)}, "array 'mps': expected real numbers, found object"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, arrays: dict[str, npt.NDArray[Any]], message: str) -> None:
    path = written(tmp_path, **arrays)
    assert refusal_miso(path).startswith(f"{path}: {message}")


@pytest.mark.parametrize(("value", "shown"), [(-0.5, "-0.5"), (1.5, "1.5"), (np.nan, "nan"), (np.inf, "inf")])
def test_a_number_that_is_no_relative_time_is_named(tmp_path: Path, value: float, shown: str) -> None:
    mig = MIG.copy()
    mig[1, 2, 0] = value
    path = written(tmp_path, mig=mig)
    message = f"{path}: array 'mig': mix 2, row 3, job 1: expected a number of 0 to 1, found {shown}"
    assert refusal_miso(path) == message


def test_what_is_no_such_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "miso_mps_mig.npz"
    assert refusal_miso(path) == f"{path}: cannot read the mixes (no such file)"
    path.write_bytes(b"no archive")
    assert refusal_miso(path).startswith(f"{path}: expected an archive with the arrays mps and mig (")
    np.savez(path, mps=MPS)
    assert "mig" in refusal_miso(path)
    whole = written(tmp_path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refusal_miso(path).startswith(f"{path}: expected an archive with the arrays mps and mig (")


def test_an_array_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 3, 7)}
    )
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mps.npy", header.getvalue())
    assert "array 'mps': expected the shape (n, 3, k)" in refusal_miso(path)


def test_the_published_file_is_read() -> None:
    dataset = import_source("miso", shared_data("gpu_corun"))
    bags = dataset.bags
    assert bags.num_rows == 2_800 * 7 * 6
    assert len(set(bags.column("bag").to_pylist())) == 2_300
    applications = np.array(bags.column("application"))
    assert len(np.unique(applications)) == 33
    assert np.mean(applications == DUMMY) == pytest.approx(3 / 7)
    # One job beside six dummies: 14 % of the threads are the slowest.
    alone = (applications != DUMMY).reshape(2_800, 6, 7)
    slowdown = bags.column("slowdown").to_numpy().reshape(2_800, 6, 7)
    one = alone[:, 0].sum(axis=1) == 1
    means = (slowdown * alone).sum(axis=2)[one].mean(axis=0)
    assert means[0] < means[1] < means[2] == pytest.approx(1)
    # Whoever has fewer slices is slower.
    assert means[3] < means[4] < means[5]
