"""The OpenCL devices of this machine, and parts of its CPUs as devices of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crosscast.errors import EnvironmentFault, InputError
from crosscast.measure.opencl.library import cl

__all__ = ["OpenCLDevice", "devices", "find", "selected"]

_SHORT_NAMES = {
    "Portable Computing Language": "pocl",
    "NVIDIA CUDA": "nvidia",
    "AMD Accelerated Parallel Processing": "amd",
    "Intel(R) OpenCL": "intel",
    "Intel(R) OpenCL Graphics": "intel-graphics",
    "rusticl": "rusticl",
    "Apple": "apple",
}
_TYPES = (
    (cl.device_type.CPU, "cpu"),
    (cl.device_type.GPU, "gpu"),
    (cl.device_type.ACCELERATOR, "accelerator"),
)
_NO_PLATFORM = -1001
"""Code of CL_PLATFORM_NOT_FOUND_KHR."""


@dataclass(frozen=True)
class OpenCLDevice:
    """A device, or some compute units of one.

    Parameters
    ----------
    id
        How the command line names it on this machine: platform, number, and for a part of a device
        its compute units, as in ``pocl:0`` and ``pocl:0/1``.
    key
        How tables name it: the model, and for CPUs the compute units.
    type
        ``cpu``, ``gpu`` or ``accelerator``.
    handle
        ``pyopencl.Device``.
    """

    id: str
    key: str
    type: str
    handle: Any

    @cached_property
    def name(self) -> str:
        """Name that the driver gives, without the marks of PoCL."""
        return _model(self.handle)

    @cached_property
    def compute_units(self) -> int:
        """Compute units."""
        return int(self.handle.max_compute_units)

    @cached_property
    def platform(self) -> str:
        """Name and version of its platform."""
        return " ".join(f"{self.handle.platform.name} {self.handle.platform.version}".split())

    @cached_property
    def driver(self) -> str:
        """Version of its driver."""
        return str(self.handle.driver_version)

    @cached_property
    def timer_resolution_s(self) -> float:
        """Resolution of its timer, in seconds."""
        return float(self.handle.profiling_timer_resolution * 1e-9)

    @cached_property
    def pci_bus_id(self) -> str | None:
        """Bus id such as ``0000:3b:00.0``, where the driver tells it."""
        try:
            return _pci_bus_id(self.handle)
        except (cl.Error, AttributeError):
            return None


def devices() -> list[OpenCLDevice]:
    """All devices; for each CPU also 1, 2, 4, ... of its compute units as devices of their own.

    Raises
    ------
    MissingExtraError
        If pyopencl is not installed.
    EnvironmentFault
        If there is no OpenCL platform.
    """
    found: list[OpenCLDevice] = []
    numbers: dict[str, int] = {}
    for platform in _platforms():
        short = _short_name(platform.name)
        for handle in _handles(platform):
            number = numbers.setdefault(short, 0)
            numbers[short] += 1
            found.extend(_with_parts(handle, f"{short}:{number}"))
    if not found:
        raise EnvironmentFault(
            "no OpenCL device: the OpenCL platforms of this machine have none; "
            "pip install 'crosscast[opencl]' brings one that runs on the CPU"
        )
    return list(_with_distinct_keys(found))


def find(name: str) -> OpenCLDevice:
    """The device of an id.

    Raises
    ------
    InputError
        If there is none.
    """
    there = {device.id: device for device in devices()}
    if name not in there:
        raise InputError(f"device {name!r}: expected one of {', '.join(there)}")
    return there[name]


def selected(names: list[str]) -> list[OpenCLDevice]:
    """Devices of ids; ``all`` stands for every device.

    Raises
    ------
    InputError
        If there is no such device.
    """
    there = {device.id: device for device in devices()}
    chosen: dict[str, OpenCLDevice] = {}
    for name in names:
        if name != "all" and name not in there:
            raise InputError(f"device {name!r}: expected one of {', '.join(there)}, or all")
        chosen.update(there if name == "all" else {name: there[name]})
    return list(chosen.values())


def _platforms() -> list[Any]:
    try:
        return list(cl.get_platforms())
    except cl.LogicError as error:
        if error.code != _NO_PLATFORM:
            raise EnvironmentFault(f"OpenCL does not start on this machine ({error})") from error
        raise EnvironmentFault(
            "no OpenCL platform: expected a driver in /etc/OpenCL/vendors or PoCL, found none; "
            "pip install 'crosscast[opencl]' brings a device that runs on the CPU"
        ) from error


def _handles(platform: Any) -> list[Any]:
    try:
        return list(platform.get_devices())
    except cl.Error as error:
        raise EnvironmentFault(
            f"the OpenCL platform {platform.name!r} does not list its devices ({error}); "
            "OCL_ICD_VENDORS can name a folder without it"
        ) from error


def _with_parts(handle: Any, name: str) -> Iterator[OpenCLDevice]:
    kind = next((label for bit, label in _TYPES if handle.type & bit), "accelerator")
    units = int(handle.max_compute_units)
    if kind != "cpu":
        yield OpenCLDevice(name, _slug(_model(handle)), kind, handle)
        return
    slug = _slug(_model(handle))
    yield OpenCLDevice(name, f"{slug}-{units}cu", kind, handle)
    by_counts = cl.device_partition_property.BY_COUNTS
    if by_counts not in handle.partition_properties:
        return
    part = 1
    while part < units:
        try:
            handles = handle.create_sub_devices([by_counts, part, 0])
        except cl.Error:
            # Some drivers say that they can, and cannot.
            return
        yield OpenCLDevice(f"{name}/{part}", f"{slug}-{part}cu", kind, handles[0])
        part *= 2


def _with_distinct_keys(found: list[OpenCLDevice]) -> Iterator[OpenCLDevice]:
    """Number devices of the same model from the second on."""
    seen: dict[str, int] = {}
    for device in found:
        seen[device.key] = seen.get(device.key, 0) + 1
        number = seen[device.key]
        key = device.key if number == 1 else f"{device.key}-{number}"
        yield OpenCLDevice(device.id, key, device.type, device.handle)


def _short_name(platform: str) -> str:
    return _SHORT_NAMES.get(platform, _slug(platform))


def _model(handle: Any) -> str:
    return re.sub(r"^(pthread|cpu)-", "", " ".join(str(handle.name).split()))


def _slug(text: str) -> str:
    """Lower-case words joined by hyphens.

    Examples
    --------
    >>> _slug("Intel(R) Core(TM) i7-6700K CPU @ 4.00GHz")
    'intel-core-i7-6700k-cpu-4.00ghz'
    """
    text = re.sub(r"\((r|tm|c)\)", " ", text.lower())
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-")


def _pci_bus_id(handle: Any) -> str:
    """Bus id by NVIDIA's device attributes."""
    bus, slot = int(handle.pci_bus_id_nv), int(handle.pci_slot_id_nv)
    domain = int(getattr(handle, "pci_domain_id_nv", 0))
    return f"{domain:04x}:{bus:02x}:{slot >> 3:02x}.{slot & 7:x}"
