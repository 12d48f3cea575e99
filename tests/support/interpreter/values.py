"""Types and values of LLVM IR.

Integers and pointers are Python integers from 0, reals Python floats that are rounded to their type, and
vectors, arrays and structures tuples.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from crosscast.characterization import ir

_REALS = {"float": 32, "double": 64}
_CODES = {32: "<f", 64: "<d"}
_SEQUENCE = re.compile(r"[<\[](\d+) x (.*)[>\]]")


@dataclass(frozen=True)
class Type:
    """A type, and how its values stand in memory."""

    kind: Literal["int", "real", "pointer", "vector", "array", "struct", "void"]
    nbytes: int = 0  # Bytes that a store writes
    alignment: int = 1
    bits: int = 0
    parts: tuple[Type, ...] = ()
    offsets: tuple[int, ...] = ()

    @property
    def step(self) -> int:
        """Bytes from one element of an array to the next."""
        return _aligned(self.nbytes, self.alignment)

    @property
    def scalar(self) -> Type:
        """Type of an element of a vector; any other type itself."""
        return self.parts[0] if self.kind == "vector" else self

    @property
    def zero(self) -> Any:
        """What `zeroinitializer` and `null` are, and `undef` and `poison` here."""
        return tuple(part.zero for part in self.parts) if self.parts else 0.0 if self.kind == "real" else 0

    def fit(self, value: Any) -> Any:
        """A number as this scalar type holds it: integers wrap around, reals are rounded."""
        if self.kind != "real":
            return int(value) & ((1 << self.bits) - 1)
        return ctypes.c_float(value).value if self.bits == 32 else float(value)

    def signed(self, value: int) -> int:
        """An integer of this type, in two's complement."""
        return value - (1 << self.bits) if value >> (self.bits - 1) else value

    def pack(self, value: Any) -> bytes:
        """The bytes of a value in memory."""
        if self.kind == "real":
            return struct.pack(_CODES[self.bits], value)
        if not self.parts:
            return int(value).to_bytes(self.nbytes, "little")
        data = bytearray(self.nbytes)
        for part, offset, element in zip(self.parts, self.offsets, value, strict=True):
            data[offset : offset + part.nbytes] = part.pack(element)
        return bytes(data)

    def unpack(self, data: bytes | memoryview) -> Any:
        """The value whose bytes these are."""
        if self.kind == "real":
            return struct.unpack(_CODES[self.bits], data)[0]
        if not self.parts:
            return int.from_bytes(data, "little") & ((1 << self.bits) - 1)
        pairs = zip(self.parts, self.offsets, strict=True)
        return tuple(part.unpack(data[offset : offset + part.nbytes]) for part, offset in pairs)


class Types:
    """Reads types and constants of a module."""

    def __init__(self, definitions: list[str]) -> None:
        self._definitions = dict(text.split(" = type ", 1) for text in definitions)
        self._known: dict[str, Type] = {}

    def read(self, text: str) -> Type:
        """The type of this name."""
        if text not in self._known:
            self._known[text] = self._read(text)
        return self._known[text]

    def _read(self, text: str) -> Type:
        if text.startswith("%"):
            return self.read(self._definitions[text])
        if text.startswith("ptr"):
            return Type("pointer", 8, 8, 64)
        if text == "void":
            return Type("void")
        if text in _REALS:
            bits = _REALS[text]
            return Type("real", bits // 8, bits // 8, bits)
        if match := re.fullmatch(r"i(\d+)", text):
            nbytes = -(-int(match[1]) // 8)
            return Type("int", nbytes, min(8, 1 << (nbytes - 1).bit_length()), int(match[1]))
        if match := _SEQUENCE.fullmatch(text):
            count, part = int(match[1]), self.read(match[2])
            nbytes = count * part.step
            places = tuple(range(0, nbytes, part.step))
            if text.startswith("["):
                return Type("array", nbytes, part.alignment, 0, (part,) * count, places)
            return Type("vector", nbytes, 1 << (nbytes - 1).bit_length(), 0, (part,) * count, places)
        packed = text.startswith("<{")
        parts = tuple(self.read(part) for part in _split(text.strip("<>").strip("{} ")))
        offsets, end, alignment = [], 0, 1
        for part in parts:
            unit = 1 if packed else part.alignment
            alignment = max(alignment, unit)
            offsets.append(_aligned(end, unit))
            end = offsets[-1] + part.step
        return Type("struct", _aligned(end, alignment), alignment, 0, parts, tuple(offsets))

    def constant(self, text: str, type_: Type, symbols: Mapping[str, int]) -> Any:
        """Value of a constant that is no expression; `symbols` are the addresses of the variables."""
        if text in symbols:
            return symbols[text]
        if text in ("true", "false"):
            return int(text == "true")
        if text in ("null", "undef", "poison", "zeroinitializer", "none"):
            return type_.zero
        if text.startswith('c"'):
            return tuple(
                int(code, 16) if code else ord(letter)
                for code, letter in re.findall(r"\\([0-9A-F]{2})|(.)", text[2:-1])
            )
        if text.startswith("splat"):
            (element,) = ir.Instruction(text[text.index("(") + 1 : -1], "constant").operands
            return (self.constant(element.value, type_.scalar, symbols),) * len(type_.parts)
        if type_.parts:
            inner = text[2:-2] if text.startswith("<{") else text[1:-1]
            elements = ir.Instruction(inner, "constant").operands
            pairs = zip(elements, type_.parts, strict=True)
            return tuple(self.constant(element.value, part, symbols) for element, part in pairs)
        if type_.kind != "real":
            return type_.fit(int(text))
        return struct.unpack(">d", bytes.fromhex(text[2:]))[0] if text.startswith("0x") else float(text)


def _aligned(nbytes: int, unit: int) -> int:
    return -(-nbytes // unit) * unit


def _split(text: str) -> list[str]:
    """Types of the parts of a structure."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text + ","):
        depth += (character in "[({<") - (character in "])}>")
        if character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    return [part for part in parts if part]


def fused(a: float, b: float, c: float, bits: int) -> float:
    """``a * b + c`` such that rounding it to a type of so many bits is the only rounding."""
    total = a * b + c
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c) and math.isfinite(total)):
        return total
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return total
    nearest = float(exact)
    left = exact - Fraction(nearest)
    # Rounded to odd: the second rounding, to fewer bits, then sees on which side of a tie the value was.
    if bits < 64 and left and not struct.unpack("<q", struct.pack("<d", nearest))[0] & 1:
        return math.nextafter(nearest, math.inf if left > 0 else -math.inf)
    return nearest
