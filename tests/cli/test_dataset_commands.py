"""``crosscast dataset``: files imported, the suite built, and pages that describe datasets."""

import json
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest

from crosscast.data.dataset import Dataset, parts, read_dataset, write_dataset
from crosscast.data.description import describe
from crosscast.data.profiles import write_parquet
from crosscast.data.schema import DEVICES, RECORDS
from crosscast.data.sources import IMPORTERS
from crosscast.data.table import table_of
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import devices
from crosscast.profile import Profile
from support import tables as rows
from support.commands import Command, Output
from support.counter_profiles import perf_file, perf_line
from support.golden import assert_printed
from support.processes import NOTE, is_gone, noted, wait_until

IMPORT = Command.of("dataset import")


def test_profiles_of_the_published_tool_and_of_characterize_become_datasets(
    tmp_path: Path, capsys: Output, make_profile: Callable[..., Profile]
) -> None:
    folder, out = tmp_path / "lud" / "tiny", tmp_path / "out"
    folder.mkdir(parents=True)
    text = "metric,category,count\nOpcode,Compute,3\nTotal Instruction Count,Compute,12\n"
    (folder / "aiwc_k_0.csv").write_text(text, encoding="utf-8")
    assert IMPORT("aiwc", folder, "--out", out, "--application", "a", "--size", "s") == 0
    (profile,) = read_dataset(out).profiles.to_pylist()
    assert (profile["application"], profile["size"], profile["opcode"]) == ("a", "s", 3)
    assert capsys.readouterr().err == f"wrote {out} (1 profiles, 0 records)\n"
    write_parquet([make_profile("reduce")], tmp_path / "p.parquet")
    out = tmp_path / "own"
    assert IMPORT("crosscast", tmp_path / "p.parquet", "--out", out, "--application", "sums") == 0
    (profile,) = read_dataset(out).profiles.to_pylist()
    assert (profile["application"], profile["kernel"]) == ("sums", "reduce")


def test_each_importer_says_its_licence_its_origin_and_the_files_that_it_wants(capsys: Output) -> None:
    sources = Command.of("dataset sources")
    found, text = {each["name"]: each for each in sources.answer(capsys)}, sources.text(capsys)
    assert list(found) == list(IMPORTERS)
    for each in found.values():
        assert all(each[fact] in text for fact in ("about", "licence", "origin"))
        assert all(" or ".join(file["names"]) in text for file in each["files"])
    needed = [file["required"] for file in found["aiwc2018"]["files"]]
    assert needed == [True, True, False]


def test_configurations_that_failed_are_told(tmp_path: Path, capsys: Output) -> None:
    path, out = tmp_path / "tuned.json", tmp_path / "out"
    cache = {"64": {"x": 64, "time": 2.0}, "128": {"x": 128, "time": "CompilationFailedConfig"}}
    content = {"device_name": "RTX 3090", "kernel_name": "saxpy", "cache": cache}
    path.write_text(json.dumps(content), encoding="utf-8")
    assert IMPORT("tuning", path, "--out", out) == 0
    told = "crosscast: left out: 1 of 2 configurations failed."
    assert capsys.readouterr().err.splitlines() == [told, f"wrote {out} (0 profiles, 1 records)"]


def test_ones_own_runs_become_a_dataset_and_what_was_taken_is_told(tmp_path: Path, capsys: Output) -> None:
    path, out = tmp_path / "my.csv", tmp_path / "out"
    head = "application,block,threads,time_s,power_w"
    path.write_text(f"{head}\nscan,8,1,4,30\nscan,16,1,5,30\nscan,8,2,2,\n", encoding="utf-8")
    assert IMPORT("runs", path, "--out", out, "--settings", "block, threads") == 0
    assert capsys.readouterr().err.splitlines() == [
        "my.csv: settings: block, threads",
        "my.csv: powers: power_w",
        "runs: 2, cells: 2, applications: 1, configurations: 2 (machine)",
        "runs left out: 1 (1 without power)",
        f"wrote {out} (0 profiles, 2 records)",
    ]
    shutil.rmtree(out)
    assert IMPORT("runs", path, "--out", out) == 0
    found = read_dataset(out).records.column("configuration").to_pylist()
    assert found == ['{"threads": 1.0}'] * 2


