"""Profiles in a SPIR-V module: strings among its debug instructions, which no consumer looks at.

``OpString`` is there since the first version, has no meaning unless another instruction names it, and
stands in the module's logical layout before all names, annotations and types (specification of SPIR-V,
sections 2.4 and 3.42.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from crosscast.characterization.embedding.payload import NAME, Payload, damaged, decode, digest, encode
from crosscast.errors import InputError
from crosscast.profile import Profile

__all__ = ["embed", "holds", "is_module", "take_out"]

_MAGIC = 0x07230203
_MOST_IDS = 0x3FFFFF
"""Bound of ids that every consumer takes (section 2.17, as is the length of a string)."""
_MOST_OCTETS = 65_535

_HEADER_WORDS = 5
_STRING, _MEMORY_MODEL, _ENTRY_POINT, _FUNCTION, _FUNCTION_END = 7, 14, 15, 54, 56
_BEFORE_DEBUG = frozenset((10, 11, _MEMORY_MODEL, _ENTRY_POINT, 16, 17, 331))
"""Capabilities, extensions, imports, memory model, entry points and execution modes."""

_Words = npt.NDArray[np.uint32]


class _Instruction(NamedTuple):
    opcode: int
    start: int
    end: int


@dataclass(frozen=True)
class _Module:
    """A module whose instructions can be told apart.

    Parameters
    ----------
    words
        Its words, header included.
    big
        Whether the file has them in big-endian order.
    instructions
        Where each one starts and ends, in words.
    """

    words: _Words
    big: bool
    instructions: tuple[_Instruction, ...]

    def to_bytes(self, *parts: _Words) -> bytes:
        """Bytes of words, in the file's order."""
        return np.concatenate(parts).astype(">u4" if self.big else "<u4").tobytes()

    def text(self, start: int, end: int, where: str) -> tuple[str, int]:
        """The literal string that starts at a word, and the word behind it."""
        octets = self.words[start:end].astype("<u4").tobytes()
        length = octets.find(b"\0")
        if length < 0:
            _refuse(where, f"the string at byte {4 * start} does not end")
        return octets[:length].decode(errors="replace"), start + length // 4 + 1

    def strings(self, where: str) -> Iterator[tuple[_Instruction, str]]:
        """The strings that are ours."""
        for instruction in self.instructions:
            if instruction.opcode == _STRING:
                text, _ = self.text(instruction.start + 2, instruction.end, where)
                if text.startswith(f"{NAME} "):
                    yield instruction, text


def is_module(content: bytes) -> bool:
    """Whether content begins as a SPIR-V module does, in either order of bytes."""
    return _MAGIC in (int.from_bytes(content[:4], "little"), int.from_bytes(content[:4], "big"))


def holds(content: bytes, where: str) -> bool:
    """Whether there are such strings, in whatever state.

    Raises
    ------
    InputError
        If it is not a whole SPIR-V module.
    """
    return next(_read(content, where).strings(where), None) is not None


def embed(content: bytes, profiles: Sequence[Profile], where: str) -> bytes:
    """Return the module with the profiles in strings, in place of those that it held.

    Parameters
    ----------
    content
        The module.
    profiles
        One or more profiles of its kernels.
    where
        The file, for messages.

    Raises
    ------
    InputError
        If it is not a whole SPIR-V module, lacks one of the kernels, has no ids left, or holds profiles that
        cannot be read, and so cannot be replaced.
    """
    bare, _ = take_out(content, where)
    module = _read(bare, where)
    _check_kernels(module, profiles, where)
    texts = _pieces(encode(Payload(tuple(profiles), digest(bare))))
    bound = int(module.words[3])
    if bound + len(texts) > _MOST_IDS:
        raise InputError(f"{where}: expected at most {_MOST_IDS - len(texts)} ids, found a bound of {bound}")
    header = module.words[:_HEADER_WORDS].copy()
    header[3] = bound + len(texts)
    place = max(i.end for i in module.instructions if i.opcode in _BEFORE_DEBUG)
    strings = [_string(bound + n, text) for n, text in enumerate(texts)]
    return module.to_bytes(header, module.words[_HEADER_WORDS:place], *strings, module.words[place:])


