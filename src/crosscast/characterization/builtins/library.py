"""The builtin functions that a module calls, as OpenCL C source made on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from crosscast.characterization.builtins import (
    atomics,
    conversion,
    elementary,
    functions,
    images,
)
from crosscast.characterization.builtins.declarations import Access, Declaration, Type, parse
from crosscast.errors import UnsupportedError


@dataclass(frozen=True)
class _Family:
    """A family of builtins, as its module offers it."""

    # Result type and block of a declaration's function, `None` if it is not of this family
    define: Callable[[Declaration], str | None]
    # How one call touches memory, or `None` if the family's functions do not
    accesses: Callable[[Declaration], tuple[Access, ...]] | None = None
    preludes: tuple[str, ...] = ()  # OpenCL C that the blocks need, in this order


_FAMILIES = (
    _Family(elementary.define, elementary.accesses, (conversion.PRELUDE, elementary.PRELUDE)),
    _Family(functions.define_integer, preludes=(functions.INTEGER_PRELUDE,)),
    _Family(functions.define_common),
    _Family(functions.define_geometric),
    _Family(functions.define_relational),
    _Family(conversion.define_conversion, preludes=(conversion.PRELUDE,)),
    _Family(functions.define_shuffle),
    _Family(conversion.define_transfer, conversion.transfer_accesses, (conversion.PRELUDE,)),
    _Family(conversion.define_half_runtime),
    _Family(atomics.define, atomics.accesses),
    _Family(images.define, preludes=(images.PRELUDE,)),
)

LIBM = elementary.LIBM
"""Every C library symbol that the compiled library may leave undefined."""

HALF_RUNTIME = frozenset(conversion.HALF_RUNTIME)
"""Conversion routines that LLVM may call for ``half`` and that `source` can define as well."""


def source(symbols: Iterable[str]) -> str:
    """OpenCL C 3.0 that defines exactly these builtins, under exactly these names."""
    preludes: dict[str, None] = {}
    defined = []
    for number, symbol in enumerate(dict.fromkeys(symbols)):
        declaration = _declaration(symbol)
        found = _find(declaration) if declaration is not None else None
        if declaration is None or found is None:
            raise UnsupportedError(
                f"the program calls {declaration or symbol}, which is neither defined in it "
                "nor an OpenCL builtin function that Crosscast has"
            )
        family, text = found
        preludes |= dict.fromkeys(family.preludes)
        defined.append(_function(f"cc_{number}", declaration, text))
    return "\n".join(["#pragma OPENCL FP_CONTRACT OFF", *preludes, *defined, ""])


def defines(symbol: str) -> bool:
    """Whether `source` can define this symbol."""
    declaration = _declaration(symbol)
    return declaration is not None and _find(declaration) is not None


def accesses(symbol: str) -> tuple[Access, ...]:
    """How one call of this builtin touches memory that may be other than private."""
    declaration = _declaration(symbol)
    found = _find(declaration) if declaration is not None else None
    if declaration is None or found is None or found[0].accesses is None:
        return ()
    return found[0].accesses(declaration)


def _declaration(symbol: str) -> Declaration | None:
    return conversion.HALF_RUNTIME.get(symbol) or parse(symbol)


def _find(declaration: Declaration) -> tuple[_Family, str] | None:
    """The family that has the function, and the function's text."""
    for family in _FAMILIES:
        if (text := family.define(declaration)) is not None:
            return family, text
    return None


def _function(name: str, declaration: Declaration, text: str) -> str:
    """Declaration with the symbol as its assembler name, and definition."""
    result, block = text.split("{", 1)
    types = enumerate(declaration.parameters)
    parameters = ", ".join(f"{_parameter(t)} a{k}" for k, t in types) or "void"
    head = f"{result}{name}({parameters})"
    return f'{head} __asm__("{declaration.symbol}");\n{head} {{{block}'


def _parameter(type_: Type) -> str:
    """Type of a parameter; images and samplers are pointers in native code."""
    if type_.base == "ocl_sampler":
        return "const constant void *"
    return "const global void *" if type_.base.startswith("ocl_image") else type_.spelling
