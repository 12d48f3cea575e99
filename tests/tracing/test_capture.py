"""A recorded program: it sees nothing of it, and each of its launches is there, times and memory included."""

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import crosscast
from crosscast.characterization import characterize
from crosscast.cli import main
from crosscast.data.dataset import validate
from crosscast.data.profiles import from_row
from crosscast.errors import UnsupportedError
from crosscast.forecasting import forecast_application, read_profiles
from crosscast.kernel import Kernel, Launch
from crosscast.measure import sensors
from crosscast.profile import Profile, compiler_options
from crosscast.tracing.dataset import dataset_of
from crosscast.tracing.program import TraceRecording, run
from crosscast.tracing.replay import compared, replay_of
from crosscast.tracing.summary import UPLOAD, Trace, replayed, summary_of
from support.commands import Command, Output
from support.examples import one_in
from support.refusals import refusal, refusals

pytest.importorskip("pyopencl", reason="pyopencl is not installed")
PROGRAM = str(Path(__file__).with_name("program.py"))


def run_program(mode: str, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, PROGRAM, mode]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done.stdout


@cache
def output_of(mode: str) -> str:
    """Output of the program when nothing records it."""
    return run_program(mode)


Recorded = Callable[..., tuple[Trace, str]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Maker of runs of the program under the layer, each made once, with what the program printed."""

    @cache
    def record(mode: str, **options: object) -> tuple[Trace, str]:
        folder = tmp_path_factory.mktemp("recorded") / "trace"
        recording = TraceRecording(folder, **{"outputs": True, **options})  # type: ignore[arg-type]
        recording.prepare()
        return Trace(folder), run_program(mode, recording.environment(os.environ))

    return record


@pytest.mark.parametrize(
    ("mode", "way"), one_in(4, product(["add", "seen"], ["OPENCL_LAYERS", "LD_PRELOAD", "both"]))
)
def test_the_program_sees_nothing_of_it(mode: str, way: str, tmp_path: Path) -> None:
    recording = TraceRecording(tmp_path / "trace")
    recording.prepare()
    environment = recording.environment(os.environ)
    for name in {"OPENCL_LAYERS", "LD_PRELOAD"} - {way}:
        if way != "both":
            del environment[name]
    assert run_program(mode, environment) == output_of(mode) != ""
    trace = Trace(tmp_path / "trace")
    (process,) = trace.processes
    assert process.way == ("preload" if way == "LD_PRELOAD" else "layer")
    found = Counter(process.kernel_name(row) for _, row in trace.launches)
    assert found == ({"add": 20} if mode == "add" else {"fill": 3})


MODES = ["three", "values", "binary", "again", "image", "add", "mapped", "out_of_order", "parts", "threads"]


@pytest.mark.parametrize("mode", one_in(4, MODES))
def test_what_is_run_again_leaves_the_same_memory(mode: str, recorded: Recorded) -> None:
    trace, printed = recorded(mode, select="all")
    assert printed == output_of(mode) != ""
    refused, verdicts = [], Counter[str]()
    for process, row in trace.launches:
        try:
            launch = replay_of(process, row).launch
        except UnsupportedError as error:
            refused.append(str(error))
            continue
        characterize(launch)
        verdicts[compared(process, row, launch).verdict] += 1
    # Texels are divided by 255, which PoCL does not round as OpenCL asks for divisions.
    allowed = {"rounding"} if mode == "image" else {"equal", "not compared"}
    assert set(verdicts) <= allowed
    assert verdicts["equal"] >= 1 or mode == "image"
    overlapping = ["both: two of its arguments are overlapping parts of one buffer"]
    assert refused == (overlapping if mode == "parts" else [])


def test_each_launch_is_timed_by_the_device(recorded: Recorded) -> None:
    trace, _ = recorded("add", select="none")
    (process,) = trace.processes
    assert len(process) == 20
    assert (process.seconds >= 0).all() and (np.diff(process.starts) >= 0).all()
    assert (process.launch_snapshots, process.ended) == ({}, True)
    assert trace.to_pandas()["time_s"].notna().all()


CHOSEN = {"every:7": [0, 7, 14], "first:3": [0, 1, 2], "all": [*range(20)], "spread": [0, 1, 2, 4, 8, 16]}


@pytest.mark.parametrize("select", one_in(2, ["every:7", "first:3"]))
def test_memory_is_kept_of_the_chosen_launches(select: str, recorded: Recorded) -> None:
    trace, _ = recorded("add", select=select, outputs=False)
    assert sorted(trace.processes[0].launch_snapshots) == CHOSEN[select]


def test_a_content_is_stored_once(recorded: Recorded) -> None:
    trace, _ = recorded("add", select="all")
    assert sorted(trace.processes[0].launch_snapshots) == CHOSEN["all"]
    contents = [path.read_bytes() for path in (trace.folder / "memory").iterdir()]
    assert len(contents) == len(set(contents)) == 21  # x, and y before and after each of 20 launches


def test_a_profile_is_that_of_a_launch_by_hand(recorded: Recorded) -> None:
    trace, _ = recorded("add")
    (profile,) = trace.characterize()
    source = Path(PROGRAM).read_text().split('"""')[3]
    x = np.arange(1024, dtype=np.float32)
    by_hand = characterize(
        Launch(Kernel.from_source(source, "add", options=["-DFACTOR=3"]), (1024,), (64,), (x, x.copy()))
    )
    assert profile.metrics == by_hand.metrics


def test_a_forecast_says_which_launches_it_leaves_out(recorded: Recorded) -> None:
    trace, _ = recorded("values", select="all")
    left_out: list[str] = []

    def characterized_but_clip(launch: Launch, _: int) -> Profile:
        if launch.kernel.name == "clip":
            raise UnsupportedError("clip is refused")
        return characterize(launch)

    profiles, _ = read_profiles(trace.folder, characterized_but_clip, left_out.append)
    assert {"fill", "both"} <= {profile.kernel for profile in profiles} <= {"fill", "both", "perhaps"}
    assert [each for each in left_out if each.startswith("clip ") and each.endswith("clip is refused")]


@pytest.mark.parametrize(("mode", "processes", "launches"), [("forks", 2, 5), ("killed", 1, 10)])
def test_each_process_has_its_own_trace(mode: str, processes: int, launches: int, recorded: Recorded) -> None:
    trace, _ = recorded(mode)
    assert len(trace.processes) == processes
    assert len(trace.launches) == launches
    summary = summary_of(trace)
    assert any("ended without notice" in doubt for doubt in summary.doubts)


def test_a_full_disk_ends_the_recording_and_not_the_program(recorded: Recorded) -> None:
    trace, printed = recorded("limited", select="none")
    assert printed == output_of("limited") != ""
    assert 100 < len(trace.launches) < 20_001
    assert any("recording stopped" in doubt for doubt in summary_of(trace).doubts)


def test_a_part_of_this_process_is_recorded(tmp_path: Path) -> None:
    """In a process of its own, as the loader takes layers once."""
    script = f"""
import sys; sys.path.insert(0, {str(Path(PROGRAM).parent)!r})
import crosscast, program
with crosscast.capture({str(tmp_path / "first")!r}) as trace: program.add(4)
program.add(5)
with crosscast.capture({str(tmp_path / "second")!r}) as second: program.add(6)
print(len(trace.launches), len(second.launches), len(trace.characterize()), len(second.to_pandas()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "4 6 1 6"


def test_opencl_that_was_used_before_cannot_be_recorded(tmp_path: Path) -> None:
    script = f"""
import pyopencl, crosscast
pyopencl.get_platforms()
with crosscast.capture({str(tmp_path / "trace")!r}): pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "EnvironmentFault" in done.stderr and "its first call only" in done.stderr


def test_the_energy_of_the_run_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Output
) -> None:
    readings = tmp_path / "readings.csv"
    readings.write_text("domain,time_s,energy_j\npackage-0,0,0\npackage-0,1000,20000\n")
    sensor = sensors.ReplaySensor(readings)
    monkeypatch.setattr("crosscast.tracing.program.open_sensors", lambda _: ([sensor], []))
    assert main(["capture", "--out", str(tmp_path / "trace"), "--", sys.executable, PROGRAM, "add"]) == 0
    (energy,) = summary_of(Trace(tmp_path / "trace")).energy
    assert (energy.sensor, energy.domain) == ("replay", "package-0")
    assert energy.energy_j / energy.duration_s == pytest.approx(20, rel=0.05)
    capfd.readouterr()
    assert main(["report", str(tmp_path / "trace")]) == 0
    assert "Energy of the whole run: replay package-0" in capfd.readouterr().out
    # What cannot be written, as on a full disk, is not the program's fault.
    monkeypatch.setattr("crosscast.tracing.program.ENERGY_FILE", "none/energy.json")
    assert main(["capture", "--out", str(tmp_path / "full"), "--", sys.executable, PROGRAM, "fails"]) == 3


