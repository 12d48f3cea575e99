"""The OpenCL C builtin functions, compiled on demand.

A kernel module calls builtins by their mangled names and defines none of them. The headers of this folder, in
C++ for OpenCL, define them as templates. A name becomes a declaration, its call is expanded to C++ with these
headers and to its memory accesses, and the calls of a module are compiled to LLVM IR.

Clang mangles builtins by the Itanium C++ ABI (section 5.1), with vendor qualifiers for address
spaces (``U3AS1`` or ``U8CLglobal``) and source names for opaque types (``14ocl_image2d_ro``).
Result types are not part of such a name.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from crosscast.characterization import toolchain
from crosscast.errors import CompileError, UnsupportedError


@dataclass(frozen=True)
class Scalar:
    """A scalar type."""

    kind: Literal["i", "u", "f"]  # Signed, unsigned or floating-point, as NumPy calls it
    nbytes: int
    codes: tuple[str, ...]  # In mangled names

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """NumPy type."""
        return np.dtype(f"{self.kind}{self.nbytes}")


SCALARS = {
    "char": Scalar("i", 1, ("c", "a")),
    "uchar": Scalar("u", 1, ("h",)),
    "short": Scalar("i", 2, ("s",)),
    "ushort": Scalar("u", 2, ("t",)),
    "int": Scalar("i", 4, ("i",)),
    "uint": Scalar("u", 4, ("j",)),
    "long": Scalar("i", 8, ("l", "x")),
    "ulong": Scalar("u", 8, ("m", "y")),
    "half": Scalar("f", 2, ("Dh", "DF16_")),
    "float": Scalar("f", 4, ("f",)),
    "double": Scalar("f", 8, ("d",)),
}


ADDRESS_SPACES = ("private", "global", "constant", "local", "generic")
"""Address space qualifiers of OpenCL C by their number in ``spir64`` modules."""

_SCALARS = {"v": "void", "b": "bool", "z": "..."} | {
    code: name for name, scalar in SCALARS.items() for code in scalar.codes
}
_OPAQUE = {"ocl_sampler": "sampler_t", "ocl_event": "event_t", "ocl_clkevent": "clk_event_t"}
_OPAQUE |= {"ocl_queue": "queue_t", "ocl_reserveid": "reserve_id_t"}
_IMAGE_ACCESS = {"ro": "read_only", "wo": "write_only", "rw": "read_write"}
_IMAGE_TYPE = re.compile(r"ocl_(image\w+?)_(ro|wo|rw)")
_SCALAR = re.compile("|".join(sorted(_SCALARS, key=len, reverse=True)))
_VECTOR = re.compile(r"Dv(\d+)_")
_LENGTH = re.compile(r"[1-9]\d*")
_SUBSTITUTION = re.compile(r"S([0-9A-Z]*)_")
_POINTER = re.compile(rf"P(?:U(?:3AS([0-4])|\d+CL({'|'.join(ADDRESS_SPACES)})))?(V?)(K?)")
_ATOMIC_QUALIFIER = re.compile("U7_Atomic")
_LONGEST = 300  # characters of a symbol, more than twice those of the longest builtin


@dataclass(frozen=True)
class Type:
    """Type of a builtin's parameter."""

    # Scalar of OpenCL C (`float`, `uint`, ...) or name of an opaque type or enumeration (`ocl_image2d_ro`,
    # `ocl_sampler`, `memory_order`)
    base: str
    width: int = 1  # Elements of a vector, 1 for a scalar
    pointer: bool = False  # A pointer to `base`; the fields below qualify what it points to
    address_space: int = 0  # Index into `ADDRESS_SPACES`
    const: bool = False
    volatile: bool = False
    atomic: bool = False

    @property
    def spelling(self) -> str:
        """The type in OpenCL C 3.0."""
        text = _OPAQUE.get(self.base, self.base)
        if image := _IMAGE_TYPE.fullmatch(self.base):
            text = f"{_IMAGE_ACCESS[image[2]]} {image[1]}_t"
        if self.width > 1:
            text += str(self.width)
        if self.atomic:
            text = f"atomic_{text}"
        if not self.pointer:
            return text
        qualifiers = [ADDRESS_SPACES[self.address_space]]
        qualifiers += ["const"] if self.const else []
        qualifiers += ["volatile"] if self.volatile else []
        return f"{' '.join(qualifiers)} {text} *"


