"""Consoles: as wide as the terminal, or as the numbers need."""

from __future__ import annotations

import io
import json
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.text import Text

from crosscast.measure.inventory import Entry
from crosscast.measure.sensors import Availability
from crosscast.report.dataset import Measurement, print_devices, print_measurement
from crosscast.report.text import PLAIN_WIDTH, console_of_numbers, console_on, number_table, print_table


class Terminal(io.StringIO):
    """Takes what is written, as a terminal."""

    def isatty(self) -> bool:
        """Whether it is one."""
        return True


@pytest.mark.parametrize(("columns", "width"), [(60, PLAIN_WIDTH), (200, 200)])
def test_numbers_are_not_cut_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: int, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert console_on(Terminal()).width == columns
    assert console_of_numbers(Terminal()).width == width


def test_without_a_terminal_the_width_is_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert console_of_numbers(io.StringIO(), 120).width == 120


def test_names_are_on_the_left_and_as_they_are_numbers_on_the_right() -> None:
    table = number_table("[bold]x", ["gpu[0]", "n"])
    table.add_row(Text("[red]name"), "1", "2.5")
    stream = StringIO()
    print_table(console_of_numbers(stream), "by [machine]", table)
    assert [line.rstrip() for line in stream.getvalue().splitlines()] == [
        "",
        "by [machine]",
        "[bold]x    gpu[0]    n",
        "[red]name       1  2.5",
    ]


def entry(name: str, *sensors: Availability, **facts: Any) -> Entry:
    handle = SimpleNamespace(id=name, name=f"the {name}", type="cpu", compute_units=4)
    known = {"clock_hz": None, "l2_bytes": None, "memory_bytes": 1 << 30, **facts}
    return Entry(handle, known, sensors, {"cycles": "no such counter", "page_faults": None})  # type: ignore[arg-type]


def printed(*entries: Entry) -> list[str]:
    stream = io.StringIO()
    print_devices(entries, stream)
    return stream.getvalue().splitlines()


def test_a_row_a_device_with_what_is_known() -> None:
    working = Availability("rapl", works=True, reason=None)
    lines = printed(entry("pocl:0", working, clock_hz=2.6e9, l1_bytes=32 << 10), entry("pocl:1"))
    assert lines[0].split() == "id name type units clock L1 L2 L3 memory sensors".split()
    assert lines[1].split() == "pocl:0 the pocl:0 cpu 4 2.6 GHz 32 KiB 1 GiB rapl".split()
    assert lines[2].split() == "pocl:1 the pocl:1 cpu 4 1 GiB none".split()


def test_each_reason_is_given_once_with_the_devices_it_holds_for() -> None:
    broken = Availability("rapl", works=False, reason="rapl: root alone may read it")
    lines = printed(entry("pocl:0", broken), entry("pocl:0/1", broken))
    assert lines[3:] == [
        "pocl:0, pocl:0/1: rapl: root alone may read it",
        "CPU counters cycles: no such counter",
        "CPU counters page_faults: work",
    ]


def test_names_with_brackets_are_shown_as_they_are() -> None:
    assert "the [red]x" in printed(entry("[red]x"))[1]


CELL = {"application": "sums", "size": "tiny", "device": "cpu", "configuration": "{}", "repeat": 0}


def answer(repeat: int = 0, energy_j: float | None = None, **session: Any) -> dict[str, Any]:
    """What a process of ten runs of two kernels says."""
    cell = {**CELL, "repeat": repeat}
    records = [
        {
            **cell,
            "kernel": kernel,
            "run": run,
            "invocations": 2,
            "time_s": [scale * 1e-3, scale * 3e-3],
            "transfer_s": 5e-4,
            "host_s": 2e-2,
        }
        for run in range(10)
        for kernel, scale in (("add", 1), ("shift", 2))
    ]
    sensed = {**cell, "sensor": "rapl", "domain": "package-0", "energy_j": energy_j, "duration_s": 2.5}
    return {
        "session": {**cell, "kernels": '["add", "shift"]', "runs": 10, "loop_s": 3.0, **session},
        "records": records,
        "energy": [] if energy_j is None else [{**sensed, "runs": 10, "samples": 25}],
        "notes": [],
    }


