"""What describes a device."""

import json
from dataclasses import replace

import pytest
from cl_errors import cl_error

from crosscast.data.schema import DEVICES
from crosscast.data.table import check, table_of
from crosscast.errors import DeviceFault, InputError
from crosscast.measure import host_state
from crosscast.measure import opencl as module
from crosscast.measure.opencl import OpenCLDevice, caches_of, describe, devices, known_row
from crosscast.suite.application import Caches


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> OpenCLDevice:
    """A device that is described in a moment."""
    monkeypatch.setattr(module, "_ENOUGH_S", 0.01)
    return devices()[0]


def test_a_description_is_a_row_of_the_table(device: OpenCLDevice) -> None:
    row = describe(device)
    check(DEVICES, table_of(DEVICES, [row]), "described")
    assert (row["device"], row["type"]) == (device.key, device.type)
    assert row["compute_units"] == device.compute_units
    for name in ("bandwidth_bytes_per_s", "peak_flop_per_s", "launch_overhead_s", "timer_resolution_s"):
        assert row[name] > 0


def test_every_number_has_its_source(device: OpenCLDevice) -> None:
    row = describe(device)
    numbers = {name for name, value in row.items() if isinstance(value, int | float)}
    sources = json.loads(row["sources"])
    assert numbers <= set(sources)
    assert sources["peak_flop_per_s"].startswith("measured")


def test_what_is_known_without_measuring_is_a_row_too(device: OpenCLDevice) -> None:
    row = known_row(device)
    check(DEVICES, table_of(DEVICES, [row]), "known")
    assert row.keys() < describe(device).keys()


def test_a_device_that_fails_is_a_fault(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> float:
        raise cl_error(-2)

    monkeypatch.setattr(module, "_bandwidth", fail)
    with pytest.raises(DeviceFault, match=f"describing it on {device.id}: the device failed or was lost"):
        describe(device)


def test_caches_of_a_cpu_are_those_of_the_host(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    if device.type != "cpu":
        pytest.skip("the first device is no CPU")
    monkeypatch.setattr(host_state, "caches", lambda: host_state.Caches(1 << 15, 1 << 20, 1 << 25))
    assert caches_of(device) == Caches(1 << 15, 1 << 20, 1 << 25)


def test_a_gpu_has_its_local_memory_and_one_cache(device: OpenCLDevice) -> None:
    row = known_row(device)
    cache = int(device.handle.global_mem_cache_size)
    assert caches_of(replace(device, type="gpu")) == Caches(row["local_memory_bytes"], cache, cache)


def test_a_device_that_hides_its_caches_cannot_be_fitted(device: OpenCLDevice) -> None:
    with pytest.raises(InputError, match=f"{device.id}: expected a device that tells its cache sizes"):
        caches_of(replace(device, type="accelerator"))
