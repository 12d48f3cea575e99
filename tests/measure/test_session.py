"""A session in this process, on a real device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyopencl as cl
import pytest

from crosscast.data.schema import ENERGY, RECORDS, SESSIONS
from crosscast.data.table import Table, check, table_of
from crosscast.errors import CheckFailed, CompileError, DeviceFault, InputError, SensorFault
from crosscast.measure import host_state
from crosscast.measure.cpu_counters import available
from crosscast.measure.energy import Sensor
from crosscast.measure.inventory import inventory, summaries
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, devices
from crosscast.measure.session import Measured, measure_here
from crosscast.measure.subjects import Settings, SuiteProblem, load

Folder = Callable[..., Path]
QUICK = Settings(min_runs=4, min_time_s=0.0, warmups=2)


class FakeSensor:
    """Has used a joule more each time that it is asked, until it fails."""

    name = "fake"
    domains = ("all",)
    resolution_s = 0.0
    is_quick = True

    def __init__(self, wanted: int = 0, fails_after: int | None = None, interval_s: float = 3600.0) -> None:
        self.samples_wanted, self.interval_s = wanted, interval_s
        self._fails_after = fails_after
        self._asked = 0

    def begin(self) -> None:
        self._asked = 0

    def read_j(self) -> tuple[float, ...]:
        if self._fails_after is not None and self._asked >= self._fails_after:
            raise SensorFault("the fake sensor went away")
        self._asked += 1
        return (float(self._asked),)


@pytest.fixture(scope="module")
def device() -> OpenCLDevice:
    return devices()[-1]


def measured(
    device: OpenCLDevice,
    name: object,
    settings: Settings = QUICK,
    sensor: Sensor | None = None,
    parameters: dict[str, int] | None = None,
    **options: Any,
) -> Measured:
    problem = SuiteProblem(str(name), "tiny", parameters or {"items": 1024}, 5)
    return measure_here(load(problem), device, settings, sensor, **options)


def test_every_run_of_every_kernel_is_a_record_with_raw_times(device: OpenCLDevice) -> None:
    found = measured(device, "lud", parameters={"blocks": 4}, repeat=3)
    check(RECORDS, table_of(RECORDS, found.records), "records")
    check(SESSIONS, table_of(SESSIONS, [found.session]), "sessions")
    runs = {row["run"]: [] for row in found.records}  # type: ignore[var-annotated]
    for row in found.records:
        runs[row["run"]].append(row)
    assert sorted(runs) == list(range(found.session["runs"]))
    assert found.session["runs"] >= 4
    for rows in runs.values():
        # Of 4 by 4 blocks: a diagonal one each time, and the rest of the matrix but the last time.
        counts = {row["kernel"]: (row["invocations"], len(row["time_s"])) for row in rows}
        assert counts == {"lud_diagonal": (4, 4), "lud_perimeter": (3, 3), "lud_internal": (3, 3)}
        assert {row["repeat"] for row in rows} == {3}
        on_device = sum(sum(row["time_s"]) for row in rows)
        assert min(min(row["time_s"]) for row in rows) > 0
        assert on_device + rows[0]["transfer_s"] <= rows[0]["host_s"]
    assert sum(rows[0]["host_s"] for rows in runs.values()) <= found.session["loop_s"]
    starts = [runs[number][0]["started_s"] for number in sorted(runs)]
    assert starts == sorted(starts)


def test_the_session_says_what_was_measured_and_where(device: OpenCLDevice, make_application: Folder) -> None:
    session = measured(device, make_application()).session
    assert (session["application"], session["size"], session["device"]) == ("own", "tiny", device.key)
    assert (json.loads(session["parameters"]), session["seed"]) == ({"items": 1024}, 5)
    assert (json.loads(session["kernels"]), session["working_set_bytes"]) == (["twice"], 8192)
    assert (session["warmups"], session["timer_resolution_s"]) == (2, device.timer_resolution_s)
    assert len(session["source_sha256"]) == 64
    assert json.loads(session["environment"])["opencl_driver"] == device.driver


@pytest.mark.parametrize(("warmups", "unrecorded"), [(3, 3), (0, 1)])
def test_warm_ups_are_not_recorded(
    device: OpenCLDevice, make_application: Folder, warmups: int, unrecorded: int
) -> None:
    note = "Path(__file__ + '.runs').write_text(str(self.count))"
    folder = make_application(run=note)
    found = measured(device, folder, Settings(min_runs=3, min_time_s=0.0, warmups=warmups))
    assert int((folder / "driver.py.runs").read_text()) == found.session["runs"] + unrecorded
    assert found.session["warmups"] == unrecorded


def test_runs_go_on_until_the_time_has_passed(device: OpenCLDevice, make_application: Folder) -> None:
    found = measured(device, make_application(), Settings(min_runs=1, min_time_s=0.2))
    assert found.session["loop_s"] >= 0.2
    assert found.session["runs"] > 1


def test_progress_is_told(
    device: OpenCLDevice, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosscast.measure.session._REPORT_S", 0.0)
    told: list[tuple[int, float]] = []
    found = measured(device, make_application(), report=lambda runs, elapsed: told.append((runs, elapsed)))
    assert [runs for runs, _ in told] == list(range(1, found.session["runs"] + 1))
    assert told == sorted(told)


def test_counters_are_kept_where_they_work(device: OpenCLDevice, make_application: Folder) -> None:
    folder = make_application()
    values = measured(device, folder).session["counters"]
    assert values is None or all(value >= 0 for value in json.loads(values).values())
    off = Settings(min_runs=1, min_time_s=0.0, counters=False)
    assert measured(device, folder, off).session["counters"] is None


def test_energy_is_that_of_all_recorded_runs(device: OpenCLDevice, make_application: Folder) -> None:
    found = measured(device, make_application(), sensor=FakeSensor())
    check(ENERGY, table_of(ENERGY, found.energy), "energy")
    (row,) = found.energy
    assert (row["sensor"], row["domain"], row["energy_j"]) == ("fake", "all", 1.0)
    assert (row["runs"], row["samples"]) == (found.session["runs"], 2)
    assert (row["times_s"], row["energies_j"]) == ([0.0, row["duration_s"]], [0.0, 1.0])


def test_a_slow_sensor_gets_more_runs(device: OpenCLDevice, make_application: Folder) -> None:
    found = measured(device, make_application(), sensor=FakeSensor(wanted=30, interval_s=0.01))
    assert found.session["loop_s"] >= 0.28
    (row,) = found.energy
    assert row["samples"] >= 30


@pytest.mark.parametrize("after", [0, 1, 10])
def test_a_sensor_that_goes_away_costs_its_readings_only(
    device: OpenCLDevice, make_application: Folder, after: int
) -> None:
    found = measured(device, make_application(), sensor=FakeSensor(20, after, 0.001))
    assert found.session["runs"] >= 4
    assert len(found.records) == found.session["runs"]
    assert (found.energy, found.notes) == ([], ["the fake sensor went away"])


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A device that is lost in its fifth run."""
    timed, count = OpenCLQueue.timed, iter(range(100))

    def fail(self: OpenCLQueue, run: Callable[[OpenCLQueue], None]) -> Any:
        if next(count) == 4:
            raise cl.RuntimeError(cl._cl._ErrorRecord(msg="", code=-2, routine="clFinish"))
        return timed(self, run)

    monkeypatch.setattr(OpenCLQueue, "timed", fail)
    yield
    assert next(count) == 5


