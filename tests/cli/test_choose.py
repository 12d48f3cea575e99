"""``crosscast choose``, and ``crosscast train configuration`` before it."""

import json
from pathlib import Path

import pytest

from crosscast.data.dataset import write_dataset
from crosscast.prediction.named_models import load_model
from support.commands import Command, Output
from support.models import chooser_card, kept_chooser
from support.surfaces import configured_dataset, made_surfaces
from support.workshop import SURFACES, keep_process_chooser, write_runs

CHOOSE = Command.of("choose configuration")
answer, refusal = CHOOSE.answer, CHOOSE.refusal
train = Command.of("train configuration", "--jobs 1")


SAMPLES = chooser_card().numbers


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
    assert found["kernel"] == "app1 small"
    assert found["configuration"]["device"] == "node"
    assert set(found["configuration"]["settings"]) == {"cpu_cap_w", "gpu_cap_w"}
    for name in ("time_s", "power_w"):
        assert 0 < found["low"][name] <= found[name] <= found["high"][name]
    assert found["power_w"] <= 250 * 1.02
    assert 0.5 <= found["probability_under"] <= 1
    assert found["minimum_power_w"] == found["frontier"][0]["power_w"]
    assert [each["time_s"] for each in found["frontier"]] == sorted(
        (each["time_s"] for each in found["frontier"]), reverse=True
    )
    assert found["frontier"][-1]["relative_performance"] == 1
    assert [each["runs"] for each in found["samples"]] == [1, 1]
    assert found["model"]["name"] == "published-2"
    assert [each["power_cap_w"] for each in found["choices"]] == [250]
    assert found["choices"][0].items() <= found.items()


@pytest.mark.parametrize(
    ("column", "factor", "expected"),
    [(None, 1, None), ("time_s", 1000, "time_ratio at sample 2"), ("cpu_w", 0.001, "power_w at sample 2")],
)
def test_runs_unlike_all_that_were_learned_from_are_told(
    column: str | None, factor: float, expected: str | None, capsys: Output, model: Path, runs: Path
) -> None:
    # As where the second run is in another unit: a feature is limited, so that no interval knows it.
    header, first, second = (line.split(",") for line in runs.read_text().splitlines())
    if column is not None:
        for name in ("cpu_w", "gpu_w") if column == "cpu_w" else (column,):
            second[header.index(name)] = str(factor * float(second[header.index(name)]))
    runs.write_text("\n".join(",".join(row) for row in (header, first, second)))
    assert CHOOSE(runs, "--model", model, "--power-cap", "250", "--json") == 0
    shown = capsys.readouterr()
    warnings = json.loads(shown.out)["warnings"]
    if expected is None:
        assert warnings == []
        assert "warning" not in shown.err
    else:
        assert any(each.startswith(f"{expected} (node: ") for each in warnings)
        assert all(", beyond three deviations of the programs" in each for each in warnings)
        assert all(f"crosscast: warning: app1 small: {each}" in shown.err for each in warnings)


def test_a_model_that_knows_no_errors_shows_no_intervals(capsys: Output, tmp_path: Path, runs: Path) -> None:
    folder = kept_chooser(tmp_path / "capmodel")
    shown = CHOOSE.text(capsys, runs, "--model", folder, "--power-cap", "250")
    assert "—" in shown
    assert "it keeps to the cap with" not in shown.splitlines()[1] or "measured" in shown.splitlines()[1]


def test_a_cap_below_everything_chooses_nothing(capsys: Output, model: Path, runs: Path) -> None:
    words = (runs, "--model", model)
    minimum = answer(capsys, *words, "--power-cap", 300)["minimum_power_w"]
    told = refusal(capsys, *words, "--power-cap", 30)
    assert told.startswith(
        f"--power-cap: expected at least the least measured power, {minimum:.4g} W at node:"
    )
    assert told.endswith("found 30 W, so nothing is chosen")
    assert refusal(capsys, *words, "--power-cap", 30, "--json") == told


