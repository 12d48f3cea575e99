"""Devices, parts of them, and machines without any."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
from cl_errors import cl_error

from crosscast.errors import EnvironmentFault, InputError
from crosscast.kernel import Program
from crosscast.measure import opencl as module
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, devices, find, selected

BUSY = b"""
kernel void busy(global float *out) {
  float x = get_global_id(0);
  for (int i = 0; i < 100000; i++) x = fma(x, 0.999f, 0.5f);
  out[get_global_id(0)] = x;
}
"""


def handle(name: str = "fast one", units: int = 8, kind: int = cl.device_type.GPU, **facts: Any) -> Any:
    """A device that exists only here."""
    return SimpleNamespace(name=name, max_compute_units=units, type=kind, partition_properties=[], **facts)


def platform(name: str, *handles: Any) -> Any:
    return SimpleNamespace(name=name, get_devices=lambda: list(handles))


@pytest.fixture
def platforms(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Platforms of a machine that exists only here."""
    found: list[Any] = []
    monkeypatch.setattr(cl, "get_platforms", lambda: found)
    return found


def test_devices_have_ids_and_keys_of_their_own() -> None:
    found = devices()
    assert len({device.id for device in found}) == len({device.key for device in found}) == len(found)


def test_parts_of_a_cpu_have_the_compute_units_that_their_ids_say() -> None:
    cpus = [device for device in devices() if device.type == "cpu"]
    parts = [device for device in cpus if "/" in device.id]
    most = max(device.compute_units for device in cpus)
    assert {device.compute_units for device in parts} == {1 << i for i in range(12) if 1 << i < most}
    for device in cpus:
        assert device.id.partition("/")[2] in ("", str(device.compute_units))
        assert device.key.endswith(f"-{device.compute_units}cu")


def test_one_compute_unit_takes_the_time_of_one_cpu() -> None:
    part = next((device for device in devices() if device.id.endswith("/1")), None)
    if part is None:
        pytest.skip("the machine has one CPU")
    out = np.zeros(64 * 16, np.float32)
    queue = OpenCLQueue(part, Program(BUSY), [out])

    def run(queue: OpenCLQueue) -> None:
        queue.launch("busy", (len(out),), (16,), out)

    queue.timed(run)
    wall, cpu = time.perf_counter(), time.process_time()
    runs = 0
    while time.perf_counter() - wall < 0.4:
        queue.timed(run)
        runs += 1
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert runs
    assert cpu <= 1.15 * wall


def test_devices_are_found_by_id() -> None:
    first = devices()[0]
    assert find(first.id) == first
    assert [device.id for device in selected(["all"])] == [device.id for device in devices()]
    again = selected([first.id, "all", first.id])
    assert [device.id for device in again] == [device.id for device in devices()]


def test_an_unknown_device_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"device 'abacus:0': expected one of .*, or all"):
        selected(["abacus:0"])
    with pytest.raises(InputError, match="device 'all': expected one of") as caught:
        find("all")
    assert "or all" not in str(caught.value)


def test_devices_are_numbered_within_their_platform(platforms: list[Any]) -> None:
    platforms += [
        platform("NVIDIA CUDA", handle("Tesla(R) K40m"), handle("Tesla(R) K40m"), handle("GTX 1080")),
        platform("A new thing", handle("x", kind=cl.device_type.ACCELERATOR)),
    ]
    found = [(device.id, device.key, device.type) for device in devices()]
    assert found == [
        ("nvidia:0", "tesla-k40m", "gpu"),
        ("nvidia:1", "tesla-k40m-2", "gpu"),
        ("nvidia:2", "gtx-1080", "gpu"),
        ("a-new-thing:0", "x", "accelerator"),
    ]


def test_a_cpu_that_cannot_be_parted_is_one_device(platforms: list[Any]) -> None:
    def refuse(properties: list[int]) -> list[Any]:
        raise cl_error(cl.status_code.DEVICE_PARTITION_FAILED, "clCreateSubDevices")

    cpu = handle("pthread-EPYC", 4, cl.device_type.CPU)
    claims = handle("pthread-EPYC", 4, cl.device_type.CPU, create_sub_devices=refuse)
    claims.partition_properties = [cl.device_partition_property.BY_COUNTS]
    platforms += [platform("Portable Computing Language", cpu, claims)]
    found = [(device.id, device.key) for device in devices()]
    assert found == [("pocl:0", "epyc-4cu"), ("pocl:1", "epyc-4cu-2")]


def test_platforms_without_devices_are_told(platforms: list[Any]) -> None:
    platforms.append(platform("NVIDIA CUDA"))
    with pytest.raises(EnvironmentFault, match=r"no OpenCL device: .*pip install 'crosscast\[opencl\]'"):
        devices()


def test_a_platform_that_fails_is_named(platforms: list[Any]) -> None:
    def fail() -> list[Any]:
        raise cl_error(cl.status_code.OUT_OF_HOST_MEMORY, "clGetDeviceIDs")

    platforms.append(SimpleNamespace(name="Broken", get_devices=fail))
    with pytest.raises(EnvironmentFault, match="the OpenCL platform 'Broken' does not list its devices"):
        devices()


def test_a_loader_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[Any]:
        raise cl_error(-5, "clGetPlatformIDs", cl.LogicError)

    monkeypatch.setattr(cl, "get_platforms", fail)
    with pytest.raises(EnvironmentFault, match="OpenCL does not start on this machine"):
        devices()


def test_a_machine_without_drivers_is_told_what_to_install(tmp_path: Path) -> None:
    # The wheels bring a driver of their own, found by a variable that their import sets.
    script = (
        "import os, pyopencl\n"
        "os.environ['PYOPENCL_HOME'] = os.environ['OCL_ICD_VENDORS'] = os.environ['EMPTY']\n"
        "from crosscast.cli import main\n"
        "raise SystemExit(main(['devices']))\n"
    )
    (tmp_path / ".libs").mkdir()
    environment = {**os.environ, "EMPTY": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert ran.stderr.startswith("crosscast: no OpenCL platform: ")
    assert ran.stderr.endswith("pip install 'crosscast[opencl]' brings a device that runs on the CPU\n")


def test_bus_ids_are_those_of_the_system() -> None:
    gpu = handle(pci_bus_id_nv=0x3B, pci_slot_id_nv=0x0A)
    assert OpenCLDevice("nvidia:0", "gpu", "gpu", gpu).pci_bus_id == "0000:3b:01.2"
    assert OpenCLDevice("amd:0", "gpu", "gpu", handle()).pci_bus_id is None


def test_names_are_the_same_whatever_the_spaces() -> None:
    assert module._slug("  Xeon(R)   E5-2697 v2 @ 2.70GHz") == "xeon-e5-2697-v2-2.70ghz"