def test_the_exit_code_is_the_programs(tmp_path: Path, capfd: Output) -> None:
    words = ["capture", "--runs", "2", "--out", str(tmp_path / "a"), "--", sys.executable, PROGRAM, "fails"]
    assert main(words) == 3
    said = capfd.readouterr()
    assert "1 launch of 1 kernel" in said.err
    assert said.out == 2 * output_of("fails")
    assert main(["capture", "--out", str(tmp_path / "b"), "--", sys.executable, PROGRAM, "killed"]) == 137


@pytest.mark.system
def test_processes_that_measure_end_with_notice(tmp_path: Path, capfd: Output) -> None:
    vecadd = str(Path(__file__).parents[2] / "examples" / "vecadd.toml")
    measure = [sys.executable, "-m", "crosscast", "measure", vecadd, "--min-runs", "2", "--min-time", "0"]
    assert main(["capture", "--out", str(tmp_path / "trace"), "--", *measure]) == 0
    said = capfd.readouterr().err
    assert "4 launches of 1 kernel" in said
    assert "ended without notice" not in said


def test_the_commands_take_a_trace(tmp_path: Path, capfd: Output) -> None:
    folder, timeline = tmp_path / "tr ünï; $x", tmp_path / "timeline.json"
    command = ["capture", "--out", str(folder), "--check", "--runs", "2", "--perfetto", str(timeline)]
    assert main([*command, "--", sys.executable, PROGRAM, "values"]) == 0
    events = json.loads(timeline.read_text())["traceEvents"]
    assert Counter(event["name"] for event in events if event["ph"] == "X")["fill"] == 4
    (hint,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith(f"wrote {folder}; "))
    command = shlex.split(hint.removeprefix(f"wrote {folder}; ").partition(" shows ")[0])
    assert command == ["crosscast", "report", str(folder)]
    assert main(["report", str(folder), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert {each["kernel"]: each["launches"] for each in told["kernels"]}["clip"] == 1
    assert {each["outputs"]["verdict"] for each in told["kernels"]} <= {"equal", "not compared"}
    assert told["forecast"]["covered"] == pytest.approx(1)
    assert len(told["forecast"]["device"]) == 35  # those that the bundled model was trained on
    parts = np.sum([told["forecast"][f"{each}_s"] for each in ("kernels", "transfers", "launches")], axis=0)
    assert told["forecast"]["time_s"] == pytest.approx(parts)
    on_a_gpu = told["forecast"]["device"].index("gtx1080")
    launches = sum(each["launches"] for each in told["kernels"])
    assert told["forecast"]["launches_s"][on_a_gpu] == pytest.approx(launches * 5e-6 / 2)
    assert main(["report", str(folder), "--html", str(tmp_path / "page.html")]) == 0
    assert "Where the time of kernels goes" in capfd.readouterr().out
    assert "clip" in (tmp_path / "page.html").read_text()
    assert main(["predict", str(folder), "--devices", "gtx1080", "--json"]) == 0
    assert "gtx1080" in capfd.readouterr().out
    made = tmp_path / "dataset"
    assert main(["dataset", "import", "trace", str(folder), "--out", str(made)]) == 0
    dataset = crosscast.read_dataset(made)
    assert dataset.profiles.num_rows == dataset.records.num_rows == len(told["kernels"])
    assert {compiler_options(from_row(row).program)[-1] for row in dataset.profiles.to_pylist()} == {"-O3"}
    assert main(["dataset", "import", "trace", str(folder), "--out", str(made)]) == 2
    assert crosscast.join(dataset).num_rows == len(told["kernels"])


@refusals("arguments expected")
def test_what_cannot_be_recorded_is_refused(arguments: list[str], expected: str, capsys: Output) -> None:
    assert expected in Command.of("capture").refusal(capsys, *arguments)
    assert not Path("trace").exists()


@pytest.mark.parametrize(("runs", "is_there"), [("1", True), ("2", False)])
def test_a_program_without_opencl_leaves_no_folder(
    tmp_path: Path, runs: str, is_there: bool, capfd: Output
) -> None:
    folder = tmp_path / "trace"
    if is_there:
        folder.mkdir()
    assert main(["capture", "--runs", runs, "--out", str(folder), "--", "echo", "said"]) == 0
    told = capfd.readouterr()
    assert set(told.out.split()) == {"said"}
    assert "no OpenCL" in told.err
    assert list(tmp_path.rglob("*")) == ([folder] if is_there else [])


def test_a_static_program_and_a_folder_with_something_in_it_are_refused(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a.out"
    source.write_text("void _start(void) {}")  # no libc, which would have to be compiled
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-linux-musl", "-static", "-nostdlib"]
    subprocess.run([*compiler, "-o", str(program), str(source)], check=True)
    assert "found a static one" in refusal(run, [str(program)], TraceRecording(tmp_path / "trace"))
    assert "expected a new or empty folder" in refusal(TraceRecording(tmp_path).prepare)


@pytest.mark.parametrize("mode", one_in(2, ["values", "image"]))
def test_launches_are_saved_as_launch_files(mode: str, recorded: Recorded, tmp_path: Path) -> None:
    trace, _ = recorded(mode, select="all")
    paths = trace.save_launches(tmp_path / "launches")
    assert len(paths) == len(summary_of(trace).classes)
    launches = [launch for path in paths for launch in crosscast.read_launches(path)]
    saved, replays = ([characterize(each).metrics for each in some] for some in (launches, trace.replays()))
    assert saved == replays


def test_sizes_that_shrink_are_one_row_with_interpolated_ones(recorded: Recorded, capfd: Output) -> None:
    trace, _ = recorded("shrink", outputs=False)
    summary = summary_of(trace)
    assert (len(summary.classes), len(summary.families)) == (64, 1)
    # 8 sizes as they are, and one for each power of two
    assert 8 < sum(bool(each.replayable) for each in summary.classes) <= 8 + 7
    found = replayed(summary)
    profiled = [place for place, each in enumerate(found) if each.profile]
    assert len(profiled) == 8
    for place, each in enumerate(found):
        items = sum(n * summary.classes[at].work_items for at, n in each.interpolation.items())
        assert each.profile or each.interpolation
        # Linear in the work-items, but for those below the least.
        assert place in profiled or items == pytest.approx(summary.classes[place].work_items)
    forecast = forecast_application(summary, found, devices="gtx1080")
    assert forecast.covered == 1.0
    assert np.sum(forecast.repeat * forecast.kernels.profiles.invocations) == pytest.approx(64)
    assert main(["report", str(trace.folder), "--devices", "gtx1080"]) == 0
    told = capfd.readouterr().out
    assert "1024/64 to 65536/64 (64 sizes)" in told
    assert "56 interpolated" in told and "8 profiled" in told
    assert "the times of 56 launches of 56 sizes are interpolated" in told
    assert len(told.splitlines()) < 40


def test_memory_over_the_limits_is_not_kept_but_some_of_each_kernel(recorded: Recorded) -> None:
    trace, _ = recorded("shrink", outputs=False, max_bytes=600_000)
    (process,) = trace.processes
    assert any(process.has_memory(row) for row in process.launch_snapshots)
    assert sum(size for _, size in process.snapshots.values()) <= 600_000
    trace, printed = recorded("add", outputs=False, max_bytes=10)
    assert printed == output_of("add")
    assert not any(trace.columns()["memory_kept"])
    assert "over the limits" in refusal(replay_of, trace.processes[0], 0)
    assert not any(each["kept"] for each in summary_of(trace).kernel_facts())


def test_a_dataset_has_the_mean_of_times_that_no_read_of_memory_disturbed(recorded: Recorded) -> None:
    trace, _ = recorded("add", outputs=False)
    (process,) = trace.processes
    assert sorted(process.launch_snapshots) == CHOSEN["spread"]
    summary = summary_of(trace)
    # Memory that is made with its content is a transfer.
    uploads = [each for each in summary.transfers if each.kind == UPLOAD]
    assert [(each.count, each.bytes, each.seconds) for each in uploads] == [(2, 2 * 4 * 1024, None)]
    dataset = dataset_of(summary, replayed(summary))
    validate(dataset)
    (row,) = dataset.records.to_pylist()
    assert row["invocations"] == 20
    assert row["time_s"] == pytest.approx([np.delete(process.seconds, CHOSEN["spread"]).mean()])


def test_profiles_of_a_trace_say_of_what_they_are(recorded: Recorded, capfd: Output) -> None:
    trace, _ = recorded("values", select="all")
    assert main(["characterize", str(trace.folder), "--json"]) == 0
    told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    (process,) = trace.processes
    for each in told:
        row = each["invocation"]
        assert (each["application"], each["kernel"]) == ("program.py", process.kernel_name(row))
        facts = each["launch"]["recorded"]
        assert (facts["launch"], facts["time_s"]) == (row, process.seconds[row])
        assert each["size"].startswith("x".join(map(str, process.sizes[process.launches["sizes"][row]][0])))
    assert sum(each["launch"]["recorded"]["launches"] for each in told) <= len(process)
