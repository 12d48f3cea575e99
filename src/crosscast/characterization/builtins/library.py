"""LLVM IR of the builtin functions that a module calls, compiled on demand."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path

from crosscast.characterization import toolchain
from crosscast.characterization.builtins.calls import Access, Use, use
from crosscast.characterization.builtins.declarations import SCALARS, BuiltinDeclaration, Type, parse
from crosscast.errors import CompileError, UnsupportedError

_LIBM = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf erfc exp exp10 exp2 expm1 floor fma fmax
    fmin fmod hypot ldexp log log10 log1p log2 nearbyint pow remainder rint round roundeven sin sincos sinh
    sqrt tan tanh tgamma trunc
"""
LIBM = frozenset(name + suffix for name in _LIBM.split() for suffix in ("", "f"))
LIBM |= {"lgamma_r", "lgammaf_r", "memcpy", "memmove", "memset"}
"""C library symbols that the IR may leave undefined: LLVM calls more than the headers."""

_HALF_RUNTIME = {
    "__extendhfsf2": ("half", "extended"),
    "__truncsfhf2": ("float", "truncated"),
    "__truncdfhf2": ("double", "truncated"),
}
HALF_RUNTIME = frozenset(_HALF_RUNTIME)
"""Conversion routines that LLVM may call for ``half``."""

_FOLDER = Path(__file__).parent


def llvm_ir(symbols: Iterable[str]) -> str:
    """Return LLVM IR for ``spir64`` that defines exactly these functions."""
    requested = list(dict.fromkeys(symbols))
    uses = [_use(symbol) for symbol in requested]
    included = sorted({_header(declaration, expansion) for declaration, expansion in uses})
    definitions = (_definition(declaration, expansion) for declaration, expansion in uses)
    lines = [*(f'#include "{name}"' for name in included), '#line 1 "calls"', *definitions, ""]
    arguments = [
        *("-x", "clcpp", "-cl-std=clc++2021", "-target", "spir64-unknown-unknown", "-O2", "-Werror"),
        *("-isystem", str(toolchain.INCLUDE_DIR), "-I", str(_FOLDER), "-S", "-emit-llvm"),
    ]
    source = "\n".join(lines).encode()
    make = functools.partial(toolchain.clang, arguments, source, "builtins")
    key: list[str | bytes] = [*arguments[:6], toolchain.compiler_version(), *_headers().values(), source]
    try:
        return toolchain.cached(key, ".ll", make).read_text()
    except CompileError as error:
        if refused := re.search(r"\bcalls:(\d+):", str(error)):
            raise _unknown(requested[int(refused[1]) - 1]) from error
        raise


@functools.cache
def _headers() -> dict[str, str]:
    folders = (_FOLDER, toolchain.INCLUDE_DIR)
    return {path.name: path.read_text() for folder in folders for path in sorted(folder.glob("*.h"))}


def _header(declaration: BuiltinDeclaration, expansion: Use) -> str:
    """Return the smallest header that defines a function; headers include those that they need."""
    if expansion.header:
        return expansion.header
    reals = any(t.base in SCALARS and SCALARS[t.base].kind == "f" for t in declaration.parameters[:1])
    order = ("math.h", "geometry.h", "integer.h") if reals else ("integer.h", "math.h")
    naming = re.compile(rf"^\S.*?[ (]{re.escape(declaration.name)}[(,)]", re.MULTILINE)
    return next((name for name in order if naming.search(_headers()[name])), order[0])


def _use(symbol: str) -> tuple[BuiltinDeclaration, Use]:
    if symbol in _HALF_RUNTIME:
        base, function = _HALF_RUNTIME[symbol]
        return BuiltinDeclaration(symbol, symbol, (Type(base),)), Use(f"{function}(a0)", "half.h")
    declaration = parse(symbol)
    expansion = declaration and use(declaration)
    if not declaration or not expansion:
        raise _unknown(symbol)
    return declaration, expansion


def _unknown(symbol: str) -> UnsupportedError:
    return UnsupportedError(
        f"the program calls {parse(symbol) or symbol}, which is neither defined in it "
        "nor an OpenCL builtin function that Crosscast has"
    )


def _definition(declaration: BuiltinDeclaration, expansion: Use) -> str:
    """Return the declaration with the symbol as its assembler name, and the definition, in one line."""
    parameters = ", ".join(f"{_parameter(t)} a{k}" for k, t in enumerate(declaration.parameters))
    head = f"auto cc_{declaration.symbol.lstrip('_')}({parameters})"
    return f'{head} __asm__("{declaration.symbol}"); {head} {{ return {expansion.text}; }}'


def _parameter(type_: Type) -> str:
    """Return the type of a parameter; images and samplers are pointers in native code."""
    if type_.base == "ocl_sampler":
        return "const constant void *"
    return "const global void *" if type_.base.startswith("ocl_image") else type_.spelling


def accesses(symbol: str) -> tuple[Access, ...]:
    """Return the accesses of a call of this builtin to memory that may be other than private."""
    declaration = parse(symbol)
    access = (expansion := declaration and use(declaration)) and expansion.access
    if not declaration or not access or not declaration.parameters[access.pointer].address_space:
        return ()
    return (access,)


def is_commutative(symbol: str) -> bool:
    """Whether the order of such calls does not affect memory in the end."""
    expansion = (declaration := parse(symbol)) and use(declaration)
    return bool(expansion and expansion.commutes)
