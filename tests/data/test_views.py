"""Views of runs on configurations, and what a dataset holds: counts, gaps, noise, and doubtful times."""

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration, parse_configurations
from crosscast.data.dataset import Dataset
from crosscast.data.description import RecordWarning, describe, warnings_of
from crosscast.data.table import Table, check
from crosscast.data.views import JOINED, configured, join
from support import tables as rows
from support.refusals import refusal, refusals

Row = dict[str, Any]


def energy(domain: str, watts: float, duration_s: float | None = 2.0, **cells: Any) -> Row:
    return rows.energy(domain=domain, energy_j=watts * (duration_s or 1), duration_s=duration_s, **cells)


def only(dataset: Dataset, view: Callable[..., Table] = configured, **options: Any) -> Row:
    (row,) = view(dataset, **options).to_pylist()
    return dict(row)


def power(*energies: Row, domain: str | None = None) -> Any:
    """Power of a cell with these rows of energy."""
    return only(rows.dataset(records=[rows.record()], energy=energies), domain=domain)["power_w"]


def test_the_power_of_a_cell_is_that_of_its_whole_device() -> None:
    for energies, watts in (
        # The node where it is measured, else the sum of domains side by side.
        ([energy("cpu", 50.0), energy("gpu", 20.0), energy("node", 90.0)], 90.0),
        ([energy("package-0", 50.0), energy("package-1", 20.0), energy("gpu", 5.0)], 75.0),
        # A domain inside another that is there is not counted twice.
        ([energy("package-0", 50.0), energy("package-0/core", 20.0)], 50.0),
        ([energy("psys", 60.0), energy("package-0", 50.0), energy("a", 1.0), energy("a/b/c", 2.0)], 61.0),
        # Without a duration, energy says nothing of power.
        ([energy("gpu", 9.0, None)], None),
        ([energy("gpu", 9.0, 0.0)], None),
    ):
        assert power(*energies) == watts


def test_energy_of_the_application_stands_for_kernels_that_have_none_of_their_own() -> None:
    records = [rows.record(kernel=kernel) for kernel in ("scale", "sum")]
    whole, own = energy("gpu", 50.0), energy("gpu", 70.0, kernel="sum")
    for energies, watts in (([whole], [50.0, 50.0]), ([whole, own], [50.0, 70.0])):
        found = configured(rows.dataset(records=records, energy=energies))
        assert found.column("power_w").to_pylist() == watts


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


def test_counters_are_those_of_all_processes() -> None:
    counted = [
        rows.session(runs=10, counters={"cycles": 50, "faults": 4}),
        rows.session(repeat=1, runs=30, counters={"cycles": 30, "faults": None}),
    ]
    # A session that does not say its runs counted one.
    one = [rows.session(runs=None, counters={"ipc": 1.5})]
    nothing = [[rows.session(counters=each)] for each in (None, {}, {"cycles": None})]
    for sessions, counters in (
        *((counted, {"cycles": 2.0, "faults": 0.4}), (one, {"ipc": 1.5})),
        *((each, None) for each in nothing),
    ):
        row = only(rows.dataset(records=[rows.record()], sessions=sessions))
        assert json.loads(row["counters"] or "null") == counters


def test_counters_that_are_no_numbers_by_name_are_refused() -> None:
    wrong: list[Any] = [{"cycles": "many"}, {"cycles": True}, {"cycles": 10**400}, [1.0], 3]
    for counters in wrong:
        counted = rows.dataset(records=[rows.record()], sessions=[rows.session(counters=counters)])
        assert "column 'counters' of sums, tiny, cpu, {}, 0: expected" in refusal(configured, counted)


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
                expected[domain] = pytest.approx(np.divide(*np.sum(of_it, axis=0)))
        assert json.loads(row["powers"] or "{}") == expected


