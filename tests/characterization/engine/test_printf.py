"""printf's text: each conversion is held against the C library, vectors against the specification."""

from __future__ import annotations

import ctypes
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.engine.printf import argument_conversions, render

_LIBC = ctypes.CDLL(None)
FLAGS = st.lists(st.sampled_from("-+ #0"), max_size=3).map("".join)
WIDTH = st.one_of(st.just(""), st.integers(1, 40).map(str))
PRECISION = st.one_of(st.just(""), st.just("."), st.integers(0, 30).map(".{}".format))


def c_printf(format_string: str, value: object) -> str:
    buffer = ctypes.create_string_buffer(1024)
    _LIBC.snprintf(buffer, ctypes.c_size_t(1024), format_string.encode(), value)
    return buffer.value.decode()


def double(value: float) -> tuple[str, bytes]:
    return "double", struct.pack("<d", value)


def int32(value: int) -> tuple[str, bytes]:
    return "i32", struct.pack("<i", value)


@given(FLAGS, WIDTH, PRECISION, st.sampled_from("fFeEgGaA"), st.floats(-1e200, 1e200) | st.floats())
def test_floating_conversions_are_those_of_c(
    flags: str, width: str, precision: str, conversion: str, value: float
) -> None:
    specification = f"%{flags}{width}{precision}{conversion}"
    assert render(specification.encode(), [double(value)]) == c_printf(specification, ctypes.c_double(value))


@given(FLAGS, WIDTH, PRECISION, st.sampled_from("diouxX"), st.integers(-(2**31), 2**31 - 1))
def test_integer_conversions_are_those_of_c(
    flags: str, width: str, precision: str, conversion: str, value: int
) -> None:
    specification = f"%{flags}{width}{precision}{conversion}"
    assert render(specification.encode(), [int32(value)]) == c_printf(specification, ctypes.c_int(value))


@given(st.sampled_from(["hh", "h", "l"]), st.sampled_from("diouxX"), st.integers(-(2**63), 2**63 - 1))
def test_length_modifiers_are_those_of_c(length: str, conversion: str, value: int) -> None:
    specification = f"%{length}{conversion}"
    kind, argument, layout = (
        ("i64", ctypes.c_int64(value), "<q") if length == "l" else ("i32", ctypes.c_int32(value), "<i")
    )
    data = struct.pack(layout, argument.value)
    assert render(specification.encode(), [(kind, data)]) == c_printf(specification, argument)


@given(FLAGS.filter(lambda flags: "0" not in flags), WIDTH, PRECISION, st.binary(max_size=20))
def test_strings_end_at_the_zero_and_at_the_precision(
    flags: str, width: str, precision: str, data: bytes
) -> None:
    specification = f"%{flags}{width}{precision}s"
    text = bytes(byte & 0x7F for byte in data)
    assert render(specification.encode(), [("ptr", text)]) == c_printf(specification, ctypes.c_char_p(text))


def test_the_examples_of_the_specification() -> None:
    f4 = ("<4 x float>", struct.pack("<4f", 1, 2, 3, 4))
    uc4 = ("<4 x i8>", bytes([0xFA, 0xFB, 0xFC, 0xFD]))
    s3 = ("<3 x i32>", struct.pack("<3I", 0x400, 0x401, 0x402))
    assert render(b"f4 = %2.2v4hlf\n", [f4]) == "f4 = 1.00,2.00,3.00,4.00\n"
    assert render(b"uc4 = %#v4hhx\n", [uc4]) == "uc4 = 0xfa,0xfb,0xfc,0xfd\n"
    assert render(b"unsigned int3 = %#v3hlx\n", [s3]) == "unsigned int3 = 0x400,0x401,0x402\n"


