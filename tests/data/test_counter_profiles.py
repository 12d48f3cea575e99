"""Any profile, whichever tool it is of; and what makes runs of a dataset of them."""

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration
from crosscast.data.dataset import read_dataset, write_dataset
from crosscast.data.sources.counted import Circumstances, CountedRun, configured_runs
from crosscast.data.sources.counter_profiles import counted_profile, import_counted, read_ncu, read_perf
from crosscast.errors import InputError
from support.counter_profiles import (
    PERF,
    cali_file,
    cali_record,
    caliper_table,
    ncu_long,
    ncu_wide,
    new_database,
    old_database,
    perf_file,
    perf_line,
)
from support.refusals import refusal, refusals


def profiles(folder: Path) -> dict[str, Path]:
    """A profile of each format."""
    table, counter = folder / "caliper.json", {"smsp__inst_executed.sum": "inst"}
    table.write_text(json.dumps(caliper_table()), encoding="utf-8")
    return {
        "old": old_database(folder / "old"),
        "new": new_database(folder / "new"),
        "perf": perf_file(folder / "perf.json", *PERF),
        "caliper": table,
        "ncu": ncu_wide(folder / "ncu.csv", counter, dict.fromkeys(counter, "5")),
    }


def test_each_format_is_recognized_by_what_is_in_it(tmp_path: Path) -> None:
    found = {name: counted_profile(path) for name, path in profiles(tmp_path).items()}
    assert {name: " ".join(run.counters) for name, run in found.items()} == {
        **dict.fromkeys(("old", "new"), "PAPI_BR_INS"),
        "perf": "task-clock instructions:u branches:u",
        "caliper": "rc.count cycles",
        "ncu": "smsp__inst_executed.sum",
    }
    assert found["ncu"].configuration == Configuration("unknown", {"uses_gpu": 1})
    assert math.isnan(found["ncu"].time_s)
    run = counted_profile(cali_file(tmp_path / "x", cali_record(1.0, 2, 3, 30)))
    assert run.time_s == 1.0


def test_what_is_of_no_tool_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing\n", encoding="utf-8")
    for path in (tmp_path, tmp_path / "notes.txt"):
        told = refusal(counted_profile, path)
        assert "expected a profile of HPCToolkit " in told and told.endswith("found none of them")
    assert "No such file" in refusal(counted_profile, tmp_path / "none")
    (tmp_path / "p.json").write_bytes(b"\xff\xfe{}")
    assert "expected UTF-8, found another byte at place 0" in refusal(read_perf, tmp_path / "p.json")


def test_repeats_come_from_several_files_or_a_folder(tmp_path: Path) -> None:
    files = [perf_file(tmp_path / f"run{n}.json", *PERF, perf_line("cycles", str(n))) for n in range(3)]
    told = Circumstances("quartz", "sort", size="big", nodes=2, cores=72, uses_gpu=False)
    dataset = import_counted("perf", [tmp_path], told)
    settings = '{"cores": 72.0, "nodes": 2.0, "uses_gpu": 0.0}'
    assert [(row["repeat"], row["time_s"], row["configuration"]) for row in dataset.records.to_pylist()] == [
        (repeat, [2.0], settings) for repeat in range(3)
    ]
    assert import_counted("perf", files, told).sessions == dataset.sessions
    for key in ("i7-6700k", "epyc-9654"):
        (known,) = import_counted("perf", files[:1], Circumstances(key)).devices.to_pylist()
        assert known["device"] == key and known["compute_units"] is not None


def test_a_profile_without_a_time_asks_for_one_and_what_is_imported_is_read_back(tmp_path: Path) -> None:
    path = profiles(tmp_path)["ncu"]
    told = refusal(import_counted, "ncu", [path], Circumstances("quartz"))
    assert told.startswith(f"{path}: ") and told.endswith("found no time: give its seconds with --time")
    dataset = import_counted("ncu", [path], Circumstances("quartz", time_s=0.25))
    assert dataset.records.column("time_s").to_pylist() == [[0.25]]
    write_dataset(dataset, tmp_path / "out")
    again = read_dataset(tmp_path / "out")
    assert again.sessions.column("counters").to_pylist() == ['{"smsp__inst_executed.sum": 5.0}']
    (device,) = again.devices.to_pylist()
    assert (device["device"], device["type"]) == ("quartz", "gpu")


