"""What describes a device: what its driver says, and what three small kernels measure."""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.errors import InputError
from crosscast.kernel import Program
from crosscast.measure import host_state
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.opencl.faults import opencl_faults
from crosscast.measure.opencl.queue import OpenCLQueue
from crosscast.suite.sizes import Caches

__all__ = ["caches_of", "describe", "known_row", "static_facts"]

_SOURCE = Path(__file__).with_name("probes.cl")
_STEPS = 1024
_CHAINS = 10
_GROUP = 64
_WIDTHS = (1, 4, 8, 16)
_ENOUGH_S = 0.3
"""Each kernel is repeated for this long: the best of several is what the device can do."""
_LEAST_REPEATS = 5
_TIMES_LAST_CACHE = 2
_LEAST_TRIAD_BYTES = 32 << 20
_MOST_OF_MEMORY = 8
_HZ_PER_MHZ = 1e6


def describe(device: OpenCLDevice) -> dict[str, Any]:
    """Row of the table of devices, in this process.

    Bandwidth is that of ``a[i] = b[i] + s * c[i]`` on arrays that no cache holds, 3 times 4 bytes an
    element (the triad of the STREAM benchmark); the peak rate that of independent chains of
    single-precision multiply-adds, two operations each; the launch overhead the median time on the
    host from enqueuing an empty kernel to its end.

    Raises
    ------
    DeviceFault
        If the device fails.
    """
    row = known_row(device)
    program = Program(_SOURCE.read_bytes(), path=_SOURCE, options=(f"-DSTEPS={_STEPS}",))
    with opencl_faults(device.id, "describing it"):
        measured = {
            "bandwidth_bytes_per_s": _bandwidth(device, program, row),
            "peak_flop_per_s": _peak(device, program),
            "launch_overhead_s": _overhead(device, program),
        }
    sources = {
        **json.loads(row["sources"]),
        "bandwidth_bytes_per_s": "measured: triad kernel, best of several",
        "peak_flop_per_s": "measured: multiply-add kernel, best of several",
        "launch_overhead_s": "measured: empty kernel, median",
    }
    return {**row, **measured, "sources": json.dumps(sources)}


def known_row(device: OpenCLDevice) -> dict[str, Any]:
    """Row of the table of devices without what has to be measured.

    Raises
    ------
    DeviceFault
        If the device does not answer.
    """
    with opencl_faults(device.id, "describing it"):
        facts = static_facts(device)
    sources = {name: "OpenCL driver" for name, value in facts.items() if isinstance(value, int | float)}
    sources |= dict.fromkeys(_host_facts(device), "operating system")
    return {**facts, "sources": json.dumps(sources)}


def static_facts(device: OpenCLDevice) -> dict[str, Any]:
    """What the driver and the operating system say of a device; ``None`` where they do not."""
    handle = device.handle
    return {
        "device": device.key,
        "name": device.name,
        "vendor": str(handle.vendor),
        "type": device.type,
        "compute_units": device.compute_units,
        "clock_hz": handle.max_clock_frequency * _HZ_PER_MHZ or None,
        "memory_bytes": int(handle.global_mem_size),
        "local_memory_bytes": int(handle.local_mem_size),
        "l2_bytes": int(handle.global_mem_cache_size) or None,
        "timer_resolution_s": device.timer_resolution_s,
        "max_work_group_size": int(handle.max_work_group_size),
        "platform": device.platform,
        "driver": device.driver,
        **_host_facts(device),
    }


def caches_of(device: OpenCLDevice) -> Caches:
    """Caches that problem sizes can fit.

    A GPU has two levels that matter here: the local memory of a compute unit, and the cache that all
    share, which then stands for the last two.

    Raises
    ------
    InputError
        If the device does not tell them.
    """
    facts = static_facts(device)
    l1 = facts.get("l1_bytes") or (facts["local_memory_bytes"] if device.type == "gpu" else None)
    l2 = facts["l2_bytes"]
    l3 = facts.get("l3_bytes") or (l2 if device.type == "gpu" else None)
    if not (l1 and l2 and l3):
        raise InputError(
            f"{device.id}: expected a device that tells its cache sizes, found one that does not"
        )
    return Caches(l1, l2, l3)


def _host_facts(device: OpenCLDevice) -> dict[str, Any]:
    """Caches of a CPU, of which OpenCL tells only the last."""
    if device.type != "cpu":
        return {}
    caches = host_state.caches()
    return {"l1_bytes": caches.l1d, "l2_bytes": caches.l2, "l3_bytes": caches.l3}


def _bandwidth(device: OpenCLDevice, program: Program, facts: dict[str, Any]) -> float:
    last_cache = max(facts.get(name) or 0 for name in ("l2_bytes", "l3_bytes"))
    nbytes = max(_TIMES_LAST_CACHE * last_cache, _LEAST_TRIAD_BYTES)
    nbytes = min(nbytes, facts["memory_bytes"] // _MOST_OF_MEMORY)
    count = nbytes // 4 // 256 * 256
    arrays = [np.ones(count, np.float32) for _ in range(3)]
    queue = OpenCLQueue(device, program, arrays)
    queue.write(*arrays)
    scale = np.float32(3)

    def run(queue: OpenCLQueue) -> None:
        queue.launch("triad", (count,), (256,), *arrays, scale)

    return float(3 * 4 * count / _best(queue, run, "triad"))


def _peak(device: OpenCLDevice, program: Program) -> float:
    items = _GROUP * 16 * device.compute_units
    out = np.zeros(items * max(_WIDTHS), np.float32)
    queue = OpenCLQueue(device, program, [out])
    x, y = np.float32(0.5), np.float32(1)
    rates = []
    for width in _WIDTHS:
        name = f"fma{width}"

        def run(queue: OpenCLQueue, name: str = name) -> None:
            queue.launch(name, (items,), (_GROUP,), out, x, y)

        rates.append(2 * _CHAINS * _STEPS * width * items / _best(queue, run, name))
    return max(rates)


def _overhead(device: OpenCLDevice, program: Program) -> float:
    queue = OpenCLQueue(device, program, [])
    end = time.perf_counter() + _ENOUGH_S
    times: list[float] = []
    while len(times) < _LEAST_REPEATS or time.perf_counter() < end:
        times.append(queue.timed(lambda queue: queue.launch("empty", (1,), (1,))).host_s)
    return statistics.median(times)


def _best(queue: OpenCLQueue, run: Any, kernel: str) -> float:
    end = time.perf_counter() + _ENOUGH_S
    times: list[float] = []
    while len(times) < _LEAST_REPEATS or time.perf_counter() < end:
        times.extend(queue.timed(run).kernels_s[kernel])
    return min(times)
