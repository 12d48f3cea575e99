"""Features of devices for forecasts: data sheet, measurements, and limits of the architecture."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.catalogue import by_measurement, expected
from crosscast.devices.device_files import GUARDED_FLOP
from crosscast.devices.launch_work import division_instructions


class Unit(NamedTuple):
    """A compute unit of an architecture; `unit_sources` has the sources of its numbers."""

    width: int  # Work-items of a sub-group
    sub_groups: int  # Most of a unit
    groups: int  # Most work-groups of a unit
    registers: int  # Of 32 bits
    local_bytes: int
    fp64: float  # Rate of double precision over that of single precision
    l2_bytes: float  # Second cache of a device, if its sheet lacks it
    l2_clock: float = 32.0  # Bytes per clock from it to a unit
    caches_global: bool = True  # Whether a unit's first cache holds global memory
    special: int = 16  # Transcendental functions, roots and reciprocals per clock
    int32: float = 1.0  # Rate of sums and logic of integers over additions of single precision
    shift: float = 1.0  # Sums in the time of a shift
    joined: float = 0.0  # And of a sum, or logic, whose result is taken by another: with three operands none
    fp16: float = 1.0  # Rate of additions and products of packed half precision over single precision
    step: float = 4.0  # Clocks from an addition to one that needs its result
    l1_load: float = 33.0  # Clocks from a load to its value, from the first cache
    l2_load: float = 210.0  # And from the second
    lookups: int = 4  # Lines of 128 bytes that the first cache looks up in a clock
    group_clocks: float = 1.25  # In which a device begins a work-group
    l1_clock: float = 128.0  # Bytes per clock from the first cache
    texels: float = 4.0  # Of images, that it reads in a clock
    issue: float = 1.0  # Instructions issued over lanes of single precision: others have lanes of their own
    engines: int = 1  # Compute units of OpenCL and of data sheets in one: vector engines of a Xe core


_UNITS = {
    "Fermi": Unit(32, 48, 8, 32768, 49152, 1 / 8, 786432, special=4, step=22.0, lookups=1, joined=1.0),
    "Kepler": Unit(
        *(32, 64, 16, 65536, 49152, 1 / 3, 1572864, 64.0, False, 32),
        int32=160 / 192,
        step=9.0,
        lookups=1,
        texels=16.0,
        shift=2.5,
        joined=1.0,
    ),
    "Maxwell": Unit(
        32, 64, 32, 65536, 98304, 1 / 32, 2097152, 32.0, False, 32, step=6.0, lookups=1, texels=8.0, shift=2.0
    ),
    "Pascal": Unit(
        *(32, 64, 32, 65536, 98304, 1 / 32, 2097152, 32.0, False, 32),
        fp16=1 / 64,
        step=6.0,
        lookups=1,
        texels=8.0,
        shift=2.0,
    ),
    "Volta": Unit(32, 64, 32, 65536, 98304, 1 / 2, 6291456, 29.0, fp16=2.0, issue=2.0),
    "Turing": Unit(32, 32, 16, 65536, 65536, 1 / 32, 4194304, fp16=2.0, l1_clock=64.0, issue=2.0),
    "Ampere": Unit(32, 48, 16, 65536, 102400, 1 / 64, 4194304, 28.0, int32=0.5, l1_clock=64.0),
    "Ada Lovelace": Unit(32, 48, 24, 65536, 102400, 1 / 64, 50331648, 19.0, int32=0.5, l1_clock=64.0),
    "Hopper": Unit(32, 64, 32, 65536, 233472, 1 / 2, 52428800, 52.0, fp16=2.0, int32=0.5),
    "Blackwell": Unit(32, 48, 24, 65536, 102400, 1 / 64, 67108864, 19.0, l1_clock=64.0, shift=2.0),
    "TeraScale 2": Unit(64, 24, 8, 65536, 32768, 1 / 5, 524288, 64.0, step=8.0, joined=1.0),
    "TeraScale 3": Unit(64, 24, 8, 65536, 32768, 1 / 4, 524288, 64.0, step=8.0, joined=1.0),
    "GCN 1": Unit(64, 40, 40, 65536, 65536, 1 / 16, 262144, 64.0, joined=1.0),
    "GCN 2": Unit(64, 40, 40, 65536, 65536, 1 / 16, 262144, 64.0, joined=1.0),
    "GCN 3": Unit(64, 40, 40, 65536, 65536, 1 / 16, 524288, 64.0, joined=1.0),
    "Vega": Unit(64, 40, 40, 65536, 65536, 1 / 16, 4194304, 64.0, fp16=2.0, joined=0.4),
    "Vega 20": Unit(64, 40, 40, 65536, 65536, 1 / 2, 4194304, 64.0, fp16=2.0, joined=0.4),
    "RDNA": Unit(32, 40, 32, 65536, 65536, 1 / 16, 4194304, 30.0, fp16=2.0, step=5.0),
    "RDNA 3.5": Unit(32, 32, 32, 65536, 65536, 1 / 16, 2097152, 30.0, fp16=2.0, step=5.0),
    "Tahiti": Unit(64, 40, 40, 65536, 65536, 1 / 4, 786432, 64.0, joined=1.0),
    "Hawaii": Unit(64, 40, 40, 65536, 65536, 1 / 8, 1048576, 64.0, joined=1.0),
    "Kaveri": Unit(64, 40, 40, 65536, 65536, 1 / 16, 524288, 64.0, joined=1.0),
    "Fiji": Unit(64, 40, 40, 65536, 65536, 1 / 16, 2097152, 64.0, joined=1.0),
    "Polaris": Unit(64, 40, 40, 65536, 65536, 1 / 16, 2097152, 64.0, joined=1.0),
    "CDNA": Unit(64, 40, 40, 131072, 65536, 1 / 2, 8388608, 37.0, fp16=2.0, group_clocks=2.0, joined=0.4),
    "CDNA 2": Unit(64, 32, 32, 131072, 65536, 1.0, 8388608, 37.0, fp16=2.0, group_clocks=2.0, joined=0.4),
    "CDNA 3": Unit(64, 32, 32, 131072, 65536, 1.0, 33554432, 37.0, fp16=2.0, group_clocks=0.25, joined=0.4),
    "CDNA 4": Unit(64, 32, 32, 131072, 163840, 1.0, 33554432, 37.0, fp16=2.0, group_clocks=0.25, joined=0.4),
    "RDNA 2": Unit(32, 32, 32, 65536, 65536, 1 / 16, 4194304, 30.0, fp16=2.0, step=5.0),
    "RDNA 3": Unit(32, 32, 32, 98304, 65536, 1 / 16, 6291456, 30.0, fp16=2.0, step=5.0),
    "RDNA 4": Unit(32, 32, 32, 98304, 65536, 1 / 16, 8388608, 30.0, fp16=2.0, step=5.0),
    # A thread of a vector engine runs 16 work-items.
    "Gen7": Unit(32, 32, 16, 65536, 65536, 1 / 4, 262144, 64.0, fp16=1.0, engines=8, joined=1.0),
    "Gen7.5": Unit(32, 35, 16, 71680, 65536, 1 / 4, 262144, 64.0, fp16=1.0, engines=10, joined=1.0),
    "Gen9": Unit(32, 28, 28, 57344, 65536, 1 / 4, 524288, 64.0, fp16=2.0, engines=8, joined=1.0),
    "Gen9.5": Unit(32, 28, 28, 57344, 65536, 1 / 4, 524288, 64.0, fp16=2.0, engines=8, joined=1.0),
    "Xe-HPG": Unit(32, 64, 64, 131072, 131072, 1 / 64, 16777216, 64.0, fp16=2.0, texels=8.0, engines=16),
    "Xe2-HPG": Unit(32, 32, 32, 131072, 131072, 1 / 8, 18874368, 64.0, fp16=2.0, texels=8.0, engines=8),
    "Xe-HPC": Unit(32, 32, 32, 131072, 131072, 1.0, 213909504, 64.0, l1_clock=512.0, engines=8),
}
_LOCKED_ATOMICS, _LOCKED_CLOCKS = ("Fermi", "Kepler"), 4.0
"""Take a lock for an atomic of local memory (NVIDIA, Maxwell Tuning Guide)."""

_LOADS = {  # Of the first and of the second cache
    "Fermi": (80.0, 270.0),
    "Kepler": (35.0, 200.0),
    "Maxwell": (82.0, 207.0),
    "Pascal": (82.0, 225.0),
    "Volta": (28.0, 214.0),
    "Turing": (32.0, 188.0),
    "Ampere": (33.0, 210.0),
    "Ada Lovelace": (36.0, 276.0),
    "Hopper": (34.0, 265.0),
    "Blackwell": (36.0, 276.0),
}
_LOADS_OF_AMD = {32: (80.0, 210.0), 64: (125.0, 240.0)}  # By width of sub-groups


def _with_loads(series: str, unit: Unit) -> Unit:
    first, second = _LOADS.get(series) or _LOADS_OF_AMD[unit.width]
    return unit._replace(l1_load=first, l2_load=second)


_UNITS = {series: _with_loads(series, unit) for series, unit in _UNITS.items()}
_CHIPS = {
    "a(?:100|30)": _UNITS["Ampere"]._replace(
        sub_groups=64,
        groups=32,
        local_bytes=167936,
        fp64=1 / 2,
        int32=1.0,
        fp16=4.0,
        l2_clock=47.0,
        l1_clock=128.0,
        issue=2.0,
    ),
    "p100": _UNITS["Pascal"]._replace(
        texels=4.0, local_bytes=65536, fp64=1 / 2, caches_global=True, fp16=2.0, special=16
    ),
    "b200": _UNITS["Hopper"]._replace(group_clocks=0.625),
    "b300": _UNITS["Hopper"]._replace(group_clocks=0.625, fp64=1 / 64),
}
"""Chips for computing that differ from others of their architecture, by a part of a device's key or name."""

