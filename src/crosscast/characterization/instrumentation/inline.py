"""One function per kernel: every call of a function that the program defines is inlined.

OpenCL C has neither recursion nor function pointers, so this always ends; barriers in helper
functions become barriers of the kernel. An inlined instruction still counts as what it was: the
``call`` and the ``ret`` stay behind as counted instructions without text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.errors import UnsupportedError

_CALLEE = re.compile(r'@("[^"]*"|[-a-zA-Z$._0-9]+)\(')
_MANGLED = re.compile(r"_Z(\d+)")
_MOST_INSTRUCTIONS = 400_000


@dataclass(frozen=True)
class Call:
    """A direct call: the callee's name and its arguments as (type with attributes, value)."""

    name: str
    arguments: list[tuple[str, str]]


def parse_call(instruction: ir.Instruction) -> Call:
    """Take a call instruction apart."""
    match = _CALLEE.search(instruction.text)
    if match is None or " asm " in instruction.text[: match.start()]:
        what = "inline assembly" if " asm " in instruction.text else "a call through a function pointer"
        raise UnsupportedError(f"{instruction.where}{what} is not supported")
    inside, _ = ir.bracketed(instruction.text, match.end() - 1)
    return Call(match[1].strip('"'), [ir.split_typed(part) for part in ir.split_top_level(inside)])


def builtin_name(symbol: str) -> str:
    """Name of a builtin function without its mangling."""
    match = _MANGLED.match(symbol)
    return symbol[match.end() : match.end() + int(match[1])] if match else symbol


def called_builtin(instruction: ir.Instruction) -> str:
    """Name of the mangled builtin that an instruction calls; empty if it calls none."""
    if instruction.opcode != "call" or "@_Z" not in instruction.text:
        return ""
    return builtin_name(parse_call(instruction).name)


def flatten(module: ir.Module, kernel: ir.Function) -> ir.Function:
    """Return a copy of `kernel` with all calls of defined functions inlined."""
    return _Inliner(module).flatten(kernel)


class _Inliner:
    def __init__(self, module: ir.Module) -> None:
        self.module = module
        self.copies = 0
        self.size = 0
        self.allocas: list[ir.Instruction] = []

    def flatten(self, kernel: ir.Function) -> ir.Function:
        blocks = self._expand(kernel, "", (kernel.name,))
        entry = next(iter(blocks.values()))
        entry.instructions[:0] = self.allocas
        return ir.Function(
            kernel.name, kernel.result_type, [*kernel.parameters], blocks, True, kernel.line, kernel.metadata
        )

    def _expand(self, function: ir.Function, suffix: str, stack: tuple[str, ...]) -> dict[str, ir.Block]:
        """Copy a function's blocks with all names made unique and all calls in them inlined."""

        def rename(name: str) -> str:
            if name in self.module.sizes:  # a named structure type
                return name
            return f'{name[:-1]}{suffix}"' if name.endswith('"') else name + suffix

        blocks: dict[str, ir.Block] = {}
        moved: dict[str, str] = {}  # a block that was cut at a call ends under another label
        for block in function.blocks.values():
            current = ir.Block(rename(block.label), [])
            blocks[current.label] = current
            first = current.label
            for original in block.instructions:
                instruction = self._renamed(original, rename)
                callee = self._callee(instruction)
                if callee is None:
                    current.instructions.append(self._hoisted(instruction, suffix))
                    continue
                current = self._inline(callee, instruction, current, blocks, stack)
            if current.label != first:
                moved[first] = current.label
        for block in blocks.values():
            for phi in block.phis():
                phi.incoming = [(value, moved.get(label, label)) for value, label in phi.incoming]
        return blocks

    def _renamed(self, original: ir.Instruction, rename: Callable[[str], str]) -> ir.Instruction:
        self.size += 1
        if self.size > _MOST_INSTRUCTIONS:
            raise UnsupportedError(f"the kernel is too large: over {_MOST_INSTRUCTIONS} instructions inlined")
        copy = ir.copy_instruction(original)
        if not copy.counted:
            copy.text, copy.result = "", None
        copy.text = ir.substitute(copy.text, rename)
        copy.result = rename(copy.result) if copy.result else None
        copy.incoming = [(ir.substitute(v, rename), rename(label)) for v, label in copy.incoming]
        return copy

    def _hoisted(self, instruction: ir.Instruction, suffix: str) -> ir.Instruction:
        """Move an inlined function's stack slots to the kernel's entry, so that loops reuse them."""
        if instruction.opcode != "alloca" or not suffix:
            return instruction
        slot = ir.copy_instruction(instruction)
        slot.counted = False
        self.allocas.append(slot)
        return ir.Instruction("", "alloca", instruction.type, None, 1, instruction.line)

    def _callee(self, instruction: ir.Instruction) -> ir.Function | None:
        if instruction.opcode != "call" or not instruction.text:
            return None
        return self.module.functions.get(parse_call(instruction).name)

    def _inline(
        self,
        callee: ir.Function,
        call: ir.Instruction,
        before: ir.Block,
        blocks: dict[str, ir.Block],
        stack: tuple[str, ...],
    ) -> ir.Block:
        if callee.name in stack:
            circle = " -> ".join((*stack[stack.index(callee.name) :], callee.name))
            raise UnsupportedError(f"{call.where}recursion is not allowed in OpenCL C ({circle})")
        self.copies += 1
        number = self.copies
        suffix = f".cc.i{number}"
        body = self._expand(callee, suffix, (*stack, callee.name))
        self._bind(callee, call, body, suffix, before)
        after = ir.Block(f"%cc.after{number}", [])
        returned = []
        for block in body.values():
            end = block.terminator
            if end.opcode == "ret":
                returned.append((end.text.removeprefix("ret ").removeprefix(call.type).strip(), block.label))
                jump = ir.Instruction(f"br label {after.label}", "br", counted=False)
                block.instructions[-1:] = [ir.Instruction("", "ret", line=end.line), jump]
        before.instructions.append(ir.Instruction("", "call", call.type, None, call.width, call.line))
        first = next(iter(body))
        before.instructions.append(ir.Instruction(f"br label {first}", "br", counted=False))
        if call.result:
            phi = ir.Instruction(f"phi {call.type}", "phi", call.type, call.result, call.width, counted=False)
            phi.incoming = returned
            after.instructions.append(phi)
        blocks.update(body)
        blocks[after.label] = after
        return after

    def _bind(
        self,
        callee: ir.Function,
        call: ir.Instruction,
        body: dict[str, ir.Block],
        suffix: str,
        before: ir.Block,
    ) -> None:
        """Replace the callee's parameters by the arguments of this call."""
        values: dict[str, str] = {}
        for parameter, (_, value) in zip(callee.parameters, parse_call(call).arguments, strict=True):
            name = parameter.name + suffix
            if type_ := ir.byval_type(parameter):
                size = self.module.sizes[type_][0]
                self.allocas.append(
                    ir.Instruction(f"alloca {type_}, align 16", "alloca", "ptr", name, counted=False)
                )
                copy = f"call void @llvm.memcpy.p0.p0.i64(ptr {name}, ptr {value}, i64 {size}, i1 false)"
                before.instructions.append(ir.Instruction(copy, "call", counted=False))
                continue
            values[name] = value
        for block in body.values():
            for instruction in block.instructions:
                instruction.text = ir.substitute(instruction.text, lambda n: values.get(n, n))
                instruction.incoming = [
                    (ir.substitute(v, lambda n: values.get(n, n)), label) for v, label in instruction.incoming
                ]
