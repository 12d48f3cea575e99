"""Values of ``__constant__`` and ``__device__`` variables and of texture references, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.inline import called_builtin
from crosscast.errors import LaunchError
from crosscast.kernel import Argument, Image, Kernel

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
            raise LaunchError(f"{label}: variable {name}: expected a value, a buffer or an image")
        if len(content) > _MOST_BYTES:
            raise LaunchError(
                f"{label}: variable {name}: expected at most {_MOST_BYTES} bytes, found {len(content)}"
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
            raise LaunchError(f"{kernel.name}: the program has no variable {name!r}; it has {known}")
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
        raise LaunchError(f"{kernel}: variable {name}: expected at most {nbytes} bytes, found {len(content)}")
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
