"""Memory accesses of a segment: each is counted, and checked if asked for."""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.access_counters import AccessCounters
from crosscast.characterization.instrumentation.accesses import MemoryAccess, accesses_of
from crosscast.characterization.instrumentation.pointers import address_space
from crosscast.characterization.instrumentation.shared import Shared
from crosscast.characterization.instrumentation.widening import Widening

__all__ = ["MemoryCode"]


class MemoryCode:
    """Rewrites the accesses of one segment.

    Parameters
    ----------
    shared
        What the kernel's segments share.
    widening
        The segment's address arithmetic in 64 bits.
    """

    def __init__(self, shared: Shared, widening: Widening) -> None:
        self._shared, self._widening = shared, widening
        self.counters = AccessCounters(shared)

    def translate(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """What stands for an instruction in host code; its accesses are not counted."""
        if instruction.opcode in ("call", "atomicrmw", "cmpxchg"):
            return self._shared.lowering.lower(instruction)
        return self._widening.widen(instruction)

    def rewrite(self, block: ir.Block, apart: set[int]) -> None:
        """Translate a block, and count its accesses.

        Parameters
        ----------
        block
            The block.
        apart
            Identities of the instructions that are counted elsewhere.
        """
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
            if cls.place == "private" or access.repeated:
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