@pytest.mark.parametrize(
    ("specification", "value", "text"),
    [
        ("%v2hd", ("<2 x i16>", struct.pack("<2h", -1, 7)), "-1,7"),
        ("%v2ld", ("<2 x i64>", struct.pack("<2q", -1, 1 << 40)), "-1,1099511627776"),
        ("%v4hhd", ("<4 x i8>", bytes([255, 0, 1, 128])), "-1,0,1,-128"),
        ("%v2lf", ("<2 x double>", struct.pack("<2d", 0.5, -2)), "0.500000,-2.000000"),
        ("%v2hg", ("<2 x half>", struct.pack("<2e", 0.5, -2)), "0.5,-2"),
        ("%v8hle", ("<8 x float>", struct.pack("<8f", *[2] * 8)), ",".join(["2.000000e+00"] * 8)),
        ("%v16hlu", ("<16 x i32>", struct.pack("<16I", *range(16))), ",".join(map(str, range(16)))),
        ("%-5v2hhu|", ("<2 x i8>", b"\1\2"), "1    ,2    |"),
        ("%05.1v2hlf", ("<2 x float>", struct.pack("<2f", 1, -1)), "001.0,-01.0"),
        ("%v3hlf", ("<4 x float>", struct.pack("<4f", 1, 2, 3, 4)), "1.000000,2.000000,3.000000"),
    ],
)
def test_vectors_are_printed_element_by_element(
    specification: str, value: tuple[str, bytes], text: str
) -> None:
    assert render(specification.encode(), [value]) == text


def test_characters_pointers_and_percent_signs() -> None:
    address = ("ptr addrspace(1)", struct.pack("<Q", 0xBEEF))
    assert (
        render(b"%c%-3c|%3c 100%% %p", [int32(65), int32(66), int32(67), address]) == "AB  |  C 100% 0xbeef"
    )


def test_characters_that_make_up_one_code_point_are_joined() -> None:
    assert render(b"%c%c", [int32(0xC3), int32(0xA9)]) == "é"


def test_signed_zeros_infinities_and_nans() -> None:
    values = [double(-0.0), double(-math.inf), double(math.nan)]
    assert render(b"%g %05f %5F", values) == "-0  -inf   NAN"


@pytest.mark.parametrize(
    ("specification", "values", "text"),
    [
        ("%d %d", [int32(1)], "1 %d"),
        ("%y %d", [int32(1)], "%y 1"),
        ("%", [], "%"),
        ("%f", [int32(-3)], "-3.000000"),
        ("%d", [double(3.75)], "3"),
        ("%d", [double(math.inf)], "inf"),
        ("%x", [double(-1.0)], "ffffffffffffffff"),
        ("%d", [("i64", struct.pack("<q", -(1 << 40)))], str(-(1 << 40))),
        ("%d", [("<2 x i32>", struct.pack("<2i", 1, -2))], "1,-2"),
        ("%v4hld", [int32(5)], "5"),
        ("%s", [int32(5)], "5"),
        ("%c", [double(2.5)], "2"),
        ("%*d", [int32(-4), int32(5)], "5   "),
        ("%.*f", [int32(1), double(0.25)], "0.2"),
        ("%*d", [], "%*d"),
        ("none", [int32(5)], "none"),
        ("%d", [("i32", b"")], ""),
    ],
)
def test_undefined_calls_print_something_sensible(
    specification: str, values: list[tuple[str, bytes]], text: str
) -> None:
    assert render(specification.encode(), values) == text


def test_a_field_cannot_grow_without_bound() -> None:
    assert len(render(b"%99999999999d", [int32(1)])) == 4095
    assert len(render(b"%.9999999f", [double(1)])) == 4097


@given(
    st.binary(max_size=40) | st.text("%0123456789v4hl*.#-+ dfsxcpg", max_size=30).map(str.encode),
    st.lists(
        st.tuples(
            st.sampled_from(["i1", "i8", "i32", "i64", "double", "half", "<4 x float>", "<3 x i8>", "ptr"]),
            st.binary(max_size=20),
        ),
        max_size=4,
    ),
)
def test_no_call_fails(format_string: bytes, values: list[tuple[str, bytes]]) -> None:
    assert isinstance(render(format_string, values), str)


def test_the_conversions_of_the_arguments_are_known_from_the_format() -> None:
    assert argument_conversions(b"%% %s %-5d %.*f %v4hlx %c") == "sd*fxc"
