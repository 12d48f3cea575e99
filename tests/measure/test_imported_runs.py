"""Datasets of runs out of histories, as of a sweep: contexts and powers stay what they are."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration
from crosscast.data.views import configured
from crosscast.errors import InputError
from crosscast.measure.regions.history import RegionKey, RegionRun, to_line
from crosscast.measure.regions.samples import import_runs, runs_of_history
from crosscast.prediction.configuration.data import machines_of
from support.csv_tables import write_samples
from support.measuring import RUNS, run_of
from support.refusals import refusal

KEY = RegionKey("stencil", ("float64[8x8]", "64"), ("model.step:12",))
ONE = Configuration("node", {"threads": 1})


def written(folder: Path, *runs: RegionRun) -> Path:
    path = folder / "runs.jsonl"
    path.write_bytes(b"".join(map(to_line, runs)))
    return path


def good(key: RegionKey = KEY, **rest: object) -> RegionRun:
    return run_of(key, configuration=ONE, power_w=40.0)._replace(**rest)  # type: ignore[arg-type]


def test_a_run_has_the_name_of_its_region_and_the_size_of_its_arguments_and_place(tmp_path: Path) -> None:
    run, fill = runs_of_history(written(tmp_path, good(), good(RegionKey("fill")))).runs
    assert (fill.application, fill.size) == ("fill", "default")
    assert (run.application, run.kernel) == ("stencil", "stencil")
    assert run.size == "float64[8x8], 64 at model.step:12"
    assert (run.configuration, run.time_s, run.power_w) == (ONE, 0.5, 40.0)


def test_powers_and_counters_are_those_of_the_history(tmp_path: Path) -> None:
    parts = {"package-0": 40.0, "package-0/dram": 3.0}
    pooled = good(powers_w=parts, counters={"cycles": 5.0}, metered_s=0.6)
    part = good(power_w=None, powers_w={"gpu": 3.0})
    first, second, third = runs_of_history(written(tmp_path, good(power_w=None), pooled, part)).runs
    assert not third.has_power, "one of its domains is missing"
    assert (first.power_w, first.domains_w) == (None, {})
    assert (second.power_w, second.domains_w, second.counters) == (40.0, parts, {"cycles": 5.0})


def test_runs_that_tell_nothing_are_counted_and_left_out(tmp_path: Path) -> None:
    bad = [good(failure="KeyError"), good(configuration=None), good(duration_s=0.0), good(failure="OSError")]
    found = runs_of_history(written(tmp_path, good(), *bad))
    assert len(found.runs) == 1
    assert found.left_out == {"failed": 2, "without a configuration": 1, "without a time": 1}


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(arguments=("float64[8x8]", "65")),
        KEY._replace(site=("model.step:13",)),
        KEY._replace(site=("model.step:12", "model.run:3")),
        KEY._replace(name="other"),
    ],
)
def test_other_contexts_are_other_kernels_or_sizes(tmp_path: Path, other: RegionKey) -> None:
    first, second = runs_of_history(written(tmp_path, good(), good(other))).runs
    assert (first.application, first.size) != (second.application, second.size)


@settings(deadline=None)
@given(st.lists(RUNS, min_size=1, max_size=8))
def test_each_good_run_is_there_once_and_keys_stay_apart(
    tmp_path_factory: pytest.TempPathFactory, runs: list[RegionRun]
) -> None:
    path = written(tmp_path_factory.getbasetemp(), *runs)
    found = runs_of_history(path)
    kept = [run for run in runs if run.failure is None and run.configuration and run.duration_s]
    assert len(found.runs) == len(kept)
    assert sum(found.left_out.values()) == len(runs) - len(kept)
    assert sorted(run.time_s for run in found.runs) == sorted(run.duration_s for run in kept)
    assert len({(run.application, run.size) for run in found.runs}) == len({run.key for run in kept})


def test_what_is_no_history_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"version":1}\n')
    assert "line 1: region: expected a value, found none" in refusal(runs_of_history, path)


POWERS = {"package-0": 30.0, "gpu": 20.0, "package-0/dram": 4.0}


def runs() -> list[RegionRun]:
    plain = RegionRun(RegionKey("scan"), None, 1e9, 0.5, 0.5, {}, POWERS, 50.0, {"cycles": 7.0})
    return [
        plain._replace(configuration=Configuration("node", {"threads": threads}), duration_s=time_s)
        for threads, time_s in ((1, 4.0), (2, 2.0), (2, 3.0))
    ]


def history(path: Path) -> Path:
    path.write_bytes(b"".join(map(to_line, runs())))
    return path


def table(path: Path) -> Path:
    write_samples(runs(), path)
    lines = path.read_text().splitlines()
    named = [f"application,{lines[0]}", *(f"scan,{line}" for line in lines[1:])]
    path.write_text("\n".join(named))
    return path


def test_a_history_and_the_table_of_its_samples_give_the_same_cells(tmp_path: Path) -> None:
    found = [
        configured(import_runs(path).dataset)
        for path in (history(tmp_path / "a.jsonl"), table(tmp_path / "b.csv"))
    ]
    assert found[0] == found[1]
    assert [(row["time_s"], row["power_w"]) for row in found[0].to_pylist()] == [(4.0, 50.0), (2.5, 50.0)]


def test_models_take_what_was_imported(tmp_path: Path) -> None:
    dataset = import_runs(history(tmp_path / "a.jsonl")).dataset
    (surfaces,) = machines_of(configured(dataset), "runs")
    assert [each.settings["threads"] for each in surfaces.space.configurations] == [1.0, 2.0]
    assert surfaces.power_w.tolist() == [[50.0, 50.0]]
    assert sorted(surfaces.domains) == sorted(POWERS)


def test_runs_of_all_files_of_a_folder_are_repeats_of_each_other(tmp_path: Path) -> None:
    history(tmp_path / "a.jsonl")
    table(tmp_path / "b.csv")
    (tmp_path / "notes.txt").write_text("others may lie here")
    imported = import_runs(tmp_path)
    assert [row["runs"] for row in configured(imported.dataset).to_pylist()] == [2, 4]
    assert imported.notes == (
        "b.csv: settings: threads",
        "b.csv: powers: power_w, package-0_w, gpu_w, package-0/dram_w",
        "b.csv: counters: cycles",
        "runs: 6, cells: 2, applications: 1, configurations: 2 (node)",
        "runs with the time and power of another of their cell, to the last digit: 3",
    )


def test_named_settings_are_for_tables_only(tmp_path: Path) -> None:
    path = history(tmp_path / "a.jsonl")
    assert "settings: expected with CSV files, found histories" in refusal(import_runs, path, ["threads"])
    table(tmp_path / "b.csv")
    assert import_runs(tmp_path, ["threads"]).dataset.records.num_rows == 6


@pytest.mark.parametrize("name", ["", "no.csv", "no.jsonl", "no"])
def test_a_path_without_runs_is_named(tmp_path: Path, name: str) -> None:
    assert refusal(import_runs, tmp_path / name).startswith(str(tmp_path / name))


EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep.py"


def swept(history: Path, sensors: str) -> str:
    words = [sys.executable, str(EXAMPLE), str(history), sensors]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_sweep_with_power_is_what_models_learn_from(tmp_path: Path) -> None:
    recording, history = tmp_path / "recording.csv", tmp_path / "runs.jsonl"
    recording.write_text("domain,time_s,energy_j\npackage-0,0,0\npackage-0,9000,270000\n", encoding="utf-8")
    assert swept(history, f"replay:{recording}") == f"times and powers are in {history}"
    imported = import_runs(history)
    (surfaces,) = machines_of(configured(imported.dataset), "runs")
    assert surfaces.applications == ("scale", "sort", "sums", "transform", "waves")
    assert surfaces.known.all()
    assert (surfaces.power_w > 0).all()
    assert surfaces.space.configurations[0] == Configuration("machine", {"threads": 1})


@pytest.mark.system
def test_a_sweep_without_a_sensor_says_that_power_is_missing(tmp_path: Path) -> None:
    history = tmp_path / "runs.jsonl"
    assert swept(history, "none").startswith("no sensor has told a power")
    with pytest.raises(InputError, match=r"expected runs with a power, found none \(\d+ without power\)"):
        import_runs(history)
