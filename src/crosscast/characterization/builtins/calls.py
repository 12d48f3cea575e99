"""Expansions of builtin calls to C++ with the headers of this folder, and their memory accesses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from crosscast.characterization.builtins.declarations import ADDRESS_SPACES, SCALARS, BuiltinDeclaration, Type


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
    return Use(text, "atomics.h", access, commutes=name.startswith("fetch_") and not is_real)
