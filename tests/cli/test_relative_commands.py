"""``crosscast train relative`` and ``crosscast predict relative``, from end to end."""

from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.data.dataset import write_dataset
from crosscast.prediction.relative.artefact import open_model
from crosscast.prediction.store import read
from support.commands import Command, Output, written
from support.datasets import made_dataset
from support.golden import assert_printed
from support.johnston2018 import made_up
from support.vectors import made_counted_dataset

COMMAND = Command()
answer, refusal = COMMAND.answer, COMMAND.refusal


PREDICT = ("predict", "relative")
LINEAR = ("--model", "published-linear", "--jobs", "1")
PERF = """{"counter-value" : "1000000000.0", "event" : "PAPI_TOT_INS"}
{"counter-value" : "100000000.0", "event" : "PAPI_BR_INS"}
{"counter-value" : "1500000000.0", "unit" : "ns", "event" : "duration_time"}
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(made_counted_dataset(), tmp_path_factory, "counted"))


@pytest.fixture(scope="module")
def model(dataset: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("trained") / "rpv"
    assert main(["train", "relative", dataset, *LINEAR, "--out", str(folder)]) == 0
    return str(folder)


@pytest.fixture
def perf(tmp_path: Path) -> str:
    path = tmp_path / "run.json"
    path.write_text(PERF)
    return str(path)


def test_json_of_a_prediction_has_what_a_check_reads(capsys: Output, model: str, perf: str) -> None:
    found = answer(capsys, *PREDICT, perf, "--model", model, *"--source cpu --relative-to cpu".split())
    assert (found["relative_to"], found["source"], found["level"]) == ("cpu", "cpu", 0.9)
    assert [each["device"] for each in found["devices"]] == ["cpu", "fast", "gpu"]
    cpu, fast, gpu = found["devices"]
    assert cpu["relative"] == cpu["low"] == cpu["high"] == cpu["speed_up"] == 1
    for each in (fast, gpu):
        assert 0 < each["low"] < each["relative"] < each["high"]
        assert each["speed_up"] == pytest.approx(1 / each["relative"])
        # 1.5 seconds on the CPU, as perf says.
        assert each["time_s"] == pytest.approx(1.5 * each["relative"])
    assert found["time"] == {"device": "cpu", "time_s": 1.5}
    assert sum(each["probability_fastest"] for each in found["devices"]) == pytest.approx(1)
    assert found["recommended"] == found["order"][0]
    assert found["runs"][0]["devices"] == found["devices"]
    assert found["model"]["name"] == "published-linear"


def test_what_a_person_sees_is_as_it_was(capsys: Output, model: str, perf: str) -> None:
    assert main([*PREDICT, perf, "--model", model, "--source", "cpu", "--relative-to", "gpu"]) == 0
    captured = capsys.readouterr()
    assert not captured.err
    assert_printed(captured.out, Path(__file__).with_name("golden") / "predict-relative.txt")


def test_runs_of_a_dataset_are_predicted_and_can_be_chosen(capsys: Output, dataset: str, model: str) -> None:
    words = (*PREDICT, dataset, "--model", model, *"--application app03 --kernel kernel1".split())
    both = answer(capsys, *words)["runs"]
    assert sorted(each["source"] for each in both) == ["cpu", "cpu", "fast", "fast"]
    assert {each["application"] for each in both} == {"app03"}
    own = answer(capsys, *words, "--source", "fast")["runs"]
    assert [each["source"] for each in own] == ["fast", "fast"]


def test_profiles_of_no_device_are_learned_from_and_predicted(capsys: Output, tmp_path: Path) -> None:
    """A dataset of AIWC profiles: vectors of its devices, by its metrics; a time may be told."""
    folder = tmp_path / "small"
    write_dataset(made_up(), folder)
    words = ("--model", "published-mean", "--jobs", "1", "--out", tmp_path / "rpv")
    text = COMMAND.text(capsys, "train", "relative", folder, *words)
    assert "with architecture-independent profiles" in text
    device = open_model(read(tmp_path / "rpv")).devices[0]
    asked = ("predict", "relative", str(folder), "--model", str(tmp_path / "rpv"))
    plain = answer(capsys, *asked)["runs"]
    assert all(each["source"] is None and each["time"] is None for each in plain)
    assert "--source: expected with --time" in refusal(capsys, *asked, "--source", device)
    told = ("--source", device, "--time", "2")
    assert f"--time: expected one run to predict, found {len(plain)}" in refusal(capsys, *asked, *told)
    one = tmp_path / "one"
    write_dataset(made_dataset(("bfs",), kernels=("first",), sizes=("tiny",)), one)
    timed = answer(capsys, "predict", "relative", str(one), *asked[3:], *told)
    assert timed["time"] == {"device": device, "time_s": 2}
    assert timed["devices"][0]["time_s"] == 2


def test_counters_of_a_gpu_are_asked_of_the_model_that_knows_most_of_them(
    capsys: Output, tmp_path: Path
) -> None:
    # A model of a Xeon's counters comes first in the list, and knows the bytes alone.
    report = tmp_path / "ncu.csv"
    rows = [("smsp__inst_executed.sum", "inst", 1000), ("dram__bytes.sum", "byte", 100_000)]
    lines = ['"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"']
    lines += [f'"0","k","{name}","{unit}","{value}"' for name, unit, value in rows]
    report.write_text("\n".join([*lines, '"0","k","launch__thread_count","thread","1024"']) + "\n")
    assert main(["predict", "relative", str(report)]) == 0
    told = capsys.readouterr().err
    assert "crosscast: model seven-gpus: " in told
    assert "the model knows smsp__inst_executed.sum, dram__bytes.sum, launch__thread_count only" in told
