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
from crosscast.measure.regions.history import RegionKey, RegionRun, import_runs, runs_of_history, to_line
from crosscast.prediction.configuration import machines_of
from support.csv_tables import write_samples
from support.measuring import RUNS, run_of
from support.refusals import refusal

STENCIL = RegionKey("stencil", ("float64[8x8]", "64"), ("model.step:12",))
NODE = Configuration("node", {"threads": 1})
POWERS = {"package-0": 30.0, "gpu": 20.0, "package-0/dram": 4.0}


def written(path: Path, *runs: RegionRun) -> Path:
    path.write_bytes(b"".join(map(to_line, runs)))
    return path


def good(key: RegionKey = STENCIL, **rest: object) -> RegionRun:
    return run_of(key, configuration=NODE, power_w=40.0)._replace(**rest)  # type: ignore[arg-type]


def test_a_run_has_the_name_of_its_region_the_size_of_its_arguments_and_place_and_known_powers(
    tmp_path: Path,
) -> None:
    measured = good(powers_w=POWERS, counters={"cycles": 5.0}, metered_s=0.6)
    others = good(RegionKey("fill"), power_w=None), good(power_w=None, powers_w={"gpu": 3.0})
    run, part, fill = runs_of_history(written(tmp_path / "a.jsonl", measured, *others)).runs
    assert (run.application, run.kernel, run.configuration) == ("stencil", "stencil", NODE)
    assert (run.size, fill.application, fill.size) == (
        "float64[8x8], 64 at model.step:12",
        "fill",
        "default",
    )
    assert (run.time_s, run.power_w, run.domains_w, run.counters) == (0.5, 40.0, POWERS, {"cycles": 5.0})
    assert (fill.power_w, fill.domains_w) == (None, {})
    assert not part.has_power, "one of its domains is missing"


def test_runs_that_tell_nothing_are_counted_and_left_out(tmp_path: Path) -> None:
    bad = [good(failure="KeyError"), good(configuration=None), good(duration_s=0.0), good(failure="OSError")]
    found = runs_of_history(written(tmp_path / "a.jsonl", good(), *bad))
    assert len(found.runs) == 1
    assert found.left_out == {"failed": 2, "without a configuration": 1, "without a time": 1}


@settings(deadline=None)
@given(st.lists(RUNS, min_size=1, max_size=8))
def test_each_good_run_is_there_once_and_keys_stay_apart(
    tmp_path_factory: pytest.TempPathFactory, runs: list[RegionRun]
) -> None:
    found = runs_of_history(written(tmp_path_factory.getbasetemp() / "runs.jsonl", *runs))
    kept = [run for run in runs if run.failure is None and run.configuration and run.duration_s]
    assert len(found.runs) == len(kept)
    assert sum(found.left_out.values()) == len(runs) - len(kept)
    assert sorted(run.time_s for run in found.runs) == sorted(run.duration_s for run in kept)
    assert len({(run.application, run.size) for run in found.runs}) == len({run.key for run in kept})


SCAN = RegionRun(RegionKey("scan"), None, 1e9, 0.5, 0.5, {}, POWERS, 50.0, {"cycles": 7.0})
SCANS = [
    SCAN._replace(configuration=Configuration("node", {"threads": threads}), duration_s=time_s)
    for threads, time_s in ((1, 4.0), (2, 2.0), (2, 3.0))
]


def table(path: Path) -> Path:
    write_samples(SCANS, path)
    first, *lines = path.read_text().splitlines()
    path.write_text("\n".join([f"application,{first}", *(f"scan,{line}" for line in lines)]))
    return path


def test_a_history_and_the_table_of_its_samples_give_the_same_cells(tmp_path: Path) -> None:
    one, other = (
        configured(import_runs(path).dataset)
        for path in (written(tmp_path / "a.jsonl", *SCANS), table(tmp_path / "b.csv"))
    )
    assert one == other
    assert [(row["time_s"], row["power_w"]) for row in one.to_pylist()] == [(4.0, 50.0), (2.5, 50.0)]
    (surfaces,) = machines_of(one, "runs")
    assert sorted(surfaces.domains) == sorted(POWERS)


def test_runs_of_all_files_of_a_folder_are_repeats_of_each_other(tmp_path: Path) -> None:
    history = written(tmp_path / "a.jsonl", *SCANS)
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
    # Histories tell their settings.
    assert import_runs(tmp_path, ["threads"]).dataset.records.num_rows == 6
    assert "settings: expected with CSV files, found histories" in refusal(import_runs, history, ["threads"])


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
    (surfaces,) = machines_of(configured(import_runs(history).dataset), "runs")
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
