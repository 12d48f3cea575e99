"""What a run counted, in the form from which the metrics are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crosscast.characterization.engine.abi import CONSTANTS
from crosscast.characterization.engine.layout import ResultLayout, Tally
from crosscast.characterization.engine.sub_group_counts import SubGroupCounts

ADDRESS_LEVELS = CONSTANTS["LEVELS"]
"""Addresses are told apart with 0 to 10 of their lowest bits skipped."""

_COUNTERS, _TOTALS, _PIECES, _PATTERNS, _HISTORIES, _DYNAMIC, _UNIQUE, _DISTINCT, _BEYOND = (
    CONSTANTS[name]
    for name in "COUNTERS TOTALS PIECES PATTERNS HISTORIES DYNAMIC UNIQUE DISTINCT BEYOND".split()
)
"""Kinds of records; what is left are addresses by level."""
_OF_SUB_GROUPS = {
    CONSTANTS[name]: name for name in ("SITE", "ENTRIES", "FORMS", "LONGEST", "INEXACT", "REUSE")
}
_SEQUENCES = CONSTANTS["TABLE"]
"""Sequences of up to 17 outcomes behind a leading 1."""
_SPACES = ("global", "constant", "local")

Histogram = Counter[int]


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of one branch behind 16 others of the same work-group."""

    rarer: int = 0  # How often came, of the two that followed the same 16, the one that came less often
    followed: int = 0  # How many there are
    # How many patterns of 16 outcomes have each count
    patterns: Mapping[int, int] = field(default_factory=dict)


@dataclass
class Counts(Tally):
    """Everything counted in one launch."""

    unique_reads: int = 0  # Distinct addresses read and written
    unique_writes: int = 0
    # Distinct bytes read and written in local memory, and in all other memory that the work-items share
    distinct: Counter[tuple[str, str]] = field(default_factory=Counter)
    # The same read and written of each buffer or variable, and its distinct lines of 64 and of 128 bytes, by
    # its address and size
    distinct_of: dict[tuple[int, int], tuple[int, int, int, int]] = field(default_factory=dict)
    # How many bytes before and behind a buffer were read, by its address
    beyond: dict[int, tuple[int, int]] = field(default_factory=dict)
    # For each number of skipped bits: how many addresses have each number of accesses
    addresses: list[Histogram] = field(default_factory=lambda: [Counter() for _ in range(ADDRESS_LEVELS)])
    # How many pieces between barriers, and work-items, have each number of instructions
    pieces: Histogram = field(default_factory=Counter)
    totals: Histogram = field(default_factory=Counter)
    branch_executions: Counter[int] = field(default_factory=Counter)  # Executions of each static branch
    executions: Counter[str] = field(default_factory=Counter)  # Executions of each block, by its label
    outcomes: dict[int, Outcomes] = field(default_factory=dict)  # Of each history
    # How often each sequence of outcomes occurred, by the outcomes behind a leading 1; if asked for
    histories: dict[int, dict[int, int]] = field(default_factory=dict)
    order: int = 0  # Sum over work-items of the position of their last load or store; 0 if not asked for
    conflict: bool = False  # Threads wrote and used the same memory
    sub_groups: SubGroupCounts = field(default_factory=SubGroupCounts)


def _records(words: npt.NDArray[np.uint64]) -> Iterator[tuple[int, npt.NDArray[np.uint64]]]:
    position = 0
    while position < len(words):
        tag, length = int(words[position]), int(words[position + 1])
        yield tag, words[position + 2 : position + 2 + length]
        position += 2 + length


def read_results(words: npt.NDArray[np.uint64], layout: ResultLayout) -> Counts:
    """Turn the records that the runtime wrote into counts."""
    counts = Counts()
    counters = np.zeros(max(layout.counters, 1), np.uint64)
    for tag, body in _records(words):
        if tag == _COUNTERS:
            counters[: len(body)] += body
        elif tag in (_TOTALS, _PIECES):
            histogram = counts.totals if tag == _TOTALS else counts.pieces
            for key, n in body.reshape(-1, 2).tolist():
                histogram[key] += n
        elif tag == _PATTERNS:
            number, rarer, followed = body[:3].tolist()
            patterns = dict(zip(*body[3:].reshape(-1, 2).T.tolist(), strict=True))
            counts.outcomes[number] = Outcomes(rarer, followed, patterns)
        elif tag == _HISTORIES:
            number, *packed = body.tolist()
            counts.histories[number] = {n % _SEQUENCES: n // _SEQUENCES for n in packed}
        elif tag == _DYNAMIC:
            _read_dynamic(counts, *body.tolist())
        elif tag == _UNIQUE:
            counts.unique_reads, counts.unique_writes = int(body[0]), int(body[1])
            counts.conflict = bool(body[2])
        elif tag in _OF_SUB_GROUPS:
            counts.sub_groups.read(_OF_SUB_GROUPS[tag], body.astype(np.int64).tolist())
        elif tag == _BEYOND:
            counts.beyond[int(body[0])] = int(body[1]), int(body[2])
        elif tag == _DISTINCT:
            place, read, written, start, nbytes, *lines = body.tolist()
            space = "local" if place == CONSTANTS["LOCAL"] else "global"
            if space == "global":
                counts.distinct_of[start, nbytes] = read, written, lines[0], lines[1]
            counts.distinct[space, "read"] += read
            counts.distinct[space, "written"] += written
        else:
            _read_levels(counts, body.reshape(-1, 3).tolist())
    _add_blocks(counts, layout, counters.tolist())
    if layout.instructions_per_item is not None and counters[0]:
        counts.totals = Counter({layout.instructions_per_item: int(counters[0])})
    if not layout.has_several_segments:
        counts.pieces = counts.totals.copy()
    return counts


def _read_dynamic(counts: Counts, *words: int) -> None:
    for number, space in enumerate(_SPACES):
        for total, n in zip((counts.reads, counts.writes, counts.plain), words[3 * number :], strict=False):
            total[space] += n
    counts.private += words[9]


def _read_levels(counts: Counts, rows: list[list[int]]) -> None:
    """Levels from 11 on are granules of 1, 2, 4 and 8 bytes."""
    for level, count, addresses in rows:
        # The addresses of a granule of 2^k bytes are as many with up to k bits skipped.
        for target in [level] if level < ADDRESS_LEVELS else range(level - ADDRESS_LEVELS + 1):
            counts.addresses[target][count] += addresses


def _add_blocks(counts: Counts, layout: ResultLayout, counters: list[int]) -> None:
    for block in layout.blocks:
        times = sum(sign * counters[number] for number, sign in block.executions.items())
        if times:
            counts.add_times(block, times)
            counts.executions[block.label] += times
            if block.branch is not None:
                counts.branch_executions[block.branch] += times
    for number, space in layout.conditional_writes.items():
        counts.writes[space] += counters[number]
    if layout.order_counter is not None:
        counts.order = counters[layout.order_counter]