_GUIDES = {
    "capabilities": "NVIDIA, CUDA C++ Programming Guide, technical specifications by compute capability "
    "(https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#features-and-technical-specifications)",
    "fermi": "NVIDIA, CUDA Warps and Occupancy, 2011 "
    "(https://developer.download.nvidia.com/CUDA/training/cuda_webinars_WarpsAndOccupancy.pdf)",
    "kepler": "NVIDIA, Kepler Tuning Guide: L1 is for local memory alone "
    "(https://docs.nvidia.com/cuda/archive/11.4.1/kepler-tuning-guide/index.html)",
    "maxwell": "NVIDIA, Maxwell Tuning Guide: global loads go to L2 unless a program opts out of that "
    "(https://docs.nvidia.com/cuda/pdf/Maxwell_Tuning_Guide.pdf)",
    "pascal": "NVIDIA, Pascal Tuning Guide: the same of GP104, and not of GP100 "
    "(https://docs.nvidia.com/cuda/pascal-tuning-guide/index.html)",
    "app": "AMD APP SDK, OpenCL Optimization Guide, 2015: GCN, Evergreen and Northern Islands "
    "(https://usermanual.wiki/Pdf/AMDOpenCLProgrammingOptimizationGuide.1224332988/help)",
    "gcc": "GCC, libgomp manual, AMD Radeon: 40 wavefronts and work-groups of a compute unit "
    "(https://gcc.gnu.org/onlinedocs/gcc-13.3.0/libgomp/AMD-Radeon.html)",
    "rocm": "AMD ROCm documentation, GPU specifications: wavefront size, LDS, VGPR file "
    "(https://rocm.docs.amd.com/en/latest/reference/gpu-specs.html)",
    "llvm": "LLVM, AMDGPU backend: wavefronts of a SIMD, SIMDs of a compute unit "
    "(https://llvm.org/docs/CommandGuide/llvm-calc-occupancy.html)",
    "throughput": "NVIDIA, CUDA C++ Programming Guide: throughput of arithmetic instructions "
    "(https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions)",
    "sass": "NVIDIA, CUDA Binary Utilities: IADD3 and LOP3 from Maxwell on "
    "(https://docs.nvidia.com/cuda/archive/11.8.0/cuda-binary-utilities/index.html#instruction-set-ref)",
    "gfx": "LLVM, AMDGPU instructions: v_add3_u32 and v_and_or_b32 from GFX9, v_xor3_b32 from GFX10 "
    "(https://llvm.org/docs/AMDGPU/AMDGPUAsmGFX10.html)",
    "bfn": "Intel, visa: ADD3 and BFN from XeHP on "
    "(https://github.com/intel/intel-graphics-compiler/tree/master/documentation/visa/instructions)",
    "rdna": "AMD, RDNA Architecture: a quarter of the rate "
    "(https://www.amd.com/system/files/documents/rdna-whitepaper.pdf)",
    "sheets": "data sheets of the catalogue's devices of that architecture",
    "carrizo": "the catalogue's chip of GCN 3 with as many compute units",
    "latencies": "Y. Arafa et al., Instructions' Latencies Characterization for NVIDIA GPGPUs, 2019, of "
    "Kepler to Turing; later ones alike (https://arxiv.org/abs/1905.08778)",
    "schedules": "LLVM, AMDGPU backend, scheduling models of GFX10 and GFX11 "
    "(https://github.com/llvm/llvm-project/blob/main/llvm/lib/Target/AMDGPU/SISchedule.td)",
    "caches": "Z. Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018, "
    "and of Turing T4, 2019 (https://arxiv.org/abs/1804.06826, https://arxiv.org/abs/1903.07486)",
    "measured": "te42kyfo, gpu-benches: measured on V100, A100, A40, L40, H100, H200, MI210 and RX 6900 XT; "
    "others as these; the dies of CDNA 3 and 4 and of B200 begin groups side by side (https://github.com/te42kyfo/gpu-benches)",
    "guide": "NVIDIA, CUDA C Programming Guide 4.2, 2012: 22 clocks of compute capability 2.x "
    "(https://docs.nvidia.com/cuda/archive/)",
    "occupancy": "Intel, GPU Occupancy Calculator "
    "(https://github.com/oneapi-src/oneAPI-samples/tree/master/Tools/GPU-Occupancy-Calculator)",
    "xe": "Intel, oneAPI GPU Optimization Guide, Xe GPU Architecture "
    "(https://www.intel.com/content/www/us/en/docs/oneapi/optimization-guide-gpu/2025-2/intel-xe-gpu-architecture.html)",
    "fp64": "chosen: it has none, and emulates it (https://github.com/intel/torch-xpu-ops/issues/1742)",
    "texture": "data sheets: fill rates over clock and units",
    "chosen": "chosen: with it times of BabelStream come out, and no maker says it",
    "cuda": "NVIDIA, Nsight Visual Studio Edition: global loads are cached in L1 by default "
    "(https://docs.nvidia.com/nsight-visual-studio-edition/5.3/Content/Analysis/Report/CudaExperiments/"
    "KernelLevel/MemoryStatisticsGlobal.htm)",
}
_BANDWIDTH = "bandwidth_bytes_per_s"
_OWN_CACHE = 2.0**19  # Bytes of the second cache of a CPU's core, if its sheet lacks it
_OWN_CACHES = (2.0**17, 2.0**22)  # Its limits: some sheets have the sum over cores
_WORD_BYTES = 4.0  # Of the microbenchmark of scattered reads
_LIMITS = ("width", "sub_groups", "groups", "registers", "local_bytes")
_GCN = frozenset(
    ("GCN 1", "GCN 2", "GCN 3", "Vega", "Vega 20", "Tahiti", "Hawaii", "Kaveri", "Fiji", "Polaris", "CDNA")
)
NO_DOUBLES = frozenset(("Xe-HPG", "Apple M1", "Apple M2", "Apple M3"))
"""Architectures without double precision, which runtimes emulate or refuse."""

