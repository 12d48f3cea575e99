"""NVIDIA GPUs by CUDA: PTX of the kernels, calls of the driver, its faults, and what is known afterwards.

A fake stands for the driver: its kernels take as long as their operations at given rates.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cuda.bindings.driver import CUresult

from crosscast.cli import main
from crosscast.devices.catalogue import device_named
from crosscast.errors import DeviceFault, EnvironmentFault, MissingExtraError
from crosscast.measure import inventory
from crosscast.measure.microbenchmarks import CHAIN_GROUP, CHAINS, bench, cuda
from support.commands import Command, Output
from support.refusals import refusal

ATTRIBUTES = {
    "MULTIPROCESSOR_COUNT": 84,
    "CLOCK_RATE": 1_740_000,
    "COMPUTE_CAPABILITY_MAJOR": 8,
    "COMPUTE_CAPABILITY_MINOR": 6,
    "MAX_SHARED_MEMORY_PER_BLOCK": 48 << 10,
    "L2_CACHE_SIZE": 1 << 20,
    "MAX_THREADS_PER_BLOCK": 1024,
}
STEPS_PER_S = 1e12  # Of a chain of any kernel, all work-items together
BYTES_PER_S = 5e11
EMPTY_S = 2e-6
ANSWERS = {
    "cuDeviceGetCount": 2,
    "cuDeviceGetName": b"NVIDIA RTX A6000\0\0",
    "cuDriverGetVersion": 12040,
    "cuDeviceTotalMem": 48 << 30,
    "cuDevicePrimaryCtxRetain": "context",
    "cuModuleLoadData": "module",
    "cuMemAlloc": 4096,
}


class Driver:
    """As `cuda.bindings.driver`: functions return a code and their results."""

    def __init__(self) -> None:
        self.failing: dict[str, str] = {}  # Names of errors by function
        self.lacking: set[str] = set()
        self.clock = 0.0
        self.CUdevice_attribute = SimpleNamespace(
            **{f"CU_DEVICE_ATTRIBUTE_{name}": value for name, value in ATTRIBUTES.items()}
        )

    def __getattr__(self, function: str) -> Callable[..., tuple[Any, ...]]:
        return partial(self._called, function)

    def _called(self, function: str, *arguments: Any) -> tuple[Any, ...]:
        if function in self.lacking:
            raise RuntimeError(f"function {function} is not found")
        error = self.failing.get(function)
        if error is not None:
            return (getattr(CUresult, error),)
        return 0, self._answer(function, *arguments)

    def _answer(self, function: str, *arguments: Any) -> Any:
        match function, arguments:
            case "cuLaunchKernel", (name, groups, _, _, group, _, _, 0, 0, parameters, 0):
                self.clock += self._duration(name, groups * group, parameters)
            case "cuDeviceGetPCIBusId", (_, number):
                return f"0000:3{number}:00.0".upper().encode() + b"\0"
            case "cuEventCreate", _:
                return SimpleNamespace(at=0.0)
            case "cuEventRecord", (event, 0):
                event.at = self.clock
            case "cuEventElapsedTime", (first, second):
                return 1e3 * (second.at - first.at)
            case ("cuModuleGetFunction", ("module", name)):
                return name.decode()
            case (("cuDeviceGet" | "cuDeviceGetAttribute"), (answer, *_)):
                return answer
        return ANSWERS.get(function)

    @staticmethod
    def _duration(name: str, items: int, parameters: int) -> float:
        def value(number: int, kind: Any) -> Any:
            return kind.from_address(ctypes.c_void_p.from_address(parameters + 8 * number).value).value

        if name in ("empty", "one_word"):
            return EMPTY_S * (1 if name == "empty" else items / CHAIN_GROUP)
        assert value(0, ctypes.c_uint64) == ANSWERS["cuMemAlloc"]
        if name in ("read_words", "write_words", "copy_words"):
            moved = 16 * value(2, ctypes.c_uint32) * (2 if name == "copy_words" else 1)
            return float(moved * value(3, ctypes.c_uint32) / BYTES_PER_S)
        assert name == "scattered_words" or value(2, ctypes.c_float) > 0
        steps = value(3 if name == "scattered_words" else 1, ctypes.c_uint32)
        return float(items * steps / STEPS_PER_S)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made, real = Driver(), importlib.import_module
    monkeypatch.setattr(
        importlib,
        "import_module",
        lambda name, *of: made if name == "cuda.bindings.driver" else real(name, *of),
    )
    for name in ("_POINT_S", "_LAST_POINT_S", "_RATE_S", "_PASS_S", "_RUN_S"):
        monkeypatch.setattr(bench, name, 0.001)
    return made


PER_STEP = {
    "fp32": ("fma.rn.f32", CHAINS),
    "fp64": ("fma.rn.f64", CHAINS),
    "fp16": ("fma.rn.f16x2", CHAINS),
    "int32": ("mad.lo.s32", CHAINS),
    "int32_add": ("xor.b32", CHAINS),
    "transcendental": ("ex2.approx.ftz.f32", CHAINS),
    "chain": ("fma.rn.f32", 1),
    "local_words": ("ld.shared.b32", 3),
    "atomics": ("atom.global.add.u32", 1),
    "read_words": ("ld.global.v4.b32", 4),
    "write_words": ("st.global.v4.b32", 1),
}


@pytest.mark.parametrize("capability", [35, 52, 61, 70, 86, 90, 120])
def test_a_step_in_ptx_has_the_operations_that_rates_count(capability: int) -> None:
    text = cuda.ptx(capability).decode()
    assert ".version 6.0\n" in text  # As drivers since CUDA 9 read it
    kernels = dict(re.findall(r"^\.visible \.entry (\w+)\((.*?)^}", text, re.DOTALL | re.MULTILINE))
    assert {"empty", "one_word", "copy_words", "scattered_words"} < set(kernels)
    assert ("fp16" in kernels) == (capability >= 53)
    for kernel, (instruction, count) in PER_STEP.items():
        loops = re.findall(
            r"^\$L\w+:[^\n]*Inner Loop Header(.*?)\bbra\b", kernels.get(kernel, ""), re.DOTALL | re.M
        )
        found = [loop.count(f"\t{instruction} ") for loop in loops]
        found = [each for each in found if each]
        assert kernel not in kernels or found
        assert all(each % count == 0 for each in found), (kernel, found)


def test_rates_are_what_the_driver_times(driver: Driver) -> None:
    backend = cuda.CudaBackend(cuda.find("cuda:1"))
    found = bench.measure(backend)
    values = {name: each.best for name, each in found.values.items()}
    assert values["fp32_flop_per_s"] == pytest.approx(2 * CHAINS * STEPS_PER_S)
    assert values["fp16_flop_per_s"] == pytest.approx(4 * CHAINS * STEPS_PER_S)
    for kind in ("read", "write", "copy"):
        assert values[f"{kind}_bytes_per_s"] == pytest.approx(BYTES_PER_S)
    assert values["scattered_bytes_per_s"] == pytest.approx(4 * STEPS_PER_S)
    assert values["empty_s"] == pytest.approx(EMPTY_S)
    assert "launch_s" not in values  # No event knows when a launch was asked for
    assert {"round_trip_s", "to_device_bytes_per_s", "from_device_bytes_per_s"} <= set(values)
    device = found.device("mine")
    assert (device.name, device.vendor, device.series) == ("NVIDIA RTX A6000", "Nvidia", "Ampere")
    assert (device.numbers["clock_hz"], device.numbers["l2_bytes"]) == (1.74e9, 1 << 20)
    assert device.numbers["local_memory_bytes"] == 48 << 10


@pytest.mark.parametrize(
    ("function", "error", "sentence"),
    [
        ("cuInit", "NO_DEVICE", "CUDA: the driver finds no GPU; CUDA_VISIBLE_DEVICES may hide it"),
        ("cuInit", "SYSTEM_DRIVER_MISMATCH", "CUDA: the driver does not start"),
        ("cuDevicePrimaryCtxRetain", "DEVICE_UNAVAILABLE", "measuring cuda:0: the device failed or was lost"),
        ("cuModuleLoadData", "UNSUPPORTED_PTX_VERSION", "the driver and its compiler do not fit"),
        ("cuMemAlloc", "OUT_OF_MEMORY", "measuring cuda:0: the device has not enough memory"),
        ("cuInit", None, "CUDA: this machine has no driver of NVIDIA, libcuda.so.1"),
        ("cuEventElapsedTime", None, "measuring cuda:0: the driver is too old, it lacks cuEventElapsedTime"),
    ],
)
def test_a_fault_of_the_driver_is_said(
    function: str, error: str | None, sentence: str, driver: Driver
) -> None:
    if error is None:
        driver.lacking.add(function)
    else:
        driver.failing[function] = f"CUDA_ERROR_{error}"
    with pytest.raises(EnvironmentFault if "driver" in sentence else DeviceFault) as raised:
        bench.measure(cuda.CudaBackend(cuda.find("cuda:0")))
    assert sentence in str(raised.value)
    assert error is None or str(raised.value).endswith(f"(CUDA_ERROR_{error})")


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    try:  # The real bindings find a driver here, or say that there is none.
        cuda.devices()
    except EnvironmentFault as fault:
        assert str(fault).startswith("CUDA: ")
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    with pytest.raises(MissingExtraError):
        cuda.devices()
    assert "pip install 'crosscast[cuda]'" in Command.of("calibrate").refusal(capsys, "--device", "cuda:0")


def test_a_gpu_that_is_not_there_is_refused(driver: Driver) -> None:
    for device in ("cuda:2", "cuda:"):
        assert f"device '{device}': expected one of cuda:0, cuda:1" in refusal(cuda.find, device)


def test_a_gpu_is_known_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output, driver: Driver
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert main(["calibrate", "--device", "cuda:0", "--name", "card"]) == 0
    said = capsys.readouterr()
    assert "NVIDIA RTX A6000 (cuda:0)" in said.out
    assert said.err.splitlines()[-1].startswith("crosscast: kernels of the suite are OpenCL C")
    device = device_named("card")
    assert device.numbers["compute_units"] == 84
    assert device.measured["copy_bytes_per_s"] == pytest.approx(BYTES_PER_S)


def test_gpus_are_listed_unless_opencl_lists_them(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed() -> list[str]:
        return [entry.device.id for entry in inventory.inventory() if entry.device.type == "gpu"]

    def none() -> None:
        raise EnvironmentFault("no OpenCL platform")

    assert listed() == ["cuda:0", "cuda:1"]
    last = inventory.inventory()[-1].to_dict()
    assert (last["compute_units"], last["platform"]) == (84, "CUDA 12.4")
    opencl = importlib.import_module("crosscast.measure.opencl")
    monkeypatch.setattr(opencl.OpenCLDevice, "pci_bus_id", "0000:30:00.0")
    assert listed() == ["cuda:1"]
    monkeypatch.setattr(opencl, "devices", none)
    assert listed() == ["cuda:0", "cuda:1"]
    driver.lacking.add("cuInit")
    with pytest.raises(EnvironmentFault, match="no OpenCL platform"):
        inventory.inventory()
