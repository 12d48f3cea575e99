"""A measurement on a terminal, and as an object."""

import io
import json
from typing import Any

import pytest

from crosscast.report.dataset import Measurement, print_measurement

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


def printed(*answers: dict[str, Any]) -> str:
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
    assert "warning: the sensor went away\n" in printed(doubtful)


def test_people_see_times_a_run_transfers_and_energy() -> None:
    text = printed(answer(energy_j=7.0))
    assert text.startswith("sums on pocl:0 (a CPU)\nkernel")
    assert text.splitlines()[2].split() == "add 10 20 2 ms 2 ms 2 ms 2 ms 0.0 %".split()
    assert "copies 500 us a run; whole run on the host 20 ms" in text.replace("µ", "u")
    assert "energy 0.7 J a run (rapl package-0, 25 samples in 2.5 s)" in text
    assert "over the runs of one process" in text


def test_people_see_that_there_is_no_energy_and_how_many_processes() -> None:
    text = printed(answer(0), answer(1))
    assert "energy: no sensor (crosscast devices says why)" in text
    assert "over the runs of 2 processes" in text


def test_energy_that_was_not_asked_for_is_not_missed() -> None:
    stream = io.StringIO()
    print_measurement(Measurement.of("pocl:0", "a CPU", [answer()], sensor="none"), stream)
    assert "energy" not in stream.getvalue()