@dataclass(frozen=True)
class BuiltinDeclaration:
    """A builtin function, from its symbol."""

    symbol: str  # Name in the module
    name: str  # Name in OpenCL C
    parameters: tuple[Type, ...]  # Types of the parameters; empty for `f(void)`

    def __str__(self) -> str:
        types = (t.spelling.replace(" *", "*") for t in self.parameters)
        return f"{self.name}({', '.join(types)})"


class _NotABuiltinError(Exception):
    """The symbol has a part that no OpenCL builtin has."""


class _Parser:
    """Parser of a symbol, with its substitution candidates in order."""

    def __init__(self, symbol: str) -> None:
        self._text, self._position = symbol, len("_Z")
        self._candidates: list[Type] = []

    def declaration(self) -> BuiltinDeclaration:
        name, types = self._source_name(), []
        while self._position < len(self._text):
            types.append(self._type())
        return BuiltinDeclaration(self._text, name, () if types == [Type("void")] else tuple(types))

    def _type(self) -> Type:
        pointer = self._match(_POINTER)
        pointee = self._unqualified()
        if pointer is None:
            return pointee
        number, space, volatile, const = pointer.groups()
        if pointee.pointer:
            raise _NotABuiltinError
        if number or space or volatile or const:
            pointee = self._remember(
                replace(
                    pointee,
                    address_space=ADDRESS_SPACES.index(space)
                    if space
                    else int(number or pointee.address_space),
                    volatile=bool(volatile) or pointee.volatile,
                    const=bool(const) or pointee.const,
                )
            )
        return self._remember(replace(pointee, pointer=True))

    def _unqualified(self) -> Type:
        if self._match(_ATOMIC_QUALIFIER):
            return self._remember(replace(self._unqualified(), atomic=True))
        if match := self._match(_VECTOR):
            return self._remember(Type(self._unqualified().base, int(match[1])))
        if match := self._match(_SUBSTITUTION):
            index = int(match[1], 36) + 1 if match[1] else 0
            if index >= len(self._candidates):
                raise _NotABuiltinError
            return self._candidates[index]
        if match := self._match(_SCALAR):
            return Type(_SCALARS[match[0]])
        return self._remember(Type(self._source_name()))

    def _source_name(self) -> str:
        """Read ``<length><characters>``."""
        length = self._match(_LENGTH)
        end = self._position + int(length[0] if length else 0)
        name = self._text[self._position : end]
        if end > len(self._text) or not (name.isascii() and name.isidentifier()):
            raise _NotABuiltinError
        self._position = end
        return name

    def _remember(self, candidate: Type) -> Type:
        self._candidates.append(candidate)
        return candidate

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._position)
        self._position = match.end() if match else self._position
        return match


def parse(symbol: str) -> BuiltinDeclaration | None:
    """Return the declaration of the builtin with this symbol; ``None`` if it cannot be a builtin's.

    >>> declaration = parse("_Z5fractDv2_fPU3AS1S_")
    >>> declaration.name, [parameter.spelling for parameter in declaration.parameters]
    ('fract', ['float2', 'global float2 *'])
    """
    if not symbol.startswith("_Z") or len(symbol) > _LONGEST:
        return None
    try:
        return _Parser(symbol).declaration()
    except _NotABuiltinError:
        return None


