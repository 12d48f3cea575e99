"""Messages of a kernel's process: why it failed, and what it printed.

A fault says work-item, line and memory, as far as known.

The engine records the arguments of each executed call of OpenCL C's ``printf`` (OpenCL C 1.2, section
6.12.13) as bytes, which are formatted here, outside of the process that runs the kernel. A record is the
number of the call of ``printf``, the number of its arguments, and the arguments, each with its length. All
numbers have 8 bytes.
"""

from __future__ import annotations

import ctypes
import io
import math
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from crosscast.characterization.engine.arguments import Memory, three
from crosscast.characterization.engine.layout import CONSTANTS, ResultLayout
from crosscast.kernel import Launch

_FAULTS = {
    CONSTANTS[name]: name
    for name in "SIGNAL BOUNDS DIVERGED STACK NO_MEMORY LANES_MISSING ASSERTION OUTSIDE PRINTED".split()
}
_WHO = "--check-bounds tells the work-item and the line"
_NEAR, _FAR = 1 << 21, 1 << 40
_NO_ADDRESS = 1 << 63
_WORD = (1 << 64) - 1


def _listed(values: Sequence[int]) -> str:
    return str(tuple(values)) if len(values) > 1 else str(values[0])


def _outside(distance: int, nbytes: int) -> int:
    """Return the distance of an offset from a buffer; 0 inside."""
    return -distance if distance < 0 else max(0, distance - nbytes + 1)


@dataclass(frozen=True)
class Faults:
    """Sentences on faults of a launch."""

    launch: Launch
    memory: Memory
    layout: ResultLayout

    def sentence(self, status: Sequence[int]) -> str:
        """Say what the fault is, where, and in which memory; see the calls of ``cc_fail``."""
        layout, dims = self.layout, len(self.launch.global_size)
        fault, number, address, x, y, z, site, item, a, b = status[
            CONSTANTS["S_FAULT"] : CONSTANTS["S_B"] + 1
        ]
        group = f"work-group {_listed((x, y, z)[:dims])}"
        work_item = f"work-item {_listed(self._global_id((x, y, z), item))}"
        outside = "accessed memory that is not its own"
        match _FAULTS[fault]:
            case "BOUNDS":
                line = f" in line {layout.fault_lines[site]}" if layout.fault_lines[site] else ""
                access = f"out-of-bounds {'write' if b else 'read'}"
                verb = "write to a read-only buffer" if number else access
                return f"{verb} of {a} bytes by {work_item}{line}: {self._nearest(address)[1]}"
            case "DIVERGED":
                lines = sorted({line for line in layout.cut_lines if line})
                stand = f" (barriers stand in line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})"
                return f"a barrier was not reached by all work-items of {group}{stand if lines else ''}"
            case "LANES_MISSING":
                where = f"line {layout.cut_lines[a]}: " if layout.cut_lines[a] else ""
                return f"{where}a warp operation was not reached by all lanes that its mask names, in {group}"
            case "ASSERTION":
                return f"an assertion in line {layout.fault_lines[site]} failed in {work_item}"
            case "STACK":
                return f"{group} needs more private memory than the stack of 256 MiB"
            case "NO_MEMORY":
                return f"no memory for {address} bytes of counters"
            case "PRINTED":
                return f"{group} printed more than the limit of {address >> 20} MiB"
            case "OUTSIDE":
                return f"{outside}: {self._accessed(address, a, b)}; {_WHO}"
        if number == signal.SIGFPE:
            return f"integer division by zero (or the least integer divided by -1) in {group}"
        if number in (signal.SIGSEGV, signal.SIGBUS):
            return f"{group} {outside}: {self._accessed(address, a, b)}; {_WHO}"
        if number == signal.SIGILL:
            return f"a trap (__trap, or code that is declared unreachable) stopped {group}"
        return f"{group} was stopped by {signal.Signals(number).name}"

    def _global_id(self, groups: Sequence[int], item: int) -> list[int]:
        """Return the global id of a work-item by its number in a group; the last group may be smaller."""
        launch, ids = self.launch, []
        sizes = three(launch.local_size, 1), three(launch.global_size, 1), three(launch.global_offset, 0)
        for group, local, size, offset in zip(groups, *sizes, strict=True):
            items = min(local, size - group * local)
            ids.append(group * local + item % items + offset)
            item //= items
        return ids[: len(launch.local_size)]

    def _accessed(self, address: int, counted: int, offset: int) -> str:
        """Describe a signal's address: of data, or of the counter of an address or of a local offset."""
        if address == _NO_ADDRESS:
            return "an address that no memory can have"
        local, offset = self.memory.local_bytes, _signed(offset, 64)
        candidates = [self._nearest(address), self._nearest(counted)]
        if local:
            text = f"byte offset {offset} of local memory ({local} bytes)"
            candidates.append((_outside(offset, local), text))
        return min(candidates, key=itemgetter(0))[1]

    def _nearest(self, address: int) -> tuple[int, str]:
        """Return the distance of an address from the nearest buffer, with a description."""
        address = _signed(address, 64)
        if abs(address) < _NEAR:
            arguments = enumerate(zip(self.launch.args, self.layout.parameters, strict=True))
            nulls = [(n, p.name) for n, (argument, p) in arguments if argument is None and p.is_buffer]
            which = f", argument {nulls[0][0]} ({nulls[0][1]})" if len(nulls) == 1 else ""
            return abs(address), f"byte offset {address} from a null pointer{which}"
        distances = [_outside(address - p.address, p.shared.nbytes) for p in self.memory.placed]
        distance = min(distances, default=_FAR + 1)
        if distance > _FAR:
            return _FAR, f"address {address & _WORD:#x} is in no buffer"
        nearest = self.memory.placed[distances.index(distance)]
        name, nbytes = self.layout.parameters[nearest.position].name, nearest.shared.nbytes
        offset = address - nearest.address
        return distance, (
            f"byte offset {offset} of buffer {name!r} (argument {nearest.position}, {nbytes} bytes)"
        )


