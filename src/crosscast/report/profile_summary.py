"""Summary of a profile in about ten lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from crosscast.data.launch_counts import counts_of, kinds_of, work_of
from crosscast.devices.launch_work import PRECISIONS
from crosscast.profile import Profile, sampling_sentence
from crosscast.report.fields import three_digits
from crosscast.units import format_bytes, format_count, format_quantity, format_seconds

SECTOR, LANES = 32, 32
"""Size of a memory sector in bytes, and size of the sub-groups shown in work-items."""
CACHES = (1 << 15, 1 << 20, 1 << 26)
"""Sizes of the caches, in bytes, whose misses are shown."""

LEGEND: Mapping[str, str] = {
    "coalescing": f"Coalescing: bytes asked for, in % of {SECTOR}-byte sectors {LANES} neighbours touch.",
    "SIMD": "SIMD: instructions of work-items, in % of those of all lanes of sub-groups.",
    "reuse": "Reuse: bytes that reach memory behind a cache; with ±, of a sample of lines.",
}
"""Explanations of the lines by name."""

_OUTSIDE = ("global_bytes", "constant_bytes", "generic_bytes")
_ATOMICS = {
    space: [f"instructions_atomics_{space}{kind}" for kind in ("", "_uniform", "_fp", "_compare")]
    for space in ("global", "local")
}
_USUAL_ATOMIC = 4
"""Bytes of most atomics."""
_PLAIN = tuple(
    f"instructions_{kind}_{space}_"
    for kind in ("loads", "stores")
    for space in ("global", "constant", "generic")
)
_PATTERNS = ("contiguous", "uniform", "strided", "irregular")


class _Counts:
    """Numbers of a profile by name; ``None`` where not known."""

    def __init__(self, profile: Profile) -> None:
        work = work_of(profile.launch)
        self.has_work = bool(work)
        self.is_estimated = bool(profile.launch.get("sub_groups_estimated"))
        self._values: dict[str, float | None] = {
            **profile.metrics,
            **work,
            **kinds_of(profile.launch),
            **counts_of(profile.launch),
        }

    def __getitem__(self, name: str) -> float | None:
        return self._values.get(name)

    def all(self, *names: str) -> list[float] | None:
        """Return several numbers; ``None`` if any is not known."""
        values = [value for name in names if (value := self[name]) is not None]
        return values if len(values) == len(names) else None

    def sum(self, *names: str) -> float:
        """Sum the known ones of several numbers."""
        return sum(self[name] or 0 for name in names)

    def plain_bytes(self) -> float:
        """Sum the bytes of loads and stores of global and constant memory."""
        return sum(
            (self[name] or 0) * int(name.rpartition("_")[2])
            for name in self._values
            if name.startswith(_PLAIN)
        )


def summary_of(profile: Profile) -> list[tuple[str, str]]:
    """Make the lines of the summary, as names and texts, without unknown counts or unused features."""
    counts = _Counts(profile)
    texts = ((name, write(counts)) for name, write in _LINES.items())
    lines = [("sample", sampling_sentence(profile.launch)), *texts]
    return [(name, text) for name, text in lines if text]


def _work(counts: _Counts) -> str:
    total, items = counts["total_instruction_count"], counts["work_items"]
    if total is None:
        return ""
    text = format_quantity(total, "instructions")
    if items:
        text += f", {three_digits(total / items)} a work-item"
    flops = {name: counts[f"flops_{name}"] for name in PRECISIONS}
    parts = [f"{format_quantity(n, 'flop')} ({name})" for name, n in flops.items() if n]
    if elements := counts["function_elements"]:
        parts.append(format_quantity(elements, "functions"))
    return f"{text}; {', '.join(parts)}" if parts else text


def _bytes_outside(counts: _Counts) -> float:
    """Bytes requested from global and constant memory."""
    requested, atomics = counts.sum(*_OUTSIDE), counts.sum(*_ATOMICS["global"])
    if not atomics:
        return requested
    if counts["instructions_images"] or counts["instructions_copies"]:
        return requested - _USUAL_ATOMIC * atomics
    # Bytes count an atomic as a read and a write, and a compare-exchange once. Failed ones cannot be told
    # from other atomics of integers, but these are rarely narrower than usual.
    plain, compared = counts.plain_bytes(), counts.sum("instructions_atomics_global_compare")
    width = (requested - plain) / (2 * atomics - compared)
    has_integers = counts["instructions_atomics_global_fp"] != atomics
    return plain + atomics * (max(width, _USUAL_ATOMIC) if has_integers else width)


def _memory(counts: _Counts) -> str:
    if not counts.has_work:
        return ""
    requested, items = counts.sum(*_OUTSIDE), counts["work_items"]
    text = format_quantity(requested, "B")
    if items:
        text += f", {three_digits(requested / items)} B a work-item"
    distinct = counts.all("distinct_bytes_global_read", "distinct_bytes_global_written")
    if distinct:
        read, written = (format_quantity(size, "B") for size in distinct)
        text += f"; distinct: {read} read, {written} written"
    return text


def _coalescing(counts: _Counts) -> str:
    prefix = f"sub_group_{LANES}"
    known = {
        side: pair
        for side in ("read", "write")
        if (pair := counts.all(f"{prefix}_accesses_{side}", f"{prefix}_sectors_32_{side}")) and pair[0]
    }
    if not known:
        return ""
    accesses, sectors = map(sum, zip(*known.values(), strict=True))
    lines = counts.sum(f"{prefix}_lines_128_read", f"{prefix}_lines_128_write") / accesses
    requested = _bytes_outside(counts)
    # Copies of unknown length request an unknown number of bytes.
    is_unknown = counts["unsized_accesses"] or not requested
    share = "" if is_unknown else f"{_percent(min(requested / (SECTOR * sectors), 1))}; "
    per_access = {side: side_sectors / side_accesses for side, (side_accesses, side_sectors) in known.items()}
    first = next(iter(per_access))
    of_sides = ", ".join(
        f"{_several(n, 'sector') if side == first else three_digits(n)} a {side}"
        for side, n in per_access.items()
    )
    estimated = " (estimated)" if counts.is_estimated else ""
    return f"{share}{of_sides}; {_several(lines, 'line')} of 128 B{estimated}"


def _neighbours(counts: _Counts) -> str:
    pairs = {name: counts[f"access_patterns_{name}"] or 0 for name in _PATTERNS}
    total = sum(pairs.values())
    if not total:
        return ""
    strides = counts["access_patterns_stride_bytes"]
    names = {name: name for name in pairs}
    if pairs["strided"] and strides is not None:
        names["strided"] = f"by {format_quantity(strides / pairs['strided'], 'B')}"
    return ", ".join(f"{_percent(n / total)} {names[name]}" for name, n in pairs.items() if n)


def _simd(counts: _Counts) -> str:
    parts = []
    for width in (32, 64):
        names = ("instructions_without_phi", "sub_group_instructions_without_phi")
        pair = counts.all(*(f"sub_group_{width}_{name}" for name in names))
        if pair and pair[1]:
            parts.append(f"{_percent(pair[0] / pair[1] / width)} of {width} lanes")
    return ", ".join(parts)


def _divergence(counts: _Counts) -> str:
    extremes, median = counts.all("min_ipt", "max_ipt"), counts["median_ipt"]
    parts = []
    if extremes:
        least, most = (format_count(int(value)) for value in extremes)
        parts.append(f"{least} to {most} instructions" if least != most else f"all run {most} instructions")
        if median is not None and least != most:
            parts[0] += f", median {three_digits(median)}"
    entropy = counts["average_linear_branch_entropy"]
    if counts["unique_branches"] and entropy is not None:
        parts.append(f"branch entropy {three_digits(entropy)}")
    if (in_step := counts["access_patterns_vectorized"]) is not None:
        parts.append("in step" if in_step else "not in step")
    return "; ".join(parts)


def _local_memory(counts: _Counts) -> str:
    requested, wavefronts = counts["local_bytes"], counts[f"sub_group_{LANES}_local_wavefronts_32_banks"]
    if not requested:
        return ""
    text = format_quantity(requested, "B")
    # Without counts of instructions, local and global atomics cannot be distinguished.
    is_unknown = counts["instructions_atomics"] is None and counts[f"sub_group_{LANES}_atomic_conflicts"]
    accesses = counts.sum("local_accesses", *_ATOMICS["local"])
    # Copies access local memory an unknown number of times.
    if not wavefronts or not accesses or is_unknown or counts["unsized_accesses"]:
        return text
    per_access = _several(LANES * wavefronts / accesses, "wavefront")
    return f"{text}; {per_access} of 32 banks per {LANES} accesses"


def _atomics(counts: _Counts) -> str:
    steps = counts[f"sub_group_{LANES}_atomic_conflicts"]
    if not steps:
        return ""
    executed = counts["instructions_atomics"]
    one_by_one = f"{format_quantity(steps, 'steps')}, as those at one address take turns"
    return f"{format_count(int(executed))} in {one_by_one}" if executed else one_by_one


def _reuse(counts: _Counts) -> str:
    misses = [(format_bytes(cache), counts[f"reuse_bytes_128_16_{cache}"]) for cache in CACHES]
    parts = [f"{cache} {format_quantity(n, 'B')}" for cache, n in misses if n is not None]
    error = counts["reuse_error"]
    return f"behind {', '.join(parts)}{f' (± {_percent(error)})' if error else ''}" if parts else ""


def _occupancy(counts: _Counts) -> str:
    items = counts["geometry_group_items"]
    if items is None:
        return ""
    local = counts.sum("geometry_local_bytes_static", "geometry_local_bytes_arguments")
    sub_groups = format_quantity(math.ceil(items / LANES), "sub-groups")
    text = f"{sub_groups}, {format_bytes(int(local)) if local else 'no'} local memory"
    if (registers := counts["geometry_registers"]) is not None:
        text += f"; {format_quantity(registers, 'registers')}"
    if private := counts["geometry_private_bytes"]:
        text += f", {format_bytes(int(private))} private"
    return text


def _path(counts: _Counts) -> str:
    length, longest = counts["path_instructions"], counts["max_ipt"]
    if not length:
        return ""
    loads = counts.sum("path_loads_global", "path_loads_constant")
    text = f"{format_quantity(length, 'instructions')} one after another"
    if loads:
        text += f", {format_count(int(loads))} of them {'loads' if loads > 1 else 'a load'}"
    return text if longest is None else f"{text}; {three_digits(longest / length)} at once"


def _host(counts: _Counts) -> str:
    time_s, threads = counts["host_time_s"], counts["host_threads"]
    if time_s is None:
        return ""
    text = f"{format_seconds(time_s)} natively on this machine"
    return text if threads is None else f"{text}, {format_quantity(threads, 'threads')}"


_LINES: Mapping[str, Callable[[_Counts], str]] = {
    "work": _work,
    "bytes": _memory,
    "coalescing": _coalescing,
    "neighbours": _neighbours,
    "SIMD": _simd,
    "divergence": _divergence,
    "local memory": _local_memory,
    "atomics": _atomics,
    "reuse": _reuse,
    "occupancy": _occupancy,
    "path": _path,
    "host": _host,
}


def _several(value: float, unit: str) -> str:
    text = three_digits(value)
    return f"{text} {unit}{'' if text == '1' else 's'}"


def _percent(share: float) -> str:
    """Write a share in per cent with three digits, but not as 100 where it is less than 1."""
    text = f"{100 * share:.3g}"
    return f"{'> 99.9' if text == '100' and share < 1 else text} %"
