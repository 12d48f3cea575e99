"""The view of configured runs: times, powers and counters of each cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.dataset import Dataset, bundled_dataset
from crosscast.data.schema import json_text
from crosscast.data.table import check, read_table, write_table
from crosscast.data.views import CONFIGURED, JOINED, configured, device_domains, join
from crosscast.errors import InputError
from crosscast.profile import METRICS
from support import tables as rows
from support.shared import shared_data

Row = dict[str, Any]


def energy(domain: str, watts: float, duration_s: float = 2.0, **cells: Any) -> Row:
    return rows.energy(domain=domain, energy_j=watts * duration_s, duration_s=duration_s, **cells)


def only(dataset: Dataset, **options: Any) -> Row:
    (row,) = configured(dataset, **options).to_pylist()
    return dict(row)


def power(*energies: Row, domain: str | None = None) -> float | None:
    """Power of a cell with these rows of energy."""
    watts: float | None = only(rows.dataset(records=[rows.record()], energies=energies), domain=domain)[
        "power_w"
    ]
    return watts


def test_a_cell_has_the_median_over_runs_and_processes_of_the_run_means() -> None:
    records = [rows.record(0, [1.0, 3.0]), rows.record(1, [5.0]), rows.record(0, [9.0], repeat=1)]
    row = only(rows.dataset(records=records))
    assert (row["runs"], row["time_s"]) == (3, 5.0)


def test_configurations_of_a_kernel_are_rows_of_their_own() -> None:
    settings = [json_text({"cores": cores}) for cores in (1.0, 2.0)]
    dataset = rows.dataset(
        records=[rows.record(0, [4.0 / n], configuration=text) for n, text in enumerate(settings, 1)],
        energies=[energy("node", 10.0 * n, configuration=text) for n, text in enumerate(settings, 1)],
    )
    found = configured(dataset).to_pylist()
    assert [(row["configuration"], row["time_s"], row["power_w"]) for row in found] == [
        (settings[0], 4.0, 10.0),
        (settings[1], 2.0, 20.0),
    ]


@pytest.mark.parametrize(
    ("energies", "watts"),
    [
        # All energy over all time.
        ([energy("package-0", 10.0, 1.0), energy("package-0", 40.0, 2.0, repeat=1)], 30.0),
        ([energy("gpu", 50.0)], 50.0),
        # The node where it is measured, else the sum of domains side by side.
        ([energy("cpu", 50.0), energy("gpu", 20.0), energy("node", 90.0)], 90.0),
        ([energy("package-0", 50.0), energy("package-1", 20.0), energy("gpu", 5.0)], 75.0),
        # A domain inside another that is there is not counted twice.
        *(
            ([energy("package-0", 50.0), energy(inner, 20.0)], 50.0)
            for inner in ("package-0/core", "package-0/dram", "package-0/core/0")
        ),
        ([energy("package-0/core", 20.0), energy("package-0/dram", 3.0)], 23.0),
        ([energy("psys", 60.0), energy("package-0", 50.0), energy("gpu", 5.0)], 65.0),
        # Without a duration, energy says nothing of power.
        ([rows.energy(domain="gpu", energy_j=9.0, duration_s=None)], None),
        ([rows.energy(domain="gpu", energy_j=9.0, duration_s=0.0)], None),
    ],
)
def test_the_power_of_a_cell_is_that_of_its_whole_device(energies: list[Row], watts: float | None) -> None:
    assert power(*energies) == watts


def test_energy_of_the_application_stands_for_kernels_that_have_none_of_their_own() -> None:
    records = [rows.record(kernel=kernel) for kernel in ("sum", "scale")]
    for energies, watts in (
        ([energy("gpu", 50.0)], {"scale": 50.0, "sum": 50.0}),
        ([energy("gpu", 50.0), energy("gpu", 70.0, kernel="sum")], {"scale": 50.0, "sum": 70.0}),
    ):
        found = configured(rows.dataset(records=records, energies=energies)).to_pylist()
        assert {row["kernel"]: row["power_w"] for row in found} == watts


def test_a_cell_that_lacks_a_domain_of_its_device_has_no_sum() -> None:
    dataset = rows.dataset(
        records=[rows.record(), rows.record(size="small")],
        energies=[energy("cpu", 5.0), energy("gpu", 7.0), energy("cpu", 6.0, size="small")],
    )
    found = {row["size"]: row for row in configured(dataset).to_pylist()}
    assert (found["tiny"]["power_w"], found["small"]["power_w"]) == (12.0, None)
    assert json.loads(found["small"]["powers"]) == {"cpu": 6.0}


def test_devices_have_powers_of_their_own_domains() -> None:
    dataset = rows.dataset(
        devices=[rows.device("cpu"), rows.device("gpu"), rows.device("phi")],
        records=[rows.record(device=device) for device in ("cpu", "gpu", "phi")],
        energies=[energy("package-0", 30.0), energy("gpu", 90.0, device="gpu")],
    )
    found = configured(dataset).to_pylist()
    assert {row["device"]: row["power_w"] for row in found} == {"cpu": 30.0, "gpu": 90.0, "phi": None}


def test_a_domain_may_be_chosen_of_those_that_were_measured() -> None:
    energies = [energy("cpu", 50.0), energy("node", 90.0)]
    row = only(rows.dataset(records=[rows.record()], energies=energies), domain="cpu")
    assert (row["power_w"], json.loads(row["powers"])) == (50.0, {"cpu": 50.0, "node": 90.0})
    with pytest.raises(InputError) as caught:
        power(*energies, domain="dram")
    assert str(caught.value) == "power_domain: expected one whose power made up has (cpu, node), found 'dram'"
    with pytest.raises(InputError, match=r"has \(none\), found 'gpu'"):
        power(domain="gpu")


def test_what_sessions_that_failed_left_is_passed_over() -> None:
    dataset = rows.dataset(
        records=[rows.record(0, [1.0]), rows.record(0, [3.0], repeat=1)],
        energies=[energy("gpu", 10.0), energy("gpu", 30.0, repeat=1)],
        sessions=[
            rows.session(failure="wrong result", counters={"cycles": 8.0}),
            rows.session(repeat=1, runs=2, counters={"cycles": 6.0}),
        ],
    )
    row = only(dataset)
    assert (row["runs"], row["time_s"], row["power_w"]) == (1, 3.0, 30.0)
    assert json.loads(row["counters"]) == {"cycles": 3.0}


@pytest.mark.parametrize(
    ("sessions", "counters"),
    [
        (
            [
                rows.session(runs=10, counters={"cycles": 50, "faults": 4}),
                rows.session(repeat=1, runs=30, counters={"cycles": 30, "faults": None}),
            ],
            {"cycles": 2.0, "faults": 0.4},
        ),
        # A session that does not say its runs counted one.
        ([rows.session(runs=None, counters={"ipc": 1.5})], {"ipc": 1.5}),
        *(([rows.session(counters=nothing)], None) for nothing in (None, {}, {"cycles": None})),
    ],
)
def test_counters_are_those_of_a_run_over_all_processes(
    sessions: list[Row], counters: dict[str, float] | None
) -> None:
    row = only(rows.dataset(records=[rows.record()], sessions=sessions))
    assert json.loads(row["counters"] or "null") == counters


@pytest.mark.parametrize("counters", [{"cycles": "many"}, {"cycles": True}, [1.0], 3])
def test_counters_that_are_no_numbers_by_name_are_refused(counters: Any) -> None:
    sessions = [rows.session(counters=counters)]
    with pytest.raises(InputError, match=r"column 'counters' of sums, tiny, cpu, \{\}, 0: expected"):
        configured(rows.dataset(records=[rows.record()], sessions=sessions))


def test_nothing_gives_no_rows() -> None:
    for view, schema in ((configured, CONFIGURED), (join, JOINED)):
        table = view(rows.dataset(profiles=[rows.profile()]))
        assert table.num_rows == 0
        check(schema, table, schema.table)


def test_rows_are_in_the_order_of_the_key_whatever_order_they_had() -> None:
    records = [rows.record(size=size, kernel=kernel) for size in ("b", "a") for kernel in ("y", "x")]
    energies = [energy(domain, 5.0, size=size) for size in ("a", "b") for domain in ("gpu", "cpu")]
    one = configured(rows.dataset(records=records, energies=energies))
    other = configured(rows.dataset(records=records[::-1], energies=energies[::-1]))
    assert one.equals(other)
    assert [(row["kernel"], row["size"]) for row in one.to_pylist()] == [
        *(("x", "a"), ("x", "b"), ("y", "a"), ("y", "b"))
    ]


def test_the_bundled_dataset_has_counters_and_no_power() -> None:
    table = configured(bundled_dataset())
    check(CONFIGURED, table, "configured")
    assert table.num_rows == 264
    assert table.column("power_w").null_count == 264
    assert table.column("counters").null_count == 0


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["cpu", "gpu"]), st.integers(0, 2)),
        st.tuples(st.floats(1e-3, 1e4), st.floats(1e-3, 1e3)),
        min_size=1,
    )
)
def test_powers_are_those_of_a_plain_loop(watched: dict[tuple[str, str, int], tuple[float, float]]) -> None:
    energies = [
        rows.energy(application=name, domain=domain, repeat=repeat, energy_j=joules, duration_s=seconds)
        for (name, domain, repeat), (joules, seconds) in watched.items()
    ]
    records = [rows.record(application=name) for name in "ab"]
    for row in configured(rows.dataset(records=records, energies=energies)).to_pylist():
        expected = {}
        for domain in ("cpu", "gpu"):
            of_it = [watched[key] for key in watched if key[:2] == (row["application"], domain)]
            if of_it:
                joules, seconds = np.sum(of_it, axis=0)
                expected[domain] = pytest.approx(joules / seconds)
        assert json.loads(row["powers"] or "{}") == expected


def test_counters_are_those_of_sessions_that_ran_the_kernel() -> None:
    dataset = rows.dataset(
        records=[rows.record(kernel="sum"), rows.record(kernel="scale", repeat=1)],
        sessions=[
            rows.session(runs=1, counters={"cycles": 5.0}),
            rows.session(runs=1, counters={"cycles": 7.0}, kernels=["scale"], repeat=1),
        ],
    )
    found = configured(dataset).to_pylist()
    assert {row["kernel"]: json.loads(row["counters"]) for row in found} == {
        "scale": {"cycles": 7.0},
        "sum": {"cycles": 5.0},
    }


def only_joined(dataset: Dataset, **options: Any) -> dict[str, Any]:
    (row,) = join(dataset, **options).to_pylist()
    return dict(row)


def test_a_cell_has_the_statistics_of_its_run_means() -> None:
    records = [rows.record(0, [1.0, 3.0]), rows.record(1, [4.0]), rows.record(2, [9.0, 9.0, 9.0])]
    row = only_joined(rows.dataset(records=records))
    assert row["runs"] == 3
    assert (row["time_min_s"], row["time_median_s"], row["time_mean_s"], row["time_max_s"]) == (2, 4, 5, 9)
    assert row["time_sd_s"] == pytest.approx(13**0.5)


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
    mean, first = only_joined(dataset), only_joined(dataset, invocations="first")
    assert (mean["opcode"], mean["rewrite_ratio"], mean["granularity"]) == (3.5, 0.25, 0.5)
    assert (first["opcode"], first["rewrite_ratio"], first["granularity"]) == (2, None, 0.5)
    assert mean["unique_reads"] is None


def test_another_word_for_the_invocations_is_refused() -> None:
    word: Any = "foo"
    with pytest.raises(InputError, match="invocations: expected mean or first, found 'foo'"):
        join(rows.dataset(), invocations=word)


def test_a_cell_without_a_profile_stays() -> None:
    row = only_joined(rows.dataset(profiles=[rows.profile("other", opcode=9)], records=[rows.record()]))
    assert {row[metric.name] for metric in METRICS} == {None}
    # One run has no deviation.
    assert row["time_sd_s"] is None


def test_descriptors_of_the_device_are_there() -> None:
    devices = [rows.device("gpu", cores=2048), rows.device(cores=8, clock_hz=3e9)]
    row = only_joined(rows.dataset(devices=devices, records=[rows.record()]))
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
    assert only_joined(dataset)["time_median_s"] == 3


def test_the_view_has_units_and_can_be_written(tmp_path: Path) -> None:
    table = join(rows.dataset(records=[rows.record()]))
    write_table(table, tmp_path / "joined.parquet")
    assert read_table(tmp_path / "joined.parquet", JOINED).equals(table)
    assert table.schema.field("time_median_s").metadata == {b"unit": b"s"}
    assert table.schema.field("device_memory_bytes").metadata == {b"unit": b"B"}


@given(st.lists(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=4), min_size=1, max_size=12))
def test_the_median_is_that_of_numpy(times: list[list[float]]) -> None:
    row = only_joined(rows.dataset(records=[rows.record(run, values) for run, values in enumerate(times)]))
    assert row["time_median_s"] == pytest.approx(np.median([np.mean(values) for values in times]), rel=1e-12)


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


@pytest.mark.parametrize(
    ("domains", "whole"),
    [
        ([], []),
        (["gpu"], ["gpu"]),
        (["gpu", "cpu", "node"], ["node"]),
        (["package-0", "package-0/core", "package-1", "gpu"], ["package-0", "package-1", "gpu"]),
        (["psys", "package-0", "package-0/dram"], ["psys"]),
        (["package-0/dram"], ["package-0/dram"]),
        (["a", "a/b/c"], ["a"]),
    ],
)
def test_domains_inside_of_others_are_no_part_of_the_sum(domains: list[str], whole: list[str]) -> None:
    assert device_domains(domains) == whole
