"""The bound of a kernel on a device: the longest of several limits, by its profile and the data sheet.

A roofline (Williams, Waterman and Patterson 2009, doi:10.1145/1498765.1498785) with more limits: local
memory, atomics, the cost of a launch, and latency where too little runs at once. Nothing is learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from crosscast.device import Device
from crosscast.devices.catalogue import Expected, filled
from crosscast.devices.launch_work import NEEDED, LaunchWork, amounts_of
from crosscast.devices.limits import (
    BOUNDS,
    Bound,
    Latency,
    busy_units,
    cache_bytes,
    double_peak,
    kept_bytes,
    latencies,
    limits,
    line_bytes,
    memory_rate,
    moved_bytes,
    peak_of,
)
from crosscast.errors import InputError
from crosscast.profile import Profile
from crosscast.results import Tabular
from crosscast.units import format_quantity, format_seconds

if TYPE_CHECKING:
    from crosscast.results import Column

__all__ = ["DEVICES", "Verdict", "Verdicts", "verdict_of", "verdicts_of"]

DEVICES = ("h100-sxm", "rtx4090", "epyc-9654")
"""Default devices of verdicts: a current one of each kind."""

_CLOSE = 2.0
"""A limit within this factor of the first is named, too, as data sheets are no more accurate."""

_MANY_CONFLICTS = 2.0
"""Wavefronts of local memory over those without conflicts, above which there is advice against these."""

_WAVEFRONT_BYTES = 128.0
_SUBJECTS: Mapping[Bound, str] = {
    "memory": "its memory",
    "compute": "its instructions",
    "local": "its local memory",
    "atomics": "its atomics",
    "launch": "its launch",
    "latency": "its latency",
}
_OF_SHEET = ("peak_flop_per_s", "bandwidth_bytes_per_s", "clock_hz")


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

    @cached_property
    def waits_for(self) -> Latency:
        """The reason of the longest latency."""
        seconds = latencies(self.amounts, self.device)
        return max(seconds, key=lambda name: seconds[name])

    @property
    def line_use(self) -> float:
        """Share of the memory lines in use that the kernel uses."""
        lines = line_bytes(self.amounts, self.device)
        return self.amounts.unique_bytes / lines if lines else 1.0

    @cached_property
    def moved_bytes(self) -> float:
        """Bytes of the lines that have to be moved."""
        return moved_bytes(self.amounts, self.device)

    @property
    def fits_cache(self) -> bool:
        """Whether the last cache of the device is known to hold the lines in use."""
        return line_bytes(self.amounts, self.device) <= (cache_bytes(self.device) or 0.0)

    @property
    def needs_cache(self) -> bool:
        """Whether memory would bound it if the caches did not hold reused data."""
        missed_s = self.amounts.accessed_bytes / self.device.numbers["bandwidth_bytes_per_s"]
        return self.bound != "memory" and not self.fits_cache and missed_s > self.limits_s[self.bound]

    @cached_property
    def text(self) -> str:
        """The verdict as a sentence."""
        a = self.amounts
        times = {name: f"about {format_seconds(value)}" for name, value in self.limits_s.items()}
        others = f" or {' or '.join(self.close)}" if self.close else ""
        moved = format_quantity(self.moved_bytes, "B")
        bytes_per_s = memory_rate(a, self.device)
        rate = format_quantity(bytes_per_s, "B/s")
        done = format_quantity(a.issued, "instructions")
        second = format_seconds(max(value for name, value in self.limits_s.items() if name != self.bound))
        # Each limit that is close has its time in the sentence.
        named = {"memory": ("compute",), "compute": ("memory",)}.get(self.bound, ())
        more = "".join(f", {_SUBJECTS[name]} {times[name]}" for name in self.close if name not in named)
        rest = more if len(self.close) > 1 else f", all else {second}"
        if self.bound == "memory":
            if self.line_use < 1:
                moved += f" of lines, of which {100 * self.line_use:.2g} % is used,"
            if bytes_per_s < self.device.numbers["bandwidth_bytes_per_s"]:
                rate += f", the most of {format_quantity(busy_units(a, self.device), 'compute units')},"
            why = f"{moved} at {rate} take {times['memory']}, its instructions {times['compute']}{more}"
        elif self.bound == "compute":
            why = f"{done} take {times['compute']}, its {moved} of memory {times['memory']}{more}"
        elif self.bound == "local":
            passes = format_quantity(a.wavefronts, "passes")
            why = f"{passes} through local memory take {times['local']}{rest}"
        elif self.bound == "atomics":
            turns = format_quantity(max(a.atomics, a.turns), "atomics")
            why = f"{turns} that take turns need {times['atomics']}{rest}"
        elif self.bound == "launch":
            why = f"a launch costs {times['launch']}{more if len(self.close) > 1 else f', its work {second}'}"
        elif self.waits_for == "idle":
            items, groups = ((a.work_items, "work-items"), (a.work_groups, "work-groups"))
            counted = f"{format_quantity(*items)} in {format_quantity(*groups)}"
            why = f"{counted} do not fill it ({times['latency']}){more}"
        elif self.waits_for == "reads":
            reads = format_quantity(a.reads, "reads")
            why = f"the {reads} of a work-item, a few at once, take {times['latency']}{more}"
        elif a.path_loads > 1:
            loads = format_quantity(a.path_loads, "loads")
            why = f"{loads} that wait for each other take {times['latency']}{more}"
        else:
            longest = format_quantity(a.longest, "instructions")
            why = f"the {longest} of its longest work-item, one after another, take {times['latency']}{more}"
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
            functions = " but mathematical functions" if a.function_elements else ""
            notes.append(f"It does no floating-point operations{functions}.")
        elif self.intensity is not None:
            notes.append(
                f"It does {_two_digits(self.intensity)} flop for each byte that has to be moved; "
                f"{self.device.key} balances at {_two_digits(self.balance)}."
            )
        if kept := kept_bytes(a, self.device):
            notes.append(f"Another {format_quantity(kept, 'B')} of written lines may stay in its cache.")
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
            if memory_rate(a, self.device) < self.device.numbers["bandwidth_bytes_per_s"]:
                advice.append("more work-groups")
            if self.line_use < 1:
                advice.append("neighbouring addresses for neighbouring work-items")
            if self.fits_cache:
                advice.append("running it right after what makes its data, which fit the cache")
            advice += ["fusing it with kernels that use the same data", "narrower types"]
        elif self.bound == "compute":
            share = a.instructions.get("fp", 0.0) + a.instructions.get("sse", 0.0)
            if self.needs_cache and not a.local_bytes:
                advice.append("keeping what is used again in local memory or registers")
            if a.instructions and share < 1 / 3 and 2 * a.doubles < a.issued:
                rest = f"{100 * (1 - share):.0f} % of it is not arithmetic on reals"
                advice.append(f"unrolled loops and simpler addresses ({rest})")
            if a.function_elements > 0.02 * a.operations:
                advice.append("cheaper mathematical functions (native_, half_)")
            if a.double_share > 0.5:
                advice.append("single precision, where it suffices")
            if a.branch_entropy > 0.1 and self.device.type == "gpu":
                advice.append("branches that neighbouring work-items take alike")
            advice.append("an algorithm with fewer operations")
        elif self.bound == "local":
            if a.wavefronts > _MANY_CONFLICTS * a.local_bytes / _WAVEFRONT_BYTES:
                advice.append("rows padded by a word, so that neighbours use different banks")
            advice.append("keeping more in registers")
        elif self.bound == "atomics":
            advice += [
                "adding up in a sub-group before an atomic",
                "several copies of the result",
            ]
        elif self.bound == "launch":
            advice += ["more work in a launch", "fusing it with the kernels around it"]
        else:
            if a.imbalance > 2:
                advice.append(f"even work: the longest work-item has {a.imbalance:.3g} times the median")
            if self.waits_for == "reads":
                advice.append("more work-groups")
            elif self.waits_for == "chain" and a.path_loads > 1:
                advice.append("several independent chains of loads in a work-item")
            else:
                advice.append("more and shorter work-items")
            advice.append("several launches at once")
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


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.10g}"


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
        for name in BOUNDS:
            columns[f"{name}_s"] = [each.limits_s[name] for each in self.verdicts]
        return columns | {"why": [each.text for each in self.verdicts]}


def verdict_of(amounts: LaunchWork, device: Device) -> Verdict:
    """Determine the bound of a kernel on a device.

    Numbers missing from its data sheet are taken from its siblings.
    """
    sheet = filled(device)
    return Verdict(amounts, sheet.device, limits(amounts, sheet.device), sheet.taken)


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
            needed = ", ".join(NEEDED)
            raise InputError.of(
                where=f"profile of {profile.kernel}", expected=f"the metrics {needed}", found="some missing"
            )
        verdicts += [verdict_of(amounts, device) for device in devices]
    return Verdicts(tuple(verdicts))
