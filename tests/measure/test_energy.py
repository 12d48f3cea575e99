"""Sensors that count at any moment, watches over them, and what regions read of them."""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError, SensorFault
from crosscast.measure import Reading, Watch
from crosscast.measure import sensors as module
from crosscast.measure.regions.recorder import Metering
from crosscast.measure.sensors import (
    NvmlSensor,
    RaplSensor,
    ReplaySensor,
    SensorAvailability,
    open_sensor,
    open_sensors,
    record,
    sensors,
)
from support.processes import wait_until
from support.refusals import refusals

BUS_ID, ABSENT = "0000:65:00.0", "0000:66:00.0"


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


def never(code: int) -> Iterator[Any]:
    return iter(lambda: NVMLError(code), None)


def install(
    patch: pytest.MonkeyPatch, energy: Iterator[Any], power: Iterator[Any], error: int = 0, gpus: int = 1
) -> list[str]:
    """Let NVIDIA's library answer from iterators, in which errors are raised; return what it is asked for."""
    asked: list[str] = []

    def answer(values: Iterator[Any]) -> Any:
        value = next(values)
        if isinstance(value, NVMLError):
            raise value
        return value

    def find(device: str) -> int:
        asked.append(device)
        return int(answer(iter([NVMLError(6) if device == ABSENT else 0])))

    library: Any = ModuleType("pynvml")
    library.NVMLError = NVMLError
    library.nvmlInit = lambda: answer(iter([NVMLError(error) if error else None]))
    library.nvmlDeviceGetHandleByPciBusId = find
    library.nvmlDeviceGetHandleByUUID = lambda uuid: find(f"UUID {uuid}")
    library.nvmlDeviceGetTotalEnergyConsumption = lambda handle: answer(energy)
    library.nvmlDeviceGetPowerUsage = lambda handle: answer(power)
    library.nvmlDeviceGetCount = lambda: gpus
    library.nvmlDeviceGetHandleByIndex = lambda index: index
    library.nvmlDeviceGetUUID = lambda handle: f"GPU-{handle}"
    patch.setitem(sys.modules, "pynvml", library)
    return asked


RANGE_UJ = 262_143_328_850


def make_zone(root: Path, zone: str, name: str, energy_uj: int, range_uj: int | None = RANGE_UJ) -> Path:
    folder = root / zone
    folder.mkdir()
    (folder / "name").write_text(f"{name}\n")
    if range_uj is not None:
        (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    (folder / "energy_uj").write_text(f"{energy_uj}\n")
    return folder / "energy_uj"


def at(*seconds: float) -> Callable[[], float]:
    """Make a clock that tells these times, one after the other."""
    times: Iterator[float] = iter(seconds)
    return lambda: next(times)


class Slow:
    """The sensor, read so seldom that a test takes all readings."""

    def __init__(self, sensor: Any, interval_s: float = 3600.0) -> None:
        self._sensor, self.interval_s = sensor, interval_s

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sensor, name)


def between(
    sensor: Any, change: Callable[[], object] = str, clock: Callable[[], float] = time.monotonic
) -> tuple[Reading, ...]:
    """What a watch sees of a sensor while something happens, or the fault that it notes."""
    notes: list[str] = []
    watch = Watch(Slow(sensor), notes, clock)
    change()
    found = watch.readings()
    if notes:
        assert not found
        raise SensorFault(*notes)
    return found


# NVIDIA GPUs


