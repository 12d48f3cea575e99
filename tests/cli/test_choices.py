"""``crosscast choose`` and ``colocate``, with the training, evaluation and translation before them."""

import json
from pathlib import Path

import pytest

from crosscast.data.corun import IsolatedRun, write_profile
from crosscast.data.dataset import write_dataset
from crosscast.prediction.named_models import load_model
from support.commands import Command, Output, written
from support.corun_models import constant, write_jobs
from support.mixes import counted_co_runs, dataset_of, make_isolated_run, measured_mixes, other_time
from support.models import chooser_card, kept_chooser
from support.surfaces import configured_dataset, made_surfaces
from support.workshop import SURFACES, keep_process_chooser, write_runs

CHOOSE = Command.of("choose configuration")
answer, refusal = CHOOSE.answer, CHOOSE.refusal
train = Command.of("train configuration", "--jobs 1")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept") / "capmodel"
    keep_process_chooser(folder)
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs.csv")


def test_json_has_what_a_check_reads(capsys: Output, model: Path, runs: Path) -> None:
    found = answer(capsys, runs, "--model", model, "--power-cap", 250)
    assert (found["kernel"], found["model"]["name"]) == ("app1 small", "published-2")
    assert set(found["configuration"]["settings"]) == {"cpu_cap_w", "gpu_cap_w"}
    for name in ("time_s", "power_w"):
        assert 0 < found["low"][name] <= found[name] <= found["high"][name]
    assert found["minimum_power_w"] == found["frontier"][0]["power_w"]
    assert [each["runs"] for each in found["samples"]] == [1, 1]
    (choice,) = found["choices"]
    assert choice["power_cap_w"] == 250 and choice.items() <= found.items()
    assert found["warnings"] == []


@pytest.mark.parametrize(
    ("columns", "factor", "expected"),
    [(["time_s"], 1000, "time_ratio at sample 2"), (["cpu_w", "gpu_w"], 0.001, "power_w at sample 2")],
)
def test_runs_unlike_all_that_were_learned_from_are_told(
    columns: list[str], factor: float, expected: str, capsys: Output, model: Path, runs: Path
) -> None:
    # As where the second run is in another unit: a feature is limited, so that no interval knows it.
    header, first, second = (line.split(",") for line in runs.read_text().splitlines())
    for name in columns:
        second[header.index(name)] = str(factor * float(second[header.index(name)]))
    runs.write_text("\n".join(",".join(row) for row in (header, first, second)))
    assert CHOOSE(runs, "--model", model, "--power-cap", "250", "--json") == 0
    shown = capsys.readouterr()
    warnings = json.loads(shown.out)["warnings"]
    assert any(each.startswith(f"{expected} (node: ") for each in warnings)
    assert all(", beyond three deviations of the programs" in each for each in warnings)
    assert all(f"crosscast: warning: app1 small: {each}" in shown.err for each in warnings)


def test_a_model_that_knows_no_errors_shows_no_intervals(capsys: Output, tmp_path: Path, runs: Path) -> None:
    folder, plot = kept_chooser(tmp_path / "capmodel"), tmp_path / "frontier.png"
    assert CHOOSE(runs, "--model", folder, "--power-cap", "250", "--plot", plot) == 0
    output = capsys.readouterr()
    assert "—" in output.out
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {plot}" in output.err


def test_a_cap_below_everything_chooses_nothing(capsys: Output, model: Path, runs: Path) -> None:
    words = (runs, "--model", model)
    minimum = answer(capsys, *words, "--power-cap", 300)["minimum_power_w"]
    told = refusal(capsys, *words, "--power-cap", 30)
    expected = f"--power-cap: expected at least the least measured power, {minimum:.4g} W at node:"
    assert told.startswith(expected) and told.endswith("found 30 W, so nothing is chosen")
    assert refusal(capsys, *words, "--power-cap", 30, "--json") == told
    assert CHOOSE(*words, "--power-cap", "30,40") == 2
    text, both = capsys.readouterr()
    assert text.count(": nothing is chosen.\n") == 2
    assert both.count("power cap:") + both.count("--power-cap:") == 1
    assert "found 30 W, so nothing is chosen; expected at least" in both and "found 40 W" in both


