import time
from pathlib import Path
from typing import Any

import dataset_rows as rows
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.dataset import Dataset
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, RECORDS
from crosscast.data.table import check, read_table, table_of, write_table
from crosscast.data.views import JOINED, join
from crosscast.errors import InputError
from crosscast.profile import METRICS
from support.shared import shared_data


def only(dataset: Dataset, **options: Any) -> dict[str, Any]:
    (row,) = join(dataset, **options).to_pylist()
    return dict(row)


def test_a_cell_has_the_statistics_of_its_run_means() -> None:
    records = [rows.record(0, [1.0, 3.0]), rows.record(1, [4.0]), rows.record(2, [9.0, 9.0, 9.0])]
    row = only(rows.dataset(records=records))
    assert row["runs"] == 3
    assert (row["time_min_s"], row["time_median_s"], row["time_mean_s"], row["time_max_s"]) == (2, 4, 5, 9)
    assert row["time_sd_s"] == pytest.approx(13**0.5)


def test_one_run_has_no_deviation() -> None:
    assert only(rows.dataset(records=[rows.record()]))["time_sd_s"] is None


def test_what_differs_in_the_key_is_another_cell_but_a_process_is_not() -> None:
    others: list[dict[str, Any]] = [
        {"kernel": "k"},
        {"size": "small"},
        {"application": "a"},
        {"configuration": '{"cores": 1}'},
    ]
    records = [rows.record(), rows.record(repeat=1), *(rows.record(**cells) for cells in others)]
    table = join(rows.dataset(records=records))
    assert sorted(table.column("runs").to_pylist()) == [1, 1, 1, 1, 2]
    check(JOINED, table, "joined")


def test_metrics_are_means_over_invocations_or_the_first() -> None:
    profiles = [
        rows.profile(invocation=0, opcode=2, rewrite_ratio=None, granularity=0.5),
        rows.profile(invocation=1, opcode=5, rewrite_ratio=0.25),
        rows.profile("other", opcode=9),
        rows.profile(size="small", opcode=9),
    ]
    dataset = rows.dataset(profiles=profiles, records=[rows.record()])
    mean, first = only(dataset), only(dataset, invocations="first")
    assert (mean["opcode"], mean["rewrite_ratio"], mean["granularity"]) == (3.5, 0.25, 0.5)
    assert (first["opcode"], first["rewrite_ratio"], first["granularity"]) == (2, None, 0.5)
    assert mean["unique_reads"] is None


def test_another_word_for_the_invocations_is_refused() -> None:
    word: Any = "foo"
    with pytest.raises(InputError, match="invocations: expected mean or first, found 'foo'"):
        join(rows.dataset(), invocations=word)


def test_a_cell_without_a_profile_stays() -> None:
    row = only(rows.dataset(profiles=[rows.profile("other", opcode=9)], records=[rows.record()]))
    assert {row[metric.name] for metric in METRICS} == {None}


def test_descriptors_of_the_device_are_there() -> None:
    devices = [rows.device("gpu", cores=2048), rows.device(cores=8, clock_hz=3e9)]
    row = only(rows.dataset(devices=devices, records=[rows.record()]))
    assert (row["device"], row["device_name"], row["device_cores"], row["device_clock_hz"]) == (
        *("cpu", "the cpu"),
        *(8, 3e9),
    )
    assert row["device_vendor"] is None


def test_records_of_a_session_that_failed_are_left_out() -> None:
    dataset = rows.dataset(
        records=[rows.record(0, [1.0]), rows.record(0, [3.0], repeat=1)],
        sessions=[rows.session(failure="wrong result"), rows.session(repeat=1)],
    )
    assert only(dataset)["time_median_s"] == 3


def test_nothing_joins_to_nothing() -> None:
    table = join(rows.dataset(profiles=[rows.profile()]))
    assert table.num_rows == 0
    check(JOINED, table, "joined")


