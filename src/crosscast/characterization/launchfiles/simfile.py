"""Oclgrind's simulator files (``.sim``): a program, a kernel, its sizes and its arguments.

The format follows Oclgrind's ``Simulation.cpp``: words and numbers, ``#`` comments, an argument header that
ends at the last ``>`` of its line. It is extended in two points: the last line needs no line end, and
comments may follow the last argument.

Oclgrind reads numbers with ``>>``, that is, the longest beginning that is a number: ``7,`` is 7 and a comma,
``1-2`` is two numbers, ``-1`` is the greatest value of an unsigned type, and ``nan`` is no number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosscast.arrays import AnyArray
from crosscast.characterization.launchfiles.arguments import (
    Array,
    frontend_parameters,
)
from crosscast.characterization.value_types import SCALAR_DTYPES, ValueType, limits
from crosscast.errors import InputError, LaunchError
from crosscast.kernel import Argument, Kernel, Launch, Local, Parameter, Program


class _Form(NamedTuple):
    """Notation of numbers."""

    number: re.Pattern[str]
    value: Callable[[str], int | float]
    plain: re.Pattern[str]  # Lines of numbers and spaces that Python reads alike


# `0x` and `1e` are no numbers, as C++ expects more behind their letter.
_DECIMAL = _Form(re.compile(r"[+-]?[0-9]+"), int, re.compile(r"[0-9+\- \t]*"))
_REAL = _Form(
    re.compile(r"[+-]?(?>[0-9]+\.?[0-9]*|\.[0-9]+)(?>[eE][+-]?[0-9]+)?+(?![eE])"),
    float,
    re.compile(r"[0-9+\-.eE \t]*"),
)
_HEXADECIMAL = _Form(
    re.compile(r"[+-]?(?!0[xX](?![0-9a-fA-F]))(?:0[xX])?[0-9a-fA-F]+"),
    lambda text: int(text, 16),
    re.compile(r" *"),
)


@dataclass(frozen=True)
class NumberReader:
    """Reads numbers of one type."""

    dtype: np.dtype[np.generic]  # The type: an integer of 1 to 8 bytes, or `float32` or `float64`
    hexadecimal: bool = False  # Integers are hexadecimal, with or without `0x`

    @property
    def _form(self) -> _Form:
        return _REAL if self.dtype.kind == "f" else _HEXADECIMAL if self.hexadecimal else _DECIMAL

    def match(self, text: str, start: int) -> tuple[int | float, int]:
        """Read the number at `start`; return it and its end, or raise `ValueError` with the problem."""
        least, greatest = limits(self.dtype)
        token = (text[start : start + 100].split(maxsplit=1) or [""])[0]
        name = "a real number" if self.dtype.kind == "f" else f"a {self.dtype.itemsize * 8}-bit integer"
        token_match = self._form.number.match(text, start)
        if token_match is None:
            raise ValueError(f"Failed to parse {token!r} as {name}")
        value = self._form.value(token_match[0])
        if self.dtype.itemsize == 1 and not least <= value <= greatest:
            raise ValueError(f"Invalid char value {token!r}, expected {least} to {greatest}")
        if self.dtype.kind == "u" and -greatest <= value < 0:
            value += int(greatest) + 1
        if not least <= value <= greatest:
            raise ValueError(f"Number out of range for {name}: {token!r}")
        return value, token_match.end()

    def single(self, text: str) -> int | float:
        """Read a text that is a single number."""
        value, end = self.match(text, 0)
        if end != len(text):
            raise ValueError(f"{text[end:]!r} is left over")
        return value

    def many(self, line: str) -> Array | None:
        """Read a line of plain numbers in range at once; ``None`` if it has anything else."""
        if not self._form.plain.fullmatch(line):
            return None
        try:
            numbers = [self._form.value(token) for token in line.split()]
        except ValueError:
            return None
        least, greatest = limits(self.dtype)
        is_fitting = not numbers or least <= min(numbers) <= max(numbers) <= greatest
        return np.array(numbers, dtype=self.dtype) if is_fitting else None


# In the order of the search for a type's name at the start of the parameter's type.
_TYPES = {name: dtype for name, dtype in SCALAR_DTYPES.items() if name != "half"}
_ANY_BYTES = np.dtype([("byte", np.uint8)])


@dataclass(frozen=True)
class Dump:
    """An argument that is printed after the run."""

    name: str  # Name of the kernel's parameter
    index: int  # Its number, from 0
    dtype: np.dtype[np.generic]  # Type of the printed elements
    hexadecimal: bool = False  # Printed with `0x` and all digits


@dataclass(frozen=True)
class SimFile:
    """A simulator file, ready to run."""

    launch: Launch
    dumps: tuple[Dump, ...]  # Arguments to print after the run, in order


def read(
    path: str | Path,
    *,
    options: Sequence[str] = (),
    standard: str = "1.2",
) -> SimFile:
    """Read a simulator file; the program's path in it is relative to the working directory."""
    words = _Words(Path(path))
    source, kernel = words.word("program file"), words.word("kernel")
    global_size, local_size = words.sizes("NDRange"), words.sizes("work-group size")
    try:
        program = Program.from_file(source, options=options, standard=standard)
        Launch(Kernel(program, kernel), global_size, local_size)
    except LaunchError as error:
        raise words.fail(str(error)) from error
    args, dumps, read_only = [], [], set()
    for index, parameter in enumerate(frontend_parameters(program, kernel)):
        words.reading = f"argument {index}: {parameter.name}"
        header = _read_header(words, parameter)
        dtype, value = _read_argument(words, header, parameter)
        args.append(value)
        if header.get("access") == "ro":
            read_only.add(index)
        if "dump" in header:
            dumps.append(Dump(parameter.name, index, dtype, "hex" in header))
    words.expect_end()
    launch = Launch(
        Kernel(program, kernel), global_size, local_size, tuple(args), read_only=frozenset(read_only)
    )
    return SimFile(launch, tuple(dumps))


