"""Copies of aligned structures, such as the vector types of CUDA and HIP, by their members."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_MOST_BYTES = 64
_COPY = re.compile(
    r"^  call void @llvm\.memcpy\.[^(]*\("
    r"(?P<to>ptr(?: addrspace\(\d\))?) align (?P<to_align>\d+) (?P<target>.+), "
    r"(?P<of>ptr(?: addrspace\(\d\))?) align (?P<of_align>\d+) (?P<source>.+), "
    r"i64 (?P<nbytes>\d+), i1 false\)(?P<where>, !dbg !\d+)?, !tbaa\.struct !(?P<members>\d+)$",
    re.MULTILINE,
)
_NODE = re.compile(r"^!(\d+) = !\{(.*)\}$", re.MULTILINE)
_MEMBER = re.compile(r"i64 (\d+), i64 (\d+), !(\d+)")
_TYPE_NAME = re.compile(r'!"([^"]*)"')
_TYPES = {
    "omnipotent char": ("i8", 1),
    "bool": ("i8", 1),
    "short": ("i16", 2),
    "int": ("i32", 4),
    "long": ("i64", 8),
    "long long": ("i64", 8),
    "_Float16": ("half", 2),
    "float": ("float", 4),
    "double": ("double", 8),
}
"""Type in the IR and bytes of a member, by the name of its type in the metadata."""


class _Member(NamedTuple):
    offset: int
    nbytes: int
    type: str
    tag: str  # Number of its metadata node

    def aligned(self, alignment: str) -> int:
        """Return its alignment in a structure with an alignment."""
        return min(int(alignment), self.offset & -self.offset) if self.offset else int(alignment)


def separate_members(text: str) -> str:
    """Replace copies of aligned structures in unoptimized IR by loads and stores of their members.

    Otherwise the optimizer keeps copies of several unused members together, such as 12 bytes of a ``float4``,
    whose alignment is that of one member. A structure is aligned if its alignment exceeds the size of each
    member. Those with padding, unions or pointers are copied as before.
    """
    nodes: dict[str, str] = {}
    copies = 0

    def separated(copy: re.Match[str]) -> str:
        nonlocal copies
        if not nodes:
            nodes.update(_NODE.findall(text))
        members = _members(nodes, copy["members"])
        nbytes, alignment = int(copy["nbytes"]), min(int(copy["to_align"]), int(copy["of_align"]))
        is_whole = sum(member.nbytes for member in members) == nbytes <= _MOST_BYTES
        if not is_whole or alignment <= max(member.nbytes for member in members):
            return copy[0]
        copies += 1
        return _copied(copy, members, f"%copied.{copies}")

    return _COPY.sub(separated, text)


def _members(nodes: Mapping[str, str], number: str) -> list[_Member]:
    """Return the scalars in a structure, from its metadata node; none if it has other members."""
    members = []
    for offset, nbytes, tag in _MEMBER.findall(nodes[number]):
        name = _TYPE_NAME.match(nodes[nodes[tag].partition(",")[0].removeprefix("!")])
        type_, size = _TYPES.get(name[1] if name else "", ("", 0))
        if size != int(nbytes):
            return []
        members.append(_Member(int(offset), size, type_, tag))
    return members


def _copied(copy: re.Match[str], members: Iterable[_Member], name: str) -> str:
    loads, stores = [], []
    for number, member in enumerate(members):
        value = f"{name}.{number}"
        end = f"{copy['where'] or ''}, !tbaa !{member.tag}"
        lines, source = _address(copy, "of", "source", member, value)
        loads += [
            *lines,
            f"  {value} = load {member.type}, {source}, align {member.aligned(copy['of_align'])}{end}",
        ]
        lines, target = _address(copy, "to", "target", member, value)
        stores += [
            *lines,
            f"  store {member.type} {value}, {target}, align {member.aligned(copy['to_align'])}{end}",
        ]
    return "\n".join([*loads, *stores])


def _address(
    copy: re.Match[str], type_: str, pointer: str, member: _Member, value: str
) -> tuple[list[str], str]:
    """Return the lines that compute a member's address, and the address with its type."""
    if not member.offset:
        return [], f"{copy[type_]} {copy[pointer]}"
    name = f"{value}.{pointer}"
    whole = f"{copy[type_]} {copy[pointer]}"
    line = f"  {name} = getelementptr inbounds i8, {whole}, i64 {member.offset}{copy['where'] or ''}"
    return [line], f"{copy[type_]} {name}"
