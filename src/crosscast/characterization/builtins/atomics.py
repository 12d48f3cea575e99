"""Atomic functions: ``atomic_*`` and ``atom_*`` of OpenCL C 1.x, the C11 ones of 2.0 and 3.0.

A work-group runs on one thread, so local memory needs no hardware atomics. Global and generic
pointers get them: relaxed for the functions of OpenCL C 1.x, which promise no order, and
sequentially consistent for the C11 ones, whose order is at most that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crosscast.characterization.builtins.declarations import (
    BITS,
    INTEGERS,
    Access,
    Declaration,
    Type,
    unsigned,
)

_PRIVATE = 0
_SHARED_BY_THREADS = frozenset({1, 4})
"""Address spaces global and generic."""
_SCOPE = "memory_scope_all_svm_devices"

_LEGACY = re.compile(r"atom(?:ic)?_(add|sub|xchg|inc|dec|cmpxchg|min|max|and|or|xor)")
_C11 = re.compile(
    r"atomic_(init|store|load|exchange|compare_exchange_(?:strong|weak)|fetch_(?:add|sub|or|xor|and|min|max)"
    r"|flag_test_and_set|flag_clear)(?:_explicit)?"
)
_LEGACY_NAMES = {"xchg": "exchange", "cmpxchg": "legacy_compare_exchange", "inc": "add", "dec": "sub"}
_UPDATES = {
    "add": "old + value",
    "sub": "old - value",
    "and": "old & value",
    "or": "old | value",
    "xor": "old ^ value",
    "min": "value < old ? value : old",
    "max": "value > old ? value : old",
}
_OPERANDS = {
    "legacy_compare_exchange": 3,
    "compare_exchange": 3,
    "load": 1,
    "flag_test_and_set": 1,
    "flag_clear": 1,
}
_ATOMIC_BASES = frozenset({"int", "uint", "long", "ulong", "float", "double"})


@dataclass(frozen=True)
class _Operation:
    """What an atomic function does."""

    kind: str  # A key of `_UPDATES`, or one of the operations that read and write nothing else
    target: Type  # What the pointer points to, with the pointer's qualifiers
    operand: str  # The value to combine with or to store, as OpenCL C
    order: str  # Memory order of the hardware atomic

    @property
    def base(self) -> str:
        """Scalar type of the atomic object."""
        return self.target.base

    @property
    def plain(self) -> str:
        """The object as an ordinary one."""
        space = self.target.spelling.split()[0]
        return f"*({space} {self.base} *)a0"

    def call(self, name: str, *arguments: str, orders: int = 1) -> str:
        """Call of clang's atomic builtin on the object."""
        space = self.target.spelling.split()[0]
        pointer = f"(volatile {space} atomic_{self.base} *)a0"
        listed = ", ".join((pointer, *arguments, *[self.order] * orders, _SCOPE))
        return f"__opencl_atomic_{name}({listed})"


def define(declaration: Declaration) -> str | None:
    """Result type and block of an atomic function; ``None`` for others."""
    operation = _parse(declaration)
    if operation is None:
        return None
    if operation.target.address_space in _SHARED_BY_THREADS:
        return _hardware(operation)
    return _ordinary(operation)


def accesses(declaration: Declaration) -> tuple[Access, ...]:
    """Events of one call: what it does to the atomic object, unless that is private."""
    operation = _parse(declaration)
    if operation is None or operation.target.address_space == _PRIVATE:
        return ()
    size = BITS[operation.base] // 8
    if operation.kind == "legacy_compare_exchange":
        access = Access("compare-exchange", 0, None, 0, size, size, "equals-argument")
    elif operation.kind == "compare_exchange":
        access = Access("compare-exchange", 0, None, 0, size, size, "result")
    elif operation.kind == "load":
        access = Access("read", 0, None, 0, size, size)
    elif operation.kind in ("store", "init", "flag_clear"):
        access = Access("write", 0, None, 0, size, size)
    else:
        access = Access("read-write", 0, None, 0, size, size)
    return (access,)


def is_commutative(declaration: Declaration) -> bool:
    """Whether calls may change places without changing what memory holds in the end."""
    operation = _parse(declaration)
    return operation is not None and operation.kind in _UPDATES and operation.base in INTEGERS