def printed_measurement(*answers: dict[str, Any]) -> str:
    stream = io.StringIO()
    print_measurement(Measurement.of("pocl:0", "a CPU", answers), stream)
    return stream.getvalue()


def test_kernels_are_summarized_over_all_processes() -> None:
    found = Measurement.of("pocl:0", "a CPU", [answer(0), answer(1)])
    assert {kernel.kernel: (kernel.runs, kernel.invocations) for kernel in found.kernels} == {
        "add": (20, 40),
        "shift": (20, 40),
    }
    assert {kernel.kernel: kernel.mean_s for kernel in found.kernels} == {
        "add": pytest.approx(2e-3),
        "shift": pytest.approx(4e-3),
    }


def test_the_object_holds_everything_and_is_json() -> None:
    answers = [answer(0, energy_j=7.0), answer(1, energy_j=8.0)]
    shown = json.loads(json.dumps(Measurement.of("pocl:0", "a CPU", answers).to_dict(), allow_nan=False))
    assert shown["device"] == {"id": "pocl:0", "key": "cpu", "name": "a CPU"}
    assert (shown["transfer_median_s"], shown["host_median_s"]) == (5e-4, 2e-2)
    assert len(shown["records"]) == 40
    assert shown["records"][0]["time_s"] == [1e-3, 3e-3]
    assert [row["energy_j"] for row in shown["energy"]] == [7.0, 8.0]
    assert [session["repeat"] for session in shown["sessions"]] == [0, 1]


def test_the_object_holds_no_json_within_text() -> None:
    facts: dict[str, Any] = {
        "counters": None,
        "environment": '{"crosscast": "1"}',
        "parameters": '{"items": 3}',
    }
    shown = Measurement.of("pocl:0", "a CPU", [answer(energy_j=1.0, **facts)]).to_dict()
    (session,) = shown["sessions"]
    assert session["kernels"] == ["add", "shift"]
    assert (session["parameters"], session["counters"]) == ({"items": 3}, None)
    assert session["environment"] == {"crosscast": "1"}
    assert all(row["configuration"] == {} for row in (session, *shown["records"], *shown["energy"]))


def test_copies_and_host_times_are_medians_over_runs() -> None:
    slow = answer()
    for record in slow["records"]:
        # One run of ten was disturbed.
        if record["run"] == 3:
            record["host_s"] = record["transfer_s"] = 5.0
    found = Measurement.of("pocl:0", "a CPU", [slow])
    assert (found.transfer_median_s, found.host_median_s) == (5e-4, 2e-2)


def test_doubts_and_notes_are_warnings() -> None:
    doubtful = answer(loop_s=0.5)
    doubtful["notes"] = ["the sensor went away"]
    found = Measurement.of("pocl:0", "a CPU", [doubtful])
    assert any("10 runs, fewer than 50" in warning for warning in found.warnings)
    assert any("less than 2 s" in warning for warning in found.warnings)
    assert found.warnings[-1] == "the sensor went away"
    assert "warning: the sensor went away\n" in printed_measurement(doubtful)


def test_people_see_times_a_run_transfers_and_energy() -> None:
    text = printed_measurement(answer(energy_j=7.0))
    assert text.startswith("sums on pocl:0 (a CPU)\nkernel")
    assert text.splitlines()[2].split() == "add 10 20 2 ms 2 ms 2 ms 2 ms 0.0 %".split()
    assert "copies 500 us a run; whole run on the host 20 ms" in text.replace("µ", "u")
    assert "energy 0.7 J a run (rapl package-0, 25 samples in 2.5 s)" in text
    assert "over the runs of one process" in text


def test_people_see_that_there_is_no_energy_and_how_many_processes() -> None:
    text = printed_measurement(answer(0), answer(1))
    assert "energy: no sensor (crosscast devices says why)" in text
    assert "over the runs of 2 processes" in text


def test_energy_that_was_not_asked_for_is_not_missed() -> None:
    stream = io.StringIO()
    print_measurement(Measurement.of("pocl:0", "a CPU", [answer()], sensor="none"), stream)
    assert "energy" not in stream.getvalue()
