"""Records of accesses and executions for sub-groups of 32 and 64 work-items.

The runtime needs the addresses of accesses by work-item, in the order of each: slices of strided accesses
compute them (`strided_code`); all others are recorded while a segment runs, in one of three modes. It also
needs the executions of blocks by work-item, which follow from the counted edges; these have a column each,
with a word for each work-item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from crosscast.characterization import ir
from crosscast.characterization.builtins import parse
from crosscast.characterization.engine.layout import (
    CONSTANTS,
    MAX_ITEMS,
    SUB_GROUP_INSTRUCTIONS,
    AccessSite,
    BlockCosts,
    Form,
    Recorded,
    SubGroupLayout,
)
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClasses,
    address_space,
)
from crosscast.characterization.instrumentation.code import Code, Names, Scopes
from crosscast.characterization.instrumentation.inline import builtin_name

_WRITES, _LOCAL, _ATOMIC, _DYNAMIC, _REPEATED = (
    CONSTANTS[f"SITE_{name}"] for name in ("WRITES", "LOCAL", "ATOMIC", "DYNAMIC", "REPEATED")
)
ONCE, STREAM, RUNS = (CONSTANTS[name] for name in ("ONCE", "STREAM", "RUNS"))
"""Modes of recording a site's addresses: at most one per work-item, any number of them, or runs of them at
equal distances.
"""
_SECTOR = 32
_GLOBAL = 1  # Address space


def number_sites(
    function: ir.Function, classes: PointerClasses, repeated: graph.Uniformity | None
) -> list[AccessSite]:
    """Assign a site to each access of a kernel; return all sites by number.

    `repeated`: what all work-groups repeat, if that is known.
    """
    sites: list[AccessSite] = []
    shared = _shared_reads(function, classes)
    restricted = {each.name for each in function.parameters if each.is_restricted}
    positions = {parameter.name: position for position, parameter in enumerate(function.parameters)}

    def numbered(access: MemoryAccess, is_shared: bool, is_repeated: bool) -> MemoryAccess:
        cls, number = classes.of(access.pointer, access.pointer_type), len(sites)
        if cls.memory == "private":
            return replace(access, site=-1)
        atomic = access.kind in ("read-write", "compare-exchange")
        flags = _WRITES * (access.kind != "read") + _ATOMIC * atomic
        if cls.memory == "local":
            flags |= _LOCAL | _REPEATED * (
                is_repeated and repeated is not None and access.pointer in repeated.values
            )
        alignment = min(max(access.alignment, 1), _SECTOR)
        members = classes.members(access.pointer)
        buffer = positions.get(min(members), -1) if len(members) == 1 and cls.memory == "buffer" else -1
        is_read_only = (
            _is_global(access) and not cls.write_bytes and len(members) == 1 and members <= restricted
        )
        site = AccessSite(
            flags, access.nbytes or 1, alignment.bit_length() - 1, buffer, is_shared, is_read_only
        )
        if cls.memory == "dynamic":  # followed by the site of local memory
            sites.extend([site._replace(flags=flags | _DYNAMIC), site._replace(flags=flags | _LOCAL)])
        else:
            sites.append(site)
        return replace(access, site=number)

    for label, block in function.blocks.items():
        for i in block.instructions:
            is_repeated = (
                repeated is not None and label not in repeated.parted and i.opcode in ("load", "store")
            )
            i.accesses = [numbered(access, i.result in shared, is_repeated) for access in i.accesses]
    return sites


def _shared_reads(function: ir.Function, classes: PointerClasses) -> set[str]:
    """Return the loads of global memory whose address is the same for all work-items of a launch.

    As far as the code tells: it is computed from arguments, and from loads of such addresses of memory that
    the kernel does not write.
    """
    loads, constants = {}, set()
    for label, block in function.blocks.items():
        for i in block.instructions:
            if i.result and i.opcode == "load" and i.accesses and all(map(_is_global, i.accesses)):
                loads[i.result] = label, i.accesses[0].pointer
                if not any(classes.of(each.pointer, each.pointer_type).write_bytes for each in i.accesses):
                    constants.add(i.result)
    same = graph.find_shared(
        function.blocks, function.flow, [each.name for each in function.parameters], constants
    )
    return {
        result
        for result, (label, pointer) in loads.items()
        if pointer in same.values and label not in same.parted
    }


def _is_global(access: MemoryAccess) -> bool:
    return address_space(access.pointer_type) == _GLOBAL


def _weights(block: BlockCosts) -> npt.NDArray[np.int64]:
    """Return what `SUB_GROUP_INSTRUCTIONS` are of one execution of a block."""
    _, *units = SUB_GROUP_INSTRUCTIONS.values()
    of_units = [
        sum(width * n for (kind, width), n in block.kinds.items() if kind.startswith(unit)) for unit in units
    ]
    return np.array([block.instructions - block.opcodes["phi"], *of_units])


@dataclass
class Recording:
    """Records of segments for sub-groups: addresses at sites, and counts by work-item."""

    scopes: Scopes
    columns: Mapping[int, int]
    alike: Mapping[int, int]
    stream_words: int
    sites: list[AccessSite]
    recorded: list[Recorded] = field(default_factory=list)
    # Sites whose addresses do not, or not all, come from the ends of segments that run for all work-items
    apart: set[int] = field(default_factory=set)
    streams: int = 0  # Number of those recorded as streams, and once
    once: int = 0
    appends_runs: bool = False

    def layout(self, blocks: Iterable[BlockCosts]) -> SubGroupLayout:
        """Compute executions of blocks as sums of counters; copies of a block in several segments are one."""
        none = np.zeros(len(SUB_GROUP_INSTRUCTIONS), np.int64)
        sums: dict[tuple[tuple[int, int], ...], npt.NDArray[np.int64]] = {}
        total: Counter[int] = Counter()
        weights, totals = [none] * len(self.alike), [0] * len(self.alike)
        by_label: dict[str, list[BlockCosts]] = {}
        for block in blocks:
            by_label.setdefault(block.label, []).append(block)
        for copies in by_label.values():
            instructions = copies[0].instructions
            weight = _weights(copies[0])
            terms: Counter[int] = Counter()
            for counter, sign in (each for copy in copies for each in copy.executions.items()):
                if (index := self.alike.get(counter)) is not None:
                    weights[index] = weights[index] + sign * weight
                    totals[index] += sign * instructions
                else:
                    terms[self.columns[counter]] += sign
            key = tuple(sorted((column, sign) for column, sign in terms.items() if sign))
            if key:
                sums[key] = sums.get(key, none) + weight
            for column, sign in terms.items():
                total[column] += sign * instructions
        forms = [Form(terms, weight.tolist()) for terms, weight in sums.items()]
        forms.insert(0, Form(tuple(sorted(total.items())), none.tolist()))
        return SubGroupLayout(
            sites=[self._site(number, site) for number, site in enumerate(self.sites)],
            recorded=self.recorded,
            once=self.once,
            streams=self.streams,
            stream_words=self.stream_words,
            columns=self.columns,
            alike=self.alike,
            forms=forms if sums else [],
            weights=[weight.tolist() for weight in weights],
            totals=totals,
        )

    def _site(self, number: int, site: AccessSite) -> AccessSite:
        """Return a site for the runtime, which leaves out later work-groups only at the ends of segments."""
        return site if self.is_repeated(number) else site._replace(flags=site.flags & ~_REPEATED)

    def texel_site(
        self, instruction: ir.Instruction, parameters: Sequence[ir.FunctionParameter]
    ) -> int | None:
        """Return a site for the texels that a call reads or writes; ``None`` for other calls."""
        name = builtin_name(instruction.callee)
        if not name.startswith(("read_image", "write_image")) or instruction.opcode != "call":
            return None
        declaration = parse(instruction.callee)
        if declaration is None or not declaration.parameters[0].base.startswith("ocl_image"):
            return None
        image = instruction.operands[0].value
        position = next((n for n, parameter in enumerate(parameters) if parameter.name == image), -1)
        # The size of a texel depends on the argument.
        self.sites.append(AccessSite(_WRITES * name.startswith("write"), 0, 0, position))
        return len(self.sites) - 1

    def record(self, segment: int, site: int, mode: int, order: int) -> int:
        """Register a site that a segment records, and return its index."""
        index = self.streams if mode != ONCE else self.once
        self.streams, self.once = self.streams + (mode != ONCE), self.once + (mode == ONCE)
        self.recorded.append(Recorded(segment, site, mode, index, order))
        return index

    def of_segment(self, segment: int) -> list[Recorded]:
        """Return the records of a segment."""
        return [each for each in self.recorded if each.segment == segment]

    def append(self, code: Code, stream: int | str, values: Sequence[str], position: str) -> str:
        """Append words to a stream; return the position behind them."""
        scope = self.scopes.attach("streams")
        words = self.stream_words
        offset = words * stream if isinstance(stream, int) else code.value(f"mul i64 {stream}, {words}")
        for value in values:
            index = code.value(f"and i64 {position}, {words - 1}")
            at = code.at("%cc.words", code.value(f"add i64 {index}, {offset}"), "i64")
            code.store("i64", value, at, scope)
            position = code.value(f"add i64 {position}, 1")
        return position

    def append_run(self, code: Code, stream: int, base: str, step: str, times: str) -> None:
        """Append a run to a stream whose position is in memory."""
        self.appends_runs = True
        streams = f"ptr %cc.words, ptr %cc.positions, i64 {stream}"
        code.do(f"call void @cc.append_run({streams}, i64 {base}, i64 {step}, i64 {times})")

    def functions(self) -> list[str]:
        """Return the IR of the functions that the code calls."""
        if not self.appends_runs:
            return []
        code = Code(Names())
        scope = self.scopes.attach("positions")
        at = code.at("%cc.positions", "%cc.stream", "i64")
        run = ("%cc.base", "%cc.step", "%cc.times")
        code.store("i64", self.append(code, "%cc.stream", run, code.load("i64", at, scope)), at, scope)
        parameters = (
            "ptr %cc.words, ptr %cc.positions, i64 %cc.stream, i64 %cc.base, i64 %cc.step, i64 %cc.times"
        )
        header = f"define internal void @cc.append_run({parameters}) nounwind {{"
        return ["\n".join([header, "cc.start:", *code.texts, "ret void", "}"])]

    def keep(self, code: Code, record: Recorded, value: str) -> None:
        """Store a work-item's record at the end of a segment: its address, or the end of its stream."""
        base, stem = ("%cc.addresses", "address") if record.mode == ONCE else ("%cc.ends", "end")
        type_, row = "i64", MAX_ITEMS
        if record.mode == ONCE and self.is_narrow(record.site):
            type_, row, value = "i32", 2 * MAX_ITEMS, code.value(f"trunc i64 {value} to i32")
        index = code.value(f"add i64 %cc.wi, {row * record.number}")
        code.store(type_, value, code.at(base, index, type_), self.scopes.attach(f"{stem}{record.number}"))

    def is_narrow(self, site: int) -> bool:
        """Whether offsets of 32 bits in local memory stand for the addresses of a site."""
        return self.sites[site].flags & (_LOCAL | _DYNAMIC) == _LOCAL

    def is_repeated(self, site: int) -> bool:
        """Whether all work-groups do the same at a site, of which the first one's records are enough."""
        return bool(self.sites[site].flags & _REPEATED) and site not in self.apart

    def position(self, code: Code, stream: int) -> str:
        """Load the position of a stream's next word."""
        return code.load("i64", code.at("%cc.positions", stream, "i64"), self.scopes.attach("positions"))

    def set_position(self, code: Code, stream: int, value: str) -> None:
        """Set the position of a stream's next word."""
        code.store("i64", value, code.at("%cc.positions", stream, "i64"), self.scopes.attach("positions"))

    def count(self, code: Code, counter: int, value: str, type_: str, *, several: bool) -> None:
        """Count for a work-item, or for its group if all are equal."""
        if (index := self.alike.get(counter)) is not None:
            wide = code.value(f"zext {type_} {value} to i64") if type_ != "i64" else value
            code.add_to("i64", code.at("%cc.runs", index, "i64"), wide, self.scopes.attach("runs"))
            return
        column = self.columns[counter]
        item = code.value(f"add i64 %cc.wi, {MAX_ITEMS * column}")
        address, scope = code.at("%cc.columns", item, type_), self.scopes.attach(f"column{column}")
        if several:
            code.add_to(type_, address, value, scope)
        else:
            code.store(type_, value, address, scope)
