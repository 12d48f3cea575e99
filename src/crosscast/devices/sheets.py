"""Features of devices for forecasts: data sheet, measurements, and limits of the architecture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.architectures import before_rdna, double_share, unit_of
from crosscast.devices.catalogue import by_measurement, expected
from crosscast.devices.device_files import GUARDED_FLOP
from crosscast.devices.launch_work import division_instructions

_BANDWIDTH = "bandwidth_bytes_per_s"
_OWN_CACHE = 2.0**19  # Bytes of the second cache of a CPU's core, if its sheet lacks it
_OWN_CACHES = (2.0**17, 2.0**22)  # Its limits: some sheets have the sum over cores
_LOCKED_ATOMICS, _LOCKED_CLOCKS = ("Fermi", "Kepler"), 4.0
"""Take a lock for an atomic of local memory (NVIDIA, Maxwell Tuning Guide)."""
_WORD_BYTES = 4.0  # Of the microbenchmark of scattered reads
# Rates of half precision over single precision. Other CPUs convert before and after each operation.
_CPU_HALF = dict.fromkeys(
    (
        *("Sapphire Rapids", "Emerald Rapids", "Granite Rapids"),
        *("Neoverse N1", "Neoverse V1", "Neoverse V2"),
    ),
    2.0,
)
_CONVERTED_HALF = 0.25
# Of integers by variables, by quantity: usual clocks of a thread of a CPU that shares the core's divider with
# another (Fog, Instruction tables)
_DIVISIONS = {"int32_div_op_per_s": 12.0, "int64_div_op_per_s": 24.0}
# Bytes that a CPU's core reads from its second and the last cache in a clock; time of a line of memory
_CACHE_RATES, _SCATTERED_LINE_S = {"own_cache": 32.0, "last_cache": 8.0}, 20e-9
_GROUP_CLOCKS, _START_S = {"gpu": 100.0, "cpu": 1000.0}, {"gpu": 1.7e-6, "cpu": 5e-6}
_LAUNCH_S = {"gpu": 5.5e-6, "cpu": 15e-6}
# From the call to the start, in collections of measured devices; deviation of its logarithm between results
# of one device in several systems (nine devices of clpeak)
_CALL_S, _SPREAD_OF_LAUNCHES = 6e-6, 0.7

DEFAULTS = {  # By type, for devices whose sheets lack the number
    "gpu": {"compute_units": 32.0, "clock_hz": 1.4e9, "bandwidth_bytes_per_s": 300e9},
    "cpu": {"compute_units": 8.0, "clock_hz": 3e9, "bandwidth_bytes_per_s": 40e9},
}


@dataclass(frozen=True, eq=False)
class Sheets:
    """The features of ``d`` devices for the terms of a forecast; arrays of shape ``(1, d)``.

    Where a rate was not measured, it is the usual one unless stated otherwise.
    """

    gpu: Flags
    wide: Flags  # Whether a sub-group has 64 work-items
    units: Reals  # Compute units; threads of a CPU
    clock: Reals  # Hz
    lanes: Reals  # Single-precision operations per clock of a unit
    special: Reals  # Operations in the time that a unit for transcendental functions takes for one
    conversion: Reals  # Operations of a conversion from or to double precision
    fp64: Reals
    bandwidth: Reals  # Bytes/s
    l1: Reals  # Bytes of a unit
    integers: Reals  # Rate of sums and logic of integers over single precision
    shift: Reals  # Sums in the time of a shift
    joined: Reals  # And of a sum, or logic, whose result is taken by another
    product: Reals  # Operations of a product of integers
    short_product: Reals  # And of one of 24 bits at most
    issue: Reals  # Instructions that a unit issues over its lanes of single precision
    schedulers: Reals  # Of a GPU's unit, each with its share of the lanes
    fp16: Reals  # Rate of packed half precision over single precision
    step: Reals  # Clocks from an addition of a GPU to one that needs its result
    l1_load: Reals  # Clocks of a GPU from a load to its value, from the first cache
    l2_load: Reals  # And from the second
    last_load_s: Reals  # Seconds beyond that from a cache between the second and memory
    memory_load_s: Reals  # And from memory
    lookups: Reals  # Lines of 128 bytes that a GPU's first cache looks up in a clock
    l1_clock: Reals  # Bytes that it gives in one
    texels: Reals  # Of images, that a GPU's unit reads in a clock
    next_group_s: Reals  # In which a GPU begins a work-group
    l2: Reals  # Bytes of a GPU's second cache
    own_cache: Reals  # Bytes of the second cache of a CPU's core
    last_cache: Reals  # Bytes shared by all units, or of a CPU's last cache
    sub_groups: Reals  # Limits of a unit
    groups: Reals
    registers: Reals
    local_bytes: Reals
    l2_clock: Reals  # Bytes per clock from the second cache to a unit
    caches_global: Reals  # 1 if a unit's first cache holds global memory, else 0
    local_atomic: Reals  # Clocks of a GPU's unit for an atomic of local memory
    channels: Reals  # 1 if blocks of addresses take memory channels in turn, without a hash, else 0
    spills: Flags  # Whether its compiler keeps the order of unrolled code despite register pressure
    # Steps per clock of chains of multiply-adds, one a work-item, of a unit; NaN if not measured
    chain: Reals
    guarded: Reals  # Rate of code behind a condition over that of the best code; NaN if not measured
    guarded_item: Reals  # Clocks of a work-item behind a condition that does little, on a unit, if measured
    fenced: Reals  # Lanes that straight code behind a barrier keeps busy at most; infinite if not measured
    division: Reals  # Instructions of a GPU, or clocks of a CPU's thread, to divide integers by a variable
    long_division: Reals  # Of 64 bits
    exp: Reals  # Clocks of a CPU's thread for an exponential function; 0 if not measured
    group_s: Reals  # Time of an empty work-group on a unit
    start_s: Reals  # Of an empty kernel on the device
    launch_s: Reals  # From the call of an empty launch to its end on the host, without that
    own_cache_rate: Reals  # Bytes that a CPU's unit reads from its second cache in a clock
    last_cache_rate: Reals  # And from the last one
    line_s: Reals  # Time of a line from anywhere in main memory, of all threads of a CPU
    scattered: Flags  # Whether that was measured
    # Bytes/s of reads and writes of main memory; the time includes the lines that a CPU reads before it
    # writes to them
    reading: Reals
    writing: Reals
    streamed: Flags  # Whether these were measured

    def take(self, rows: object) -> Sheets:
        """Select devices by position."""
        return Sheets(*(getattr(self, field.name)[:, rows] for field in fields(self)))

    @cached_property
    def side(self) -> Integers:
        """Index in `SUB_GROUPS` of the work-items of a sub-group, ``(d,)``."""
        return np.asarray(self.wide[0], dtype=np.int64)

    @cached_property
    def width(self) -> Reals:
        """Work-items of a sub-group."""
        return np.where(self.wide, 64.0, 32.0)

    @cached_property
    def rate(self) -> Reals:
        """Clocks of all units in a second."""
        return self.units * self.clock

    @cached_property
    def has_code_rates(self) -> bool:
        """Whether rates of loops, of code behind conditions or behind barriers were measured on any."""
        return bool((np.isfinite(self.chain) | np.isfinite(self.guarded) | np.isfinite(self.fenced)).any())

    @cached_property
    def by_kind(self) -> Mapping[str, tuple[Integers, Sheets]]:
        """Positions and features of the GPUs, and of all others."""
        kinds = {"gpu": np.flatnonzero(self.gpu), "cpu": np.flatnonzero(~self.gpu)}
        return {kind: (columns, self.take(columns)) for kind, columns in kinds.items() if len(columns)}


def sheets_of(devices: Sequence[Device]) -> Sheets:
    """Return the features of devices; numbers missing from a sheet are its architecture's, or defaults."""
    return _sheets(tuple(devices))