def test_the_same_run_twice_and_a_folder_without_profiles_are_refused(tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    (tmp_path / "empty").mkdir()
    for paths, found in (
        ([tmp_path / "empty"], "expected files *.json of perf stat -j"),
        ([perf_file(a, *PERF), perf_file(b, *PERF)], f"{b}: expected another run than {a}, found the same"),
        ([a, a], "a.json: expected each profile once, found it twice"),
    ):
        assert found in refusal(import_counted, "perf", paths, Circumstances("quartz"))


def test_times_and_counters_that_cannot_be_are_refused() -> None:
    times = (0.0, -1.0, math.inf, math.nan)
    for counters, seconds, sentence in (
        *(({"a": 1.0}, time_s, "x: expected a time above 0 seconds") for time_s in times),
        ({}, 1.0, "x: expected counters, found none"),
        ({"a": math.inf}, 1.0, "x: a: expected a finite number, found inf"),
    ):
        run = CountedRun("x", "x", counters, seconds)
        assert sentence in refusal(configured_runs, [run], Circumstances())
    told: list[dict[str, Any]] = [{"time_s": time_s} for time_s in times]
    told += [{"device": ""}, {"application": " "}, {"size": "a\nb"}, {"nodes": 0}, {"cores": -1}]
    for each in told:
        assert refusal(Circumstances, **each).startswith(f"{next(iter(each)).removesuffix('_s')}: expected")


@given(text=st.text(max_size=200))
def test_any_text_is_a_profile_or_one_sentence(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("any") / "p"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError):
        counted_profile(path)


UNITS = {
    "gpu__time_duration.sum": "usecond",
    "smsp__inst_executed.sum": "inst",
    "dram__bytes_read.sum": "Kbyte",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "%",
    "launch__func_cache_config": "",
}
FIRST = dict(zip(UNITS, ("10.0", "1,000", "2.5", "80", "CachePreferNone"), strict=True))
SECOND = dict(zip(UNITS, ("30.0", "3,000", "1.5", "40", "CachePreferNone"), strict=True))
TIME, INST, READ, THROUGHPUT, _ = UNITS


def wide(path: Path, *launches: dict[str, str]) -> Path:
    return ncu_wide(path / "app.csv", UNITS, *launches)


refused = partial(refusal, read_ncu)


def test_amounts_are_added_over_launches_and_shares_are_weighted_by_time(tmp_path: Path) -> None:
    run = read_ncu(wide(tmp_path, FIRST, SECOND))
    assert run.time_s == pytest.approx(40e-6)
    assert run.counters == {
        INST: 4000,
        READ: pytest.approx(4000),
        THROUGHPUT: pytest.approx((0.8 * 10 + 0.4 * 30) / 40),
    }
    assert run.uses_gpu is True


def test_a_kernel_is_taken_alone_and_must_have_launches(tmp_path: Path) -> None:
    path = wide(tmp_path, FIRST, SECOND | {"Kernel Name": "scale(float*, int)"})
    run = read_ncu(path, "scale(float*, int)")
    assert (run.counters[INST], run.kernel) == (3000, "scale(float*, int)")
    assert run.time_s == pytest.approx(30e-6)
    assert "expected launches of fft, found add" in refused(wide(tmp_path, FIRST), "fft")
    assert "expected launches of kernels, found none" in refused(wide(tmp_path))


def test_the_long_form_says_the_same(tmp_path: Path) -> None:
    long = [
        (str(number), "add", name, unit, launch[name])
        for number, launch in enumerate((FIRST, SECOND))
        for name, unit in UNITS.items()
    ]
    assert read_ncu(ncu_long(tmp_path / "app.csv", *long)) == read_ncu(wide(tmp_path, FIRST, SECOND))


def test_a_metric_of_two_sections_counts_once_and_rules_are_passed_over(tmp_path: Path) -> None:
    duration, clock = ("add", "Duration", "usecond"), ("add", "SM Frequency", "cycle/nsecond")
    first = [("0", *duration, "4.00"), ("0", *clock, "1.5"), ("0", *duration, "4.00")]
    rows = [*first, ("0", "add", "", "", ""), ("1", *duration, "12.00"), ("1", *clock, "1.1")]
    run = read_ncu(ncu_long(tmp_path / "app.csv", *rows))
    assert run.time_s == pytest.approx(16e-6)
    assert run.counters == {"SM Frequency": pytest.approx(1.2e9)}


def test_an_amount_that_a_launch_lacks_has_no_sum_and_must_be_a_number(tmp_path: Path) -> None:
    assert INST not in read_ncu(wide(tmp_path, FIRST, SECOND | {INST: "n/a"})).counters
    message = refused(wide(tmp_path, FIRST, SECOND | {INST: "many"}))
    assert "app.csv, line 5: smsp__inst_executed.sum: expected a number, found 'many'" in message
    for duration in ("0", "-5"):
        assert "took more than 0 seconds, found" in refused(wide(tmp_path, FIRST | {TIME: duration}))


def test_a_table_that_is_cut_off_or_another_one_is_refused(tmp_path: Path) -> None:
    path = wide(tmp_path, FIRST, SECOND)
    text = path.read_text(encoding="utf-8")
    path.write_text(text[:-8], encoding="utf-8")
    assert "expected CSV, found something else" in refused(path)
    path.write_text(text[: text.rindex(',"40"')], encoding="utf-8")
    assert "line 5: expected 11 cells, found 9" in refused(path)
    for other in ("", "a,b\n1,2\n", '"ID","Name"\n', '"ID","Name"\n"0","x"\n'):
        path.write_text(other, encoding="utf-8")
        assert "expected a table of ncu --csv with a column Kernel Name, found none" in refused(path)


def test_the_time_is_duration_or_of_the_cpus(tmp_path: Path) -> None:
    for lines, time_s in (
        ([*PERF, perf_line("duration_time", "1500000000", "ns")], 1.5),
        # As perf 6.13 and later write it.
        ([*PERF, perf_line("duration_time", "1500000000")], 1.5),
        # Without it, that of the CPUs over their number.
        (PERF, 2.0),
        ([perf_line("task-clock", "800.0", "msec")], None),
        # Of two sockets, each with its share of the CPUs, nothing can be said.
        ([PERF[0], PERF[0]], None),
    ):
        run = read_perf(perf_file(tmp_path / "p.json", *lines))
        assert run.time_s == (None if time_s is None else pytest.approx(time_s))
        assert "duration_time" not in run.counters


def test_values_are_numbers_in_si_units(tmp_path: Path) -> None:
    cores = [perf_line("instructions", n, core=core) for n, core in (("10.0", "S0-C0"), ("32.0", "S0-C1"))]
    for lines, counters in (
        # Lines of one event on several cores are added up.
        (cores, {"instructions": 42}),
        ([perf_line("power/energy-pkg/", "12.5", "Joules")], {"power/energy-pkg/": 12.5}),
        ([perf_line("uncore_imc/reads/", "3.0", "MiB")], {"uncore_imc/reads/": 3 * 2**20}),
        ([perf_line("cycles", "1,234,567")], {"cycles": 1234567}),
        ([perf_line("cycles", "3805,723968")], {"cycles": 3805.723968}),
        ([perf_line("cycles", "1.5e3")], {"cycles": 1500}),
        # Metrics without an event are passed over.
        ([perf_line("a", "1"), '{"metric-value" : "1.2", "metric-unit" : "insn per cycle"}'], {"a": 1}),
    ):
        assert read_perf(perf_file(tmp_path / "p.json", *lines)).counters == pytest.approx(counters)


def test_a_line_that_is_cut_off_or_another_format_is_refused(tmp_path: Path) -> None:
    for line in ('{"event": "cyc', "[1, 2]", "0.5,,cycles", "null", "[" * 100_000):
        message = refusal(read_perf, perf_file(tmp_path / "p.json", PERF[0], line))
        assert "p.json, line 4: expected a JSON object of perf stat -j, found" in message
        assert len(message) < 300


@refusals("line message")
def test_a_field_that_is_wrong_is_named(tmp_path: Path, line: str, message: str) -> None:
    assert message in refusal(read_perf, perf_file(tmp_path / "p.json", line))
