"""Symbols of builtins: read back what an encoder, and clang itself, made of the types."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization import toolchain
from crosscast.characterization.builtins.mangling import ADDRESS_SPACES, Declaration, Type, parse

LETTERS = {
    "char": "c",
    "uchar": "h",
    "short": "s",
    "ushort": "t",
    "int": "i",
    "uint": "j",
    "long": "l",
    "ulong": "m",
    "half": "Dh",
    "float": "f",
    "double": "d",
}
OPAQUE = ("ocl_image2d_ro", "ocl_image3d_wo", "ocl_sampler", "ocl_event", "memory_order")

values = st.builds(Type, st.sampled_from(sorted(LETTERS)), st.sampled_from([1, 2, 3, 4, 8, 16]))
pointers = st.builds(
    Type,
    st.sampled_from(sorted(LETTERS)),
    st.sampled_from([1, 2, 4]),
    st.just(True),
    st.integers(0, 4),
    st.booleans(),
    st.booleans(),
) | st.builds(
    Type,
    st.sampled_from(["int", "ulong"]),
    st.just(1),
    st.just(True),
    st.integers(0, 4),
    atomic=st.just(True),
)
types = values | pointers | st.builds(Type, st.sampled_from(OPAQUE))


class Encoder:
    """The part of the Itanium C++ ABI's mangling that builtins need."""

    def __init__(self, named_spaces: bool) -> None:
        self._named_spaces = named_spaces
        self._seen: list[str] = []

    def symbol(self, name: str, parameters: tuple[Type, ...]) -> str:
        return f"_Z{len(name)}{name}{''.join(map(self._parameter, parameters)) or 'v'}"

    def _parameter(self, type_: Type) -> str:
        if not type_.pointer:
            return self._value(type_)
        qualifiers = self._space(type_.address_space)
        qualifiers += "V" * type_.volatile + "K" * type_.const
        # A pointer and what it points to are candidates of their own, by what they mean.
        return self._once(("pointer", type_), lambda: "P" + self._qualified(qualifiers, type_))

    def _qualified(self, qualifiers: str, type_: Type) -> str:
        if not qualifiers:
            return self._value(type_)
        return self._once(("qualified", type_), lambda: qualifiers + self._value(type_))

    def _value(self, type_: Type) -> str:
        if type_.atomic:
            return self._once(("atomic", type_.base), lambda: "U7_Atomic" + LETTERS[type_.base])
        if type_.width > 1:
            vector = f"Dv{type_.width}_{LETTERS[type_.base]}"
            return self._once(("vector", type_.base, type_.width), lambda: vector)
        if type_.base in LETTERS:
            return LETTERS[type_.base]
        return self._once(("name", type_.base), lambda: f"{len(type_.base)}{type_.base}")

    def _space(self, number: int) -> str:
        if number == 0:
            return ""
        name = f"CL{ADDRESS_SPACES[number]}" if self._named_spaces else f"AS{number}"
        return f"U{len(name)}{name}"

    def _once(self, meaning: object, encode: Callable[[], str]) -> str:
        key = repr(meaning)
        if key in self._seen:
            index = self._seen.index(key)
            return "S_" if index == 0 else f"S{index - 1:X}_"
        text = encode()
        self._seen.append(key)
        return text


@given(st.from_regex(r"[a-z][a-z_0-9]{0,20}", fullmatch=True), st.lists(types, max_size=7), st.booleans())
def test_what_was_encoded_is_read_back(name: str, parameters: list[Type], named_spaces: bool) -> None:
    symbol = Encoder(named_spaces).symbol(name, tuple(parameters))
    assert parse(symbol) == Declaration(symbol, name, tuple(parameters))


@given(st.text(alphabet="_Zsinfcvdj0123456789PKVUDhASCLglobal", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    declaration = parse(text)
    assert declaration is None or declaration.symbol == text


def test_clang_agrees() -> None:
    parameters = (
        Type("float", 4),
        Type("float", 4, pointer=True, address_space=1),
        Type("int", pointer=True, address_space=1, volatile=True, atomic=True),
        Type("half", 16, pointer=True, address_space=3),
        Type("char", pointer=True, address_space=2, const=True),
        Type("double", 3, pointer=True),
        Type("ocl_image2d_ro"),
        Type("ocl_sampler"),
        Type("ulong", pointer=True, address_space=4),
        Type("memory_order"),
        Type("float", 4, pointer=True, address_space=1),
    )
    spelled = ", ".join(f"{t.spelling} a{k}" for k, t in enumerate(parameters))
    source = f"__attribute__((overloadable)) void many({spelled}) {{}}"
    arguments = [
        *("-x", "cl", "-cl-std=CL3.0", "-target", "spir64-unknown-unknown", "-S", "-emit-llvm"),
        *("-isystem", str(toolchain.INCLUDE_DIR)),
    ]
    text = toolchain.clang(arguments, source.encode(), "source").decode()
    match = re.search(r"@(_Z4many\w+)\(", text)
    assert match is not None
    declaration = parse(match[1])
    assert declaration is not None
    assert declaration.parameters == parameters


@pytest.mark.parametrize(
    ("symbol", "text"),
    [
        ("_Z3sinDv4_f", "sin(float4)"),
        ("_Z5clampfff", "clamp(float, float, float)"),
        ("_Z6vload4mPU3AS1Kf", "vload4(ulong, global const float*)"),
        ("_Z10atomic_addPU8CLglobalVjj", "atomic_add(global volatile uint*, uint)"),
        ("_Z5fractDv2_fPU3AS1S_", "fract(float2, global float2*)"),
        (
            "_Z11read_imagef14ocl_image2d_ro11ocl_samplerDv2_i",
            "read_imagef(read_only image2d_t, sampler_t, int2)",
        ),
        ("_Z19get_local_linear_idv", "get_local_linear_id()"),
    ],
)
def test_declarations_are_shown_as_in_opencl_c(symbol: str, text: str) -> None:
    assert str(parse(symbol)) == text


@pytest.mark.parametrize(
    "symbol",
    ["", "printf", "_Z", "_Z9short", "_Z3sin!", "_Z3sinS_", "_Z3sinPPf", "_ZN3foo3barEf", "_Z1fPU3AS9f"],
)
def test_what_no_builtin_has_is_refused(symbol: str) -> None:
    assert parse(symbol) is None
