"""``crosscast evaluate`` of mixes of jobs on parts of a GPU: tables, JSON and refusals."""

import json
from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.tables.dataset import write_dataset
from support.mixes import dataset_with, made_mixes, rows_of

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("dataset") / "mixes"
    write_dataset(dataset_with(rows_of(made_mixes(jobs=4, mixes=25, members=3))), path)
    return str(path)


def evaluated(folder: str, *options: str) -> int:
    return main(["evaluate", "partition", folder, "--no-cache", "--jobs", "1", *options])


def test_applications_are_left_out_where_nobody_says_what_is(folder: str, capsys: Output) -> None:
    assert evaluated(folder, "--models", "mean", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["target"], found["protocol"]) == ("corun", "leave-benchmark-out")
    assert found["mig_gpcs"] == [7, 4, 3]
    assert found["applications"] == ["job 1", "job 2", "job 3", "job 4"]
    assert [(each["model"], each["quantity"], each["slices"]) for each in found["results"]] == [
        ("mean", "partition", slices) for slices in (None, 7, 4, 3)
    ]
    assert {"model", "split", "bag_size", "quantity", "mape", "coverage", "auc"} <= set(found["results"][0])


def test_the_table_says_how_each_model_does_on_each_size(folder: str, capsys: Output) -> None:
    assert evaluated(folder, "--folds", "leave-mix-out") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "16 mixes (9 copies left out) of 4 applications on gpu; from MPS at 100, 50, 14 % to" in lines[0]
    rows = [line for line in lines if line.startswith(("mean (baseline)", "published-forest", "partition"))]
    assert len(rows) == 3 * 4
    assert sum(" all " in row for row in rows) == 3
    assert any("nearly a lookup" in line for line in lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--folds", "random-80-20"], "random-80-20"),
        (["--models", "sum"], "--models: expected all or some of mean, published-forest, partition"),
        (["--device", "cpu"], "on cpu, found those on gpu"),
        (["--level", "2"], "--level: expected a probability"),
    ],
)
def test_options_that_say_nothing_are_refused(
    folder: str, options: list[str], message: str, capsys: Output
) -> None:
    assert evaluated(folder, *options) == 2
    assert message in capsys.readouterr().err


def test_no_model_of_bags_is_trained_on_mixes(folder: str, tmp_path: Path, capsys: Output) -> None:
    assert main(["train", "corun", folder, "--out", str(tmp_path / "co"), "--no-cache"]) == 2
    assert "expected mixes with slowdowns, found mixes on parts" in capsys.readouterr().err
    assert not (tmp_path / "co").exists()
