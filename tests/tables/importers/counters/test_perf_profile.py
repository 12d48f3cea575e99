"""What ``perf stat -j`` counted."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_counter_profiles import PERF, perf_file, perf_line

from crosscast.data.counters.perf import read_perf
from crosscast.errors import InputError


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_perf(path)
    return str(caught.value)


def test_events_are_counters_in_si_and_missing_ones_are_absent(tmp_path: Path) -> None:
    run = read_perf(perf_file(tmp_path / "sort.json", *PERF))
    assert run.counters == {"task-clock": 0.8, "instructions:u": 4000, "branches:u": 500}
    assert (run.name, run.uses_gpu) == ("sort", None)


def test_the_time_is_duration_time(tmp_path: Path) -> None:
    lines = [*PERF, perf_line("duration_time", "1500000000", "ns")]
    run = read_perf(perf_file(tmp_path / "p.json", *lines))
    assert run.time_s == pytest.approx(1.5)
    assert "duration_time" not in run.counters


def test_without_it_the_time_is_that_of_the_cpus_over_their_number(tmp_path: Path) -> None:
    assert read_perf(perf_file(tmp_path / "p.json", *PERF)).time_s == pytest.approx(2.0)


def test_without_either_there_is_no_time(tmp_path: Path) -> None:
    clock = perf_line("task-clock", "800.0", "msec")
    assert read_perf(perf_file(tmp_path / "p.json", clock)).time_s is None
    # Of two sockets, each with its share of the CPUs, nothing can be said.
    assert read_perf(perf_file(tmp_path / "p.json", PERF[0], PERF[0])).time_s is None


def test_values_of_one_event_on_several_cores_are_added_up(tmp_path: Path) -> None:
    lines = [perf_line("instructions", "10.0", core="S0-C0"), perf_line("instructions", "32.0", core="S0-C1")]
    assert read_perf(perf_file(tmp_path / "p.json", *lines)).counters == {"instructions": 42}


@pytest.mark.parametrize(
    ("text", "value"), [("1,234,567", 1234567), ("3805,723968", 3805.723968), ("12", 12), ("1.5e3", 1500)]
)
def test_separators_of_a_locale_are_understood(tmp_path: Path, text: str, value: float) -> None:
    path = perf_file(tmp_path / "p.json", perf_line("cycles", text))
    assert read_perf(path).counters["cycles"] == pytest.approx(value)


def test_energies_and_sizes_are_in_joules_and_bytes(tmp_path: Path) -> None:
    lines = [perf_line("power/energy-pkg/", "12.5", "Joules"), perf_line("uncore_imc/reads/", "3.0", "MiB")]
    counters = read_perf(perf_file(tmp_path / "p.json", *lines)).counters
    assert counters == {"power/energy-pkg/": 12.5, "uncore_imc/reads/": 3 * 2**20}


def test_metrics_without_an_event_are_passed_over(tmp_path: Path) -> None:
    path = perf_file(tmp_path / "p.json", *PERF, '{"metric-value" : "1.2", "metric-unit" : "insn per cycle"}')
    assert len(read_perf(path).counters) == 3


@given(seed=st.integers(0, 1000))
def test_the_order_of_events_does_not_matter(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("perf") / "p.json"
    lines = list(PERF)
    random.Random(seed).shuffle(lines)
    assert read_perf(perf_file(path, *lines)) == read_perf(perf_file(path, *PERF))


@pytest.mark.parametrize("line", ['{"event": "cyc', "[1, 2]", "0.5,,cycles", "null", "[" * 100_000])
def test_a_line_that_is_cut_off_or_another_format_is_refused(tmp_path: Path, line: str) -> None:
    message = refusal(perf_file(tmp_path / "p.json", PERF[0], line))
    assert "p.json, line 4: expected a JSON object of perf stat -j, found" in message
    assert len(message) < 300


@pytest.mark.parametrize("value", ["abc", "nan", "inf", "1,23", "1_000", None, True, []])
def test_a_counter_that_is_no_number_is_refused(tmp_path: Path, value: object) -> None:
    line = perf_line("cycles", value)  # type: ignore[arg-type]
    assert "line 3: counter-value: expected a number, found" in refusal(perf_file(tmp_path / "p.json", line))


def test_an_event_without_a_name_and_a_unit_that_is_no_text_are_refused(tmp_path: Path) -> None:
    assert "event: expected the name" in refusal(perf_file(tmp_path / "p.json", perf_line("", "1")))
    assert "event: expected the name" in refusal(perf_file(tmp_path / "p.json", '{"counter-value": "1"}'))
    line = perf_line("cycles", "1").replace('"unit": ""', '"unit": 3')
    assert "unit: expected a text" in refusal(perf_file(tmp_path / "p.json", line))


def test_a_share_of_cpus_that_is_no_number_is_refused(tmp_path: Path) -> None:
    line = PERF[0].replace('"metric-value": 0.4', '"metric-value": "many"')
    assert "metric-value: expected a number, found 'many'" in refusal(perf_file(tmp_path / "p.json", line))


def test_a_missing_file_and_another_encoding_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "none.json")
    (tmp_path / "p.json").write_bytes(b"\xff\xfe{}")
    assert "in UTF-8, found another byte at place 0" in refusal(tmp_path / "p.json")
