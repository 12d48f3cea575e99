"""What bounds a kernel on a device: memory, compute, launch or latency, by its profile and the data sheet.

A roofline (Williams, Waterman and Patterson 2009, doi:10.1145/1498765.1498785) with two more limits: what a
launch costs, and how long a work-item takes when too few of them run at once. Nothing is learned from times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from crosscast.device import Device
from crosscast.devices.siblings import Expected, filled
from crosscast.errors import InputError
from crosscast.profile import Profile, bytes_outside
from crosscast.results import Tabular
from crosscast.units import format_quantity, format_seconds

if TYPE_CHECKING:
    from crosscast.results import Column

__all__ = ["DEVICES", "Bound", "LaunchWork", "Verdict", "Verdicts", "amounts_of", "verdict_of", "verdicts_of"]

DEVICES = ("h100-sxm", "rtx4090", "epyc-9654")
"""Devices of the catalogue that are asked about where nobody names one: of each kind, a current one."""

Bound = Literal["memory", "compute", "launch", "latency"]

_CLOSE = 2.0
"""A limit within this factor of the first is named, too: data sheets are not surer than that."""

_LAUNCH_S = {"gpu": 5e-6, "cpu": 20e-6, "accelerator": 20e-6}
"""What a launch typically costs, where nobody measured it on the device."""


def launch_cost(device: Device) -> float:
    """Seconds of an empty kernel from its launch to its end: as measured, or what is typical."""
    return device.numbers.get("launch_overhead_s") or _LAUNCH_S[_kind(device)]


_CYCLES = {"gpu": 4.0, "cpu": 0.25, "accelerator": 1.0}
"""Cycles from an instruction of a work-item to the next: latency of arithmetic on Volta, Ampere and Hopper
(doi:10.1016/j.ultsonch.2023.106546, Table 3), four instructions a cycle on CPUs, one on small cores."""

_LINE_BITS = {"gpu": 5, "cpu": 6, "accelerator": 6}
"""Lowest address bits within what moves at once: 32 bytes on GPUs, 64 elsewhere."""

_LINE_FULL = 0.8
"""Share of a line in use from which on it counts as full: the entropies are no sharper than that."""

_USUAL_GROUP = 64.0  # Work-items of a work-group, where a profile does not say
_ELEMENT_BITS = 4
_NEEDED = ("total_instruction_count", "work_items", "total_memory_footprint")
_PRECISIONS = ("half", "single", "double")
_OF_SHEET = ("peak_flop_per_s", "bandwidth_bytes_per_s", "clock_hz")


@dataclass(frozen=True)
class LaunchWork:
    """What one launch of a kernel does."""

    kernel: str
    operations: float  # Executed instructions, those of vectors once an element
    flops: float | None  # Floating-point operations; `None` where the profile has no count of them
    double_share: float  # Share of those in double precision, 0 to 1
    function_elements: float  # Elements that mathematical functions computed
    unique_bytes: float  # Distinct bytes read, and distinct bytes written: what is both is moved twice
    accessed_bytes: float  # Bytes of all accesses to global and constant memory
    local_bytes: float  # Bytes of accesses to local memory
    line_use: Mapping[int, float]  # Share of 32 and 64-byte lines that it uses, by address bits; may be empty
    work_items: float
    work_groups: float
    longest: float  # Instructions of the longest work-item
    imbalance: float  # These over the median
    barriers: float  # Barriers of a work-item
    branch_entropy: float
    instructions: Mapping[str, float]  # Shares of the classes of instructions; may be empty

    @property
    def reuse(self) -> float:
        """How often a byte is accessed, on average."""
        return self.accessed_bytes / self.unique_bytes if self.unique_bytes else 1.0


def amounts_of(profile: Profile) -> LaunchWork | None:
    """What a launch does, of its profile; ``None`` if that lacks a metric that is needed.

    Profiles that were made by Crosscast 0.1 or imported have no counts of operations and bytes: widths of
    accesses are then estimated by the address bits that never vary.
    """
    metrics = profile.metrics

    def metric(name: str, default: float = 0.0) -> float:
        value = metrics.get(name)
        return default if value is None else float(value)

    if any(metrics.get(name) is None for name in _NEEDED) or not metric("work_items"):
        return None
    work = profile.launch.get("work")
    work = work if isinstance(work, Mapping) else {}
    accesses = metric("total_reads") + metric("total_writes") or sum(
        metric(f"{space}_accesses") for space in ("global", "local", "constant")
    )
    entropies = [
        metric("global_memory_address_entropy"),
        *(metric(f"local_memory_address_entropy_{bits}") for bits in range(1, 11)),
    ]
    outside = bytes_outside(work)
    local = float(work.get("local_bytes", 0))
    if outside + local and not work.get("unsized_accesses"):
        width = (outside + local) / max(accesses, 1.0)
    else:
        lost = [1 - (entropies[bits] - entropies[bits + 1]) for bits in range(_ELEMENT_BITS)]
        width = 2 ** sum(min(max(each, 0.0), 1.0) for each in lost)
        outside = width * max(accesses - metric("local_accesses"), 0.0)
        local = width * metric("local_accesses")
    # Addresses of local memory are few, and are not told from the others in the entropies.
    line_use = {}
    if not local and accesses:
        for bits in (5, 6):
            share = 2 ** (entropies[0] - entropies[bits]) * width / 2**bits
            line_use[bits] = 1.0 if share >= _LINE_FULL else share
    flops = {name: float(work.get(f"flops_{name}", 0)) for name in _PRECISIONS}
    total, items = metric("total_instruction_count"), metric("work_items")
    mix = work.get("instructions") or profile.instructions
    mix = mix if isinstance(mix, Mapping) else {}
    return LaunchWork(
        kernel=profile.kernel,
        operations=total / (metric("instructions_per_operand") or 1.0),
        flops=sum(flops.values()) if work else None,
        double_share=flops["double"] / (sum(flops.values()) or 1.0),
        function_elements=float(work.get("function_elements", 0)),
        unique_bytes=_unique_bytes(profile, width, outside),
        accessed_bytes=outside,
        local_bytes=local,
        line_use=line_use,
        work_items=items,
        work_groups=metric("work_groups") or max(items / _USUAL_GROUP, 1.0),
        longest=max(metric("max_ipt", metric("max_itb")), total / items),
        imbalance=metric("max_ipt") / (metric("median_ipt") or 1.0),
        barriers=metric("total_barriers_hit") / items,
        branch_entropy=metric("average_linear_branch_entropy"),
        instructions={name: float(count) / (sum(mix.values()) or 1.0) for name, count in mix.items()},
    )


def _unique_bytes(profile: Profile, width: float, accessed: float) -> float:
    """Distinct bytes read and written outside of local memory, as counted, or by addresses and mean width."""
    counted = profile.launch.get("distinct_bytes")
    if isinstance(counted, Mapping):
        return float(sum(counted.get("global", {}).values()))
    sides = [profile.metrics.get(name) for name in ("unique_reads", "unique_writes")]
    known = [float(side) for side in sides if side is not None]
    addresses = sum(known) if len(known) == 2 else float(profile.metrics["total_memory_footprint"] or 0)
    # Addresses of local memory are among them, and widths differ: no more than what was accessed is distinct.
    return min(width * addresses, accessed or math.inf)


@dataclass(frozen=True)
class Verdict:
    """What bounds one launch of a kernel on a device, and why."""

    amounts: LaunchWork
    device: Device
    limits_s: Mapping[Bound, float]  # About how long each would take alone, in seconds, the longest first
    assumed: Mapping[str, Expected] = field(default_factory=dict)  # Numbers of siblings, by column

    @property
    def bound(self) -> Bound:
        """What takes longest."""
        return next(iter(self.limits_s))

    @property
    def close(self) -> tuple[Bound, ...]:
        """What takes nearly as long, so that the data sheet cannot tell which it is."""
        first, *others = self.limits_s
        return tuple(each for each in others if self.limits_s[each] * _CLOSE >= self.limits_s[first])

    @property
    def intensity(self) -> float | None:
        """Floating-point operations for each byte that has to be moved."""
        a = self.amounts
        return None if a.flops is None or not self.moved_bytes else a.flops / self.moved_bytes

    @property
    def balance(self) -> float:
        """Floating-point operations for each byte from which on the device is not bound by its memory."""
        return self.peak / self.device.numbers["bandwidth_bytes_per_s"]

    @property
    def peak(self) -> float:
        """Floating-point operations a second that the device does at most, of the kernel's precisions."""
        return peak_of(self.amounts, self.device)

    @property
    def idle(self) -> float:
        """By how much the device is larger than the launch; 1 or less if that fills it."""
        return idle_factor(self.amounts, self.device)

    @property
    def line_use(self) -> float:
        """Share of the lines that it moves which the kernel uses."""
        return _line_use(self.amounts, self.device)

    @property
    def moved_bytes(self) -> float:
        """Bytes that have to be moved once, in whole lines."""
        return self.amounts.unique_bytes / self.line_use

    @property
    def cache_bytes(self) -> float | None:
        """The last cache that the data sheet has, of the whole device; ``None`` if it has none."""
        numbers = self.device.numbers
        name = "l2_bytes" if self.device.type == "gpu" and "l3_bytes" not in numbers else "l3_bytes"
        return numbers.get(name)

    @property
    def needs_cache(self) -> bool:
        """Whether it is bound by memory after all, if the caches do not keep what is used again."""
        fits = self.cache_bytes is not None and self.amounts.unique_bytes <= self.cache_bytes
        missed_s = self.amounts.accessed_bytes / self.device.numbers["bandwidth_bytes_per_s"]
        return self.bound != "memory" and not fits and missed_s > self.limits_s[self.bound]

    @cached_property
    def text(self) -> str:
        """The verdict as a sentence."""
        a, told = (
            self.amounts,
            {name: f"about {format_seconds(value)}" for name, value in self.limits_s.items()},
        )
        others = f" or {' or '.join(self.close)}" if self.close else ""
        moved = format_quantity(a.unique_bytes, "B")
        rate = format_quantity(self.device.numbers["bandwidth_bytes_per_s"], "B/s")
        done = format_quantity(a.operations, "instructions")
        following = format_seconds(max(value for name, value in self.limits_s.items() if name != self.bound))
        if self.bound == "memory":
            why = f"{moved} at {rate} take {told['memory']}, its instructions {told['compute']}"
        elif self.bound == "compute":
            why = f"{done} take {told['compute']}, its {moved} of memory {told['memory']}"
        elif self.bound == "launch":
            why = f"a launch costs {told['launch']}, its work {following}"
        elif self.idle > 1:
            items, groups = ((a.work_items, "work-items"), (a.work_groups, "work-groups"))
            why = (
                f"{format_quantity(*items)} in {format_quantity(*groups)} do not fill it ({told['latency']})"
            )
        else:
            longest = format_quantity(a.longest, "instructions")
            why = f"the {longest} of its longest work-item, one after another, take {told['latency']}"
        return f"{a.kernel} on {self.device.key} is bound by {self.bound}{others}: {why}."

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What the verdict rests on, and what it cannot tell, as sentences."""
        a, found = self.amounts, []
        if self.close:
            found.append("These are within a factor of two, which data sheets are not surer than.")
        if a.flops is None:
            found.append(
                "Its profile has no count of floating-point operations: characterize it again for one."
            )
        elif not a.flops:
            found.append("It does no floating-point operations.")
        elif self.intensity is not None:
            found.append(
                f"It does {self.intensity:.2g} flop for each byte that has to be moved; "
                f"{self.device.key} balances at {self.balance:.2g}."
            )
        if self.line_use < 1:
            found.append(f"It uses {100 * self.line_use:.0f} % of the memory lines that it touches.")
        if self.needs_cache:
            found.append(
                f"It uses a byte {a.reuse:.3g} times: where caches do not keep it, memory bounds it."
            )
        if a.double_share > 0.5 and self.bound in ("compute", "latency"):
            share = double_peak(self.device) / self.device.numbers["peak_flop_per_s"]
            found.append(
                f"It computes in double precision, of which {self.device.key} does "
                f"{format_quantity(double_peak(self.device), 'flop/s')}, {share:.2g} times what it does in "
                "single precision."
            )
        if needed := [name for name in _OF_SHEET if name in self.assumed]:
            found.append(
                f"The data sheet lacks {', '.join(needed)}: what siblings have on average stands for that."
            )
        if self.bound == "launch" and "launch_overhead_s" not in self.device.numbers:
            found.append("The cost of a launch is what is typical, and was not measured there.")
        return tuple(found)

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What to try, the likeliest first."""
        a, found = self.amounts, []
        if self.bound == "memory":
            if self.line_use < 1:
                found.append("neighbouring addresses for neighbouring work-items")
            if self.cache_bytes is not None and a.unique_bytes <= self.cache_bytes:
                found.append("running it right after what makes its data, which fit the cache")
            found += ["fusing it with kernels that use the same data", "narrower types"]
        elif self.bound == "compute":
            share = a.instructions.get("fp", 0.0) + a.instructions.get("sse", 0.0)
            if self.needs_cache and not a.local_bytes:
                found.append("keeping what is used again in local memory or registers")
            if a.instructions and share < 1 / 3:
                rest = f"{100 * (1 - share):.0f} % of it is not arithmetic on reals"
                found.append(f"unrolled loops and simpler addresses ({rest})")
            if a.function_elements > 0.02 * a.operations:
                found.append("cheaper mathematical functions (native_, half_)")
            if a.double_share > 0.5:
                found.append("single precision, where it suffices")
            if a.branch_entropy > 0.1 and self.device.type == "gpu":
                found.append("branches that neighbouring work-items take alike")
            found.append("an algorithm with fewer operations")
        elif self.bound == "launch":
            found += ["more work in a launch", "fusing it with the kernels around it"]
        else:
            if a.imbalance > 2:
                found.append(f"even work: the longest work-item has {a.imbalance:.3g} times the median")
            found += ["more and shorter work-items", "several launches at once"]
            if a.barriers >= 1:
                found.append("fewer barriers")
        return tuple(found)

    def to_dict(self) -> dict[str, object]:
        """The verdict as a JSON object; what is not known is null."""
        a = self.amounts
        return {
            "kernel": a.kernel,
            "device": self.device.key,
            "bound": self.bound,
            "close": list(self.close),
            "text": self.text,
            "notes": list(self.notes),
            "advice": list(self.advice),
            "limits_s": dict(self.limits_s),
            "flops": a.flops,
            "operations": a.operations,
            "unique_bytes": a.unique_bytes,
            "accessed_bytes": a.accessed_bytes,
            "moved_bytes": self.moved_bytes,
            "flop_per_byte": self.intensity,
            "device_flop_per_byte": self.balance,
            "needs_cache": self.needs_cache,
            "instructions": dict(a.instructions),
        }


