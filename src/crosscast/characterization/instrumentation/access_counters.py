"""Code that counts the accesses to each address.

Every byte of memory that a kernel can access has a counter at a fixed distance; one counter stands
for a granule of as many bytes as it is wide. Its lower bits hold the number of accesses, its two
highest bits whether the granule was read and written.
"""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.accesses import MemoryAccess
from crosscast.characterization.instrumentation.block_costs import space_name
from crosscast.characterization.instrumentation.pointers import PointerClass
from crosscast.characterization.instrumentation.shared import Shared

__all__ = ["AccessCounters"]


class AccessCounters:
    """Writes the code that counts the accesses of one kernel.

    Parameters
    ----------
    shared
        What its segments share.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared, self._unique = shared, shared.names.unique

    def in_place(self, cls: PointerClass) -> bool:
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
        if not self.in_place(cls):
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
