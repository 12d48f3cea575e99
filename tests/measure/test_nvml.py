"""NVML: the logic on a small library of our own, and the whole on the real one where there is a GPU."""

import sys
import time
from collections.abc import Iterator
from itertools import count
from types import ModuleType
from typing import Any

import pytest

from crosscast.errors import EnvironmentFault, MissingExtraError, SensorFault
from crosscast.measure.energy import NvmlSensor

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