def render_dumps(simfile: SimFile) -> str:
    """Format the arguments marked ``dump``, as Oclgrind prints them after the run."""
    parts = []
    for dump in simfile.dumps:
        buffer = simfile.launch.args[dump.index]
        assert isinstance(buffer, np.ndarray)
        elements = buffer.reshape(-1).view(np.uint8).view(dump.dtype).tolist()
        parts.append(f"\nArgument '{dump.name}': {buffer.nbytes} bytes\n")
        parts.extend(f"  {dump.name}[{i}] = {_element_text(dump, e)}\n" for i, e in enumerate(elements))
        parts.append("\n")
    return "".join(parts)


def _element_text(dump: Dump, value: Any) -> str:
    """Format an element as the original does; `hex` also pads reals, which stay decimal."""
    size = dump.dtype.itemsize
    if dump.dtype.kind == "f":
        # A C++ stream writes six significant digits, and the sign of a NaN.
        text = "-nan" if value != value and np.signbit(value) else f"{value:g}"
    elif dump.hexadecimal:
        # Bytes are written as 4-byte integers, which shows for negative ones.
        text = f"{value % (1 << 8 * (4 if size == 1 else size)):x}"
    else:
        text = str(value)
    return "0x" + text.rjust(2 * size, "0") if dump.hexadecimal else text