@lru_cache(64)
def _sheets(devices: tuple[Device, ...]) -> Sheets:
    columns = [np.array([column]) for column in zip(*map(_of, devices), strict=True)]
    for column in columns:
        column.flags.writeable = False  # Others share it
    return Sheets(*columns)


@lru_cache(1024)
def _of(device: Device) -> tuple[float | bool, ...]:
    """Return the features of a sheet, in the order of the fields of `Sheets`."""
    gpu = device.type == "gpu"
    numbers = {**DEFAULTS[device.kind], **{k: v for k, v in device.numbers.items() if v}}
    measured = by_measurement(device, _BANDWIDTH)
    if measured and not device.numbers.get(_BANDWIDTH):
        numbers[_BANDWIDTH] = measured.value
    unit, known = unit_of(device), device.measured
    units, clock = numbers["compute_units"] / unit.engines, numbers["clock_hz"]
    cores = numbers.get("cores", units * 64 if gpu else units)
    lanes = numbers.get("peak_flop_per_s", 2 * cores * clock * (1 if gpu else 8)) / (2 * units * clock)
    if gpu:
        # Dual issue, which depends on the compiler, counts once.
        lanes = min(lanes, cores / units)
    double = numbers.get("peak_fp64_flop_per_s")
    fp64 = double / (2 * units * clock * lanes) if gpu and double else double_share(device)
    last = numbers.get("l3_bytes") or numbers.get("l2_bytes") or unit.l2_bytes
    special, bandwidth = lanes / unit.special if gpu else 1.0, numbers[_BANDWIDTH]
    product = _product(device)
    start = known.get("empty_s", _START_S[device.kind])
    rate, item = _guarded(device, units)
    reading, writing = streams(device)
    scattered, streamed = "scattered_bytes_per_s" in known, math.isfinite(writing)
    return (
        gpu,
        unit.width == 64,
        units,
        clock,
        lanes,
        special,
        max(1.0 / fp64, special),
        fp64,
        bandwidth,
        numbers.get("l1_bytes") or 32768.0,
        unit.int32,
        unit.shift,
        unit.joined,
        product,
        1.0 if gpu and device.vendor == "AMD" else product,
        unit.issue,
        float(unit.schedulers),
        unit.fp16 if gpu else _CPU_HALF.get(device.series, _CONVERTED_HALF),
        unit.step,
        unit.l1_load,
        unit.l2_load,
        unit.last_load_ns * 1e-9,
        unit.memory_load_ns * 1e-9,
        float(unit.lookups),
        unit.l1_clock,
        unit.texels,
        unit.group_clocks / clock,
        float(numbers.get("l2_bytes") or unit.l2_bytes),
        float(np.clip(numbers.get("l2_bytes") or _OWN_CACHE, *_OWN_CACHES)),
        last if gpu or "l3_bytes" in numbers else last * units / 4,
        float(unit.sub_groups),
        float(unit.groups),
        float(unit.registers),
        float(unit.local_bytes),
        unit.l2_clock,
        float(unit.caches_global),
        _LOCKED_CLOCKS if device.series in _LOCKED_ATOMICS else 1.0,
        float(gpu and before_rdna(device.series)),
        gpu and device.vendor == "AMD",
        known.get("chain_flop_per_s", math.nan) / (2 * units * clock),
        rate,
        0.0 if math.isnan(item) else item * clock,
        max(known.get("barrier_flop_per_s", math.inf) / (2 * units * clock), 1.0),
        *_divisions(device, units * clock, product),
        units * clock / known.get("transcendental_op_per_s", math.inf),
        known.get("group_s", _GROUP_CLOCKS[device.kind] / clock),
        start,
        max(known["round_trip_s"] - start, 0.0) if "round_trip_s" in known else _usual_launch(device),
        *(
            known[f"{name}_bytes_per_s"] / (units * clock) if f"{name}_bytes_per_s" in known else usual
            for name, usual in _CACHE_RATES.items()
        ),
        _WORD_BYTES / known["scattered_bytes_per_s"] if scattered else _SCATTERED_LINE_S / units,
        scattered,
        reading if streamed else bandwidth,
        # A CPU on paper moves a line twice to write to it.
        writing if streamed else bandwidth / (1.0 if gpu else 2.0),
        streamed,
    )


