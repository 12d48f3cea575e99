"""What a dataset holds: settings, counts, what is missing, noise, and what makes times doubtful."""

import json

import numpy as np
import pytest

from crosscast.data.description import RecordWarning, describe, warnings_of
from support import tables as rows


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


def test_a_size_that_is_a_kernels_own_is_not_missing_of_others() -> None:
    dataset = rows.dataset(
        devices=[rows.device(), rows.device("gpu")],
        records=[rows.record(kernel="long", size="4096x4"), rows.record(kernel="square", size="64x64")],
        sessions=[rows.session(size="128x128", kernels=["square"], device="gpu", failure="out of memory")],
    )
    found = describe(dataset)
    assert found.kernel_sizes == {"sums/long": ("4096x4",), "sums/square": ("128x128", "64x64")}
    assert [(m.kernel, m.size, m.device) for m in found.missing if m.lacks == "records"] == [
        ("long", "4096x4", "gpu"),
        ("square", "128x128", "cpu"),
        ("square", "128x128", "gpu"),
        ("square", "64x64", "gpu"),
    ]


def test_the_noise_of_a_cell_is_its_spread_and_quartiles() -> None:
    records = [rows.record(run, [time]) for run, time in enumerate([1.0, 2.0, 3.0, 4.0])]
    (noise,) = describe(rows.dataset(records=records)).noise
    assert noise.runs == 4
    assert noise.relative_sd == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2.5)
    assert noise.quartiles_s == (1.75, 2.5, 3.25)


STEADY = [rows.record(run, [1e-3]) for run in range(50)]


def found(records: list[rows.Row], *sessions: rows.Row) -> list[RecordWarning]:
    dataset = rows.dataset(
        devices=[rows.device(), rows.device("gpu")], records=records, sessions=sessions or [rows.session()]
    )
    return warnings_of(dataset.records, dataset.sessions)


@pytest.mark.parametrize(
    ("facts", "rule", "sentence"),
    [
        (
            {"clock_before_hz": 2e9, "clock_after_hz": 1.8e9},
            "clock",
            "the clock changed by -10 % during its runs, more than 5 %",
        ),
        (
            {"clock_before_hz": 2e9, "clock_after_hz": 2.2e9},
            "clock",
            "the clock changed by +10 % during its runs, more than 5 %",
        ),
        ({"load_before": 0.75}, "load", "0.75 other processes wanted to run before its runs, more than 0.5"),
        ({"load_after": 3.0}, "load", "3 other processes wanted to run after its runs, more than 0.5"),
        ({"load_after": 1.0}, "load", "1 other process wanted to run after its runs, more than 0.5"),
        ({"runs": 49}, "runs", "its session has 49 runs, fewer than 50"),
        ({"runs": 1}, "runs", "its session has 1 run, fewer than 50"),
        ({"loop_s": 1.5}, "loop", "its runs took 1.5 s, less than 2 s"),
    ],
)
def test_what_a_session_saw_is_a_warning(facts: dict[str, float], rule: str, sentence: str) -> None:
    (warning,) = found(STEADY, rows.session(**facts))
    assert vars(warning) == {
        "rule": rule,
        "warning": sentence,
        "application": "sums",
        "size": "tiny",
        "device": "cpu",
        "configuration": "{}",
        "kernel": None,
        "repeat": 0,
    }


def test_times_that_spread_are_a_warning_of_their_kernel() -> None:
    wide = [rows.record(run, [1e-3 * (1 + run % 2)], kernel="wide") for run in range(50)]
    (warning,) = found(STEADY + wide)
    assert (warning.rule, warning.kernel, warning.repeat) == ("spread", "wide", None)
    assert warning.warning == (
        "the times of its 50 runs spread by 34 % (standard deviation over mean), more than 10 %"
    )
    other = [rows.record(run, [2e-3], repeat=1) for run in range(50)]
    assert [warning.rule for warning in found(STEADY + other)] == ["spread"]


def test_times_that_the_timer_cannot_tell_are_a_warning() -> None:
    (coarse,) = found(STEADY, rows.session(timer_resolution_s=2e-5))
    assert coarse.rule == "ticks"
    assert coarse.warning == "its mean time of 1 ms is less than 100 times the timer's resolution (20 µs)"
    (below,) = found(STEADY, rows.session(timer_resolution_s=2e-3))
    assert below.rule == "resolution"
    assert below.warning == "50 of its 50 runs have a time of 0 or under the timer's resolution (2 ms)"


def test_a_time_of_0_is_a_warning_whatever_the_timer() -> None:
    times = [[0.0, *[1e-3] * 99], *[[1e-3] * 100] * 49]
    (warning,) = found([rows.record(run, values) for run, values in enumerate(times)])
    assert warning.rule == "resolution"
    assert warning.warning == "1 of its 50 runs has a time of 0 or under the timer's resolution"


def test_the_timer_is_that_of_the_records_session() -> None:
    other = [rows.record(run, [1e-3], device="gpu") for run in range(50)]
    coarse = rows.session(device="gpu", timer_resolution_s=1e-4)
    fine = rows.session(timer_resolution_s=1e-9)
    assert [(w.rule, w.device) for w in found(STEADY + other, coarse, fine)] == [("ticks", "gpu")]


def test_without_sessions_the_runs_are_those_of_the_records() -> None:
    records = [rows.record(run, kernel=kernel) for run in range(49) for kernel in ("first", "second")]
    dataset = rows.dataset(records=records)
    (warning,) = warnings_of(dataset.records, dataset.sessions)
    assert (warning.rule, warning.kernel, warning.repeat) == ("runs", None, 0)
    assert warning.warning == "its session has 49 runs, fewer than 50"