def test_the_energy_counter_is_read_in_joules(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first reading is the trial whether there is a counter.
    asked = install(monkeypatch, iter([0, 5_000_000, 5_250_000, 0]), never(3))
    (reading,) = between(NvmlSensor(BUS_ID), clock=at(0.0, 7.0, 8.5))
    assert reading.energy_j == pytest.approx(250)
    assert (reading.domain, reading.duration_s, reading.samples) == ("gpu", 1.5, 2)
    NvmlSensor("GPU-12345678-0000")
    assert asked == [BUS_ID, "UUID GPU-12345678-0000"]


@pytest.mark.parametrize("counter", [True, False])
def test_a_value_that_a_counter_repeats_is_one_sample(monkeypatch: pytest.MonkeyPatch, counter: bool) -> None:
    energies = (i // 4 * 1000 for i in count()) if counter else never(13)
    install(monkeypatch, energies, iter(lambda: 70_000, None))
    watch = Watch(Slow(NvmlSensor(BUS_ID), 0.001), [])
    wait_until(lambda: len(watch._samples) >= 12)
    (reading,) = watch.readings()
    if counter:
        assert len(reading.energies_j) >= 2 * reading.samples
    else:
        assert reading.samples == len(reading.times_s) >= 12
        assert reading.energy_j == pytest.approx(70 * reading.duration_s, rel=0.2)


@given(
    st.lists(st.tuples(st.floats(0.001, 10), st.floats(0, 1000), st.floats(0, 1000)), min_size=1, max_size=20)
)
def test_a_card_without_counter_has_its_power_integrated(steps: list[tuple[float, float, float]]) -> None:
    # Any straight power may be cut into pieces without changing its energy.
    first, slope = steps[0][1], steps[0][2] / 100
    times = [0.0]
    for length, _, _ in steps:
        times.append(times[-1] + length)
    with pytest.MonkeyPatch.context() as patch:
        milliwatts = [1e3 * (first + slope * moment) for moment in times]
        install(patch, never(3), iter([0, *milliwatts]))
        sensor = NvmlSensor(BUS_ID, "gpu-1", clock=at(*times))
        (found,) = [sensor.read_j() for _ in times][-1]
    assert found == pytest.approx(first * times[-1] + slope * times[-1] ** 2 / 2)
    assert (sensor.domains, sensor.interval_s) == (("gpu-1",), 0.1)


LOST = r"the GPU is lost: .* \(NVML error 15\)"


@pytest.mark.parametrize(
    ("last", "complaint"),
    [(5, "stood still"), (4, "the energy counter was set back"), (NVMLError(15), LOST)],
)
def test_a_counter_that_stops_is_a_fault(monkeypatch: pytest.MonkeyPatch, last: Any, complaint: str) -> None:
    install(monkeypatch, iter((0, 5, last)), never(3))
    with pytest.raises(SensorFault, match=complaint):
        between(NvmlSensor(BUS_ID))


@pytest.mark.parametrize(
    ("answers", "device", "complaint"),
    [
        ((count(), count(), 9), BUS_ID, r"the NVIDIA driver is not loaded \(NVML error 9\)"),
        ((count(), count(), 777), BUS_ID, r"code 777 \(NVML error 777\)"),
        ((never(3), never(3)), ABSENT, "there is no NVIDIA GPU with this PCI bus id"),
        ((never(3), never(3)), BUS_ID, "this GPU measures neither energy nor power"),
        # It says nothing about counters, and is not taken for a missing one.
        ((never(4), count()), BUS_ID, "this user may not read the GPU"),
    ],
)
def test_a_gpu_that_cannot_be_read_says_why(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[Any, ...], device: str, complaint: str
) -> None:
    install(monkeypatch, *answers)
    with pytest.raises(EnvironmentFault, match=f"^nvml: {complaint}"):
        NvmlSensor(device)


def test_the_real_library_counts_a_plausible_power_and_has_a_reason_where_there_is_no_gpu() -> None:
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    with pytest.raises(EnvironmentFault, match=r"^nvml: .* \(NVML error \d+\)$"):
        NvmlSensor("ffff:1f:1f.0")
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        limit_w = pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
    except pynvml.NVMLError:
        return
    watch = Watch(NvmlSensor(str(pynvml.nvmlDeviceGetUUID(handle))), [])
    wait_until(watch.has_enough)
    (reading,) = watch.readings()
    assert reading.samples >= NvmlSensor.samples_wanted
    assert 1 < reading.energy_j / reading.duration_s < 1.5 * limit_w


# CPUs


def test_every_package_and_every_part_is_a_domain(tmp_path: Path) -> None:
    names = {"1": "package-1", "0": "package-0", "0:0": "core", "0:1": "dram", "10": "psys"}
    for zone, name in names.items():
        make_zone(tmp_path, f"intel-rapl:{zone}", name, 5)
    make_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 5)
    (tmp_path / "intel-rapl").mkdir()
    found = RaplSensor(tmp_path).domains
    assert found == ("package-0", "package-0/core", "package-0/dram", "package-1", "psys")


def test_a_counter_that_wraps_around_goes_on(tmp_path: Path) -> None:
    package = make_zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 1_000_000)
    core = make_zone(tmp_path, "intel-rapl:0:0", "core", RANGE_UJ - 3_000_000)
    sensor = RaplSensor(tmp_path, clock=at(0.0, 1.0, 2.0, 3.0))
    for package_uj, core_uj in [(2_000_000, RANGE_UJ - 5), (5_000_000, 500_000), (6_000_000, 700_000)]:
        package.write_text(str(package_uj))
        core.write_text(str(core_uj))
        found = sensor.read_j()
    assert found == pytest.approx((7.0, 3.7))


