"""Oclgrind's simulator files (``.sim``): a program, a kernel, its sizes and its arguments.

The format follows Oclgrind's ``Simulation.cpp``: line-based words, ``#`` comments, an argument header
that ends at the last ``>`` of its line, and numbers as C++ streams read them. Kinder than the
original in two points: the last line needs no line end, and comments may follow the last argument.

Numbers in text as C++ streams read them: the longest beginning that is a number, the rest stays.

Oclgrind reads its simulator files with ``>>``, so ``7,`` is 7 and a comma, ``1-2`` is two numbers,
``-1`` is the greatest value of an unsigned type, and ``nan`` is no number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.characterization.launchfiles.arguments import (
    SCALAR_DTYPES,
    Parameters,
    ValueType,
    frontend_parameters,
    limits,
)
from crosscast.errors import InputError, LaunchError
from crosscast.kernel import Argument, Kernel, Launch, Local, Parameter, Program

_DECIMAL = re.compile(r"[+-]?[0-9]+")
_HEXADECIMAL = re.compile(r"[+-]?(?:0[xX])?[0-9a-fA-F]+")
_DANGLING_PREFIX = re.compile(r"[+-]?0[xX](?![0-9a-fA-F])")
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DANGLING_EXPONENT = re.compile(r"[eE][+-]?")
_PLAIN_INTEGERS = re.compile(r"[0-9+\-\s]*")
_PLAIN_REALS = re.compile(r"[0-9+\-.eE\s]*")


@dataclass(frozen=True)
class NumberReader:
    """Reads numbers of one type."""

    dtype: np.dtype[Any]  # The type: an integer of 1 to 8 bytes, or `float32` or `float64`
    hexadecimal: bool = False  # Integers are hexadecimal, with or without `0x`

    def match(self, text: str, start: int) -> tuple[int | float, int] | str:
        """Read the number at `start`: it and where it ends, or what is wrong."""
        real, (least, greatest) = self.dtype.kind == "f", limits(self.dtype)
        found = (_REAL if real else _HEXADECIMAL if self.hexadecimal else _DECIMAL).match(text, start)
        # C++ takes the `e` of `1e` as the start of an exponent, and fails for want of digits.
        dangles = _DANGLING_EXPONENT.match(text, found.end()) if found and real else None
        if not real and self.hexadecimal:
            dangles = _DANGLING_PREFIX.match(text, start)
        if found is None or dangles:
            return f"Failed to parse {_token(text, start)!r} as {self._name}"
        value = float(found[0]) if real else int(found[0], 16 if self.hexadecimal else 10)
        if self.dtype.itemsize == 1 and not least <= value <= greatest:
            return f"Invalid char value {_token(text, start)!r}, expected {least} to {greatest}"
        if self.dtype.kind == "u" and -greatest <= value < 0:
            value += int(greatest) + 1
        if not least <= value <= greatest:
            return f"Number out of range for {self._name}: {_token(text, start)!r}"
        return value, found.end()

    def many(self, line: str) -> npt.NDArray[Any] | None:
        """Read a whole line of nothing but plain, fitting numbers at once; ``None`` if it has more."""
        real, (least, greatest) = self.dtype.kind == "f", limits(self.dtype)
        if not (_PLAIN_REALS if real else _PLAIN_INTEGERS).fullmatch(line) or (self.hexadecimal and not real):
            return None
        try:
            numbers = [float(token) if real else int(token) for token in line.split()]
        except ValueError:
            return None
        if numbers and not least <= min(numbers) <= max(numbers) <= greatest:
            return None
        return np.array(numbers, dtype=self.dtype)

    @property
    def _name(self) -> str:
        return "a real number" if self.dtype.kind == "f" else f"a {self.dtype.itemsize * 8}-bit integer"


def _token(text: str, start: int) -> str:
    """The word at `start`, for messages."""
    return text[start:].split(maxsplit=1)[0] if text[start:].strip() else ""


_Array = npt.NDArray[Any]

# In the order in which a type's name is looked for at the start of the parameter's type.
_TYPES = {name: dtype for name, dtype in SCALAR_DTYPES.items() if name != "half"}
_POINTERS = ("global", "constant")
_ANY_BYTES = np.dtype([("byte", np.uint8)])


@dataclass(frozen=True)
class Dump:
    """An argument whose content is shown after the run."""

    name: str  # Name of the kernel's parameter
    index: int  # Its number, from 0
    dtype: np.dtype[Any]  # Type in which its elements are shown
    hexadecimal: bool = False  # They are shown with `0x` and all their digits


@dataclass(frozen=True)
class SimFile:
    """A simulator file, ready to run."""

    launch: Launch  # What it launches
    dumps: tuple[Dump, ...]  # Arguments to show after the run, in order


def read(
    path: str | Path,
    parameters: Parameters | None = None,
    *,
    options: Sequence[str] = (),
    standard: str = "1.2",
) -> SimFile:
    """Read a simulator file; the program's path in it starts from the working directory."""
    words = _Words(Path(path))
    words.reading = "program file"
    source = words.word()
    words.reading = "kernel"
    kernel = words.word()
    words.reading = "NDRange"
    global_size = _sizes(words)
    words.reading = "work-group size"
    local_size = _sizes(words)
    try:
        program = Program.from_file(source, options=options, standard=standard)
        # Checks the sizes before anything compiles.
        launch = Launch(Kernel(program, kernel), global_size, local_size)
    except LaunchError as error:
        raise words.fail(str(error)) from error
    declared = (parameters or frontend_parameters)(program, kernel)
    arguments = [_Argument.read(words, index, parameter) for index, parameter in enumerate(declared)]
    words.expect_end()
    return SimFile(
        Launch(
            launch.kernel,
            global_size,
            local_size,
            tuple(argument.value for argument in arguments),
            read_only=frozenset(i for i, argument in enumerate(arguments) if argument.header.access == "ro"),
        ),
        tuple(
            Dump(parameter.name, index, argument.dtype, argument.header.hexadecimal)
            for index, (parameter, argument) in enumerate(zip(declared, arguments, strict=True))
            if argument.header.dump
        ),
    )