def test_runs_without_any_setting_or_power_are_taken_which_is_told(tmp_path: Path, capsys: Output) -> None:
    path, out, times = tmp_path / "my.csv", tmp_path / "out", tmp_path / "times"
    path.write_text("application,freq,time_s,power_w\nscan,800,1,4\nscan,1600,2,5\n", encoding="utf-8")
    assert IMPORT("runs", path, "--out", out) == 0
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "warning" in line)
    assert line == (
        f"crosscast: warning: {path}: no run has a setting, so that models can choose devices only; "
        "name the columns that are settings with --settings"
    )
    shutil.rmtree(out)
    assert IMPORT("runs", path, "--out", out, "--settings", "freq") == 0
    assert "warning" not in capsys.readouterr().err
    path.write_text("application,device,time_s\nscan,k40c,1\n", encoding="utf-8")
    assert IMPORT("runs", path, "--out", times) == 0
    told = "no run has a power: the times are for models of times and of relative times"
    assert f"crosscast: note: {path}: {told}" in capsys.readouterr().err
    told = Command.of("train configuration").refusal(capsys, times, "--out", tmp_path / "model")
    assert "expected runs with time and power, found none" in told


def test_profiles_become_repeats_of_a_run(tmp_path: Path, capsys: Output) -> None:
    lines = perf_line("instructions", "1000"), perf_line("duration_time", "10", "ns")
    words = "--device xeon --application sort --size big --kernel sorting --nodes 2 --cores 72 --gpu".split()
    a, b = (perf_file(tmp_path / f"{n}.json", *lines, perf_line("x", n)) for n in "12")
    assert IMPORT("counters", "perf", a, b, "--out", tmp_path / "out", *words) == 0
    assert capsys.readouterr().err == f"wrote {tmp_path / 'out'} (0 profiles, 2 records)\n"
    first, _ = read_dataset(tmp_path / "out").records.to_pylist()
    assert (first["application"], first["kernel"], first["size"]) == ("sort", "sorting", "big")
    assert json.loads(first["configuration"]) == {"nodes": 2, "cores": 72, "uses_gpu": 1}
    assert first["time_s"] == [pytest.approx(1e-8)]


DESCRIBE = Command.of("dataset describe")
GOLDEN = Path(__file__).with_name("golden")
DEVICE_ROWS = [{"device": f"cpu:{n}", "name": "a CPU", "type": "cpu", "sources": {}} for n in range(2)]


def record(
    kernel: str, size: str, device: str = "cpu:0", run: int = 0, time_s: float = 1e-3
) -> dict[str, Any]:
    place = {"application": "lud", "kernel": kernel, "size": size, "device": device}
    return {**place, "configuration": "{}", "repeat": 0, "run": run, "time_s": [time_s]}


def session(size: str, device: str = "cpu:0", **cells: Any) -> dict[str, Any]:
    place = {"application": "lud", "size": size, "device": device, "configuration": "{}", "repeat": 0}
    return {**place, "kernels": ["diagonal", "internal"], **cells}


def dataset(devices: int = 2, **tables: list[dict[str, Any]]) -> Dataset:
    return rows.dataset(devices=DEVICE_ROWS[:devices], **tables)


def with_gaps() -> Dataset:
    """Two kernels, two sizes and two devices: one session failed, one cell is noisy, one has no records."""
    records = [
        *(record("internal", "tiny", run=run) for run in range(60)),
        *(record("diagonal", "tiny", run=run, time_s=1e-3 * (1 + run % 2)) for run in range(60)),
        *(record("internal", "small", run=run, time_s=2e-3) for run in range(60)),
    ]
    sessions = [session("tiny"), session("small"), session("tiny", "cpu:1", failure="it caught fire")]
    noted = table_of(RECORDS, records, {"weather": "It rained [all day]."})
    return replace(dataset(sessions=sessions), records=noted)


