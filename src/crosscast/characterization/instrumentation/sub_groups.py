"""What sub-groups of 32 and 64 work-items do: which accesses and executions are recorded for that, and how.

Of accesses the runtime needs the addresses by work-item, in the order in which each made them: rows tell
them (`row_code`); all others are kept while a segment runs, in one of three ways. Of blocks it needs how
often each work-item ran them, which follows from the counted edges; these have a column each, a place a
work-item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from crosscast.characterization import ir
from crosscast.characterization.builtins.declarations import parse
from crosscast.characterization.instrumentation.accesses import MemoryAccess, PointerClass
from crosscast.characterization.instrumentation.block_costs import BlockCosts
from crosscast.characterization.instrumentation.context import CONSTANTS, MAX_ITEMS, Code
from crosscast.characterization.instrumentation.inline import builtin_name
from crosscast.characterization.instrumentation.prelude import Scopes

_WRITES, _LOCAL, _ATOMIC, _DYNAMIC = (
    CONSTANTS[f"SITE_{name}"] for name in ("WRITES", "LOCAL", "ATOMIC", "DYNAMIC")
)
ONCE, STREAM, RUNS = (CONSTANTS[name] for name in ("ONCE", "STREAM", "RUNS"))
"""How a segment leaves what its work-items access at a site: at most one address each, any number of them, or
runs of them at equal distances.
"""
_SECTOR = 32


class Site(NamedTuple):
    """A static access, as the runtime reads it."""

    flags: int
    nbytes: int
    shift: int  # Logarithm of the alignment of its addresses, as far as a sector goes
    buffer: str = ""  # Parameter of the buffer that it accesses, if it can be one only

    @property
    def is_local(self) -> bool:
        """Whether it is in local memory."""
        return bool(self.flags & _LOCAL)

    @property
    def is_written(self) -> bool:
        """Whether it writes; atomics do."""
        return bool(self.flags & _WRITES)


class Recorded(NamedTuple):
    """An access that a segment leaves to the runtime."""

    segment: int
    site: int
    mode: int
    place: int  # Position among those of its mode, or among all streams
    order: int  # Where it stands in the segment


@dataclass(frozen=True)
class Form:
    """Executions of blocks that differ between work-items: a sum of columns."""

    terms: tuple[tuple[int, int], ...]  # Column and coefficient
    weight: int  # Instructions that one execution stands for


@dataclass
class Executions:
    """How executions of blocks by work-items follow from what is counted."""

    # For each counter: its column if work-items differ, or else its place among what a group counts once
    columns: dict[int, int] = field(default_factory=dict)
    alike: dict[int, int] = field(default_factory=dict)
    forms: list[Form] = field(
        default_factory=list
    )  # The first one is of all instructions, and weighs nothing
    weights: list[int] = field(default_factory=list)  # By place: instructions, phis left out
    totals: list[int] = field(default_factory=list)  # The same with phis

    def plan(self, blocks: Iterable[BlockCosts]) -> None:
        """Work the forms out; copies of a block in several segments are one block."""
        sums: dict[tuple[tuple[int, int], ...], int] = {}
        total: Counter[int] = Counter()
        self.weights, self.totals = [0] * len(self.alike), [0] * len(self.alike)
        by_label: dict[str, list[BlockCosts]] = {}
        for block in blocks:
            by_label.setdefault(block.label, []).append(block)
        for copies in by_label.values():
            instructions = copies[0].instructions
            weight = instructions - copies[0].opcodes["phi"]
            terms: Counter[int] = Counter()
            for copy in copies:
                for counter, sign in copy.executions.items():
                    if (place := self.alike.get(counter)) is not None:
                        self.weights[place] += sign * weight
                        self.totals[place] += sign * instructions
                    else:
                        terms[self.columns[counter]] += sign
            key = tuple(sorted((column, sign) for column, sign in terms.items() if sign))
            if key:
                sums[key] = sums.get(key, 0) + weight
            for column, sign in terms.items():
                total[column] += sign * instructions
        if sums:
            self.forms = [Form(tuple(sorted(total.items())), 0), *(Form(*item) for item in sums.items())]


class SubGroups:
    """The sites of a kernel, and how each segment records them."""

    def __init__(self, scopes: Scopes, stream_words: int) -> None:
        self._scopes = scopes
        self.stream_words = stream_words
        self.sites: list[Site] = []
        self.recorded: list[Recorded] = []
        self._by_segment: dict[int, list[Recorded]] = {}
        self.executions = Executions()
        self.streams = self.once = 0  # How many are recorded as streams, and the other way
        self._copies: Counter[int] = Counter()

    def number(self, access: MemoryAccess, cls: PointerClass, members: set[str]) -> MemoryAccess:
        """An access with its site."""
        return replace(access, site=self._add(access, cls, members))

    def _add(self, access: MemoryAccess, cls: PointerClass, members: set[str]) -> int:
        number = len(self.sites)
        if cls.place == "private":
            return -1
        atomic = access.kind in ("read-write", "compare-exchange")
        flags = _WRITES * (access.kind != "read") + _ATOMIC * atomic + _LOCAL * (cls.place == "local")
        alignment = min(max(access.alignment, 1), _SECTOR)
        buffer = min(members) if len(members) == 1 and cls.place == "buffer" else ""
        site = Site(flags, access.nbytes or 1, alignment.bit_length() - 1, buffer)
        self.sites.append(site)
        if cls.place == "dynamic":  # the one of local memory stands behind
            self.sites[-1:] = [site._replace(flags=flags | _DYNAMIC), site._replace(flags=flags | _LOCAL)]
        return number

    def texel_site(self, instruction: ir.Instruction) -> int | None:
        """A site for the texels that a call reads or writes; ``None`` if it is no such call."""
        name = builtin_name(instruction.callee)
        if not name.startswith(("read_image", "write_image")) or instruction.opcode != "call":
            return None
        declaration = parse(instruction.callee)
        if declaration is None or not declaration.parameters[0].base.startswith("ocl_image"):
            return None
        self.sites.append(Site(_WRITES * name.startswith("write"), 1, 0))
        return len(self.sites) - 1

    def note_copies(self, instructions: Iterable[ir.Instruction]) -> None:
        """Note the accesses of a segment, of which others may have copies."""
        self._copies.update(access.site for i in instructions for access in i.accesses)

    def is_copied(self, site: int) -> bool:
        """Whether several segments have an access."""
        return self._copies[site] > 1

    def record(self, segment: int, site: int, mode: int, order: int) -> int:
        """Note that a segment records a site, and return the place where that is kept."""
        place = self.streams if mode != ONCE else self.once
        self.streams, self.once = self.streams + (mode != ONCE), self.once + (mode == ONCE)
        self.recorded.append(Recorded(segment, site, mode, place, order))
        self._by_segment.setdefault(segment, []).append(self.recorded[-1])
        return place

    def of_segment(self, segment: int) -> list[Recorded]:
        """What a segment records."""
        return self._by_segment.get(segment, [])

    def append(self, code: Code, place: int, values: Sequence[str], position: str) -> str:
        """Append words to a stream; returns the position behind them."""
        scope = self._scopes.attach("streams")
        for value in values:
            index = code.value(f"and i64 {position}, {self.stream_words - 1}")
            at = code.at("%cc.words", code.value(f"add i64 {index}, {self.stream_words * place}"), "i64")
            code.store("i64", value, at, scope)
            position = code.value(f"add i64 {position}, 1")
        return position

    def append_run(self, code: Code, place: int, base: str, step: str, times: str) -> None:
        """Append a run to a stream whose position stands in memory."""
        scope = self._scopes.attach("positions")
        at = code.at("%cc.positions", place, "i64")
        code.store(
            "i64", self.append(code, place, (base, step, times), code.load("i64", at, scope)), at, scope
        )

    def keep(self, code: Code, each: Recorded, value: str) -> None:
        """Keep what a work-item leaves when it has run a segment: its address, or where its stream ends."""
        base, stem = ("%cc.addresses", "address") if each.mode == ONCE else ("%cc.ends", "end")
        place = code.value(f"add i64 %cc.wi, {MAX_ITEMS * each.place}")
        code.store("i64", value, code.at(base, place, "i64"), self._scopes.attach(f"{stem}{each.place}"))

    def position(self, code: Code, place: int) -> str:
        """Where a stream's next word goes."""
        return code.load("i64", code.at("%cc.positions", place, "i64"), self._scopes.attach("positions"))

    def set_position(self, code: Code, place: int, value: str) -> None:
        """Say where a stream's next word goes."""
        code.store("i64", value, code.at("%cc.positions", place, "i64"), self._scopes.attach("positions"))

    def count(self, code: Code, counter: int, value: str, type_: str, *, several: bool) -> None:
        """Count for a work-item, or for its group where all are alike."""
        if (place := self.executions.alike.get(counter)) is not None:
            wide = code.value(f"zext {type_} {value} to i64") if type_ != "i64" else value
            code.add_to("i64", code.at("%cc.runs", place, "i64"), wide, self._scopes.attach("runs"))
            return
        column = self.executions.columns[counter]
        place_ = code.value(f"add i64 %cc.wi, {MAX_ITEMS * column}")
        address, scope = code.at("%cc.columns", place_, type_), self._scopes.attach(f"column{column}")
        if several:
            code.add_to(type_, address, value, scope)
        else:
            code.store(type_, value, address, scope)