def render_dumps(simfile: SimFile) -> str:
    """Text of the arguments marked ``dump``, as Oclgrind prints it after the run."""
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
    """An element as the original writes it; `hex` pads reals too, though it leaves them decimal."""
    size = dump.dtype.itemsize
    text = _real_text(value) if dump.dtype.kind == "f" else str(value)
    if not dump.hexadecimal:
        return text
    if dump.dtype.kind != "f":
        # Bytes are written as 4-byte integers, and negative ones show it.
        text = f"{value % (1 << 8 * (4 if size == 1 else size)):x}"
    return "0x" + text.rjust(2 * size, "0")


def _real_text(value: float) -> str:
    """A real as a C++ stream writes it: six significant digits, and the sign of a NaN."""
    if value != value:
        return "-nan" if np.signbit(value) else "nan"
    return f"{value:g}"


class _Words:
    """The file's words and numbers, line by line, without comments."""

    def __init__(self, path: Path) -> None:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: cannot read the simulator file ({error.strerror})") from error
        if b"\0" in content:
            raise InputError(f"{path}: expected a simulator file, found binary data")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: expected a simulator file, found binary data") from error
        self._lines = iter(text.split("\n"))
        self._path = path
        self._number = 0
        self._line = ""
        self._at = 0
        self.reading = ""

    def fail(self, problem: str) -> InputError:
        """Error at the current line."""
        return InputError(f"{self._path}:{self._number}: {problem} ({self.reading})")

    def _seek(self) -> None:
        """Go to the next word, on a later line if this one has no more."""
        while not self._line[self._at :].strip():
            line = next(self._lines, None)
            if line is None:
                raise InputError(f"{self._path}:{self._number}: Unexpected EOF when parsing {self.reading}")
            self._number += 1
            self._line, self._at = line.split("#", 1)[0], 0
        rest = self._line[self._at :]
        self._at += len(rest) - len(rest.lstrip())

    def word(self) -> str:
        """Next word."""
        self._seek()
        word = self._line[self._at :].split(maxsplit=1)[0]
        self._at += len(word)
        return word

    def integer(self) -> int:
        """Next number, as a size."""
        self._seek()
        return int(self._number_by(NumberReader(np.dtype(np.int64))))

    def header(self) -> str:
        """Content of the argument header ``<...>`` that comes next."""
        self._seek()
        if self._line[self._at] != "<":
            raise self.fail(
                f"Expected argument header <...>, found {self._line[self._at :].split(maxsplit=1)[0]!r}"
            )
        end = self._line.rfind(">", self._at)
        if end < 0:
            raise self.fail("Missing '>' at end of argument header")
        content = self._line[self._at + 1 : end]
        self._at = end + 1
        return content

    def numbers(self, count: int, reader: NumberReader) -> _Array:
        """Next `count` numbers."""
        values = np.empty(count, dtype=reader.dtype)
        done = 0
        while done < count:
            self._seek()
            line = reader.many(self._line[self._at :])
            if line is not None and line.size <= count - done:
                values[done : done + line.size] = line
                done += line.size
                self._at = len(self._line)
            else:
                values[done] = self._number_by(reader)
                done += 1
        return values

    def _number_by(self, reader: NumberReader) -> int | float:
        found = reader.match(self._line, self._at)
        if isinstance(found, str):
            raise self.fail(found)
        value, self._at = found
        return value

    def expect_end(self) -> None:
        """Refuse words on later lines; like the original, leave the rest of this line unread."""
        for line in self._lines:
            self._number += 1
            words = line.split("#", 1)[0].split()
            if words:
                raise InputError(f"{self._path}:{self._number}: Unexpected token {words[0]!r} (expected EOF)")


