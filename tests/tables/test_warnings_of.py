import dataset_rows as rows
import pytest

from crosscast.data.description import RecordWarning, warnings_of

STEADY = [rows.record(run, [1e-3]) for run in range(50)]


def found(records: list[rows.Row], *sessions: rows.Row) -> list[RecordWarning]:
    dataset = rows.dataset(
        devices=[rows.device(), rows.device("gpu")], records=records, sessions=sessions or [rows.session()]
    )
    return warnings_of(dataset.records, dataset.sessions)


def test_a_steady_session_has_no_warnings() -> None:
    facts = {"clock_before_hz": 2e9, "clock_after_hz": 2.09e9, "load_before": 0.5, "load_after": 0.0}
    assert found(STEADY, rows.session(timer_resolution_s=1e-5, loop_s=2.0, **facts)) == []


def test_nothing_known_of_sessions_is_no_warning() -> None:
    dataset = rows.dataset(records=STEADY)
    assert warnings_of(dataset.records, dataset.sessions) == []
    empty = rows.dataset()
    assert warnings_of(empty.records, empty.sessions) == []


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


def test_the_spread_is_that_of_run_means() -> None:
    assert found([rows.record(run, [1e-3, 3e-3]) for run in range(50)]) == []


def test_processes_that_differ_spread() -> None:
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


def test_a_session_whose_runs_nobody_recorded_is_not_judged_by_those_that_were_kept() -> None:
    assert found(STEADY[:40], rows.session(runs=None)) == []
    assert found(STEADY[:40], rows.session(runs=50)) == []


SETTINGS = '{"cores": 4.0}'


def test_few_runs_of_a_sweep_that_others_measured_are_no_warning() -> None:
    records = [rows.record(run, configuration=SETTINGS) for run in range(2)]
    assert found(records, rows.session(configuration=SETTINGS, runs=2)) == []
    dataset = rows.dataset(records=records)
    assert warnings_of(dataset.records, dataset.sessions) == []


def test_few_runs_on_settings_that_were_measured_here_are_a_warning() -> None:
    records = [rows.record(run, configuration=SETTINGS) for run in range(2)]
    (warning,) = found(records, rows.session(configuration=SETTINGS, runs=2, environment={"host": "a"}))
    assert (warning.rule, warning.configuration) == ("runs", SETTINGS)


def test_a_session_that_failed_is_left_out() -> None:
    assert found([rows.record()], rows.session(failure="wrong result", loop_s=0.1)) == []
