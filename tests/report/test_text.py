"""Reports as text and pages: devices, measurements, profiles, and evaluations of relative performance."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import structs

import crosscast
from crosscast import Kernel
from crosscast.data.fields import TableRow
from crosscast.evaluation.relative.evaluation import evaluate_relative
from crosscast.measure.inventory import Entry
from crosscast.measure.measurement import Measurement
from crosscast.measure.processes import Answer
from crosscast.measure.sensors import SensorAvailability
from crosscast.prediction.relative.nichols2024 import PublishedMean
from crosscast.profile import METRICS, Profile
from crosscast.report.devices import devices_report
from crosscast.report.document import Drawing, Figure, Heading, Report, Table, Text
from crosscast.report.measured import measurement_report
from crosscast.report.profile_summary import summary_of
from crosscast.report.profiles import profiles_report
from crosscast.report.relative import evaluation_report, forecasts_report, held_out_errors, training_report
from crosscast.studies.nichols2024 import study_report
from support.full_launch import full_launch
from support.golden import assert_printed
from support.vectors import made_vectors, relative_study, trained

GOLDEN = Path(__file__).with_name("golden")


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
    assert_printed(REPORT.to_text(), GOLDEN / "report.txt")


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


def test_devices_with_what_is_known_and_why_sensors_do_not_work_are_as_they_were() -> None:
    """Each reason is given once with the devices that it holds for."""
    working = SensorAvailability("rapl", works=True, reason=None)
    broken = SensorAvailability("rapl", works=False, reason="rapl: root alone may read it")
    entries = [
        Entry(
            SimpleNamespace(id=name, name=f"the {name}", type="cpu", compute_units=4),  # type: ignore[arg-type]
            TableRow({"clock_hz": None, "l2_bytes": None, "memory_bytes": 1 << 30, **facts}),
            tuple(sensors),
            {"cycles": "no such counter", "page_faults": None},
        )
        for name, sensors, facts in (
            ("pocl:0", [working], {"clock_hz": 2.6e9, "l1_bytes": 32 << 10}),
            ("pocl:1", [broken], {}),
            ("pocl:1/1", [broken], {}),
            ("pocl:2", [], {}),
        )
    ]
    assert_printed(devices_report(entries).to_text(), GOLDEN / "devices.txt")


CELL = {"application": "sums", "size": "tiny", "device": "cpu", "configuration": "{}", "repeat": 0}


def answer(repeat: int = 0, energy_j: float | None = None, note: str = "", **session: Any) -> Answer:
    """What a process of ten runs of two kernels says."""
    cell = {**CELL, "repeat": repeat}
    run = {"invocations": 2, "transfer_s": 5e-4, "host_s": 2e-2}
    records = [
        {**cell, **run, "kernel": kernel, "run": number, "time_s": [scale * 1e-3, scale * 3e-3]}
        for number in range(10)
        for kernel, scale in (("add", 1), ("shift", 2))
    ]
    sensed = {**cell, "sensor": "rapl", "domain": "package-0", "energy_j": energy_j, "duration_s": 2.5}
    said = {
        "session": {**cell, "kernels": '["add", "shift"]', "runs": 10, "loop_s": 3.0, **session},
        "records": records,
        "energy": [] if energy_j is None else [{**sensed, "runs": 10, "samples": 25}],
        "notes": [note] if note else [],
    }
    return msgspec.convert(said, Answer)


def test_times_a_run_transfers_energy_doubts_and_notes_are_as_they_were() -> None:
    answers = [answer(energy_j=7.0), answer(1, 8.0, "the sensor went away", loop_s=0.5)]
    report = measurement_report(Measurement.of("pocl:0", "a CPU", answers))
    assert_printed(report.to_text(), GOLDEN / "measurement.txt")


ProfileMaker = Callable[..., Profile]


@pytest.fixture
def full(make_profile: ProfileMaker) -> Profile:
    amounts = {"total_instruction_count": 13_107_200, "work_items": 32_768, "local_accesses": 1_015_808}
    profile = make_profile(min_ipt=380, max_ipt=440, median_ipt=400.0, **amounts)
    return replace(profile, launch=full_launch())


def lines(profile: Profile) -> dict[str, str]:
    return dict(summary_of(profile))


def changed(profile: Profile, part: str, value: Any = None) -> Profile:
    launch = {name: each for name, each in profile.launch.items() if name != part}
    return replace(profile, launch=launch if value is None else {**launch, part: value})


def characterized(body: str) -> Profile:
    source = f"kernel void k(global float *a, global int *b) {{ size_t i = get_global_id(0); {body} }}"
    args = [np.zeros(16384, np.float32), np.zeros(16384, np.int32)]
    kernel = Kernel.from_source(source, "k")
    return crosscast.characterize(kernel, global_size=256, local_size=64, args=args)


def test_lines_and_tables_of_profiles_are_as_they_were(full: Profile, make_profile: ProfileMaker) -> None:
    """Tables of several profiles stand side by side; what was not counted of one is a dash."""
    text = "".join(f"{name:<13}{text}\n" for name, text in summary_of(full))
    assert_printed(text, GOLDEN / "profile-summary.txt")
    arguments = [
        {"name": "a", "type": "float*", "kind": "global", "nbytes": 4096, "shape": [1024]},
        {"name": "t", "type": "float*", "kind": "local", "nbytes": 64},
        {"name": "n", "type": "int", "kind": "value", "value": 5},
    ]
    scan = changed(make_profile("scan", 1, opcode=12), "arguments", arguments)
    text = profiles_report([full, scan], everything=True).to_text()
    assert_printed(text + profiles_report([scan]).to_text(), GOLDEN / "profile-tables.txt")
    own = profiles_report([full], everything=True).to_text()
    assert [line for line in own.splitlines() if len(line) > 120] == []
    places = [text.index(f" {metric.name} ") for metric in METRICS]
    assert places == sorted(places)
    alone = profiles_report([make_profile()], everything=True).to_text()
    assert not [word for word in ("sub-groups", "geometry", "Bytes from memory") if word in alone]


def test_what_was_not_counted_has_no_line(full: Profile) -> None:
    for part, names in {
        "sub_groups": {"coalescing", "SIMD", "atomics"},
        "access_patterns": {"neighbours"},
        "reuse": {"reuse"},
        "geometry": {"occupancy"},
        "path": {"path"},
        "host": {"host"},
        "work": {"bytes", "local memory"},
    }.items():
        assert set(lines(full)) - set(lines(changed(full, part))) == names
    assert lines(changed(full, "distinct_bytes"))["bytes"] == "2.49 MB, 76 B a work-item"


def test_a_profile_of_an_older_version_has_what_its_metrics_tell(make_profile: ProfileMaker) -> None:
    profile = make_profile()
    assert set(lines(profile)) == {"work", "divergence"}
    text = profiles_report([profile]).to_text()
    assert "Coalescing" not in text and "Reuse" not in text
    assert summary_of(replace(profile, metrics=dict.fromkeys(profile.metrics), launch={})) == []


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("a[i] = i;", "100 %; 4 sectors a write; 1 line of 128 B"),
        ("a[32 * i] = i;", "12.5 %; 32 sectors a write; 32 lines of 128 B"),
        ("a[i] = b[0];", "100 %; 1 sector a read, 4 a write; 1 line of 128 B"),
        ("a[i] = b[8 * i];", "22.2 %; 32 sectors a read, 4 a write; 4.5 lines of 128 B"),
        ("atomic_inc(b + 8 * i);", "12.5 %; 32 sectors a write; 8 lines of 128 B"),
        ("atomic_cmpxchg(b + 8 * i, 0, 7);", "12.5 %; 32 sectors a write; 8 lines of 128 B"),
        ("atomic_cmpxchg(b + 8 * i, 1, 7);", "12.5 %; 32 sectors a write; 8 lines of 128 B"),
        ("atom_inc((global long *)b + 4 * i);", "25 %; 32 sectors a write; 8 lines of 128 B"),
        ("atom_inc((global long *)b + 4 * i); a[i] = i;", "33.3 %; 18 sectors a write; 4.5 lines of 128 B"),
    ],
)
def test_coalescing_is_bytes_over_those_of_sectors(body: str, text: str) -> None:
    assert lines(characterized(body))["coalescing"] == text


def test_atomics_of_halves_are_two_bytes_wide(tmp_path: Path) -> None:
    path = tmp_path / "add.cu"
    path.write_text(
        "#include <cuda_fp16.h>\n__global__ void k(__half *a) { atomicAdd(a + 16 * threadIdx.x, __half(1)); }"
    )
    args = [np.zeros(1024, np.float16)]
    profile = crosscast.characterize(Kernel.from_file(path, "k"), global_size=64, local_size=64, args=args)
    assert lines(profile)["coalescing"] == "6.25 %; 32 sectors a write; 8 lines of 128 B"


def test_copies_of_a_length_known_only_while_running_have_no_ratios() -> None:
    copy = "event_t e = async_work_group_copy(t, b, 64, 0); wait_group_events(1, &e);"
    told = lines(characterized(f"local int t[64]; {copy} a[i] = t[0];"))
    assert told["coalescing"] == "4 sectors a read, 4 a write; 1 line of 128 B"
    assert told["local memory"] == "1.02 kB"


FEW = made_vectors(applications=4, kernels=1)


def test_tables_of_a_study_and_a_card_are_as_they_were() -> None:
    assert_printed(study_report(relative_study()).to_text(), GOLDEN / "relative.txt")
    card = trained().card
    assert_printed(training_report(card, Path("rpv")).to_text(), GOLDEN / "relative-training.txt")
    of_kernels = structs.replace(card, errors={**card.errors, "folds": "leave-kernel-out"})
    assert "Each kernel was left out in turn" in training_report(of_kernels, Path("rpv")).to_text()
    without = structs.replace(card, errors={})
    assert held_out_errors(without) == []
    assert "published-linear, trained on made up" in training_report(without, Path("rpv")).to_text()


def test_only_the_published_split_is_called_a_leak_and_that_of_machines_counts_known_work() -> None:
    told = {"published": "a look-up table", "leave-machine-out": "what is new is the device that counts"}
    for split in ("published", "leave-application-out", "leave-machine-out"):
        text = evaluation_report(evaluate_relative(FEW, [PublishedMean()], split)).to_text()
        assert {name for name, words in told.items() if words in text} == {split} & told.keys()


def test_the_devices_of_a_run_and_a_line_each_of_many_runs_are_as_they_were() -> None:
    model, runs = trained(), made_vectors().observations
    few, many = (model.predict(runs.rows(np.arange(count)), relative_to="cpu") for count in (2, 13))
    text = "\n".join(forecasts_report([each], model.card).to_text() for each in (few, many))
    assert_printed(text, GOLDEN / "relative-forecasts.txt")


def test_a_device_that_is_more_often_the_fastest_than_the_first_is_named() -> None:
    found = trained().predict(made_vectors().observations.rows(np.array([0])))
    second = found.in_order(0)[1]
    fastest = np.where(np.array(found.devices) == second, 0.7, 0.15)[None]
    text = forecasts_report([replace(found, fastest=fastest)], trained().card).to_text()
    assert f"{second} is more likely to be (70 %)." in text
