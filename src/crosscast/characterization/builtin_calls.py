"""Calls of OpenCL builtins, and what stands for each of them in host code.

Work-item functions become values, fences nothing, ``printf`` and async copies calls of the runtime;
other builtins are taken from the library. What Crosscast does not do is refused here, by line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from crosscast.characterization import ir
from crosscast.characterization.accesses import async_element
from crosscast.characterization.builtins.mangling import parse
from crosscast.characterization.inline import Call, builtin_name, parse_call
from crosscast.characterization.sharing import commutes
from crosscast.errors import UnsupportedError

if TYPE_CHECKING:
    from crosscast.characterization.instrument import Instrumenter

__all__ = ["Lowering"]

_PER_DIMENSION = {
    "get_local_id": ("%cc.id", "0"),
    "get_group_id": ("%cc.group", "0"),
    "get_local_size": ("%cc.size", "1"),
    "get_enqueued_local_size": ("%cc.enqueued", "1"),
    "get_global_size": ("%cc.global", "1"),
    "get_num_groups": ("%cc.groups", "1"),
    "get_global_offset": ("%cc.offset", "0"),
}
_NOTHING = frozenset(
    "mem_fence read_mem_fence write_mem_fence atomic_work_item_fence prefetch wait_group_events".split()
)
_REFUSED = (
    (
        re.compile(r"__(enqueue_kernel|get_kernel_)|^(enqueue_|get_default_queue|ndrange_|.*user_event)"),
        "device-side enqueue",
    ),
    (re.compile(r"__(read|write|reserve|commit|sub_group|work_group|get)_?.*pipe|^.*_pipe"), "a pipe"),
    (
        re.compile(
            r"^(sub_group_|get_sub_group|get_num_sub_groups|get_max_sub_group|get_enqueued_num_sub|intel_sub)"
        ),
        "a sub-group function",
    ),
    (re.compile(r"^(work_group_(reserve|commit))"), "a pipe"),
)
_FUSED = re.compile(r"llvm\.fmuladd\.")
_DROPPED = re.compile(r"llvm\.(assume|experimental\.noalias|lifetime|dbg|invariant)")
_COMPILER_CALLS = frozenset({"memcpy", "memset", "memmove", "fma", "fmaf"})


class Lowering:
    """Lowers the builtin calls of one kernel and remembers what they need.

    Parameters
    ----------
    module
        The program.
    owner
        The instrumentation that asks.
    """

    def __init__(self, module: ir.Module, owner: Instrumenter) -> None:
        self.module, self.owner = module, owner
        self.library_symbols: set[str] = set()
        self.print_calls: list[list[str]] = []
        self.ordered = False
        """Whether results depend on the order of work-groups: these run on one thread."""

    def lower(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Host instructions for one instruction of the kernel; the last one bears its result.

        Raises
        ------
        UnsupportedError
            If it uses what Crosscast does not do.
        """
        if instruction.opcode in ("atomicrmw", "cmpxchg"):
            self._note_order(instruction)
        if (
            instruction.opcode != "call"
            or not instruction.text
            or not instruction.counted
            and "@_Z" not in instruction.text
        ):
            return [instruction]
        call = parse_call(instruction)
        if call.name.startswith("llvm."):
            return self._intrinsic(instruction, call)
        name = builtin_name(call.name)
        for pattern, what in _REFUSED:
            if pattern.search(name):
                raise UnsupportedError(f"line {instruction.line}: {what} ({name}) is not supported")
        if name in _PER_DIMENSION or name in _IDS:
            return [self._value(instruction, self._work_item(name, call))]
        if name in _NOTHING:
            return [self._empty(instruction)]
        if name == "printf":
            return self._print(instruction, call)
        if name in ("async_work_group_copy", "async_work_group_strided_copy"):
            return self._async_copy(instruction, call, name)
        if name == "__translate_sampler_initializer":
            bits = call.arguments[0][1]
            return [self._value(instruction, f"inttoptr i64 {bits} to ptr")]
        if name in _TO_SPACE:
            text = f"call ptr @cc_to_space(ptr %cc.ctx, ptr {call.arguments[0][1]}, i32 {_TO_SPACE[name]})"
            return [self._value(instruction, text)]
        if name == "get_fence":
            return [
                self._value(instruction, f"call i32 @cc_fence_of(ptr %cc.ctx, ptr {call.arguments[0][1]})")
            ]
        if not call.name.startswith("_Z") or parse(call.name) is None:
            raise UnsupportedError(f"line {instruction.line}: unresolved function {name!r}")
        self._from_library(instruction, call.name)
        return [instruction]

    def _from_library(self, instruction: ir.Instruction, symbol: str) -> None:
        self.library_symbols.add(symbol)
        if instruction.accesses and "atom" in symbol:
            self._note_order(instruction)

    def _note_order(self, instruction: ir.Instruction) -> None:
        """Note an atomic whose result depends on which work-group comes first."""
        shared = any("addrspace(3)" not in access.pointer_type for access in instruction.accesses)
        if shared and not commutes(instruction, self.owner.is_used):
            self.ordered = True

    @staticmethod
    def _value(instruction: ir.Instruction, text: str) -> ir.Instruction:
        copy = ir.copy_instruction(instruction)
        copy.text = text if instruction.result else ""
        return copy

    def _empty(self, instruction: ir.Instruction) -> ir.Instruction:
        return self._value(instruction, "bitcast ptr null to ptr")

    def _work_item(self, name: str, call: Call) -> str:
        if name == "get_work_dim":
            return "trunc i64 %cc.dims to i32"
        if name == "get_local_linear_id":
            return "add i64 %cc.wi, 0"
        if name == "get_global_linear_id":
            return (
                "call i64 @cc.linear("
                + ", ".join(
                    f"i64 %cc.{part}{d}" for d in range(3) for part in ("group", "enqueued", "id", "global")
                )
                + ")"
            )
        dimension = call.arguments[0][1]
        if name == "get_global_id":
            if dimension in ("0", "1", "2"):
                if self.owner.switches.small_ids:
                    return f"call i64 @cc.small_sum(i64 %cc.base{dimension}, i64 %cc.id{dimension})"
                return f"add i64 %cc.base{dimension}, %cc.id{dimension}"
            values = ", ".join(f"i64 %cc.{p}{d}" for p in ("base", "id") for d in range(3))
            return f"call i64 @cc.pick_sum(i32 {dimension}, {values})"
        if name == "get_local_id" and dimension in ("0", "1", "2"):
            return f"call i64 @cc.small_sum(i64 0, i64 %cc.id{dimension})"
        stem, other = _PER_DIMENSION[name]
        if dimension in ("0", "1", "2"):
            return f"add i64 {stem}{dimension}, 0"
        values = ", ".join(f"i64 {stem}{d}" for d in range(3))
        return f"call i64 @cc.pick(i32 {dimension}, {values}, i64 {other})"

    def _intrinsic(self, instruction: ir.Instruction, call: Call) -> list[ir.Instruction]:
        if _DROPPED.match(call.name):
            return [self._empty(instruction)]
        if _FUSED.match(call.name):
            # Always fused: the same bits on every machine, whether its backend likes to fuse or not.
            copy = ir.copy_instruction(instruction)
            copy.text = copy.text.replace("@llvm.fmuladd.", "@llvm.fma.")
            return [copy]
        return [instruction]

    def _print(self, instruction: ir.Instruction, call: Call) -> list[ir.Instruction]:
        self.ordered = True
        number = len(self.print_calls)
        types = [_value_type(type_) for type_, _ in call.arguments]
        self.print_calls.append(types)
        record = "%cc.scratch"
        if len(types) > _MOST_PRINT_ARGUMENTS:
            raise UnsupportedError(
                f"line {instruction.line}: printf with more than {_MOST_PRINT_ARGUMENTS - 1} values is not supported"
            )
        steps = []
        for position, (type_, (_, value)) in enumerate(zip(types, call.arguments, strict=True)):
            place = self.owner.unique("p")
            steps += [
                f"{place} = getelementptr i8, ptr {record}, i64 {136 * position}",
                f"store i64 {int(type_.startswith('ptr'))}, ptr {place}",
                f"{place}.v = getelementptr i8, ptr {place}, i64 8",
                f"store {type_} {value}, ptr {place}.v, align 1",
            ]
        steps.append(f"call void @cc_printf(ptr %cc.ctx, i32 {number}, ptr {record}, i64 {len(types)})")
        made = [ir.Instruction(text, "cc", counted=False) for text in steps]
        return [*made, self._value(instruction, "add i32 0, 0")]

    def _async_copy(self, instruction: ir.Instruction, call: Call, name: str) -> list[ir.Instruction]:
        element = async_element(call.name)
        (to_type, to), (from_type, from_), (_, count), *rest = call.arguments
        stride = rest[0][1] if "strided" in name else "1"
        to_local = "addrspace(3)" in to_type
        sites = 0  # no check; or 1 more than the number of the read's site, before the write's
        if self.owner.switches.check_bounds:
            sites = min(self.owner.add_site(instruction, access) for access in instruction.accesses) + 1
        text = (
            f"call void @cc_async_copy(ptr %cc.ctx, ptr {to}, ptr {from_}, i64 {count}, i64 {stride}, "
            f"i64 {element}, i64 %cc.wi, i32 {int(to_local)}, i32 {sites})"
        )
        return [ir.Instruction(text, "cc", counted=False), self._empty(instruction)]


_MOST_PRINT_ARGUMENTS = 256
_IDS = frozenset({"get_global_id", "get_work_dim", "get_local_linear_id", "get_global_linear_id"})
_TO_SPACE = {"__to_global": 1, "__to_local": 3, "__to_private": 0}


def _value_type(text: str) -> str:
    match = re.match(r"<[^>]*>|ptr(?: addrspace\(\d+\))?|\S+", text)
    assert match is not None
    return match[0]


def declarations(module: ir.Module, text: str) -> list[str]:
    """Declarations of the LLVM intrinsics and library functions that `text` calls."""
    names: dict[str, Any] = dict.fromkeys(re.findall(r"@(llvm\.[-a-zA-Z$._0-9]+|_Z\w+)\(", text))
    rows = [module.declared[name] for name in names if name in module.declared]
    for name in names:
        unfused = name.replace("llvm.fma.", "llvm.fmuladd.")
        if name not in module.declared and unfused in module.declared:
            rows.append(module.declared[unfused].replace("llvm.fmuladd.", "llvm.fma."))
    return rows