# The longest field that C guarantees; a kernel could ask for any width, which costs memory.
_LONGEST_FIELD = 4095
_SPECIFICATION = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d*|\*))?"
    rb"(?:v(?P<vector>\d+))?(?P<length>hh|hl|h|ll|l|[zjtqL])?(?P<conversion>[diouxXfFeEgGaAcsp%])"
)
_LENGTH_BITS = {b"hh": 8, b"h": 16, b"hl": 32}
_DTYPES = {"half": "<f2", "float": "<f4", "double": "<f8", "i1": "u1", "i8": "u1", "i16": "<u2", "i32": "<u4"}
_DTYPES["i64"] = "<u8"
_VECTOR_TYPE = re.compile(r"<(\d+) x (.+)>")
_SPACE = re.compile(r" addrspace\(\d+\)")
_C = ctypes.CDLL(None)

Value = tuple[str, bytes]
"""LLVM type and bytes of a value; a pointer to characters has those of the string."""


def printed(data: bytes, calls: Sequence[Sequence[str]]) -> str:
    """Return the text of all calls in order; `calls` has the argument types of each call in the program."""
    reader = io.BytesIO(data)

    def number() -> int:
        return int.from_bytes(reader.read(8), "little")

    texts = []
    while reader.tell() < len(data):
        types, count = calls[number()], number()
        format_string = reader.read(number())
        values = []
        for type_ in types[1:count]:
            number()  # whether the content is that of a string: `render` knows from the format
            values.append((_SPACE.sub("", type_), reader.read(number())))
        texts.append(render(format_string, values))
    return "".join(texts)


