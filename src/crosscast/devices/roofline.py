"""The bound of a kernel on a device: memory, compute, launch or latency, by its profile and the data sheet.

A roofline (Williams, Waterman and Patterson 2009, doi:10.1145/1498765.1498785) with two more limits: the cost
of a launch, and the latency of a work-item when too few run at once. Nothing is learned from times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from crosscast.device import Device
from crosscast.devices.instruction_costs import PRODUCT_COST, operation_counts
from crosscast.devices.siblings import Expected, filled
from crosscast.errors import InputError
from crosscast.profile import Profile, bytes_outside
from crosscast.results import Tabular
from crosscast.units import format_quantity, format_seconds

if TYPE_CHECKING:
    from crosscast.results import Column

__all__ = ["DEVICES", "Bound", "LaunchWork", "Verdict", "Verdicts", "amounts_of", "verdict_of", "verdicts_of"]

DEVICES = ("h100-sxm", "rtx4090", "epyc-9654")
"""Default devices of verdicts: a current one of each kind."""

Bound = Literal["memory", "compute", "launch", "latency"]

_CLOSE = 2.0
"""A limit within this factor of the first is named, too, as data sheets are no more accurate."""

_LAUNCH_S = {"gpu": 5e-6, "cpu": 20e-6, "accelerator": 20e-6}
"""Typical cost of a launch, for devices without a measurement."""


def launch_cost(device: Device) -> float:
    """Return the seconds of an empty kernel from its launch to its end, measured or typical."""
    return device.numbers.get("launch_overhead_s") or _LAUNCH_S[_kind(device)]


_CYCLES = {"gpu": 4.0, "cpu": 0.25, "accelerator": 1.0}
"""Cycles from an instruction of a work-item to the next: latency of arithmetic on Volta, Ampere and Hopper
(doi:10.1016/j.ultsonch.2023.106546, Table 3), four instructions a cycle on CPUs, one on small cores."""

_LINE_BITS = {"gpu": 5, "cpu": 6, "accelerator": 6}
"""Address bits within a transfer from memory: 32 bytes on GPUs, 64 elsewhere."""

_LINE_FULL = 0.8
"""Share of a line in use above which it counts as full, by the accuracy of the entropies."""

_USUAL_GROUP = 64.0  # Work-items of a work-group, if the profile lacks them
_ELEMENT_BITS = 4
_NEEDED = ("total_instruction_count", "work_items", "total_memory_footprint")
_PRECISIONS = ("half", "single", "double")
_OF_SHEET = ("peak_flop_per_s", "bandwidth_bytes_per_s", "clock_hz")


@dataclass(frozen=True)
class LaunchWork:
    """The work of one launch of a kernel."""

    kernel: str
    operations: float  # Executed instructions, vector ones counted by element
    issued: float  # By what they cost on a device, with multiply-adds once and loops unrolled
    flops: float | None  # Floating-point operations; `None` if the profile lacks them
    double_share: float  # Share of those in double precision, 0 to 1
    function_elements: float  # Elements computed by mathematical functions
    unique_bytes: float  # Distinct bytes read, plus distinct bytes written
    accessed_bytes: float  # Bytes of all accesses to global and constant memory
    local_bytes: float  # Bytes of accesses to local memory
    line_use: Mapping[int, float]  # Used share of 32 and 64-byte lines, by address bits; may be empty
    work_items: float
    work_groups: float
    longest: float  # Instructions of the longest work-item
    imbalance: float  # `longest` over the median
    barriers: float  # Barriers of a work-item
    branch_entropy: float
    instructions: Mapping[str, float]  # Shares of the classes of instructions; may be empty

    @property
    def reuse(self) -> float:
        """Mean number of accesses to a byte."""
        return self.accessed_bytes / self.unique_bytes if self.unique_bytes else 1.0


def amounts_of(profile: Profile) -> LaunchWork | None:
    """Return the work of a launch from its profile; ``None`` if that lacks a required metric.

    Profiles of Crosscast 0.1 and imported ones have no counts of operations and bytes: widths of accesses are
    then estimated by the address bits that never vary.
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
    # The entropies do not distinguish the few addresses of local memory from the others.
    line_use = {}
    if not local and accesses:
        for bits in (5, 6):
            share = 2 ** (entropies[0] - entropies[bits]) * width / 2**bits
            line_use[bits] = 1.0 if share >= _LINE_FULL else share
    flops = {name: float(work.get(f"flops_{name}", 0)) for name in _PRECISIONS}
    total, items = metric("total_instruction_count"), metric("work_items")
    operations = total / (metric("instructions_per_operand") or 1.0)
    mix = work.get("instructions") or profile.instructions
    mix = mix if isinstance(mix, Mapping) else {}
    return LaunchWork(
        kernel=profile.kernel,
        operations=operations,
        issued=_issued(profile.launch.get("instructions"), operations),
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


def _issued(classes: object, total: float) -> float:
    """Return the instructions that a device issues, weighted by cost."""
    counts = operation_counts(classes if isinstance(classes, Mapping) else {}, total)
    of_reals = counts["operations_real"] + counts["operations_fp64"]
    return of_reals + counts["operations"] + PRODUCT_COST * counts["products"]


def _unique_bytes(profile: Profile, width: float, accessed: float) -> float:
    """Return distinct bytes read and written outside of local memory, counted or by mean width."""
    counted = profile.launch.get("distinct_bytes")
    if isinstance(counted, Mapping):
        return float(sum(counted.get("global", {}).values()))
    sides = [profile.metrics.get(name) for name in ("unique_reads", "unique_writes")]
    known = [float(side) for side in sides if side is not None]
    addresses = sum(known) if len(known) == 2 else float(profile.metrics["total_memory_footprint"] or 0)
    # These include addresses of local memory, and widths differ: distinct bytes are at most all accessed
    # bytes.
    return min(width * addresses, accessed or math.inf)


@dataclass(frozen=True)
class Verdict:
    """The bound of one launch of a kernel on a device, with the limits."""

    amounts: LaunchWork
    device: Device
    limits_s: Mapping[Bound, float]  # Estimated time of each alone, in seconds, the longest first
    assumed: Mapping[str, Expected] = field(default_factory=dict)  # Numbers of siblings, by column

    @property
    def bound(self) -> Bound:
        """The limit with the longest time."""
        return next(iter(self.limits_s))

    @property
    def close(self) -> tuple[Bound, ...]:
        """Limits with nearly the longest time, within the accuracy of data sheets."""
        first, *others = self.limits_s
        return tuple(each for each in others if self.limits_s[each] * _CLOSE >= self.limits_s[first])

    @property
    def intensity(self) -> float | None:
        """Floating-point operations for each moved byte."""
        a = self.amounts
        return None if a.flops is None or not self.moved_bytes else a.flops / self.moved_bytes

    @property
    def balance(self) -> float:
        """Floating-point operations for each byte above which the device is not bound by its memory."""
        return self.peak / self.device.numbers["bandwidth_bytes_per_s"]

    @property
    def peak(self) -> float:
        """Peak rate of floating-point operations of the device, in the kernel's precisions."""
        return peak_of(self.amounts, self.device)

    @property
    def idle(self) -> float:
        """Ratio of the device's size to the launch's; 1 or less if the launch fills it."""
        return idle_factor(self.amounts, self.device)

    @property
    def line_use(self) -> float:
        """Share of the moved lines that the kernel uses."""
        return _line_use(self.amounts, self.device)

    @property
    def moved_bytes(self) -> float:
        """Bytes of the lines that have to be moved once."""
        return self.amounts.unique_bytes / self.line_use

    @property
    def cache_bytes(self) -> float | None:
        """Bytes of the device's last cache; ``None`` if the data sheet lacks it."""
        numbers = self.device.numbers
        name = "l2_bytes" if self.device.type == "gpu" and "l3_bytes" not in numbers else "l3_bytes"
        return numbers.get(name)

    @property
    def needs_cache(self) -> bool:
        """Whether memory would bound it if the caches did not hold reused data."""
        fits = self.cache_bytes is not None and self.amounts.unique_bytes <= self.cache_bytes
        missed_s = self.amounts.accessed_bytes / self.device.numbers["bandwidth_bytes_per_s"]
        return self.bound != "memory" and not fits and missed_s > self.limits_s[self.bound]

    @cached_property
    def text(self) -> str:
        """The verdict as a sentence."""
        a = self.amounts
        times = {name: f"about {format_seconds(value)}" for name, value in self.limits_s.items()}
        others = f" or {' or '.join(self.close)}" if self.close else ""
        moved = format_quantity(a.unique_bytes, "B")
        rate = format_quantity(self.device.numbers["bandwidth_bytes_per_s"], "B/s")
        done = format_quantity(a.issued, "instructions")
        following = format_seconds(max(value for name, value in self.limits_s.items() if name != self.bound))
        if self.bound == "memory":
            why = f"{moved} at {rate} take {times['memory']}, its instructions {times['compute']}"
        elif self.bound == "compute":
            why = f"{done} take {times['compute']}, its {moved} of memory {times['memory']}"
        elif self.bound == "launch":
            why = f"a launch costs {times['launch']}, its work {following}"
        elif self.idle > 1:
            items, groups = ((a.work_items, "work-items"), (a.work_groups, "work-groups"))
            why = (
                f"{format_quantity(*items)} in {format_quantity(*groups)} do not fill it ({times['latency']})"
            )
        else:
            longest = format_quantity(a.longest, "instructions")
            why = f"the {longest} of its longest work-item, one after another, take {times['latency']}"
        return f"{a.kernel} on {self.device.key} is bound by {self.bound}{others}: {why}."

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Assumptions and limits of the verdict, as sentences."""
        a, notes = self.amounts, []
        if self.close:
            notes.append("These are within a factor of two, which data sheets are not surer than.")
        if a.flops is None:
            notes.append(
                "Its profile has no count of floating-point operations: characterize it again for one."
            )
        elif not a.flops:
            notes.append("It does no floating-point operations.")
        elif self.intensity is not None:
            notes.append(
                f"It does {self.intensity:.2g} flop for each byte that has to be moved; "
                f"{self.device.key} balances at {self.balance:.2g}."
            )
        if self.line_use < 1:
            notes.append(f"It uses {100 * self.line_use:.0f} % of the memory lines that it touches.")
        if self.needs_cache:
            notes.append(
                f"It uses a byte {a.reuse:.3g} times: where caches do not keep it, memory bounds it."
            )
        if a.double_share > 0.5 and self.bound in ("compute", "latency"):
            share = double_peak(self.device) / self.device.numbers["peak_flop_per_s"]
            notes.append(
                f"It computes in double precision, of which {self.device.key} does "
                f"{format_quantity(double_peak(self.device), 'flop/s')}, {share:.2g} times what it does in "
                "single precision."
            )
        if needed := [name for name in _OF_SHEET if name in self.assumed]:
            notes.append(
                f"The data sheet lacks {', '.join(needed)}: what siblings have on average stands for that."
            )
        if self.bound == "launch" and "launch_overhead_s" not in self.device.numbers:
            notes.append("The cost of a launch is what is typical, and was not measured there.")
        return tuple(notes)

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """Suggestions, the likeliest first."""
        a, advice = self.amounts, []
        if self.bound == "memory":
            if self.line_use < 1:
                advice.append("neighbouring addresses for neighbouring work-items")
            if self.cache_bytes is not None and a.unique_bytes <= self.cache_bytes:
                advice.append("running it right after what makes its data, which fit the cache")
            advice += ["fusing it with kernels that use the same data", "narrower types"]
        elif self.bound == "compute":
            share = a.instructions.get("fp", 0.0) + a.instructions.get("sse", 0.0)
            if self.needs_cache and not a.local_bytes:
                advice.append("keeping what is used again in local memory or registers")
            if a.instructions and share < 1 / 3:
                rest = f"{100 * (1 - share):.0f} % of it is not arithmetic on reals"
                advice.append(f"unrolled loops and simpler addresses ({rest})")
            if a.function_elements > 0.02 * a.operations:
                advice.append("cheaper mathematical functions (native_, half_)")
            if a.double_share > 0.5:
                advice.append("single precision, where it suffices")
            if a.branch_entropy > 0.1 and self.device.type == "gpu":
                advice.append("branches that neighbouring work-items take alike")
            advice.append("an algorithm with fewer operations")
        elif self.bound == "launch":
            advice += ["more work in a launch", "fusing it with the kernels around it"]
        else:
            if a.imbalance > 2:
                advice.append(f"even work: the longest work-item has {a.imbalance:.3g} times the median")
            advice += ["more and shorter work-items", "several launches at once"]
            if a.barriers >= 1:
                advice.append("fewer barriers")
        return tuple(advice)

    def to_dict(self) -> dict[str, object]:
        """Return the verdict as a JSON object; unknown values are null."""
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
            "issued": a.issued,
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
        """Return the columns: the bound of each, and the time of each limit in seconds."""
        columns: dict[str, Column] = {
            "kernel": [each.amounts.kernel for each in self.verdicts],
            "device": [each.device.key for each in self.verdicts],
            "bound": [each.bound for each in self.verdicts],
        }
        for name in ("memory", "compute", "launch", "latency"):
            columns[f"{name}_s"] = [each.limits_s[name] for each in self.verdicts]
        return columns | {"why": [each.text for each in self.verdicts]}


def _kind(device: Device) -> str:
    """Return the type of a device; one that is not known, as in datasets, counts as an accelerator."""
    return device.type if device.type in _CYCLES else "accelerator"


def idle_factor(amounts: LaunchWork, device: Device) -> float:
    """Return the ratio of a device's size to a launch's; 1 or less if the launch fills it."""
    units = device.numbers.get("compute_units", 1.0) / amounts.work_groups
    if device.type != "gpu":
        return units
    return max(units, device.numbers.get("cores", 1.0) / amounts.work_items)


def _line_use(amounts: LaunchWork, device: Device) -> float:
    return amounts.line_use.get(_LINE_BITS[_kind(device)], 1.0)


def double_peak(device: Device) -> float:
    """Return the peak rate of double precision of a device, by its sheet or architecture."""
    # Imported here, as single precision needs no NumPy.
    from crosscast.devices.architectures import double_share

    numbers = device.numbers
    if double := numbers.get("peak_fp64_flop_per_s"):
        return double
    single = numbers["peak_flop_per_s"]
    if device.type == "gpu" and "cores" in numbers:
        # Packed operations and dual issue are for single precision only.
        single = min(single, 2 * numbers["cores"] * numbers["clock_hz"])
    return single * double_share(device)


def peak_of(amounts: LaunchWork, device: Device) -> float:
    """Return the peak rate of floating-point operations of a device, in a kernel's precisions."""
    single, double = device.numbers["peak_flop_per_s"], amounts.double_share
    return 1 / ((1 - double) / single + double / double_peak(device)) if double else single


def verdict_of(amounts: LaunchWork, device: Device) -> Verdict:
    """Determine the bound of a kernel on a device.

    Numbers missing from its data sheet are taken from its siblings.
    """
    sheet = filled(device)
    device, numbers = sheet.device, sheet.device.numbers
    a, peak = amounts, numbers["peak_flop_per_s"]
    # A peak counts multiply-adds as two operations, so a lane does half as many instructions.
    compute = max(2 * a.issued / peak, (a.flops or 0.0) / peak_of(a, device))
    idle = idle_factor(a, device)
    chain = a.longest * (a.issued / max(a.operations, 1.0)) * _CYCLES[_kind(device)] / numbers["clock_hz"]
    limits: dict[Bound, float] = {
        "memory": a.unique_bytes / _line_use(a, device) / numbers["bandwidth_bytes_per_s"],
        "compute": compute,
        "launch": launch_cost(device),
        "latency": max(chain, compute * idle if idle > 1 else 0.0),
    }
    order = sorted(limits, key=lambda name: -limits[name])
    return Verdict(amounts, device, {name: limits[name] for name in order}, sheet.taken)


def verdicts_of(profiles: Sequence[Profile], devices: Sequence[Device]) -> Verdicts:
    """Determine the bound of each profile on each device.

    Raises
    ------
    InputError
        If a profile lacks a metric that is needed.
    """
    verdicts = []
    for profile in profiles:
        amounts = amounts_of(profile)
        if amounts is None:
            needed = ", ".join(_NEEDED)
            raise InputError(
                f"profile of {profile.kernel}: expected the metrics {needed}, found some missing"
            )
        verdicts += [verdict_of(amounts, device) for device in devices]
    return Verdicts(tuple(verdicts))