@pytest.mark.parametrize("regions", [False, True])
def test_no_wrap_around_is_missed_while_a_thread_looks(tmp_path: Path, regions: bool) -> None:
    # 30 J of range, and 25 J between any two looks: three times round before it ends.
    package = make_zone(tmp_path, "intel-rapl:0", "package-0", 0, range_uj=30_000_000)
    sensor = RaplSensor(tmp_path)
    slow = Slow(sensor, 0.002)
    metering, watch = (Metering([slow]), None) if regions else (None, Watch(slow, []))
    for step in range(1, 5):
        with package.open("r+") as file:
            # In one piece: the thread must not see an empty file.
            file.write(f"{step * 25_000_000 % 30_000_000:012d}")
        for _ in range(2):
            seen = sensor._last
            wait_until(lambda seen=seen: sensor._last is not seen)  # type: ignore[misc]
    if watch is not None:
        (reading,) = watch.readings()
        assert reading.energy_j == pytest.approx(100)
        assert list(reading.energies_j) == sorted(reading.energies_j)
    elif metering is not None:
        assert metering.read() == pytest.approx({"package-0": 100.0})
        metering._last_j.clear()


@pytest.mark.parametrize(
    ("range_uj", "interval_s"), [(RANGE_UJ, 10.0), (65_532_610_987, 10.0), (4_000_000_000, 2.0), (None, 10.0)]
)
def test_an_interval_is_half_a_range_at_1_kw(tmp_path: Path, range_uj: int | None, interval_s: float) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0, range_uj)
    assert RaplSensor(tmp_path).interval_s == pytest.approx(interval_s)


@pytest.mark.parametrize("range_uj", [RANGE_UJ, None])
def test_a_counter_that_was_set_back_is_a_fault_until_it_begins(tmp_path: Path, range_uj: int | None) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 50_000_000, range_uj)
    sensor = RaplSensor(tmp_path)
    energy.write_text("0")
    for _ in range(2):
        with pytest.raises(SensorFault, match="went back from 50000000 to 0, which is no wrap-around"):
            sensor.read_j()
    for end_uj in (2_000_000, 5_000_000):
        (reading,) = between(sensor, partial(energy.write_text, str(end_uj)))
    assert reading.energy_j == pytest.approx(3)


def test_a_file_that_holds_something_else_is_named_and_stops_the_waiting(tmp_path: Path) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    core = make_zone(tmp_path, "intel-rapl:0:0", "core", 0)
    sensor: Any = Slow(RaplSensor(tmp_path), 0.001)
    sensor.samples_wanted = 10**6
    notes: list[str] = []
    watch = Watch(sensor, notes)
    assert not watch.has_enough()
    core.write_text("no number")
    wait_until(watch.has_enough)
    assert watch.readings() == ()
    assert len(notes) == 1
    assert "intel-rapl:0:0/energy_uj failed: invalid literal" in notes[0]


def test_a_zone_that_may_not_be_read_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    denied = [make_zone(tmp_path, "intel-rapl:0:0", "core", 0)]
    package, read_text = make_zone(tmp_path, "intel-rapl:0", "package-0", 0), Path.read_text

    def refuse(file: Path) -> str:
        """As Linux does to others than root; the tests may run as root."""
        if file in denied:
            raise PermissionError(13, "Permission denied")
        return read_text(file)

    monkeypatch.setattr(Path, "read_text", refuse)
    assert RaplSensor(tmp_path).domains == ("package-0",)
    denied.append(package)
    with pytest.raises(EnvironmentFault, match="intel-rapl:0/energy_uj may be read by root only"):
        RaplSensor(tmp_path)


# Recordings


HEADER = "domain,time_s,energy_j\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "recording.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_it_tells_the_energy_between_two_samples_until_it_ends(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "gpu,50,7\nhost,50,0\ngpu,51,17\ngpu,52,37\nhost,60,5\n")
    sensor = ReplaySensor(path, at(0.0, 1000.0, 1001.5, 2000.0, 2001.5, 2003.5))
    assert sensor.domains == ("gpu", "host")
    for _ in range(2):
        # Each time that it begins, the recording does.
        sensor.begin()
        assert sensor.read_j() == pytest.approx((10 + 20 / 2, 5 * 1.5 / 10))
    with pytest.raises(SensorFault, match="ends after 2 s"):
        sensor.read_j()


