"""Inventory of this machine: devices with their properties, sensors and counters; and times of kernels."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from crosscast.data.fields import TableRow
from crosscast.data.library import pc
from crosscast.data.table import Table
from crosscast.data.views import cells_of
from crosscast.errors import InputError
from crosscast.kernel import Program
from crosscast.measure import cpu_counters as counters
from crosscast.measure import host_state
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, RunTimes, devices, opencl_faults
from crosscast.measure.sensors import SensorAvailability, sensors
from crosscast.suite.application import Caches

_PROBES = Path(__file__).with_name("probes.cl")
_STEPS = 1024
_CHAINS = 10
_GROUP = 64
_WIDTHS = (1, 4, 8, 16)
_ENOUGH_S = 0.3
"""Seconds of repetitions of each kernel, of which the best counts."""
_LEAST_REPEATS = 5
_TIMES_LAST_CACHE = 2
_LEAST_TRIAD_BYTES = 32 << 20
_MOST_OF_MEMORY = 8
_HZ_PER_MHZ = 1e6


def describe(device: OpenCLDevice) -> TableRow:
    """Measure the row of the table of devices, in this process.

    Bandwidth is that of ``a[i] = b[i] + s * c[i]`` on arrays that exceed all caches, 3 times 4 bytes an
    element (the triad of the STREAM benchmark); the peak rate that of independent chains of
    single-precision multiply-adds, two operations each; the launch overhead the median host time from
    enqueuing an empty kernel to its end.
    """
    row = known_row(device)
    program = Program(_PROBES.read_bytes(), path=_PROBES, options=(f"-DSTEPS={_STEPS}",))
    with opencl_faults(device.id, "describing it"):
        measured = {
            "bandwidth_bytes_per_s": _bandwidth(device, program, row),
            "peak_flop_per_s": _peak(device, program),
            "launch_overhead_s": _overhead(device, program),
        }
    sources = {
        **json.loads(row.text("sources")),
        "bandwidth_bytes_per_s": "measured: triad kernel, best of several",
        "peak_flop_per_s": "measured: multiply-add kernel, best of several",
        "launch_overhead_s": "measured: empty kernel, median",
    }
    return TableRow({**row, **measured, "sources": json.dumps(sources)})


def known_row(device: OpenCLDevice) -> TableRow:
    """Return the row of the table of devices without measured columns."""
    with opencl_faults(device.id, "describing it"):
        facts = static_facts(device)
    sources = {name: "OpenCL driver" for name, value in facts.items() if isinstance(value, int | float)}
    sources |= dict.fromkeys(_host_facts(device), "operating system")
    return TableRow({**facts, "sources": json.dumps(sources)})


def static_facts(device: OpenCLDevice) -> TableRow:
    """Return the properties of a device by its driver and the operating system; ``None`` where unknown."""
    handle = device.handle
    facts = {
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
    return TableRow(facts)


def caches_of(device: OpenCLDevice) -> Caches:
    """Return the caches for problem sizes.

    A GPU has two relevant levels: the local memory of a compute unit, and the shared cache, which stands
    for the last two.
    """
    facts = static_facts(device)
    l1, l2, l3 = map(facts.integer_or_none, ("l1_bytes", "l2_bytes", "l3_bytes"))
    if device.type == "gpu":
        l1, l3 = l1 or facts.integer("local_memory_bytes"), l3 or l2
    if not (l1 and l2 and l3):
        raise InputError(
            f"{device.id}: expected a device that tells its cache sizes, found one that does not"
        )
    return Caches(l1, l2, l3)


def _host_facts(device: OpenCLDevice) -> dict[str, object]:
    """Return the caches of a CPU, of which OpenCL shows only the last."""
    if device.type != "cpu":
        return {}
    caches = host_state.caches()
    return {"l1_bytes": caches.l1d, "l2_bytes": caches.l2, "l3_bytes": caches.l3}


def _bandwidth(device: OpenCLDevice, program: Program, facts: TableRow) -> float:
    last_cache = max(facts.integer_or_none(name) or 0 for name in ("l2_bytes", "l3_bytes"))
    nbytes = max(_TIMES_LAST_CACHE * last_cache, _LEAST_TRIAD_BYTES)
    nbytes = min(nbytes, facts.integer("memory_bytes") // _MOST_OF_MEMORY)
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
    times = _repeated(OpenCLQueue(device, program, []), lambda queue: queue.launch("empty", (1,), (1,)))
    return statistics.median(run.host_s for run in times)


def _best(queue: OpenCLQueue, run: Callable[[OpenCLQueue], None], kernel: str) -> float:
    return min(min(times.kernels_s[kernel]) for times in _repeated(queue, run))


def _repeated(queue: OpenCLQueue, run: Callable[[OpenCLQueue], None]) -> list[RunTimes]:
    end = time.perf_counter() + _ENOUGH_S
    times: list[RunTimes] = []
    while len(times) < _LEAST_REPEATS or time.perf_counter() < end:
        times.append(queue.timed(run))
    return times


@dataclass(frozen=True)
class Entry:
    """A device with its sensors and counters."""

    device: OpenCLDevice
    # Properties from its driver, by column of the table of devices; `None` where unknown
    facts: TableRow
    sensors: tuple[SensorAvailability, ...]  # Sensors of energy that a device of this type may have
    # Reason why each counter of the CPU does not work; `None` if it does. Empty for other devices
    counters: dict[str, str | None]

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        device = self.device
        identity = {"id": device.id, "name": device.name, "type": device.type}
        return {
            **identity,
            "compute_units": device.compute_units,
            "sensors": [asdict(sensor) for sensor in self.sensors],
            "counters": [
                {"name": name, "works": reason is None, "reason": reason}
                for name, reason in self.counters.items()
            ],
            **{name: value for name, value in self.facts.items() if name not in identity},
        }


def inventory() -> list[Entry]:
    """Return the devices of this machine."""
    counting = counters.available()
    return [
        Entry(
            device,
            static_facts(device),
            tuple(sensors(device.type, device.pci_bus_id)),
            counting if device.type == "cpu" else {},
        )
        for device in devices()
    ]


@dataclass(frozen=True)
class KernelSummary:
    """Times of the runs of a kernel."""

    kernel: str  # Name of the kernel
    runs: int  # Recorded runs
    invocations: int  # Invocations in all runs
    median_s: float  # Over the runs, of the mean time of an invocation in a run, in seconds
    mean_s: float
    min_s: float
    max_s: float
    sd_s: float | None  # Standard deviation; `None` for a single run

    @property
    def spread(self) -> float | None:
        """Standard deviation over mean; ``None`` if it is not defined."""
        return None if self.sd_s is None or self.mean_s == 0 else self.sd_s / self.mean_s

    def to_dict(self) -> dict[str, object]:
        """Return the fields for JSON."""
        return asdict(self)


def summaries(records: Table) -> list[KernelSummary]:
    """Summarise the records of one application on one device by kernel."""
    cells = cells_of(records)
    times, counts = cells.times, cells.times.counts
    invocations = np.bincount(cells.numbers, weights=pc.list_value_length(records.column("time_s")))
    return [
        KernelSummary(
            kernel,
            runs=int(counts[cell]),
            invocations=int(invocations[cell]),
            median_s=float(times.quantile(0.5)[cell]),
            mean_s=float(times.mean()[cell]),
            min_s=float(times.least()[cell]),
            max_s=float(times.most()[cell]),
            sd_s=float(times.sd()[cell]) if counts[cell] > 1 else None,
        )
        for cell, kernel in enumerate(cells.keys.column("kernel").to_pylist())
    ]
