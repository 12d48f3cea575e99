"""Profiles in a SPIR-V module: strings among its debug instructions, which no consumer looks at.

``OpString`` is there since the first version, has no meaning unless another instruction names it, and
stands before all names, annotations and types.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from crosscast.characterization.embedding.module import (
    HEADER_WORDS,
    OP_STRING,
    Instruction,
    Module,
    Words,
    read_module,
)
from crosscast.characterization.embedding.payload import NAME, Payload, damaged, decode, digest, encode
from crosscast.errors import InputError
from crosscast.profile import Profile

__all__ = ["embed", "holds", "take_out"]

_MOST_IDS = 0x3FFFFF
_MOST_OCTETS = 65_535
"""Bound of ids, and bytes of a string, that every consumer takes (specification, section 2.17)."""

_LABEL = f"{NAME} "


def holds(content: bytes, where: str) -> bool:
    """Whether there are such strings, in whatever state.

    Raises
    ------
    InputError
        If it is not a whole SPIR-V module.
    """
    return any(_ours(read_module(content, where)))


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
    """Return the module as it was before profiles were embedded, and what was embedded, if anything.

    Raises
    ------
    InputError
        If it is not a whole SPIR-V module, or what is embedded cannot be read.
    """
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


def _ours(module: Module) -> Iterator[tuple[Instruction, str]]:
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


def _check_kernels(module: Module, profiles: Sequence[Profile]) -> None:
    for profile in profiles:
        if profile.kernel not in module.kernels:
            raise InputError(
                f"{module.where}: expected a module with the kernel {profile.kernel!r}, "
                f"found {', '.join(module.kernels) or 'no kernel'}"
            )