def test_what_is_recorded_replays_the_same_unless_it_ends_before(tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    with pytest.raises(SensorFault, match="ends after"):
        record(ReplaySensor(write(tmp_path, HEADER + "gpu,0,0\ngpu,0.001,1\n")), 0.01, copy)
    assert not copy.exists()
    record(ReplaySensor(write(tmp_path, HEADER + "gpu,0,0.1\ngpu,900,3000.1\n")), 0.05, copy)
    assert ReplaySensor(copy, at(0.0, 0.03)).read_j()[0] == pytest.approx(0.1, rel=0.05)


@refusals("text complaint")
def test_a_bad_recording_is_refused_in_one_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        ReplaySensor(write(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "recording.csv"))
    assert "\n" not in str(caught.value)


# Watches and regions


def test_a_watch_reads_at_both_ends_and_in_between_and_then_no_more(tmp_path: Path) -> None:
    watch = Watch(Slow(ReplaySensor(write(tmp_path, HEADER + "gpu,0,0\ngpu,900,900\n")), 0.001), [])
    wait_until(lambda: len(watch._samples) >= 5)
    (reading,) = watch.readings()
    assert reading.samples == len(reading.times_s) >= 6
    assert list(reading.times_s) == sorted(reading.times_s)
    assert reading.energies_j == pytest.approx(reading.times_s, abs=0.05)
    time.sleep(0.01)
    assert len(watch._samples) == reading.samples, "it went on after its end"
    assert watch.readings() == ()


def test_regions_read_what_a_thread_has_asked_the_driver_until_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter: list[Any] = [5_000_000]
    install(monkeypatch, iter(lambda: counter[0], None), never(3))
    metering = Metering([Slow(NvmlSensor(BUS_ID), 0.001)])
    assert metering.read() == {"gpu": 0.0}
    counter[0] += 250_000
    wait_until(lambda: metering.read()["gpu"] > 0)
    assert metering.read() == {"gpu": 250.0}
    counter[0] = NVMLError(15)
    wait_until(lambda: metering.read() == {})


# Opening


def test_a_cpu_has_rapl_and_a_gpu_nvml_where_these_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOT", tmp_path)
    make_zone(tmp_path, "intel-rapl:0", "package-0", 1)
    assert sensors("cpu") == [SensorAvailability("rapl", works=True, reason=None)]
    assert isinstance(open_sensor("auto", "cpu"), RaplSensor)
    assert open_sensor("none", "cpu") is None
    monkeypatch.setattr(module, "ROOT", tmp_path / "none")
    assert open_sensor("auto", "cpu") is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    lacks = "nvml: the device has no PCI bus id or UUID to find it by"
    assert sensors("gpu") == [SensorAvailability("nvml", works=False, reason=lacks)]
    (found,) = sensors("gpu", BUS_ID)
    assert (found.works, "crosscast[nvidia]" in str(found.reason)) == (False, True)
    assert open_sensor("auto", "gpu", BUS_ID) is None
    assert [each.name for each in sensors(None)] == ["rapl", "nvml"]
    assert (sensors("accelerator"), open_sensor("auto", "accelerator")) == ([], None)


def test_sensors_of_a_machine_are_opened_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, count(), never(3), gpus=2)
    assert [sensor.domains for sensor in open_sensors("nvml")[0]] == [("gpu-0",), ("gpu-1",)]
    install(monkeypatch, count(), never(3))
    monkeypatch.setattr(module, "ROOT", tmp_path)
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    def opened(spec: str) -> list[tuple[str, ...]]:
        return [sensor.domains for sensor in open_sensors(spec)[0]]

    assert opened("none") == []
    assert opened("rapl") == [("package-0",)]
    assert opened("nvml") == [("gpu",)]
    assert opened("nvml:GPU-0") == [("gpu",)]
    assert opened("auto") == [("package-0",), ("gpu",)]
    recording = write(tmp_path, HEADER + "gpu,0,0\ngpu,1,1\n").rename(tmp_path / "a:b.csv")
    assert opened(f"replay:{recording}") == [("gpu",)]


def test_what_does_not_work_is_an_error_and_of_auto_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROOT", tmp_path)
    install(monkeypatch, count(), never(3), gpus=0)
    for name, complaint in (("rapl", "shows no energy counters"), ("nvml", "no NVIDIA GPU")):
        with pytest.raises(EnvironmentFault, match=complaint):
            open_sensors(name)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    found, reasons = open_sensors("auto")
    assert not found
    assert [reason.partition(" ")[0] for reason in reasons] == ["rapl:", "reading"]
    with pytest.raises(MissingExtraError, match=r"crosscast\[nvidia\]"):
        open_sensors("nvml")