_INTEL = frozenset(("Gen7", "Gen7.5", "Gen9", "Gen9.5", "Xe-HPG", "Xe2-HPG", "Xe-HPC"))
_UNMEASURED_L2 = frozenset(("Fermi", "Kepler", "Maxwell", "Pascal", "Turing"))
"""Architectures of NVIDIA of which no rate of the second cache was measured."""


def unit_sources(series: str) -> dict[str, str]:
    """Return the source of each number of an architecture's compute unit, by field of `Unit`."""
    if series in _LOADS:  # Of NVIDIA
        limits = "fermi" if series == "Fermi" else "capabilities"
        of = dict.fromkeys(_LIMITS, limits)
        of["caches_global"] = series.lower() if series in ("Kepler", "Maxwell", "Pascal") else "cuda"
        of |= dict.fromkeys(("special", "int32", "shift", "fp16"), "throughput") | {"joined": "sass"}
        of |= {"step": "guide" if series == "Fermi" else "latencies", "issue": "caches"}
    elif series in _INTEL:
        of = dict.fromkeys(("sub_groups", "groups", "registers", "local_bytes", "engines"), "occupancy")
        of |= dict.fromkeys(
            ("width", "caches_global", "special", "step", "int32", "shift", "l1_clock", "l2_clock"), "xe"
        )
        of["joined"] = "bfn"
    elif series.startswith("TeraScale"):
        of = dict.fromkeys((*_LIMITS, "caches_global"), "app")
    elif series in _GCN:
        of = dict.fromkeys((*_LIMITS, "caches_global"), "app")
        of |= dict.fromkeys(("sub_groups", "groups"), "gcc")
        of |= {"registers": "rocm", "local_bytes": "rocm"} if series == "CDNA" else {}
    else:
        of = dict.fromkeys((*_LIMITS, "caches_global"), "rocm")
        of |= dict.fromkeys(("sub_groups", "groups"), "llvm")
    gcn = _before_rdna(series) or series.startswith("CDNA")
    rates = dict.fromkeys(("special", "int32", "shift"), "app" if gcn else "rdna")
    of = rates | {"joined": "gfx"} | {"step": "app" if gcn else "schedules", "fp16": "sheets"} | of
    of |= {"texels": "texture", "engines": of.get("engines", "sheets"), "issue": of.get("issue", of["width"])}
    caches = ("l1_load", "l2_load", "l1_clock", "l2_clock", "lookups", "group_clocks")
    of = dict.fromkeys(caches, "measured") | of
    if series in ("Kepler", "Maxwell", "Pascal", "Turing"):
        of |= dict.fromkeys(("l1_load", "l2_load", "l1_clock"), "caches")
    of |= {"fp64": "sheets", "l2_bytes": "carrizo" if series == "Kaveri" else "sheets"}
    if series in NO_DOUBLES:
        of["fp64"] = "fp64"
    if series in _UNMEASURED_L2 or (_before_rdna(series) and series != "CDNA"):
        of["l2_clock"] = "chosen"
    return {name: _GUIDES[of[name]] for name in Unit._fields}


