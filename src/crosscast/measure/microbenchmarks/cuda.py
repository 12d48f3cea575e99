"""NVIDIA GPUs by CUDA's driver, for machines without OpenCL's: found, and measured by microbenchmarks."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from crosscast.characterization.toolchain import clang
from crosscast.data.fields import TableRow
from crosscast.errors import CrosscastError, DeviceFault, EnvironmentFault, InputError, importing
from crosscast.measure.microbenchmarks import (
    CHAIN_GROUP,
    FOLDER,
    IN_A_ROW,
    EmptyLaunch,
    KernelBackend,
)

PREFIX = "cuda:"
"""Beginning of the ids of devices."""

_SERIES = {  # Architectures, from a compute capability on
    30: "Kepler",
    50: "Maxwell",
    60: "Pascal",
    70: "Volta",
    75: "Turing",
    80: "Ampere",
    89: "Ada Lovelace",
    90: "Hopper",
    100: "Blackwell",
}
_HALF = 53  # The first with half precision
_TARGETS = (35, _HALF, 70)
_WAIT_STEPS = 1 << 14  # Of a kernel that outlasts the calls of some launches
_FAULTS: dict[str, tuple[type[CrosscastError], str]] = {
    "CUDA_ERROR_NO_DEVICE": (EnvironmentFault, "the driver finds no GPU; CUDA_VISIBLE_DEVICES may hide it"),
    "CUDA_ERROR_OUT_OF_MEMORY": (DeviceFault, "the device has not enough memory"),
    **dict.fromkeys(
        [f"CUDA_ERROR_{name}" for name in ("INVALID_PTX", "UNSUPPORTED_PTX_VERSION", "NO_BINARY_FOR_GPU")],
        (EnvironmentFault, "the driver and its compiler do not fit the GPU"),
    ),
}


class _Driver:
    """The functions of CUDA's driver, which raise errors of Crosscast."""

    def __init__(self) -> None:
        with importing("cuda", "measuring by CUDA"):
            self._binding: Any = importlib.import_module("cuda.bindings.driver")
        self("CUDA", "cuInit", 0)

    def __call__(self, who: str, function: str, *arguments: Any) -> Any:
        try:
            error, *results = getattr(self._binding, function)(*arguments)
        except RuntimeError as lacking:
            reason = "this machine has no driver of NVIDIA, libcuda.so.1"
            if function != "cuInit":
                reason = f"the driver is too old, it lacks {function}; pip install 'cuda-bindings<13' may do"
            raise EnvironmentFault(f"{who}: {reason}") from lacking
        if error:
            kind, reason = _FAULTS.get(error.name, (DeviceFault, "the device failed or was lost"))
            if function == "cuInit" and error.name not in _FAULTS:
                kind, reason = EnvironmentFault, "the driver does not start"
            raise kind(f"{who}: {reason} ({error.name})")
        return results[0] if results else None

    def attribute(self, device: Any, name: str) -> int:
        """Return a number of a device."""
        attribute = getattr(self._binding.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self("CUDA", "cuDeviceGetAttribute", attribute, device))


@dataclass(frozen=True)
class CudaDevice:
    """A GPU."""

    id: str  # Such as `cuda:0`
    name: str
    compute_units: int
    pci_bus_id: str
    capability: int  # Ten times its compute capability
    facts: TableRow  # By column of the table of devices
    handle: Any
    driver: _Driver
    type: str = "gpu"


def devices() -> list[CudaDevice]:
    """Return the GPUs that CUDA's driver finds."""
    driver = _Driver()
    return [_described(driver, number) for number in range(driver("CUDA", "cuDeviceGetCount"))]


def find(name: str) -> CudaDevice:
    """Return the device with an id."""
    known = {device.id: device for device in devices()}
    if name not in known:
        raise InputError.of(where=f"device {name!r}", expected=f"one of {', '.join(known)}")
    return known[name]


def _described(driver: _Driver, number: int) -> CudaDevice:
    who = f"{PREFIX}{number}"
    handle = driver(who, "cuDeviceGet", number)
    name, bus = (
        driver(who, function, 256, handle).split(b"\0")[0].decode(errors="replace")
        for function in ("cuDeviceGetName", "cuDeviceGetPCIBusId")
    )
    number_of = partial(driver.attribute, handle)
    units = number_of("MULTIPROCESSOR_COUNT")
    capability = 10 * number_of("COMPUTE_CAPABILITY_MAJOR") + number_of("COMPUTE_CAPABILITY_MINOR")
    version = int(driver(who, "cuDriverGetVersion"))
    facts = {
        "device": "-".join(name.lower().split()),
        "name": name,
        "vendor": "Nvidia",
        "type": "gpu",
        "series": next((each for least, each in reversed(_SERIES.items()) if capability >= least), None),
        "compute_units": units,
        "clock_hz": number_of("CLOCK_RATE") * 1e3 or None,
        "memory_bytes": int(driver(who, "cuDeviceTotalMem", handle)),
        "local_memory_bytes": number_of("MAX_SHARED_MEMORY_PER_BLOCK"),
        "l2_bytes": number_of("L2_CACHE_SIZE") or None,
        "max_work_group_size": number_of("MAX_THREADS_PER_BLOCK"),
        "platform": f"CUDA {version // 1000}.{version % 1000 // 10}",
    }
    return CudaDevice(who, name, units, bus.lower(), capability, TableRow(facts), handle, driver)


