"""Vector data loads and stores (OpenCL C 1.2, section 6.12.7), those of ``half`` included."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crosscast.characterization.builtins.access import Access
from crosscast.characterization.builtins.conversion import converted
from crosscast.characterization.builtins.mangling import ADDRESS_SPACES, Declaration, Type
from crosscast.characterization.builtins.spelling import BITS, convert, element, per_element, vector

_NAME = re.compile(r"v(load|store)(a?_half)?(2|3|4|8|16|)(?:_(rte|rtz|rtp|rtn))?")


@dataclass(frozen=True)
class _Transfer:
    """What a vector load or store moves."""

    loads: bool  # A load; a store otherwise
    value: Type  # Type of the value in registers
    pointer: Type  # Pointer to the elements in memory
    alignment: int  # Bytes to which the address is aligned
    stride: int  # Elements from one index to the next
    mode: str

    @property
    def memory_base(self) -> str:
        return self.pointer.base

    @property
    def element_size(self) -> int:
        return BITS[self.memory_base] // 8


def _transfer(declaration: Declaration) -> _Transfer | None:
    match = _NAME.fullmatch(declaration.name)
    if match is None:
        return None
    loads = match[1] == "load"
    if len(declaration.parameters) != (2 if loads else 3):
        return None
    pointer = declaration.parameters[-1]
    width = int(match[3] or 1)
    if not pointer.pointer or pointer.base not in BITS or pointer.width != 1:
        return None
    if match[2] is None:
        if width == 1 or match[4]:
            return None
        value = Type(pointer.base, width)
    elif pointer.base != "half":
        return None
    else:
        value = Type("float", width) if loads else declaration.parameters[0]
    if not loads and declaration.parameters[0] != value:
        return None
    size = BITS[pointer.base] // 8
    aligned = match[2] == "a_half"
    stride = 4 if aligned and width == 3 else width
    return _Transfer(loads, value, pointer, size * stride if aligned else size, stride, match[4] or "rte")


def define(declaration: Declaration) -> str | None:
    """Result type and block of a vector load or store; ``None`` for other functions."""
    transfer = _transfer(declaration)
    if transfer is None:
        return None
    return _load(transfer) if transfer.loads else _store(transfer)


def accesses(declaration: Declaration) -> tuple[Access, ...]:
    """The one access of a vector load or store; none for private memory."""
    transfer = _transfer(declaration)
    if transfer is None or transfer.pointer.address_space == 0:
        return ()
    size = transfer.element_size
    return (
        Access(
            "read" if transfer.loads else "write",
            pointer=len(declaration.parameters) - 1,
            index=len(declaration.parameters) - 2,
            stride=transfer.stride * size,
            nbytes=transfer.value.width * size,
            alignment=transfer.alignment,
        ),
    )


def _memory_vector(transfer: _Transfer, const: str) -> str:
    """Statements that define `p`, a pointer to a whole vector, aligned as the language promises."""
    space = ADDRESS_SPACES[transfer.pointer.address_space]
    whole = vector(transfer.memory_base, transfer.value.width)
    offset, pointer = ("a0", "a1") if transfer.loads else ("a1", "a2")
    return (
        f"typedef {whole} V __attribute__((aligned({transfer.alignment}))); "
        f"{space} {const}V *p = ({space} {const}V *)({pointer} + {offset} * {transfer.stride}); "
    )


def _load(transfer: _Transfer) -> str:
    base, width = transfer.memory_base, transfer.value.width
    result = transfer.value.spelling
    if width == 3:
        # A three-element vector occupies four: its load would touch the element after it.
        value = per_element(base, 3, lambda k: f"a1[a0 * {transfer.stride} + {k}]")
        return f"{result} {{ return {_widened(value, transfer)}; }}"
    return f"{result} {{ {_memory_vector(transfer, 'const ')}return {_widened('*p', transfer)}; }}"


def _widened(value: str, transfer: _Transfer) -> str:
    same = transfer.value.base == transfer.memory_base
    return value if same else convert(value, transfer.value.base, transfer.value.width)


def _store(transfer: _Transfer) -> str:
    base, width = transfer.memory_base, transfer.value.width
    value = "a0"
    if transfer.value.base != base:
        value = converted("a0", transfer.value.base, base, width, transfer.mode)
    if width == 3:
        stores = (f"a2[a1 * {transfer.stride} + {k}] = {element('v', k, 3)};" for k in range(3))
        return f"void {{ {vector(base, 3)} v = {value}; {' '.join(stores)} }}"
    return f"void {{ {_memory_vector(transfer, '')}*p = {value}; }}"