def with_settings() -> Dataset:
    """Of several processes, of which one failed; one had few runs, and one little time."""
    settings = '{"cores": 4.0}'
    return dataset(
        1,
        sessions=[
            session("tiny", configuration=settings, loop_s=0.5),
            session("small", configuration=settings, repeat=2, failure="it caught fire"),
            session("tiny", repeat=1, runs=1),
        ],
    )


def with_nine_sizes() -> Dataset:
    return dataset(records=[record("internal", f"size {number}") for number in range(9)])


def with_sizes_of_kernels() -> Dataset:
    return dataset(records=[record("internal", "4096x4"), record("diagonal", "64x64")])


def with_a_profile() -> Dataset:
    profile = {"application": "lud", "size": "tiny", "kernel": "internal", "invocation": 0}
    return dataset(1, records=[record("internal", "tiny"), record("diagonal", "small")], profiles=[profile])


def with_configurations_and_power() -> Dataset:
    """One device in three configurations; nothing was set on the other, and one run spreads by nothing."""
    settings = [
        {"cpu_cap_w": cap, "mode": mode, "note": note}
        for cap, mode, note in ((65.0, "fast", "a"), (120.0, "slow", "b"), (90.0, "fast", "a"))
    ]
    watched = {"application": "lud", "device": "cpu:0", "configuration": settings[0], "duration_s": 0.1}
    return dataset(
        records=[
            *({**record("internal", "tiny"), "configuration": each} for each in settings),
            record("internal", "tiny", "cpu:1"),
        ],
        energy=[rows.energy(domain=name, **watched) for name in ("psys", "package-0")],
    )


def of_co_running() -> Dataset:
    mix = rows.mix(1.2, None, fits=1, name="pair")
    mix[1] |= {"application": "lud", "failure": "out of memory"}
    return rows.dataset(isolated_runs=[rows.isolated_run(), rows.isolated_run("lud")], mixes=mix)


def measured_and_of_co_running() -> Dataset:
    return rows.dataset(
        records=[rows.record()], sessions=[rows.session()], isolated_runs=[rows.isolated_run()]
    )


PAGES = (
    *(with_gaps, with_settings, with_nine_sizes, with_sizes_of_kernels, with_a_profile),
    *(with_configurations_and_power, of_co_running, measured_and_of_co_running),
)


@pytest.mark.parametrize("make", PAGES, ids=lambda make: make.__name__)
def test_the_page_is_as_it_was(make: Callable[[], Dataset], tmp_path: Path, capsys: Output) -> None:
    write_dataset(make(), tmp_path / "mine")
    page = DESCRIBE.text(capsys, tmp_path / "mine")
    assert_printed(page, GOLDEN / f"describe-{make.__name__.replace('_', '-')}.txt")
    if make is with_gaps:
        found = DESCRIBE.answer(capsys, tmp_path / "mine")
        assert found["kernels"] == ["lud/diagonal", "lud/internal"]
        assert found["kernel_sizes"] == {key: ["tiny", "small"] for key in found["kernels"]}
        assert (found["cells"], found["records"]) == (3, 180)
        assert [failure["reason"] for failure in found["failed"]] == ["it caught fire"]
        assert [warning["rule"] for warning in found["warnings"]] == ["spread"]
        assert found["notes"] == {"records": {"weather": "It rained [all day]."}}


Folder = Callable[..., Path]
APPLICATIONS = ["crc", "gem"]
DEVICE = devices()[-1]
QUICK = ["--sizes", "tiny", "--min-runs", "3", "--min-time", "0.02", "--sensor", "none"]


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """A dataset that holds no more than the device, so that no test waits for that."""
    row = known_row(DEVICE) | {"launch_overhead_s": 1e-5}
    write_dataset(Dataset("new", devices=table_of(DEVICES, [row])), tmp_path / "set")
    return tmp_path / "set"


