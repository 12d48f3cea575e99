"""``crosscast evaluate``: tables, JSON, pictures and refusals, with models simple enough to know."""

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow.compute as pc
import pytest

from crosscast.cli import main
from crosscast.predict.time import models as registry
from crosscast.tables.bundled import bundled_dataset
from crosscast.tables.dataset import write_dataset
from support.models import MeanModel

Output = pytest.CaptureFixture[str]
ASKED = (
    "model split probes rmse_log median_ape median_ape_by_application mape slowdown_mean slowdown_geomean "
    "slowdown_mean_without top1 coverage coverage_worst_application"
).split()


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {"device-mean": MeanModel, "shifted": lambda: MeanModel("shifted", shift=0.5)}
    monkeypatch.setattr(registry, "MODELS", MappingProxyType(known))
    monkeypatch.setattr(registry, "DEFAULT_MODEL", "shifted")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first runs of the bundled dataset's smallest problems, as all of them take seconds to read."""
    whole = bundled_dataset()
    few = pc.and_(pc.equal(whole.records.column("size"), "tiny"), pc.less(whole.records.column("run"), 6))
    small = replace(whole, label="small", records=whole.records.filter(few))
    path = tmp_path_factory.mktemp("dataset") / "small"
    write_dataset(small, path)
    return str(path)


def run(*words: str) -> int:
    return main(["evaluate", "time", *words, "--jobs", "1"])


def refusal(capsys: Output, *words: str) -> str:
    assert run(*words) == 2
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.count("\n") == 1
    return captured.err


def test_json_has_what_a_check_reads(capsys: Output, folder: str) -> None:
    assert run(folder, "--json", "--models", "all", "--probes", "0,1") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["protocol"] == "leave-application-out"
    assert [(each["model"], each["probes"]) for each in found["results"]] == [
        (model, probes) for model in ("device-mean", "shifted") for probes in (0, 1)
    ]
    for result in found["results"]:
        assert set(ASKED) <= set(result)
        assert 0 <= result["coverage_worst_application"] <= result["coverage"] <= 1
        assert "crc" in result["slowdown_mean_without"]
    assert found["noise_floor"]["rmse_log"] < found["results"][0]["rmse_log"]


def test_people_get_tables(capsys: Output, folder: str) -> None:
    assert run(folder, "--models", "shifted") == 0
    text = capsys.readouterr().out
    assert "44 kernels at a size" in text
    for row in ("shifted ", "device-mean (baseline)", "noise floor"):
        assert f"\n{row}" in text


def test_the_same_command_prints_the_same_from_its_cache(capsys: Output, folder: str, tmp_path: Path) -> None:
    assert run(folder, "--json") == 0
    first = capsys.readouterr().out
    kept = list((tmp_path / "cache" / "crosscast" / "evaluate").iterdir())
    assert len(kept) == 2 * 14
    assert run(folder, "--json") == 0
    assert run(folder, "--json", "--no-cache") == 0
    assert capsys.readouterr().out == 2 * first


def test_bundled_is_the_dataset_that_comes_along(capsys: Output) -> None:
    assert run("bundled", "--models", "device-mean", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["dataset"], found["kernels_at_a_size"]) == ("bundled", 132)


def test_no_cache_keeps_nothing(folder: str, tmp_path: Path) -> None:
    assert run(folder, "--json", "--no-cache") == 0
    assert not (tmp_path / "cache").exists()


def test_figures_are_written_where_they_are_wanted(capsys: Output, folder: str, tmp_path: Path) -> None:
    assert run(folder, "--models", "shifted", "--figures", str(tmp_path / "new" / "figures")) == 0
    assert len(list((tmp_path / "new" / "figures").glob("*.png"))) == 4
    assert capsys.readouterr().err.count("wrote ") == 4


@pytest.mark.parametrize(
    "protocol", ["leave-kernel-out", "leave-device-out", "leave-device-and-application-out"]
)
def test_other_groups_are_left_out_too(capsys: Output, folder: str, protocol: str) -> None:
    assert run(folder, "--folds", protocol, "--json", "--models", "device-mean") == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["split"], result["probes"]) == (protocol, int(protocol == "leave-device-out"))


def test_an_unknown_model_names_the_known_ones(capsys: Output, folder: str) -> None:
    sentence = refusal(capsys, folder, "--models", "shifted,oracle")
    assert "--models: expected all or some of device-mean, shifted, found 'oracle'" in sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--probes", "2"], "--probes: expected 0 to 1 of 2 devices, found 2"),
        (["--probes", "two"], "--probes: expected numbers such as 0,2, found 'two'"),
        (["--probes", "-1"], "--probes: expected 0 to 1 of 2 devices, found -1"),
        (["--probes", "1", "--folds", "leave-device-out"], "leave the option out"),
        (["--probes", "1", "--folds", "leave-device-and-application-out"], "--probes: expected 0 with"),
        (["--folds", "leave-row-out"], "leave-row-out"),
        (["--level", "90"], "--level: expected a probability between 0 and 1, found 90"),
        (["--models", ""], "found ''"),
        (["--seed", "1.5"], "--seed: expected a whole number, found '1.5'"),
        (["--seed", "-1"], "--seed: expected a number from 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    capsys: Output, folder: str, words: list[str], sentence: str
) -> None:
    assert sentence in refusal(capsys, folder, *words)


def test_jobs_and_folders_are_checked(capsys: Output, folder: str, tmp_path: Path) -> None:
    assert main(["evaluate", "time", folder, "--jobs", "0"]) == 2
    assert "--jobs: expected at least 1, found 0" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert "--figures: cannot make" in refusal(capsys, folder, "--figures", str(tmp_path / "file" / "a"))
    assert "--cache: cannot make" in refusal(capsys, folder, "--cache", str(tmp_path / "file" / "a"))
    assert "missing" in refusal(capsys, str(tmp_path / "missing"))
