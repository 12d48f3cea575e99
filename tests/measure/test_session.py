"""Applications and launch files, and sessions of them in this process, on a real device."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from crosscast.characterization.engine.layout import CLASSES
from crosscast.data.schema import ENERGY, RECORDS, SESSIONS
from crosscast.data.table import check, table_of
from crosscast.errors import CheckFailed, InputError, MissingExtraError, SensorFault
from crosscast.measure import Sensor, subjects
from crosscast.measure.measurement import summaries
from crosscast.measure.opencl import devices
from crosscast.measure.session import SessionRows, measure_session
from crosscast.measure.subjects import instruction_mix_of
from crosscast.suite.application import application
from support.measuring import SteadySensor
from support.refusals import refusal, refusals
from support.tables import record

Folder = Callable[..., Path]
DEVICE = devices()[-1]
QUICK = subjects.Settings(min_runs=4, min_time_s=0.0, warmups=2)


def sensor_of(wanted: int = 0, fails_after: int = 1 << 30, interval_s: float = 3600.0) -> Sensor:
    """A sensor that has counted a joule more each time that it is read, until it fails."""

    def joules() -> Iterator[float]:
        yield from map(float, range(fails_after))
        raise SensorFault("the fake sensor went away")

    found = SteadySensor(1.0, clock=joules().__next__)
    found.samples_wanted, found.interval_s = wanted, interval_s
    return found


def measured(
    name: object,
    settings: subjects.Settings = QUICK,
    sensor: Sensor | None = None,
    **options: Any,
) -> SessionRows:
    parameters = options.pop("parameters", {"items": 1024})
    problem = subjects.SuiteProblem(str(name), "tiny", parameters, 5, options.pop("most", None))
    return measure_session(subjects.load(problem), DEVICE, settings, sensor, **options)


def test_every_run_of_every_kernel_is_a_record_with_raw_times() -> None:
    found = measured("lud", parameters={"blocks": 4}, repeat=3)
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


def test_the_session_says_what_was_measured_and_where(make_application: Folder) -> None:
    folder = make_application()
    session = measured(folder).session
    assert (session["application"], session["size"], session["device"]) == ("own", "tiny", DEVICE.key)
    assert (json.loads(session["parameters"]), session["seed"]) == ({"items": 1024}, 5)
    assert (json.loads(session["kernels"]), session["working_set_bytes"]) == (["twice"], 8192)
    assert (session["warmups"], session["timer_resolution_s"]) == (2, DEVICE.timer_resolution_s)
    assert len(session["source_sha256"]) == 64
    assert json.loads(session["environment"])["opencl_driver"] == DEVICE.driver
    # Counters are kept where they work.
    assert all(value >= 0 for value in json.loads(session["counters"] or "{}").values())
    off = subjects.Settings(min_runs=1, min_time_s=0.0, counters=False)
    assert measured(folder, off).session["counters"] is None


@pytest.mark.parametrize(("warmups", "unrecorded"), [(3, 3), (0, 1)])
def test_warm_ups_are_not_recorded_and_runs_go_on(
    make_application: Folder, warmups: int, unrecorded: int
) -> None:
    folder = make_application(run="Path(__file__ + '.runs').write_text(str(self.count))")
    found = measured(folder, subjects.Settings(min_runs=1, min_time_s=0.2, warmups=warmups))
    assert int((folder / "driver.py.runs").read_text()) == found.session["runs"] + unrecorded
    assert found.session["warmups"] == unrecorded
    assert found.session["loop_s"] >= 0.2
    assert found.session["runs"] > 1


def test_energy_is_that_of_all_recorded_runs(make_application: Folder) -> None:
    folder = make_application()
    found = measured(folder, sensor=sensor_of())
    check(ENERGY, table_of(ENERGY, found.energy), "energy")
    (row,) = found.energy
    assert (row["sensor"], row["domain"], row["energy_j"]) == ("steady", "package-0", 1.0)
    assert (row["runs"], row["samples"]) == (found.session["runs"], 2)
    assert (row["times_s"], row["energies_j"]) == ([0.0, row["duration_s"]], [0.0, 1.0])
    # A slow sensor gets more runs.
    slow = measured(folder, sensor=sensor_of(wanted=30, interval_s=0.01))
    assert slow.session["loop_s"] >= 0.28
    assert slow.energy[0]["samples"] >= 30


@pytest.mark.parametrize("after", [0, 1, 10])
def test_a_lost_sensor_costs_its_readings(make_application: Folder, after: int) -> None:
    found = measured(make_application(), sensor=sensor_of(20, after, 0.001))
    assert found.session["runs"] >= 4
    assert len(found.records) == found.session["runs"]
    assert (found.energy, found.notes) == ([], ["the fake sensor went away"])


@pytest.mark.parametrize("check_fails", ["self.count == 2", "self.count > 2"])
def test_the_result_is_checked_before_and_after(make_application: Folder, check_fails: str) -> None:
    folder = make_application(check=f"if {check_fails}: raise CheckFailed(f'wrong after {{self.count}}')")
    with pytest.raises(CheckFailed, match="wrong after"):
        measured(folder)


@refusals("run message")
def test_runs_must_launch_the_kernels_that_the_driver_names(
    make_application: Folder, run: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        measured(make_application(run=run))


@pytest.mark.parametrize(("most", "told"), [(8191, True), (8192, False), (None, False)])
def test_a_working_set_over_the_size_is_a_note(
    make_application: Folder, most: int | None, told: bool
) -> None:
    found = measured(make_application(), most=most)
    note = "own: its working set has 8192 bytes, more than the 8191 that tiny stands for (its driver's fit)"
    assert found.notes == [note] * told


@pytest.mark.parametrize(
    ("times", "statistics"),
    [
        # Over runs, of the mean of their invocations
        ([[1.0, 3.0], [7.0], [3.0, 3.0, 3.0]], (3, 6, 3.0, 4.0, 2.0, 7.0, 7**0.5, 7**0.5 / 4)),
        ([[1.0]], (1, 1, 1.0, 1.0, 1.0, 1.0, None, None)),
        ([[0.0], [0.0]], (2, 2, 0.0, 0.0, 0.0, 0.0, 0.0, None)),
    ],
)
def test_each_kernel_has_statistics_of_its_runs(
    times: list[list[float]], statistics: tuple[Any, ...]
) -> None:
    runs = [record(number, run) for number, run in enumerate(times)]
    found, other = summaries(table_of(RECORDS, [*runs, record(kernel="other")]))
    assert (other.kernel, other.runs, found.kernel) == ("other", 1, "sum")
    assert (*list(found.to_dict().values())[1:], found.spread) == pytest.approx(statistics)


SOURCE = """
kernel void add(global int *a, float4 b) { a[get_global_id(0)] += b.x; }
kernel void set(global int *a) { a[get_global_id(0)] = 1; }
"""


def test_an_application_is_known_by_its_kernels_and_one_s_own_by_all_sources_of_which_nothing_runs(
    make_application: Folder,
) -> None:
    of_suite = subjects.load(subjects.SuiteProblem("crc", "tiny", {"bytes": 100}, 3))
    assert (of_suite.name, of_suite.size, of_suite.kernels) == ("crc", "tiny", ("crc32_slice8",))
    assert (of_suite.parameters, of_suite.seed) == ({"bytes": 100}, 3)
    assert of_suite.application.nbytes == 100 + 4 * 256 + 4
    assert of_suite.source_sha256 == of_suite.program.sha256
    folder = make_application(init="raise CheckFailed('no')")
    problem = subjects.SuiteProblem(str(folder), "tiny", {"items": 1024}, 0)
    found = subjects.identity(problem)
    assert (found.name, found.kernels, found.program.path) == ("own", ("twice",), folder / "own.cl")
    with pytest.raises(CheckFailed):
        subjects.load(problem)
    sources = [subjects.identity(problem).source_sha256, found.source_sha256]
    (folder / "own.cl").write_text("kernel void twice() {}")
    sources.append(subjects.identity(problem).source_sha256)
    make_application(run="queue.launch('nothing', (1,), (1,))")
    assert len({*sources, subjects.identity(problem).source_sha256}) == 3


@refusals("statement mistake")
def test_a_driver_that_cannot_fit_is_named(make_application: Folder, statement: str, mistake: str) -> None:
    sound = application(str(make_application("counts", fit="return {'items': np.int64(1024)}")))
    assert type(subjects.fitted(sound, 1 << 15)["items"]) is int
    kind = application(str(make_application(f"unfit_{mistake}", fit=statement)))
    message = f"unfit_{mistake}: expected its driver to fit .* {mistake}"
    if statement != "return None" and "/ 2" not in statement:
        message += rf" .*\(unfit_{mistake}/driver\.py, line \d+\)$"
    with pytest.raises(InputError, match=message):
        subjects.fitted(kind, 1 << 15)


@pytest.fixture
def launches(tmp_path: Path) -> Path:
    """A launch file of two launches on one buffer."""
    (tmp_path / "k.cl").write_text(SOURCE)
    return tmp_path / "two.toml"


SET = 'source = "k.cl"\nkernel = "set"\nglobal = 8\n[[arg]]\ntype = "int"\nlength = 8\n'
ADD = SET.replace("set", "add")


def write(path: Path, text: str) -> subjects.LaunchFile:
    path.write_text(text)
    return subjects.LaunchFile(str(path))


def test_launches_of_a_file_share_their_buffers(launches: Path) -> None:
    loaded = subjects.load(write(launches, SET + '[[launch]]\n[[launch]]\nkernel = "set"\n'))
    assert (loaded.name, loaded.size, loaded.kernels, loaded.seed) == ("two", subjects.GIVEN, ("set",), None)
    queue = Mock()
    loaded.application.run(queue)
    loaded.application.check()
    ((buffer,),) = (call.args for call in queue.write.mock_calls)
    assert loaded.application.nbytes == buffer.nbytes == 32
    launched = [call.args for call in queue.launch.mock_calls]
    assert [kernel for kernel, *_ in launched] == ["set", "set"]
    assert all(args[0] is buffer for _, _, _, *args in launched)
    queue.read.assert_not_called()


def test_vectors_are_passed_by_value_and_what_does_not_fit_is_refused_before(launches: Path) -> None:
    queue = Mock()
    subjects.load(write(launches, ADD + '[[arg]]\ntype = "float4"\nvalue = [1, 2, 3, 4]\n')).application.run(
        queue
    )
    (launched,) = queue.launch.mock_calls
    assert launched.args[-1] == np.array([1, 2, 3, 4], np.float32).tobytes()
    assert [len(call.args) for call in queue.write.mock_calls] == [1]
    told = refusal(subjects.load, write(launches, ADD))
    assert "add: expected 2 arguments (int* a, float4 b), found 1" in told
    told = refusal(subjects.load, write(launches, SET.replace("[[arg]]", "offset = 8\n[[arg]]")))
    assert "set: a launch with a global offset is not measured" in told


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    none = subjects.LaunchFile(str(tmp_path / "none.toml"))
    for use in (subjects.load, lambda subject: instruction_mix_of(subject, 60.0)):
        assert "none.toml: cannot read the launch file" in refusal(use, none)


@pytest.mark.parametrize("module", ["pyopencl", "pyarrow"])
def test_measuring_needs_the_extra_of_the_suite(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    own = str(Path(__file__).parents[2] / "examples/heat")
    for name in ("crc", own):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(MissingExtraError, match=r"measuring applications needs .*crosscast\[suite\]"):
                subjects.expect_installed([name])
    monkeypatch.setitem(sys.modules, "scipy", None)
    subjects.expect_installed([own])
    with pytest.raises(MissingExtraError, match=r"checking results of the suite needs .*crosscast\[suite\]"):
        subjects.expect_installed([own, "crc"])


@refusals("given message")
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        subjects.Settings(**given)


def test_launch_files_have_a_mix_of_instructions_and_wrong_results_none(
    launches: Path, make_application: Folder
) -> None:
    launch_file = write(launches, SET)
    assert launch_file.label == "two"
    mix = instruction_mix_of(launch_file, 60.0)
    # Of a work-item: its number, an address, a store, and the return.
    assert tuple(mix) == CLASSES
    assert mix["control"] == mix["mem"] == 0.25
    wrong = make_application("wrong", check="raise CheckFailed('it is wrong')")
    with pytest.raises(CheckFailed, match="it is wrong"):
        instruction_mix_of(subjects.SuiteProblem(str(wrong), "tiny", {"items": 1024}, 0), 60.0)
