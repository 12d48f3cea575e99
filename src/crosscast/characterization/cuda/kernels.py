"""Kernels of CUDA and HIP programs by their names in the source, with their parameters, from debug info."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

_NODE = re.compile(r"^!(\d+) = (?:distinct )?(!\{.*\}|!DI\w+\(.*\))$", re.MULTILINE)
_FIELD = re.compile(r'(\w+): (?:!(\d+)|"((?:[^"\\]|\\.)*)"|(\w+))')
_KERNEL = re.compile(r'^define [^@\n]*\bspir_kernel\b[^@\n]*@("[^"]+"|[-\w$.]+)\(.*!dbg !(\d+)', re.MULTILINE)
_TYPES = {
    "unsigned char": "uchar",
    "unsigned short": "ushort",
    "unsigned int": "uint",
    "unsigned long": "ulong",
    "long long": "long",
    "unsigned long long": "ulong",
    "signed char": "char",
    "_Float16": "half",
    "__half": "half",
}
_WIDE = {"longlong": "long", "ulonglong": "ulong"}


_MOST_MEMBERS = 256


class StructureMember(NamedTuple):
    """A number or pointer in a structure."""

    name: str  # After that of the parameter, such as view.data or view.sizes[0]
    type: str  # In the names of parameters' types
    offset: int  # Bytes from the start of the structure
    nbytes: int
    is_restricted: bool = False


@dataclass(frozen=True)
class CudaKernel:
    """A kernel with its names in the source."""

    symbol: str  # Name in the IR
    name: str  # Qualified name, with the arguments of a template
    types: tuple[str, ...]  # Types of its parameters, scalars in OpenCL C's names
    names: tuple[str, ...]  # Names of its parameters
    # Of each parameter that is a structure with pointers, what it has
    members: tuple[tuple[StructureMember, ...], ...] = ()

    @property
    def signature(self) -> str:
        """Name with types, which distinguishes overloads."""
        return f"{self.name}({', '.join(self.types)})"

    @property
    def metadata(self) -> dict[str, list[str]]:
        """Names and types in the form of the metadata of OpenCL kernels."""
        return {
            "kernel_arg_name": [f'!"{name}"' for name in self.names],
            "kernel_arg_type": [f'!"{type_}"' for type_ in self.types],
        }

    def is_called(self, name: str) -> bool:
        """Whether a user's spelling denotes this kernel."""
        normalized = _bare(name)
        base = self.name.split("<")[0]
        spellings = (self.symbol, self.name, self.signature, base, base.rsplit("::", 1)[-1])
        return normalized in map(_bare, spellings)


def read_kernels(text: str) -> list[CudaKernel]:
    """Return the kernels of a module, from its IR."""
    nodes = dict(_NODE.findall(text))
    kernels = []
    for symbol, number in _KERNEL.findall(text):
        facts = _fields(nodes[number])
        scopes = list(_scopes(facts.get("scope", ""), nodes))
        name = "::".join([*reversed(scopes), facts["name"]])
        types = _listed(nodes[_fields(nodes[facts["type"]])["types"]])[1:]
        variables = [_fields(nodes[n]) for n in _listed(nodes.get(facts.get("retainedNodes", ""), "!{}"))]
        known = {int(v["arg"]): v["name"] for v in variables if "arg" in v and "name" in v}
        names = [known.get(n + 1, f"arg{n}") for n in range(len(types))]
        kernels.append(
            CudaKernel(
                symbol.strip('"'),
                name,
                tuple(_type(n, nodes) for n in types),
                tuple(names),
                tuple(_with_pointers(*each, nodes) for each in zip(types, names, strict=True)),
            )
        )
    return kernels


def _bare(name: str) -> str:
    """Normalize a spelling of a kernel."""
    name = re.sub(r"\b(const|__restrict__|__restrict|restrict|volatile|struct|void(?=\)))\b", "", name)
    name = re.sub(r"&(?=\w)", "", name)  # the address of a function
    name = re.sub(r"\(\s*\w+\s*\)(?=-?\d)|(?<=\d)[uUlL]+\b", "", name)  # (int)4, 4u
    for spelling, type_ in sorted(_TYPES.items(), key=lambda item: -len(item[0])):
        name = re.sub(rf"\b{re.escape(spelling)}\b(?!\s+(?:char|short|int|long)\b)", type_, name)
    return re.sub(r"\bunsigned\b", "uint", re.sub(r"\s+(?=\W)|(?<=\W)\s+|^\s+|\s+$", "", name))


