"""Scores of searches on a dataset of measured variants, and the commands that print them."""

import sys
from pathlib import Path

import numpy as np
import pytest

from crosscast.data.configuration import Configuration
from crosscast.data.sources.kernel_times import dataset_on_catalogue
from crosscast.data.sources.runs import ConfiguredRun
from crosscast.errors import InputError
from crosscast.tuning.evaluation import BUDGETS, evaluate_tuning, measured_of
from crosscast.tuning.space_files import read_space
from support.commands import Command
from support.refusals import refusal, refusals

ROOT = Path(__file__).parents[2]
KERNEL, SPACE = (ROOT / "examples" / "tuning" / name for name in ("matmul.cl", "matmul-space.toml"))
DEVICES = ("rtx-a4000", "gtx1080")

tune, evaluate = Command.of("tune"), Command.of("evaluate tune")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune")
    (path / "matmul.cl").write_bytes(KERNEL.read_bytes())
    text = SPACE.read_text().replace("512", "64")
    text = text.replace("[2, 4, 8, 16]", "[4, 8]").replace("[1, 2, 4, 8]", "[1, 2]")
    (path / "matmul.toml").write_text(f'source = "matmul.cl"\n{text}')
    return path


@pytest.fixture(autouse=True)
def cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


def runs(folder: Path) -> list[ConfiguredRun]:
    variants = read_space(folder / "matmul.toml").variants()
    rng = np.random.default_rng(0)
    return [
        ConfiguredRun("product", "matmul", label, Configuration(device, {}), float(seconds), (), 5)
        for device in DEVICES
        for label, seconds in zip(variants.labels, rng.uniform(1e-3, 3e-3, len(variants)), strict=True)
    ]


def test_searches_end_at_the_optimum_of_a_space(folder: Path) -> None:
    dataset = dataset_on_catalogue("made", runs(folder), {})
    space = read_space(folder / "matmul.toml")
    evaluation = evaluate_tuning(dataset, [space])
    assert {each.device for each in evaluation.scores} == set(DEVICES)
    assert not evaluation.held_out and evaluation.profiled == {"matmul": 8}
    for each in evaluation.scores:
        fractions = [f for f in each.fraction if not np.isnan(f)]
        assert all(0 < f <= 1 for f in fractions) and each.variants == 8
        if each.method == "crosscast":
            assert list(each.fraction[1:]) == sorted(each.fraction[1:])
            assert each.fraction[BUDGETS.index(20)] == 1
    assert evaluation.to_dict()["budgets"] == list(BUDGETS)


def test_spaces_of_other_kernels_and_no_variants_are_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text('kernel = "other"\n[parameters]\nA = [1]\n')
    dataset = dataset_on_catalogue("made", runs(folder), {})
    with pytest.raises(InputError, match=r"expected the name of one kernel of the dataset \(matmul\)"):
        evaluate_tuning(dataset, [read_space(path)])
    plain = [ConfiguredRun("a", "k", "small", Configuration("gtx1080", {}), 1.0, (), 1)]
    assert "expected times of variants" in refusal(measured_of, dataset_on_catalogue("made", plain, {}))


def test_the_command_prints_and_writes_the_best(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (folder / "matmul.cl", "--space", folder / "matmul.toml", "--devices", "rtx-a4000")
    text = tune.text(capsys, *words)
    assert "8 variants are valid, of which 8 were profiled." in text
    assert "The best on rtx-a4000" in text
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    answer = tune.answer(capsys, *words, "--out", folder / "out")
    assert [each["rank"] for each in answer["ranking"]] == list(range(1, 9))
    assert {each.name for each in (folder / "out").iterdir()} == {"ranking.json", "t1.json", "t4.json"}
    (folder / "normal.toml").write_text((folder / "matmul.toml").read_text().replace("uniform", "normal"))
    tune.answer(capsys, words[0], "--space", folder / "normal.toml", *words[3:], "--out", folder / "normal")
    assert {each.name for each in (folder / "normal").iterdir()} == {"ranking.json", "t4.json"}


@refusals("words sentence")
def test_wrong_options_are_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    given = (folder / "matmul.cl", "--space", folder / "matmul.toml", *words)
    assert sentence in tune.refusal(capsys, *given)
