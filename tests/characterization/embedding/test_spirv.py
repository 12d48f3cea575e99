"""What is read from a SPIR-V module, and what is refused as none."""

import random
import re
import shutil
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.embedding import embed_in_module as embed
from crosscast.characterization.embedding import take_out_of_module as take_out
from crosscast.characterization.spirv import compile_module, read_module
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.kernel import Program
from crosscast.profile import Profile
from support.embedding_examples import module, modules, op, profile, text_words
from support.refusals import refusal

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


def test_imports_are_found_but_for_the_variables_of_the_language() -> None:
    def linkage(name: str, kind: int) -> list[int]:
        return op(71, 2, 41, *text_words(name), kind)

    rest = [linkage("__spirv_BuiltInWorkDim", 1), linkage("out", 0), linkage("in", 1), op(71, 2, 44, 4)]
    assert read_module(module(rest=rest), "x").imports == ("in",)


@given(st.binary(max_size=80).map(lambda tail: GOOD[:20] + tail))
def test_noise_behind_a_header_is_read_or_refused(content: bytes) -> None:
    try:
        read_module(content, "x")
    except InputError as error:
        assert "\n" not in str(error)


WRONG = {
    b"": "it begins with nothing",
    b"\x7fELF": "it begins with 7f454c46",
    GOOD[:-1]: f"its length of {len(GOOD) - 1} bytes",
    GOOD[:16]: "its length of 16 bytes",
    with_word(1, 0x20000): "its version is the word 0x00020000",
    with_word(1, 0x10001): "its version is the word 0x00010001",
    with_word(1, 0x1010000): "its version is the word 0x01010000",
    with_word(3, 0): "its bound of ids is 0",
    with_word(4, 1): "its schema 1",
    with_word(5, 17): "the instruction at byte 20 has 0 words",
    with_word(5, 0xFFFF0011): "the instruction at byte 20 has 65535 words",
    GOOD[:20]: "it has 0 memory models",
    module(op(14, 2, 2)): "it has 2 memory models",
    GOOD[:-4]: "its last function does not end",
    GOOD[:-36]: "it does not define the function of an entry point",
    module(op(7, 9)): "has 2 words",
}


@pytest.mark.parametrize(("content", "message"), WRONG.items(), ids=WRONG.values())
def test_what_is_wrong_is_said(content: bytes, message: str) -> None:
    said = refusal(read_module, content, "k.spv")
    assert said.startswith("k.spv: expected a whole SPIR-V module")
    assert message in said


LARGE = [profile(invocation=n, note="x" * 5000) for n in range(60)]
"""So much that it takes several strings."""

SECTIONS = {17: 0, 11: 1, 14: 2, 15: 3, 16: 4, 7: 5, 3: 5, 5: 6, 71: 7, 19: 8, 33: 8, 54: 9}
"""Place in the logical layout of each opcode that the modules here have."""


def instructions(content: bytes) -> list[tuple[int, ...]]:
    """Words of each instruction, by a walk of its own."""
    order = "<" if content.startswith(b"\x03\x02\x23\x07") else ">"
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    found, at = [], 5
    while at < len(words):
        found.append(words[at : at + (words[at] >> 16)])
        at += words[at] >> 16
    return found


@given(modules, st.data())
def test_a_truncated_module_takes_no_profiles(content: bytes, data: st.DataObject) -> None:
    with pytest.raises(InputError, match=r"expected a whole SPIR-V module|found no kernel"):
        embed(content[: data.draw(st.integers(0, len(content) - 1))], [profile()], "x")


def taken_out(embedded: bytes) -> tuple[bytes, tuple[Profile, ...]]:
    bare, payload = take_out(embedded, "x")
    assert payload is not None
    return bare, payload.profiles


@pytest.mark.parametrize("order", "<>")
def test_many_profiles_take_several_strings_of_a_legal_length(order: str) -> None:
    embedded = embed(module(order=order), LARGE, "x")
    count = [words[0] & 0xFFFF for words in instructions(embedded)].count(7)
    assert count > 4
    assert struct.unpack_from(f"{order}I", embedded, 12) == (50 + count,)
    assert taken_out(embedded) == (module(order=order), tuple(LARGE))


