"""What an engineer wants to know of a profile first, in about ten lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from crosscast.data.launch_counts import counts_of, kinds_of, work_of
from crosscast.profile import Profile, sampling_sentence
from crosscast.units import format_bytes, format_count, format_quantity, format_seconds

SECTOR, LANES = 32, 32
"""Bytes of the least piece of memory that a device moves, and work-items of the sub-groups that are shown."""
CACHES = (1 << 15, 1 << 20, 1 << 26)
"""Caches behind which bytes are shown."""

LEGEND: Mapping[str, str] = {
    "coalescing": f"Coalescing: bytes asked for, in % of {SECTOR}-byte sectors {LANES} neighbours touch.",
    "SIMD": "SIMD: instructions of work-items, in % of those of all lanes of sub-groups.",
    "reuse": "Reuse: bytes that reach memory behind a cache; with ±, of a sample of lines.",
}
"""How lines are to be read, by their names."""

_PRECISIONS = ("half", "single", "double")
_OUTSIDE = ("global_bytes", "constant_bytes", "generic_bytes")
_PATTERNS = ("contiguous", "uniform", "strided", "irregular")


class _Counts:
    """Numbers of a profile by name; ``None`` where one is not known."""

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
        """Several numbers; ``None`` if one is not known."""
        found = [value for name in names if (value := self[name]) is not None]
        return found if len(found) == len(names) else None

    def sum(self, *names: str) -> float:
        """Sum of those that are known."""
        return sum(self[name] or 0 for name in names)


def summary_of(profile: Profile) -> list[tuple[str, str]]:
    """Name and text of each line; what was not counted, or is not used, has none.

    Parameters
    ----------
    profile
        Of this or a past version, or of another tool.

    Returns
    -------
    list
        Work, bytes, coalescing, efficiency of SIMD, divergence, local memory, atomics, reuse, what decides
        how many work-groups are resident, dependence path and native time, as far as they are known.
    """
    counts = _Counts(profile)
    found = ((name, write(counts)) for name, write in _LINES.items())
    lines = [("sample", sampling_sentence(profile.launch)), *found]
    return [(name, text) for name, text in lines if text]


def _work(counts: _Counts) -> str:
    total, items = counts["total_instruction_count"], counts["work_items"]
    if total is None:
        return ""
    text = format_quantity(total, "instructions")
    if items:
        text += f", {_digits(total / items)} a work-item"
    flops = {name: counts[f"flops_{name}"] for name in _PRECISIONS}
    parts = [f"{format_quantity(n, 'flop')} ({name})" for name, n in flops.items() if n]
    if elements := counts["function_elements"]:
        parts.append(format_quantity(elements, "functions"))
    return f"{text}; {', '.join(parts)}" if parts else text


def _bytes_outside(counts: _Counts) -> float:
    """Bytes asked for of global and constant memory."""
    asked = counts.sum(*_OUTSIDE)
    # An atomic is both a read and a write there, and one access of a sub-group.
    return asked - 4 * counts.sum("instructions_atomics_global")


def _memory(counts: _Counts) -> str:
    if not counts.has_work:
        return ""
    asked, items = counts.sum(*_OUTSIDE), counts["work_items"]
    text = format_quantity(asked, "B")
    if items:
        text += f", {_digits(asked / items)} B a work-item"
    distinct = counts.all("distinct_bytes_global_read", "distinct_bytes_global_written")
    if distinct:
        read, written = (format_quantity(each, "B") for each in distinct)
        text += f"; distinct: {read} read, {written} written"
    return text


def _coalescing(counts: _Counts) -> str:
    of = f"sub_group_{LANES}"
    known = {
        side: found
        for side in ("read", "write")
        if (found := counts.all(f"{of}_accesses_{side}", f"{of}_sectors_32_{side}")) and found[0]
    }
    if not known:
        return ""
    accesses, sectors = (sum(found[place] for found in known.values()) for place in (0, 1))
    lines = counts.sum(f"{of}_lines_128_read", f"{of}_lines_128_write") / accesses
    asked = _bytes_outside(counts)
    unknown = counts["unsized_accesses"] or not asked  # What copies of unknown length ask for
    share = "" if unknown else f"{_percent(min(asked / (SECTOR * sectors), 1))}; "
    each = {side: found[1] / found[0] for side, found in known.items()}
    first = next(iter(each))
    of_sides = ", ".join(
        f"{_several(n, 'sector') if side == first else _digits(n)} a {side}" for side, n in each.items()
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
        of = f"sub_group_{width}"
        found = counts.all(f"{of}_instructions_without_phi", f"{of}_sub_group_instructions_without_phi")
        if found and found[1]:
            parts.append(f"{_percent(found[0] / found[1] / width)} of {width} lanes")
    return ", ".join(parts)


def _divergence(counts: _Counts) -> str:
    extremes, median = counts.all("min_ipt", "max_ipt"), counts["median_ipt"]
    parts = []
    if extremes:
        least, most = (format_count(int(each)) for each in extremes)
        parts.append(f"{least} to {most} instructions" if least != most else f"all run {most} instructions")
        if median is not None and least != most:
            parts[0] += f", median {_digits(median)}"
    entropy = counts["average_linear_branch_entropy"]
    if counts["unique_branches"] and entropy is not None:
        parts.append(f"branch entropy {_digits(entropy)}")
    if (in_step := counts["access_patterns_vectorized"]) is not None:
        parts.append("in step" if in_step else "not in step")
    return "; ".join(parts)


def _local_memory(counts: _Counts) -> str:
    asked, wavefronts = counts["local_bytes"], counts[f"sub_group_{LANES}_local_wavefronts_32_banks"]
    if not asked:
        return ""
    text = format_quantity(asked, "B")
    # Without counts of instructions, atomics of local memory are not told from those of global memory.
    unknown = counts["instructions_atomics"] is None and counts[f"sub_group_{LANES}_atomic_conflicts"]
    accesses = counts.sum("local_accesses", "instructions_atomics_local")
    if not wavefronts or not accesses or unknown:
        return text
    busy = _several(LANES * wavefronts / accesses, "wavefront")
    return f"{text}; {busy} of 32 banks per {LANES} accesses"


def _atomics(counts: _Counts) -> str:
    steps = counts[f"sub_group_{LANES}_atomic_conflicts"]
    if not steps:
        return ""
    executed = counts["instructions_atomics"]
    one_by_one = f"{format_quantity(steps, 'steps')}, as those at one address take turns"
    return f"{format_count(int(executed))} in {one_by_one}" if executed else one_by_one


def _reuse(counts: _Counts) -> str:
    found = [(format_bytes(cache), counts[f"reuse_bytes_128_16_{cache}"]) for cache in CACHES]
    parts = [f"{cache} {format_quantity(n, 'B')}" for cache, n in found if n is not None]
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
    return text if longest is None else f"{text}; {_digits(longest / length)} at once"


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


def _digits(value: float) -> str:
    """Three digits, or the whole number."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _several(value: float, unit: str) -> str:
    text = _digits(value)
    return f"{text} {unit}{'' if text == '1' else 's'}"


def _percent(share: float) -> str:
    """Per cent with two digits at the least, and not 100 where some is missing."""
    text = f"{100 * share:.3g}"
    return f"{'> 99.9' if text == '100' and share < 1 else text} %"
