"""``crosscast train``, ``predict`` and ``evaluate corun``, ``translate``, and ``colocate``, from files."""

from pathlib import Path

import pytest

from crosscast.cli import main
from crosscast.data.corun import IsolatedRun, write_profile
from support.commands import Command, Output, written
from support.corun_models import constant, write_jobs
from support.mixes import NAMES, counted_co_runs, dataset_of, make_isolated_run, measured_mixes, other_time

COMMAND = Command()
answer, refusal = COMMAND.answer, COMMAND.refusal


QUICK = ("--model", "process-alone", "--jobs", "1")
ISOLATED_RUNS = [make_isolated_run(name) for name in NAMES[:5]]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(measured_mixes(), tmp_path_factory, "mixes"))


@pytest.fixture(scope="module")
def model(dataset: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("trained") / "co"
    assert main(["train", "corun", dataset, *QUICK, "--out", str(folder)]) == 0
    return str(folder)


@pytest.fixture
def profiles(tmp_path: Path) -> list[str]:
    return [profile_of(each, tmp_path) for each in (*ISOLATED_RUNS[:2], make_isolated_run("new"))]


def profile_of(isolated_run: IsolatedRun, folder: Path) -> str:
    path = folder / f"{isolated_run.application}.json"
    write_profile(isolated_run, {"type": "cpu"}, path)
    return str(path)


def test_training_prints_what_the_card_says(capsys: Output, dataset: str, tmp_path: Path) -> None:
    shown = COMMAND.text(capsys, "train", "corun", dataset, *QUICK, "--out", tmp_path / "co")
    mixes = "15 mixes of 2 of 5 applications (bfs, cfd, crc, csr, dwt) on cpu."
    assert f"/co: process-alone, trained on mixes: {mixes}\n" in shown


def test_json_of_a_prediction_has_what_a_check_reads(capsys: Output, model: str, profiles: list[str]) -> None:
    found = answer(capsys, "predict", "corun", *profiles, "--model", model)
    assert list(found["slowdown"]) == ["bfs", "cfd", "new"]
    for each in (found["time_s"], found["power_w"], *found["slowdown"].values()):
        assert 0 < each["low"] <= each["value"] <= each["high"]
    assert found["level"] == 0.9
    outside, larger = found["warnings"]
    assert outside.startswith("outside of what the model was trained on in: utilisation of new small")
    assert larger.startswith("3 applications at once")
    assert found["model"]["name"] == "process-alone"
    assert found["serial_s"] == pytest.approx(sum(each["time_s"] for each in found["mix"]))


def test_mixes_to_measure_are_named_and_what_was_measured_counts(
    capsys: Output, model: str, profiles: list[str]
) -> None:
    words = ("predict", "corun", profiles[0], profiles[2], "--model", model)
    found = answer(capsys, *words, "--suggest-probes", "2")
    suggested = found["suggested_probes"]
    assert suggested["error"] < suggested["error_before"]
    assert all(len(mix) == 2 and mix != ["bfs/small", "new/small"] for mix in suggested["mixes"])
    probes = [each for mix in suggested["mixes"] for each in ("--probe", f"{','.join(mix)}=4,4")]
    told = answer(capsys, *words, *probes, "--suggest-probes", "1")
    assert told["slowdown"]["new"]["value"] > found["slowdown"]["new"]["value"]
    assert told["suggested_probes"]["error_before"] < suggested["error_before"]
    text = COMMAND.text(capsys, *words, "--suggest-probes", "1")
    assert "(--probe): slowdowns in this mix are expected to be wrong by " in text


def test_pairs_of_jobs_to_measure_are_named(capsys: Output, model: str, profiles: list[str]) -> None:
    words = ("colocate", *profiles, "--model", model, "--suggest-probes", "1")
    (mix,) = answer(capsys, *words)["suggested_probes"]["mixes"]
    assert "new/small" in mix
    told = answer(capsys, *words, "--probe", f"{','.join(mix)}=9,9")
    assert told["suggested_probes"]["mixes"] != [mix]
    assert mix not in [[each["application"] + "/small" for each in pair["jobs"]] for pair in told["shared"]]
    assert "slowdowns in the other pairs are expected to be wrong by " in COMMAND.text(capsys, *words)


def test_evaluating_prints_one_json_object_with_what_a_check_reads(capsys: Output, dataset: str) -> None:
    words = ("--models", "process-alone", "--jobs", "1", "--probes", "0,1")
    found = answer(capsys, "evaluate", "corun", dataset, "--folds", "leave-benchmark-out", *words)
    keys = {"model", "split", "mix_size", "quantity", "mape", "coverage", "auc"}
    assert all(keys <= set(each) for each in found["results"])
    assert {each["model"] for each in found["results"]} == {"process-alone", "mean", "sum"}
    assert {each["split"] for each in found["results"]} == {"leave-benchmark-out"}
    assert {each["probes"] for each in found["results"]} == {0, 1}
    assert {each["mix_size"] for each in found["results"]} == {None, 2}
    assert (found["mixes"], found["failed_mixes"]) == (15, 1)


def test_a_person_sees_how_good_models_are(capsys: Output, dataset: str) -> None:
    words = ("--folds", "random-80-20", "--models", "process-alone", "--jobs", "1")
    shown = COMMAND.text(capsys, "evaluate", "corun", dataset, *words)
    assert "15 mixes of 2 of 5 applications on cpu" in shown and "mean (baseline)" in shown


CO_RUNS = counted_co_runs((2,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with the same mixes on two devices."""
    return written(dataset_of(CO_RUNS), tmp_path_factory, "both")


def test_a_card_is_made_and_one_device_tells_of_another(folder: Path, tmp_path: Path, capsys: Output) -> None:
    card, model = tmp_path / "card.json", tmp_path / "model"
    assert COMMAND("corun", "translate", folder, "--from", "cpu", "--to", "other", "--out", card) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("cpu to other: a logarithmic line through")
    assert shown.err == f"wrote {card}\n"
    words = ("train", "corun", folder, "--device", "cpu", "--model", "published-linear")
    COMMAND.text(capsys, *words, "--out", model, "--jobs", "1")
    profiles = [profile_of(run, tmp_path) for run in CO_RUNS.mixes[1].isolated_runs]
    predict = Command.of("predict corun", f"--model {model}")
    here = predict.answer(capsys, *profiles)
    there = predict.answer(capsys, *profiles, "--translate", card)
    assert there["time_s"]["value"] == pytest.approx(other_time(here["time_s"]["value"]))
    assert there["translation"]["to"] == "other"
    text = predict.text(capsys, *profiles, "--translate", card)
    assert " on other\n" in text
    assert "Times on cpu are translated to other by a logarithmic line; MAPE of held-out applications" in text


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three profiles of jobs, and a model in the same folder."""
    constant(tmp_path / "co", 1.25, error=0.05)
    return write_jobs(tmp_path)


def asked(files: list[str], *options: str) -> list[str]:
    return ["colocate", *files, "--model", str(Path(files[0]).parent / "co"), *options]


def test_the_two_longest_share_and_the_third_runs_alone(files: list[str], capsys: Output) -> None:
    found = COMMAND.text(capsys, *asked(files))
    assert "together on cpu" in found and "alone on cpu" in found
    assert "All 3 jobs: " in found and "6 s one after another" in found


def test_json_names_files_and_has_everything(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    plan = answer(capsys, *asked(files, "--max-slowdown", "1.5", "--conservative"))
    (mix,) = plan["shared"]
    assert [each["job"] for each in mix["jobs"]] == files[1:]
    assert mix["together_s"] + mix["gain_s"]["value"] == pytest.approx(5.0)
    assert mix["jobs"][0]["slowdown"]["low"] < 1.25 < mix["jobs"][0]["slowdown"]["high"]
    assert plan["alone"][0]["job"] == files[0]
    assert plan["alone"][0]["no_partner"] == {"taken": 2}
    assert plan["time_s"]["value"] + plan["gain_s"]["value"] == pytest.approx(plan["one_after_another_s"])
    assert plan["model"]["name"] == "made"


def test_lengths_take_the_place_of_times_in_profiles(files: list[str], capsys: Output) -> None:
    (mix,) = answer(capsys, *asked(files, "--lengths", "9,1,9"))["shared"]
    assert [each["job"] for each in mix["jobs"]] == [files[0], files[2]]


def test_the_same_file_twice_is_two_jobs(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "#1" in (found := COMMAND.text(capsys, *asked([files[0], files[0]]))) and "#2" in found