def test_strings_stand_where_the_layout_wants_them() -> None:
    debug = [op(7, 9, *text_words("k.cl")), op(3, 3, 102000, 9), op(5, 2, *text_words("k")), op(71, 2, 44, 4)]
    found = [words[0] & 0xFFFF for words in instructions(embed(module(*debug), [profile()], "x"))]
    places = [SECTIONS[opcode] for opcode in found[: found.index(54)]]
    assert all(one <= next_one for one, next_one in pairwise(places))


def test_strings_that_another_tool_put_in_another_order_are_read() -> None:
    embedded = embed(module(), LARGE, "x")
    found = instructions(embedded)
    strings = [words for words in found if words[0] & 0xFFFF == 7]
    random.Random(1).shuffle(strings)
    others = [words for words in found if words not in strings]
    flat = [word for words in (*others[:5], *strings, *others[5:]) for word in words]
    shuffled = embedded[:20] + struct.pack(f"<{len(flat)}I", *flat)
    assert shuffled != embedded
    assert taken_out(shuffled) == (module(), tuple(LARGE))


def test_a_missing_and_an_endless_string_are_found() -> None:
    endless = read_module(module(op(7, 9, 0x41414141)), "x")
    assert re.search("the string at byte .* does not end", refusal(lambda: list(endless.strings())))
    embedded = embed(module(), LARGE, "x")
    first = embedded.index(b"crosscast-profile 1/") - 8
    length = 4 * (struct.unpack_from("<I", embedded, first)[0] >> 16)
    assert "expected its parts 1/" in refusal(take_out, embedded[:first] + embedded[first + length :], "x")


def test_the_bound_stays_where_other_ids_may_be_above() -> None:
    embedded = bytearray(embed(module(), [profile()], "x"))
    struct.pack_into("<I", embedded, 12, 90)
    bare, _ = take_out(bytes(embedded), "x")
    assert struct.unpack_from("<I", bare, 12) == (90,)


def test_a_module_of_another_kernel_is_refused() -> None:
    said = refusal(embed, module(kernels=("a", "a kernel with a longer name")), [profile()], "m")
    assert "m: expected a module with the kernel 'k', found a, a kernel with a longer name" in said
    assert "found no kernel" in refusal(embed, module(kernels=()), [profile()], "m")


def test_a_module_without_ids_left_is_refused() -> None:
    last = 0x3FFFFF
    assert take_out(embed(module(bound=last - 1), [profile()], "m"), "m")[1] is not None
    said = refusal(embed, module(bound=last), [profile()], "m")
    assert re.search(rf"a bound of ids of at most {last - 1}.*found {last}", said)


SOURCE = "kernel void k(global int *a, local float4 *b) { a[get_global_id(0)] += convert_int_sat(b[1].x); }"


def test_the_compiled_module_takes_profiles() -> None:
    compiled = compile_module(Program(SOURCE.encode()))
    assert compiled == compile_module(Program(SOURCE.encode()))
    assert take_out(embed(compiled, [profile()], "x"), "x")[0] == compiled


def test_a_builtin_without_spirv_is_named_and_what_does_not_compile_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"the kernel compiler has no SPIR-V for .*mem_fence"):
        compile_module(Program(b"kernel void k(global int *a) { mem_fence(CLK_GLOBAL_MEM_FENCE); *a = 1; }"))
    with pytest.raises(CompileError):
        compile_module(Program(b"kernel void k( { }"))


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="needs spirv-val, of SPIRV-Tools")
def test_the_validator_of_others_accepts_it(tmp_path: Path) -> None:
    path = tmp_path / "k.spv"
    path.write_bytes(embed(compile_module(Program(SOURCE.encode())), LARGE, "x"))
    subprocess.run(["spirv-val", "--target-env", "opencl2.2", str(path)], check=True)
