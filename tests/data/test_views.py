"""Configurations, and the views of runs on them: times, powers and counters of each cell."""

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration, parse_configurations
from crosscast.data.dataset import Dataset
from crosscast.data.schema import device_domains
from crosscast.data.table import check
from crosscast.data.views import JOINED, configured, join
from crosscast.errors import InputError
from support import tables as rows
from support.refusals import refusal, refusals

Row = dict[str, Any]


def energy(domain: str, watts: float, duration_s: float = 2.0, **cells: Any) -> Row:
    return rows.energy(domain=domain, energy_j=watts * duration_s, duration_s=duration_s, **cells)


def only(dataset: Dataset, **options: Any) -> Row:
    (row,) = configured(dataset, **options).to_pylist()
    return dict(row)


def power(*energies: Row, domain: str | None = None) -> float | None:
    """Power of a cell with these rows of energy."""
    watts: float | None = only(rows.dataset(records=[rows.record()], energy=energies), domain=domain)[
        "power_w"
    ]
    return watts


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
        ([energy("package-0", 50.0), energy("package-0/core", 20.0)], 50.0),
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
        found = configured(rows.dataset(records=records, energy=energies)).to_pylist()
        assert {row["kernel"]: row["power_w"] for row in found} == watts


def test_a_domain_may_be_chosen_of_those_that_were_measured() -> None:
    energies = [energy("cpu", 50.0), energy("node", 90.0)]
    row = only(rows.dataset(records=[rows.record()], energy=energies), domain="cpu")
    assert (row["power_w"], json.loads(row["powers"])) == (50.0, {"cpu": 50.0, "node": 90.0})
    expected = "power_domain: expected one whose power made up has (cpu, node), found 'dram'"
    assert refusal(power, *energies, domain="dram") == expected
    assert "has (none), found 'gpu'" in refusal(power, domain="gpu")


def test_what_sessions_that_failed_left_is_passed_over() -> None:
    dataset = rows.dataset(
        records=[rows.record(0, [1.0]), rows.record(0, [3.0], repeat=1)],
        energy=[energy("gpu", 10.0), energy("gpu", 30.0, repeat=1)],
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
def test_counters_are_those_of_all_processes(sessions: list[Row], counters: dict[str, float] | None) -> None:
    row = only(rows.dataset(records=[rows.record()], sessions=sessions))
    assert json.loads(row["counters"] or "null") == counters


@pytest.mark.parametrize("counters", [{"cycles": "many"}, {"cycles": True}, {"cycles": 10**400}, [1.0], 3])
def test_counters_that_are_no_numbers_by_name_are_refused(counters: Any) -> None:
    sessions = [rows.session(counters=counters)]
    with pytest.raises(InputError, match=r"column 'counters' of sums, tiny, cpu, \{\}, 0: expected"):
        configured(rows.dataset(records=[rows.record()], sessions=sessions))


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
    for row in configured(rows.dataset(records=records, energy=energies)).to_pylist():
        expected = {}
        for domain in ("cpu", "gpu"):
            of_it = [watched[key] for key in watched if key[:2] == (row["application"], domain)]
            if of_it:
                joules, seconds = np.sum(of_it, axis=0)
                expected[domain] = pytest.approx(joules / seconds)
        assert json.loads(row["powers"] or "{}") == expected


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


def test_the_order_of_settings_does_not_matter() -> None:
    one = Configuration("node", {"gpu_cap_w": 100, "cpu_cap_w": 65})
    other = Configuration("node", {"cpu_cap_w": 65.0, "gpu_cap_w": 100.0})
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == "node: cpu cap 65 W, gpu cap 100 W"


def test_a_configuration_goes_through_tables_and_processes() -> None:
    one = Configuration.of("xu3", '{"cores": 4, "cluster": "big"}')
    assert one.to_dict() == {"device": "xu3", "settings": {"cluster": "big", "cores": 4.0}}
    assert pickle.loads(pickle.dumps(one)) == one


@refusals("settings")
def test_what_is_no_setting_is_refused(settings: str) -> None:
    assert "configuration" in refusal(Configuration.of, "xu3", settings)


def test_configurations_are_separated_by_semicolons() -> None:
    assert parse_configurations("samples", "cpu: cores=4, way=even ; gpu:clock_hz=1.5e9", ["cpu", "gpu"]) == [
        Configuration("cpu", {"cores": 4.0, "way": "even"}),
        Configuration("gpu", {"clock_hz": 1.5e9}),
    ]


def test_the_only_device_may_be_left_out() -> None:
    assert parse_configurations("samples", "cores=4;cpu:cores=2", ["cpu"]) == [
        Configuration("cpu", {"cores": 4.0}),
        Configuration("cpu", {"cores": 2.0}),
    ]


@refusals("text sentence")
def test_what_is_no_configuration_is_refused(text: str, sentence: str) -> None:
    assert sentence in refusal(parse_configurations, "samples", text, ["cpu", "gpu"])
