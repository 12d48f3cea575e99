"""SPIR-V modules, and strings among their debug instructions, which consumers ignore.

``OpString`` exists since the first version, has no meaning unless another instruction refers to it, and
precedes all names, annotations and types. Sections are those of the SPIR-V specification: physical layout
(2.3), logical layout (2.4), limits (2.17).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from crosscast.characterization.toolchain import compile_spirv
from crosscast.errors import InputError, UnsupportedError
from crosscast.kernel import Program

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
    """A module, split into instructions."""

    words: Words  # All words, header included
    big: bool  # Whether the file is big-endian
    instructions: tuple[SpirvInstruction, ...]
    where: str  # Name of the file, for messages

    @property
    def bound(self) -> int:
        """Bound of all ids."""
        return int(self.words[3])

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the entry points."""
        return tuple(self.text(i, 3)[0] for i in self._all(_ENTRY_POINT))

    @property
    def imports(self) -> tuple[str, ...]:
        """Names of symbols that another module must define, except built-in variables."""
        names = []
        for instruction in self._all(_DECORATE):
            if self.words[instruction.start + 2] == _LINKAGE_ATTRIBUTES:
                name, behind = self.text(instruction, 3)
                kind = self.words[behind : instruction.end].tolist()
                if kind == [_IMPORT] and not name.startswith("__spirv_BuiltIn"):
                    names.append(name)
        return tuple(names)

    @property
    def debug_start(self) -> int:
        """Word at which the section of debug instructions starts."""
        return max(i.end for i in self.instructions if i.opcode in _BEFORE_DEBUG)

    def text(self, instruction: SpirvInstruction, operand: int) -> tuple[str, int]:
        """Return the literal string that starts at a word of an instruction, and the word behind it."""
        start = instruction.start + operand
        octets = self.words[start : instruction.end].astype("<u4").tobytes()
        length = octets.find(b"\0")
        if length < 0:
            _refuse(self.where, f"the string at byte {4 * start} does not end")
        return octets[:length].decode(errors="replace"), start + length // 4 + 1

    def strings(self) -> Iterator[tuple[SpirvInstruction, str]]:
        """Yield the debug strings."""
        for instruction in self._all(OP_STRING):
            yield instruction, self.text(instruction, 2)[0]

    def to_bytes(self, *parts: Words) -> bytes:
        """Return words as bytes, in the file's byte order."""
        return np.concatenate(parts).astype(">u4" if self.big else "<u4").tobytes()

    def _all(self, opcode: int) -> Iterator[SpirvInstruction]:
        return (instruction for instruction in self.instructions if instruction.opcode == opcode)


def is_module(content: bytes) -> bool:
    """Whether content begins as a SPIR-V module, in either byte order."""
    return _MAGIC in (int.from_bytes(content[:4], "little"), int.from_bytes(content[:4], "big"))


def read_module(content: bytes, where: str) -> SpirvModule:
    """Split a module into instructions."""
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
    # Unlike an array's, its elements are plain integers, which are faster and do not overflow.
    view: memoryview[int] = memoryview(words.data)
    at = HEADER_WORDS
    while at < len(view):
        length, opcode = view[at] >> 16, view[at] & 0xFFFF
        if length < _LEAST_WORDS.get(opcode, 1) or at + length > len(view):
            _refuse(where, f"the instruction at byte {4 * at} has {length} words by its own account")
        yield SpirvInstruction(opcode, at, at + length)
        at += length


_LEAST_WORDS = {OP_STRING: 3, _ENTRY_POINT: 4, _FUNCTION: 5, _DECORATE: 3}
"""Least words of the instructions whose operands are read."""


def _refuse(where: str, reason: str) -> NoReturn:
    raise InputError.of(where=where, expected="a whole SPIR-V module", found=f"something else ({reason})")


_MOST_IDS = 0x3FFFFF
MOST_OCTETS = 65_535
"""Bound of ids, and bytes of a string, that every consumer accepts (specification, section 2.17)."""


def labelled(content: bytes, label: str, where: str) -> tuple[bytes, list[str]]:
    """Return the module without its strings that begin with a label, and those strings."""
    module = read_module(content, where)
    strings = [(i, text) for i, text in module.strings() if text.startswith(label)]
    if not strings:
        return content, []
    is_kept = np.ones(len(module.words), dtype=bool)
    for instruction, _ in strings:
        is_kept[instruction.start : instruction.end] = False
    words = module.words[is_kept]
    words[3] = _bound_without(module.bound, [int(module.words[i.start + 1]) for i, _ in strings])
    return module.to_bytes(words), [text for _, text in strings]


def _bound_without(bound: int, ids: Sequence[int]) -> int:
    """Return the bound of the remaining ids, lowered only if the removed ids are the last ones."""
    first = bound - len(ids)
    return first if sorted(ids) == list(range(first, bound)) else bound


def with_strings(module: SpirvModule, texts: Sequence[str]) -> bytes:
    """Return a module with further debug strings."""
    bound = module.bound + len(texts)
    if bound > _MOST_IDS:
        raise InputError.of(
            where=module.where,
            expected=(
                f"a bound of ids of at most {_MOST_IDS - len(texts)}, which leaves ids for the profiles"
            ),
            found=f"{module.bound}",
        )
    header = module.words[:HEADER_WORDS].copy()
    header[3] = bound
    strings = [_string(module.bound + n, text) for n, text in enumerate(texts)]
    start = module.debug_start
    return module.to_bytes(header, module.words[HEADER_WORDS:start], *strings, module.words[start:])


def _string(identifier: int, text: str) -> Words:
    """Return the instruction that gives a string an id."""
    # A string ends with a zero, and its last word is padded with zeros.
    octets = text.encode().ljust(4 * (len(text) // 4 + 1), b"\0")
    words = np.frombuffer(octets, "<u4")
    return np.concatenate([[(len(words) + 2) << 16 | OP_STRING, identifier], words]).astype(np.uint32)


def compile_module(program: Program) -> bytes:
    """Compile OpenCL C to a self-contained SPIR-V module."""
    content = compile_spirv(program)
    imports = read_module(content, program.label).imports
    if imports:
        raise UnsupportedError.of(
            where=program.label, problem=f"the kernel compiler has no SPIR-V for {', '.join(sorted(imports))}"
        )
    return content
