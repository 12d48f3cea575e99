"""The dataset that comes with the package: whole, small, and of the kernels as they are now."""

import json
from pathlib import Path

import pytest

import crosscast
from crosscast.cli import main
from crosscast.data.dataset import SPARE, TABLES, bundled_folder
from crosscast.data.description import describe
from crosscast.suite.registry import application, names, profiles_of

SIZES = ("tiny", "small", "medium")
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def dataset() -> crosscast.Dataset:
    return crosscast.bundled_dataset()


def test_the_whole_suite_is_there_on_two_devices(dataset: crosscast.Dataset) -> None:
    description = describe(dataset)
    kernels = {f"{name}/{kernel}" for name in names() for kernel in application(name).kernels}
    assert set(description.kernels) == kernels
    assert description.sizes == SIZES
    assert len(description.devices) == 2
    assert description.cells == 2 * len(SIZES) * len(kernels)
    assert (description.failed, description.missing) == ((), ())


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in bundled_folder().iterdir()) <= MOST_BYTES
    assert {path.name for path in bundled_folder().iterdir()} == {
        f"{table.table}.parquet" for table in TABLES if table not in SPARE
    }


def test_it_was_made_from_the_kernels_and_sizes_as_they_are_now(dataset: crosscast.Dataset) -> None:
    from crosscast.kernel import Program
    from crosscast.suite.application import working_set

    for session in dataset.sessions.to_pylist():
        kind = application(session["application"])
        assert session["source_sha256"] == Program.from_file(kind.source_path()).sha256
        assert json.loads(session["parameters"]) == kind.fit(working_set(session["size"]))


def test_its_profiles_are_those_that_are_made_now(dataset: crosscast.Dataset) -> None:
    kind = application("srad")
    rows = [
        row for row in dataset.profiles.to_pylist() if (row["application"], row["size"]) == ("srad", "tiny")
    ]
    profiles = {(p.kernel, p.invocation): p for p in profiles_of(kind(kind.fit(32 << 10), 0), "tiny")}
    assert len(rows) == len(profiles) > 0
    for row in rows:
        metrics = profiles[row["kernel"], row["invocation"]].metrics
        assert {name: row[name] for name in metrics} == metrics


def test_two_cores_are_about_twice_as_fast_as_one_where_there_is_work_for_both(
    dataset: crosscast.Dataset,
) -> None:
    times = {
        (row["kernel"], row["size"], row["device_compute_units"]): row["time_median_s"]
        for row in crosscast.join(dataset).to_pylist()
    }
    for kernel in ("lud_internal", "calc_potential_single_step_dev", "nqueens"):
        assert 1.6 < times[kernel, "medium", 1] / times[kernel, "medium", 2] < 2.4


def test_describe_knows_it_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["dataset", "describe", "bundled", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 2 * len(SIZES) * 44
