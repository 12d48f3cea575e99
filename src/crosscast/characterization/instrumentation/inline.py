"""Inlining: one function per kernel, without calls of functions that the program defines.

OpenCL C has neither recursion nor function pointers, so this terminates; barriers in helper functions become
barriers of the kernel. Inlining does not change counts: the ``call`` and the ``ret`` are left as counted
instructions without text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from crosscast.characterization import ir
from crosscast.characterization.builtins import parse
from crosscast.errors import UnsupportedError

_MANGLED = re.compile(r"_Z(\d{1,4})")
_MOST_INSTRUCTIONS = 400_000


def builtin_name(symbol: str) -> str:
    """Return the demangled name of a builtin function."""
    match = _MANGLED.match(symbol)
    return symbol[match.end() : match.end() + int(match[1])] if match else symbol


def called_builtin(instruction: ir.Instruction) -> str:
    """Return the name of the mangled builtin that an instruction calls; empty if it calls none."""
    name = instruction.callee
    return builtin_name(name) if name.startswith("_Z") else ""


def suffixed(name: str, suffix: str) -> str:
    """Append a suffix to a name, which may have quotes."""
    return f'{name[:-1]}{suffix}"' if name.endswith('"') else name + suffix


def stack_slot(type_: str, name: str) -> ir.Instruction:
    """Allocate a structure in private memory."""
    return ir.Instruction(f"alloca {type_}, align 16", "alloca", "ptr", name, counted=False)


def copy_structure(type_: str, name: str, source: str, nbytes: int) -> tuple[ir.Instruction, ir.Instruction]:
    """Allocate a structure that is passed by value, and copy it."""
    text = f"call void @llvm.memcpy.p0.p0.i64(ptr {name}, ptr {source}, i64 {nbytes}, i1 false)"
    return stack_slot(type_, name), ir.Instruction(text, "call", counted=False)


def flatten(module: ir.Module, kernel: ir.Function) -> ir.Function:
    """Return a copy of `kernel` with all calls of defined functions inlined."""
    inliner = _Inliner(module)
    blocks = inliner.expand(kernel, "", {}, (kernel.name,))
    next(iter(blocks.values())).instructions[:0] = inliner.allocas
    return ir.Function(kernel.name, [*kernel.parameters], blocks, True, kernel.line, kernel.metadata)


class _Inliner:
    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.copies = self.size = 0
        self.allocas: list[ir.Instruction] = []

    def expand(
        self, function: ir.Function, suffix: str, bound: Mapping[str, str], stack: tuple[str, ...]
    ) -> dict[str, ir.Block]:
        """Copy a function's blocks with unique names, bound parameters and inlined calls."""

        def rename(value: str) -> str:
            return bound.get(value) or (suffixed(value, suffix) if value.startswith("%") else value)

        blocks: dict[str, ir.Block] = {}
        moved: dict[str, str] = {}  # a block that was cut at a call ends under another label
        for block in function.blocks.values():
            first = rename(block.label)
            current = blocks[first] = ir.Block(first, [])
            for original in block.instructions:
                self.size += 1
                if self.size > _MOST_INSTRUCTIONS:
                    raise UnsupportedError(
                        f"the kernel is too large: over {_MOST_INSTRUCTIONS} instructions inlined"
                    )
                if not original.counted:
                    continue
                instruction = original.copy()
                instruction.incoming = instruction.incoming.copy()
                if suffix or bound:
                    instruction.rename(rename)
                    instruction.result = rename(instruction.result) if instruction.result else None
                if callee := self._callee(instruction):
                    current = self._inline(callee, instruction, current, blocks, stack)
                elif instruction.opcode == "alloca" and suffix:
                    # Stack slots of inlined functions move to the kernel's entry, so that loops reuse them.
                    current.instructions.append(instruction.ghost())
                    instruction.counted = False
                    self.allocas.append(instruction)
                else:
                    current.instructions.append(instruction)
            if current.label != first:
                moved[first] = current.label
        for block in blocks.values():
            for phi in block.phis():
                phi.incoming = [(value, moved.get(label, label)) for value, label in phi.incoming]
        return blocks

    def _callee(self, instruction: ir.Instruction) -> ir.Function | None:
        if instruction.opcode in ("invoke", "callbr"):
            raise instruction.refused(f"{instruction.opcode} is not supported")
        if instruction.opcode != "call":
            return None
        if not instruction.callee:
            assembly = re.search(r' asm [^"]*"([^"]*)"', instruction.text)
            what = "a call through a function pointer"
            if assembly:
                what = f"inline assembly (PTX: {assembly[1]})"
            raise instruction.refused(f"{what} is not supported")
        callee = self.module.functions.get(instruction.callee)
        declaration = None if callee else parse(instruction.callee)
        parameters = callee.parameters if callee else declaration.parameters if declaration else ()
        if len(instruction.operands) < len(parameters):
            raise instruction.refused(
                f"{declaration or instruction.callee} is called with "
                f"{len(instruction.operands)} arguments, expected {len(parameters)}"
            )
        return callee

    def _inline(
        self,
        callee: ir.Function,
        call: ir.Instruction,
        before: ir.Block,
        blocks: dict[str, ir.Block],
        stack: tuple[str, ...],
    ) -> ir.Block:
        """Replace a call by the function's body, and return the block behind it."""
        if callee.name in stack:
            circle = " -> ".join((*stack[stack.index(callee.name) :], callee.name))
            raise call.refused(f"recursion is not supported ({circle})")
        self.copies += 1
        number, suffix = self.copies, f".cc.i{self.copies}"
        bound = {}
        for parameter, argument in zip(callee.parameters, call.operands, strict=False):
            if type_ := parameter.structure:
                name = suffixed(parameter.name, suffix)
                slot, copy = copy_structure(type_, name, argument.value, self.module.sizes[type_][0])
                self.allocas.append(slot)
                before.instructions.append(copy)
            else:
                bound[parameter.name] = argument.value
        body = self.expand(callee, suffix, bound, (*stack, callee.name))
        after = ir.Block(f"%cc.after{number}", [])
        returned = []
        for block in body.values():
            end = block.terminator
            if end.opcode == "ret":
                returned.append((end.operands[0].value if end.operands else "", block.label))
                block.instructions[-1:] = [end.ghost(), ir.jump(after.label)]
        before.instructions += [call.ghost(), ir.jump(next(iter(body)))]
        if call.result:
            phi = ir.Instruction(f"phi {call.type}", "phi", call.type, call.result, counted=False)
            phi.incoming = returned
            after.instructions.append(phi)
        blocks.update(body)
        blocks[after.label] = after
        return after
