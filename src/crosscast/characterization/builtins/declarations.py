"""What the name of a builtin tells.

Clang mangles builtins by the Itanium C++ ABI (section 5.1), with vendor qualifiers for address
spaces (``U3AS1`` or ``U8CLglobal``) and source names for opaque types (``14ocl_image2d_ro``).
Result types are not part of such a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A scalar type."""

    kind: Literal["i", "u", "f"]  # Signed, unsigned or floating-point, as NumPy calls it
    nbytes: int
    codes: tuple[str, ...]  # In mangled names

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type for it."""
        return np.dtype(f"{self.kind}{self.nbytes}")


SCALARS = {
    "char": Scalar("i", 1, ("c", "a")),
    "uchar": Scalar("u", 1, ("h",)),
    "short": Scalar("i", 2, ("s",)),
    "ushort": Scalar("u", 2, ("t",)),
    "int": Scalar("i", 4, ("i",)),
    "uint": Scalar("u", 4, ("j",)),
    "long": Scalar("i", 8, ("l", "x")),
    "ulong": Scalar("u", 8, ("m", "y")),
    "half": Scalar("f", 2, ("Dh", "DF16_")),
    "float": Scalar("f", 4, ("f",)),
    "double": Scalar("f", 8, ("d",)),
}


ADDRESS_SPACES = ("private", "global", "constant", "local", "generic")
"""Address space qualifiers of OpenCL C by their number in ``spir64`` modules."""

_SCALARS = {"v": "void", "b": "bool", "z": "..."} | {
    code: name for name, scalar in SCALARS.items() for code in scalar.codes
}
_OPAQUE = {"ocl_sampler": "sampler_t", "ocl_event": "event_t", "ocl_clkevent": "clk_event_t"}
_OPAQUE |= {"ocl_queue": "queue_t", "ocl_reserveid": "reserve_id_t"}
_IMAGE_ACCESS = {"ro": "read_only", "wo": "write_only", "rw": "read_write"}
_IMAGE = re.compile(r"ocl_(image\w+?)_(ro|wo|rw)")
_SCALAR = re.compile("|".join(sorted(_SCALARS, key=len, reverse=True)))
_VECTOR = re.compile(r"Dv(\d+)_")
_LENGTH = re.compile(r"[1-9]\d*")
_SUBSTITUTION = re.compile(r"S([0-9A-Z]*)_")
_SPACE_NUMBER = re.compile(r"AS(\d+)")


@dataclass(frozen=True)
class Type:
    """Type of a builtin's parameter."""

    # Scalar of OpenCL C (`float`, `uint`, ...) or name of an opaque type or enumeration (`ocl_image2d_ro`,
    # `ocl_sampler`, `memory_order`)
    base: str
    width: int = 1  # Elements of a vector, 1 for a scalar
    pointer: bool = False  # A pointer to `base`; the fields below qualify what it points to
    address_space: int = 0  # Index into `ADDRESS_SPACES`
    const: bool = False
    volatile: bool = False
    atomic: bool = False

    @property
    def spelling(self) -> str:
        """The type in OpenCL C 3.0."""
        text = _OPAQUE.get(self.base, self.base)
        if image := _IMAGE.fullmatch(self.base):
            text = f"{_IMAGE_ACCESS[image[2]]} {image[1]}_t"
        if self.width > 1:
            text += str(self.width)
        if self.atomic:
            text = f"atomic_{text}"
        if not self.pointer:
            return text
        qualifiers = [ADDRESS_SPACES[self.address_space]]
        qualifiers += ["const"] if self.const else []
        qualifiers += ["volatile"] if self.volatile else []
        return f"{' '.join(qualifiers)} {text} *"


@dataclass(frozen=True)
class Declaration:
    """A builtin function: its symbol and what the symbol says."""

    symbol: str  # Name in the module
    name: str  # Name in OpenCL C
    parameters: tuple[Type, ...]  # Types of the parameters; empty for `f(void)`

    def __str__(self) -> str:
        types = (t.spelling.replace(" *", "*") for t in self.parameters)
        return f"{self.name}({', '.join(types)})"


