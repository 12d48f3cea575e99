"""``crosscast evaluate``, with tables, JSON, figures and refusals, and ``reproduce`` of published studies."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from crosscast.cli import main
from crosscast.cluster.job_types import read_job_types
from crosscast.cluster.placements import PLACEMENTS
from crosscast.data.dataset import Dataset, bundled_dataset, write_dataset
from crosscast.data.schema import DEVICES, RECORDS, SESSIONS
from crosscast.data.table import table_of
from support.choices import PROGRAMS, named_surfaces
from support.commands import Command, Output, written
from support.datasets import made_dataset
from support.johnston2018 import made_up
from support.models import MeanModel, only_models
from support.surfaces import configured_dataset
from support.vectors import made_counted_dataset, made_vectors

run = Command.of("evaluate", "--jobs 1")
found, refusal = run.answer, run.refusal

OF_TIMES = (
    "model split probes rmse_log median_ape median_ape_by_application mape slowdown_mean slowdown_geomean "
    "slowdown_mean_without top1 coverage coverage_worst_application"
).split()
OF_CHOICES = (
    "method under_limit_share under_performance under_power over_power over_performance score extra_runs "
    "confidence violations"
).split()
SAMPLES = "node:cpu_cap_w=60,gpu_cap_w=100;cpu_cap_w=100,gpu_cap_w=200"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first runs of the bundled dataset's smallest problems, as all of them take seconds to read."""
    whole = bundled_dataset()
    few = pc.and_(pc.equal(whole.records.column("size"), "tiny"), pc.less(whole.records.column("run"), 6))
    small = replace(whole, label="small", records=whole.records.filter(few))
    return str(written(small, tmp_path_factory, "small"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(configured_dataset(named_surfaces()), tmp_path_factory, "one"))


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
def counted(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(counted_dataset(), tmp_path_factory, "counted"))


class TestTime:
    """Models of times, simple enough to know."""

    @pytest.fixture(autouse=True)
    def models(self, monkeypatch: pytest.MonkeyPatch) -> None:
        known = {"device-mean": MeanModel, "shifted": lambda: MeanModel("shifted", shift=0.5)}
        only_models(monkeypatch, known, "shifted")

    def test_json_has_what_a_check_reads(self, capsys: Output, small: str) -> None:
        assert run("time", small, "--json", "--models", "all", "--probes", "0,1") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["protocol"] == "leave-application-out"
        assert [(each["model"], each["probes"]) for each in found["results"]] == [
            (model, probes) for model in ("device-mean", "shifted") for probes in (0, 1)
        ]
        for result in found["results"]:
            assert set(OF_TIMES) <= set(result)
            assert 0 <= result["coverage_worst_application"] <= result["coverage"] <= 1
            assert "crc" in result["slowdown_mean_without"]
        assert found["noise_floor"]["rmse_log"] is None  # As each kernel ran once

    def test_people_get_tables(self, capsys: Output, small: str) -> None:
        assert run("time", small, "--models", "shifted") == 0
        text = capsys.readouterr().out
        assert "44 kernels at a size" in text and "\nshifted " in text


class TestConfiguration:
    """Methods that choose under power caps."""

    def test_json_has_what_a_check_reads(self, capsys: Output, node: str) -> None:
        words = ("--methods", "fixed,limiter,published,published+fl,oracle")
        answer = found(capsys, "configuration", node, *words)
        assert answer["protocol"] == "leave-benchmark-out"
        for row in answer["results"]:
            assert set(OF_CHOICES) <= set(row)
            assert row["machine"] == "node"
            assert 0 <= row["under_limit_share"] <= 1
            assert row["violations"] == pytest.approx(1 - row["under_limit_share"])
            assert row["score"] == pytest.approx(
                row["under_limit_share"] * (row["under_performance"] or 0), abs=1e-9
            )
        rows = {row["method"]: row for row in answer["results"] if row["protocol"] == "leave-benchmark-out"}
        assert list(rows) == ["fixed", "limiter", "published", "published+fl", "oracle"]
        assert rows["oracle"]["score"] == 1
        assert rows["published"]["extra_runs"] == 0
        assert rows["limiter"]["under_limit_share"] == 1
        (machine,) = answer["machines"]
        assert machine["programs"] == list(PROGRAMS)
        assert machine["published_model"]["note"]

    def test_people_get_tables(self, capsys: Output, node: str, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        assert run("configuration", node, "--methods", "fixed,cpu+fl", "--html", str(page)) == 0
        assert "\nnear-duplicates left out together" in capsys.readouterr().out

    def test_options_reach_the_evaluation(self, capsys: Output, node: str) -> None:
        words = "--methods limiter,cpu+fl --max-retunes 1 --group bfs+km,lud+nw --seed 3".split()
        answer = found(capsys, "configuration", node, "--samples", SAMPLES, "--power-domain", "gpu", *words)
        assert answer["seed"] == 3
        (machine,) = answer["machines"]
        assert machine["left_out_together"] == [["bfs", "km"], ["cfd", "cfd_double"], ["lud", "nw"]]
        assert [each["settings"] for each in machine["samples"]["bfs"]] == [
            {"cpu_cap_w": 60.0, "gpu_cap_w": 100.0},
            {"cpu_cap_w": 100.0, "gpu_cap_w": 200.0},
        ]
        rows = {row["method"]: row for row in answer["results"]}
        assert all(row["budget"] == 1 and row["extra_runs"] <= 1 for row in rows.values())
        whole = found(capsys, "configuration", node, "--methods", "limiter")["machines"]
        assert whole[0]["cases"] != machine["cases"]

    def test_figures_are_written_where_wanted(self, capsys: Output, node: str, tmp_path: Path) -> None:
        folder = tmp_path / "new" / "figures"
        assert run("configuration", node, "--methods", "fixed", "--figures", str(folder)) == 0
        names = {path.name for path in folder.iterdir()}
        assert {"frontier.png", "frontier.csv", "curve.png"} <= names
        assert capsys.readouterr().err.count("wrote ") == len(names) == 5


class TestRelative:
    """Times on devices relative to each other."""

    def test_counters_without_profiles_are_relative_performance(self, capsys: Output, counted: str) -> None:
        words = ("--folds", "leave-kernel-out", "--models", "published-linear")
        answer = found(capsys, "relative", counted, *words)
        assert (answer["target"], answer["protocol"]) == ("relative", "leave-kernel-out")
        assert answer["devices"] == ["cpu", "fast", "gpu"]
        assert answer["sources"] == ["cpu", "fast"]
        models = [each["model"] for each in answer["results"]]
        assert models == ["published-linear", "published-mean", "log-mean"]
        for each in answer["results"]:
            assert {"model", "split", "mae", "same_order", "regret", "top1", "typical_factor"} <= set(each)
            assert each["split"] == "leave-kernel-out"
            assert each["weights"] == "kernels"
            assert len(each["per_group"]) == 5

    def test_a_table_and_pictures_are_made(self, capsys: Output, counted: str, tmp_path: Path) -> None:
        words = ("--folds", "leave-machine-out", "--models", "log-mean", "--figures", str(tmp_path / "new"))
        assert run("relative", counted, *words) == 0
        captured = capsys.readouterr()
        assert "leave-machine-out; seed 0" in captured.out
        assert f"wrote {tmp_path / 'new' / 'models.png'}" in captured.err


class TestJobs:
    """Held-out work as types of jobs."""

    def test_what_was_held_out_is_written_as_jobs_that_can_be_scheduled(
        self, capsys: Output, counted: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "jobs.parquet"
        words = ("--folds", "leave-application-out", "--model", "published-linear")
        shape = ("--job-seconds", "600", "--job-procs", "1,1,2", "--gpu-applications", "app00, app03")
        assert run("jobs", counted, *words, "--out", str(path), *shape) == 0
        types = read_job_types(path)
        assert (
            f"wrote {path} ({len(types)} types of jobs, predicted by published-linear)"
            in capsys.readouterr().err
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
        assert run("jobs", counted, *words, "--out", str(path), *shape) == 0
        assert path.read_bytes() == first
        (tmp_path / "machines.toml").write_text(
            '[[machine]]\nname = "cpu"\nnodes = 4\n[[machine]]\nname = "gpu"\nnodes = 4\ngpu = true\n'
        )
        capsys.readouterr()
        machines = ["--machines", str(tmp_path / "machines.toml")]
        assert main(["simulate", "placements", str(path), *machines, "--jobs", "40", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)["results"]
        assert [each["placement"] for each in found] == list(PLACEMENTS)

    def test_jobs_of_profiles_have_the_source_that_was_typed(self, tmp_path: Path) -> None:
        path, profiles = tmp_path / "jobs.parquet", str(tmp_path / "profiles")
        write_dataset(made_dataset(), profiles)
        words = ("--model", "log-mean", "--out", str(path))
        assert run("jobs", profiles, *words) == 0
        types = read_job_types(path)
        assert set(types.source) == {None}
        assert run("jobs", profiles, *words, "--job-source", types.devices[0]) == 0
        assert set(read_job_types(path).source) == {types.devices[0]}


reproduced = Command.of("reproduce", "--jobs 1").answer


@pytest.mark.system
def test_the_forest_of_johnston_2018(capsys: Output, tmp_path: Path) -> None:
    write_dataset(made_up(), tmp_path / "small")
    words = ["johnston2018", str(tmp_path / "small"), "--preset", "quick"]
    assert main(["reproduce", *words, "--jobs", "1", "--figures", str(tmp_path / "figures")]) == 0
    assert "Table III" in capsys.readouterr().out
    assert len(list((tmp_path / "figures").iterdir())) == 7
    assert len(reproduced(capsys, *words)["kernels"]) == 10


def test_the_model_and_policies_of_bailey_2014(capsys: Output, tmp_path: Path) -> None:
    write_dataset(configured_dataset(named_surfaces()), tmp_path / "node")
    answer = reproduced(capsys, "bailey2014", str(tmp_path / "node"))
    methods = {row["method"] for row in answer["results"]}
    assert methods == {"cpu+fl", "gpu+fl", "published", "published+fl", "oracle"}
    (machine,) = answer["machines"]
    assert machine["programs"] == list(PROGRAMS)
    assert machine["published_model"]["tree"]


# `tests/studies` has what it says, and `tests/evaluation` each of its models.
@pytest.mark.system
def test_the_models_and_the_split_of_nichols_2024(capsys: Output, tmp_path: Path) -> None:
    write_dataset(made_counted_dataset(applications=4, kernels=2), tmp_path / "counted")
    answer = reproduced(capsys, "nichols2024", str(tmp_path / "counted"))
    assert answer["protocol"] == "published"
    models = [row["model"] for row in answer["results"]]
    assert models[0] == "combined"
    assert {"published-mean", "published-linear", "published-forest", "published-xgboost"} <= set(models)
    assert answer["studies"]