def test_why_several_caps_cannot_be_kept_is_one_sentence(capsys: Output, model: Path, runs: Path) -> None:
    assert CHOOSE(runs, "--model", model, "--power-cap", "30,40") == 2
    told = capsys.readouterr().err
    assert told.count("power cap:") + told.count("--power-cap:") == 1
    assert "found 30 W, so nothing is chosen; expected at least" in told


def test_kernels_of_a_file_are_chosen_for_one_by_one(capsys: Output, model: Path, tmp_path: Path) -> None:
    path = write_runs(tmp_path / "both.csv", 0, 3)
    words = (path, "--model", model, "--power-cap", 250)
    assert [each["kernel"] for each in answer(capsys, *words)["choices"]] == ["app0 big", "app1 small"]
    assert answer(capsys, *words, "--kernel", "app1")["kernel"] == "app1 small"
    told = refusal(capsys, *words, "--kernel", "x")
    assert told == "--kernel: expected one of app0 big, app1 small, found 'x'"
    plot = tmp_path / "f.png"
    told = refusal(capsys, *words, "--plot", plot)
    assert told.startswith("--plot: expected one kernel, found app0 big, app1 small") and not plot.exists()


def test_samples_to_run_are_told_and_written_to_a_file(capsys: Output, model: Path, tmp_path: Path) -> None:
    sample = Command.of("choose sample", f"--model {model}")
    shown = sample.text(capsys)
    assert "A new kernel must be run once at:\n  node: cpu cap 100 W, gpu cap 250 W\n" in shown
    assert "To write down: time_s, power_w, cpu_w, gpu_w, stalls" in shown
    found = sample.answer(capsys)
    assert found["samples"][1] == {"device": "node", "settings": {"cpu_cap_w": 60, "gpu_cap_w": 100}}
    template = tmp_path / "t.csv"
    assert sample("--template", template) == 0
    assert template.read_text().startswith("device,cpu_cap_w,gpu_cap_w,time_s,power_w,cpu_w,gpu_w,stalls\n")


def test_a_picture_is_drawn(capsys: Output, model: Path, runs: Path, tmp_path: Path) -> None:
    plot = tmp_path / "frontier.png"
    assert CHOOSE(runs, "--model", model, "--power-cap", "250", "--plot", plot) == 0
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert f"wrote {plot}" in capsys.readouterr().err


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


def test_no_cap_is_needed_for_least_energy_within_a_slowdown(capsys: Output, model: Path, runs: Path) -> None:
    asked = [runs, "--model", model, "--objective", "energy", "--max-slowdown", "10%"]
    found = answer(capsys, *asked)
    assert found["power_cap_w"] is None
    assert found["max_slowdown"] == 0.1
    sample = next(each for each in found["samples"] if each["settings"] == found["baseline"]["settings"])
    assert found["time_s"] <= 1.1 * sample["time_s"] * (1 + 1e-9)


def test_a_model_is_trained_and_asked_from_end_to_end(capsys: Output, tmp_path: Path) -> None:
    dataset, out = tmp_path / "cap", tmp_path / "capmodel"
    write_dataset(configured_dataset(made_surfaces(4, noise=0.01)), dataset)
    words = (dataset, "--model", "published", "--out", out)
    shown = train.text(capsys, *words, "--power-domain", "gpu")
    assert "published, trained on cap: 96 runs of 8 kernels at a size (4 applications) at" in shown
    card = load_model(out).card
    assert card.power.domain == "gpu"
    assert card.power.totals == {"node": (("gpu",),)}
    path = write_runs(tmp_path / "runs.csv")
    found = answer(capsys, path, "--model", out, "--power-cap", 180)
    # Of the two domains the one that was trained on counts.
    assert found["power_w"] <= 180 * 1.02
    assert found["samples"][1]["power_w"] == SURFACES.domains["gpu"][3, SAMPLES[0]]
    assert train(*words, "--power-domain", "gpu", "--json") == 0
    kept_card = json.loads((out / "card.json").read_text())
    assert json.loads(capsys.readouterr().out).items() <= kept_card.items()
