"""Counts of a run, from which the metrics are computed."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crosscast.characterization.engine.layout import (
    CONSTANTS,
    SUB_GROUP_INSTRUCTIONS,
    BlockCosts,
    ResultLayout,
    SubGroupLayout,
    Tally,
)
from crosscast.data.launch_counts import PATTERNS, REUSE_CACHES, REUSE_GROUPS, SUB_GROUPS

ADDRESS_LEVELS = CONSTANTS["LEVELS"]
"""Addresses are distinguished with 0 to 10 of their lowest bits skipped."""

_COUNTERS, _TOTALS, _PIECES, _PATTERNS, _HISTORIES, _DYNAMIC, _UNIQUE, _DISTINCT, _BEYOND, _IN_CHANNEL = (
    CONSTANTS[name]
    for name in "COUNTERS TOTALS PIECES PATTERNS HISTORIES DYNAMIC UNIQUE DISTINCT BEYOND IN_CHANNEL".split()
)
"""Kinds of records; all others are addresses by level."""
_OF_SUB_GROUPS = {
    CONSTANTS[name]: name for name in ("SITE", "ENTRIES", "FORMS", "LONGEST", "INEXACT", "REUSE")
}
_SEQUENCES = CONSTANTS["TABLE"]
"""Sequences of up to 17 outcomes behind a leading 1."""
_SPACES = ("global", "constant", "local")

COUNTED = (
    *("accesses_read", "accesses_write", "sectors_32_read", "sectors_32_write", "lines_64_read"),
    *("lines_64_write", "lines_128_read", "lines_128_write", "local_wavefronts_32_banks"),
    *("instructions_without_phi", *SUB_GROUP_INSTRUCTIONS, "atomic_conflicts"),
    "atomic_accesses",
    "same_address_read",
    "sectors_32_read_only",
)
"""Counts by sub-groups."""

_CACHE_NAMES = ("first", *map(str, REUSE_CACHES))
_OF_WIDTH = 5

Histogram = Counter[int]


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of one branch behind 16 others of the same work-group."""

    rarer: int = 0  # Sum over patterns of the count of the rarer outcome behind each
    followed: int = 0  # Number of outcomes
    # Number of patterns of 16 outcomes with each count
    patterns: Mapping[int, int] = field(default_factory=dict)


