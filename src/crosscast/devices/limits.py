"""Lower bounds of a launch's time on a device, by its work and the data sheet.

Caches begin empty, and hold what is used again.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from crosscast.device import Device
from crosscast.devices.architectures import double_share, half_share
from crosscast.devices.launch_work import LaunchWork

Bound = Literal["memory", "compute", "local", "atomics", "launch", "latency"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)

Latency = Literal["chain", "reads", "idle"]
"""The longest chain of dependences, reads that a work-item waits for, or compute units without work."""

_LAUNCH_S = {"gpu": 5e-6, "cpu": 20e-6}
"""Typical cost of a launch, for devices without a measurement."""

_ISSUE = {"cpu": 0.25}
"""Clocks of an instruction of a work-item, by type of device: four instructions a clock on CPUs, else one."""

_STEP = {"gpu": 4.0, "cpu": 1.0}
"""Clocks to an instruction that needs the one before: on GPUs, of arithmetic on Volta, Ampere and Hopper
(doi:10.1016/j.ultsonch.2023.106546, Table 3)."""

# Latency of loads where it is shortest: of the first cache in clocks (of Volta on GPUs: arXiv:1804.06826),
# and of memory, in clocks on GPUs.
_HIT = {"gpu": 28.0, "cpu": 4.0}
_GPU_MISS, _MISS_S = 300.0, 50e-9

_AT_ONCE = 4.0
"""Reads of a work-item in flight at once, as of a loop that is unrolled four times."""

_UNIT_BYTES = {"gpu": 64.0, "cpu": 16.0}
"""Bytes of memory that a compute unit takes in a clock at most."""

_LINE_BYTES = 64.0
_LINE_FULL = 0.9
"""Share of the lines in use above which they count as full, by the accuracy of sampled lines."""


def launch_cost(device: Device) -> float:
    """Return the seconds of an empty kernel from its launch to its end, measured or typical."""
    return device.numbers.get("launch_overhead_s") or _LAUNCH_S[device.kind]


def cache_bytes(device: Device) -> float | None:
    """Return the bytes of a device's last cache; ``None`` if the data sheet lacks it."""
    numbers = device.numbers
    name = "l2_bytes" if device.type == "gpu" and "l3_bytes" not in numbers else "l3_bytes"
    return numbers.get(name)


def idle_factor(work: LaunchWork, device: Device) -> float:
    """Return the ratio of a device's size to a launch's; 1 or less if the launch fills it."""
    units = device.numbers.get("compute_units", 1.0) / work.work_groups
    if device.type != "gpu":
        # A thread that has a core of a CPU to itself is as fast as two that share it.
        return units / 2
    return max(units, device.numbers.get("cores", 1.0) / work.work_items)


def busy_units(work: LaunchWork, device: Device) -> float:
    """Return the number of compute units that have a work-group."""
    return min(device.numbers.get("compute_units", math.inf), work.work_groups)


def memory_rate(work: LaunchWork, device: Device) -> float:
    """Return the bytes per second that memory gives to the compute units that have a work-group."""
    of_unit = _UNIT_BYTES[device.kind] * device.numbers["clock_hz"]
    return min(device.numbers["bandwidth_bytes_per_s"], busy_units(work, device) * of_unit)


def line_bytes(work: LaunchWork, device: Device) -> float:
    """Return the bytes of the lines in use, of 64 bytes, on GPUs of 32; once read and once written."""
    lines = min(work.first_bytes, work.line_bytes)
    if device.type == "gpu":
        # An access that repeats a line may touch both of its halves again.
        repeated = work.line_bytes - work.first_bytes
        lines = min(max(work.first_bytes / 2, work.sector_bytes - repeated), work.sector_bytes)
    return lines if work.unique_bytes < _LINE_FULL * lines else work.unique_bytes