def _parse(declaration: Declaration) -> _Operation | None:
    """What the function does; ``None`` if it is not an atomic one on types that have atomics."""
    parameters = declaration.parameters
    if not parameters or not parameters[0].pointer or parameters[0].width != 1:
        return None
    target = parameters[0]
    if match := _LEGACY.fullmatch(declaration.name):
        return _parse_legacy(match[1], target, len(parameters))
    match = _C11.fullmatch(declaration.name)
    if match is None or not target.atomic or target.base not in _ATOMIC_BASES:
        return None
    kind = match[1].removeprefix("fetch_").removesuffix("_strong").removesuffix("_weak")
    needed = _OPERANDS.get(kind, 2)
    if len(parameters) < needed or (kind in ("and", "or", "xor") and target.base not in INTEGERS):
        return None
    operand = f"({target.base})a{needed - 1}"
    return _Operation(kind, target, operand, "memory_order_seq_cst")


def _parse_legacy(name: str, target: Type, count: int) -> _Operation | None:
    if target.atomic or target.base not in _ATOMIC_BASES:
        return None
    if target.base not in INTEGERS and name != "xchg":
        return None
    counting = name in ("inc", "dec")
    kind = _LEGACY_NAMES.get(name, name)
    needed = 1 if counting else _OPERANDS.get(kind, 2)
    if count != needed:
        return None
    operand = f"({target.base})1" if counting else f"a{needed - 1}"
    return _Operation(kind, target, operand, "memory_order_relaxed")


def _hardware(operation: _Operation) -> str:
    """Block that other threads may run at the same time on the same object."""
    base, operand = operation.base, operation.operand
    match operation.kind:
        case "load":
            return f"{base} {{ return {operation.call('load')}; }}"
        case "store":
            return f"void {{ {operation.call('store', operand)}; }}"
        case "init":
            return f"void {{ {operation.plain} = {operand}; }}"
        case "exchange":
            return f"{base} {{ return {operation.call('exchange', operand)}; }}"
        case "compare_exchange":
            swap = operation.call("compare_exchange_strong", "a1", operand, orders=2)
            return f"bool {{ return {swap}; }}"
        case "legacy_compare_exchange":
            swap = operation.call("compare_exchange_strong", "&a1", operand, orders=2)
            return f"{base} {{ {swap}; return a1; }}"
        case "flag_test_and_set":
            return f"bool {{ return {operation.call('exchange', '1')} != 0; }}"
        case "flag_clear":
            return f"void {{ {operation.call('store', '0')}; }}"
        case update:
            return f"{base} {{ return {operation.call(f'fetch_{update}', operand)}; }}"


def _ordinary(operation: _Operation) -> str:
    """Block for memory that only the calling thread uses."""
    base, operand, plain = operation.base, operation.operand, operation.plain
    match operation.kind:
        case "load":
            return f"{base} {{ return {plain}; }}"
        case "store" | "init":
            return f"void {{ {plain} = {operand}; }}"
        case "exchange":
            return f"{base} {{ {base} old = {plain}; {plain} = {operand}; return old; }}"
        case "compare_exchange":
            # The bits decide, as in hardware: a NaN equals itself.
            bits = unsigned(base)
            equal = f"__builtin_astype(old, {bits}) == __builtin_astype(*a1, {bits})"
            return (
                f"bool {{ {base} old = {plain}; bool equal = {equal}; "
                f"if (equal) {plain} = {operand}; else *a1 = old; return equal; }}"
            )
        case "legacy_compare_exchange":
            return f"{base} {{ {base} old = {plain}; if (old == a1) {plain} = {operand}; return old; }}"
        case "flag_test_and_set":
            return f"bool {{ {base} old = {plain}; {plain} = 1; return old != 0; }}"
        case "flag_clear":
            return f"void {{ {plain} = 0; }}"
        case update:
            return _ordinary_update(operation, update)


def _ordinary_update(operation: _Operation, update: str) -> str:
    base, plain = operation.base, operation.plain
    # Signed sums wrap around in atomics but are undefined in C.
    inner = unsigned(base) if base in INTEGERS and update in ("add", "sub") else base
    return (
        f"{base} {{ {inner} old = ({inner}){plain}, value = ({inner}){operation.operand}; "
        f"{plain} = ({base})({_UPDATES[update]}); return ({base})old; }}"
    )
