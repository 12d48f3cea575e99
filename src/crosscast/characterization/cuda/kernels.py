"""Kernels and variables of CUDA and HIP programs by their names in the source.

Names and parameters of kernels are from debug info. ``__constant__`` and ``__device__`` variables and texture
references have the values that a launch gives them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.inline import called_builtin
from crosscast.errors import LaunchError
from crosscast.kernel import Argument, Image, Kernel

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


Values = tuple[tuple[str, tuple[int, int, int], bytes], ...]
"""Name, image sizes, and content of each variable that is set."""
_DEFINITION = re.compile(r"^(.*? (?:global|constant) )(.*)$", re.DOTALL)
_ZEROS = re.compile(
    r"\S.*? (?:global|constant) (?:.* )?(?:zeroinitializer|undef|poison|0|null|0\.0+e\+00)(?:,|$)"
)
_TEXTURE = re.compile(r'(?:global|constant) %"?(?:struct|class)\.cc_texture')
_MOST_BYTES = 1 << 24


def pack(variables: Mapping[str, Argument], label: str) -> Values:
    """Return the sizes and bytes of values."""
    packed = []
    for name, value in sorted(variables.items()):
        sizes = 1, 1, 1
        if isinstance(value, Image):
            content = value.array.tobytes()
            sizes = image_sizes(value)[:3]
        elif isinstance(value, np.ndarray | np.generic):
            content = value.tobytes()
            sizes = (*value.shape[:1], 1, 1, 1)[:3]
        elif isinstance(value, bytes):
            content = value
        else:
            raise LaunchError.of(
                where=label, problem=f"variable {name}: expected a value, a buffer or an image"
            )
        if len(content) > _MOST_BYTES:
            raise LaunchError.of(
                where=label,
                problem=f"variable {name}: expected at most {_MOST_BYTES} bytes, found {len(content)}",
            )
        packed.append((name, sizes, content))
    return tuple(packed)


def image_sizes(image: Image) -> tuple[int, int, int, int]:
    """Return width, height and depth of an image, and the bytes of a texel."""
    width, height, depth = (*reversed(image.array.shape[: image.spatial_ndim]), 1, 1)[:3]
    return width, height, depth, image.channels * image.array.itemsize


def _set_sizes(flat: ir.Function, images: Mapping[str, tuple[int, ...]]) -> None:
    """Replace the sizes of textures by constants that are not counted."""
    for instruction in flat.instructions():
        if called_builtin(instruction) == "cc_refused_texture":
            return  # by its settings, which is told later
        if called_builtin(instruction) != "cc_image_size":
            continue
        name, axis, nbytes = (operand.value for operand in instruction.operands)
        image = images.get(name)
        if not image or image[3] not in (0, int(nbytes)):
            found = f"{image[3]} bytes" if image else "no image" if name in images else "no argument"
            raise LaunchError.of(
                field=instruction.where,
                problem=f"the kernel reads texels of {nbytes} bytes of a texture object: expected an "
                f"image of such as its argument (image:float:R:480x640, height x width), found {found}",
            )
        text = f"add i32 0, {image[int(axis)]}"
        instruction.text, instruction.opcode, instruction.counted = text, "add", False


def plain_name(symbol: str) -> str:
    """Return the name of a variable in its source, without namespaces."""
    name = symbol.lstrip("@").strip('"')
    if not name.startswith("_Z"):
        return name
    rest, last = re.sub(r"^_ZN?L?", "", name), name
    while number := re.match(r"L?(\d+)", rest):
        last = rest[number.end() : number.end() + int(number[1])]
        rest = rest[number.end() + int(number[1]) :]
    return last


def set_variables(
    module: ir.Module,
    flat: ir.Function,
    declared: Sequence[str],
    kernel: Kernel,
    values: Values,
    images: Sequence[tuple[int, ...]],
) -> ir.Module:
    """Return a kernel's module with values for declared variables of the program, and sizes of images."""
    names = {plain_name(symbol): symbol for symbol in module.globals}
    variables = dict(module.globals)
    textures = {parameter.name: image for parameter, image in zip(flat.parameters, images, strict=False)}
    for name, sizes, content in values:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise LaunchError.of(
                where=kernel.name, problem=f"the program has no variable {name!r}; it has {known}"
            )
        if (variable := variables.get(names.get(name, ""))) is not None:
            if _TEXTURE.search(variable.text):
                textures[variable.name], content = (*sizes, 0), bytes(16) + content
                variable = replace(variable, nbytes=len(content))
            variables[variable.name] = _with_content(variable, name, kernel.name, content)
    names_with_value = {name for name, *_ in values}
    for symbol, variable in module.globals.items():
        if _TEXTURE.search(variable.text) and plain_name(symbol) not in names_with_value:
            line = next((i.where for i in flat.instructions() if i.line and symbol in i.text), None)
            raise LaunchError.of(
                where=kernel.name,
                field=line,
                problem=f"the kernel reads the texture {plain_name(symbol)}, whose texels are missing: "
                "expected --variable, or [[variable]] in the launch file, with a buffer or an image",
            )
    _set_sizes(flat, textures)
    return replace(module, globals=variables)


def _is_variable(variable: ir.GlobalVariable) -> bool:
    return variable.address_space in (1, 2) and not variable.name.startswith("@llvm.")


def _with_content(variable: ir.GlobalVariable, name: str, kernel: str, content: bytes) -> ir.GlobalVariable:
    nbytes = variable.nbytes
    if len(content) > nbytes:
        raise LaunchError.of(
            where=kernel, problem=f"variable {name}: expected at most {nbytes} bytes, found {len(content)}"
        )
    definition = _DEFINITION.match(variable.text)
    assert definition is not None
    written = "".join(f"\\{byte:02X}" for byte in content.ljust(nbytes, b"\0"))
    return replace(variable, text=f'{definition[1]}[{nbytes} x i8] c"{written}"', nbytes=nbytes)


def unset_variables(kernel: ir.Function, module: ir.Module, values: Values) -> Iterator[str]:
    """Yield the names of variables without a value that a kernel reads and does not write."""
    names_with_value = {name for name, *_ in values}
    for symbol, variable in module.globals.items():
        name = plain_name(symbol)
        if not _is_variable(variable) or name in names_with_value or not _ZEROS.match(variable.text):
            continue
        if variable.address_space == 2 or not _is_written(kernel, symbol):
            yield name


def _is_written(kernel: ir.Function, symbol: str) -> bool:
    """Whether a kernel may write a variable, or pass on its address."""
    pointers = {symbol}
    changed = True
    while changed:
        changed = False
        for instruction in kernel.instructions():
            if pointers.isdisjoint(instruction.symbols | instruction.uses()) or instruction.opcode == "load":
                continue
            if instruction.opcode not in ("getelementptr", "phi", "select", "addrspacecast", "freeze"):
                return True
            if instruction.result and instruction.result not in pointers:
                pointers.add(instruction.result)
                changed = True
    return False
