"""Profiles in SPIR-V modules: they can be taken out again, and stand where strings may stand."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from embedding_examples import module, modules, op, profile, profiles, text_words
from hypothesis import given
from hypothesis import strategies as st

from crosscast.characterization.embedding.compiled import compile_module
from crosscast.characterization.embedding.spirv import embed, holds, take_out
from crosscast.errors import CompileError, InputError, UnsupportedError
from crosscast.kernel import Program
from crosscast.profile import Profile

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


def opcodes(content: bytes) -> list[int]:
    """Opcode of each instruction."""
    return [words[0] & 0xFFFF for words in instructions(content)]


@given(modules, profiles)
def test_taking_out_gives_the_original_bytes(content: bytes, found: list[Profile]) -> None:
    embedded = embed(content, found, "x")
    assert not holds(content, "x")
    assert holds(embedded, "x")
    bare, payload = take_out(embedded, "x")
    assert bare == content
    assert payload is not None
    assert payload.profiles == tuple(found)


@given(modules, profiles, profiles)
def test_embedding_again_replaces(content: bytes, first: list[Profile], second: list[Profile]) -> None:
    assert embed(embed(content, first, "x"), second, "x") == embed(content, second, "x")


@given(modules, st.data())
def test_a_truncated_module_takes_no_profiles(content: bytes, data: st.DataObject) -> None:
    with pytest.raises(InputError, match=r"expected a whole SPIR-V module|found no kernel"):
        embed(content[: data.draw(st.integers(0, len(content) - 1))], [profile()], "x")


def test_a_module_without_profiles_stays_as_it_is() -> None:
    assert take_out(module(), "x") == (module(), None)


@pytest.mark.parametrize("order", "<>")
def test_many_profiles_take_several_strings_of_a_legal_length(order: str) -> None:
    embedded = embed(module(order=order), LARGE, "x")
    count = opcodes(embedded).count(7)
    assert count > 4
    assert struct.unpack_from(f"{order}I", embedded, 12) == (50 + count,)
    bare, payload = take_out(embedded, "x")
    assert bare == module(order=order)
    assert payload is not None
    assert payload.profiles == tuple(LARGE)


def test_strings_stand_where_the_layout_wants_them() -> None:
    debug = [op(7, 9, *text_words("k.cl")), op(3, 3, 102000, 9), op(5, 2, *text_words("k")), op(71, 2, 44, 4)]
    found = opcodes(embed(module(*debug), [profile()], "x"))
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
    bare, payload = take_out(shuffled, "x")
    assert bare == module()
    assert payload is not None
    assert payload.profiles == tuple(LARGE)


def test_a_missing_string_is_found() -> None:
    embedded = embed(module(), LARGE, "x")
    first = embedded.index(b"crosscast-profile 1/") - 8
    length = 4 * (struct.unpack_from("<I", embedded, first)[0] >> 16)
    with pytest.raises(InputError, match="expected its parts 1/"):
        take_out(embedded[:first] + embedded[first + length :], "x")


def test_a_changed_string_is_found() -> None:
    embedded = embed(module(), [profile()], "x").replace(b'"opcode":7', b'"opcode":8')
    with pytest.raises(InputError, match="checksum does not match"):
        take_out(embedded, "x")


def test_the_bound_stays_where_other_ids_may_be_above() -> None:
    embedded = bytearray(embed(module(), [profile()], "x"))
    struct.pack_into("<I", embedded, 12, 90)
    bare, _ = take_out(bytes(embedded), "x")
    assert struct.unpack_from("<I", bare, 12) == (90,)


def test_a_module_of_another_kernel_is_refused() -> None:
    with pytest.raises(InputError, match="m: expected a module with the kernel 'k', found a, b"):
        embed(module(kernels=("a", "b")), [profile()], "m")
    with pytest.raises(InputError, match="found no kernel"):
        embed(module(kernels=()), [profile()], "m")


def test_a_module_without_ids_left_is_refused() -> None:
    last = 0x3FFFFF
    assert holds(embed(module(bound=last - 1), [profile()], "m"), "m")
    with pytest.raises(InputError, match=rf"a bound of ids of at most {last - 1}.*found {last}"):
        embed(module(bound=last), [profile()], "m")


SOURCE = "kernel void k(global int *a, local float4 *b) { a[get_global_id(0)] += convert_int_sat(b[1].x); }"


def test_the_compiled_module_takes_profiles() -> None:
    compiled = compile_module(Program(SOURCE.encode()))
    assert compiled == compile_module(Program(SOURCE.encode()))
    assert take_out(embed(compiled, [profile()], "x"), "x")[0] == compiled


def test_a_builtin_without_spirv_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"the kernel compiler has no SPIR-V for .*mem_fence"):
        compile_module(Program(b"kernel void k(global int *a) { mem_fence(CLK_GLOBAL_MEM_FENCE); *a = 1; }"))


def test_a_source_that_does_not_compile_is_refused() -> None:
    with pytest.raises(CompileError):
        compile_module(Program(b"kernel void k( { }"))


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="needs spirv-val, of SPIRV-Tools")
def test_the_validator_of_others_accepts_it(tmp_path: Path) -> None:
    path = tmp_path / "k.spv"
    path.write_bytes(embed(compile_module(Program(SOURCE.encode())), LARGE, "x"))
    subprocess.run(["spirv-val", "--target-env", "opencl2.2", str(path)], check=True)
