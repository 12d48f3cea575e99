"""Compute units of architectures, and the facts of one device, each number with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from crosscast.device import Device
from crosscast.devices.catalogue import FACTS, Expected, catalogue, device_named, expected
from crosscast.devices.device_files import (
    NUMBERS,
    QUANTITIES,
    MeasuredValue,
    how_measured,
    measured_devices,
    own_folder,
)


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
    schedulers: int = 4  # Which share out a unit's lanes: a sub-group has those of one
    last_load_ns: float = 75.0  # Beyond `l2_load`, from a cache between the second and memory
    memory_load_ns: float = 240.0  # Beyond `l2_load`, from memory


_UNITS = {
    "Fermi": Unit(
        32, 48, 8, 32768, 49152, 1 / 8, 786432, special=4, step=22.0, lookups=1, joined=1.0, schedulers=2
    ),
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
    "TeraScale 2": Unit(64, 24, 8, 65536, 32768, 1 / 5, 524288, 64.0, step=8.0, joined=1.0, schedulers=1),
    "TeraScale 3": Unit(64, 24, 8, 65536, 32768, 1 / 4, 524288, 64.0, step=8.0, joined=1.0, schedulers=1),
    "GCN 1": Unit(64, 40, 40, 65536, 65536, 1 / 16, 262144, 64.0, joined=1.0),
    "GCN 2": Unit(64, 40, 40, 65536, 65536, 1 / 16, 262144, 64.0, joined=1.0),
    "GCN 3": Unit(64, 40, 40, 65536, 65536, 1 / 16, 524288, 64.0, joined=1.0),
    "Vega": Unit(64, 40, 40, 65536, 65536, 1 / 16, 4194304, 64.0, fp16=2.0, joined=0.4),
    "Vega 20": Unit(64, 40, 40, 65536, 65536, 1 / 2, 4194304, 64.0, fp16=2.0, joined=0.4),
    "RDNA": Unit(32, 40, 32, 65536, 65536, 1 / 16, 4194304, 30.0, fp16=2.0, step=5.0, schedulers=2),
    "RDNA 3.5": Unit(32, 32, 32, 65536, 65536, 1 / 16, 2097152, 30.0, fp16=2.0, step=5.0, schedulers=2),
    "Tahiti": Unit(64, 40, 40, 65536, 65536, 1 / 4, 786432, 64.0, joined=1.0),
    "Hawaii": Unit(64, 40, 40, 65536, 65536, 1 / 8, 1048576, 64.0, joined=1.0),
    "Kaveri": Unit(64, 40, 40, 65536, 65536, 1 / 16, 524288, 64.0, joined=1.0),
    "Fiji": Unit(64, 40, 40, 65536, 65536, 1 / 16, 2097152, 64.0, joined=1.0),
    "Polaris": Unit(64, 40, 40, 65536, 65536, 1 / 16, 2097152, 64.0, joined=1.0),
    "CDNA": Unit(64, 40, 40, 131072, 65536, 1 / 2, 8388608, 37.0, fp16=2.0, group_clocks=2.0, joined=0.4),
    "CDNA 2": Unit(64, 32, 32, 131072, 65536, 1.0, 8388608, 37.0, fp16=2.0, group_clocks=2.0, joined=0.4),
    "CDNA 3": Unit(64, 32, 32, 131072, 65536, 1.0, 33554432, 37.0, fp16=2.0, group_clocks=0.25, joined=0.4),
    "CDNA 4": Unit(64, 32, 32, 131072, 163840, 1.0, 33554432, 37.0, fp16=2.0, group_clocks=0.25, joined=0.4),
    "RDNA 2": Unit(32, 32, 32, 65536, 65536, 1 / 16, 4194304, 30.0, fp16=2.0, step=5.0, schedulers=2),
    "RDNA 3": Unit(32, 32, 32, 98304, 65536, 1 / 16, 6291456, 30.0, fp16=2.0, step=5.0, schedulers=2),
    "RDNA 4": Unit(32, 32, 32, 98304, 65536, 1 / 16, 8388608, 30.0, fp16=2.0, step=5.0, schedulers=2),
    # A thread of a vector engine runs 16 work-items.
    "Gen7": Unit(32, 32, 16, 65536, 65536, 1 / 4, 262144, 64.0, fp16=1.0, engines=8, joined=1.0),
    "Gen7.5": Unit(32, 35, 16, 71680, 65536, 1 / 4, 262144, 64.0, fp16=1.0, engines=10, joined=1.0),
    "Gen9": Unit(32, 28, 28, 57344, 65536, 1 / 4, 524288, 64.0, fp16=2.0, engines=8, joined=1.0),
    "Gen9.5": Unit(32, 28, 28, 57344, 65536, 1 / 4, 524288, 64.0, fp16=2.0, engines=8, joined=1.0),
    "Xe-HPG": Unit(
        32, 64, 64, 131072, 131072, 1 / 64, 16777216, 64.0, fp16=2.0, texels=8.0, engines=16, schedulers=8
    ),
    "Xe2-HPG": Unit(32, 32, 32, 131072, 131072, 1 / 8, 18874368, 64.0, fp16=2.0, texels=8.0, engines=8),
    "Xe-HPC": Unit(32, 32, 32, 131072, 131072, 1.0, 213909504, 64.0, l1_clock=512.0, engines=8),
}

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
        texels=4.0, local_bytes=65536, fp64=1 / 2, caches_global=True, fp16=2.0, special=16, schedulers=2
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
    "memory": "te42kyfo, gpu-benches, gpu-latency: V100, A100, L40, H100, MI210, RX 6900 XT "
    "(https://github.com/te42kyfo/gpu-benches); Chips and Cheese, Measuring GPU Memory Latency, 2021: "
    "RTX 3090, RX 6900 XT (https://chipsandcheese.com/p/measuring-gpu-memory-latency); others chosen",
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
        of = dict.fromkeys((*_LIMITS, "schedulers"), limits)
        of["caches_global"] = series.lower() if series in ("Kepler", "Maxwell", "Pascal") else "cuda"
        of |= dict.fromkeys(("special", "int32", "shift", "fp16"), "throughput") | {"joined": "sass"}
        of |= {"step": "guide" if series == "Fermi" else "latencies", "issue": "caches"}
    elif series in _INTEL:
        of = dict.fromkeys(("sub_groups", "groups", "registers", "local_bytes", "engines"), "occupancy")
        of |= dict.fromkeys(
            (
                *("width", "caches_global", "special", "step", "int32", "shift", "l1_clock", "l2_clock"),
                "schedulers",
            ),
            "xe",
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
    gcn = before_rdna(series) or series.startswith("CDNA")
    rates = dict.fromkeys(("special", "int32", "shift", "schedulers"), "app" if gcn else "rdna")
    of = rates | {"joined": "gfx"} | {"step": "app" if gcn else "schedules", "fp16": "sheets"} | of
    of |= {"texels": "texture", "engines": of.get("engines", "sheets"), "issue": of.get("issue", of["width"])}
    caches = ("l1_load", "l2_load", "l1_clock", "l2_clock", "lookups", "group_clocks")
    of = dict.fromkeys(("last_load_ns", "memory_load_ns"), "memory") | dict.fromkeys(caches, "measured") | of
    if series in ("Kepler", "Maxwell", "Pascal", "Turing"):
        of |= dict.fromkeys(("l1_load", "l2_load", "l1_clock"), "caches")
    of |= {"fp64": "sheets", "l2_bytes": "carrizo" if series == "Kaveri" else "sheets"}
    if series in NO_DOUBLES:
        of["fp64"] = "fp64"
    if series in _UNMEASURED_L2 or (before_rdna(series) and series != "CDNA"):
        of["l2_clock"] = "chosen"
    return {name: _GUIDES[of[name]] for name in Unit._fields}


def before_rdna(series: str) -> bool:
    """Whether an architecture is one of AMD's before RDNA, or derived from these."""
    return series in _GCN or series.startswith("TeraScale")