def test_a_cell_has_the_statistics_of_its_run_means() -> None:
    records = [rows.record(0, [1.0, 3.0]), rows.record(1, [4.0]), rows.record(2, [9.0, 9.0, 9.0])]
    row = only(rows.dataset(records=records), join)
    assert row["runs"] == 3
    assert (row["time_min_s"], row["time_median_s"], row["time_mean_s"], row["time_max_s"]) == (2, 4, 5, 9)
    assert row["time_sd_s"] == pytest.approx(13**0.5)


def test_what_differs_in_the_key_is_another_cell_but_a_process_is_not() -> None:
    cells = {"kernel": "k", "size": "small", "application": "a", "configuration": '{"cores": 1}'}
    others = [rows.record() | {name: cell} for name, cell in cells.items()]
    table = join(rows.dataset(records=[rows.record(), rows.record(repeat=1), *others]))
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
    for how, expected in (("mean", (3.5, 0.25, 0.5, None)), ("first", (2, None, 0.5, None))):
        row = only(dataset, join, invocations=how)
        names = ("opcode", "rewrite_ratio", "granularity", "unique_reads")
        assert tuple(row[name] for name in names) == expected
    assert "invocations: expected mean or first" in refusal(join, dataset, invocations="foo")


def test_a_configuration_has_settings_in_order_and_goes_through_tables_and_processes() -> None:
    one = Configuration("node", {"gpu_cap_w": 100, "cpu_cap_w": 65})
    other = Configuration("node", {"cpu_cap_w": 65.0, "gpu_cap_w": 100.0})
    assert (one, hash(one)) == (other, hash(other))
    assert str(one) == "node: cpu cap 65 W, gpu cap 100 W"
    word = Configuration.of("xu3", '{"cores": 4, "cluster": "big"}')
    assert word.to_dict() == {"device": "xu3", "settings": {"cluster": "big", "cores": 4.0}}
    assert pickle.loads(pickle.dumps(word)) == word


@refusals("settings")
def test_what_is_no_setting_is_refused(settings: str) -> None:
    assert "configuration" in refusal(Configuration.of, "xu3", settings)


def test_configurations_are_separated_by_semicolons_and_the_only_device_may_be_left_out() -> None:
    assert parse_configurations("samples", "cpu: cores=4, way=even ; gpu:clock_hz=1.5e9", ["cpu", "gpu"]) == [
        Configuration("cpu", {"cores": 4.0, "way": "even"}),
        Configuration("gpu", {"clock_hz": 1.5e9}),
    ]
    found = parse_configurations("samples", "cores=4;cpu:cores=2", ["cpu"])
    assert found == [Configuration("cpu", {"cores": cores}) for cores in (4.0, 2.0)]


@refusals("text sentence")
def test_what_is_no_configuration_is_refused(text: str, sentence: str) -> None:
    assert sentence in refusal(parse_configurations, "samples", text, ["cpu", "gpu"])


def set_to(device: str, run: int = 0, **settings: float | str) -> rows.Row:
    return rows.record(run, device=device, configuration=json.dumps(settings, sort_keys=True))


DEVICES = [rows.device("cpu"), rows.device("gpu"), rows.device("idle")]


def test_domains_are_those_whose_power_is_known() -> None:
    energies = [
        rows.energy(device="cpu", domain="package-1", duration_s=1.0),
        rows.energy(device="cpu", domain="package-0", duration_s=1.0),
        rows.energy(device="cpu", domain="psys"),
        rows.energy(device="cpu", domain="dram", duration_s=0.0),
    ]
    records = [set_to("cpu", threads=1.0), set_to("gpu", threads=1.0)]
    found = describe(rows.dataset(devices=DEVICES, records=records, energy=energies)).configurations
    assert [each.domains for each in found] == [("package-0", "package-1"), ()]


