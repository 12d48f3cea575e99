"""The sensor that measures nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError, SensorFault
from crosscast.measure.energy import (
    Availability,
    NullSensor,
    NvmlSensor,
    RaplSensor,
    Reading,
    ReplaySensor,
    Sampler,
    Sensor,
    open_sensor,
    record,
    sensors,
)


def test_it_is_a_sensor_that_asks_for_nothing_and_says_nothing() -> None:
    sensor: Sensor = NullSensor()
    sensor.start()
    assert sensor.samples_so_far() >= sensor.samples_wanted
    assert len(sensor.stop()) == len(sensor.domains) == 0


BUS_ID = "0000:65:00.0"


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


class Gpu(ModuleType):
    """A library with one GPU whose answers come from iterators; a number there is an error."""

    NVMLError = NVMLError

    def __init__(self, energy_mj: Iterator[Any], power_mw: Iterator[Any], init_error: int = 0) -> None:
        super().__init__("pynvml")
        self.energy_mj, self.power_mw, self.init_error = energy_mj, power_mw, init_error
        self.found: list[tuple[str, str]] = []

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init_error:
            raise NVMLError(self.init_error)

    def nvmlDeviceGetHandleByPciBusId(self, bus_id: str) -> str:  # noqa: N802
        self.found.append(("bus id", bus_id))
        if bus_id != BUS_ID:
            raise NVMLError(6)
        return "gpu 0"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        self.found.append(("uuid", uuid))
        return "gpu 0"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        return self.answer(handle, self.energy_mj)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return self.answer(handle, self.power_mw)

    def answer(self, handle: str, values: Iterator[Any]) -> int:
        assert handle == "gpu 0"
        value = next(values)
        if isinstance(value, NVMLError):
            raise value
        return int(value)


def forever(value: Any) -> Iterator[Any]:
    return iter(lambda: value, object())


def install(
    monkeypatch: pytest.MonkeyPatch, energy_mj: Iterator[Any], power_mw: Iterator[Any], init_error: int = 0
) -> Gpu:
    gpu = Gpu(energy_mj, power_mw, init_error)
    monkeypatch.setitem(sys.modules, "pynvml", gpu)
    return gpu


def test_the_energy_counter_is_read_in_joules(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first reading is the trial whether there is a counter.
    install(monkeypatch, iter([0, 5_000_000, 5_250_000]), forever(NVMLError(3)))
    times = iter([7.0, 8.5])
    sensor = NvmlSensor(BUS_ID, clock=lambda: next(times))
    monkeypatch.setattr(sensor._sampler, "_interval_s", 60)
    sensor.start()
    (reading,) = sensor.stop()
    assert reading.domain == "gpu"
    assert reading.energy_j == pytest.approx(250)
    assert (reading.duration_s, reading.samples, reading.unit) == (1.5, 2, "J")


def test_a_counter_that_says_the_same_again_is_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, (i // 4 * 1000 for i in count()), forever(NVMLError(3)))
    sensor = NvmlSensor(BUS_ID)
    sensor.start()
    while (samples := sensor.samples_so_far()) < 3:
        time.sleep(0.001)
    (reading,) = sensor.stop()
    assert samples == 3
    assert len(reading.values) >= 2 * reading.samples


def test_a_card_without_counter_has_its_power_integrated(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, forever(NVMLError(3)), iter([0, 100_000, 300_000]))
    times = iter([0.0, 2.0])
    sensor = NvmlSensor(BUS_ID, clock=lambda: next(times))
    monkeypatch.setattr(sensor._sampler, "_interval_s", 60)
    sensor.start()
    (reading,) = sensor.stop()
    assert (reading.values, reading.unit) == ((100.0, 300.0), "W")
    assert reading.energy_j == pytest.approx(400)


def test_steady_power_gives_samples_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, forever(NVMLError(13)), forever(70_000))
    sensor = NvmlSensor(BUS_ID)
    sensor.start()
    while sensor.samples_so_far() < 3:
        time.sleep(0.001)
    (reading,) = sensor.stop()
    assert reading.samples >= 4
    assert reading.energy_j == pytest.approx(70 * reading.duration_s)


def test_a_gpu_is_found_by_bus_id_or_by_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = install(monkeypatch, count(), count())
    NvmlSensor(BUS_ID)
    NvmlSensor("GPU-12345678-0000")
    assert gpu.found == [("bus id", BUS_ID), ("uuid", "GPU-12345678-0000")]


def test_a_gpu_that_is_lost_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, iter([0, 1, *[NVMLError(15)] * 9]), forever(NVMLError(3)))
    sensor = NvmlSensor(BUS_ID)
    sensor.start()
    with pytest.raises(SensorFault, match=r"the GPU is lost: .* \(NVML error 15\)"):
        while sensor.samples_so_far() < 20:
            time.sleep(0.001)
    with pytest.raises(SensorFault, match="the GPU is lost"):
        sensor.stop()


@pytest.mark.parametrize(
    ("values", "complaint"), [((0, 5, 5), "stood still"), ((0, 5, 4), "the energy counter was set back")]
)
def test_a_counter_that_does_not_rise_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, values: tuple[int, ...], complaint: str
) -> None:
    install(monkeypatch, iter(values), forever(NVMLError(3)))
    sensor = NvmlSensor(BUS_ID)
    monkeypatch.setattr(sensor._sampler, "_interval_s", 60)
    sensor.start()
    with pytest.raises(SensorFault, match=complaint):
        sensor.stop()


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        (9, "the NVIDIA driver is not loaded"),
        (12, "libnvidia-ml.so.1 of the NVIDIA driver is not installed"),
        (18, "the NVIDIA driver and its library have different versions"),
        (777, "code 777"),
    ],
)
def test_each_error_of_the_driver_has_its_sentence(
    monkeypatch: pytest.MonkeyPatch, code: int, complaint: str
) -> None:
    install(monkeypatch, count(), count(), init_error=code)
    with pytest.raises(EnvironmentFault, match=rf"nvml: {complaint} \(NVML error {code}\)"):
        NvmlSensor(BUS_ID)


def test_a_gpu_that_is_not_there_or_tells_nothing_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, forever(NVMLError(3)), forever(NVMLError(3)))
    with pytest.raises(EnvironmentFault, match="there is no NVIDIA GPU with this PCI bus id"):
        NvmlSensor("0000:66:00.0")
    with pytest.raises(EnvironmentFault, match="this GPU measures neither energy nor power"):
        NvmlSensor(BUS_ID)


def test_an_error_that_says_nothing_about_counters_is_not_taken_for_a_missing_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, forever(NVMLError(4)), count())
    with pytest.raises(EnvironmentFault, match="this user may not read the GPU"):
        NvmlSensor(BUS_ID)


def test_the_missing_package_is_named_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(MissingExtraError, match=r"crosscast\[nvidia\]"):
        NvmlSensor(BUS_ID)


def test_the_real_library_counts_a_plausible_power() -> None:
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    try:
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
        device = pynvml.nvmlDeviceGetPciInfo(handle).busId
        limit_w = pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
    except pynvml.NVMLError as error:
        pytest.skip(f"no NVIDIA GPU at hand: {error}")
    sensor = NvmlSensor(device if isinstance(device, str) else device.decode())
    sensor.start()
    end = time.monotonic() + 10
    while sensor.samples_so_far() < sensor.samples_wanted and time.monotonic() < end:
        time.sleep(0.05)
    (reading,) = sensor.stop()
    assert reading.samples >= sensor.samples_wanted
    assert 1 < reading.energy_j / reading.duration_s < 1.5 * limit_w


def test_the_real_library_has_a_reason_where_there_is_no_gpu() -> None:
    pynvml = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    with pytest.raises(EnvironmentFault, match=r"^nvml: .* \(NVML error \d+\)$"):
        NvmlSensor("ffff:1f:1f.0")
    assert pynvml.NVMLError is not NVMLError


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


def test_every_package_and_every_part_is_a_domain(tmp_path: Path) -> None:
    make_zone(tmp_path, "intel-rapl:1", "package-1", 5)
    make_zone(tmp_path, "intel-rapl:0", "package-0", 5)
    make_zone(tmp_path, "intel-rapl:0:0", "core", 5)
    make_zone(tmp_path, "intel-rapl:0:1", "dram", 5)
    make_zone(tmp_path, "intel-rapl:10", "psys", 5)
    make_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 5)
    (tmp_path / "intel-rapl").mkdir()
    assert RaplSensor(tmp_path).domains == (
        "package-0",
        "package-0/core",
        "package-0/dram",
        "package-1",
        "psys",
    )


def test_energy_is_the_difference_of_two_readings_in_joules(tmp_path: Path) -> None:
    package = make_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    core = make_zone(tmp_path, "intel-rapl:0:0", "core", 7)
    sensor = RaplSensor(tmp_path, clock=at(100.0, 102.5))
    sensor.start()
    assert sensor.samples_so_far() == sensor.samples_wanted
    package.write_text("91000000\n")
    core.write_text("30000007\n")
    whole, part = sensor.stop()
    assert (whole.domain, part.domain) == ("package-0", "package-0/core")
    assert whole.energy_j == pytest.approx(90)
    assert part.energy_j == pytest.approx(30)
    assert (whole.duration_s, whole.samples, whole.times_s) == (2.5, 2, (0.0, 2.5))


def test_it_may_be_started_again(tmp_path: Path) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    sensor = RaplSensor(tmp_path)
    for end_uj in (2_000_000, 5_000_000):
        sensor.start()
        energy.write_text(str(end_uj))
        (reading,) = sensor.stop()
    assert reading.energy_j == pytest.approx(3)
    assert reading.samples == 2


def test_a_counter_that_wraps_around_goes_on(tmp_path: Path) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 1_000_000)
    sensor = RaplSensor(tmp_path, clock=at(0.0, 1.0))
    sensor.start()
    energy.write_text("2000000")
    assert sensor.stop()[0].energy_j == pytest.approx(3)


def test_no_wrap_around_is_missed_while_it_watches(tmp_path: Path) -> None:
    # 30 J of range, and 25 J between any two looks: three times round before it ends.
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 0, range_uj=30_000_000)
    sensor = RaplSensor(tmp_path, interval_s=0.005)
    sensor.start()
    for step in range(1, 5):
        seen = sensor.samples_so_far()
        energy.with_name("new").write_text(str(step * 25_000_000 % 30_000_000))
        energy.with_name("new").replace(energy)
        while sensor.samples_so_far() < seen + 2:
            pass
    (reading,) = sensor.stop()
    assert reading.energy_j == pytest.approx(100)
    assert list(reading.energies_j) == sorted(reading.energies_j)


@pytest.mark.parametrize(
    ("range_uj", "interval_s"), [(RANGE_UJ, 10.0), (65_532_610_987, 10.0), (4_000_000_000, 2.0), (None, 10.0)]
)
def test_the_interval_is_half_of_the_range_at_a_kilowatt(
    tmp_path: Path, range_uj: int | None, interval_s: float
) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0, range_uj)
    assert RaplSensor(tmp_path).interval_s == pytest.approx(interval_s)


@pytest.mark.parametrize(("range_uj", "before"), [(RANGE_UJ, 50_000_000), (None, 50_000_000)])
def test_a_counter_that_was_set_back_is_a_fault(tmp_path: Path, range_uj: int | None, before: int) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", before, range_uj)
    sensor = RaplSensor(tmp_path, clock=at(0.0, 1.0))
    sensor.start()
    energy.write_text("0")
    with pytest.raises(SensorFault, match="went back from 50000000 to 0, which is no wrap-around"):
        sensor.stop()


def test_counters_that_stand_still_are_a_fault(tmp_path: Path) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 12345)
    sensor = RaplSensor(tmp_path, clock=at(0.0, 2.0))
    sensor.start()
    with pytest.raises(SensorFault, match="stood still for 2 s"):
        sensor.stop()


def test_a_file_that_goes_away_is_a_fault(tmp_path: Path) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    sensor = RaplSensor(tmp_path)
    sensor.start()
    energy.unlink()
    with pytest.raises(SensorFault, match=r"energy_uj failed: No such file"):
        sensor.stop()


def test_a_file_that_goes_away_meanwhile_stops_the_waiting(tmp_path: Path) -> None:
    energy = make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    sensor = RaplSensor(tmp_path, interval_s=0.005)
    sensor.start()
    energy.write_text("not a number")
    with pytest.raises(SensorFault, match="invalid literal"):
        while sensor.samples_so_far() < 1_000_000:
            pass
    with pytest.raises(SensorFault, match="invalid literal"):
        sensor.stop()


def test_a_machine_without_counters_says_so(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"shows no energy counters \(no intel-rapl:\* in "):
        RaplSensor(tmp_path / "powercap")


def test_counters_for_root_only_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    deny(monkeypatch, "intel-rapl:0")
    with pytest.raises(EnvironmentFault, match="energy_uj may be read by root only"):
        RaplSensor(tmp_path)


def test_a_zone_that_may_not_be_read_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    make_zone(tmp_path, "intel-rapl:0:0", "core", 0)
    deny(monkeypatch, "intel-rapl:0:0")
    assert RaplSensor(tmp_path).domains == ("package-0",)


def deny(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    """Refuse to read a counter, as Linux does to others than root; the tests may run as root."""
    read_text = Path.read_text

    def refuse(file: Path) -> str:
        if file.name == "energy_uj" and file.parent.name == zone:
            raise PermissionError(13, "Permission denied")
        return read_text(file)

    monkeypatch.setattr(Path, "read_text", refuse)


HEADER = "domain,time_s,energy_j\n"


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def write(folder: Path, text: str) -> Path:
    path = folder / "recording.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_it_tells_the_energy_at_the_time_between_two_samples(tmp_path: Path) -> None:
    clock = Clock()
    path = write(tmp_path, HEADER + "gpu,50,7\nhost,50,0\ngpu,51,17\ngpu,52,37\nhost,60,5\n")
    sensor = ReplaySensor(path, clock)
    assert sensor.domains == ("gpu", "host")
    sensor.start()
    clock.now += 1.5
    gpu, host = sensor.stop()
    assert gpu.energy_j == pytest.approx(10 + 20 / 2)
    assert host.energy_j == pytest.approx(5 * 1.5 / 10)
    assert (gpu.times_s, gpu.samples, host.samples) == ((0.0, 1.0, 1.5), 3, 2)
    assert gpu.duration_s == 1.5


def test_each_start_begins_at_the_beginning(tmp_path: Path) -> None:
    clock = Clock()
    sensor = ReplaySensor(write(tmp_path, HEADER + "gpu,0,0\ngpu,1,1\ngpu,2,5\n"), clock)
    for _ in range(2):
        sensor.start()
        clock.now += 1.0
        assert sensor.stop()[0].energy_j == pytest.approx(1)


def test_samples_come_as_the_recording_goes_on(tmp_path: Path) -> None:
    clock = Clock()
    rows = [f"gpu,{second},{second * 9}\n" for second in range(100)]
    sensor = ReplaySensor(write(tmp_path, HEADER + "".join(rows)), clock)
    sensor.start()
    counts = []
    for _ in range(20):
        counts.append(sensor.samples_so_far())
        clock.now += 1.0
    assert counts == list(range(1, 21))
    assert sensor.samples_wanted == 20


def test_a_short_recording_wants_no_more_samples_than_it_has(tmp_path: Path) -> None:
    sensor = ReplaySensor(write(tmp_path, HEADER + "cpu,0,0\ncpu,3600,36000\n"), Clock())
    sensor.start()
    assert sensor.samples_so_far() >= sensor.samples_wanted
    assert sensor.stop()[0].samples == 2


def test_a_recording_that_ends_is_a_sensor_that_goes_away(tmp_path: Path) -> None:
    clock = Clock()
    sensor = ReplaySensor(write(tmp_path, HEADER + "cpu,0,0\ncpu,3,1\n"), clock)
    sensor.start()
    clock.now += 3.5
    with pytest.raises(SensorFault, match="ends after 3 s"):
        sensor.samples_so_far()
    with pytest.raises(SensorFault, match="ends after 3 s"):
        sensor.stop()


def test_what_is_recorded_replays_the_same(tmp_path: Path) -> None:
    clock = Clock()
    first = ReplaySensor(write(tmp_path, HEADER + "gpu,0,0.1\ngpu,0.01,0.4\ngpu,9,30.7\n"))
    record(first, 0.02, tmp_path / "copy.csv")
    second = ReplaySensor(tmp_path / "copy.csv", clock)
    second.start()
    clock.now += 0.01
    (reading,) = second.stop()
    assert reading.domain == "gpu"
    assert reading.energy_j == pytest.approx(0.3)


def test_power_is_recorded_as_energy(tmp_path: Path) -> None:
    class Steady(NullSensor):
        def stop(self) -> tuple[Reading, ...]:
            return (Reading("gpu", 3, (0.0, 1.0, 3.0), (10.0, 20.0, 20.0), "W"),)

    record(Steady(), 0, tmp_path / "power.csv")
    assert (tmp_path / "power.csv").read_text() == HEADER + "gpu,0.0,0.0\ngpu,1.0,15.0\ngpu,3.0,55.0\n"


def test_a_sensor_that_measures_nothing_cannot_be_recorded(tmp_path: Path) -> None:
    with pytest.raises(SensorFault, match="sensor none measures nothing"):
        record(NullSensor(), 0, tmp_path / "nothing.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the first line must be domain,time_s,energy_j, found ''"),
        ("time_s,energy_j\n0,0\n", "the first line must be domain,time_s,energy_j, found 'time_s,energy_j'"),
        (HEADER, "the recording holds no samples"),
        (HEADER + "cpu,0,0\n", "domain cpu needs two samples or more, found one"),
        (HEADER + "cpu,0\n", r"line 2: a row must hold domain,time_s,energy_j, found 2 fields"),
        (HEADER + ",0,0\n", "line 2: domain must not be empty"),
        (HEADER + "cpu,now,0\n", "line 2: time_s must be a finite number, found 'now'"),
        (HEADER + "cpu,0,nan\n", "line 2: energy_j must be a finite number, found 'nan'"),
        (HEADER + "cpu,0,0\ncpu,inf,1\n", "line 3: time_s must be a finite number, found 'inf'"),
        (HEADER + "cpu,1,0\ncpu,1,1\n", "line 3: time_s of cpu must rise, found 1.0 after 1.0"),
        (HEADER + "cpu,0,5\ncpu,1,4\n", "line 3: energy_j of cpu must not fall, found 4.0 after 5.0"),
        (HEADER + 'cpu,0,"5\n', "must be a CSV file in UTF-8"),
    ],
)
def test_a_bad_recording_is_refused_in_one_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        ReplaySensor(write(tmp_path, text))
    assert str(caught.value).startswith(str(tmp_path / "recording.csv"))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the recording: No such file"):
        ReplaySensor(tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="must be a CSV file in UTF-8"):
        ReplaySensor(tmp_path / "bytes.csv")


@pytest.fixture
def powercap(tmp_path: Path) -> Path:
    """Folder of one package that counts."""
    folder = tmp_path / "powercap" / "intel-rapl:0"
    folder.mkdir(parents=True)
    (folder / "name").write_text("package-0\n")
    (folder / "energy_uj").write_text("1\n")
    return folder.parent


@given(
    st.lists(st.tuples(st.floats(0.001, 10), st.floats(0, 1000), st.floats(0, 1000)), min_size=1, max_size=20)
)
def test_power_that_changes_evenly_is_integrated_exactly(steps: list[tuple[float, float, float]]) -> None:
    # Any straight power may be cut into pieces without changing its energy.
    first, slope = steps[0][1], steps[0][2] / 100
    times = [0.0]
    for length, _, _ in steps:
        times.append(times[-1] + length)
    powers = tuple(first + slope * moment for moment in times)
    reading = Reading("gpu", len(times), tuple(times), powers, "W")
    assert reading.energy_j == pytest.approx(first * times[-1] + slope * times[-1] ** 2 / 2)
    assert len(reading.energies_j) == len(times)


def test_the_sampler_reads_at_both_ends_and_in_between() -> None:
    values = iter(range(1_000_000))
    sampler = Sampler(lambda: next(values), 0.001)
    sampler.start()
    while len(sampler.so_far()) < 5:
        time.sleep(0.001)
    samples = sampler.stop()
    assert [value for _, value in samples] == list(range(len(samples)))
    assert [moment for moment, _ in samples] == sorted(moment for moment, _ in samples)
    time.sleep(0.01)
    assert sampler.so_far() == samples, "it went on after its end"


def test_a_long_interval_does_not_delay_the_end() -> None:
    sampler = Sampler(lambda: 1, 3600)
    begin = time.monotonic()
    sampler.start()
    assert len(sampler.stop()) == 2
    assert time.monotonic() - begin < 60


def test_a_sampler_that_failed_may_start_anew() -> None:
    broken = True

    def read() -> int:
        if broken:
            raise SensorFault("gone")
        return 1

    sampler = Sampler(read, 0.001)
    with pytest.raises(SensorFault, match="gone"):
        sampler.start()
    broken = False
    sampler.start()
    assert len(sampler.stop()) >= 2


def test_a_cpu_has_rapl(powercap: Path) -> None:
    assert sensors("cpu", root=powercap) == [Availability("rapl", works=True, reason=None)]
    assert isinstance(open_sensor("auto", "cpu", root=powercap), RaplSensor)


def test_a_cpu_without_counters_has_the_reason_and_opens_none(tmp_path: Path) -> None:
    (found,) = sensors("cpu", root=tmp_path)
    assert (found.name, found.works) == ("rapl", False)
    assert found.reason is not None and "shows no energy counters" in found.reason
    assert isinstance(open_sensor("auto", "cpu", root=tmp_path), NullSensor)
    with pytest.raises(EnvironmentFault, match="shows no energy counters"):
        open_sensor("rapl", "cpu", root=tmp_path)


def test_a_gpu_has_nvml_and_names_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    (found,) = sensors("gpu", "0000:65:00.0")
    assert (found.name, found.works) == ("nvml", False)
    assert found.reason is not None and "crosscast[nvidia]" in found.reason
    (found,) = sensors("gpu")
    assert found.reason == "nvml: the device has no PCI bus id or UUID to find it by"
    assert isinstance(open_sensor("auto", "gpu", "0000:65:00.0"), NullSensor)
    with pytest.raises(MissingExtraError):
        open_sensor("nvml", "gpu", "0000:65:00.0")


def test_an_accelerator_has_none() -> None:
    assert sensors("accelerator") == []
    assert isinstance(open_sensor("auto", "accelerator"), NullSensor)


def test_none_is_none_also_where_there_is_one(powercap: Path) -> None:
    assert isinstance(open_sensor("none", "cpu", root=powercap), NullSensor)


def test_a_recording_is_opened_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a:b.csv"
    path.write_text("domain,time_s,energy_j\ncpu,0,0\ncpu,1,1\n")
    assert isinstance(open_sensor(f"replay:{path}", "gpu"), ReplaySensor)


@pytest.mark.parametrize("spec", ["", "rapl:0", "RAPL", "replay"])
def test_an_unknown_name_is_refused_with_those_known(spec: str) -> None:
    with pytest.raises(InputError, match="sensor must be one of auto, rapl, nvml, replay:PATH and none"):
        open_sensor(spec, "cpu")