_BY_VENDOR = {
    "Nvidia": _UNITS["Ampere"],
    "AMD": _UNITS["RDNA 2"],
    "Intel": Unit(32, 32, 16, 65536, 65536, 1 / 4, 16777216),
}
_OTHER_GPU = _UNITS["Ampere"]
_CPU = Unit(32, 1, 1, 1 << 30, 1 << 30, 0.5, 1048576)


def known_unit(device: Device) -> Unit | None:
    """Return the compute unit of a device's chip or architecture, if it is known."""
    names = f"{device.key} {device.name.lower()}"
    # Not of rtx-a1000 and quadro-p1000.
    chips = (unit for part, unit in _CHIPS.items() if re.search(rf"(?<![a-z0-9]){part}(?!\d)", names))
    return next(chips, None) or _UNITS.get(device.series)


def unit_of(device: Device) -> Unit:
    """Return the compute unit of a device's architecture, or its vendor's usual one."""
    if device.type != "gpu":
        return _CPU
    return known_unit(device) or _BY_VENDOR.get(device.vendor, _OTHER_GPU)


def double_share(device: Device) -> float:
    """Return the ratio of double- to single-precision rates of a device's architecture, or as measured."""
    is_known = device.type != "gpu" or known_unit(device) is not None
    return (None if is_known else _measured_double(device)) or unit_of(device).fp64


