"""Declarations of builtins, from their mangled names.

Clang mangles builtins by the Itanium C++ ABI (section 5.1), with vendor qualifiers for address
spaces (``U3AS1`` or ``U8CLglobal``) and source names for opaque types (``14ocl_image2d_ro``).
Result types are not part of such a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A scalar type."""

    kind: Literal["i", "u", "f"]  # Signed, unsigned or floating-point, as NumPy calls it
    nbytes: int
    codes: tuple[str, ...]  # In mangled names

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """NumPy type."""
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
_POINTER = re.compile(rf"P(?:U(?:3AS([0-4])|\d+CL({'|'.join(ADDRESS_SPACES)})))?(V?)(K?)")
_ATOMIC = re.compile("U7_Atomic")
_LONGEST = 300  # characters of a symbol, more than twice those of the longest builtin


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
class BuiltinDeclaration:
    """A builtin function, from its symbol."""

    symbol: str  # Name in the module
    name: str  # Name in OpenCL C
    parameters: tuple[Type, ...]  # Types of the parameters; empty for `f(void)`

    def __str__(self) -> str:
        types = (t.spelling.replace(" *", "*") for t in self.parameters)
        return f"{self.name}({', '.join(types)})"


class _NotABuiltinError(Exception):
    """The symbol has a part that no OpenCL builtin has."""


class _Parser:
    """Parser of a symbol, with its substitution candidates in order."""

    def __init__(self, symbol: str) -> None:
        self._text, self._position = symbol, len("_Z")
        self._candidates: list[Type] = []

    def declaration(self) -> BuiltinDeclaration:
        name, types = self._source_name(), []
        while self._position < len(self._text):
            types.append(self._type())
        return BuiltinDeclaration(self._text, name, () if types == [Type("void")] else tuple(types))

    def _type(self) -> Type:
        pointer = self._match(_POINTER)
        pointee = self._unqualified()
        if pointer is None:
            return pointee
        number, space, volatile, const = pointer.groups()
        if pointee.pointer:
            raise _NotABuiltinError
        if number or space or volatile or const:
            pointee = self._remember(
                replace(
                    pointee,
                    address_space=ADDRESS_SPACES.index(space)
                    if space
                    else int(number or pointee.address_space),
                    volatile=bool(volatile) or pointee.volatile,
                    const=bool(const) or pointee.const,
                )
            )
        return self._remember(replace(pointee, pointer=True))

    def _unqualified(self) -> Type:
        if self._match(_ATOMIC):
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
        """Read ``<length><characters>``."""
        length = self._match(_LENGTH)
        end = self._position + int(length[0] if length else 0)
        name = self._text[self._position : end]
        if end > len(self._text) or not (name.isascii() and name.isidentifier()):
            raise _NotABuiltinError
        self._position = end
        return name

    def _remember(self, candidate: Type) -> Type:
        self._candidates.append(candidate)
        return candidate

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._position)
        self._position = match.end() if match else self._position
        return match


def parse(symbol: str) -> BuiltinDeclaration | None:
    """Return the declaration of the builtin with this symbol; ``None`` if it cannot be a builtin's.

    >>> declaration = parse("_Z5fractDv2_fPU3AS1S_")
    >>> declaration.name, [parameter.spelling for parameter in declaration.parameters]
    ('fract', ['float2', 'global float2 *'])
    """
    if not symbol.startswith("_Z") or len(symbol) > _LONGEST:
        return None
    try:
        return _Parser(symbol).declaration()
    except _NotABuiltinError:
        return None