def render(format_string: bytes, values: Sequence[Value]) -> str:
    """Format one call of ``printf``.

    Undefined behaviour of OpenCL C never fails: a number of another type than the conversion
    expects is printed by its type, and a conversion without an argument is left unchanged.

    >>> render(b"%#v2hhx %2d%%", [("<2 x i8>", b"\\xfa\\x01"), ("i32", b"\\x07\\0\\0\\0")])
    '0xfa,0x1  7%'
    """
    arguments = iter(values)
    text = _SPECIFICATION.sub(lambda match: _convert(match, arguments), format_string)
    return text.decode(errors="replace")


def _convert(match: re.Match[bytes], arguments: Iterator[Value]) -> bytes:
    """Format one specification, with the next of `arguments`."""
    flags, conversion = match["flags"], match["conversion"]
    if conversion == b"%":
        return b"%"
    width, precision = _amount(match["width"], arguments) or 0, _amount(match["precision"], arguments)
    if width < 0:
        flags, width = flags + b"-", -width
    width = min(width, _LONGEST_FIELD)
    type_name, data = next(arguments, ("", b""))
    if not type_name:
        return match[0]
    vector = _VECTOR_TYPE.fullmatch(type_name)
    count, element = (int(vector[1]), vector[2]) if vector else (1, type_name)
    if conversion == b"s" and element not in _DTYPES:
        # A null pointer is recorded by its bytes, and a string up to its end.
        characters = b"(null)" if data[:8] == bytes(8) else data.split(b"\0", 1)[0]
        return _padded(characters[: None if precision is None or precision < 0 else precision], flags, width)
    dtype = np.dtype(_DTYPES.get(element, "<u8"))
    numbers = np.frombuffer(data[: len(data) // dtype.itemsize * dtype.itemsize], dtype)[:count]
    layout = b"%" + flags + (b"%d" % width if width else b"")
    if precision is not None and precision >= 0:
        layout += b".%d" % min(precision, _LONGEST_FIELD)
    bits = min(8 * dtype.itemsize, _LENGTH_BITS.get(match["length"], 64))
    texts = []
    for number in numbers[: _amount(match["vector"], arguments) or count].tolist():
        if conversion == b"c" and isinstance(number, int):
            texts.append(_padded(bytes([number & 0xFF]), flags, width))
        elif conversion == b"p":
            address = int(number) if math.isfinite(number) else 0
            texts.append(_padded(f"0x{address:x}".encode(), flags, width))
        elif conversion in b"fFeEgGaA":
            value = _signed(number, 8 * dtype.itemsize) if isinstance(number, int) else number
            texts.append(_c_text(layout + conversion, ctypes.c_double(value)))
        elif not math.isfinite(number):
            texts.append(_c_text(layout + b"f", ctypes.c_double(number)))
        elif conversion in b"dics":
            integer = _signed(int(number), bits if isinstance(number, int) else 64)
            texts.append(_c_text(layout + b"lld", ctypes.c_longlong(integer)))
        else:
            integer = int(number) & ((1 << (bits if isinstance(number, int) else 64)) - 1)
            texts.append(_c_text(layout + b"ll" + conversion, ctypes.c_ulonglong(integer)))
    return b",".join(texts)


def _amount(text: bytes | None, arguments: Iterator[Value]) -> int | None:
    """Return a width or precision: absent, a number, 0 for a period alone, or the next argument."""
    if text is None:
        return None
    if text != b"*":
        # More digits than those of the limit do not matter.
        return int(text.lstrip(b"0")[:9] or b"0")
    type_name, data = next(arguments, ("i32", bytes(4)))
    return int.from_bytes(data[:4], "little", signed=True) if type_name in _DTYPES else None


def _padded(characters: bytes, flags: bytes, width: int) -> bytes:
    return characters.ljust(width) if b"-" in flags else characters.rjust(width)


def _signed(number: int, bits: int) -> int:
    """Return the lowest bits as a signed number."""
    half = 1 << (bits - 1)
    return ((number + half) & (2 * half - 1)) - half


def _c_text(layout: bytes, value: object) -> bytes:
    text = ctypes.create_string_buffer(2 * _LONGEST_FIELD)
    _C.snprintf(text, ctypes.c_size_t(len(text)), layout, value)
    return text.value
