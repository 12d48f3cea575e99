"""Profiles in a SPIR-V module: strings among its debug instructions, which no consumer looks at.

``OpString`` is there since the first version, has no meaning unless another instruction names it, and
stands before all names, annotations and types.

SPIR-V modules: their header, their instructions, and the few facts that embedding needs.

Sections are those of the SPIR-V specification: physical layout (2.3), logical layout (2.4), limits (2.17).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from crosscast.characterization.embedding.payload import NAME, Payload, damaged, decode, digest, encode
from crosscast.characterization.toolchain import compile_spirv
from crosscast.errors import InputError, UnsupportedError
from crosscast.kernel import Program
from crosscast.profile import Profile

Words = npt.NDArray[np.uint32]

HEADER_WORDS = 5
OP_STRING = 7

_MAGIC = 0x07230203
_MEMORY_MODEL, _ENTRY_POINT, _FUNCTION, _FUNCTION_END, _DECORATE = 14, 15, 54, 56, 71
_BEFORE_DEBUG = frozenset((10, 11, _MEMORY_MODEL, _ENTRY_POINT, 16, 17, 331))
"""Extensions, imports, memory model, entry points, execution modes (two kinds) and capabilities."""

_LINKAGE_ATTRIBUTES, _IMPORT = 41, 1


class SpirvInstruction(NamedTuple):
    """Opcode of an instruction, its first word, and the word behind its last one."""

    opcode: int
    start: int
    end: int


@dataclass(frozen=True)
class SpirvModule:
    """A module whose instructions can be told apart."""

    words: Words  # Its words, header included
    big: bool  # Whether the file has them in big-endian order
    instructions: tuple[SpirvInstruction, ...]  # Its instructions, in order
    where: str  # The file, for messages

    @property
    def bound(self) -> int:
        """Number above all ids."""
        return int(self.words[3])

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of its entry points."""
        return tuple(self.text(i, 3)[0] for i in self._all(_ENTRY_POINT))

    @property
    def imports(self) -> tuple[str, ...]:
        """Names of what it expects another module to define; the language's own variables excepted."""
        found = []
        for instruction in self._all(_DECORATE):
            if self.words[instruction.start + 2] == _LINKAGE_ATTRIBUTES:
                name, behind = self.text(instruction, 3)
                kind = self.words[behind : instruction.end].tolist()
                if kind == [_IMPORT] and not name.startswith("__spirv_BuiltIn"):
                    found.append(name)
        return tuple(found)

    @property
    def debug_start(self) -> int:
        """Word where the section of debug instructions starts."""
        return max(i.end for i in self.instructions if i.opcode in _BEFORE_DEBUG)

    def text(self, instruction: SpirvInstruction, operand: int) -> tuple[str, int]:
        """The literal string that starts at a word of an instruction, and the word behind it."""
        start = instruction.start + operand
        octets = self.words[start : instruction.end].astype("<u4").tobytes()
        length = octets.find(b"\0")
        if length < 0:
            _refuse(self.where, f"the string at byte {4 * start} does not end")
        return octets[:length].decode(errors="replace"), start + length // 4 + 1

    def strings(self) -> Iterator[tuple[SpirvInstruction, str]]:
        """The strings for debuggers."""
        for instruction in self._all(OP_STRING):
            yield instruction, self.text(instruction, 2)[0]

    def to_bytes(self, *parts: Words) -> bytes:
        """Bytes of words, in the file's order."""
        return np.concatenate(parts).astype(">u4" if self.big else "<u4").tobytes()

    def _all(self, opcode: int) -> Iterator[SpirvInstruction]:
        return (instruction for instruction in self.instructions if instruction.opcode == opcode)


def is_module(content: bytes) -> bool:
    """Whether content begins as a SPIR-V module does, in either order of bytes."""
    return _MAGIC in (int.from_bytes(content[:4], "little"), int.from_bytes(content[:4], "big"))


def read_module(content: bytes, where: str) -> SpirvModule:
    """Tell the instructions of a module apart."""
    if not is_module(content):
        _refuse(where, f"it begins with {content[:4].hex() or 'nothing'}")
    if len(content) % 4 or len(content) < 4 * HEADER_WORDS:
        _refuse(where, f"its length of {len(content)} bytes is not that of a header and whole words")
    big = int.from_bytes(content[:4], "big") == _MAGIC
    words: Words = np.frombuffer(content, ">u4" if big else "<u4").astype(np.uint32)
    version, bound, schema = int(words[1]), int(words[3]), int(words[4])
    if version & 0xFF0000FF or version >> 16 != 1:
        _refuse(where, f"its version is the word {version:#010x}, not one of 1.x")
    if bound == 0 or schema != 0:
        _refuse(where, f"its bound of ids is {bound} and its schema {schema}, not above 0 and 0")
    instructions = tuple(_instructions(words, where))
    opcodes = [instruction.opcode for instruction in instructions]
    if opcodes.count(_MEMORY_MODEL) != 1:
        _refuse(where, f"it has {opcodes.count(_MEMORY_MODEL)} memory models, not one")
    if opcodes.count(_FUNCTION) != opcodes.count(_FUNCTION_END):
        _refuse(where, "its last function does not end")
    defined = {int(words[i.start + 2]) for i in instructions if i.opcode == _FUNCTION}
    if any(int(words[i.start + 2]) not in defined for i in instructions if i.opcode == _ENTRY_POINT):
        _refuse(where, "it does not define the function of an entry point")
    return SpirvModule(words, big, instructions, where)


