"""Histories of regions: what is told of arguments, runs by key, files of one line a run, and datasets."""

import errno
import json
import logging
import math
import pickle
import signal
import subprocess
import sys
from array import array
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from crosscast import read_history
from crosscast.data.configuration import Configuration
from crosscast.data.views import configured
from crosscast.errors import InputError
from crosscast.measure.regions import (
    History,
    RegionKey,
    RegionRun,
    described,
    from_line,
    import_runs,
    runs_of_history,
    samples_of,
    to_line,
)
from crosscast.measure.regions.recorder import history_of
from crosscast.prediction.configuration import machines_of
from support.csv_tables import write_samples
from support.examples import one_in
from support.measuring import RUNS, run_of
from support.refusals import refusal, refusals

KEY, OTHER = RegionKey("a"), RegionKey("b", ("3",))
LINE = to_line(run_of(KEY))
STENCIL = RegionKey("stencil", ("float64[8x8]", "64"), ("model.step:12",))

pytestmark = pytest.mark.usefixtures("own_process")


# Arguments


class Method(Enum):
    JACOBI = 1


class Solver:
    def __init__(self) -> None:
        self.shape = "an attribute of the object, not of its type"


class Buffer:
    size = 4096


class Frame:
    shape = (10, 3)


ARRAYS = hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))


@given(ARRAYS, ARRAYS)
@settings(deadline=None)
def test_arrays_are_told_apart_by_type_and_shape_and_by_nothing_else(
    one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]
) -> None:
    same = one.shape == other.shape and one.dtype == other.dtype
    assert (described(one) == described(other)) == same


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False).filter(bool))
def test_numbers_that_are_not_whole_are_told_by_the_power_of_two_below_them(value: float) -> None:
    word = described(value).removeprefix("float ")
    sign, power = (-1, word[1:]) if word.startswith("-") else (1, word)
    assert power.startswith("2^")
    below = math.ldexp(1.0, int(power[2:]))
    assert below <= value * sign < 2 * below if below < 2.0**1023 else below <= value * sign


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (0.0, "float 0"),
        (-0.0, "float 0"),
        (math.inf, "float inf"),
        (math.nan, "float nan"),
        ("/home/someone/input.dat", "str[23]"),
        (memoryview(array("d", [0.0] * 6)), "memoryview[6]"),
        ((np.zeros(2), 3), "(float64[2], 3)"),
        (tuple(range(9)), "tuple[9]"),
        (range(9), "range"),
        (Method.JACOBI, "Method.JACOBI"),
        (Solver(), "Solver"),
        (Buffer(), "Buffer[4096 B]"),
        (Frame(), "Frame[10x3]"),
        (np.float32(0.3), "float32 2^-2"),
        (np.bool_(True), "bool[]"),
        (np.zeros(()), "float64[]"),
        (3j, "complex"),
        (print, "builtin_function_or_method"),
    ],
)
def test_each_kind_has_its_words(value: object, text: str) -> None:
    assert described(value) == text


def test_a_key_is_shown_as_a_call_and_goes_to_other_processes() -> None:
    assert str(STENCIL) == "stencil(float64[8x8], 64) at model.step:12"
    assert str(KEY) == "a()"
    assert pickle.loads(pickle.dumps(STENCIL)) == STENCIL


# Runs by key

NODE = Configuration("node", {"cpu_cap_w": 65, "governor": "slow"})
FAST = Configuration("node", {"cpu_cap_w": 90, "governor": "fast"})


def test_runs_are_found_by_key_and_configuration_and_only_the_last_ones_kept() -> None:
    runs = History(most_runs=2)
    one, two = run_of(KEY, configuration=NODE), run_of(KEY, configuration=FAST)
    for run in (run_of(KEY, 99.0), one, run_of(OTHER), two):
        runs.record(run)
    assert (len(runs), runs.keys(), runs.keys("b")) == (3, (KEY, OTHER), (OTHER,))
    assert (runs.runs(KEY), runs.runs(KEY, FAST), runs.last(KEY)) == ((one, two), (two,), two)


def test_means_are_over_what_is_known_of_runs_that_did_not_fail() -> None:
    runs = History()
    runs.record(run_of(KEY, 1.0, power_w=100.0, metered_s=1.0))
    runs.record(run_of(KEY, 3.0, power_w=20.0, metered_s=3.0))
    runs.record(run_of(KEY, 2.0, configuration=FAST))
    failed = run_of(KEY, 99.0, failure="ValueError", power_w=1.0, metered_s=1.0)
    runs.record(failed)
    assert runs.mean_time_s(KEY) == 2.0
    assert runs.mean_power_w(KEY) == pytest.approx(40)
    assert (runs.mean_time_s(KEY, FAST), runs.mean_power_w(KEY, FAST)) == (2.0, None)
    assert (runs.last(KEY), runs.runs(KEY, failed=True)[-1]) == (run_of(KEY, 2.0, configuration=FAST), failed)
    none = (runs.runs(OTHER), runs.last(OTHER), runs.mean_time_s(OTHER), runs.mean_power_w(OTHER))
    assert none == ((), None, None, None)