def half_share(device: Device) -> float:
    """Return the ratio of packed half- to single-precision rates of a device's architecture."""
    return unit_of(device).fp16


def _measured_double(device: Device) -> float | None:
    """Return the rate of double precision over that of single precision, if both were measured."""
    single, double = (device.measured.get(f"{name}_flop_per_s") for name in ("fp32", "fp64"))
    return min(double / single, 1.0) if single and double else None


@dataclass(frozen=True)
class KnownDevice:
    """A device with its measurements, expectations and sources."""

    device: Device
    sources: Mapping[str, str]  # Of numbers of the data sheet
    measured: Mapping[str, MeasuredValue]  # By quantity
    expected: Mapping[str, Expected]  # Its, or else its siblings', share of data sheets, by fact

    def ratio(self, quantity: str) -> float | None:
        """Return the measured value over the data sheet's; ``None`` if that is not known."""
        on_paper = self.device.numbers.get(QUANTITIES[quantity].sheet or "")
        return self.measured[quantity].value / on_paper if on_paper else None

    def to_dict(self) -> dict[str, object]:
        """Return the facts, for JSON."""
        device = self.device
        return {
            "device": device.key,
            "name": device.name,
            "vendor": device.vendor,
            "type": device.type,
            "series": device.series,
            **device.numbers,
            "sources": dict(self.sources),
            "measured": {
                name: {**each.to_dict(), "of_sheet": self.ratio(name)} for name, each in self.measured.items()
            },
            "unit": unit_facts(device),
            "expected": {name: vars(each) for name, each in self.expected.items()},
        }


def unit_facts(device: Device) -> dict[str, object]:
    """Return the numbers of a device's compute unit with their sources; empty if these are not known."""
    unit = known_unit(device)
    if unit is None:
        return {}
    sources = unit_sources(device.series)
    return {name: {"value": getattr(unit, name), "source": sources[name]} for name in unit._fields}


def known_of(name: str) -> KnownDevice:
    """Return the facts of a device of the catalogue, or of a calibrated one.

    Raises
    ------
    InputError
        If there is no such device.
    """
    device = device_named(name)
    facts = {fact: value for fact in FACTS if (value := expected(device, fact)) is not None}
    if device.key in catalogue():
        texts = catalogue()[device.key].entries("sources")
        sources = {key: str(text) for key, text in texts.items() if key in NUMBERS}
        return KnownDevice(device, sources, measured_devices().get(device.key, {}), facts)
    path = own_folder() / f"{device.key}.toml"
    how = how_measured(path)
    measured = {
        quantity: MeasuredValue(value, None, None, how.get(quantity, ""), str(path))
        for quantity, value in device.measured.items()
    }
    return KnownDevice(device, dict.fromkeys(device.numbers, str(path)), measured, facts)
