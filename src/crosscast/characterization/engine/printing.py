"""Text that OpenCL C's ``printf`` writes (OpenCL C 1.2, section 6.12.13).

The engine records the arguments of each executed call as bytes; they become text here, outside
of the process that runs the kernel.

What a kernel printed, from the records that the runtime wrote.

A record is the number of the call of ``printf``, the number of its arguments, and the arguments,
each with its length. All numbers have 8 bytes.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Number = int | float

# The width of one conversion is the kernel's to choose; beyond what C guarantees it only costs memory.
_LONGEST_FIELD = 4095
_SPECIFICATION = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d*|\*))?"
    rb"(?:v(?P<vector>\d+))?(?P<length>hh|hl|h|ll|l|[zjtqL])?(?P<conversion>[diouxXfFeEgGaAcsp%])"
)
_LENGTH_BITS = {"hh": 8, "h": 16, "hl": 32}
_FLOATS = {"half": "<e", "float": "<f", "double": "<d"}
_VECTOR_TYPE = re.compile(r"<(\d+) x (.+)>")
_INTEGER_TYPE = re.compile(r"i(\d+)")
_LONGEST_NUMBER = 2 * _LONGEST_FIELD
_C = ctypes.CDLL(None)


@dataclass(frozen=True)
class _Field:
    """One conversion specification, its asterisks already replaced."""

    flags: str
    width: int
    precision: int | None
    length: str
    conversion: str

    def pad(self, prefix: str, digits: str, zeros: bool) -> str:
        """Bring `prefix` (sign, 0x) and `digits` to the field's width."""
        missing = self.width - len(prefix) - len(digits)
        if missing <= 0:
            return prefix + digits
        if "-" in self.flags:
            return prefix + digits + " " * missing
        if zeros and "0" in self.flags:
            return prefix + "0" * missing + digits
        return " " * missing + prefix + digits

    def sign(self, negative: bool) -> str:
        """What stands in front of a signed number."""
        if negative:
            return "-"
        if "+" in self.flags:
            return "+"
        return " " if " " in self.flags else ""


def argument_conversions(format_string: bytes) -> str:
    """Conversion character of each argument that a format string takes, ``*`` for a width.

    >>> argument_conversions(b"%d of %*s: %5.2v4hlf%%")
    'd*sf'
    """
    letters = []
    for match in _SPECIFICATION.finditer(format_string):
        letters += ["*" for part in ("width", "precision") if match[part] == b"*"]
        if match["conversion"] != b"%":
            letters.append(match["conversion"].decode())
    return "".join(letters)


def render(format_string: bytes, values: Sequence[tuple[str, bytes]]) -> str:
    """Text that one call of ``printf`` writes.

    What OpenCL C leaves undefined never fails: a number of another type than the conversion
    expects is printed by its own type, and a conversion without an argument stands as it is.

    >>> render(b"%#v2hhx %5.1f", [("<2 x i8>", b"\\xfa\\x01"), ("double", struct.pack("<d", 2.25))])
    '0xfa,0x1   2.2'
    """
    arguments = iter(values)
    text = _SPECIFICATION.sub(lambda match: _convert(match, arguments), format_string)
    return text.decode(errors="replace")


def _convert(match: re.Match[bytes], arguments: Iterator[tuple[str, bytes]]) -> bytes:
    """Text of one specification; it takes its arguments from `arguments`."""
    if match["conversion"] == b"%":
        return b"%"
    field = _field(match, arguments)
    argument = next(arguments, None)
    if argument is None:
        return match[0]
    type_name, data = argument
    if field.conversion == "s" and not _is_number(type_name):
        # What is recorded of a null pointer is its own bytes, and of a string what stands before its end.
        characters = (b"(null)" if data[:8] == bytes(8) else data.split(b"\0", 1)[0])[: field.precision]
        return _pad_bytes(field, characters)
    numbers = _numbers(type_name, data)
    if match["vector"]:
        numbers = numbers[: int(match["vector"])]
    return b",".join(_one(field, number, bits) for number, bits in numbers)


def _field(match: re.Match[bytes], arguments: Iterator[tuple[str, bytes]]) -> _Field:
    flags = match["flags"].decode()
    width = _amount(match["width"], arguments) or 0
    precision = _amount(match["precision"], arguments)
    if width < 0:
        flags, width = flags + "-", -width
    if precision is not None:
        precision = None if precision < 0 else min(precision, _LONGEST_FIELD)
    length = (match["length"] or b"").decode()
    return _Field(flags, min(width, _LONGEST_FIELD), precision, length, match["conversion"].decode())


def _amount(text: bytes | None, arguments: Iterator[tuple[str, bytes]]) -> int | None:
    """Width or precision: absent, a number, nothing after the period (0), or the next argument."""
    if text is None:
        return None
    if text != b"*":
        # Leading zeros aside, more digits than the limit has cannot matter.
        digits = text.lstrip(b"0")
        return _LONGEST_FIELD if len(digits) > 9 else int(digits or b"0")
    type_name, data = next(arguments, ("i32", bytes(4)))
    return _signed(data[:4]) if _INTEGER_TYPE.fullmatch(type_name) else None