def test_the_view_has_units_and_can_be_written(tmp_path: Path) -> None:
    table = join(rows.dataset(records=[rows.record()]))
    write_table(table, tmp_path / "joined.parquet")
    assert read_table(tmp_path / "joined.parquet", JOINED).equals(table)
    assert table.schema.field("time_median_s").metadata == {b"unit": b"s"}
    assert table.schema.field("device_memory_bytes").metadata == {b"unit": b"B"}


@given(st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=4), min_size=1, max_size=12))
def test_the_median_is_that_of_numpy(times: list[list[float]]) -> None:
    row = only(rows.dataset(records=[rows.record(run, values) for run, values in enumerate(times)]))
    assert row["time_median_s"] == pytest.approx(np.median([np.mean(values) for values in times]), rel=1e-12)


def made_up_cells(kernels: int, devices: int, runs: int, invocations: int) -> Dataset:
    """A dataset with random times and metrics, built column by column."""
    random = np.random.default_rng(1)
    count = kernels * devices * runs
    number = np.arange(count)
    device_names = [f"device {n}" for n in range(devices)]
    records = {
        "application": ["a"] * count,
        "kernel": [f"k{n}" for n in number // (devices * runs)],
        "size": ["tiny"] * count,
        "device": [device_names[n] for n in number // runs % devices],
        "configuration": ["{}"] * count,
        "repeat": np.zeros(count, np.int64),
        "run": number % runs,
        "time_s": random.lognormal(size=(count, 1)).tolist(),
    }
    launches = kernels * invocations
    profiles = {
        "application": ["a"] * launches,
        "size": ["tiny"] * launches,
        "kernel": [f"k{n}" for n in np.arange(launches) // invocations],
        "invocation": np.arange(launches) % invocations,
        **{metric.name: random.integers(1, 1000, launches) for metric in METRICS},
    }
    return Dataset(
        "made up",
        table_of(DEVICES, [rows.device(name) for name in device_names]),
        table_of(PROFILES, pa.table(profiles).to_pylist()),
        table_of(RECORDS, pa.table(records).to_pylist()),
    )


def test_a_published_datasets_size_joins_within_a_second() -> None:
    dataset = made_up_cells(kernels=107, devices=15, runs=40, invocations=234)
    assert (dataset.records.num_rows, dataset.profiles.num_rows) == (64_200, 25_038)
    started = time.process_time()
    table = join(dataset)
    assert time.process_time() - started < 1
    assert table.num_rows == 107 * 15
    assert set(table.column("runs").to_pylist()) == {40}


def test_published_times_have_the_statistics_that_another_program_computed() -> None:
    data = shared_data("aiwc2018")
    runs = pq.read_table(data / "runtimes.parquet").to_pylist()
    order: dict[tuple[str, ...], int] = {}
    records = []
    for run in runs:
        key = {name: run[name] for name in ("application", "kernel", "size", "device")}
        number = order[tuple(key.values())] = order.get(tuple(key.values()), -1) + 1
        records.append(rows.record(number, [run["kernel_time_us"] / 1e6], **key))
    devices = [rows.device(name) for name in sorted({run["device"] for run in runs})]
    table = join(rows.dataset(devices=devices, records=records))
    found = {tuple(row[name] for name in JOINED.key[:4]): row for row in table.to_pylist()}
    expected = pq.read_table(data / "joined_cells.parquet").to_pylist()
    assert len(found) == len(expected) == 1560
    for row in expected:
        cell = found[tuple(row[name] for name in JOINED.key[:4])]
        assert cell["runs"] == row["n"]
        for ours, theirs in (
            ("median", "median"),
            ("mean", "mean"),
            ("sd", "sd"),
            ("min", "min"),
            ("max", "max"),
        ):
            assert cell[f"time_{ours}_s"] == pytest.approx(row[f"{theirs}_us"] / 1e6, rel=1e-9, abs=1e-15)