def test_kernels_of_a_file_are_chosen_for_one_by_one(capsys: Output, model: Path, tmp_path: Path) -> None:
    plot = tmp_path / "f.png"
    words = (write_runs(tmp_path / "both.csv", 0, 3), "--model", model, "--power-cap", 250)
    assert [each["kernel"] for each in answer(capsys, *words)["choices"]] == ["app0 big", "app1 small"]
    assert answer(capsys, *words, "--kernel", "app1")["kernel"] == "app1 small"
    told = refusal(capsys, *words, "--kernel", "x")
    assert told == "--kernel: expected one of app0 big, app1 small, found 'x'"
    told = refusal(capsys, *words, "--plot", plot)
    assert told.startswith("--plot: expected one kernel, found app0 big, app1 small") and not plot.exists()


def test_samples_to_run_are_told_and_written_to_a_file(capsys: Output, model: Path, tmp_path: Path) -> None:
    sample, template = Command.of("choose sample", f"--model {model}"), tmp_path / "t.csv"
    shown = sample.text(capsys, "--template", template)
    assert "A new kernel must be run once at:\n  node: cpu cap 100 W, gpu cap 250 W\n" in shown
    assert "To write down: time_s, power_w, cpu_w, gpu_w, stalls" in shown
    found = sample.answer(capsys)
    assert found["samples"][1] == {"device": "node", "settings": {"cpu_cap_w": 60, "gpu_cap_w": 100}}
    assert template.read_text().startswith("device,cpu_cap_w,gpu_cap_w,time_s,power_w,cpu_w,gpu_w,stalls\n")


