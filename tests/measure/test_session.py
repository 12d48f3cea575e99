"""A session in this process, on a real device, and the summary of its kernels."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.schema import ENERGY, RECORDS, SESSIONS
from crosscast.data.table import check, table_of
from crosscast.errors import CheckFailed, CompileError, DeviceFault, InputError, SensorFault
from crosscast.measure.energy import Sensor
from crosscast.measure.measurement import summaries
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, devices
from crosscast.measure.session import SessionRows, measure_session
from crosscast.measure.subjects import Settings, SuiteProblem, load
from support.measuring import cl_error
from support.refusals import refusals
from support.tables import record

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
) -> SessionRows:
    problem = SuiteProblem(str(name), "tiny", parameters or {"items": 1024}, 5)
    return measure_session(load(problem), device, settings, sensor, **options)


def test_every_run_of_every_kernel_is_a_record_with_raw_times(device: OpenCLDevice) -> None:
    found = measured(device, "lud", parameters={"blocks": 4}, repeat=3)
    check(RECORDS, table_of(RECORDS, found.records), "records")
    check(SESSIONS, table_of(SESSIONS, [found.session]), "sessions")
    runs: dict[int, list[dict[str, Any]]] = {row["run"]: [] for row in found.records}
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
def test_a_lost_sensor_costs_its_readings(device: OpenCLDevice, make_application: Folder, after: int) -> None:
    found = measured(device, make_application(), sensor=FakeSensor(20, after, 0.001))
    assert found.session["runs"] >= 4
    assert len(found.records) == found.session["runs"]
    assert (found.energy, found.notes) == ([], ["the fake sensor went away"])


def test_a_device_that_is_lost_is_named(
    device: OpenCLDevice, make_application: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed, count = OpenCLQueue.timed, iter(range(100))

    def fail_in_the_fifth_run(self: OpenCLQueue, run: Callable[[OpenCLQueue], None]) -> Any:
        if next(count) == 4:
            raise cl_error(-2)
        return timed(self, run)

    monkeypatch.setattr(OpenCLQueue, "timed", fail_in_the_fifth_run)
    with pytest.raises(DeviceFault, match=f"own on {device.id}: the device failed or was lost"):
        measured(device, make_application())
    assert next(count) == 5


@pytest.mark.parametrize("check_fails", ["self.count == 2", "self.count > 2"])
def test_the_result_is_checked_before_and_after(
    device: OpenCLDevice, make_application: Folder, check_fails: str
) -> None:
    folder = make_application(check=f"if {check_fails}: raise CheckFailed(f'wrong after {{self.count}}')")
    with pytest.raises(CheckFailed, match="wrong after"):
        measured(device, folder)


@refusals("run message")
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
    found = measure_session(load(problem), device, QUICK, None)
    note = "own: its working set has 8192 bytes, more than the 8191 that tiny stands for (its driver's fit)"
    assert found.notes == [note] * told


def test_kernels_that_do_not_compile_are_quoted(device: OpenCLDevice, make_application: Folder) -> None:
    with pytest.raises(CompileError, match=f"the compiler of {device.id} refuses it"):
        measured(device, make_application(source="kernel void twice(global int *a) { a[0] = oops; }"))


@pytest.mark.parametrize(
    ("times", "statistics"),
    [
        # Over runs, of the mean of their invocations
        ([[1.0, 3.0], [5.0], [2.0, 2.0, 2.0]], (3, 6, 2.0, 3.0, 2.0, 5.0, 3**0.5, 3**0.5 / 3)),
        ([[1.0]], (1, 1, 1.0, 1.0, 1.0, 1.0, None, None)),
        ([[0.0], [0.0]], (2, 2, 0.0, 0.0, 0.0, 0.0, 0.0, None)),
    ],
)
def test_each_kernel_has_statistics_of_its_runs(
    times: list[list[float]], statistics: tuple[Any, ...]
) -> None:
    runs = [record(number, run) for number, run in enumerate(times)]
    of_kernels = summaries(table_of(RECORDS, [*runs, record(kernel="other")]))
    other, found = sorted(of_kernels, key=lambda each: each.kernel)
    assert (other.kernel, other.runs, found.kernel) == ("other", 1, "sum")
    (_, *told), spread = found.to_dict().values(), found.spread
    assert (*told, spread) == pytest.approx(statistics)
