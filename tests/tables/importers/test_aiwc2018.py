"""The importer of the published data, on a small folder of its form."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_rows import default_features, default_runtimes, features, runtime, write_source

from crosscast.data.dataset import SPARE, TABLES, read_dataset, validate
from crosscast.data.description import warnings_of
from crosscast.data.sources.aiwc import import_aiwc2018
from crosscast.data.sources.source import store
from crosscast.data.table import notes_of
from crosscast.errors import InputError

ENERGY = "application,device,size,energy,run\nlud,i7-6700k,large,20.5,1.0\nlud,gtx1080,large,1.25,1.0\n"


def rows(table: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        import_aiwc2018(folder)
    return str(caught.value)


def test_times_become_seconds_and_runs_start_at_0(tmp_path: Path) -> None:
    first = rows(import_aiwc2018(write_source(tmp_path / "s")).records)[0]
    assert first["time_s"] == [12.5e-6]
    assert (first["repeat"], first["run"], first["configuration"]) == (0, 0, "{}")
    assert first["host_s"] is None


def test_every_row_of_the_runtimes_becomes_a_record(tmp_path: Path) -> None:
    dataset = import_aiwc2018(write_source(tmp_path / "s"))
    assert dataset.records.num_rows == len(default_runtimes())
    validate(dataset)


def test_the_second_record_of_a_run_keeps_its_time_under_a_number_of_its_own(tmp_path: Path) -> None:
    records = rows(import_aiwc2018(write_source(tmp_path / "s")).records)
    twice = [r for r in records if (r["device"], r["kernel"]) == ("i5-3350", "lud_internal")]
    assert [(r["run"], r["time_s"]) for r in twice] == [(0, [100e-6]), (100, [50e-6])]


def test_records_know_the_number_of_characterized_invocations(tmp_path: Path) -> None:
    records = rows(import_aiwc2018(write_source(tmp_path / "s")).records)
    assert {r["kernel"]: r["invocations"] for r in records} == {"lud_internal": 3, "lud_diagonal": None}


def test_a_session_has_the_kernels_of_its_application(tmp_path: Path) -> None:
    sessions = rows(import_aiwc2018(write_source(tmp_path / "s")).sessions)
    kernels = {s["device"]: json.loads(s["kernels"]) for s in sessions}
    assert kernels == {"gtx1080": ["lud_internal"], "i5-3350": ["lud_diagonal", "lud_internal"]}


def test_runs_that_the_source_left_out_are_no_warning(tmp_path: Path) -> None:
    runtimes = [runtime("gtx1080", run, 1e3) for run in range(1, 41)]
    dataset = import_aiwc2018(write_source(tmp_path / "s", runtimes=runtimes))
    assert warnings_of(dataset.records, dataset.sessions) == []


def test_metrics_that_the_old_tool_defined_otherwise_are_computed_by_our_definitions(tmp_path: Path) -> None:
    profile = rows(import_aiwc2018(write_source(tmp_path / "s")).profiles)[0]
    assert profile["granularity"] == 1 / 4
    assert profile["barriers_per_instruction"] == (2 + 4) / 40
    published = json.loads(profile["program"])["published"]
    assert (published["granularity"], published["operand_sum"]) == (1 / 40, 50)


def test_metrics_of_other_formulas_stay_empty_and_their_values_aside(tmp_path: Path) -> None:
    profile = rows(import_aiwc2018(write_source(tmp_path / "s")).profiles)[0]
    assert profile["yokota_branch_entropy"] is None
    assert profile["average_linear_branch_entropy"] is None
    assert json.loads(profile["program"])["published"]["branch_entropy_yokota"] == 31.5


def test_metrics_of_the_same_meaning_keep_their_values(tmp_path: Path) -> None:
    profile = rows(import_aiwc2018(write_source(tmp_path / "s")).profiles)[0]
    names = ("opcode", "work_items", "min_itb", "median_itb", "sd_simd_width", "footprint_90", "branches_90")
    assert [profile[name] for name in names] == [3, 4, 5, 7.5, 0.4, 7, 1]
    assert profile["total_reads"] is None


def test_the_stray_row_of_kmeans_is_left_out(tmp_path: Path) -> None:
    stray = features("kmeans", "calc_potential_single_step_dev", "medium", 0)
    profiles = import_aiwc2018(write_source(tmp_path / "s", features=[*default_features(), stray])).profiles
    assert profiles.num_rows == len(default_features())


def test_energy_names_sensor_and_domain(tmp_path: Path) -> None:
    energy = rows(import_aiwc2018(write_source(tmp_path / "s", energy=ENERGY)).energy)
    assert [(e["sensor"], e["domain"], e["energy_j"], e["kernel"], e["run"]) for e in energy] == [
        ("rapl", "package-0/core", 20.5, None, 0),
        ("nvml", "gpu", 1.25, None, 0),
    ]


def test_energy_of_one_kernel_names_it(tmp_path: Path) -> None:
    text = f"{ENERGY}kmeans,gtx1080,large,1.0,1\ndwt,i7-6700k,large,2.0,1\n"
    energy = rows(import_aiwc2018(write_source(tmp_path / "s", energy=text)).energy)
    assert [(e["application"], e["kernel"]) for e in energy[2:]] == [
        ("kmeans", "kmeansPoint"),
        ("dwt", "cl_fdwt53Kernel"),
    ]


def test_energy_may_be_absent(tmp_path: Path) -> None:
    assert import_aiwc2018(write_source(tmp_path / "s")).energy.num_rows == 0


def test_notes_go_with_the_tables(tmp_path: Path) -> None:
    store(import_aiwc2018(write_source(tmp_path / "s")), tmp_path / "out")
    dataset = read_dataset(tmp_path / "out")
    assert {"fft", "merged regions", "mixed populations", "times"} <= notes_of(dataset.records).keys()
    assert {"stray row", "definitions", "crc"} <= notes_of(dataset.profiles).keys()
    assert "keys" in notes_of(dataset.devices)


def test_two_imports_give_the_same_bytes(tmp_path: Path) -> None:
    source = write_source(tmp_path / "s", energy=ENERGY)
    for name in ("a", "b", "a"):
        store(import_aiwc2018(source), tmp_path / name)
    for schema in set(TABLES) - set(SPARE):
        first, second = (tmp_path / name / f"{schema.table}.parquet" for name in "ab")
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", ["features_all_invocations.parquet", "runtimes.parquet"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    source = write_source(tmp_path / "s")
    (source / name).unlink()
    assert refusal(source).startswith(f"{source / name}: ")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    source = write_source(tmp_path / "s")
    (source / "runtimes.parquet").write_bytes(b"nonsense")
    assert refusal(source).startswith(f"{source / 'runtimes.parquet'}: cannot read")


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    source = write_source(tmp_path / "s")
    path = source / "runtimes.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["kernel_time_us"]), path)
    assert refusal(source) == f"{path}: column 'kernel_time_us' of the table of runtimes is missing"


@pytest.mark.parametrize(
    ("time_us", "found"),
    [(-1.0, "at least 0, found -1.0"), (float("nan"), "finite"), (float("inf"), "finite"), (None, "none")],
)
def test_a_wrong_time_is_named_with_file_column_and_row(
    tmp_path: Path, time_us: float | None, found: str
) -> None:
    runtimes = [*default_runtimes(), {**runtime("gtx1080", 9, 1.0), "kernel_time_us": time_us}]
    message = refusal(write_source(tmp_path / "s", runtimes=runtimes))
    assert message.startswith(f"{tmp_path / 's' / 'runtimes.parquet'}: column 'kernel_time_us', row 6: ")
    assert found in message


def test_a_row_that_is_there_twice_is_refused_with_both_places(tmp_path: Path) -> None:
    message = refusal(write_source(tmp_path / "s", runtimes=[*default_runtimes(), default_runtimes()[1]]))
    assert "runtimes.parquet: rows 2 and 6 are both of application lud" in message


def test_an_invocation_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    message = refusal(write_source(tmp_path / "s", features=[*default_features(), default_features()[0]]))
    assert "features_all_invocations.parquet: rows 1 and 4 are both of" in message


def test_a_device_that_the_catalogue_does_not_have_is_refused(tmp_path: Path) -> None:
    message = refusal(write_source(tmp_path / "s", runtimes=[runtime("abacus", 1, 1.0)]))
    assert "column 'device', row 1" in message
    assert message.endswith("found abacus")


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [("opcode", 2.5, "whole number"), ("workitems", 0.0, "at least 1"), ("operand_sum", -1.0, "at least 0")],
)
def test_a_wrong_feature_is_named_with_file_column_and_row(
    tmp_path: Path, column: str, value: float, reason: str
) -> None:
    wrong = features("lud", "lud_internal", "small", 0, **{column: value})
    message = refusal(write_source(tmp_path / "s", features=[*default_features(), wrong]))
    assert message.startswith(
        f"{tmp_path / 's' / 'features_all_invocations.parquet'}: column '{column}', row 4: "
    )
    assert reason in message


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("lud,gtx1080,large,-1,2.0", "column 'energy', row 3"),
        ("lud,abacus,large,1,2.0", "column 'device', row 3"),
        ("lud,gtx1080,large,,2.0", "column 'energy', row 3"),
        ("lud,gtx1080,large,1,1.0", "rows 2 and 3"),
        ("lud,gtx1080,large,many,2.0", "column 'energy'"),
    ],
)
def test_wrong_energy_is_refused(tmp_path: Path, line: str, place: str) -> None:
    message = refusal(write_source(tmp_path / "s", energy=f"{ENERGY}{line}\n"))
    assert f"energy_joules.csv: {place}" in message