@dataclass(frozen=True, eq=False)
class Verdicts(Tabular):
    """Verdicts on kernels on devices; as a table, a row for each."""

    verdicts: tuple[Verdict, ...]

    def columns(self) -> Mapping[str, Column]:
        """What bounds each, and how long each limit takes, in seconds."""
        found: dict[str, Column] = {
            "kernel": [each.amounts.kernel for each in self.verdicts],
            "device": [each.device.key for each in self.verdicts],
            "bound": [each.bound for each in self.verdicts],
        }
        for name in ("memory", "compute", "launch", "latency"):
            found[f"{name}_s"] = [each.limits_s[name] for each in self.verdicts]
        return found | {"why": [each.text for each in self.verdicts]}


def _kind(device: Device) -> str:
    """Its type; that of a dataset's device may not be known."""
    return device.type if device.type in _CYCLES else "accelerator"


def idle_factor(amounts: LaunchWork, device: Device) -> float:
    """By how much a device is larger than a launch; 1 or less if that fills it."""
    units = device.numbers.get("compute_units", 1.0) / amounts.work_groups
    if device.type != "gpu":
        return units
    return max(units, device.numbers.get("cores", 1.0) / amounts.work_items)


def _line_use(amounts: LaunchWork, device: Device) -> float:
    return amounts.line_use.get(_LINE_BITS[_kind(device)], 1.0)