def take_out(content: bytes, where: str) -> tuple[bytes, Payload | None]:
    """Return the module as it was before profiles were embedded, and what was embedded, if anything.

    Raises
    ------
    InputError
        If it is not a whole SPIR-V module, or what is embedded cannot be read.
    """
    module = _read(content, where)
    ours = list(module.strings(where))
    if not ours:
        return content, None
    payload = decode(_joined([text for _, text in ours], where), where)
    kept = np.ones(len(module.words), dtype=bool)
    for instruction, _ in ours:
        kept[instruction.start : instruction.end] = False
    words = module.words[kept]
    words[3] = _bound_without(int(words[3]), [int(module.words[i.start + 1]) for i, _ in ours])
    return module.to_bytes(words), payload


def _bound_without(bound: int, ids: Sequence[int]) -> int:
    """Bound of the ids that are left: a lower one only if no other id can be among those that go."""
    first = bound - len(ids)
    return first if sorted(ids) == list(range(first, bound)) else bound


def _pieces(text: str) -> list[str]:
    """Numbered parts of a text that fit into a string each."""
    room = _MOST_OCTETS - len(f"{NAME} 99999/99999: ")
    count = math.ceil(len(text) / room)
    return [f"{NAME} {n + 1}/{count}: {text[n * room : (n + 1) * room]}" for n in range(count)]


def _joined(texts: Sequence[str], where: str) -> str:
    """The text of which these are the parts."""
    parts = {}
    for text in texts:
        label, _, part = text.removeprefix(f"{NAME} ").partition(": ")
        parts[label] = part
    labels = [f"{n + 1}/{len(texts)}" for n in range(len(texts))]
    if parts.keys() != set(labels):
        damaged(where, f"expected its parts {labels[0]} to {labels[-1]}, found {', '.join(parts)[:80]}")
    return "".join(parts[label] for label in labels)


def _string(identifier: int, text: str) -> _Words:
    """The instruction that gives a string an id."""
    # A string ends with a zero, and its last word is filled up with them.
    octets = text.encode().ljust(4 * (len(text) // 4 + 1), b"\0")
    words = np.frombuffer(octets, "<u4")
    return np.concatenate([[(len(words) + 2) << 16 | _STRING, identifier], words]).astype(np.uint32)


def _check_kernels(module: _Module, profiles: Sequence[Profile], where: str) -> None:
    names = [
        module.text(i.start + 3, i.end, where)[0] for i in module.instructions if i.opcode == _ENTRY_POINT
    ]
    for profile in profiles:
        if profile.kernel not in names:
            raise InputError(
                f"{where}: expected a module with the kernel {profile.kernel!r}, "
                f"found {', '.join(names) or 'no kernel'}"
            )


def _read(content: bytes, where: str) -> _Module:
    """Tell the instructions of a module apart.

    Raises
    ------
    InputError
        If it is not a whole SPIR-V module.
    """
    if not is_module(content):
        _refuse(where, f"it begins with {content[:4].hex() or 'nothing'}")
    if len(content) % 4 or len(content) < 4 * _HEADER_WORDS:
        _refuse(where, f"its length of {len(content)} bytes is not that of whole words and a header")
    big = int.from_bytes(content[:4], "big") == _MAGIC
    words: _Words = np.frombuffer(content, ">u4" if big else "<u4").astype(np.uint32)
    version, bound, schema = int(words[1]), int(words[3]), int(words[4])
    if version & 0xFF0000FF or version >> 16 != 1:
        _refuse(where, f"expected a version 1.x, found the word {version:#010x}")
    if bound == 0 or schema != 0:
        _refuse(where, f"expected a bound of ids above 0 and schema 0, found {bound} and {schema}")
    instructions = tuple(_instructions(words, where))
    opcodes = [instruction.opcode for instruction in instructions]
    if opcodes.count(_MEMORY_MODEL) != 1 or opcodes.count(_FUNCTION) != opcodes.count(_FUNCTION_END):
        _refuse(where, "it has not one memory model, or a function does not end")
    return _Module(words, big, instructions)


def _instructions(words: _Words, where: str) -> Iterator[_Instruction]:
    # Unlike the array, it gives plain numbers, which are quicker and do not overflow.
    view: memoryview[int] = memoryview(words.data)
    at = _HEADER_WORDS
    while at < len(view):
        length, opcode = view[at] >> 16, view[at] & 0xFFFF
        if length == 0 or at + length > len(view):
            _refuse(where, f"the instruction at byte {4 * at} says that it has {length} words")
        yield _Instruction(opcode, at, at + length)
        at += length


def _refuse(where: str, reason: str) -> NoReturn:
    raise InputError(f"{where}: expected a whole SPIR-V module, found something else ({reason})")
