"""The commands that study bags, make a machine translation card, and predict by it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dataset_rows as rows
import pytest

from crosscast.cli import main
from crosscast.data.corun import Bag
from crosscast.data.dataset import write_dataset
from crosscast.data.isolated_runs import write_profile
from support.mixes import counted_co_runs, other_time, studied

Output = pytest.CaptureFixture[str]
CO_RUNS = counted_co_runs((2,))


def rows_of(bag: Bag) -> Iterator[dict[str, Any]]:
    for place, member in enumerate(bag.members):
        (row,) = rows.bag(member.slowdown, name=bag.name, device=bag.device, bag_time_s=bag.time_s)
        solo = member.solo
        yield {**row, "position": place, "application": solo.application, "size": solo.size}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with the same bags on two devices."""
    folder = tmp_path_factory.mktemp("data") / "both"
    solos = [
        rows.solo(
            each.application,
            size=each.size,
            device=each.device,
            time_s=each.time_s,
            features=dict(each.features),
        )
        for each in CO_RUNS.solos
    ]
    bags = [row for bag in CO_RUNS.bags for row in rows_of(bag)]
    devices = [rows.device("cpu"), rows.device("other")]
    write_dataset(rows.dataset(devices=devices, solos=solos, bags=bags), folder)
    return folder


def translate(folder: Path, out: Path, *words: str) -> int:
    return main(["corun", "translate", str(folder), "--from", "cpu", "--out", str(out), *words])


def test_a_card_is_made_and_profiles_on_one_device_tell_of_the_other(
    folder: Path, tmp_path: Path, capsys: Output
) -> None:
    card, model = tmp_path / "card.json", tmp_path / "model"
    assert translate(folder, card, "--to", "other") == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("cpu to other: a logarithmic line through")
    assert shown.err == f"wrote {card}\n"
    words = ["train", "corun", str(folder), "--device", "cpu", "--model", "published-linear"]
    assert main([*words, "--out", str(model), "--jobs", "1"]) == 0
    profiles = []
    for solo in CO_RUNS.bags[1].solos:
        profiles.append(str(tmp_path / f"{solo.application}.json"))
        write_profile(solo, rows.device("cpu"), profiles[-1])
    capsys.readouterr()
    assert main(["predict", "corun", *profiles, "--model", str(model), "--json"]) == 0
    here = json.loads(capsys.readouterr().out)
    words = ["predict", "corun", *profiles, "--model", str(model), "--translate", str(card)]
    assert main([*words, "--json"]) == 0
    there = json.loads(capsys.readouterr().out)
    assert there["time_s"]["value"] == pytest.approx(other_time(here["time_s"]["value"]))
    assert there["translation"]["to"] == "other"
    assert main(words) == 0
    text = capsys.readouterr().out
    assert " on other\n" in text
    assert "Times on cpu are translated to other by a logarithmic line; with applications left out" in text


def test_a_card_is_also_json(folder: Path, tmp_path: Path, capsys: Output) -> None:
    assert translate(folder, tmp_path / "card.json", "--to", "other", "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "card.json").read_text())


def test_a_device_without_the_same_work_is_refused_in_one_sentence(
    folder: Path, tmp_path: Path, capsys: Output
) -> None:
    assert translate(folder, tmp_path / "card.json", "--to", "moon") == 2
    assert "that were timed on cpu and on moon, found none" in capsys.readouterr().err
    assert translate(folder, tmp_path / "card.json", "--to", "cpu") == 2
    assert "--to: expected two different ones, found cpu twice" in capsys.readouterr().err
    assert not (tmp_path / "card.json").exists()


@pytest.mark.parametrize(
    ("words", "studies"), [(["evaluate", "corun"], False), (["reproduce", "moolchandani2022"], True)]
)
def test_figures_are_written_and_named(
    folder: Path,
    tmp_path: Path,
    capsys: Output,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    studies: bool,
) -> None:
    from crosscast.studies import moolchandani2022 as study

    asked: dict[str, Any] = {}

    def study_corun(*_: Any, **options: Any) -> study.CoRunStudy:
        asked.update(options)
        return replace(studied(), studies=None)

    monkeypatch.setattr(study, "study_corun", study_corun)
    out = tmp_path / "figures"
    assert main([*words, str(folder), "--figures", str(out)]) == 0
    assert asked.get("studies", False) is studies
    names = {path.name for path in out.iterdir()}
    assert "left-out-time.png" in names
    told = capsys.readouterr().err
    assert all(str(out / name) in told for name in names)
