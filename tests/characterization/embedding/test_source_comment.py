"""The comment in a source: it can be taken out again, and the source means what it meant."""

from __future__ import annotations

import pytest
from embedding_examples import NASTY, profile, profiles, sources
from hypothesis import assume, given
from launching import ints, zeros
from launching import launch as characterize

from crosscast.characterization.embedding.source import embed, holds, take_out
from crosscast.errors import InputError
from crosscast.profile import Profile

KERNEL = """
#define TWICE(x) (2 * (x))
kernel void k(global const int *in, global int *out)
{
    if (in[get_global_id(0)] % 3 == 0)
        out[get_global_id(0)] = TWICE(in[get_global_id(0)]) + __LINE__;
}
"""


@given(sources, profiles)
def test_taking_out_gives_the_original_bytes(source: bytes, found: list[Profile]) -> None:
    assume(not holds(source))
    embedded = embed(source, found, "x")
    assert holds(embedded)
    bare, payload = take_out(embedded, "x")
    assert bare == source
    assert payload is not None
    assert payload.profiles == tuple(found)


@given(sources, profiles, profiles)
def test_embedding_again_replaces(source: bytes, first: list[Profile], second: list[Profile]) -> None:
    assume(not holds(source))
    assert embed(embed(source, first, "x"), second, "x") == embed(source, second, "x")


@given(sources, profiles)
def test_all_that_was_there_stays_in_front(source: bytes, found: list[Profile]) -> None:
    assume(not holds(source))
    assert embed(source, found, "x").startswith(source)


def test_a_source_without_profiles_stays_as_it_is() -> None:
    source = b'char *s = "/* crosscast-profile 1 */";'
    assert take_out(source, "x") == (source, None)
    assert not holds(source)


def test_what_is_written_behind_the_comment_stays() -> None:
    embedded = embed(b"int a;\n", [profile()], "x") + b"int b;\n"
    assert take_out(embedded, "x")[0] == b"int a;\nint b;\n"


def test_people_can_read_the_comment() -> None:
    lines = embed(KERNEL.encode(), [profile()], "x").decode().splitlines()
    assert lines[lines.index("}") + 1] == ""
    assert any(line.startswith('"total_instruction_count":7,') or ',"opcode":7,' in line for line in lines)
    assert max(map(len, lines)) <= 110


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"*/\n", b"", "its comment does not end"),
        (b'"opcode":7', b'"opcode":8', "its checksum does not match"),
        (b'"opcode":7', b'"opcode":*/', "its checksum does not match"),
        (b'"opcode":7', b'"opcode":\xc3\xa9', "is not ASCII"),
        (b"crosscast-profile 1 ", b"crosscast-profile 2 ", "a newer Crosscast wrote it"),
        (b"crosscast-profile 1 ", b"crosscast-profile ", "it begins with"),
    ],
)
def test_a_damaged_comment_is_neither_read_nor_replaced(old: bytes, new: bytes, message: str) -> None:
    embedded = embed(b"int a;\n", [profile()], "x")
    changed = embedded.replace(old, new)
    assert changed != embedded
    assert holds(changed)
    with pytest.raises(InputError, match=message):
        take_out(changed, "x")
    with pytest.raises(InputError, match=message):
        embed(changed, [profile()], "x")


def test_two_comments_are_refused() -> None:
    embedded = embed(b"int a;\n", [profile()], "x")
    with pytest.raises(InputError, match="expected one comment with embedded profiles, found 2"):
        take_out(embedded + embedded, "x")


@pytest.mark.parametrize(
    ("ending", "options"),
    [
        ("", ("-Wall", "-Werror")),
        ("// last", ("-Wall", "-Werror")),
        ("// last \\", ()),
        ("// last \\\n", ()),
        ("#define LAST \\", ()),
        ("#define LAST \\\n", ()),
        ("//??/", ()),
    ],
)
def test_the_embedded_source_compiles_and_gives_the_same_profile(
    ending: str, options: tuple[str, ...]
) -> None:
    out, out_embedded = zeros(64), zeros(64)
    source = KERNEL + ending
    embedded = embed(source.encode(), [profile(note=NASTY)], "x").decode()
    before = characterize(source, 64, 8, ints(64), out, options=options)
    after = characterize(embedded, 64, 8, ints(64), out_embedded, options=options)
    assert after.metrics == before.metrics
    # The kernel stores its line number.
    assert out_embedded.tolist() == out.tolist() != [0] * 64
    assert after.program["sha256"] != before.program["sha256"]