def ptx(capability: int) -> bytes:
    """Compile ``kernels.cl`` to the PTX of CUDA 9, which newer drivers compile for newer GPUs, too."""
    target = max((each for each in _TARGETS if each <= capability), default=_TARGETS[0])
    known = {
        "WIDE": 0,
        "HAS_FP64": 1,
        "HAS_FP16": int(target >= _HALF),
        "CHAIN_GROUP": CHAIN_GROUP,
        "PARTS": 1,
    }
    options = ["-x", "c", "-target", "nvptx64-nvidia-cuda", f"-march=sm_{target}", "--cuda-feature=+ptx60"]
    options += ["-O3", "-S", "-w", *(f"-D{name}={value}" for name, value in known.items())]
    source = b"".join((FOLDER / name).read_bytes() for name in ("nvptx.h", "kernels.cl"))
    return clang(options, source, "kernels.cl")


class CudaBackend(KernelBackend):
    """A GPU by CUDA."""

    type = "gpu"
    vendor = "Nvidia"
    group = 256
    vector_bytes = 16

    def __init__(self, device: CudaDevice) -> None:
        self.id, self.name, self.units = device.id, device.name, device.compute_units
        facts = device.facts
        self.series = facts.text_or_none("series") or ""
        self.items = 2048 * self.units
        self.memory_bytes = facts.integer("memory_bytes")
        self.last_cache_bytes = facts.integer_or_none("l2_bytes") or 1 << 22
        known = ("clock_hz", "local_memory_bytes", "l2_bytes", "max_work_group_size")
        self.numbers = {name: float(value) for name in known if (value := facts.number_or_none(name))}
        kernels = ("transcendental", "fp32", "fp64", "int32", "int32_add", "local_words", "atomics", "chain")
        self.lanes = dict.fromkeys(kernels, 1) | ({"fp16": 2} if device.capability >= _HALF else {})
        self._call = partial(device.driver, f"measuring {device.id}")
        self._call("cuCtxSetCurrent", self._call("cuDevicePrimaryCtxRetain", device.handle))
        self._module = self._call("cuModuleLoadData", ptx(device.capability) + b"\0")
        self._functions: dict[str, Any] = {}
        self._marks = [self._call("cuEventCreate", 0) for _ in range(IN_A_ROW + 1)]
        self._bytes = 0
        self._out = self._zeros(self.items * 64 * 4)

    def _zeros(self, nbytes: int) -> np.uint64:
        address = self._call("cuMemAlloc", nbytes)
        self._call("cuMemsetD8", address, 0, nbytes)
        return np.uint64(int(address))

    def _grow(self, nbytes: int) -> None:
        if self._bytes < nbytes:
            if self._bytes:
                self._call("cuMemFree", int(self._array))
                self._bytes = 0
            self._array, self._bytes = self._zeros(nbytes), nbytes

    def _launch(self, kernel: str, items: int, group: int, *args: Any, rows: int = 1) -> None:
        if kernel not in self._functions:
            self._functions[kernel] = self._call("cuModuleGetFunction", self._module, kernel.encode())
        values = [np.array(value) for value in args]
        addresses = np.array([value.ctypes.data for value in values], np.uint64)
        sizes = (items // group, rows, 1, group, 1, 1)
        self._call("cuLaunchKernel", self._functions[kernel], *sizes, 0, 0, addresses.ctypes.data, 0)

    def _mark(self, number: int) -> None:
        self._call("cuEventRecord", self._marks[number], 0)

    def _seconds(self, kernel: str, items: int, group: int, *args: Any, rows: int = 1) -> float:
        self._mark(0)
        self._launch(kernel, items, group, *args, rows=rows)
        self._mark(1)
        return self._elapsed(1)

    def _elapsed(self, number: int) -> float:
        """Wait for a mark, and return the seconds from the one before it."""
        self._call("cuEventSynchronize", self._marks[number])
        milliseconds = self._call("cuEventElapsedTime", self._marks[number - 1], self._marks[number])
        return float(milliseconds) * 1e-3

    def launch(self) -> EmptyLaunch:
        """Launch an empty kernel."""
        start = time.perf_counter()
        self._launch("empty", 1, 1)
        self._call("cuCtxSynchronize")
        end = time.perf_counter()
        # Behind a longer kernel, so that each of the others begins when the one before it ends.
        arguments = (self._out, np.uint32(_WAIT_STEPS), np.float32(1), np.float32(0))
        self._launch("fp32", self.units * self.group, self.group, *arguments)
        self._mark(0)
        for number in range(1, IN_A_ROW + 1):
            self._launch("empty", 1, 1)
            self._mark(number)
        busy = median(self._elapsed(number) for number in range(1, IN_A_ROW + 1))
        return EmptyLaunch(None, busy or None, end - start)

    def transfer(self, nbytes: int, *, to_device: bool) -> float | None:
        """Return the seconds of a copy."""
        self._grow(nbytes)
        host = np.zeros(nbytes, np.uint8)
        pair = (int(self._array), host.ctypes.data)
        function, pair = ("cuMemcpyHtoD", pair) if to_device else ("cuMemcpyDtoH", pair[::-1])
        start = time.perf_counter()
        self._call(function, *pair, nbytes)
        return time.perf_counter() - start
