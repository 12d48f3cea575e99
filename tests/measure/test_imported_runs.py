"""One's own runs in files of both kinds, as one dataset."""

from pathlib import Path

import pytest

from crosscast.configuration import Configuration
from crosscast.data.dataset import TABLES
from crosscast.data.sources.source import store
from crosscast.data.views import configured
from crosscast.errors import InputError
from crosscast.measure.imported_runs import import_runs
from crosscast.measure.regions.file import to_line
from crosscast.measure.regions.key import RegionKey, RegionRun
from crosscast.measure.regions.samples import write_samples
from crosscast.predict.configuration.data import machines_of

POWERS = {"package-0": 30.0, "gpu": 20.0, "package-0/dram": 4.0}


def runs() -> list[RegionRun]:
    plain = RegionRun(RegionKey("scan"), None, 1e9, 0.5, 0.5, {}, POWERS, 50.0, {"cycles": 7.0})
    return [
        plain._replace(configuration=Configuration("node", {"threads": threads}), duration_s=time_s)
        for threads, time_s in ((1, 4.0), (2, 2.0), (2, 3.0))
    ]


def history(path: Path) -> Path:
    path.write_text("".join(map(to_line, runs())), encoding="ascii")
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
    )


def test_a_history_is_known_by_its_first_byte_too(tmp_path: Path) -> None:
    assert import_runs(history(tmp_path / "runs")).dataset.records.num_rows == 3


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError) as caught:
        import_runs(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot list the folder (Permission denied)"


def test_two_imports_give_the_same_bytes(tmp_path: Path) -> None:
    path = history(tmp_path / "a.jsonl")
    for name in ("one", "two"):
        store(import_runs(path).dataset, tmp_path / name)
    for schema in TABLES:
        one, two = (tmp_path / name / f"{schema.table}.parquet" for name in ("one", "two"))
        assert one.exists() == two.exists()
        assert not one.exists() or one.read_bytes() == two.read_bytes()


def test_named_settings_are_for_tables_only(tmp_path: Path) -> None:
    path = history(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="settings: expected with CSV files, found histories"):
        import_runs(path, ["threads"])
    table(tmp_path / "b.csv")
    assert import_runs(tmp_path, ["threads"]).dataset.records.num_rows == 6


@pytest.mark.parametrize("name", ["", "no.csv", "no.jsonl", "no"])
def test_a_path_without_runs_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        import_runs(tmp_path / name)
    assert str(caught.value).startswith(str(tmp_path / name))
