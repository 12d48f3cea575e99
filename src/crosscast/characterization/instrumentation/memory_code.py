"""Memory accesses of a segment: each is counted, and optionally checked.

Every byte of memory that a kernel can access has a counter at a fixed distance; one counter is for a granule
of as many bytes as it is wide. Its lower bits are the number of accesses, its two highest bits whether the
granule was read and written. If addresses depend on data, accesses are first counted in a byte for 4 bytes of
data, so that the counters take less of the caches; overflow of the byte goes to the counter.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import slot
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClass,
    accesses_of,
    address_space,
)
from crosscast.characterization.instrumentation.branch_code import SegmentEditor
from crosscast.characterization.instrumentation.code import Code
from crosscast.characterization.instrumentation.emission import Emission
from crosscast.characterization.instrumentation.inline import called_builtin
from crosscast.characterization.instrumentation.instruction_kinds import space_name
from crosscast.characterization.instrumentation.segments import Segment
from crosscast.characterization.instrumentation.sub_groups import ONCE, STREAM


class MemoryCode:
    """Rewrites the accesses of one segment."""

    def __init__(self, segment: Segment, emission: Emission, editor: SegmentEditor) -> None:
        instructions = [i for block in segment.blocks.values() for i in block.instructions]
        self._emission, self._plan = emission, emission.plan
        small = ("get_local_id", "get_global_id")[: 1 + self._plan.options.small_ids]
        self._widening = Widening(instructions, emission.names.unique, small)
        self._definitions = {i.result: i for i in instructions}
        self._segment, self._editor = segment, editor
        self._in_loops = graph.innermost(segment.loops)
        self._slots: dict[tuple[int, int], str] = {}  # By mode and index: an address, or a stream's position

    def rewrite(self, block: ir.Block, apart: set[int]) -> None:
        """Replace instructions by host code; count accesses except those in `apart`."""
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            before, after = Code(self._emission.names), Code(self._emission.names)
            if self._plan.options.counts:
                self._repeats = block.label in self._in_loops
                self._order = self._segment.order[block.label]
                self._accompany(instruction, before, after, counted=id(instruction) not in apart)
                site = self._emission.recording.texel_site(instruction, self._plan.parameters)
                if site is not None:
                    stream = self._emission.recording.record(self._segment.number, site, STREAM, self._order)
                    before.store("i64", stream, before.at("%cc.ctx", slot("texels")))
            if instruction.opcode in ("call", "atomicrmw", "cmpxchg"):
                translated = self._emission.lowering.lower(instruction)
            else:
                translated = self._widening.widen(instruction)
            if instruction.opcode in ("load", "store") and instruction.text and instruction.accesses:
                # Its memory does not overlap the counters.
                cls = self._plan.class_of(instruction.accesses[0])
                if cls.memory in ("buffer", "local", "global"):
                    translated[-1].text += self._emission.scopes.attach(f"data{cls.number}")
            rewritten += [*map(ir.added, before.texts), *translated, *map(ir.added, after.texts)]
        block.instructions = rewritten

    def _accompany(self, instruction: ir.Instruction, before: Code, after: Code, *, counted: bool) -> None:
        """Write code before and after an instruction, for its accesses."""
        # Operands may have been renamed since the pointers were classified.
        accesses = accesses_of(instruction, self._plan.sizes) if instruction.accesses else []
        shared = [access for access in accesses if address_space(access.pointer_type)]
        for origin, access in zip(instruction.accesses, shared, strict=True):
            cls = self._plan.class_of(origin)
            if cls.memory == "private":
                continue
            if counted:
                self._emission.counted.add(cls)
            if access.repeated:
                continue
            address = access.pointer
            if access.index is not None:
                type_, value, _ = access.index
                wide = value if type_ == "i64" else before.value(f"sext {type_} {value} to i64")
                offset = before.value(f"mul i64 {wide}, {access.stride}")
                address = before.value(f"getelementptr i8, {access.pointer_type} {address}, i64 {offset}")
            if self._plan.options.check_bounds:
                site = len(self._emission.fault_lines)
                self._emission.fault_lines.append(instruction.line)
                before.do(
                    f"call void @cc_check(ptr %cc.ctx, ptr {address}, i64 {access.length or access.nbytes}, "
                    f"i32 {site}, i32 {int(access.kind != 'read')}, i64 %cc.wi)"
                )
            if self._plan.sharing.sums.keys() >= self._plan.classes.members(origin.pointer):
                moved = before.at(address, "%cc.shift_sums")
                instruction.retarget(address, moved)
            if counted:
                self._record(origin.site, address, before)
            if counted and access.kind == "compare-exchange":
                self._count_exchange(access, cls, address, instruction, after)
            elif counted:
                self._count(access, cls, address, instruction, before)

    def _record(self, site: int, address: str, code: Code) -> None:
        """Record an address for sub-groups."""
        recording, mode = self._emission.recording, STREAM if self._repeats else ONCE
        index = recording.record(self._segment.number, site, mode, self._order)
        value = code.value(f"ptrtoint ptr {address} to i64")
        if mode == ONCE and recording.is_narrow(site):
            value = code.value(f"sub i64 {value}, {code.value('ptrtoint ptr %cc.local to i64')}")
        if mode == ONCE:
            slot_name = self._editor.slot("at", "i64", "-1")
        else:
            start = Code(self._emission.names)
            position = recording.position(start, index)
            slot_name = self._editor.computed_slot("position", "i64", start, position)
            value = recording.append(code, index, [value], code.load("i64", slot_name))
        self._slots[mode, index] = slot_name
        code.store("i64", value, slot_name)

    def epilogue(self, code: Code, first: Code) -> None:
        """Store a work-item's records at the end of the segment; `first` runs in the first group only."""
        recording = self._emission.recording
        for each in recording.of_segment(self._segment.number):
            # A site of several segments may be recorded another way in one of them.
            is_repeated = each.mode == ONCE and recording.is_repeated(each.site)
            to = first if is_repeated and each.site not in self._plan.copied else code
            if slot_name := self._slots.get((each.mode, each.number)):
                value = to.load("i64", slot_name)
                if each.mode != ONCE:
                    recording.set_position(to, each.number, value)
            else:
                value = recording.position(to, each.number)
            recording.keep(to, each, value)

    def _count(
        self, access: MemoryAccess, cls: PointerClass, address: str, instruction: ir.Instruction, code: Code
    ) -> None:
        """Count an access that reads, writes, or does both."""
        read, write = access.kind != "write", access.kind != "read"
        if cls.memory == "dynamic":
            plain = instruction.opcode in ("load", "store")
            _look_up(cls, address, read + 2 * write + 4 * plain, code)
        else:
            self._add(cls, address, _flags(cls, read=read, write=write), read + write, code)

    def _count_exchange(
        self, access: MemoryAccess, cls: PointerClass, address: str, instruction: ir.Instruction, code: Code
    ) -> None:
        """Count a compare-exchange: a read, and a write if it succeeded."""
        wrote = self._success(instruction, access, code)
        if cls.memory == "dynamic":
            twice = code.value(f"shl i32 {code.value(f'zext i1 {wrote} to i32')}, 1")
            _look_up(cls, address, code.value(f"or i32 {twice}, 1"), code)
            return
        type_ = f"i{8 * cls.granule}"
        amount = code.value(f"add {type_} {code.value(f'zext i1 {wrote} to {type_}')}, 1")
        both, only_read = _flags(cls, read=True, write=True), _flags(cls, read=True, write=False)
        flags = code.value(f"select i1 {wrote}, {type_} {both}, {type_} {only_read}")
        self._add(cls, address, flags, amount, code)
        number = self._emission.counter_for_writes(space_name(access, cls))
        self._emission.count(code, number, code.value(f"zext i1 {wrote} to i64"))

    def _add(self, cls: PointerClass, address: str, flags: int | str, amount: int | str, code: Code) -> None:
        scopes, type_, checked = self._emission.scopes, f"i{8 * cls.granule}", self._plan.options.checked
        if cls.scattered and not checked:
            origin, beyond = self._split(address, code)
            code.do(
                f"call void @{scopes.small_counter(cls)}(ptr {address}, ptr {origin}, i64 {beyond}, "
                "i64 %cc.shift_small, i64 %cc.shift_buffer)"
            )
        elif cls.granule == 8 or (cls.granule == 4 and not checked):  # too wide to overflow
            # Inline code, as inlining of a function would duplicate the scopes.
            scope = f", align {cls.granule}{scopes.attach(f'counter{cls.number}')}"
            counter = code.at(address, f"%cc.shift_{cls.memory}")
            total = code.value(f"add {type_} {code.load(type_, counter, scope)}, {amount}")
            code.store(type_, code.value(f"or {type_} {total}, {flags}"), counter, scope)
        else:
            code.do(
                f"call void @{scopes.counter(cls)}(ptr %cc.ctx, ptr {address}, "
                f"i64 %cc.shift_{cls.memory}, {type_} {flags}, {type_} {amount})"
            )

    def _split(self, address: str, code: Code) -> tuple[str, str]:
        """Split an address into a base and a number of small counters behind the base's, if known."""
        definition = self._definitions.get(address)
        if definition is None or not definition.text.startswith("getelementptr inbounds "):
            return address, "0"
        element, base, *indices = definition.operands
        nbytes, _ = self._plan.sizes.get(element.type, (0, 0))
        if len(indices) != 1 or indices[0].type != "i64" or not nbytes or nbytes % 4:
            return address, "0"
        return base.value, code.value(f"mul i64 {indices[0].value}, {nbytes // 4}")

    def _success(self, instruction: ir.Instruction, access: MemoryAccess, code: Code) -> str:
        """Return the name of the bit that shows whether a compare-exchange wrote."""
        type_ = instruction.type
        if instruction.result is None:
            instruction.result = self._emission.names.unique("old")
        if access.success == "pair":
            return code.value(f"extractvalue {type_} {instruction.result}, 1")
        if access.success == "result":
            if type_ == "i1":
                return instruction.result
            return code.value(f"trunc {type_} {instruction.result} to i1")
        return code.value(f"icmp eq {type_} {instruction.result}, {instruction.operands[1].value}")