class _Words:
    """Words and numbers of a file, without comments."""

    def __init__(self, path: Path) -> None:
        try:
            text = path.read_bytes().decode("utf-8")
        except OSError as error:
            raise InputError.of(
                where=path, problem=f"cannot read the simulator file ({error.strerror})"
            ) from error
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise InputError.of(where=path, expected="a simulator file", found="binary data")
        self._text = re.sub("#.*", "", text) + "\n"
        self._at = 0
        self._path = path
        self.reading = ""

    def _located(self, problem: str) -> InputError:
        line = self._text.count("\n", 0, self._at) + 1
        return InputError.of(where=f"{self._path}:{line}", problem=problem)

    def fail(self, problem: str) -> InputError:
        """Return an error at the current line."""
        return self._located(f"{problem} ({self.reading})")

    def _seek(self) -> None:
        """Advance to the next word."""
        word = re.compile(r"\S").search(self._text, self._at)
        if word is None:
            raise self._located(f"Unexpected EOF when parsing {self.reading}")
        self._at = word.start()

    def _rest(self) -> str:
        return self._text[self._at : self._text.index("\n", self._at)]

    def word(self, reading: str) -> str:
        """Read the next word."""
        self.reading = reading
        self._seek()
        word = self._rest().split(maxsplit=1)[0]
        self._at += len(word)
        return word

    def sizes(self, reading: str) -> tuple[int, int, int]:
        """Read the next three numbers."""
        self.reading = reading
        first, second, third = self.numbers(3, NumberReader(np.dtype(np.int64))).tolist()
        return first, second, third

    def header(self) -> str:
        """Read the argument header ``<...>`` that comes next."""
        self._seek()
        content, end, _ = self._rest().rpartition(">")
        if self._text[self._at] != "<":
            raise self.fail(f"Expected argument header <...>, found {self._rest().split(maxsplit=1)[0]!r}")
        if not end:
            raise self.fail("Missing '>' at end of argument header")
        self._at += len(content) + 1
        return content[1:]

    def numbers(self, count: int, reader: NumberReader) -> Array:
        """Read the next `count` numbers."""
        values = np.empty(count, dtype=reader.dtype)
        done = 0
        while done < count:
            self._seek()
            rest = self._rest()
            line = reader.many(rest)
            if line is not None and line.size <= count - done:
                values[done : done + line.size] = line
                done, self._at = done + line.size, self._at + len(rest)
                continue
            try:
                values[done], self._at = reader.match(self._text, self._at)
            except ValueError as error:
                raise self.fail(str(error)) from error
            done += 1
        return values

    def expect_end(self) -> None:
        """Raise for words on later lines; like the original, ignore the rest of this line."""
        if word := re.compile(r"\n\s*(\S+)").search(self._text, self._at):
            self._at = word.start(1)
            raise self._located(f"Unexpected token {word[1]!r} (expected EOF)")


_Header = dict[str, str]
"""Fields between ``<`` and ``>`` with their values."""

_WITH_VALUE = {"fill": "VALUE", "range": "START:INC:END", "size": ""}


def _read_header(words: _Words, parameter: Parameter) -> _Header:
    header: _Header = {}
    for token in words.header().split():
        name, value = _header_word(words, token)
        if name == "type" and name in header:
            raise words.fail("Argument type defined multiple times")
        if header.get(name, value) != value and name == "access":
            raise words.fail("'ro' and 'wo' are mutually exclusive")
        header[name] = value
    _check_header(words, header, parameter)
    return header


def _header_word(words: _Words, token: str) -> tuple[str, str]:
    """Return the field and value of a word; as in Oclgrind, some words are matched by prefix."""
    if token in _TYPES:
        return "type", token
    if token in ("ro", "wo"):
        return "access", token
    if token in ("hex", "noinit", "null"):
        return token, ""
    if token.startswith("dump"):
        return "dump", ""
    name = next((name for name in _WITH_VALUE if token.startswith(name)), None)
    if name is None:
        raise words.fail(f"Unrecognised header token {token!r}")
    value = token[len(name) + 1 :]
    if token[len(name) : len(name) + 1] != "=" or not (value or name == "size"):
        raise words.fail(f"Expected ={_WITH_VALUE[name]} after {name!r}, found {token!r}")
    if name == "size" and not re.fullmatch(r"\+?[0-9]{1,18}", value):
        raise words.fail(f"Invalid value for 'size', expected a number of bytes, found {value!r}")
    return name, value


def _check_header(words: _Words, header: _Header, parameter: Parameter) -> None:
    """Raise for fields that contradict each other, or the kind of the parameter."""

    def refuse(is_wrong: object, problem: str) -> None:
        if is_wrong:
            raise words.fail(problem)

    buffer, null, access = parameter.kind in ("global", "constant"), "null" in header, header.get("access")
    initializers = [name for name in ("noinit", "fill", "range") if name in header]
    refuse("noinit" in header and not buffer, "'noinit' only valid for buffer arguments")
    refuse(null and not buffer, "'null' only valid for buffer arguments")
    refuse(access and parameter.kind != "global", f"'{access}' only valid for global memory buffers")
    refuse(
        null and {*initializers, "size", "dump"} & {*header},
        "'null' not valid with other argument descriptors",
    )
    refuse(not null and "size" not in header, "size required")
    is_empty = int(header.get("size", 1)) == 0
    refuse(is_empty and not buffer, "Invalid value for 'size', expected at least 1 byte, found 0")
    refuse("dump" in header and not buffer, "'dump' only valid for memory objects")
    refuse(len(initializers) > 1, "Multiple initializers present")