def _product(device: Device) -> float:
    """Return the operations of a product of integers, from its rate on a device or its siblings."""
    share = expected(device, "int32") if device.type == "gpu" else None
    return 1.0 / min(max(share.value if share else 0.5, 0.15), 1.0)


def _divisions(device: Device, rate: float, product: float) -> list[float]:
    """Return the instructions of a GPU, or clocks of a CPU's thread, for divisions of 32 and of 64 bits."""
    if device.type == "gpu":
        return [
            division_instructions(*each, product_cost=product) for each in ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
        ]
    measured = device.measured
    return [rate / measured[name] if name in measured else usual for name, usual in _DIVISIONS.items()]


def _usual_launch(device: Device) -> float:
    """Return the seconds of a launch on the host; drawn to those of all GPUs as far as systems differ."""
    known = expected(device, "launch_s") if device.type == "gpu" else None
    if known is None:
        return _LAUNCH_S[device.kind]
    weight = 0.5 / (1.0 + max(known.deviation, _SPREAD_OF_LAUNCHES) ** 2)
    return _LAUNCH_S[device.kind] * math.pow(known.value / _CALL_S, weight)


def _guarded(device: Device, units: float) -> tuple[float, float]:
    """Rate of code behind a condition over that of the best code, and seconds of a work-item with little.

    The condition costs as much as several operations: the rate is that of the further ones.
    """
    rate, item = (device.measured.get(name, np.nan) for name in ("guarded_flop_per_s", "guarded_item_s"))
    best = device.measured.get("fp32_flop_per_s", np.nan)
    if np.isfinite(item) and item < GUARDED_FLOP * units / rate:
        rate = (GUARDED_FLOP - 2) / (GUARDED_FLOP / rate - item / units)
    return rate / best, item


def streams(device: Device) -> tuple[float, float]:
    """Return rates of reading and writing main memory, by those of reading and copying; NaN if unknown."""
    read, copy = (device.measured.get(f"{kind}_bytes_per_s", np.nan) for kind in ("read", "copy"))
    if not (read > 0 and copy > 0):
        return np.nan, np.nan
    # A copy counts each byte twice, once read and once written. Rates of short runs scatter.
    return read, 1.0 / max(2.0 / copy - 1.0 / read, 0.5 / copy)