def _look_up(cls: PointerClass, address: str, flags: int | str, code: Code) -> None:
    """Let the runtime find the memory of an address."""
    code.do(f"call void @cc_count_dynamic(ptr %cc.ctx, ptr {address}, i32 {flags}, i32 {cls.granule})")


def _flags(cls: PointerClass, *, read: bool, write: bool) -> int:
    """Return the two highest bits of a counter, as a number of its type."""
    bits = 8 * cls.granule
    return read * (1 << (bits - 2)) - write * (1 << (bits - 1))


class Widening:
    """64-bit twins of a segment's 32-bit integers, for extensions of ids, and of sums that cannot wrap."""

    def __init__(
        self, instructions: Iterable[ir.Instruction], unique: Callable[[str], str], small: Container[str]
    ) -> None:
        self._unique = unique
        self._operations: dict[str, ir.Instruction] = {}
        ids: dict[str | None, ir.Instruction] = {}  # of less than 32 bits, as the builtins in `small` return
        self._truncated: dict[str, ir.Instruction] = {}
        pending: list[tuple[str, str]] = []
        for i in instructions:
            if i.opcode == "call" and called_builtin(i) in small:
                ids[i.result] = i
            elif i.opcode == "trunc" and i.type == "i32" and i.result and i.operands[0].value in ids:
                self._truncated[i.result] = ids[i.operands[0].value]
            if i.opcode in ("add", "sub", "mul", "shl") and i.type == "i32" and i.result:
                self._operations[i.result] = i
            elif extended := _extended(i):
                pending.append(extended)
        self._twins: dict[tuple[str, str], str] = {}
        while pending:
            name, flag = pending.pop()
            operation = self._operations.get(name)
            if operation and f" {flag} " in operation.text and (name, flag) not in self._twins:
                self._twins[name, flag] = unique("i")
                pending += [(operand.value, flag) for operand in operation.operands]

    def widen(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Return an instruction and its twins; an extension is replaced by the twin."""
        if extended := _extended(instruction):
            if twin := self._twins.get(extended) or self._whole(extended[0]):
                instruction = instruction.copy()
                instruction.text = f"add i64 {twin}, 0"
            return [instruction]
        widened = [instruction]
        call = self._truncated.get(instruction.result or "")
        if call and called_builtin(call) == "get_global_id" and call.operands[0].value in ("0", "1", "2"):
            # A sum of 32 bits, as vectors of it are half as wide.
            parts = [f"%cc.{stem}{call.operands[0].value}" for stem in ("base", "id")]
            names = [self._unique("t") for _ in parts]
            texts = (f"{n} = trunc nuw nsw i64 {p} to i32" for n, p in zip(names, parts, strict=True))
            widened = [*map(ir.added, texts), instruction.copy()]
            widened[-1].text = f"add nuw nsw i32 {', '.join(names)}"
        for flag in ("nsw", "nuw"):
            if twin := self._twins.get((instruction.result or "", flag)):
                a, b = (self._operand(operand.value, flag, widened) for operand in instruction.operands)
                widened.append(ir.added(f"{twin} = {instruction.opcode} {flag} i64 {a}, {b}"))
        return widened

    def _whole(self, value: str) -> str | None:
        """Return the id that a value truncates, if it is one."""
        return self._truncated[value].result if value in self._truncated else None

    def _operand(self, value: str, flag: str, before: list[ir.Instruction]) -> str:
        if not value.startswith("%"):
            negative = value.startswith("-") and flag == "nuw"
            return str(int(value) + (1 << 32)) if negative else value
        twin = self._twins.get((value, flag)) or self._whole(value)
        if twin is None:
            twin = self._unique("i")
            before.append(ir.added(f"{twin} = {'sext' if flag == 'nsw' else 'zext'} i32 {value} to i64"))
        return twin


def _extended(i: ir.Instruction) -> tuple[str, str] | None:
    """Return the value that an instruction extends from 32 to 64 bits, and the flag that a twin needs."""
    if i.opcode not in ("sext", "zext") or i.type != "i64":
        return None
    (operand,) = i.operands
    # Both extensions of a non-negative value are equal.
    flag = "nuw" if i.text.startswith("zext i32") else "nsw"
    return (operand.value, flag) if operand.type == "i32" and operand.value.startswith("%") else None
