"""What is read from a SPIR-V module, and what is refused as none."""

import struct

import pytest
from embedding_examples import module, modules, op, text_words
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.embedding.module import is_module, read_module
from crosscast.errors import InputError

GOOD = module()


def with_word(index: int, value: int) -> bytes:
    return GOOD[: 4 * index] + struct.pack("<I", value) + GOOD[4 * index + 4 :]


@given(modules)
def test_a_module_is_the_same_in_either_order_of_bytes(content: bytes) -> None:
    swapped = struct.pack(f"<{len(content) // 4}I", *struct.unpack(f">{len(content) // 4}I", content))
    one, other = read_module(content, "x"), read_module(swapped, "x")
    assert one.words.tolist() == other.words.tolist()
    assert one.instructions == other.instructions
    assert one.big != other.big
    assert (one.to_bytes(one.words), other.to_bytes(other.words)) == (content, swapped)


@pytest.mark.parametrize("order", "<>")
def test_kernels_are_found_by_name(order: str) -> None:
    names = ("k", "abc", "abcd", "a kernel with a longer name")
    assert read_module(module(kernels=names, order=order), "x").kernels == names


def test_imports_are_found_but_for_the_variables_of_the_language() -> None:
    def linkage(name: str, kind: int) -> list[int]:
        return op(71, 2, 41, *text_words(name), kind)

    rest = [linkage("__spirv_BuiltInWorkDim", 1), linkage("out", 0), linkage("in", 1), op(71, 2, 44, 4)]
    assert read_module(module(rest=rest), "x").imports == ("in",)


def test_the_debug_section_starts_behind_the_execution_modes() -> None:
    found = read_module(module(op(7, 9, *text_words("first"))), "x")
    assert [text for instruction, text in found.strings() if instruction.start == found.debug_start] == [
        "first"
    ]


@given(st.binary(max_size=80).map(lambda tail: GOOD[:20] + tail))
def test_noise_behind_a_header_is_read_or_refused(content: bytes) -> None:
    try:
        read_module(content, "x")
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it begins with nothing"),
        (b"\x7fELF", "it begins with 7f454c46"),
        (GOOD[:-1], f"its length of {len(GOOD) - 1} bytes"),
        (GOOD[:16], "its length of 16 bytes"),
        (with_word(1, 0x20000), "its version is the word 0x00020000"),
        (with_word(1, 0x10001), "its version is the word 0x00010001"),
        (with_word(1, 0x1010000), "its version is the word 0x01010000"),
        (with_word(3, 0), "its bound of ids is 0"),
        (with_word(4, 1), "its schema 1"),
        (with_word(5, 17), "the instruction at byte 20 has 0 words"),
        (with_word(5, 0xFFFF0011), "the instruction at byte 20 has 65535 words"),
        (GOOD[:20], "it has 0 memory models"),
        (module(op(14, 2, 2)), "it has 2 memory models"),
        (GOOD[:-4], "its last function does not end"),
        (GOOD[:-36], "it does not define the function of an entry point"),
        (module(op(7, 9)), "has 2 words"),
    ],
)
def test_what_is_wrong_is_said(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=r"^k\.spv: expected a whole SPIR-V module") as caught:
        read_module(content, "k.spv")
    assert message in str(caught.value)


def test_a_string_without_an_end_is_refused() -> None:
    found = read_module(module(op(7, 9, 0x41414141)), "x")
    with pytest.raises(InputError, match=r"the string at byte .* does not end"):
        list(found.strings())


def test_modules_are_known_by_their_first_word() -> None:
    assert is_module(GOOD)
    assert is_module(module(order=">"))
    assert not is_module(b"kernel void k() {}")
    assert not is_module(b"")