def _read_argument(
    words: _Words, header: _Header, parameter: Parameter
) -> tuple[np.dtype[np.generic], Argument]:
    """Read the argument, with the type of its values in the file."""
    if parameter.kind in ("image", "sampler"):
        raise words.fail(f"a simulator file cannot hold the {parameter.kind} that the kernel expects")
    if "null" in header:
        return np.dtype(np.uint8), None
    size, dtype = int(header["size"]), _data_type(words, header, parameter)
    if size % dtype.itemsize:
        raise words.fail(
            f"Initialiser type must exactly divide argument size, found {size} bytes "
            f"and a type of {dtype.itemsize}"
        )
    if parameter.kind == "local":
        return dtype, Local(size)
    if parameter.kind == "value" and size != parameter.size:
        raise words.fail(f"expected size={parameter.size} for {parameter.type_name}, found size={size}")
    try:
        values = _values(words, header, size // dtype.itemsize, dtype)
    except MemoryError as error:
        raise words.fail(f"{size} bytes do not fit into memory") from error
    return dtype, (_as_value if parameter.kind == "value" else _as_elements)(values, parameter)


def _as_value(values: Array, parameter: Parameter) -> Argument:
    """Return `values` as a scalar of the parameter's type, or as bytes for vectors and structs."""
    kind = ValueType.find(parameter.type_name)
    if kind is None or kind.pointer or kind.width > 1:
        return values.tobytes()
    scalar: np.generic = values.view(kind.dtype)[0]
    return scalar


def _as_elements(values: Array, parameter: Parameter) -> AnyArray:
    """Return `values` as elements of the parameter's type, or as plain bytes if the sizes do not match.

    The format fills a buffer with values of any type; a launch needs the kernel's.
    """
    kind = ValueType.find(parameter.type_name)
    if kind is None or len(kind.pointer) > 1:
        return values
    return values.view(_ANY_BYTES if values.nbytes % kind.nbytes else kind.dtype)


def _data_type(words: _Words, header: _Header, parameter: Parameter) -> np.dtype[np.generic]:
    """Return the type of the values: the header's, or else a prefix of the parameter's type."""
    if "type" in header:
        return _TYPES[header["type"]]
    for name, dtype in _TYPES.items():
        if parameter.type_name.startswith(name):
            return dtype
    # Local memory takes no values, so its type does not matter.
    if parameter.type_name.startswith("void*") or parameter.kind == "local":
        return np.dtype(np.uint8)
    raise words.fail(
        f"Invalid default kernel argument type {parameter.type_name!r}, "
        f"expected one of {', '.join(_TYPES)} in the header"
    )


def _values(words: _Words, header: _Header, count: int, dtype: np.dtype[np.generic]) -> Array:
    reader = NumberReader(dtype, "hex" in header)
    if "noinit" in header:
        return np.zeros(count, dtype=dtype)
    if fill := header.get("fill"):
        try:
            return np.full(count, reader.single(fill), dtype=dtype)
        except ValueError as error:
            raise words.fail(f"Invalid fill value {fill!r}: {error}") from error
    if span := header.get("range"):
        return _span(words, span, count, reader)
    return words.numbers(count, reader)


def _span(words: _Words, text: str, count: int, reader: NumberReader) -> Array:
    """Expand ``START:STEP:END``, the end included, in the arithmetic of the type, like the original."""
    try:
        start, step, end = (reader.dtype.type(reader.single(part)) for part in text.split(":"))
    except ValueError as error:
        raise words.fail(f"Invalid range format {text!r}, expected START:STEP:END ({error})") from error
    length = _span_length(start, step, end)
    if length != count:
        raise words.fail(
            f"Range doesn't produce correct buffer size: {text!r} has {length:g} values, expected {count}"
        )
    values = np.full(count, step, dtype=reader.dtype)
    values[0] = start
    with np.errstate(over="ignore"):
        return np.add.accumulate(values, dtype=reader.dtype)


def _span_length(start: Any, step: Any, end: Any) -> float:
    """Return the number of values from start to end; integers below 4 bytes are widened, as in C++."""
    if start.dtype.kind in "iu" and start.dtype.itemsize < 4:
        start, step, end = int(start), int(step), int(end)
    if step == 0:
        return float("inf")
    with np.errstate(over="ignore"):
        return float(end - start + step) / float(step)