def kept_bytes(work: LaunchWork, device: Device) -> float:
    """Return the bytes of written lines that the last cache may keep, of lines that are used in part."""
    lines = line_bytes(work, device)
    if lines <= work.unique_bytes:
        return 0.0
    written = lines * min(work.written_bytes / work.first_bytes, 1.0)
    return min(written, cache_bytes(device) or math.inf, lines - work.unique_bytes)


def moved_bytes(work: LaunchWork, device: Device) -> float:
    """Return the bytes that have to come from memory or go there."""
    return line_bytes(work, device) - kept_bytes(work, device)


def latencies(work: LaunchWork, device: Device) -> dict[Latency, float]:
    """Return the seconds for which a work-item has to wait, or units without one, by reason."""
    kind, clock, gpu = device.kind, device.numbers["clock_hz"], device.type == "gpu"
    each = work.issued / max(work.operations, 1.0)
    # CPUs fetch ahead the lines of consecutive addresses.
    fetched = max(work.first_bytes - (0.0 if gpu else work.accessed_bytes), 0.0)
    missing = min(fetched / max(work.line_bytes, 1.0), 1.0)
    # No more loads of the chain can be hits than all that there are.
    misses = max(work.path_loads - work.accesses * (1 - missing), 0.0)
    misses = min(misses, fetched / _LINE_BYTES)
    miss_s = (_GPU_MISS - _HIT["gpu"]) / clock if gpu else _MISS_S
    steps = max(work.path - work.path_loads, 0.0) * each * _STEP[kind] + work.path_loads * _HIT[kind]
    steps = max(steps, work.longest * each * _ISSUE.get(device.type, 1.0))
    idle = idle_factor(work, device)
    return {
        "chain": steps / clock + misses * miss_s,
        "reads": work.reads * missing * _GPU_MISS / _AT_ONCE / clock if gpu else 0.0,
        "idle": _compute(work, device) * idle if idle > 1 else 0.0,
    }


def double_peak(device: Device) -> float:
    """Return the peak rate of double precision of a device, by its sheet or architecture."""
    numbers = device.numbers
    if double := numbers.get("peak_fp64_flop_per_s"):
        return double
    single = numbers["peak_flop_per_s"]
    if device.type == "gpu" and "cores" in numbers:
        # Packed operations and dual issue are for single precision only.
        single = min(single, 2 * numbers["cores"] * numbers["clock_hz"])
    return single * double_share(device)


def peak_of(work: LaunchWork, device: Device) -> float:
    """Return the peak rate of floating-point operations of a device, in a kernel's precisions."""
    single, double, half = device.numbers["peak_flop_per_s"], work.double_share, work.half_share
    if not double and not half:
        return single
    each = (1 - double - half) / single + half / (single * half_share(device))
    return 1 / (each + (double / double_peak(device) if double else 0.0))


def _compute(work: LaunchWork, device: Device) -> float:
    # A peak counts multiply-adds as two operations, so a lane does half as many instructions.
    issue = 2 * work.issued / device.numbers["peak_flop_per_s"]
    doubles = 2 * work.doubles / double_peak(device) if work.doubles else 0.0
    return max(issue, doubles, (work.flops or 0.0) / peak_of(work, device))


def limits(work: LaunchWork, device: Device) -> dict[Bound, float]:
    """Return the seconds that each kind of work takes at least, the longest first.

    The device has clock, bandwidth and peak rate.
    """
    clock = device.numbers["clock_hz"]
    busy_rate = busy_units(work, device) * clock
    seconds: dict[Bound, float] = {
        "memory": moved_bytes(work, device) / memory_rate(work, device),
        "compute": _compute(work, device),
        # Local memory of a CPU is its cache.
        "local": work.wavefronts / busy_rate if device.type == "gpu" else 0.0,
        # The second cache of a GPU does one a clock at an address.
        "atomics": max(work.atomics / busy_rate, work.turns / clock if device.type == "gpu" else 0.0),
        "launch": launch_cost(device),
        "latency": max(latencies(work, device).values()),
    }
    return dict(sorted(seconds.items(), key=lambda each: -each[1]))