@dataclass
class SubGroupCounts:
    """Counts by sub-groups, of all threads."""

    sites: dict[int, list[int]] = field(default_factory=dict)
    entries: list[int] = field(default_factory=list)  # By width and index
    forms: list[int] = field(default_factory=list)  # By width and form
    # Instructions and group of one work-item, then its counts
    longest: list[int] = field(default_factory=list)
    reuse: list[int] = field(default_factory=list)  # See `reuse.c`
    overflow: int = 0  # Words that did not fit into a stream; 1 for rows

    def read(self, name: str, words: list[int]) -> None:
        """Read a record of one thread."""
        match name:
            case "SITE":
                site, *rest = words
                _add(self.sites.setdefault(site, []), rest)
            case "ENTRIES":
                _add(self.entries, words)
            case "FORMS":
                _add(self.forms, words)
            case "LONGEST":
                # Ties go to the first work-group.
                if not self.longest or (-words[0], words[1]) < (-self.longest[0], self.longest[1]):
                    self.longest = words
            case "REUSE":
                self.reuse = words
            case _:
                self.overflow = max(self.overflow, *words)

    def executions_of_longest(self, layout: SubGroupLayout, blocks: Iterable[BlockCosts]) -> dict[str, int]:
        """Return the executions of each block by the work-item with the most instructions, by label."""
        columns, alike = layout.columns, layout.alike
        _, _, *counted = self.longest
        executions: Counter[str] = Counter()
        for block in blocks:
            for counter, sign in block.executions.items():
                index = alike[counter] if counter in alike else len(alike) + columns[counter]
                executions[block.label] += sign * counted[index]
        return dict(executions)

    def by_width(
        self, layout: SubGroupLayout, instructions: int, sub_groups: Sequence[int]
    ) -> dict[str, dict[str, int]]:
        """Return counts by width, given `instructions` without phis, and `sub_groups` by width."""
        by_width = {}
        alike, forms = len(layout.alike), len(layout.forms)
        for number, width in enumerate(SUB_GROUPS):
            counts = dict.fromkeys(COUNTED, 0)
            same: Counter[int] = Counter()
            for site, words in self.sites.items():
                accesses, sectors, lines_64, lines_128, conflicts = words[number * _OF_WIDTH :][:_OF_WIDTH]
                access = layout.sites[site]
                counts["atomic_conflicts"] += conflicts
                if access.is_local:
                    counts["local_wavefronts_32_banks"] += sectors
                    continue
                side = "write" if access.is_written else "read"
                counts[f"accesses_{side}"] += accesses
                if access.is_read_only:
                    counts["sectors_32_read_only"] += sectors
                elif access.is_shared:
                    same[access.buffer] += accesses
                counts["atomic_accesses"] += accesses if access.is_atomic else 0
                counts[f"sectors_32_{side}"] += sectors
                counts[f"lines_64_{side}"] += lines_64
                counts[f"lines_128_{side}"] += lines_128
            counts["same_address_read"] = max(same.values(), default=0)
            entries = self.entries[number * alike :][:alike]
            if alike and not any(self.entries):  # one segment, which all run, is not counted by group
                entries = [sub_groups[number]]
            counts["instructions_without_phi"] = instructions
            weights = [*layout.weights, *(form.weights for form in layout.forms)]
            executions = [*entries, *self.forms[number * forms :][:forms]]
            for of_each, times in zip(weights, executions, strict=True):
                for name, weight in zip(SUB_GROUP_INSTRUCTIONS, of_each, strict=True):
                    counts[name] += weight * times
            by_width[str(width)] = counts
        return by_width

    def reuse_bytes(self, distinct: Mapping[str, int], moved: Sequence[int]) -> dict[str, object]:
        """Return the bytes that reach memory behind caches, by line size, concurrent groups, and cache size.

        Sampled lines are scaled to all of them: `distinct`, by size. If none was, as they are
        few, they stay in every cache: the distinct bytes read and written are `moved` once, and each line. A
        cache that holds all lines misses each once, however few were sampled.
        """
        rate, *rest = self.reuse
        lines: dict[str, dict[str, dict[str, int]]] = {"128": {}, "64": {}}
        for number, groups in enumerate(REUSE_GROUPS):
            for half, (line, traffic) in enumerate(lines.items()):
                start = (2 * number + half) * (2 + len(REUSE_CACHES))
                sampled_lines, first, *sizes = rest[start : start + 2 + len(REUSE_CACHES)]
                if distinct[line] and not sampled_lines:
                    filled = sum(-(-nbytes // int(line)) for nbytes in moved)
                    first, *sizes = [max(filled, distinct[line])] * (1 + len(REUSE_CACHES))
                held = bisect.bisect_left(REUSE_CACHES, distinct[line] * int(line))
                weight = int(line) * (
                    1 if rate == 1 or not sampled_lines else max(distinct[line] / sampled_lines, 1)
                )
                reaching = [first, *sizes[:held], *[first] * (len(REUSE_CACHES) - held)]
                traffic[str(groups)] = {
                    name: round(n * weight) for name, n in zip(_CACHE_NAMES, reaching, strict=True)
                }
        return {
            "bytes": lines,
            "rate": 1 / rate,
            "error": 0.0 if rate == 1 else 1 / math.sqrt(rest[0]) if rest[0] else None,
        }

    def patterns(self, layout: SubGroupLayout) -> Mapping[str, int]:
        """Count pairs of neighbours by the difference of their global addresses, and sum bytes of strides."""
        patterns = dict.fromkeys((*PATTERNS, "stride_bytes"), 0)
        for site, words in self.sites.items():
            if not layout.sites[site].is_local:
                for name, n in zip(patterns, words[2 * _OF_WIDTH : -3], strict=True):
                    patterns[name] += n
        return patterns

    def walks(self, layout: SubGroupLayout) -> Mapping[str, int | float]:
        """Sum the distances of successive accesses of a work-item; average logarithms of walks, by bytes.

        Of their bytes, and of the largest power of two that divides all distances of a walk.
        """
        sites = [words for site, words in self.sites.items() if not layout.sites[site].is_local]
        moved, walks, aligned = (sum(words[column] for words in sites) for column in (-3, -2, -1))
        return {
            "moved_bytes": moved,
            "mean_walk_log2": walks / moved if moved else 0.0,
            "mean_alignment_log2": aligned / moved if moved else 0.0,
        }


def _add(to: list[int], words: Sequence[int]) -> None:
    to[:] = [a + b for a, b in zip(to, words, strict=True)] if to else words


@dataclass
class Counts(Tally):
    """Counts of one launch."""

    unique_reads: int = 0  # Distinct addresses read and written
    unique_writes: int = 0
    # Distinct bytes read and written in local memory, and in all other memory that the work-items share
    distinct: Counter[tuple[str, str]] = field(default_factory=Counter)
    # Distinct bytes read and written of each buffer or variable, and its distinct lines of 64 and of 128
    # bytes, by its address and size
    distinct_of: dict[tuple[int, int], tuple[int, int, int, int]] = field(default_factory=dict)
    # The most accesses of an address of each
    most_of: dict[tuple[int, int], int] = field(default_factory=dict)
    # Distinct lines of 128 bytes in which accesses start, by memory channel, if blocks of 256 bytes take
    # channels in turn
    lines_in_channel: list[int] = field(default_factory=list)
    # Bytes read before and behind a buffer, by its address
    beyond: dict[int, tuple[int, int]] = field(default_factory=dict)
    # For each number of skipped bits: number of addresses with each number of accesses
    addresses: list[Histogram] = field(default_factory=lambda: [Counter() for _ in range(ADDRESS_LEVELS)])
    # Numbers of pieces between barriers, and of work-items, with each number of instructions
    pieces: Histogram = field(default_factory=Counter)
    totals: Histogram = field(default_factory=Counter)
    branch_executions: Counter[int] = field(default_factory=Counter)  # Executions of each static branch
    executions: Counter[str] = field(default_factory=Counter)  # Executions of each block, by its label
    outcomes: dict[int, Outcomes] = field(default_factory=dict)  # Of each history
    # Occurrences of each sequence of outcomes, by the outcomes behind a leading 1; optional
    histories: dict[int, dict[int, int]] = field(default_factory=dict)
    order: int = 0  # Sum over work-items of the position of their last load or store; optional
    conflict: bool = False  # Threads wrote and used the same memory
    sub_groups: SubGroupCounts = field(default_factory=SubGroupCounts)

    @property
    def channel_share(self) -> float | None:
        """Chance that two lines are in one memory channel."""
        lines = sum(self.lines_in_channel)
        pairs = sum(n * (n - 1) for n in self.lines_in_channel)
        return pairs / (lines * (lines - 1)) if lines > 1 else None


def _records(words: npt.NDArray[np.uint64]) -> Iterator[tuple[int, list[int]]]:
    """Yield tag and words of each record; those of sub-groups have a sign."""
    unsigned, signed, position = words.data, words.view(np.int64).data, 0
    while position < len(words):
        tag, end = unsigned[position], position + 2 + unsigned[position + 1]
        yield tag, (signed if tag in _OF_SUB_GROUPS else unsigned)[position + 2 : end].tolist()
        position = end


def read_results(words: npt.NDArray[np.uint64], layout: ResultLayout) -> Counts:
    """Turn the records that the runtime wrote into counts."""
    counts = Counts()
    counters = [0] * max(layout.counters, 1)
    for tag, body in _records(words):
        if tag == _COUNTERS:
            counters = [a + b for a, b in itertools.zip_longest(counters, body, fillvalue=0)]
        elif tag in (_TOTALS, _PIECES):
            histogram = counts.totals if tag == _TOTALS else counts.pieces
            histogram.update(dict(zip(body[::2], body[1::2], strict=True)))
        elif tag == _PATTERNS:
            number, rarer, followed = body[:3]
            patterns = dict(zip(body[3::2], body[4::2], strict=True))
            counts.outcomes[number] = Outcomes(rarer, followed, patterns)
        elif tag == _HISTORIES:
            number, *packed = body
            counts.histories[number] = {n % _SEQUENCES: n // _SEQUENCES for n in packed}
        elif tag == _DYNAMIC:
            _read_dynamic(counts, *body)
        elif tag == _UNIQUE:
            counts.unique_reads, counts.unique_writes = body[:2]
            counts.conflict = bool(body[2])
        elif tag in _OF_SUB_GROUPS:
            counts.sub_groups.read(_OF_SUB_GROUPS[tag], body)
        elif tag == _IN_CHANNEL:
            counts.lines_in_channel = body
        elif tag == _BEYOND:
            counts.beyond[body[0]] = body[1], body[2]
        elif tag == _DISTINCT:
            memory, read, written, start, nbytes, *lines, most = body
            space = "local" if memory == CONSTANTS["LOCAL"] else "global"
            if space == "global":
                counts.distinct_of[start, nbytes] = read, written, lines[0], lines[1]
                counts.most_of[start, nbytes] = most
            counts.distinct[space, "read"] += read
            counts.distinct[space, "written"] += written
        else:
            _read_levels(counts, body)
    _add_blocks(counts, layout, counters)
    if layout.instructions_per_item is not None and counters[0]:
        counts.totals = Counter({layout.instructions_per_item: counters[0]})
    if not layout.has_several_segments:
        counts.pieces = counts.totals.copy()
    return counts


def _read_dynamic(counts: Counts, *words: int) -> None:
    for number, space in enumerate(_SPACES):
        for total, n in zip((counts.reads, counts.writes, counts.plain), words[3 * number :], strict=False):
            total[space] += n
    counts.private += words[9]
    if words[10]:
        counts.work["global_bytes"] += words[10]  # Of texels


def _read_levels(counts: Counts, words: list[int]) -> None:
    """Add histograms of addresses; levels from 11 on are granules of 1, 2, 4 and 8 bytes."""
    levels, accesses, addresses, start = words[::3], words[1::3], words[2::3], 0
    while start < len(levels):
        level = levels[start]
        end = bisect.bisect(levels, level, start)
        histogram = dict(zip(accesses[start:end], addresses[start:end], strict=True))
        # The number of addresses of granules of 2^k bytes is the same with up to k bits skipped.
        for target in [level] if level < ADDRESS_LEVELS else range(level - ADDRESS_LEVELS + 1):
            counts.addresses[target].update(histogram)
        start = end


def _add_blocks(counts: Counts, layout: ResultLayout, counters: list[int]) -> None:
    for block in layout.blocks:
        times = sum(sign * counters[number] for number, sign in block.executions.items())
        if times:
            counts.add_times(block, times)
            counts.executions[block.label] += times
            if block.branch is not None:
                counts.branch_executions[block.branch] += times
    succeeded: Counter[str] = Counter()
    for number, space in layout.conditional_writes.items():
        succeeded[space] += counters[number]
    counts.writes.update(succeeded)
    for space, n in succeeded.items():
        # One that fails here, where work-items do not interfere, is not part of a loop until it succeeds.
        compared = f"atomics.{space}_compare", 1
        failed = counts.kinds[compared] - n
        counts.kinds += Counter({(f"atomics.{space}", 1): failed, compared: -failed})
    if layout.order_counter is not None:
        counts.order = counters[layout.order_counter]