def test_a_sample_has_a_column_for_everything_known() -> None:
    runs = History()
    known: dict[str, Any] = {"power_w": 30.0, "powers_w": {"dram": 5.0}, "counters": {"cycles": 7}}
    runs.record(run_of(OTHER, 2.0, configuration=NODE, **known))
    runs.record(run_of(OTHER, 9.0, configuration=NODE, failure="ValueError"))
    runs.record(run_of(OTHER, 9.0))
    runs.record(run_of(KEY, 9.0, configuration=NODE))
    cells = {"time_s": 2.0, "power_w": 30.0, "dram_w": 5.0, "cycles": 7}
    assert samples_of(runs, OTHER) == [{"device": "node", "cpu_cap_w": 65.0, "governor": "slow", **cells}]


# Files

GOOD: dict[str, Any] = {"version": 1, "region": "a", "started_s": 1.0, "duration_s": 2.0}


@given(RUNS)
@settings(deadline=None)
def test_every_line_is_read_back_as_it_was_and_no_part_of_it_is_a_run(run: RegionRun) -> None:
    line = to_line(run)
    assert line.index(b"\n") == len(line) - 1
    assert from_line(line, "here") == run
    assert [from_line(line[:end], "here") for end in range(len(line) - 1)] == [None] * (len(line) - 1)


@given(st.lists(RUNS, min_size=1, max_size=4), st.data())
@settings(deadline=None)
def test_cut_anywhere_a_file_loses_its_last_line_only(runs: list[RegionRun], data: st.DataObject) -> None:
    lines = [to_line(run) for run in runs]
    whole = b"".join(lines)
    end = data.draw(st.integers(0, len(whole)))
    left, ends = [], 0
    for run, line in zip(runs, lines, strict=True):
        ends += len(line)
        # Cut just before its end, a line is whole.
        if ends - 1 <= end:
            left.append(run)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        path.write_bytes(whole[:end])
        found = read_history(path)
    for key in {run.key for run in runs}:
        assert list(found.runs(key, failed=True)) == [run for run in left if run.key == key]
    assert len(found) == len(left)


@pytest.mark.parametrize("end", [1, 20, len(LINE) - 2, len(LINE) - 1, len(LINE)])
def test_runs_are_appended_after_one_that_was_cut_off(end: int, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(LINE + LINE[:end])
    history = History(path)
    for _ in range(2):
        history.record(run_of(KEY))
    assert len(read_history(path)) == (3 if end < len(LINE) - 1 else 4)
    assert path.read_bytes().startswith(LINE + LINE[:end]), "nothing is lost that was there"


@refusals("changes complaint")
def test_a_wrong_field_is_named(changes: str, complaint: str) -> None:
    with pytest.raises(InputError, match=f"^here: {complaint}"):
        from_line(json.dumps(GOOD | json.loads(changes)).encode(), "here")
    for name in GOOD:
        rest = {field: value for field, value in GOOD.items() if field != name}
        assert f"here: {name}: expected " in refusal(from_line, json.dumps(rest).encode(), "here")


@pytest.mark.parametrize("line", [b"null", b"\xff", b'{"version": NaN}', b'{"version": 1} {}'])
def test_what_is_no_object_of_plain_numbers_is_refused(line: bytes) -> None:
    assert refusal(from_line, line, "here").startswith("here: expected a JSON object")
    large = b'{"version":1,"region":"a","started_s":1,"duration_s":1e999}'
    assert "duration_s: expected a number <= " in refusal(from_line, large, "here")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (LINE + b"{}\n" + LINE, 2),
        (LINE + b"It was a dark night", 2),
        (b"thesis", 1),
        (b"{}\n", 1),
    ],
)
def test_a_wrong_line_is_named_and_nothing_appended_to_what_is_no_history(
    tmp_path: Path, text: bytes, number: int
) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(text)
    for use in (read_history, runs_of_history, *([history_of] if number == 1 else [])):
        assert f"thesis.txt, line {number}: " in refusal(use, path)
    assert path.read_bytes() == text


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "there" / "runs.jsonl"
    for use, what in ((read_history, "read"), (History, "write")):
        assert f"{tmp_path}: cannot {what} the history (Is a directory)" in refusal(use, tmp_path)
        assert f"{missing}: cannot {what} the history (No such file" in refusal(use, missing)