@pytest.mark.usefixtures("lost")
def test_a_device_that_is_lost_is_named(device: OpenCLDevice, make_application: Folder) -> None:
    with pytest.raises(DeviceFault, match=f"own on {device.id}: the device failed or was lost"):
        measured(device, make_application())


@pytest.mark.parametrize("check_fails", ["self.count == 2", "self.count > 2"])
def test_the_result_is_checked_before_and_after(
    device: OpenCLDevice, make_application: Folder, check_fails: str
) -> None:
    folder = make_application(check=f"if {check_fails}: raise CheckFailed(f'wrong after {{self.count}}')")
    with pytest.raises(CheckFailed, match="wrong after"):
        measured(device, folder)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ("return", r"\(twice\), found none"),
        ("queue.launch('nothing', (1,), (1,))", r"\(twice\), found nothing, twice"),
        ("if self.count > 3: return", r"\(twice\), found none"),
    ],
)
def test_runs_must_launch_the_kernels_that_the_driver_names(
    device: OpenCLDevice, make_application: Folder, run: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        measured(device, make_application(run=run))


@pytest.mark.parametrize(("most", "told"), [(8191, True), (8192, False), (None, False)])
def test_a_working_set_over_the_size_is_a_note(
    device: OpenCLDevice, make_application: Folder, most: int | None, told: bool
) -> None:
    problem = SuiteProblem(str(make_application()), "tiny", {"items": 1024}, 0, most)
    found = measure_here(load(problem), device, QUICK, None)
    note = "own: its working set has 8192 bytes, more than the 8191 that tiny stands for (its driver's fit)"
    assert found.notes == [note] * told


def test_kernels_that_do_not_compile_are_quoted(device: OpenCLDevice, make_application: Folder) -> None:
    with pytest.raises(CompileError, match=f"the compiler of {device.id} refuses it"):
        measured(device, make_application(source="kernel void twice(global int *a) { a[0] = oops; }"))


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_the_clock_is_that_of_the_fastest_cpu(tmp_path: Path) -> None:
    write(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "800000\n")
    write(tmp_path, "sys/devices/system/cpu/cpu11/cpufreq/scaling_cur_freq", "3600123\n")
    write(tmp_path, "sys/devices/system/cpu/cpu2/cpufreq/scaling_cur_freq", "<unknown>\n")
    write(tmp_path, "proc/cpuinfo", "cpu MHz\t\t: 2000.000\n")
    assert host_state.clock_hz(tmp_path) == pytest.approx(3.600123e9)


def test_without_cpufreq_the_clock_is_that_of_cpuinfo(tmp_path: Path) -> None:
    write(tmp_path, "proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2000.5\n\ncpu MHz\t\t: 2600.144\n")
    assert host_state.clock_hz(tmp_path) == pytest.approx(2.600144e9)


def test_several_governors_are_all_named(tmp_path: Path) -> None:
    write(tmp_path, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
    write(tmp_path, "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n")
    write(tmp_path, "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "powersave\n")
    assert host_state.governor(tmp_path) == "performance,powersave"


def test_own_threads_are_not_others(tmp_path: Path) -> None:
    write(tmp_path, "proc/loadavg", "1.25 0.33 0.62 5/91 28737\n")
    write(tmp_path, "proc/self/task/10/stat", "10 (python) R 1 10 10")
    write(tmp_path, "proc/self/task/11/stat", "11 (a) R (b) S 1 10 10")
    write(tmp_path, "proc/self/task/12/stat", "12 (pocl) R 1 10 10")
    assert host_state.others_running(tmp_path) == 3
    assert host_state.load(tmp_path) == 1.25


@pytest.mark.parametrize(
    ("load", "doubt"), [("0.49", ""), ("0.50", "0.5 threads"), ("3.21", "3.2 threads"), (None, "")]
)
def test_a_machine_that_other_programs_keep_busy_is_doubted(
    tmp_path: Path, load: str | None, doubt: str
) -> None:
    if load is not None:
        write(tmp_path, "proc/loadavg", f"{load} 9.00 9.00 5/91 28737\n")
    found = host_state.doubts(tmp_path)
    assert [each.partition(" of this machine wanted to run")[0] for each in found] == [doubt] * bool(doubt)


def test_others_are_never_fewer_than_none(tmp_path: Path) -> None:
    write(tmp_path, "proc/loadavg", "0.00 0.00 0.00 0/91 28737\n")
    write(tmp_path, "proc/self/task/10/stat", "10 (python) R 1 10 10")
    assert host_state.others_running(tmp_path) == 0


def test_caches_are_those_that_hold_data(tmp_path: Path) -> None:
    caches = [
        ("1", "Instruction", "64K"),
        ("1", "Data", "48K"),
        ("2", "Unified", "1280K"),
        ("3", "Unified", "32M"),
    ]
    for i, (level, kind, size) in enumerate(caches):
        for name, text in (("level", level), ("type", kind), ("size", size)):
            write(tmp_path, f"sys/devices/system/cpu/cpu0/cache/index{i}/{name}", f"{text}\n")
    assert host_state.caches(tmp_path) == (48 << 10, 1280 << 10, 32 << 20)


def test_a_cache_without_size_is_none(tmp_path: Path) -> None:
    for name, text in (("level", "2"), ("type", "Unified"), ("size", "0K")):
        write(tmp_path, f"sys/devices/system/cpu/cpu0/cache/index2/{name}", text)
    assert host_state.caches(tmp_path) == (None, None, None)


def test_memory_is_in_bytes(tmp_path: Path) -> None:
    write(tmp_path, "proc/meminfo", "MemTotal:       24684092 kB\nMemFree:        1 kB\n")
    assert host_state.memory_bytes(tmp_path) == 24684092 * 1024


def test_what_the_system_does_not_tell_is_none(tmp_path: Path) -> None:
    assert host_state.clock_hz(tmp_path) is None
    assert host_state.governor(tmp_path) is None
    assert host_state.load(tmp_path) is None
    assert host_state.others_running(tmp_path) is None
    assert host_state.memory_bytes(tmp_path) is None


def test_this_machine_tells_its_memory() -> None:
    memory = host_state.memory_bytes()
    assert memory is not None and memory > 1 << 28


def test_every_device_is_listed_with_all_that_is_known() -> None:
    found = inventory()
    assert [entry.device.id for entry in found] == [device.id for device in devices()]
    for entry in found:
        shown = json.loads(json.dumps(entry.to_dict(), allow_nan=False))
        assert (shown["id"], shown["device"]) == (entry.device.id, entry.device.key)
        assert shown["compute_units"] == entry.device.compute_units
        assert {"name", "type", "memory_bytes", "driver", "platform"} <= shown.keys()
        assert all(sensor["works"] == (sensor["reason"] is None) for sensor in shown["sensors"])


def test_cpus_have_counters_and_a_sensor_that_works_or_says_why() -> None:
    names = list(available())
    for entry in inventory():
        shown = entry.to_dict()
        if entry.device.type == "cpu":
            assert [counter["name"] for counter in shown["counters"]] == names
            assert [sensor["name"] for sensor in shown["sensors"]] == ["rapl"]
        else:
            assert shown["counters"] == []


def records(times: dict[str, list[list[float]]]) -> Table:
    cell = {"application": "a", "size": "tiny", "device": "d", "configuration": "{}", "repeat": 0}
    rows = [
        {**cell, "kernel": kernel, "run": number, "invocations": len(run), "time_s": run}
        for kernel, runs in times.items()
        for number, run in enumerate(runs)
    ]
    return table_of(RECORDS, rows)


def test_statistics_are_over_runs_of_the_mean_of_their_invocations() -> None:
    (found,) = summaries(records({"k": [[1.0, 3.0], [5.0], [2.0, 2.0, 2.0]]}))
    assert (found.kernel, found.runs, found.invocations) == ("k", 3, 6)
    assert (found.min_s, found.median_s, found.mean_s, found.max_s) == (2.0, 2.0, 3.0, 5.0)
    assert found.sd_s == pytest.approx(3**0.5)
    assert found.spread == pytest.approx(3**0.5 / 3)


def test_one_run_has_no_spread() -> None:
    (found,) = summaries(records({"k": [[1.0]]}))
    assert (found.sd_s, found.spread) == (None, None)
    assert found.to_dict()["sd_s"] is None


def test_times_of_zero_have_no_spread() -> None:
    (found,) = summaries(records({"k": [[0.0], [0.0]]}))
    assert (found.sd_s, found.spread) == (0.0, None)


def test_each_kernel_has_its_own_summary() -> None:
    found = summaries(records({"one": [[1.0], [2.0]], "two": [[4.0], [4.0]]}))
    assert {summary.kernel: summary.mean_s for summary in found} == {"one": 1.5, "two": 4.0}
