"""``crosscast report``: the page, what it prints, and refusals."""

import json
from pathlib import Path

import pytest

from support.commands import Command, Output, written
from support.datasets import made_dataset
from support.models import MeanModel, only_models

run = Command.of("report", "--jobs 1")


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = {"device-mean": MeanModel, "physical": lambda: MeanModel("physical", shift=0.1)}
    only_models(monkeypatch, known, "physical")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(made_dataset(), tmp_path_factory, "small"))


def test_a_page_is_written_and_said_in_a_sentence(capsys: Output, folder: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert run(folder, "--html", str(page)) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Half of the predicted times are within")
    assert captured.err.endswith(f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert "<h1>Predicted kernel times: small</h1>" in text
    # Where the dataset lay is nobody's business.
    assert folder not in text


def test_json_and_application_are_as_wanted(capsys: Output, folder: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("--application", "lud", "--json")
    assert run(folder, "--html", str(page), *words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["application"], found["model"]) == ("lud", "physical")
    assert found["evaluation"]["dataset"] == "small"


@pytest.mark.parametrize("words", ["--models physical", "--application lud", "--seed 7"])
def test_options_of_datasets_are_refused_for_a_recorded_program(
    capsys: Output, tmp_path: Path, words: str
) -> None:
    (tmp_path / "trace-7-0.jsonl").touch()
    refusal = Command.of("report").refusal(capsys, str(tmp_path), *words.split())
    assert "nothing in the report on a recorded program depends on it; leave it out" in refusal
