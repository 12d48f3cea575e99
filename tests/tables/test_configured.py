"""The view of configured runs: times, powers and counters of each cell."""

import json
from typing import Any

import dataset_rows as rows
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.dataset import Dataset, bundled_dataset
from crosscast.data.schema import json_text
from crosscast.data.table import check
from crosscast.data.views import CONFIGURED, configured
from crosscast.errors import InputError

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


def test_power_is_all_energy_over_all_time() -> None:
    assert power(energy("package-0", 10.0, 1.0), energy("package-0", 40.0, 2.0, repeat=1)) == 30.0


def test_energy_of_the_application_stands_for_all_of_its_kernels() -> None:
    records = [rows.record(kernel=kernel) for kernel in ("sum", "scale")]
    table = configured(rows.dataset(records=records, energies=[energy("gpu", 50.0)]))
    assert table.column("power_w").to_pylist() == [50.0, 50.0]


def test_energy_of_a_kernel_alone_is_taken_before_that_of_its_application() -> None:
    records = [rows.record(kernel=kernel) for kernel in ("sum", "scale")]
    energies = [energy("gpu", 50.0), energy("gpu", 70.0, kernel="sum")]
    found = configured(rows.dataset(records=records, energies=energies)).to_pylist()
    assert {row["kernel"]: row["power_w"] for row in found} == {"scale": 50.0, "sum": 70.0}


def test_the_only_domain_is_the_power() -> None:
    assert power(energy("gpu", 50.0)) == 50.0


def test_the_node_is_the_power_where_it_is_measured() -> None:
    assert power(energy("cpu", 50.0), energy("gpu", 20.0), energy("node", 90.0)) == 90.0


def test_domains_side_by_side_are_summed() -> None:
    assert power(energy("package-0", 50.0), energy("package-1", 20.0), energy("gpu", 5.0)) == 75.0


@pytest.mark.parametrize("inner", ["package-0/core", "package-0/dram", "package-0/core/0"])
def test_a_domain_inside_another_is_not_counted_twice(inner: str) -> None:
    assert power(energy("package-0", 50.0), energy(inner, 20.0)) == 50.0


def test_a_domain_inside_one_that_is_not_there_is_counted() -> None:
    assert power(energy("package-0/core", 20.0), energy("package-0/dram", 3.0)) == 23.0


def test_packages_are_inside_their_platform() -> None:
    assert power(energy("psys", 60.0), energy("package-0", 50.0), energy("gpu", 5.0)) == 65.0


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


def test_a_domain_may_be_chosen() -> None:
    row = only(
        rows.dataset(records=[rows.record()], energies=[energy("cpu", 50.0), energy("node", 90.0)]),
        domain="cpu",
    )
    assert row["power_w"] == 50.0
    assert json.loads(row["powers"]) == {"cpu": 50.0, "node": 90.0}


def test_a_domain_that_nothing_measured_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError) as caught:
        power(energy("cpu", 50.0), energy("gpu", 5.0), domain="dram")
    assert str(caught.value) == "domain: expected one whose power made up has (cpu, gpu), found 'dram'"
    with pytest.raises(InputError, match=r"has \(none\), found 'gpu'"):
        power(domain="gpu")


@pytest.mark.parametrize("duration_s", [None, 0.0])
def test_energy_without_a_duration_says_nothing_of_power(duration_s: float | None) -> None:
    row = only(
        rows.dataset(
            records=[rows.record()], energies=[rows.energy(domain="gpu", energy_j=9.0, duration_s=duration_s)]
        )
    )
    assert (row["power_w"], row["powers"]) == (None, None)


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


def test_counters_are_those_of_a_run_over_all_processes() -> None:
    sessions = [
        rows.session(runs=10, counters={"cycles": 50, "faults": 4}),
        rows.session(repeat=1, runs=30, counters={"cycles": 30, "faults": None}),
    ]
    row = only(rows.dataset(records=[rows.record()], sessions=sessions))
    assert json.loads(row["counters"]) == {"cycles": 2.0, "faults": 0.4}


def test_counters_of_a_session_that_does_not_say_its_runs_are_of_one() -> None:
    sessions = [rows.session(runs=None, counters={"ipc": 1.5})]
    row = only(rows.dataset(records=[rows.record()], sessions=sessions))
    assert json.loads(row["counters"]) == {"ipc": 1.5}


@pytest.mark.parametrize("counters", [None, {}, {"cycles": None}])
def test_nothing_counted_is_no_counters(counters: Any) -> None:
    sessions = [rows.session(counters=counters)]
    assert only(rows.dataset(records=[rows.record()], sessions=sessions))["counters"] is None


@pytest.mark.parametrize("counters", [{"cycles": "many"}, {"cycles": True}, [1.0], 3])
def test_counters_that_are_no_numbers_by_name_are_refused(counters: Any) -> None:
    sessions = [rows.session(counters=counters)]
    with pytest.raises(InputError, match=r"column 'counters' of sums, tiny, cpu, \{\}, 0: expected"):
        configured(rows.dataset(records=[rows.record()], sessions=sessions))


def test_nothing_gives_no_rows() -> None:
    table = configured(rows.dataset())
    assert table.num_rows == 0
    check(CONFIGURED, table, "configured")


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
