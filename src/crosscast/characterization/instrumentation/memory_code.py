"""Memory accesses of a segment: each is counted, and checked if asked for.

Code that counts the accesses to each address.

Every byte of memory that a kernel can access has a counter at a fixed distance; one counter stands
for a granule of as many bytes as it is wide. Its lower bits hold the number of accesses, its two
highest bits whether the granule was read and written. Where data decide which addresses are accessed,
accesses are first counted in a byte for 4 bytes of data, so that the counters take less of the caches;
what is more than a byte holds goes to the counter.
"""

from __future__ import annotations

from collections.abc import Mapping

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClass,
    Widening,
    accesses_of,
    address_space,
)
from crosscast.characterization.instrumentation.block_costs import space_name
from crosscast.characterization.instrumentation.instrumented import Shared


class AccessCounters:
    """Writes the code that counts the accesses of one kernel."""

    def __init__(self, shared: Shared, definitions: Mapping[str, ir.Instruction]) -> None:
        self._shared, self._unique, self._definitions = shared, shared.names.unique, definitions

    def _in_place(self, cls: PointerClass) -> bool:
        """Whether counters of a class are so wide that they need not be looked after."""
        return cls.granule == 8 or (cls.granule == 4 and not self._shared.switches.checked)

    def count(
        self, access: MemoryAccess, cls: PointerClass, address: str, instruction: ir.Instruction
    ) -> list[str]:
        """Count an access that reads, writes, or does both."""
        read, write = access.kind != "write", access.kind != "read"
        if cls.place == "dynamic":
            plain = instruction.opcode in ("load", "store")
            return [self._look_up(cls, address, str(read + 2 * write + 4 * plain))]
        return self._add(cls, address, _flags(cls, read=read, write=write), str(read + write))

    def count_exchange(
        self, access: MemoryAccess, cls: PointerClass, address: str, instruction: ir.Instruction
    ) -> list[str]:
        """Count a compare-exchange: a read, and a write if it succeeded."""
        wrote, steps = self._success(instruction, access)
        wide = self._unique("w")
        if cls.place == "dynamic":
            flags = self._unique("w")
            return [
                *steps,
                f"{wide} = zext i1 {wrote} to i32",
                f"{wide}.2 = shl i32 {wide}, 1",
                f"{flags} = or i32 {wide}.2, 1",
                self._look_up(cls, address, flags),
            ]
        bits = 8 * cls.granule
        flags, amount = self._unique("w"), self._unique("w")
        both, only_read = _flags(cls, read=True, write=True), _flags(cls, read=True, write=False)
        number = self._shared.counters.for_writes(space_name(access, cls))
        return [
            *steps,
            f"{wide} = zext i1 {wrote} to i{bits}",
            f"{amount} = add i{bits} {wide}, 1",
            f"{flags} = select i1 {wrote}, i{bits} {both}, i{bits} {only_read}",
            *self._add(cls, address, flags, amount),
            f"call void @cc.count_if(ptr %cc.ctx, i64 {8 * number}, i1 {wrote})",
        ]

    @staticmethod
    def _look_up(cls: PointerClass, address: str, flags: str) -> str:
        """Let the runtime find out which memory it is."""
        return f"call void @cc_count_dynamic(ptr %cc.ctx, ptr {address}, i32 {flags}, i32 {cls.granule})"

    def _add(self, cls: PointerClass, address: str, flags: str, amount: str) -> list[str]:
        scopes, bits = self._shared.scopes, 8 * cls.granule
        if cls.scattered and not self._shared.switches.checked:
            origin, beyond, steps = self._split(address)
            return [
                *steps,
                f"call void @{scopes.small_counter(cls)}(ptr {address}, ptr {origin}, i64 {beyond}, "
                "i64 %cc.shift_small, i64 %cc.shift_buffer)",
            ]
        if not self._in_place(cls):
            return [
                f"call void @{scopes.counter(cls)}(ptr %cc.ctx, ptr {address}, "
                f"i64 %cc.shift_{cls.place}, i{bits} {flags}, i{bits} {amount})"
            ]
        # In place rather than in a function: inlining would give the scopes new identities.
        scope = f", align {cls.granule}{scopes.attach(f'counter{cls.number}')}"
        counter, old, total, new = (self._unique("k") for _ in range(4))
        return [
            f"{counter} = getelementptr i8, ptr {address}, i64 %cc.shift_{cls.place}",
            f"{old} = load i{bits}, ptr {counter}{scope}",
            f"{total} = add i{bits} {old}, {amount}",
            f"{new} = or i{bits} {total}, {flags}",
            f"store i{bits} {new}, ptr {counter}{scope}",
        ]

    def _split(self, address: str) -> tuple[str, str, list[str]]:
        """An address and how many small counters the one of `address` is behind its own, if that is known."""
        definition = self._definitions.get(address)
        if definition is None or definition.opcode != "getelementptr":
            return address, "0", []
        element, base, *indices = definition.operands()
        nbytes = self._shared.sizes[element.type][0] if element.type in self._shared.sizes else 0
        if (
            " inbounds " not in definition.text
            or len(indices) != 1
            or indices[0].type != "i64"
            or not nbytes
            or nbytes % 4
        ):
            return address, "0", []
        beyond = self._unique("a")
        return base.value, beyond, [f"{beyond} = mul i64 {indices[0].value}, {nbytes // 4}"]

    def _success(self, instruction: ir.Instruction, access: MemoryAccess) -> tuple[str, list[str]]:
        """Name of the bit that tells whether a compare-exchange wrote, and the code that computes it."""
        wrote, type_ = self._unique("ok"), instruction.type
        if instruction.result is None:
            instruction.result = self._unique("old")
        result = instruction.result
        if access.success == "pair":
            return wrote, [f"{wrote} = extractvalue {type_} {result}, 1"]
        if access.success == "result":
            convert = f"or i1 {result}, false" if type_ == "i1" else f"trunc {type_} {result} to i1"
            return wrote, [f"{wrote} = {convert}"]
        arguments, _ = ir.bracketed(instruction.text, instruction.text.index("("))
        _, expected = ir.split_typed(ir.split_top_level(arguments)[1])
        return wrote, [f"{wrote} = icmp eq {type_} {result}, {expected}"]