class _NotABuiltinError(Exception):
    """The symbol holds something that no OpenCL builtin has."""


class _Parser:
    """Reads the types of one symbol; remembers the substitution candidates in order."""

    def __init__(self, text: str, position: int) -> None:
        self._text = text
        self._position = position
        self._candidates: list[Type] = []

    def parameters(self) -> tuple[Type, ...]:
        types = []
        while self._position < len(self._text):
            types.append(self._type())
        if types == [Type("void")]:
            return ()
        return tuple(types)

    def _type(self) -> Type:
        if self._eat("P"):
            pointee = self._pointee()
            return self._remember(replace(pointee, pointer=True))
        return self._unqualified()

    def _pointee(self) -> Type:
        space, named_spaces = 0, 0
        while self._peek("U") and not self._peek("U7_Atomic"):
            self._position += 1
            space = _address_space(self._source_name())
            named_spaces += 1
        volatile = self._eat("V")
        const = self._eat("K")
        inner = self._unqualified()
        if inner.pointer:
            raise _NotABuiltinError
        if not (named_spaces or volatile or const):
            return inner
        return self._remember(
            replace(
                inner,
                address_space=space or inner.address_space,
                volatile=volatile or inner.volatile,
                const=const or inner.const,
            )
        )

    def _unqualified(self) -> Type:
        if self._eat("U7_Atomic"):
            return self._remember(replace(self._unqualified(), atomic=True))
        if match := self._match(_VECTOR):
            return self._remember(Type(self._unqualified().base, int(match[1])))
        if match := self._match(_SUBSTITUTION):
            index = int(match[1], 36) + 1 if match[1] else 0
            if index >= len(self._candidates):
                raise _NotABuiltinError
            return self._candidates[index]
        if match := self._match(_SCALAR):
            return Type(_SCALARS[match[0]])
        return self._remember(Type(self._source_name()))

    def _source_name(self) -> str:
        name, self._position = _source_name(self._text, self._position)
        return name

    def _remember(self, candidate: Type) -> Type:
        self._candidates.append(candidate)
        return candidate

    def _peek(self, prefix: str) -> bool:
        return self._text.startswith(prefix, self._position)

    def _eat(self, prefix: str) -> bool:
        found = self._peek(prefix)
        self._position += len(prefix) * found
        return found

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._position)
        if match:
            self._position = match.end()
        return match


def parse(symbol: str) -> Declaration | None:
    """Declaration of the builtin with this symbol; ``None`` if it cannot be a builtin's.

    >>> declaration = parse("_Z5fractDv2_fPU3AS1S_")
    >>> declaration.name, [parameter.spelling for parameter in declaration.parameters]
    ('fract', ['float2', 'global float2 *'])
    """
    if not symbol.startswith("_Z"):
        return None
    try:
        name, position = _source_name(symbol, 2)
        parameters = _Parser(symbol, position).parameters()
    except _NotABuiltinError:
        return None
    return Declaration(symbol, name, parameters)


def _source_name(text: str, position: int) -> tuple[str, int]:
    """Read ``<length><characters>``; return the characters and the position after them."""
    match = _LENGTH.match(text, position)
    if not match:
        raise _NotABuiltinError
    end = match.end() + int(match[0])
    name = text[match.end() : end]
    if end > len(text) or not (name.isascii() and name.isidentifier()):
        raise _NotABuiltinError
    return name, end


def _address_space(qualifier: str) -> int:
    """Address space of a vendor qualifier such as ``AS1`` or ``CLglobal``."""
    if match := _SPACE_NUMBER.fullmatch(qualifier):
        number = int(match[1])
        if number < len(ADDRESS_SPACES):
            return number
    elif qualifier.startswith("CL") and qualifier[2:] in ADDRESS_SPACES:
        return ADDRESS_SPACES.index(qualifier[2:])
    raise _NotABuiltinError
