"""Reports as text, Markdown, JSON and a page; devices and measurements as reports."""

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from crosscast.measure.inventory import Entry
from crosscast.measure.measurement import Measurement
from crosscast.measure.processes import Answer
from crosscast.measure.sensors import SensorAvailability
from crosscast.report.dataset import devices_report, measurement_report
from crosscast.report.document import Drawing, Figure, Heading, Report, Table, Text
from support.golden import assert_printed
from support.refusals import refusal


class Terminal(io.StringIO):
    """Takes what is written, as a terminal."""

    def isatty(self) -> bool:
        """Whether it is one."""
        return True


REPORT = Report(
    [
        Heading("Title <b>", 1),
        "One sentence.",
        Table(
            ["[bold]x", "gpu[0]", "n"],
            [["[red]name|", 1, 2.5], ["b", None, float("nan")]],
            "by [machine]",
            {"n": "{:.2f}".format},
            bold=[1],
        ),
        Heading("Part", 2, "part"),
        Text(["a note"], "note"),
        Text(["one", "two"], "list"),
        Text(["  |-- code"], "code"),
        Figure(lambda: Drawing(b"<svg/>"), 'what "it" shows', "how to read it"),
    ]
)


def test_names_on_the_left_and_numbers_on_the_right_are_as_they_were() -> None:
    assert_printed(REPORT.to_text(), Path(__file__).with_name("golden") / "report.txt")


def test_headings_are_bold_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, pipe = Terminal(), io.StringIO()
    REPORT.print(terminal)
    REPORT.print(pipe)
    assert terminal.getvalue().startswith("\x1b[1mTitle <b>\x1b[0m\n")
    assert "\x1b[1mb                —     —\x1b[0m\n" in terminal.getvalue()
    assert "\x1b" not in pipe.getvalue()


def test_a_page_can_be_read_on_a_phone_in_the_dark_and_aloud() -> None:
    page = REPORT.to_html()
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    assert "prefers-color-scheme: dark" in page
    assert "<caption><span>by [machine]</span></caption>" in page
    assert '<th scope="col">[bold]x</th><th scope="col" class="number">gpu[0]</th>' in page
    assert '<th scope="row">[red]name|</th><td class="number" data-v="1">1</td>' in page
    assert 'aria-label="by [machine]"' in page
    assert '<li><a href="#part">Part</a></li>' in page and '<h2 id="part">' in page
    assert 'alt="what &#34;it&#34; shows"></div><figcaption>how to read it</figcaption>' in page
    assert "data:image/svg+xml;base64,PHN2Zy8+" in page
    assert page == REPORT.to_html()


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\u202e", "\ud800", "\u2028"])
def test_what_cannot_be_shown_is_replaced(character: str) -> None:
    report = Report([f"a{character}b", Table([f"c{character}"], [[f"d{character}"]])])
    for text in (report.to_text(), report.to_html()):
        assert character not in text
        assert "a\ufffdb" in text and "c\ufffd" in text and "d\ufffd" in text


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    assert REPORT.write_html(tmp_path / "page.html").read_text(encoding="utf-8") == REPORT.to_html()
    assert len(list(tmp_path.iterdir())) == 1
    assert "page: cannot write" in refusal(REPORT.write_html, tmp_path / "missing" / "page.html")


def entry(name: str, *sensors: SensorAvailability, **facts: Any) -> Entry:
    handle = SimpleNamespace(id=name, name=f"the {name}", type="cpu", compute_units=4)
    known = {"clock_hz": None, "l2_bytes": None, "memory_bytes": 1 << 30, **facts}
    return Entry(handle, known, sensors, {"cycles": "no such counter", "page_faults": None})  # type: ignore[arg-type]


def printed(*entries: Entry) -> list[str]:
    return devices_report(entries).to_text().splitlines()


def test_a_row_a_device_with_what_is_known() -> None:
    working = SensorAvailability("rapl", works=True, reason=None)
    lines = printed(entry("pocl:0", working, clock_hz=2.6e9, l1_bytes=32 << 10), entry("pocl:1"))
    assert lines[0].split() == "id name type units clock L1 L2 L3 memory sensors".split()
    assert lines[1].split() == "pocl:0 the pocl:0 cpu 4 2.6 GHz 32 KiB 1 GiB rapl".split()
    assert lines[2].split() == "pocl:1 the pocl:1 cpu 4 1 GiB none".split()


def test_each_reason_is_given_once_with_the_devices_it_holds_for() -> None:
    broken = SensorAvailability("rapl", works=False, reason="rapl: root alone may read it")
    lines = printed(entry("pocl:0", broken), entry("pocl:0/1", broken))
    assert lines[3:] == [
        "pocl:0, pocl:0/1: rapl: root alone may read it",
        "CPU counters cycles: no such counter",
        "CPU counters page_faults: work",
    ]


CELL = {"application": "sums", "size": "tiny", "device": "cpu", "configuration": "{}", "repeat": 0}


def answer(repeat: int = 0, energy_j: float | None = None, **session: Any) -> Answer:
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
    said = {
        "session": {**cell, "kernels": '["add", "shift"]', "runs": 10, "loop_s": 3.0, **session},
        "records": records,
        "energy": [] if energy_j is None else [{**sensed, "runs": 10, "samples": 25}],
        "notes": [],
    }
    return msgspec.convert(said, Answer)


def printed_measurement(*answers: Answer) -> str:
    return measurement_report(Measurement.of("pocl:0", "a CPU", answers)).to_text()


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
