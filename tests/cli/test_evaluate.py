"""``crosscast evaluate``, ``train time``, ``report``, and ``reproduce`` of published studies."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.cluster.job_types import read_job_types
from crosscast.cluster.placements import PLACEMENTS
from crosscast.data.dataset import read_dataset, write_dataset
from crosscast.evaluation.keep import digest
from crosscast.prediction.named_models import load_model
from crosscast.prediction.time import Grid
from crosscast.prediction.time.datasets import grid_of
from support.choices import PROGRAMS, named_surfaces
from support.commands import Command, Output, written
from support.datasets import made_dataset
from support.johnston2018 import made_up
from support.models import MeanModel, only_models
from support.surfaces import configured_dataset
from support.vectors import made_counted_dataset
from support.workshop import MACHINES

run = Command.of("evaluate", "--jobs 1")
found = run.answer


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(configured_dataset(named_surfaces()), tmp_path_factory, "one"))


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(made_counted_dataset(applications=5, kernels=1), tmp_path_factory, "counted"))


def test_models_of_times_are_compared(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    known = {"device-mean": MeanModel, "shifted": lambda: MeanModel("shifted", shift=0.5)}
    only_models(monkeypatch, known, "shifted")
    small = written(made_dataset(), tmp_path_factory, "small")
    answer = found(capsys, "time", small, "--models", "all", "--probes", "0,1")
    assert answer["folds"] == "leave-application-out"
    assert all("crc" in result["slowdown_mean_without"] for result in answer["results"])
    tried = [(each["model"], each["probes"]) for each in answer["results"]]
    assert tried == [(model, probes) for model in ("device-mean", "shifted") for probes in (0, 1)]
    text = run.text(capsys, "time", small, "--models", "shifted")
    assert "16 kernels at a size" in text and "\nshifted " in text


def test_methods_under_power_caps_are_compared(capsys: Output, node: str, tmp_path: Path) -> None:
    folder, page = tmp_path / "new" / "figures", tmp_path / "page.html"
    words = ("configuration", node, "--methods", "fixed,limiter,oracle")
    assert run(*words, "--figures", folder, "--html", page, "--json") == 0
    output = capsys.readouterr()
    answer = json.loads(output.out)
    assert answer["folds"] == "leave-benchmark-out"
    rows = {row["method"]: row for row in answer["results"] if row["folds"] == "leave-benchmark-out"}
    assert list(rows) == ["fixed", "limiter", "oracle"]
    assert rows["oracle"]["score"] == rows["limiter"]["under_limit_share"] == 1
    (machine,) = answer["machines"]
    assert machine["programs"] == list(PROGRAMS)
    names = {path.name for path in folder.iterdir()}
    assert names == {"methods.png", "curve.png", "repeats.png"}
    assert output.err.count("wrote ") == len(names) + 1
    assert "near-duplicates left out together" in page.read_text()


def test_options_reach_the_evaluation_of_choices(capsys: Output, node: str) -> None:
    words = "--methods limiter,cpu+fl --max-retunes 1 --group bfs+km,lud+nw --seed 3".split()
    samples = "node:cpu_cap_w=60,gpu_cap_w=100;cpu_cap_w=100,gpu_cap_w=200"
    answer = found(capsys, "configuration", node, "--samples", samples, "--power-domain", "gpu", *words)
    assert answer["seed"] == 3
    (machine,) = answer["machines"]
    assert machine["left_out_together"] == [["bfs", "km"], ["cfd", "cfd_double"], ["lud", "nw"]]
    settings = [each["settings"] for each in machine["samples"]["bfs"]]
    assert settings == [{"cpu_cap_w": c, "gpu_cap_w": g} for c, g in ((60.0, 100.0), (100.0, 200.0))]
    assert all(row["budget"] == 1 and row["extra_runs"] <= 1 for row in answer["results"])
    (whole,) = found(capsys, "configuration", node, "--methods", "limiter")["machines"]
    assert whole["cases"] != machine["cases"]


def test_models_of_relative_times_are_compared(capsys: Output, counted: str, tmp_path: Path) -> None:
    words = ("--folds", "leave-kernel-out", "--models", "published-linear")
    assert run("relative", counted, *words, "--figures", tmp_path / "new", "--json") == 0
    output = capsys.readouterr()
    assert f"wrote {tmp_path / 'new' / 'models.png'}" in output.err
    answer = json.loads(output.out)
    assert (answer["question"], answer["folds"]) == ("relative", "leave-kernel-out")
    assert (answer["devices"], answer["sources"]) == (["cpu", "fast", "gpu"], ["cpu", "fast"])
    models = [each["model"] for each in answer["results"]]
    assert models == ["published-linear", "published-mean", "log-mean"]
    assert {(each["weights"], len(each["per_group"])) for each in answer["results"]} == {("kernels", 5)}
    text = run.text(capsys, "relative", counted, "--folds", "leave-machine-out", "--models", "log-mean")
    assert "leave-machine-out; seed 0" in text


def test_what_was_held_out_is_written_as_jobs_that_can_be_scheduled(
    capsys: Output, counted: str, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.parquet"
    words = ("--folds", "leave-application-out", "--model", "published-linear", "--out", path)
    shape = ("--job-seconds", "600", "--job-procs", "1,1,2", "--gpu-applications", "app00, app03")
    assert run("jobs", counted, *words, *shape) == 0
    types = read_job_types(path)
    told = f"wrote {path} ({len(types)} types of jobs, predicted by published-linear)"
    assert told in capsys.readouterr().err
    works = len(set(zip(types.application, types.kernel, types.size, types.source, strict=True)))
    assert types.procs.tolist() == [1, 1, 2] * works
    of_gpu = {name for name, gpu in zip(types.application, types.uses_gpu, strict=True) if gpu}
    assert of_gpu == {"app00", "app03"}
    np.testing.assert_allclose(np.exp(np.log(types.run_s).mean(axis=1)), 600, rtol=0.1)
    assert set(types.model) == {"published-linear"}
    (tmp_path / "machines.toml").write_text(MACHINES)
    simulate = Command.of("simulate placements", f"--jobs 40 --machines {tmp_path / 'machines.toml'}")
    answer = simulate.answer(capsys, path)
    assert [each["placement"] for each in answer["results"]] == list(PLACEMENTS)


reproduce = Command.of("reproduce", "--jobs 1")


@pytest.mark.system
def test_the_forest_of_johnston_2018(capsys: Output, tmp_path: Path) -> None:
    write_dataset(made_up(), tmp_path / "small")
    words = ("johnston2018", tmp_path / "small", "--preset", "quick")
    assert "Table III" in reproduce.text(capsys, *words, "--figures", tmp_path / "figures")
    assert len(list((tmp_path / "figures").iterdir())) == 7
    assert len(reproduce.answer(capsys, *words)["kernels"]) == 10


def test_the_model_and_policies_of_bailey_2014(capsys: Output, node: str) -> None:
    answer = reproduce.answer(capsys, "bailey2014", node)
    methods = {row["method"] for row in answer["results"]}
    assert methods == {"cpu+fl", "gpu+fl", "published", "published+fl", "oracle"}
    (machine,) = answer["machines"]
    assert machine["programs"] == list(PROGRAMS)
    assert machine["published_model"]["tree"] and machine["published_model"]["note"]


def test_a_page_about_a_dataset_is_written_and_said_in_a_sentence(
    capsys: Output, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    known = {"device-mean": MeanModel, "physical": lambda: MeanModel("physical", shift=0.1)}
    only_models(monkeypatch, known, "physical")
    folder, page = written(made_dataset(), tmp_path_factory, "small"), tmp_path / "page.html"
    report = Command.of("report", f"--jobs 1 --html {page}")
    assert report(folder) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Half of the predicted times are within")
    assert captured.err.endswith(f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert "<h1>Predicted kernel times: small</h1>" in text
    # Where the dataset lay is nobody's business.
    assert str(folder) not in text
    answer = report.answer(capsys, folder, "--application", "lud")
    assert (answer["application"], answer["model"]) == ("lud", "physical")
    assert answer["evaluation"]["dataset"] == "small"


train = Command.of("train time", "--model device-mean --jobs 1")


def test_a_card_says_what_it_was_trained_on_and_a_person_how_good_it_is(
    capsys: Output, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    dataset, out = written(made_up(), tmp_path_factory, "small"), tmp_path / "model"
    shown = train.text(capsys, dataset, "--out", out, "--seed", "5")
    assert "device-mean, trained on small: 30 times of 10 kernels at a size" in shown
    for part in ("nearest (baseline)", "noise floor", "coverage", "left out in turn"):
        assert part in shown
    # No cell is cut.
    assert "…" not in shown
    card: Any = load_model(out).card
    grid = grid_of(read_dataset(dataset))
    assert (card.model, card.seed, card.devices) == ("device-mean", 5, grid.devices)
    assert card.training["sha256"] == digest(grid)
    counts = {"cells": 30, "kernels_at_a_size": 10, "kernels": 5, "applications": 4, "devices": 3}
    facts = {"dataset": "small", "names": ["crc", "kmeans", "lud", "sums"], "records": 720}
    assert (counts | facts).items() <= card.training.items()
    # What was forecast once is read from the cache.
    answer = train.answer(capsys, dataset, "--out", out, "--seed", "5")
    assert answer.items() <= json.loads((out / "card.json").read_text()).items()
    told = train.refusal(capsys, dataset, "--out", out, "--without", "crc")
    assert "at least 4 applications" in told and "found 3" in told


@pytest.mark.system
def test_an_application_left_out_is_unknown_to_the_model_and_can_be_compared(
    tmp_path: Path, bundled: Grid, capsys: Output
) -> None:
    out, profiles = tmp_path / "model", bundled.profiles
    train.text(capsys, "bundled", "--out", out, "--without", "kmeans, crc")
    names = sorted(set(profiles.application) - {"kmeans", "crc"})
    assert load_model(out).card.training["names"] == names
    predict = Command.of("predict time bundled --application kmeans", f"--model {out}")
    recorded = {
        (kernel["kernel"], kernel["size"], each["device"]): each["recorded_s"]
        for kernel in predict.answer(capsys)["kernels"]
        for each in kernel["devices"]
    }
    expected = {
        (profiles.kernel[row], profiles.size[row], device.key): float(np.exp(time))
        for row, name in enumerate(profiles.application)
        for device, time in zip(bundled.devices, bundled.log_time[row], strict=True)
        if name == "kmeans"
    }
    assert recorded == pytest.approx(expected)
    assert "Of 12 recorded times" in predict.text(capsys)
