"""Microbenchmarks of a device: bandwidth by working set, rates by class, launches, transfers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from statistics import median

from crosscast.device import Device
from crosscast.devices.device_files import GUARDED_FLOP, QUANTITIES
from crosscast.errors import DeviceFault
from crosscast.measure import host_state
from crosscast.measure.microbenchmarks import CHAINS, GUARDED, Backend
from crosscast.units import format_bytes

SECONDS = 10
"""Approximate duration."""

_LEAST_SET = 1 << 14
_TIMES_LAST_CACHE = 4
_MOST_OF_MEMORY = 8
_POINT_S, _LAST_POINT_S, _RATE_S = 0.06, 0.3, 0.3
_PASS_S = 0.2  # Of each of two passes, as other programs disturb a machine for seconds
_RUN_S = 0.003
_LAUNCHES = 200
_TRANSFER_BYTES = 1 << 26
_LEAST_RUNS = 3
_UNSURE = 1.15
_THROTTLED = 0.85
_CACHED = 1.5  # Least rate of sets in a cache, over that of main memory
_BEYOND = 8  # Least size of sets in main memory alone, over that of the largest in a cache
_KINDS = {"read": ("read_words", 1), "write": ("write_words", 1), "copy": ("copy_words", 2)}
_RATES = {  # Operations of one step in one lane of a chain
    "fp16": ("fp16_flop_per_s", 2),
    "fp32": ("fp32_flop_per_s", 2),
    "fp64": ("fp64_flop_per_s", 2),
    "int32": ("int32_op_per_s", 2),
    "int32_add": ("int32_add_op_per_s", 2),
    "int32_div": ("int32_div_op_per_s", 1),
    "int64_div": ("int64_div_op_per_s", 1),
    "transcendental": ("transcendental_op_per_s", 1),
}


@dataclass(frozen=True)
class Value:
    """Best and median of several runs; of launches, whose best are rare, median and third quartile."""

    best: float
    middle: float
    runs: int
    of_launches: bool = False

    @property
    def spread(self) -> float:
        """Ratio of the two, at least 1."""
        high, low = max(self.best, self.middle), min(self.best, self.middle)
        return high / low if low else float("inf")

    def __str__(self) -> str:
        if self.of_launches:
            return f"median of {self.runs} runs, of which a quarter took {100 * (self.spread - 1):.0f} % more"
        return f"best of {self.runs} runs, the middle one {100 * (self.spread - 1):.0f} % worse"


@dataclass(frozen=True)
class Microbenchmarks:
    """Results on a device."""

    id: str
    name: str
    type: str
    values: dict[str, Value]  # By `crosscast.devices.device_files.QUANTITIES`
    working_sets: dict[str, list[float]]  # Bytes, and bytes/s of read, write and copy
    seconds: float
    doubts: tuple[str, ...]  # Sentences on possible disturbances
    # By column of the table of devices: known without measuring, or results in place of a data sheet's
    numbers: dict[str, float] = field(default_factory=dict)
    vendor: str = ""
    series: str = ""

    def device(self, key: str) -> Device:
        """Return the device with these results, under a key."""
        measured = {name: value.best for name, value in self.values.items()}
        about = (self.name, self.vendor, self.type, self.series)
        return Device(key, *about, numbers=self.numbers, measured=measured)

    def unsure(self) -> list[str]:
        """Return the quantities with a large spread."""
        return [name for name, value in self.values.items() if value.spread > _UNSURE]


def measure(backend: Backend, report: Callable[[str], None] = lambda text: None) -> Microbenchmarks:
    """Run all microbenchmarks."""
    start, values = time.perf_counter(), dict[str, Value]()
    doubts = list(host_state.doubts())
    if host_state.on_battery():
        doubts.append("this machine runs on its battery, and may hold its clocks down")
    clock = host_state.clock_hz()
    report("rates")
    values |= _rates(backend)
    lanes, items = backend.lanes, backend.items
    if "local_words" in lanes:
        values["local_bytes_per_s"] = _chains(backend, "local_words", 3 * 4 * items, _RATE_S)
    if "chain" in lanes:
        values["chain_flop_per_s"] = _chains(backend, "chain", 2 * lanes["chain"] * items)
    if GUARDED[0] in lanes:
        one, several = GUARDED
        values["guarded_item_s"] = _time_of(_chains(backend, one, lanes[one]), backend.units)
        values["guarded_flop_per_s"] = _chains(backend, several, GUARDED_FLOP * lanes[several])
        values["barrier_flop_per_s"] = _chains(backend, "fenced", GUARDED_FLOP * lanes["fenced"])
    if backend.groups(1) is not None:
        rate = _rate(lambda n: backend.groups(n) or 0.0, 1.0, _RATE_S / 2)
        values["group_s"] = _time_of(rate, backend.units)
    values["atomic_op_per_s"] = _chains(backend, "atomics", items)
    report("bandwidth by working set")
    *sizes, largest = _sizes(backend)
    # The largest first: its array serves all others, and its rate tells which of these a cache holds.
    memory = values["read_bytes_per_s"] = _bytes(backend, "read", largest, _LAST_POINT_S)
    reads, held = dict[float, Value](), 0.0
    for nbytes in sizes:
        reads[nbytes] = _bytes(backend, "read", nbytes, _POINT_S)
        if reads[nbytes].best >= _CACHED * memory.best:
            held = nbytes
        elif 0 < held <= nbytes / _BEYOND:
            break
    else:
        reads[largest] = memory
    sets = {"bytes": list(reads), "read": [point.best for point in reads.values()]}
    for kind in ("write", "copy"):
        times = dict.fromkeys(reads, _POINT_S) | {max(reads): _LAST_POINT_S}
        points = [_bytes(backend, kind, nbytes, seconds) for nbytes, seconds in times.items()]
        sets[kind] = [point.best for point in points]
        values[f"{kind}_bytes_per_s"] = points[-1]
    # A virtual machine sees the whole cache of its host, of which others use the rest.
    last_cache = held if 0 < held < backend.last_cache_bytes / 2 else backend.last_cache_bytes
    values["cache_bytes_per_s"] = next(iter(reads.values()))
    caches = {"last_cache": last_cache}
    if backend.type == "cpu" and "l2_bytes" in backend.numbers:
        caches["own_cache"] = backend.numbers["l2_bytes"] * backend.units
    for name, cache in caches.items():
        fitting = max((nbytes for nbytes in reads if nbytes <= cache / 2), default=min(reads))
        values[f"{name}_bytes_per_s"] = reads[fitting]
    report("scattered access, launches and transfers")
    count = 1 << (int(largest) // 4).bit_length() - 1
    values["scattered_bytes_per_s"] = _rate(
        lambda n: backend.memory("scattered_words", count, n), 4 * backend.items, _RATE_S
    )
    values |= _launches(backend)
    for quantity, to_device in (("to_device_bytes_per_s", True), ("from_device_bytes_per_s", False)):
        copies = [backend.transfer(_TRANSFER_BYTES, to_device=to_device) for _ in range(4)]
        rates = [_TRANSFER_BYTES / seconds for seconds in copies if seconds]
        if rates:
            values[quantity] = Value(max(rates), median(rates), len(rates))
    report("rates once more")
    again = _rates(backend) | {
        f"{kind}_bytes_per_s": _bytes(backend, kind, nbytes, _PASS_S)
        for kind, nbytes in (("read", largest), ("write", max(reads)), ("copy", max(reads)))
    }
    values |= {name: _better(values[name], value) for name, value in again.items()}
    after = host_state.clock_hz()
    if clock and after and after < _THROTTLED * clock:
        clocks = f"from {clock / 1e9:.2f} to {after / 1e9:.2f} GHz"
        doubts.append(f"the clock fell {clocks} meanwhile: the machine is throttled")
    ordered = {name: values[name] for name in QUANTITIES if name in values}
    numbers = {"compute_units": float(backend.units), "memory_bytes": float(backend.memory_bytes)}
    numbers |= backend.numbers | _as_sheet(backend, ordered)
    if last_cache < backend.last_cache_bytes and "l3_bytes" in numbers:
        numbers["l3_bytes"] = last_cache
        holds, has = format_bytes(int(last_cache)), format_bytes(backend.last_cache_bytes)
        doubts.append(f"the last cache holds {holds}, and not the {has} it has: others may share it")
    who, seconds = (backend.id, backend.name, backend.type), time.perf_counter() - start
    maker = (backend.vendor, backend.series)
    return Microbenchmarks(*who, ordered, sets, seconds, tuple(doubts), numbers, *maker)


_OF_SHEET = {
    "peak_flop_per_s": ("fp32_flop_per_s",),
    "peak_fp64_flop_per_s": ("fp64_flop_per_s",),
    "peak_fp16_flop_per_s": ("fp16_flop_per_s",),
    "bandwidth_bytes_per_s": ("read_bytes_per_s", "write_bytes_per_s", "copy_bytes_per_s"),
    "launch_overhead_s": ("round_trip_s",),
}


def sheet_numbers(backend: Backend) -> dict[str, float]:
    """Measure the peak rate, bandwidth and launch overhead alone, by column of the table of devices."""
    *_, largest = _sizes(backend)
    values = {_RATES["fp32"][0]: _operations(backend, "fp32")}
    values |= {f"{kind}_bytes_per_s": _bytes(backend, kind, largest, _LAST_POINT_S) for kind in _KINDS}
    return _as_sheet(backend, values | _launches(backend))


def _as_sheet(backend: Backend, values: dict[str, Value]) -> dict[str, float]:
    """Return the numbers that stand for a data sheet: the highest measured ones."""
    absurd = [name for name, value in values.items() if not 0 < value.best < float("inf")]
    if absurd:
        raise DeviceFault(f"{backend.id}: its times cannot be right: {', '.join(absurd)}")
    candidates = {
        name: [values[quantity].best for quantity in quantities if quantity in values]
        for name, quantities in _OF_SHEET.items()
    }
    return {name: max(rates) for name, rates in candidates.items() if rates}


def _sizes(backend: Backend) -> Iterator[float]:
    most = min(_TIMES_LAST_CACHE * backend.last_cache_bytes, backend.memory_bytes // _MOST_OF_MEMORY)
    size = _LEAST_SET
    while size <= max(most, _LEAST_SET):
        yield float(size)
        size *= 2


def _rates(backend: Backend) -> dict[str, Value]:
    known = {kernel: each for kernel, each in _RATES.items() if kernel in backend.lanes}
    return {quantity: _operations(backend, kernel) for kernel, (quantity, _) in known.items()}


def _better(one: Value, other: Value) -> Value:
    """Return the better of two passes, as of all their runs."""
    return replace(max(one, other, key=lambda value: value.best), runs=one.runs + other.runs)


def _operations(backend: Backend, kernel: str) -> Value:
    work = CHAINS * _RATES[kernel][1] * backend.lanes[kernel] * backend.items
    return _chains(backend, kernel, work, _PASS_S)


def _chains(backend: Backend, kernel: str, work: float, seconds: float = 0.0) -> Value:
    return _rate(lambda steps: backend.chains(kernel, steps), work, seconds or _RATE_S / 2)


def _bytes(backend: Backend, kind: str, nbytes: float, seconds: float) -> Value:
    kernel, moved = _KINDS[kind]
    words = max(int(nbytes) // backend.vector_bytes // moved // 4 * 4, 4)
    work = words * moved * backend.vector_bytes
    return _rate(lambda passes: backend.memory(kernel, words, passes), work, seconds)


def _rate(run: Callable[[int], float], work: float, seconds: float) -> Value:
    """Return the rate of runs of enough repetitions to be timed, repeated for some seconds.

    Runs are short, so that some are undisturbed by other programs; the least number of runs holds even if
    one was disturbed for long. Memory may be allocated in the first, which does not count.
    """
    run(1)
    end = time.perf_counter() + seconds
    last = end + _LEAST_RUNS * seconds
    n, rates = 1, list[float]()
    while time.perf_counter() < (end if len(rates) >= _LEAST_RUNS else last) or not rates:
        elapsed = run(n)
        if elapsed < _RUN_S / 4 and n < 1 << 28:
            n = int(n * min(max(_RUN_S / max(elapsed, 1e-7), 2.0), 64.0))
        else:
            rates.append(n * work / max(elapsed, 1e-9))
    return Value(max(rates), median(rates), len(rates))


def _time_of(rate: Value, units: int) -> Value:
    """Return the time of one of `rate` a second on all units, on one unit."""
    return Value(units / rate.best, units / rate.middle, rate.runs)


def _launches(backend: Backend) -> dict[str, Value]:
    backend.launch()
    columns = zip(*(backend.launch() for _ in range(_LAUNCHES)), strict=True)
    values = {}
    for quantity, column in zip(("launch_s", "empty_s", "round_trip_s"), columns, strict=True):
        if known := sorted(seconds for seconds in column if seconds is not None):
            values[quantity] = Value(median(known), known[len(known) * 3 // 4], len(known), of_launches=True)
    return values
