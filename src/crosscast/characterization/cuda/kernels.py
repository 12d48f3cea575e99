"""Kernels of a CUDA or HIP program as their author writes them: names, parameters, types.

All of it stands in the debug information, of templates and of ``extern "C"`` kernels alike. Also the
program's variables, as what OpenCL C has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from crosscast.characterization import ir

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
_LINKAGE = re.compile(r"\b(hidden|local_unnamed_addr|unnamed_addr) ")
_WIDE = {"longlong": "long", "ulonglong": "ulong"}


@dataclass(frozen=True)
class CudaKernel:
    """A kernel and what its source calls it."""

    symbol: str  # Name in the IR
    name: str  # Qualified name, with the arguments of a template
    types: tuple[str, ...]  # Types of its parameters, scalars by the names that OpenCL C has for them
    names: tuple[str, ...]  # Names of its parameters

    @property
    def signature(self) -> str:
        """Name with types, which tells overloads apart."""
        return f"{self.name}({', '.join(self.types)})"

    @property
    def metadata(self) -> dict[str, list[str]]:
        """Names and types as the metadata of OpenCL's kernels have them."""
        return {
            "kernel_arg_name": [f'!"{name}"' for name in self.names],
            "kernel_arg_type": [f'!"{type_}"' for type_ in self.types],
        }

    def is_called(self, name: str) -> bool:
        """Whether a user's spelling means this kernel."""
        wanted = _bare(name)
        base = self.name.split("<")[0]
        spellings = (self.symbol, self.name, self.signature, base, base.rsplit("::", 1)[-1])
        return wanted in map(_bare, spellings)


def read_kernels(text: str) -> list[CudaKernel]:
    """Kernels of a module, from its IR."""
    nodes = dict(_NODE.findall(text))
    found = []
    for symbol, number in _KERNEL.findall(text):
        facts = _fields(nodes[number])
        scopes = list(_scopes(facts.get("scope", ""), nodes))
        name = "::".join([*reversed(scopes), facts["name"]])
        types = _listed(nodes[_fields(nodes[facts["type"]])["types"]])[1:]
        variables = [_fields(nodes[n]) for n in _listed(nodes.get(facts.get("retainedNodes", ""), "!{}"))]
        names = {int(v["arg"]): v["name"] for v in variables if "arg" in v and "name" in v}
        found.append(
            CudaKernel(
                symbol.strip('"'),
                name,
                tuple(_type(n, nodes) for n in types),
                tuple(names.get(n, f"arg{n - 1}") for n in range(1, len(types) + 1)),
            )
        )
    return found


def _bare(name: str) -> str:
    """A spelling without what two people may write differently."""
    name = re.sub(r"\b(const|__restrict__|__restrict|restrict|volatile|struct|void(?=\)))\b", "", name)
    name = re.sub(r"\(\s*\w+\s*\)(?=-?\d)|(?<=\d)[uUlL]+\b", "", name)  # (int)4, 4u
    for spelling, type_ in sorted(_TYPES.items(), key=lambda item: -len(item[0])):
        name = re.sub(rf"\b{re.escape(spelling)}\b(?!\s+(?:char|short|int|long)\b)", type_, name)
    return re.sub(r"\bunsigned\b", "uint", re.sub(r"\s+(?=\W)|(?<=\W)\s+|^\s+|\s+$", "", name))


def _fields(node: str) -> dict[str, str]:
    """Fields of a node, each as the number of another node or as its text."""
    return {key: number or text or word for key, number, text, word in _FIELD.findall(node)}


def _listed(node: str) -> list[str]:
    return [entry.strip().removeprefix("!") for entry in node[2:-1].split(",") if entry.strip()]


def _scopes(number: str, nodes: dict[str, str]) -> Iterator[str]:
    """Namespaces and types around a declaration, the innermost one first."""
    while node := nodes.get(number, ""):
        facts = _fields(node)
        if not node.startswith(("!DINamespace", "!DICompositeType")):
            return
        if "name" in facts:
            yield facts["name"]
        number = facts.get("scope", "")


def _type(number: str, nodes: dict[str, str]) -> str:
    """A parameter's type, without qualifiers and type names of the program's own."""
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
        # Three components take the room of three here, which those of OpenCL C do not.
        prefix = "struct " if vector[2] == "3" else ""
        return f"{prefix}{_WIDE.get(vector[1], vector[1])}{vector[2].replace('1', '')}"
    return _TYPES.get(name, name)


def adapt_variables(module: ir.Module) -> None:
    """Let CUDA's variables be what those of OpenCL C are: constants in a memory of their own."""
    for name, variable in list(module.globals.items()):
        if name.startswith("@__hip_cuid_"):
            del module.globals[name]  # the compiler's own
            continue
        text = _LINKAGE.sub("", variable.text)
        constant = variable.address_space == 1 and " constant " in text
        space = 2 if constant else variable.address_space
        module.globals[name] = replace(variable, text=text, address_space=space)
