"""Readings, the sampling thread, and which sensors a device has."""

import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError, SensorFault
from crosscast.measure.energy import (
    Availability,
    NullSensor,
    RaplSensor,
    Reading,
    ReplaySensor,
    Sampler,
    open_sensor,
    sensors,
)


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
