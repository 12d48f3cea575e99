"""What a run counted, in the form from which the metrics are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from crosscast.characterization.engine.sub_group_counts import SubGroupCounts
from crosscast.characterization.instrumentation.context import CONSTANTS

if TYPE_CHECKING:
    from crosscast.characterization.instrumentation.instrumented import Instrumented

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

CLASSES = ("sse", "alu", "mem", "fp", "stack", "string", "shift", "control")
"""Classes of the instruction mix, in the order of Table 4 of Moolchandani et al. 2022."""

OTHER = "other"
"""What is none of them: a phi, or a change of type that costs nothing."""

Histogram = Counter[int]


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of one branch behind 16 others of the same work-group."""

    rarer: int = 0  # How often came, of the two that followed the same 16, the one that came less often
    followed: int = 0  # How many there are
    # How many patterns of 16 outcomes have each count
    patterns: Mapping[int, int] = field(default_factory=dict)


@dataclass
class Tally:
    """Instructions, accesses and barriers, by kind."""

    # Executed instructions by opcode, by width of the result, and by class of the instruction mix
    opcodes: Counter[str] = field(default_factory=Counter)
    widths: Counter[int] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    # Read events, write events, and load and store instructions, by address space
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    plain: Counter[str] = field(default_factory=Counter)
    # Floating-point operations by precision, elements of mathematical functions, and bytes by address space
    work: Counter[str] = field(default_factory=Counter)
    # Executed instructions by kind and elements of each
    kinds: Counter[tuple[str, int]] = field(default_factory=Counter)
    private: int = 0  # Load and store instructions to private memory
    barriers: int = 0  # Barriers hit

    @property
    def instructions(self) -> int:
        """Executed instructions."""
        return sum(self.opcodes.values())

    @property
    def accesses(self) -> int:
        """Read and write events."""
        return sum(self.reads.values()) + sum(self.writes.values())

    def add_times(self, other: Tally, times: int) -> None:
        """Add another tally, so many times."""
        for name in ("opcodes", "widths", "classes", "reads", "writes", "plain", "work", "kinds"):
            total = getattr(self, name)
            for key, n in getattr(other, name).items():
                total[key] += n * times
        self.private += other.private * times
        self.barriers += other.barriers * times


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


def read_results(words: npt.NDArray[np.uint64], made: Instrumented) -> Counts:
    """Turn the records that the runtime wrote into counts."""
    counts = Counts()
    counters = np.zeros(max(made.counters.count, 1), np.uint64)
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
    _add_blocks(counts, made, counters.tolist())
    if made.even_total is not None and counters[0]:
        counts.totals = Counter({made.even_total: int(counters[0])})
    if len(made.segments) == 1:
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


def _add_blocks(counts: Counts, made: Instrumented, counters: list[int]) -> None:
    for label, block in zip(made.labels, made.blocks, strict=True):
        times = sum(sign * counters[number] for number, sign in block.executions.items())
        if times:
            counts.add_times(block, times)
            counts.executions[label] += times
            if block.branch is not None:
                counts.branch_executions[block.branch] += times
    for number, space in made.counters.conditional_writes.items():
        counts.writes[space] += counters[number]
    if made.counters.order is not None:
        counts.order = counters[made.counters.order]