@dataclass(frozen=True)
class Access:
    """One event of a builtin call, at its start address ``pointer + index * stride``."""

    # Whether the call reads or writes; `read-write` is one of each, and `compare-exchange` a read, and
    # a write if it succeeds
    kind: Literal["read", "write", "read-write", "compare-exchange"]
    pointer: int  # Position of the pointer among the arguments
    index: int | None  # Position of the argument that counts units of `stride`; `None` if there is none
    stride: int  # Bytes of one unit of the index
    nbytes: int  # Bytes accessed
    alignment: int  # Bytes to which the language lets the start address be aligned
    # How a compare-exchange shows that it wrote: `result` (the result is true) or `equals-argument` (the
    # result equals argument 1)
    success: Literal["none", "pair", "result", "equals-argument"] = "none"


class Use(NamedTuple):
    """Expansion of a call."""

    text: str  # An expression of the arguments a0, a1, ...
    header: str = ""  # Header with its definitions, if that does not follow from the name
    access: Access | None = None  # Its access, to any memory
    commutes: bool = False  # Whether the order of such calls does not affect memory in the end
    adds: bool = False  # Whether what such calls do to memory is a sum of integers


_WIDTH = "(2|3|4|8|16|)"
_TYPE = f"({'|'.join(SCALARS)}){_WIDTH}"
_MODE = "(?:_(rte|rtz|rtp|rtn))?"
_AS_TYPE = re.compile(f"as_{_TYPE}")
_CONVERT = re.compile(f"convert_{_TYPE}(_sat)?{_MODE}")
_TRANSFER = re.compile(f"v(load|store)(a?_half)?{_WIDTH}{_MODE}")
# Functions of OpenCL C 1.x, and of C11.
_ATOMIC = re.compile(
    r"atom(?:ic)?_(add|sub|xchg|inc|dec|cmpxchg|min|max|and|or|xor)"
    r"|atomic_(init|store|load|exchange|compare_exchange|fetch_(?:add|sub|or|xor|and|min|max)"
    r"|flag_test_and_set|flag_clear)(?:_strong|_weak)?(?:_explicit)?"
)
_KINDS: dict[str, Literal["read", "write", "compare-exchange"]] = {
    "load": "read",
    **dict.fromkeys(("store", "init", "flag_clear"), "write"),
    **dict.fromkeys(("cmpxchg", "compare_exchange"), "compare-exchange"),
}
_SUCCESSES: dict[str, Literal["equals-argument", "result"]] = {
    "cmpxchg": "equals-argument",
    "compare_exchange": "result",
}
_ATOMIC_TYPES = ("int", "uint", "long", "ulong", "float", "double")
_WITH_SECOND_RESULT = ("fract", "frexp", "lgamma_r", "modf", "remquo", "sincos")
_FAST = re.compile(r"^(?:native|half)_(?=(?:cos|exp|exp10|exp2|log|log10|log2|powr|rsqrt|sin|sqrt|tan)$)")
_IMAGE = re.compile(r"ocl_image([123])d(?:_buffer)?(_array)?(_depth)?_..")


def use(declaration: BuiltinDeclaration) -> Use | None:
    """Return the expansion of a call; the compiler decides whether the function exists."""
    if match := _AS_TYPE.fullmatch(declaration.name):
        return Use(f"as<{match[1]}{match[2]}>(a0)", "values.h")
    if match := _CONVERT.fullmatch(declaration.name):
        mode = match[4] or ("rte" if SCALARS[match[1]].kind == "f" else "rtz")
        return Use(f"convert<{match[1]}{match[2]}, {mode}, {int(bool(match[3]))}>(a0)", "conversion.h")
    target = declaration.parameters[-1] if declaration.parameters else Type("void")
    if (match := _TRANSFER.fullmatch(declaration.name)) and target.base in SCALARS:
        return _transfer(match, len(declaration.parameters) - 1, target)
    if match := _ATOMIC.fullmatch(declaration.name):
        return _atomic(match, declaration.parameters)
    name = _FAST.sub("", declaration.name)
    header = "images.h" if any(t.base.startswith("ocl_image") for t in declaration.parameters) else ""
    width = 1 if header else max((t.width for t in declaration.parameters if not t.pointer), default=1)
    arguments = (_argument(f"a{k}", t, width) for k, t in enumerate(declaration.parameters))
    text = f"cl::{name}({', '.join(arguments)})"
    if name not in _WITH_SECOND_RESULT or target.base not in SCALARS:
        return Use(text, header)
    nbytes = SCALARS[target.base].nbytes * (4 if target.width == 3 else target.width)
    return Use(text, header, Access("write", len(declaration.parameters) - 1, None, 0, nbytes, nbytes))