def _sizes(words: _Words) -> tuple[int, int, int]:
    return words.integer(), words.integer(), words.integer()


@dataclass
class _Header:
    """The words between ``<`` and ``>``."""

    size: int | None = None  # Bytes
    type: str | None = None  # Type of the values, if named
    fill: str = ""  # Text of `fill=` and `range=`, empty if absent
    span: str = ""
    access: str = ""  # `ro`, `wo` or empty
    hexadecimal: bool = False
    noinit: bool = False
    null: bool = False
    dump: bool = False

    @classmethod
    def parse(cls, words: _Words, text: str, parameter: Parameter) -> _Header:
        header = cls()
        for token in text.split():
            header._take(words, token)
        header._check(words, parameter)
        return header

    def _take(self, words: _Words, token: str) -> None:
        """Note one word; words that Oclgrind knows by their beginning are known by it here."""
        if token in _TYPES:
            if self.type is not None:
                raise words.fail("Argument type defined multiple times")
            self.type = token
        elif token.startswith("dump"):
            self.dump = True
        elif token.startswith("fill"):
            self.fill = _after_equals(words, token, "fill", "VALUE")
        elif token.startswith("range"):
            self.span = _after_equals(words, token, "range", "START:INC:END")
        elif token.startswith("size"):
            self.size = _header_size(words, token)
        elif token == "hex":
            self.hexadecimal = True
        elif token == "noinit":
            self.noinit = True
        elif token == "null":
            self.null = True
        elif token in ("ro", "wo"):
            if self.access not in ("", token):
                raise words.fail("'ro' and 'wo' are mutually exclusive")
            self.access = token
        else:
            raise words.fail(f"Unrecognised header token {token!r}")

    def _check(self, words: _Words, parameter: Parameter) -> None:
        """Refuse words that do not go together, or not with the kind of the parameter."""
        buffer = parameter.kind in _POINTERS
        for name, given in (("noinit", self.noinit), ("null", self.null)):
            if given and not buffer:
                raise words.fail(f"'{name}' only valid for buffer arguments")
        if self.access and parameter.kind != "global":
            raise words.fail(f"'{self.access}' only valid for global memory buffers")
        initializers = self.noinit + bool(self.fill) + bool(self.span)
        if self.null and (self.size is not None or initializers or self.dump):
            raise words.fail("'null' not valid with other argument descriptors")
        if not self.null and self.size is None:
            raise words.fail("size required")
        if self.size == 0 and not buffer:
            raise words.fail("Invalid value for 'size', expected at least 1 byte, found 0")
        if self.dump and not buffer:
            raise words.fail("'dump' only valid for memory objects")
        if initializers > 1:
            raise words.fail("Multiple initializers present")


def _after_equals(words: _Words, token: str, name: str, what: str) -> str:
    if len(token) < len(name) + 2 or token[len(name)] != "=":
        raise words.fail(f"Expected ={what} after '{name}', found {token!r}")
    return token[len(name) + 1 :]


def _header_size(words: _Words, token: str) -> int:
    if token[4:5] != "=":
        raise words.fail(f"Expected = after 'size', found {token!r}")
    digits = token[5:].removeprefix("+")
    if not (digits.isascii() and digits.isdigit()):
        raise words.fail(f"Invalid value for 'size', expected a number of bytes, found {token[5:]!r}")
    return int(digits)