def _before_rdna(series: str) -> bool:
    """Whether an architecture is one of AMD's before RDNA, or derived from these."""
    return series in _GCN or series.startswith("TeraScale")


_BY_VENDOR = {
    "Nvidia": _UNITS["Ampere"],
    "AMD": _UNITS["RDNA 2"],
    "Intel": Unit(32, 32, 16, 65536, 65536, 1 / 4, 16777216),
}
_OTHER_GPU = _UNITS["Ampere"]
_CPU = Unit(32, 1, 1, 1 << 30, 1 << 30, 0.5, 1048576)
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
    fp16: Reals  # Rate of packed half precision over single precision
    step: Reals  # Clocks from an addition of a GPU to one that needs its result
    l1_load: Reals  # Clocks of a GPU from a load to its value, from the first cache
    l2_load: Reals  # And from the second
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


def known_unit(device: Device) -> Unit | None:
    """Return the compute unit of a device's chip or architecture, if it is known."""
    names = f"{device.key} {device.name.lower()}"
    # Not of rtx-a1000 and quadro-p1000.
    chips = (unit for part, unit in _CHIPS.items() if re.search(rf"(?<![a-z0-9]){part}(?!\d)", names))
    return next(chips, None) or _UNITS.get(device.series)


def _unit_of(device: Device) -> Unit:
    """Return the compute unit of a device's architecture, or its vendor's usual one."""
    if device.type != "gpu":
        return _CPU
    return known_unit(device) or _BY_VENDOR.get(device.vendor, _OTHER_GPU)


