"""``crosscast evaluate`` of relative performance: what is evaluated, JSON, pictures and refusals."""

import json
from pathlib import Path

import numpy as np
import pytest

from crosscast.cli import main
from crosscast.cluster.jobs_table import read_job_types
from crosscast.cluster.placements.registry import PLACEMENTS
from crosscast.tables.arrow import table_of
from crosscast.tables.dataset import Dataset, write_dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.records import RECORDS
from crosscast.tables.sessions import SESSIONS
from support.datasets import made_dataset
from support.vectors import made_vectors

Output = pytest.CaptureFixture[str]


def counted_dataset() -> Dataset:
    """Applications of one kernel each, run on three devices and counted on two of them."""
    vectors = made_vectors(applications=5, kernels=1)
    rows = vectors.observations
    records, sessions = [], []
    for row, source in enumerate(rows.source):
        at = {
            "application": rows.application[row],
            "size": rows.size[row],
            "configuration": "{}",
            "repeat": 0,
        }
        for device, time_s in zip(vectors.devices, vectors.times_s[row].tolist(), strict=True):
            if device == source:
                counters = dict(zip(rows.names, rows.counters[row].tolist(), strict=True))
                own = {"kernels": [rows.kernel[row]], "runs": 1, "counters": counters}
                sessions.append({**at, "device": device, **own})
            if device == source or (device == "gpu" and source == "cpu"):
                own = {"kernel": rows.kernel[row], "run": 0, "time_s": [time_s]}
                records.append({**at, "device": device, **own})
    devices = [{"device": key, "name": key, "type": "gpu", "sources": {}} for key in vectors.devices]
    return Dataset(
        "made up",
        devices=table_of(DEVICES, devices),
        records=table_of(RECORDS, records),
        sessions=table_of(SESSIONS, sessions),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("dataset") / "counted"
    write_dataset(counted_dataset(), path)
    return str(path)


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("dataset") / "profiles"
    write_dataset(made_dataset(), path)
    return str(path)


def evaluate(*words: str) -> int:
    return main(["evaluate", "relative", *words, "--jobs", "1", "--no-cache"])


def refusal(capsys: Output, *words: str) -> str:
    assert evaluate(*words) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.count("\n") == 1
    return captured.err


def test_counters_without_profiles_are_of_relative_performance(capsys: Output, folder: str) -> None:
    assert evaluate(folder, "--folds", "leave-kernel-out", "--models", "all", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["target"], found["protocol"]) == ("relative", "leave-kernel-out")
    assert found["devices"] == ["cpu", "fast", "gpu"]
    assert found["sources"] == ["cpu", "fast"]
    models = [each["model"] for each in found["results"]]
    assert {"published-mean", "log-mean", "published-linear", "published-forest"} <= set(models)
    for each in found["results"]:
        assert {"model", "split", "mae", "same_order", "regret", "top1", "typical_factor"} <= set(each)
        assert each["split"] == "leave-kernel-out"
        assert each["weights"] == "kernels"
        assert len(each["per_group"]) == 5


def test_baselines_are_always_there(capsys: Output, folder: str) -> None:
    assert evaluate(folder, "--folds", "published", "--models", "published-linear", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["model"] for each in found["results"]] == ["published-linear", "published-mean", "log-mean"]
    assert [each["baseline"] for each in found["results"]] == [False, True, True]


def test_a_table_is_printed_and_pictures_are_drawn(capsys: Output, folder: str, tmp_path: Path) -> None:
    words = ("--folds", "leave-machine-out", "--models", "log-mean", "--figures", str(tmp_path / "new"))
    assert evaluate(folder, *words) == 0
    captured = capsys.readouterr()
    assert "leave-machine-out; seed 0" in captured.out
    assert f"wrote {tmp_path / 'new' / 'models.png'}" in captured.err


def test_devices_sources_and_weights_are_as_asked(capsys: Output, folder: str) -> None:
    words = "--models log-mean --devices gpu,cpu --sources fast --weights applications --json".split()
    assert evaluate(folder, "--folds", "leave-configuration-out", *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["devices"], found["sources"]) == (["gpu", "cpu"], ["fast"])
    assert found["counts"]["rows"] == 10
    assert {each["weights"] for each in found["results"]} == {"applications"}


def test_profiles_have_no_source(capsys: Output, profiles: str) -> None:
    assert evaluate(profiles, "--models", "log-mean", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["target"], found["sources"]) == ("relative", ["none"])


def test_one_source_cannot_be_left_out(capsys: Output, folder: str) -> None:
    message = refusal(capsys, folder, "--folds", "leave-machine-out", "--sources", "cpu")
    assert (
        "leave-machine-out: expected at least 2 devices with counters to split by, found 1 (cpu)" in message
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--models", "oracle"], "--models: expected all or some of published-mean, "),
        (["--devices", "cpu,tpu"], "--devices: expected some of those with times"),
        (["--devices", "cpu"], "--devices: expected two or more"),
        (["--sources", "gpu"], "--sources: expected some of those with counters"),
        (["--seed", "5000000000"], "--seed: expected a number from 0"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(
    capsys: Output, folder: str, words: list[str], expected: str
) -> None:
    assert expected in refusal(capsys, folder, "--folds", "leave-kernel-out", *words)


def write_jobs(*words: str) -> int:
    return main(["evaluate", "jobs", *words, "--jobs", "1", "--no-cache"])


def test_what_was_held_out_is_written_as_jobs_that_can_be_scheduled(
    capsys: Output, folder: str, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.parquet"
    words = ("--folds", "leave-application-out", "--model", "published-linear")
    shape = ("--job-seconds", "600", "--job-procs", "1,1,2", "--gpu-applications", "app00, app03")
    assert write_jobs(folder, *words, "--out", str(path), *shape) == 0
    types = read_job_types(path)
    assert (
        f"wrote {path} ({len(types)} types of jobs, predicted by published-linear)" in capsys.readouterr().err
    )
    works = len(set(zip(types.application, types.kernel, types.size, types.source, strict=True)))
    assert len(types) == 3 * works
    assert types.procs.tolist() == [1, 1, 2] * works
    assert {name for name, gpu in zip(types.application, types.uses_gpu, strict=True) if gpu} == {
        "app00",
        "app03",
    }
    np.testing.assert_allclose(np.exp(np.log(types.run_s).mean(axis=1)), 600, rtol=0.1)
    assert set(types.model) == {"published-linear"}
    first = path.read_bytes()
    assert write_jobs(folder, *words, "--out", str(path), *shape) == 0
    assert path.read_bytes() == first
    (tmp_path / "machines.toml").write_text(
        '[[machine]]\nname = "cpu"\nnodes = 4\n[[machine]]\nname = "gpu"\nnodes = 4\ngpu = true\n'
    )
    capsys.readouterr()
    machines = ["--machines", str(tmp_path / "machines.toml")]
    assert main(["schedule", str(path), *machines, "--jobs", "40", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    assert [each["placement"] for each in found] == list(PLACEMENTS)


def test_jobs_of_profiles_have_the_source_that_was_typed(profiles: str, tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    words = ("--model", "log-mean", "--out", str(path))
    assert write_jobs(profiles, *words) == 0
    types = read_job_types(path)
    assert set(types.source) == {None}
    assert write_jobs(profiles, *words, "--job-source", types.devices[0]) == 0
    assert set(read_job_types(path).source) == {types.devices[0]}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--job-seconds", "0"], "--job-seconds: expected a time above 0 s, found 0.0"),
        (["--job-procs", "0"], "--job-procs: expected numbers from 1 to"),
        (["--job-procs", "1,x"], "--job-procs: expected numbers such as 0,2, found '1,x'"),
        (["--job-source", "gpu"], "--job-source: expected it of profiles, which are of no device, found"),
        (["--gpu-applications", "amg"], "--gpu-applications: expected some of app00, "),
        (["--gpu-applications", ","], "--gpu-applications: expected names separated by commas"),
    ],
)
def test_jobs_that_cannot_be_made_are_refused_before_anything_is_fitted(
    capsys: Output, folder: str, tmp_path: Path, words: list[str], expected: str
) -> None:
    path = tmp_path / "jobs.parquet"
    assert write_jobs(folder, "--out", str(path), *words) == 2
    assert expected in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("jobs.csv", "--out: expected a file name with .parquet, found 'jobs.csv'"),
        ("no/jobs.parquet", "--out: the folder"),
    ],
)
def test_a_file_that_no_jobs_can_be_written_to_is_refused(
    capsys: Output, folder: str, tmp_path: Path, name: str, expected: str
) -> None:
    assert write_jobs(folder, "--out", str(tmp_path / name)) == 2
    assert expected in capsys.readouterr().err