@dataclass(frozen=True)
class _Argument:
    """One argument as the file gives it."""

    header: _Header
    dtype: np.dtype[Any]
    value: Argument

    @classmethod
    def read(cls, words: _Words, index: int, parameter: Parameter) -> _Argument:
        words.reading = f"argument {index}: {parameter.name}"
        header = _Header.parse(words, words.header(), parameter)
        if parameter.kind in ("image", "sampler"):
            raise words.fail(f"a simulator file cannot hold the {parameter.kind} that the kernel expects")
        if header.null:
            return cls(header, np.dtype(np.uint8), None)
        assert header.size is not None
        dtype = _data_type(words, header, parameter)
        if header.size % dtype.itemsize:
            raise words.fail(
                f"Initialiser type must exactly divide argument size, found {header.size} bytes "
                f"and a type of {dtype.itemsize}"
            )
        if parameter.kind == "local":
            return cls(header, dtype, Local(header.size))
        if parameter.kind == "value" and header.size != parameter.size:
            raise words.fail(
                f"expected size={parameter.size} for {parameter.type_name}, found size={header.size}"
            )
        try:
            values = _values(words, header, header.size // dtype.itemsize, dtype)
        except MemoryError as error:
            raise words.fail(f"{header.size} bytes do not fit into memory") from error
        if parameter.kind == "value":
            return cls(header, dtype, _as_value(values, parameter))
        return cls(header, dtype, _as_elements(values, parameter))


def _as_value(values: _Array, parameter: Parameter) -> Argument:
    """The bytes of `values` as a scalar of the parameter's type, or as they are for vectors and structs."""
    dtype = SCALAR_DTYPES.get(parameter.type_name)
    if dtype is None:
        return values.tobytes()
    scalar: np.generic = values.view(dtype)[0]
    return scalar


def _as_elements(values: _Array, parameter: Parameter) -> _Array:
    """The bytes of `values` as elements of the parameter's type, or as plain bytes where they are none.

    The format fills a buffer with values of any type; a launch wants the kernel's own.
    """
    try:
        kind = ValueType.parse(parameter.type_name)
    except InputError:
        return values
    if values.nbytes % (kind.slots * kind.dtype.itemsize):
        return values.view(_ANY_BYTES)
    return values.view(kind.dtype)


def _data_type(words: _Words, header: _Header, parameter: Parameter) -> np.dtype[Any]:
    """Type of the values: the header's, or else the one that the parameter's type begins with."""
    if header.type is not None:
        return _TYPES[header.type]
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


def _values(words: _Words, header: _Header, count: int, dtype: np.dtype[Any]) -> _Array:
    """Initial content, by whichever way the header names."""
    reader = NumberReader(dtype, header.hexadecimal)
    if header.noinit:
        return np.zeros(count, dtype=dtype)
    if header.fill:
        found = reader.match(header.fill, 0)
        if isinstance(found, str):
            raise words.fail(found)
        if found[1] != len(header.fill):
            raise words.fail(f"Invalid fill value {header.fill!r}")
        return np.full(count, found[0], dtype=dtype)
    if header.span:
        return _span(words, header.span, count, reader)
    return words.numbers(count, reader)


def _span(words: _Words, text: str, count: int, reader: NumberReader) -> _Array:
    """``START:STEP:END``, the end included; computed in the type itself, like the original."""
    numbers, at = [], 0
    for part in range(3):
        found = reader.match(text, at)
        if isinstance(found, str):
            raise words.fail(f"Invalid range format {text!r}: {found}")
        value, at = found
        numbers.append(value)
        if part < 2 and text[at : at + 1] != ":":
            raise words.fail(f"Invalid range format {text!r}, expected START:STEP:END")
        at += part < 2
    if at != len(text):
        raise words.fail(f"Invalid range format {text!r}, expected START:STEP:END")
    start, step, end = (reader.dtype.type(value) for value in numbers)
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
    """Values from start to end; integers below 4 bytes are widened first, as C++ does."""
    if start.dtype.kind in "iu" and start.dtype.itemsize < 4:
        start, step, end = int(start), int(step), int(end)
    if step == 0:
        return float("inf")
    with np.errstate(over="ignore"):
        return float(end - start + step) / float(step)