def double_share(device: Device) -> float:
    """Return the ratio of double- to single-precision rates of a device's architecture, or as measured."""
    is_known = device.type != "gpu" or known_unit(device) is not None
    return (None if is_known else _measured_double(device)) or _unit_of(device).fp64


def half_share(device: Device) -> float:
    """Return the ratio of packed half- to single-precision rates of a device's architecture."""
    return _unit_of(device).fp16


@lru_cache(1024)
def _of(device: Device) -> tuple[float | bool, ...]:
    """Return the features of a sheet, in the order of the fields of `Sheets`."""
    gpu = device.type == "gpu"
    numbers = {**DEFAULTS[device.kind], **{k: v for k, v in device.numbers.items() if v}}
    measured = by_measurement(device, _BANDWIDTH)
    if measured and not device.numbers.get(_BANDWIDTH):
        numbers[_BANDWIDTH] = measured.value
    unit, known = _unit_of(device), device.measured
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
        unit.fp16 if gpu else _CPU_HALF.get(device.series, _CONVERTED_HALF),
        unit.step,
        unit.l1_load,
        unit.l2_load,
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
        float(gpu and _before_rdna(device.series)),
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


def _measured_double(device: Device) -> float | None:
    """Return the rate of double precision over that of single precision, if both were measured."""
    single, double = (device.measured.get(f"{name}_flop_per_s") for name in ("fp32", "fp64"))
    return min(double / single, 1.0) if single and double else None


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