def _argument(name: str, type_: Type, width: int) -> str:
    """Convert an argument; a scalar among vectors is broadcast, as in ``max(float4, float)``."""
    if type_.base == "ocl_sampler":
        return f"sampler{{(uint)(ulong){name}}}"
    if image := _IMAGE.fullmatch(type_.base):
        return f"image<{image[1]}, {int(bool(image[2]))}, {int(bool(image[3]))}>{{(picture){name}}}"
    if type_.width < width and type_.width == 1 and not type_.pointer:
        return f"({type_.base}{width}){name}"
    return name


def _transfer(match: re.Match[str], pointer: int, target: Type) -> Use:
    """Expand a vector load ``vload(offset, pointer)`` or store ``vstore(value, offset, pointer)``."""
    loads, halves, width, mode = match[1] == "load", match[2], int(match[3] or 1), match[4]
    aligned, nbytes = halves == "a_half", SCALARS[target.base].nbytes
    stride = 4 if aligned and width == 3 else width
    alignment = nbytes * (stride if aligned else 1)
    text = f"load<{width}, {alignment}>(a{pointer} + a{pointer - 1} * {stride})"
    if loads and halves:
        text = f"convert<float{match[3]}, rte>({text})"
    elif not loads:
        value = f"convert<half{match[3]}, {mode or 'rte'}>(a0)" if halves else "a0"
        text = f"store<{width}, {alignment}>({value}, a2 + a1 * {stride})"
    kind: Literal["read", "write"] = "read" if loads else "write"
    access = Access(kind, pointer, pointer - 1, stride * nbytes, width * nbytes, alignment)
    return Use(text, "conversion.h", access)


def _atomic(match: re.Match[str], parameters: tuple[Type, ...]) -> Use | None:
    """Expand an atomic function: one access to the object of its first argument."""
    old, new = match.groups()
    target = parameters[0] if parameters else Type("void")
    is_real = target.base in ("float", "double")
    exists = target.base in _ATOMIC_TYPES and target.atomic == bool(new)
    if not exists or (is_real and old not in (None, "xchg")):
        return None
    name = new or {"xchg": "exchange", "cmpxchg": "cmpxchg"}.get(old, f"fetch_{old}")
    order = "memory_order_seq_cst" if new else "memory_order_relaxed"
    space, base, nbytes = ADDRESS_SPACES[target.address_space], target.base, SCALARS[target.base].nbytes
    # A work-group runs on one thread, so that local memory needs no hardware atomics.
    shared = space in ("global", "generic")
    pointer = f"({space} {'atomic_' * shared}{base} *)a0"
    arguments = ", ".join([pointer, *(f"a{k}" for k in range(1, len(parameters)))])
    text = f"atomic<{'shared' if shared else 'own'}, {base}, {order}>::{name}({arguments})"
    access = Access(_KINDS.get(name, "read-write"), 0, None, 0, nbytes, nbytes, _SUCCESSES.get(name, "none"))
    commutes = name.startswith("fetch_") and not is_real
    return Use(text, "atomics.h", access, commutes, commutes and name[6:] in ("add", "sub", "inc", "dec"))


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
    "__truncsfbf2": ("float", "shortened"),
    "__truncdfbf2": ("double", "shortened"),
}
HALF_RUNTIME = frozenset(_HALF_RUNTIME)
"""Conversion routines that LLVM may call for ``half`` and ``bfloat``."""

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


def is_commutative(symbol: str, *, adds: bool = False) -> bool:
    """Whether the order of such calls does not affect memory in the end; or they add to it."""
    expansion = (declaration := parse(symbol)) and use(declaration)
    return bool(expansion and (expansion.adds if adds else expansion.commutes))