def words(out: Path, *applications: object) -> list[str]:
    suite = ",".join(map(str, applications))
    return ["dataset", "build", "--out", str(out), "--suite", suite, "--devices", DEVICE.id, *QUICK]


def start(out: Path, *applications: object) -> Popen[str]:
    command = [sys.executable, "-m", "crosscast", *words(out, *applications)]
    return Popen(command, stdout=PIPE, stderr=PIPE, text=True, start_new_session=True)


def ended(build: Popen[str]) -> tuple[int, list[str]]:
    """Exit code of a build, and its complaints other than its progress."""
    _, errors = build.communicate(timeout=120)
    lines = errors.splitlines()
    return build.returncode, [line for line in lines if not re.search(r" done, (about|less than) ", line)]


def sessions(folder: Path) -> dict[str, float]:
    """When each application was measured."""
    rows = read_dataset(folder).sessions.to_pylist()
    return {row["application"]: row["started_s"] for row in rows}


@pytest.mark.system
def test_a_build_describes_characterizes_and_measures(tmp_path: Path, capfd: Output) -> None:
    build = Command(tuple(words(tmp_path / "new", *APPLICATIONS)))
    found = build.answer(capfd)
    parts_of_it = (found["applications"], found["sizes"], found["devices"])
    assert parts_of_it == (["crc", "gem"], ["tiny"], [DEVICE.key])
    assert (found["cells"], found["failed"], found["missing"]) == (2, [], [])
    dataset = read_dataset(tmp_path / "new")
    assert dataset.devices.column("bandwidth_bytes_per_s").to_pylist()[0] > 0
    assert parts(tmp_path / "new") == ()
    assert build.answer(capfd) == found


@pytest.mark.system
def test_a_build_killed_again_and_again_ends_as_if_it_had_not_been(described: Path, tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    write_dataset(read_dataset(described), undisturbed)
    began = time.monotonic()
    assert ended(start(undisturbed, *APPLICATIONS)) == (0, [])
    whole_s = time.monotonic() - began
    chance = random.Random(7)
    before: dict[str, float] = {}
    for _ in range(3):
        build = start(described, *APPLICATIONS)
        time.sleep(chance.uniform(0.1, 0.8) * whole_s)
        os.killpg(build.pid, signal.SIGKILL)
        build.communicate()
        now = sessions(described)
        # What was done is not done again.
        assert before.items() <= now.items()
        before = now
    assert ended(start(described, *APPLICATIONS)) == (0, [])
    assert before.items() <= sessions(described).items()
    cells = [
        [(noise.application, noise.kernel, noise.size, noise.device) for noise in describe(dataset).noise]
        for dataset in map(read_dataset, (described, undisturbed))
    ]
    assert cells[0] == cells[1]
    assert (described / "profiles.parquet").read_bytes() == (undisturbed / "profiles.parquet").read_bytes()
    assert parts(described) == ()
    assert {path.name for path in described.iterdir()} == {path.name for path in undisturbed.iterdir()}


@pytest.mark.system
def test_ctrl_c_keeps_what_is_done_and_leaves_no_process(described: Path, make_application: Folder) -> None:
    slow = make_application("slow", init=NOTE, run="time.sleep(0.1)")
    build = start(described, "crc", slow)
    # One process characterizes, the other measures.
    wait_until(lambda: len(noted(slow)) == 2)
    build.send_signal(signal.SIGINT)
    output, errors = build.communicate(timeout=60)
    assert (output, errors.splitlines()[-1], build.returncode) == ("", "crosscast: interrupted", 130)
    assert "Traceback" not in errors
    assert sessions(described).keys() == {"crc"}
    wait_until(lambda: all(map(is_gone, noted(slow))))
