"""``crosscast reproduce``: published studies on small datasets."""

from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.data.dataset import write_dataset
from support.choices import PROGRAMS, named_surfaces
from support.commands import Command, Output
from support.johnston2018 import made_up
from support.surfaces import configured_dataset
from support.vectors import made_counted_dataset

found = Command.of("reproduce", "--jobs 1").answer


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.system
def test_the_forest_of_johnston_2018(capsys: Output, tmp_path: Path) -> None:
    write_dataset(made_up(), tmp_path / "small")
    words = ["johnston2018", str(tmp_path / "small"), "--preset", "quick"]
    assert main(["reproduce", *words, "--jobs", "1", "--figures", str(tmp_path / "figures")]) == 0
    assert "Table III" in capsys.readouterr().out
    assert len(list((tmp_path / "figures").iterdir())) == 7
    assert len(found(capsys, *words)["kernels"]) == 10


def test_the_model_and_policies_of_bailey_2014(capsys: Output, tmp_path: Path) -> None:
    write_dataset(configured_dataset(named_surfaces()), tmp_path / "node")
    answer = found(capsys, "bailey2014", str(tmp_path / "node"))
    methods = {row["method"] for row in answer["results"]}
    assert methods == {"cpu+fl", "gpu+fl", "published", "published+fl", "oracle"}
    (machine,) = answer["machines"]
    assert machine["programs"] == list(PROGRAMS)
    assert machine["published_model"]["tree"]


# `tests/studies` has what it says, and `tests/evaluation` each of its models.
@pytest.mark.system
def test_the_models_and_the_split_of_nichols_2024(capsys: Output, tmp_path: Path) -> None:
    write_dataset(made_counted_dataset(applications=4, kernels=2), tmp_path / "counted")
    answer = found(capsys, "nichols2024", str(tmp_path / "counted"))
    assert answer["protocol"] == "published"
    models = [row["model"] for row in answer["results"]]
    assert models[0] == "combined"
    assert {"published-mean", "published-linear", "published-forest", "published-xgboost"} <= set(models)
    assert answer["studies"]