def test_a_file_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, mode: str, buffering: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "runs.jsonl"
    history = History(path)
    monkeypatch.setattr(Path, "open", full)
    with caplog.at_level(logging.WARNING, "crosscast"):
        for _ in range(3):
            history.record(run_of(KEY))
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: the history cannot be written from now on: No space left on device"
    ]
    assert len(history) == 3


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    history = History(tmp_path / "runs.jsonl")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: history.record(run_of(KEY, float(number))), range(200)))
    found = read_history(tmp_path / "runs.jsonl").runs(KEY)
    assert sorted(run.duration_s for run in found) == list(range(200))


# Processes

BEGIN = """
import atexit, os, signal, sys, threading, time
import crosscast
path = sys.argv[1]
def region(name):
    return crosscast.profiled(name, history=path, sensors="none")
def step(name):
    with region(name):
        pass
step("first")
"""
WAITING = "with region('last'): os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"


def ended(program: str, path: Path) -> tuple[int, str]:
    words = [sys.executable, "-c", BEGIN + dedent(program), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("program", "status", "names"),
    one_in(
        5,
        [
            ("step('last')", 0, ["first", "last"]),
            ("with region('last'): raise ValueError", 1, ["first", "last ValueError"]),
            (WAITING, -signal.SIGINT, ["first", "last KeyboardInterrupt"]),
            ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM, ["first"]),
            ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ["first"]),
            ("atexit.register(step, 'last')", 0, ["first", "last"]),
        ],
    ),
)
def test_a_program_that_ends_leaves_runs(program: str, status: int, names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    code, errors = ended(program, path)
    history = read_history(path)
    runs = [run for key in history.keys() for run in history.runs(key, failed=True)]  # noqa: SIM118 - no mapping
    found = [f"{run.key.name} {run.failure}" if run.failure else run.key.name for run in runs]
    assert (code, found) == (status, names), errors


def test_regions_bring_nothing_heavy(tmp_path: Path) -> None:
    program = """
    heavy = {"numpy", "pyarrow", "pyopencl", "pynvml", "rich", "cyclopts"} & sys.modules.keys()
    sys.exit(",".join(heavy) or 0)
    """
    assert ended(program, tmp_path / "runs.jsonl") == (0, "")


def test_the_example_shows_its_history(tmp_path: Path) -> None:
    program = Path(__file__).parents[2] / "examples" / "profiled_stencil.py"
    if not program.exists():
        pytest.skip("no checkout")
    path = tmp_path / "runs.jsonl"
    words = [sys.executable, str(program), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "smooth(float64[128x128], float64[128x128]) at __main__.relax" in done.stdout
    history = read_history(path)
    keys = history.keys()
    assert sorted(len(history.runs(key)) for key in keys) == [1, 1, 200, 200]


def test_a_process_has_one_history_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    history = history_of("runs.jsonl")
    assert history_of(tmp_path / "runs.jsonl") is history
    assert history_of(str(tmp_path / "sub" / ".." / "runs.jsonl")) is history
    assert history_of(history) is history
    assert history_of(None) is history_of(None) is not history


# Datasets of runs, as of a sweep

THREAD = Configuration("node", {"threads": 1})
POWERS = {"package-0": 30.0, "gpu": 20.0, "package-0/dram": 4.0}


def written(path: Path, *runs: RegionRun) -> Path:
    path.write_bytes(b"".join(map(to_line, runs)))
    return path


def good(key: RegionKey = STENCIL, **rest: object) -> RegionRun:
    return run_of(key, configuration=THREAD, power_w=40.0)._replace(**rest)  # type: ignore[arg-type]


def test_a_run_has_the_name_of_its_region_the_size_of_its_arguments_and_place_and_known_powers(
    tmp_path: Path,
) -> None:
    measured = good(powers_w=POWERS, counters={"cycles": 5.0}, metered_s=0.6)
    others = good(RegionKey("fill"), power_w=None), good(power_w=None, powers_w={"gpu": 3.0})
    run, part, fill = runs_of_history(written(tmp_path / "a.jsonl", measured, *others)).runs
    assert (run.application, run.kernel, run.configuration) == ("stencil", "stencil", THREAD)
    assert (run.size, fill.application, fill.size) == (
        "float64[8x8], 64 at model.step:12",
        "fill",
        "default",
    )
    assert (run.time_s, run.power_w, run.domains_w, run.counters) == (0.5, 40.0, POWERS, {"cycles": 5.0})
    assert (fill.power_w, fill.domains_w) == (None, {})
    assert not part.has_power, "one of its domains is missing"


def test_runs_that_tell_nothing_are_counted_and_left_out(tmp_path: Path) -> None:
    bad = [good(failure="KeyError"), good(configuration=None), good(duration_s=0.0), good(failure="OSError")]
    found = runs_of_history(written(tmp_path / "a.jsonl", good(), *bad))
    assert len(found.runs) == 1
    assert found.left_out == {"failed": 2, "without a configuration": 1, "without a time": 1}


@settings(deadline=None)
@given(st.lists(RUNS, min_size=1, max_size=8))
def test_each_good_run_is_there_once_and_keys_stay_apart(
    tmp_path_factory: pytest.TempPathFactory, runs: list[RegionRun]
) -> None:
    found = runs_of_history(written(tmp_path_factory.getbasetemp() / "runs.jsonl", *runs))
    kept = [run for run in runs if run.failure is None and run.configuration and run.duration_s]
    assert len(found.runs) == len(kept)
    assert sum(found.left_out.values()) == len(runs) - len(kept)
    assert sorted(run.time_s for run in found.runs) == sorted(run.duration_s for run in kept)
    assert len({(run.application, run.size) for run in found.runs}) == len({run.key for run in kept})


SCAN = RegionRun(RegionKey("scan"), None, 1e9, 0.5, 0.5, {}, POWERS, 50.0, {"cycles": 7.0})
SCANS = [
    SCAN._replace(configuration=Configuration("node", {"threads": threads}), duration_s=time_s)
    for threads, time_s in ((1, 4.0), (2, 2.0), (2, 3.0))
]


def table(path: Path) -> Path:
    write_samples(SCANS, path)
    first, *lines = path.read_text().splitlines()
    path.write_text("\n".join([f"application,{first}", *(f"scan,{line}" for line in lines)]))
    return path


def test_a_history_and_the_table_of_its_samples_give_the_same_cells(tmp_path: Path) -> None:
    one, other = (
        configured(import_runs(path).dataset)
        for path in (written(tmp_path / "a.jsonl", *SCANS), table(tmp_path / "b.csv"))
    )
    assert one == other
    assert [(row["time_s"], row["power_w"]) for row in one.to_pylist()] == [(4.0, 50.0), (2.5, 50.0)]
    (surfaces,) = machines_of(one, "runs")
    assert sorted(surfaces.domains) == sorted(POWERS)


def test_runs_of_all_files_of_a_folder_are_repeats_of_each_other(tmp_path: Path) -> None:
    history = written(tmp_path / "a.jsonl", *SCANS)
    table(tmp_path / "b.csv")
    (tmp_path / "notes.txt").write_text("others may lie here")
    imported = import_runs(tmp_path)
    assert [row["runs"] for row in configured(imported.dataset).to_pylist()] == [2, 4]
    assert imported.notes == (
        "b.csv: settings: threads",
        "b.csv: powers: power_w, package-0_w, gpu_w, package-0/dram_w",
        "b.csv: counters: cycles",
        "runs: 6, cells: 2, applications: 1, configurations: 2 (node)",
        "runs with the time and power of another of their cell, to the last digit: 3",
    )
    # Histories tell their settings.
    assert import_runs(tmp_path, ["threads"]).dataset.records.num_rows == 6
    assert "settings: expected with CSV files, found histories" in refusal(import_runs, history, ["threads"])


@pytest.mark.parametrize("name", ["", "no.csv", "no.jsonl", "no"])
def test_a_path_without_runs_is_named(tmp_path: Path, name: str) -> None:
    assert refusal(import_runs, tmp_path / name).startswith(str(tmp_path / name))


EXAMPLE = Path(__file__).parents[2] / "examples" / "sweep.py"


def swept(history: Path, sensors: str) -> str:
    words = [sys.executable, str(EXAMPLE), str(history), sensors]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_sweep_with_power_is_what_models_learn_from(tmp_path: Path) -> None:
    recording, history = tmp_path / "recording.csv", tmp_path / "runs.jsonl"
    recording.write_text("domain,time_s,energy_j\npackage-0,0,0\npackage-0,9000,270000\n", encoding="utf-8")
    assert swept(history, f"replay:{recording}") == f"times and powers are in {history}"
    (surfaces,) = machines_of(configured(import_runs(history).dataset), "runs")
    assert surfaces.applications == ("scale", "sort", "sums", "transform", "waves")
    assert surfaces.known.all()
    assert (surfaces.power_w > 0).all()
    assert surfaces.space.configurations[0] == Configuration("machine", {"threads": 1})