def test_what_failed_is_no_configuration_and_one_that_tells_nothing_of_knobs_is_counted() -> None:
    failed = rows.session(device="cpu", configuration='{"threads": 2.0}', failure="wrong result")
    records = [set_to("cpu", threads=1.0), set_to("cpu", threads=2.0)]
    (found,) = describe(rows.dataset(devices=DEVICES, records=records, sessions=[failed])).configurations
    assert (found.configurations, found.settings) == (1, {"threads": (1.0,)})
    records = [rows.record(configuration="[1]"), rows.record(configuration='{"threads": 1.0}')]
    (found,) = describe(rows.dataset(records=records)).configurations
    assert (found.configurations, found.settings) == (2, {"threads": (1.0,)})


def test_the_noise_of_a_cell_is_its_spread_and_quartiles() -> None:
    records = [rows.record(run, [time]) for run, time in enumerate([1.0, 2.0, 3.0, 4.0])]
    (noise,) = describe(rows.dataset(records=records)).noise
    assert noise.runs == 4
    assert noise.relative_sd == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2.5)
    assert noise.quartiles_s == (1.75, 2.5, 3.25)


STEADY = [rows.record(run, [1e-3]) for run in range(50)]


def found(records: list[rows.Row], *sessions: rows.Row) -> list[RecordWarning]:
    dataset = rows.dataset(devices=DEVICES, records=records, sessions=sessions or [rows.session()])
    return warnings_of(dataset.records, dataset.sessions)


@refusals("facts rule sentence")
def test_what_a_session_saw_is_a_warning(facts: dict[str, float], rule: str, sentence: str) -> None:
    cell = {"application": "sums", "size": "tiny", "device": "cpu", "configuration": "{}"}
    (warning,) = found(STEADY, rows.session(**facts))
    assert vars(warning) == {"rule": rule, "warning": sentence, **cell, "kernel": None, "repeat": 0}


def test_times_that_spread_are_a_warning_of_their_kernel() -> None:
    wide = [rows.record(run, [1e-3 * (1 + run % 2)], kernel="wide") for run in range(50)]
    (warning,) = found(STEADY + wide)
    assert (warning.rule, warning.kernel, warning.repeat) == ("spread", "wide", None)
    other = [rows.record(run, [2e-3], repeat=1) for run in range(50)]
    assert [warning.rule for warning in found(STEADY + other)] == ["spread"]


def test_times_that_the_timer_of_their_session_cannot_tell_are_a_warning() -> None:
    (coarse,) = found(STEADY, rows.session(timer_resolution_s=2e-5))
    assert coarse.rule == "ticks"
    assert coarse.warning == "its mean time of 1 ms is less than 100 times the timer's resolution (20 µs)"
    again = [rows.record(run, [1e-3], repeat=1) for run in range(50)]
    both = rows.session(timer_resolution_s=2e-5), rows.session(repeat=1, timer_resolution_s=1e-9)
    assert found(STEADY + again, *both) == [coarse]
    (below,) = found(STEADY, rows.session(timer_resolution_s=2e-3))
    assert below.rule == "resolution"
    assert below.warning == "50 of its 50 runs have a time of 0 or under the timer's resolution (2 ms)"
    other = [rows.record(run, [1e-3], device="gpu") for run in range(50)]
    sessions = rows.session(device="gpu", timer_resolution_s=1e-4), rows.session(timer_resolution_s=1e-9)
    assert [(w.rule, w.device) for w in found(STEADY + other, *sessions)] == [("ticks", "gpu")]
    times = [[0.0, *[1e-3] * 99], *[[1e-3] * 100] * 49]
    (zero,) = found([rows.record(run, values) for run, values in enumerate(times)])
    assert zero.warning == "1 of its 50 runs has a time of 0 or under the timer's resolution"


def test_without_sessions_the_runs_are_those_of_the_records() -> None:
    dataset = rows.dataset(records=[rows.record(n // 2, kernel=f"k{n % 2}") for n in range(98)])
    (warning,) = warnings_of(dataset.records, dataset.sessions)
    assert (warning.rule, warning.kernel, warning.repeat) == ("runs", None, 0)
    assert warning.warning == "its session has 49 runs, fewer than 50"