def double_peak(device: Device) -> float:
    """Operations of double precision that a device does a second at most, by its sheet or architecture."""
    # Imported here: what judges single precision needs no NumPy.
    from crosscast.devices.architectures import double_share

    numbers = device.numbers
    if said := numbers.get("peak_fp64_flop_per_s"):
        return said
    single = numbers["peak_flop_per_s"]
    if device.type == "gpu" and "cores" in numbers:
        # Packed operations and those that are issued in pairs are of single precision alone.
        single = min(single, 2 * numbers["cores"] * numbers["clock_hz"])
    return single * double_share(device)


def peak_of(amounts: LaunchWork, device: Device) -> float:
    """Floating-point operations that a device does a second at most, of a kernel's precisions."""
    single, double = device.numbers["peak_flop_per_s"], amounts.double_share
    return 1 / ((1 - double) / single + double / double_peak(device)) if double else single


def verdict_of(amounts: LaunchWork, device: Device) -> Verdict:
    """Say what bounds a kernel on a device.

    What its data sheet lacks is taken from its siblings.
    """
    sheet = filled(device)
    device, numbers = sheet.device, sheet.device.numbers
    a, peak = amounts, numbers["peak_flop_per_s"]
    # A peak counts multiply-adds as two operations: a lane does half as many instructions.
    compute = max(2 * a.operations / peak, (a.flops or 0.0) / peak_of(a, device))
    idle = idle_factor(a, device)
    chain = a.longest * _CYCLES[_kind(device)] / numbers["clock_hz"]
    limits: dict[Bound, float] = {
        "memory": a.unique_bytes / _line_use(a, device) / numbers["bandwidth_bytes_per_s"],
        "compute": compute,
        "launch": launch_cost(device),
        "latency": max(chain, compute * idle if idle > 1 else 0.0),
    }
    order = sorted(limits, key=lambda name: -limits[name])
    return Verdict(amounts, device, {name: limits[name] for name in order}, sheet.taken)


def verdicts_of(profiles: Sequence[Profile], devices: Sequence[Device]) -> Verdicts:
    """Say of each profile what bounds it on each device.

    Raises
    ------
    InputError
        If a profile lacks a metric that is needed.
    """
    found = []
    for profile in profiles:
        amounts = amounts_of(profile)
        if amounts is None:
            needed = ", ".join(_NEEDED)
            raise InputError(
                f"profile of {profile.kernel}: expected the metrics {needed}, found some missing"
            )
        found += [verdict_of(amounts, device) for device in devices]
    return Verdicts(tuple(found))
