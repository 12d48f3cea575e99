"""Pieces of OpenCL C that hold for every element type and vector width."""

from __future__ import annotations

from collections.abc import Callable

from crosscast.characterization.builtins.mangling import Declaration
from crosscast.characterization.scalars import SCALARS

BITS = {name: 8 * scalar.nbytes for name, scalar in SCALARS.items()}
FLOATS = frozenset(name for name, scalar in SCALARS.items() if scalar.kind == "f")
INTEGERS = frozenset(BITS) - FLOATS
_SAME_SIZE_INTEGER = {8: "char", 16: "short", 32: "int", 64: "long"}


def vector(base: str, width: int) -> str:
    """Name of the vector type; of the scalar if `width` is 1."""
    return base if width == 1 else f"{base}{width}"


def unsigned(base: str) -> str:
    """Unsigned integer type of the same size."""
    return base if base.startswith("u") else f"u{same_size_integer(base)}"


def signed(base: str) -> str:
    """Signed integer type of the same size as an integer type."""
    return base.removeprefix("u")


def same_size_integer(base: str) -> str:
    """Signed integer type as large as `base`."""
    return _SAME_SIZE_INTEGER[BITS[base]]


def element(name: str, index: int, width: int) -> str:
    """Element of a variable of that width."""
    return name if width == 1 else f"{name}.s{index:x}"


def convert(expression: str, base: str, width: int) -> str:
    """Value conversion of an expression of `width` elements, as C casts it."""
    if width == 1:
        return f"({base})({expression})"
    return f"__builtin_convertvector({expression}, {base}{width})"


def reinterpret(expression: str, base: str, width: int) -> str:
    """The bits of an expression as another type of the same size."""
    return f"__builtin_astype({expression}, {vector(base, width)})"


def splat(expression: str, base: str, width: int) -> str:
    """A scalar in every element."""
    return f"(({vector(base, width)})({expression}))"


def per_element(base: str, width: int, expression: Callable[[int], str]) -> str:
    """A value built from one expression per element."""
    return f"({vector(base, width)})({', '.join(expression(index) for index in range(width))})"


def uniform(declaration: Declaration) -> tuple[str, int, list[str]] | None:
    """Element type, width and arguments of a function on values of one type.

    Scalar arguments among vectors are spread, as in ``max(float4, float)``. ``None`` if the
    function has a pointer, no parameter, or parameters of different element types.
    """
    parameters = declaration.parameters
    if not parameters or any(t.pointer or t.base not in BITS for t in parameters):
        return None
    base = parameters[0].base
    width = max(t.width for t in parameters)
    if any(t.base != base or t.width not in (1, width) for t in parameters):
        return None
    arguments = [
        f"a{k}" if t.width == width else splat(f"a{k}", base, width) for k, t in enumerate(parameters)
    ]
    return base, width, arguments