def test_unknown_columns_are_noted_and_change_nothing(capsys: Output, model: Path, runs: Path) -> None:
    words = (runs, "--model", model, "--power-cap", 250)
    before = answer(capsys, *words)
    lines = runs.read_text().splitlines()
    runs.write_text("\n".join([f"{lines[0]},host", *(f"{line},here" for line in lines[1:])]))
    assert CHOOSE(*words, "--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == before
    assert captured.err == f"crosscast: note: {runs}: columns that the model does not know: host\n"
    assert CHOOSE(*words, "--kernel", "none") == 2
    assert "note" not in capsys.readouterr().err  # Only of a model that answers


def test_a_model_is_trained_and_asked_from_end_to_end(capsys: Output, tmp_path: Path, runs: Path) -> None:
    dataset, out = tmp_path / "cap", tmp_path / "capmodel"
    write_dataset(configured_dataset(made_surfaces(4, noise=0.01)), dataset)
    words = (dataset, "--model", "published", "--power-domain", "gpu", "--out", out)
    told = "published, trained on cap: 96 runs of 8 kernels at a size (4 applications) at"
    assert told in train.text(capsys, *words)
    power = load_model(out).card.power
    assert (power.domain, power.totals) == ("gpu", {"node": (("gpu",),)})
    found = answer(capsys, runs, "--model", out, "--power-cap", 180)
    # Of the two domains the one that was trained on counts.
    assert found["power_w"] <= 180 * 1.02
    assert found["samples"][1]["power_w"] == SURFACES.domains["gpu"][3, chooser_card().numbers[0]]
    kept_card = json.loads((out / "card.json").read_text())
    assert train.answer(capsys, *words).items() <= kept_card.items()


COMMAND = Command()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(written(measured_mixes(), tmp_path_factory, "mixes"))


@pytest.fixture(scope="module")
def mix_model(dataset: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "co"
    assert COMMAND("train", "corun", dataset, "--model", "process-alone", "--jobs", "1", "--out", folder) == 0
    return folder


@pytest.fixture
def profiles(tmp_path: Path) -> list[str]:
    return [profile_of(make_isolated_run(name), tmp_path) for name in ("bfs", "cfd", "new")]


def profile_of(isolated_run: IsolatedRun, folder: Path) -> str:
    path = folder / f"{isolated_run.application}.json"
    write_profile(isolated_run, {"type": "cpu"}, path)
    return str(path)


def test_a_prediction_has_what_a_check_reads(capsys: Output, mix_model: Path, profiles: list[str]) -> None:
    found = COMMAND.answer(capsys, "predict", "corun", *profiles, "--model", mix_model)
    assert list(found["slowdown"]) == ["bfs", "cfd", "new"]
    for each in (found["time_s"], found["power_w"], *found["slowdown"].values()):
        assert 0 < each["low"] <= each["value"] <= each["high"]
    assert (found["level"], found["model"]["name"]) == (0.9, "process-alone")
    outside, larger = found["warnings"]
    assert outside.startswith("outside of what the model was trained on in: utilisation of new small")
    assert larger.startswith("3 applications at once")
    assert found["serial_s"] == pytest.approx(sum(each["time_s"] for each in found["mix"]))


def test_mixes_to_measure_are_named_and_what_was_measured_counts(
    capsys: Output, mix_model: Path, profiles: list[str]
) -> None:
    words = ("predict", "corun", profiles[0], profiles[2], "--model", mix_model)
    found = COMMAND.answer(capsys, *words, "--suggest-probes", "2")
    suggested = found["suggested_probes"]
    assert suggested["error"] < suggested["error_before"]
    probes = [each for mix in suggested["mixes"] for each in ("--probe", f"{','.join(mix)}=4,4")]
    told = COMMAND.answer(capsys, *words, *probes)
    assert told["slowdown"]["new"]["value"] > found["slowdown"]["new"]["value"]
    colocate = Command.of("colocate", f"--model {mix_model} --suggest-probes 1")
    (mix,) = colocate.answer(capsys, *profiles)["suggested_probes"]["mixes"]
    assert "new/small" in mix
    found = colocate.answer(capsys, *profiles, "--probe", f"{','.join(mix)}=9,9")
    assert found["suggested_probes"]["mixes"] != [mix]
    assert "slowdowns in the other pairs are expected to be wrong by " in colocate.text(capsys, *profiles)
    text = COMMAND.text(capsys, *words, "--suggest-probes", "1")
    assert "slowdowns in this mix are expected to be wrong by " in text


def test_models_of_mixes_are_compared(capsys: Output, dataset: str) -> None:
    words = ("evaluate", "corun", dataset, "--models", "process-alone", "--jobs", "1")
    found = COMMAND.answer(capsys, *words, "--folds", "leave-benchmark-out", "--probes", "0,1")
    for name, values in {
        "model": {"process-alone", "mean", "sum"},
        "folds": {"leave-benchmark-out"},
        "probes": {0, 1},
        "mix_size": {None, 2},
    }.items():
        assert {each[name] for each in found["results"]} == values
    assert (found["mixes"], found["failed_mixes"]) == (15, 1)
    shown = COMMAND.text(capsys, *words, "--folds", "random-80-20")
    assert "15 mixes of 2 of 5 applications on cpu" in shown and "mean (baseline)" in shown


def test_a_card_is_made_and_one_device_tells_of_another(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, capsys: Output
) -> None:
    """A dataset has the same mixes on two devices."""
    card, model, co_runs = tmp_path / "card.json", tmp_path / "model", counted_co_runs((2,))
    folder = written(dataset_of(co_runs), tmp_path_factory, "both")
    assert COMMAND("corun", "translate", folder, "--from", "cpu", "--to", "other", "--out", card) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("cpu to other: a logarithmic line through")
    assert shown.err == f"wrote {card}\n"
    words = ("train", "corun", folder, "--device", "cpu", "--model", "published-linear")
    text = COMMAND.text(capsys, *words, "--out", model, "--jobs", "1")
    assert "/model: published-linear, trained on both: " in text
    profiles = [profile_of(run, tmp_path) for run in co_runs.mixes[1].isolated_runs]
    predict = Command.of("predict corun", f"--model {model}")
    here = predict.answer(capsys, *profiles)
    there = predict.answer(capsys, *profiles, "--translate", card)
    assert there["time_s"]["value"] == pytest.approx(other_time(here["time_s"]["value"]))
    assert there["translation"]["to"] == "other"
    text = predict.text(capsys, *profiles, "--translate", card)
    assert " on other\n" in text
    assert "Times on cpu are translated to other by a logarithmic line; MAPE of held-out applications" in text


def test_the_two_longest_share_and_the_third_runs_alone(tmp_path: Path, capsys: Output) -> None:
    constant(tmp_path / "co", 1.25, error=0.05)
    files = write_jobs(tmp_path)
    colocate = Command.of("colocate", f"--model {tmp_path / 'co'}")
    plan = colocate.answer(capsys, *files, "--max-slowdown", "1.5", "--conservative")
    (mix,) = plan["shared"]
    assert [each["job"] for each in mix["jobs"]] == files[1:]
    (alone,) = plan["alone"]
    assert (alone["job"], alone["no_partner"]) == (files[0], {"taken": 2})
    assert plan["model"]["name"] == "made"
    # Lengths take the place of times in profiles.
    (mix,) = colocate.answer(capsys, *files, "--lengths", "9,1,9")["shared"]
    assert [each["job"] for each in mix["jobs"]] == [files[0], files[2]]
    # The same file twice is two jobs.
    found = colocate.text(capsys, files[0], files[0])
    assert "#1" in found and "#2" in found
