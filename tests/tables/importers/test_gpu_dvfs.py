"""The importer of runs at a GPU's clocks."""

import json
from pathlib import Path
from typing import Any

import pytest
from configured_rows import gtx1080ti, titanx, write_rows

from crosscast.configuration import Configuration
from crosscast.data.dataset import validate
from crosscast.data.sources.configurations import import_gpu_dvfs
from crosscast.data.table import notes_of
from crosscast.errors import InputError


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_gpu_dvfs(path)
    return str(caught.value)


def test_clocks_are_in_hertz_and_times_in_seconds(tmp_path: Path) -> None:
    dataset = import_gpu_dvfs(write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti()]))
    validate(dataset)
    (record,), (energy,) = dataset.records.to_pylist(), dataset.energy.to_pylist()
    assert (record["application"], record["kernel"], record["size"]) == ("vectors", "add", "default")
    assert Configuration.of(record["device"], record["configuration"]) == Configuration(
        "gtx1080ti", {"core_clock_hz": 1.6e9, "memory_clock_hz": 4e9}
    )
    assert (record["time_s"], energy["energy_j"]) == ([0.002], pytest.approx(0.4))


def test_columns_of_numbers_are_counters_and_the_rest_is_not(tmp_path: Path) -> None:
    (session,) = import_gpu_dvfs(write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti()])).sessions.to_pylist()
    assert json.loads(session["counters"]) == {"warps": 896000, "executed_ipc": 1.5}
    assert session["runs"] is None


def test_a_counter_that_is_missing_is_absent(tmp_path: Path) -> None:
    rows = [gtx1080ti(executed_ipc=""), gtx1080ti(1700, warps="", executed_ipc="")]
    sessions = import_gpu_dvfs(write_rows(tmp_path / "gtx1080ti.csv", rows)).sessions.to_pylist()
    assert [session["counters"] for session in sessions] == ['{"warps": 896000.0}', None]


def test_titanx_has_no_counters(tmp_path: Path) -> None:
    dataset = import_gpu_dvfs(write_rows(tmp_path / "titanx.csv", [titanx()]))
    (record,), (energy,) = dataset.records.to_pylist(), dataset.energy.to_pylist()
    assert (record["application"], record["kernel"], record["time_s"]) == ("2mm", "2mm", [0.02])
    assert energy["energy_j"] == pytest.approx(1.6)
    assert dataset.sessions.column("counters").to_pylist() == [None]


def test_the_second_series_of_stencil2d_has_a_size_of_its_own(tmp_path: Path) -> None:
    rows = [
        titanx(kernel="stencil2d"),
        titanx(633, kernel="stencil2d"),
        titanx(kernel="stencil2d", time_ms=30),
    ]
    records = import_gpu_dvfs(write_rows(tmp_path / "titanx.csv", rows)).records.to_pylist()
    assert [(row["size"], row["time_s"]) for row in records] == [
        *(("default", [0.02]), ("default", [0.02]), ("second series", [0.03]))
    ]


def test_a_third_series_of_stencil2d_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "titanx.csv", [titanx(kernel="stencil2d") for _ in range(3)])
    assert refusal(path).startswith(f"{path}: rows 2 and 3 are both of stencil2d, stencil2d, second series")


def test_a_folder_gives_both_gpus_with_the_notes_of_both(tmp_path: Path) -> None:
    write_rows(tmp_path / "titanx.csv", [titanx()])
    alone = import_gpu_dvfs(tmp_path)
    write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti()])
    both = import_gpu_dvfs(tmp_path)
    assert alone.devices.column("device").to_pylist() == ["titanx"]
    assert both.devices.column("device").to_pylist() == ["gtx1080ti", "titanx"]
    assert set(notes_of(alone.devices)) == {"titanx: origin"}
    assert set(notes_of(both.devices)) == {"gtx1080ti: origin", "titanx: origin"}


def test_one_file_is_taken_alone_though_the_other_is_beside_it(tmp_path: Path) -> None:
    write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti()])
    path = write_rows(tmp_path / "titanx.csv", [titanx()])
    assert import_gpu_dvfs(path).devices.column("device").to_pylist() == ["titanx"]


@pytest.mark.parametrize("name", ["", "clocks.csv"])
def test_a_path_without_either_file_is_refused(tmp_path: Path, name: str) -> None:
    assert refusal(tmp_path / name) == (
        f"{tmp_path / name}: expected gtx1080ti.csv or titanx.csv, or a folder with one of them, found none"
    )


@pytest.mark.parametrize("name", ["gtx1080ti.csv", "titanx.csv"])
def test_a_missing_or_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    assert "no such file" in refusal(tmp_path / name)
    (tmp_path / name).write_bytes(b"")
    assert refusal(tmp_path / name).startswith(f"{tmp_path / name}: cannot read")
    (tmp_path / name).write_bytes(b"\xff\xfe,\n1,2\n")
    assert refusal(tmp_path / name).startswith(f"{tmp_path / name}: ")


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"time/ms": 0}, "column 'time/ms', row 2: expected more than 0, found 0"),
        ({"power/W": "nan"}, "column 'power/W', row 2: expected a value"),
        ({"coreF": -1}, "column 'coreF', row 2: expected more than 0"),
        ({"executed_ipc": "high"}, "column 'executed_ipc', row 2: expected a number, found 'high'"),
        ({"warps": "inf"}, "column 'warps', row 2: expected a finite number"),
        ({}, "rows 1 and 2 are both of vectors, add, default on gtx1080ti"),
    ],
)
def test_wrong_rows_of_gtx1080ti_are_named(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = write_rows(tmp_path / "gtx1080ti.csv", [gtx1080ti(), gtx1080ti(**changed)])
    message = refusal(path)
    assert message.startswith(f"{path}: ")
    assert found in message


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"mem_mhz": 0}, "column 'mem_mhz', row 2: expected more than 0"),
        ({"power_w": "?"}, "column 'power_w', row 2: expected a number, found '?'"),
        ({}, "rows 1 and 2 are both of 2mm, 2mm, default on titanx"),
    ],
)
def test_wrong_rows_of_titanx_are_named(tmp_path: Path, changed: dict[str, Any], found: str) -> None:
    path = write_rows(tmp_path / "titanx.csv", [titanx(), titanx(**changed)])
    assert found in refusal(path)