def _flags(cls: PointerClass, *, read: bool, write: bool) -> str:
    """The two highest bits of a counter, as a number of its type."""
    bits = 8 * cls.granule
    return str(read * (1 << (bits - 2)) - write * (1 << (bits - 1)))


class MemoryCode:
    """Rewrites the accesses of one segment."""

    def __init__(self, shared: Shared, widening: Widening, definitions: Mapping[str, ir.Instruction]) -> None:
        self._shared, self._widening = shared, widening
        self.counters = AccessCounters(shared, definitions)

    def translate(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """What stands for an instruction in host code; its accesses are not counted."""
        if instruction.opcode in ("call", "atomicrmw", "cmpxchg"):
            return self._shared.lowering.lower(instruction)
        return self._widening.widen(instruction)

    def rewrite(self, block: ir.Block, apart: set[int]) -> None:
        """Translate a block, and count its accesses."""
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            before, after = self._accompany(instruction, counted=id(instruction) not in apart)
            translated = self._with_scopes(instruction, self.translate(instruction))
            rewritten += [*map(ir.added, before), *translated, *map(ir.added, after)]
        block.instructions = rewritten

    def _accompany(self, instruction: ir.Instruction, *, counted: bool) -> tuple[list[str], list[str]]:
        """Code before and after an instruction, for its accesses."""
        before: list[str] = []
        after: list[str] = []
        # Operands may have been renamed since the pointers were sorted into classes.
        found = accesses_of(instruction, self._shared.sizes)
        now = [access for access in found if address_space(access.pointer_type)]
        for origin, access in zip(instruction.accesses, now, strict=True):
            cls = self._shared.class_of(origin)
            if cls.place == "private":
                continue
            if counted:
                self._shared.counted.add(cls)
            if access.repeated:
                continue
            address, steps = self._address(access)
            before += steps
            if self._shared.switches.check_bounds:
                before.append(self._check(instruction, access, address))
            if counted and access.kind == "compare-exchange":
                after += self.counters.count_exchange(access, cls, address, instruction)
            elif counted:
                before += self.counters.count(access, cls, address, instruction)
        return before, after

    def _address(self, access: MemoryAccess) -> tuple[str, list[str]]:
        if access.index is None:
            return access.pointer, []
        type_, value = access.index
        wide, offset, address = (self._shared.names.unique("a") for _ in range(3))
        widen = f"{wide} = add i64 {value}, 0" if type_ == "i64" else f"{wide} = sext {type_} {value} to i64"
        return address, [
            widen,
            f"{offset} = mul i64 {wide}, {access.stride}",
            f"{address} = getelementptr i8, {access.pointer_type} {access.pointer}, i64 {offset}",
        ]

    def _check(self, instruction: ir.Instruction, access: MemoryAccess, address: str) -> str:
        site = len(self._shared.sites)
        self._shared.sites.append(instruction.line)
        return (
            f"call void @cc_check(ptr %cc.ctx, ptr {address}, i64 {access.length or access.nbytes}, "
            f"i32 {site}, i32 {int(access.kind != 'read')}, i64 %cc.wi)"
        )

    def _with_scopes(
        self, original: ir.Instruction, translated: list[ir.Instruction]
    ) -> list[ir.Instruction]:
        """Tell LLVM that the memory of a load or store is none of the counters."""
        if original.opcode in ("load", "store") and original.text and original.accesses:
            cls = self._shared.class_of(original.accesses[0])
            if cls.place in ("buffer", "local", "global"):
                translated[-1].text += self._shared.scopes.attach(f"data{cls.number}")
        return translated