def _instructions(words: Words, where: str) -> Iterator[SpirvInstruction]:
    # Unlike the array, it gives plain numbers, which are quicker and do not overflow.
    view: memoryview[int] = memoryview(words.data)
    at = HEADER_WORDS
    while at < len(view):
        length, opcode = view[at] >> 16, view[at] & 0xFFFF
        if length < _LEAST_WORDS.get(opcode, 1) or at + length > len(view):
            _refuse(where, f"the instruction at byte {4 * at} has {length} words by its own account")
        yield SpirvInstruction(opcode, at, at + length)
        at += length


_LEAST_WORDS = {OP_STRING: 3, _ENTRY_POINT: 4, _FUNCTION: 5, _DECORATE: 3}
"""Words of the instructions whose operands are looked at."""


def _refuse(where: str, reason: str) -> NoReturn:
    raise InputError(f"{where}: expected a whole SPIR-V module, found something else ({reason})")


_MOST_IDS = 0x3FFFFF
_MOST_OCTETS = 65_535
"""Bound of ids, and bytes of a string, that every consumer takes (specification, section 2.17)."""

_LABEL = f"{NAME} "


def holds(content: bytes, where: str) -> bool:
    """Whether there are such strings, in whatever state."""
    return any(_ours(read_module(content, where)))


def embed(content: bytes, profiles: Sequence[Profile], where: str) -> bytes:
    """Return the module with the profiles in strings, in place of those that it held."""
    bare, _ = take_out(content, where)
    module = read_module(bare, where)
    _check_kernels(module, profiles)
    texts = _pieces(encode(Payload(tuple(profiles), digest(bare))))
    bound = module.bound + len(texts)
    if bound > _MOST_IDS:
        raise InputError(
            f"{where}: expected a bound of ids of at most {_MOST_IDS - len(texts)}, which leaves ids for the "
            f"profiles, found {module.bound}"
        )
    header = module.words[:HEADER_WORDS].copy()
    header[3] = bound
    strings = [_string(module.bound + n, text) for n, text in enumerate(texts)]
    start = module.debug_start
    return module.to_bytes(header, module.words[HEADER_WORDS:start], *strings, module.words[start:])


def take_out(content: bytes, where: str) -> tuple[bytes, Payload | None]:
    """Return the module as it was before profiles were embedded, and what was embedded, if anything."""
    module = read_module(content, where)
    ours = list(_ours(module))
    if not ours:
        return content, None
    payload = decode(_joined([text for _, text in ours], where), where)
    kept = np.ones(len(module.words), dtype=bool)
    for instruction, _ in ours:
        kept[instruction.start : instruction.end] = False
    words = module.words[kept]
    words[3] = _bound_without(module.bound, [int(module.words[i.start + 1]) for i, _ in ours])
    return module.to_bytes(words), payload


def _ours(module: SpirvModule) -> Iterator[tuple[SpirvInstruction, str]]:
    return ((i, text) for i, text in module.strings() if text.startswith(_LABEL))


def _bound_without(bound: int, ids: Sequence[int]) -> int:
    """Bound of the ids that are left: a lower one only if no other id can be among those that go."""
    first = bound - len(ids)
    return first if sorted(ids) == list(range(first, bound)) else bound


def _pieces(text: str) -> list[str]:
    """Numbered parts of a text that fit into a string each."""
    room = _MOST_OCTETS - len(f"{_LABEL}99999/99999: ")
    count = math.ceil(len(text) / room)
    return [f"{_LABEL}{n + 1}/{count}: {text[n * room : (n + 1) * room]}" for n in range(count)]


def _joined(texts: Sequence[str], where: str) -> str:
    """The text of which these are the parts."""
    parts = {}
    for text in texts:
        number, _, part = text.removeprefix(_LABEL).partition(": ")
        parts[number] = part
    numbers = [f"{n + 1}/{len(texts)}" for n in range(len(texts))]
    if parts.keys() != set(numbers):
        found = ", ".join(parts)[:80]
        damaged(where, f"expected its parts {numbers[0]} to {numbers[-1]}, found {found!r}")
    return "".join(parts[number] for number in numbers)


def _string(identifier: int, text: str) -> Words:
    """The instruction that gives a string an id."""
    # A string ends with a zero, and its last word is filled up with them.
    octets = text.encode().ljust(4 * (len(text) // 4 + 1), b"\0")
    words = np.frombuffer(octets, "<u4")
    return np.concatenate([[(len(words) + 2) << 16 | OP_STRING, identifier], words]).astype(np.uint32)


def _check_kernels(module: SpirvModule, profiles: Sequence[Profile]) -> None:
    for profile in profiles:
        if profile.kernel not in module.kernels:
            raise InputError(
                f"{module.where}: expected a module with the kernel {profile.kernel!r}, "
                f"found {', '.join(module.kernels) or 'no kernel'}"
            )


def compile_module(program: Program) -> bytes:
    """Compile OpenCL C to a SPIR-V module that needs no other one."""
    content = compile_spirv(program)
    imports = read_module(content, program.label).imports
    if imports:
        raise UnsupportedError(
            f"{program.label}: the kernel compiler has no SPIR-V for {', '.join(sorted(imports))}"
        )
    return content