def _fields(node: str) -> dict[str, str]:
    """Return the fields of a node, as numbers of other nodes or as text."""
    return {key: number or text or word for key, number, text, word in _FIELD.findall(node)}


def _listed(node: str) -> list[str]:
    return [entry.strip().removeprefix("!") for entry in node[2:-1].split(",") if entry.strip()]


def _scopes(number: str, nodes: Mapping[str, str]) -> Iterator[str]:
    """Yield the enclosing namespaces and types of a declaration, the innermost one first."""
    while node := nodes.get(number, ""):
        facts = _fields(node)
        if not node.startswith(("!DINamespace", "!DICompositeType")):
            return
        if "name" in facts:
            yield facts["name"]
        number = facts.get("scope", "")


def _type(number: str, nodes: Mapping[str, str]) -> str:
    """Return a parameter's type, without qualifiers and the program's type names."""
    node = nodes.get(number, "")
    facts = _fields(node)
    if "DW_TAG_pointer_type" in node or "DW_TAG_reference_type" in node:
        return f"{_type(facts.get('baseType', ''), nodes)}*"
    if "DW_TAG_enumeration_type" in node:
        return _type(facts.get("baseType", ""), nodes)
    if node.startswith("!DIDerivedType"):
        return _type(facts.get("baseType", ""), nodes)
    name = facts.get("name", "void" if not node else "struct")
    if vector := re.fullmatch(r"(u?longlong|u?[a-z]+)([1-4])", name):
        # Vectors of three components have the size of three here, unlike in OpenCL C.
        prefix = "struct " if vector[2] == "3" else ""
        return f"{prefix}{_WIDE.get(vector[1], vector[1])}{vector[2].replace('1', '')}"
    return _TYPES.get(name, name)


def _with_pointers(number: str, name: str, nodes: Mapping[str, str]) -> tuple[StructureMember, ...]:
    """Return the members of a structure that has pointers; none of other types."""
    members = tuple(_members(number, name, 0, nodes))
    has_pointers = any(member.type.endswith("*") for member in members)
    return members if has_pointers and members[0].name != name and len(members) <= _MOST_MEMBERS else ()


def _members(number: str, name: str, offset: int, nodes: Mapping[str, str]) -> Iterator[StructureMember]:
    """Yield the numbers and pointers of a type in the order of their declaration."""
    node = nodes.get(number, "")
    facts = _fields(node)
    elements = [nodes.get(each, "") for each in _listed(nodes.get(facts.get("elements", ""), "!{}"))]
    base = facts.get("baseType", "")
    if "DW_TAG_array_type" in node:
        count = math.prod(int(_fields(each).get("count", 0)) for each in elements)
        stride = int(facts.get("size", 0)) // 8 // max(count, 1)
        for k in range(min(count, _MOST_MEMBERS + 1)):
            yield from _members(base, f"{name}[{k}]", offset + k * stride, nodes)
    elif "DW_TAG_structure_type" in node or "DW_TAG_class_type" in node:
        for element in elements:
            if "DW_TAG_inheritance" not in element and "DW_TAG_member" not in element:
                continue
            if "DIFlagStaticMember" not in element:
                member = _fields(element)
                full = f"{name}.{member['name']}" if "name" in member else name
                yield from _members(
                    member["baseType"], full, offset + int(member.get("offset", 0)) // 8, nodes
                )
    elif node.startswith("!DIDerivedType") and "pointer_type" not in node and "reference_type" not in node:
        is_restricted = "DW_TAG_restrict_type" in node
        for each in _members(base, name, offset, nodes):
            yield each._replace(is_restricted=is_restricted or each.is_restricted)
    else:
        yield StructureMember(name, _type(number, nodes), offset, int(facts.get("size", 0)) // 8)
