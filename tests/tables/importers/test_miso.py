"""The importer of MISO's mixes."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crosscast.data.corun import DUMMY, co_runs
from crosscast.data.dataset import read_dataset, validate
from crosscast.data.sources.corun import import_miso
from crosscast.data.sources.source import store
from crosscast.data.table import notes_of
from crosscast.errors import InputError
from support.shared import shared_data

FIRST, SECOND, NOTHING = (0.5, 0.75, 1.0), (0.25, 0.75, 1.0), (0.8889, 1.0, 0.8889)
MIG = np.array([[FIRST, NOTHING, SECOND], [SECOND, SECOND, NOTHING]], dtype=np.float32).transpose(0, 2, 1)
MPS = np.linspace(0.1, 1, 18, dtype=np.float32).reshape(2, 3, 3).round(4)


def written(folder: Path, **arrays: Any) -> Path:
    path = folder / "miso_mps_mig.npz"
    np.savez_compressed(path, **{"mps": MPS, "mig": MIG, **arrays})
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_miso(path)
    return str(caught.value)


def test_a_mix_is_a_bag_at_three_levels_and_on_three_parts(tmp_path: Path) -> None:
    dataset = import_miso(written(tmp_path))
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
    bags = co_runs(import_miso(written(tmp_path))).bags
    names = {bag.name: [member.solo.application for member in bag.members] for bag in bags}
    assert names == {"mix 1": ["job 02", DUMMY, "job 01"], "mix 2": ["job 01", "job 01", DUMMY]}


def test_a_mix_without_dummies_is_read(tmp_path: Path) -> None:
    bags = co_runs(import_miso(written(tmp_path, mps=MPS[:, :, ::2], mig=MIG[:, :, ::2]))).bags
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
        for bag in co_runs(import_miso(written(tmp_path, mps=mps, mig=mig))).bags
        if "100" in bag.configuration
    ]
    assert [(bag.name, bag.repeat) for bag in bags] == [("mix 1", 0), ("mix 1", 1), ("mix 2", 0)]
    for bag, expected in zip(bags, (MPS[0, 0], again[0, 0], MPS[1, 0]), strict=True):
        assert [member.slowdown for member in bag.members] == pytest.approx(expected, abs=1e-6)


def test_a_number_of_0_says_nothing(tmp_path: Path) -> None:
    mps = MPS.copy()
    mps[0, 0, 1] = 0
    slowdowns = import_miso(written(tmp_path, mps=mps)).bags.column("slowdown").to_pylist()
    assert slowdowns[:3] == [pytest.approx(0.1), None, pytest.approx(mps[0, 0, 2], abs=1e-6)]
    assert slowdowns.count(None) == 1


def test_a_folder_is_read_too_and_gives_the_same_bytes(tmp_path: Path) -> None:
    path = written(tmp_path)
    store(import_miso(path), tmp_path / "a")
    store(import_miso(tmp_path), tmp_path / "b")
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
    assert refusal(path).startswith(f"{path}: {message}")


@pytest.mark.parametrize(("value", "shown"), [(-0.5, "-0.5"), (1.5, "1.5"), (np.nan, "nan"), (np.inf, "inf")])
def test_a_number_that_is_no_relative_time_is_named(tmp_path: Path, value: float, shown: str) -> None:
    mig = MIG.copy()
    mig[1, 2, 0] = value
    path = written(tmp_path, mig=mig)
    message = f"{path}: array 'mig': mix 2, row 3, job 1: expected a number of 0 to 1, found {shown}"
    assert refusal(path) == message


def test_what_is_no_such_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "miso_mps_mig.npz"
    assert refusal(tmp_path) == f"{path}: cannot read the mixes (no such file)"
    path.write_bytes(b"no archive")
    assert refusal(path).startswith(f"{path}: expected an archive with the arrays mps and mig (")
    np.savez(path, mps=MPS)
    assert "mig" in refusal(path)
    whole = written(tmp_path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert refusal(path).startswith(f"{path}: expected an archive with the arrays mps and mig (")


def test_an_array_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (10**12, 3, 7)}
    )
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mps.npy", header.getvalue())
    assert "array 'mps': expected the shape (n, 3, k)" in refusal(path)


def test_the_published_file_is_read() -> None:
    dataset = import_miso(shared_data("gpu_corun"))
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