def _one(field: _Field, number: Number, bits: int) -> bytes:
    """Text of a scalar, or of one element of a vector."""
    if field.conversion == "c" and isinstance(number, int):
        return _pad_bytes(field, bytes([number & 0xFF]))
    return _number(field, number, bits).encode()


def _number(field: _Field, number: Number, bits: int) -> str:
    conversion = field.conversion
    if conversion == "p":
        return field.pad("", f"0x{int(number) if math.isfinite(number) else 0:x}", zeros=False)
    if conversion in "fFeEgGaA":
        return _floating(field, _as_signed(number, bits))
    if isinstance(number, float):
        if not math.isfinite(number):
            return _floating(field, number)
        number = math.trunc(number)
        bits = max(64, number.bit_length() + 1)
    bits = min(bits, _LENGTH_BITS.get(field.length, bits))
    return _integer(field, number & ((1 << bits) - 1), bits)


def _integer(field: _Field, number: int, bits: int) -> str:
    """``d i o u x X`` of the `bits` bits of `number`; ``c`` and ``s`` of a number are as ``d``."""
    conversion = field.conversion
    prefix = ""
    if conversion in "dics":
        signed = number - (1 << bits) if number >> (bits - 1) else number
        prefix, digits = field.sign(signed < 0), str(abs(signed))
    elif conversion in "xX":
        digits = f"{number:{conversion}}"
        prefix = "0" + conversion if "#" in field.flags and number else ""
    else:
        digits = f"{number:o}" if conversion == "o" else str(number)
    if field.precision is not None:
        digits = digits.rjust(field.precision, "0") if number or field.precision else ""
    if conversion == "o" and "#" in field.flags and not digits.startswith("0"):
        digits = "0" + digits
    return field.pad(prefix, digits, zeros=field.precision is None)


def _floating(field: _Field, number: Number) -> str:
    """``f e g a`` of a number, as the C library writes it."""
    conversion = field.conversion if field.conversion in "fFeEgGaA" else "f"
    precision = "" if field.precision is None else f".{field.precision}"
    width = field.width or ""
    text = ctypes.create_string_buffer(_LONGEST_NUMBER)
    layout = f"%{field.flags}{width}{precision}{conversion}".encode()
    _C.snprintf(text, ctypes.c_size_t(len(text)), layout, ctypes.c_double(_as_float(number)))
    return text.value.decode()


def _pad_bytes(field: _Field, characters: bytes) -> bytes:
    return characters.ljust(field.width) if "-" in field.flags else characters.rjust(field.width)


def _is_number(type_name: str) -> bool:
    vector = _VECTOR_TYPE.fullmatch(type_name)
    element = vector[2] if vector else type_name
    return element in _FLOATS or _INTEGER_TYPE.fullmatch(element) is not None


def _numbers(type_name: str, data: bytes) -> list[tuple[Number, int]]:
    """Elements of a value with their number of bits; integers unsigned."""
    vector = _VECTOR_TYPE.fullmatch(type_name)
    count, element = (int(vector[1]), vector[2]) if vector else (1, type_name)
    if layout := _FLOATS.get(element):
        size = struct.calcsize(layout)
        floats = struct.iter_unpack(layout, data[: len(data) // size * size])
        return [(value, 8 * size) for (value,) in floats][:count]
    integer = _INTEGER_TYPE.fullmatch(element)
    bits = int(integer[1]) if integer else 64
    size = max(1, (bits + 7) // 8)
    parts = [data[k * size : (k + 1) * size] for k in range(count)]
    return [(int.from_bytes(part, "little"), bits) for part in parts if part]


def _signed(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _as_signed(number: Number, bits: int) -> Number:
    if isinstance(number, int) and number >> (bits - 1):
        return number - (1 << bits)
    return number


def _as_float(number: Number) -> float:
    """The number as a double; integers of more than 1024 bits become infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


_SPACE = re.compile(r" addrspace\(\d+\)")


def printed(data: bytes, calls: Sequence[Sequence[str]]) -> str:
    """Text of all calls, in order."""
    reader = _Reader(data)
    texts = []
    while reader.more:
        call, count = reader.word(), reader.word()
        format_string = reader.content()
        values = []
        for type_ in calls[call][1:count]:
            reader.word()  # whether the content is that of a string: `render` knows from the format
            values.append((_SPACE.sub("", type_), reader.content()))
        texts.append(render(format_string, values))
    return "".join(texts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._position = data, 0

    @property
    def more(self) -> bool:
        return self._position < len(self._data)

    def word(self) -> int:
        return int.from_bytes(self._take(8), "little")

    def content(self) -> bytes:
        return self._take(self.word())

    def _take(self, length: int) -> bytes:
        self._position += length
        return self._data[self._position - length : self._position]
