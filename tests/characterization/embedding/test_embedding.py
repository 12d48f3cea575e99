"""Files with profiles take the place of nothing that anyone could miss."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crosscast.characterization import embedding
from crosscast.characterization.embedding import (
    EmbeddingTarget,
    Payload,
    decode,
    digest,
    embed,
    embed_in_module,
    encode,
    has_embedded,
    read_embedded,
    take_out,
    take_out_of_module,
)
from crosscast.errors import InputError
from crosscast.profile import Profile
from support.embedding_examples import NASTY, module, modules, profile, profiles, sources
from support.examples import examples
from support.launching import ints, zeros
from support.launching import launch as characterize
from support.refusals import refusal, refusals

OURS = embed(b"int a;\n", [profile()], "x")


@pytest.fixture
def k(tmp_path: Path) -> Path:
    return tmp_path / "k.cl"


def test_a_file_as_it_was_written_is_replaced(k: Path) -> None:
    k.write_bytes(OURS)
    k.chmod(0o640)
    EmbeddingTarget.new(k).write(OURS + b"\n")
    assert k.read_bytes() == OURS + b"\n"
    assert k.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("content", [b"", b"int a;\n", OURS + b"int b;\n", OURS[:-5]])
def test_any_other_file_is_not_replaced(k: Path, content: bytes) -> None:
    k.write_bytes(content)
    assert "expected no file, or one as crosscast embed wrote it" in refusal(EmbeddingTarget.new, k)
    assert k.read_bytes() == content


def test_a_folder_must_be_there_and_another_file_than_the_original(k: Path, tmp_path: Path) -> None:
    assert re.search("the folder .* does not exist", refusal(EmbeddingTarget.new, tmp_path / "none" / "k.cl"))
    assert "expected no file" in refusal(EmbeddingTarget.new, tmp_path)
    k.write_bytes(OURS)
    (tmp_path / "link.cl").symlink_to("k.cl")
    said = refusal(EmbeddingTarget.of, k, OURS, tmp_path / "link.cl", in_place=False)
    assert "expected another file than the original" in said


def test_in_place_follows_a_link_and_keeps_permissions(k: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.cl"
    k.write_bytes(b"int a;\n")
    k.chmod(0o600)
    link.symlink_to("k.cl")
    EmbeddingTarget.of(link, b"int a;\n", tmp_path / "unused.cl", in_place=True).write(OURS)
    assert link.is_symlink()
    assert k.read_bytes() == OURS
    assert k.stat().st_mode & 0o777 == 0o600


def test_what_has_changed_meanwhile_or_cannot_be_written_stays(k: Path, tmp_path: Path) -> None:
    k.write_bytes(b"int a;\n")
    target = EmbeddingTarget.of(k, b"int a;\n", tmp_path / "unused.cl", in_place=True)
    k.write_bytes(b"int edited;\n")
    assert "expected the file as it was read, found a change: run again" in refusal(target.write, OURS)
    assert k.read_bytes() == b"int edited;\n"
    target = EmbeddingTarget.new(tmp_path / "l.cl")
    (tmp_path / "l.cl").mkdir()
    assert "cannot write the file" in refusal(target.write, OURS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.cl", "l.cl"]


def rewritten(change: Callable[[dict[str, Any]], object]) -> str:
    """The text of a profile after a change to its JSON, with a right checksum."""
    header, body = encode(Payload((profile(),), "ab")).split("\n")
    value = json.loads(body)
    change(value)
    body = json.dumps(value)
    return f"{' '.join(header.split()[:2])} {digest(body.encode())}\n{body}"


@given(profiles)
def test_profiles_come_back_from_two_lines_of_printable_ascii_and_no_asterisk(found: list[Profile]) -> None:
    payload = Payload(tuple(found), "cd", 2)
    text = encode(payload)
    assert decode(text, "x") == payload
    lines = text.split("\n")
    assert len(lines) == 2
    assert all(" " <= character <= "~" and character != "*" for line in lines for character in line)


def test_times_printed_text_and_folders_stay_out_but_what_made_it_is_named() -> None:
    made = profile(note=NASTY)
    program = {**made.program, "path": "/home/someone/k.cl"}
    text = encode(Payload((replace(made, timing_s={"run": 1.0}, printed="x", program=program),), "cd" * 32))
    (back,) = decode(text, "x").profiles
    assert (back.timing_s, back.printed, back.program["path"]) == ({}, "", "k.cl")
    assert back.launch == made.launch
    value = json.loads(text.split("\n")[1])
    assert value["made_by"].startswith("crosscast ")
    assert (value["compiler"], value["sha256"]) == ("clang 22", "cd" * 32)


def test_a_number_that_is_not_finite_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(Payload((profile(share=float("nan")),), ""))


@refusals("text message")
def test_another_header_is_refused(text: str, message: str) -> None:
    said = refusal(decode, text, "k.cl")
    assert said.startswith("k.cl: ")
    assert message in said
    assert len(said) < 300


@refusals("place value message")
def test_other_fields_than_ours_are_refused(place: list[Any], value: Any, message: str) -> None:
    def change(content: Any) -> None:
        *way, last = place
        for step in way:
            content = content[step]
        if value == "none":
            del content[last]
        else:
            content[last] = value

    said = refusal(decode, rewritten(change), "k.cl")
    assert "the embedded profile is damaged" in said
    assert message in said


@pytest.mark.parametrize("body", ["[1]", "3", "{", "[" * 100_000, '{"sha256": 1e999}', "9" * 5000])
def test_json_of_other_shapes_is_refused(body: str) -> None:
    text = f"crosscast-profile 1 {digest(body.encode())}\n{body}"
    assert "the embedded profile is damaged" in refusal(decode, text, "k.cl")


def test_fields_of_later_writers_are_passed_over() -> None:
    assert decode(rewritten(lambda value: value.update(note="new")), "x").profiles == (profile(),)


SOURCE = embed(b"kernel void k() {}\n", [profile(), profile(invocation=1)], "x")
MODULE = embed_in_module(module(), [profile(), profile(invocation=1)], "x")


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content"), [("k.cl", SOURCE), ("k.spv", MODULE), ("source", SOURCE), ("module.bin", MODULE)]
)
def test_all_profiles_are_read_in_order_from_either_form(tmp_path: Path, name: str, content: bytes) -> None:
    path = written(tmp_path, name, content)
    assert has_embedded(path)
    assert read_embedded(str(path)) == (profile(), profile(invocation=1))


@pytest.mark.parametrize(("name", "content"), [("k.cl", b"kernel void k() {}"), ("k.spv", module())])
def test_a_file_without_profiles_says_so(tmp_path: Path, name: str, content: bytes) -> None:
    path = written(tmp_path, name, content)
    assert not has_embedded(path)
    assert "expected a profile that crosscast embed wrote into it, found none" in refusal(read_embedded, path)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("k.cl", SOURCE.replace(b"void k()", b"void k( )"), "source"),
        ("k.cl", SOURCE + b"\n", "source"),
        ("k.cl", b"\n" + SOURCE, "source"),
        ("k.cl", SOURCE.replace(b"\n", b"\r\n"), "source"),
        ("k.spv", MODULE[:-16] + b"\x00\x00\x01\x00" + MODULE[-16:], "module"),
    ],
)
def test_a_file_that_changed_since_is_refused(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    path = written(tmp_path, name, content)
    assert has_embedded(path)
    said = refusal(read_embedded, path)
    assert f"{path}: the {what} has changed since its profile was embedded" in said
    assert "run crosscast embed again" in said


@pytest.mark.parametrize(("name", "content"), [("k.cl", SOURCE), ("k.spv", MODULE)])
def test_any_changed_byte_is_refused_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("changed") / name

    @examples(300)
    @given(st.integers(0, len(content) - 1), st.integers(1, 255))
    def check(place: int, change: int) -> None:
        path.write_bytes(content[:place] + bytes([content[place] ^ change]) + content[place + 1 :])
        try:
            found = read_embedded(path)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert found == (profile(), profile(invocation=1))

    check()


@pytest.mark.parametrize("read", [has_embedded, read_embedded])
def test_files_that_cannot_be_read_and_what_is_no_module_are_refused(
    tmp_path: Path, read: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (b"", b"kernel void k() {}", MODULE[:100], MODULE[:-4]):
        assert "expected a whole SPIR-V module" in refusal(read, written(tmp_path, "k.spv", content))
    assert "cannot read the file" in refusal(read, tmp_path / "none.cl")
    assert "cannot read the file" in refusal(read, tmp_path)
    monkeypatch.setattr(embedding, "_MOST_BYTES", 1 << 20)
    for path in (Path("/dev/zero"), written(tmp_path, "large.cl", b" " * ((1 << 20) + 1))):
        assert "expected a file of at most 1 MiB, found a larger one" in refusal(read, path)


KERNEL = """
#define TWICE(x) (2 * (x))
kernel void k(global const int *in, global int *out)
{
    if (in[get_global_id(0)] % 3 == 0)
        out[get_global_id(0)] = TWICE(in[get_global_id(0)]) + __LINE__;
}
"""


@pytest.mark.parametrize(
    ("contents", "put_in", "take"),
    [(sources, embed, take_out), (modules, embed_in_module, take_out_of_module)],
    ids=["source", "module"],
)
@given(data=st.data(), first=profiles, second=profiles)
def test_what_is_embedded_is_taken_out_or_replaced(
    contents: st.SearchStrategy[bytes],
    put_in: Callable[[bytes, list[Profile], str], bytes],
    take: Callable[[bytes, str], tuple[bytes, Payload | None]],
    data: st.DataObject,
    first: list[Profile],
    second: list[Profile],
) -> None:
    content = data.draw(contents)
    assume(take(content, "x")[1] is None)
    embedded = put_in(content, first, "x")
    assert put_in is embed_in_module or embedded.startswith(content)
    bare, payload = take(embedded, "x")
    assert payload is not None
    assert (bare, payload.profiles) == (content, tuple(first))
    assert put_in(embedded, second, "x") == put_in(content, second, "x")


def test_what_is_no_comment_of_ours_stays_and_what_is_behind_it() -> None:
    source = b'char *s = "/* crosscast-profile 1 */";'
    assert take_out(source, "x") == (source, None)
    embedded = embed(b"/* a */ int a;\n", [profile()], "x") + b"int b;\n"
    assert take_out(embedded, "x")[0] == b"/* a */ int a;\nint b;\n"


def test_people_can_read_the_comment() -> None:
    lines = embed(KERNEL.encode(), [profile()], "x").decode().splitlines()
    assert lines[lines.index("}") + 1] == ""
    assert any(line.startswith('"total_instruction_count":7,') or ',"opcode":7,' in line for line in lines)
    assert max(map(len, lines)) <= 110


@refusals("old new message")
def test_a_damaged_comment_is_neither_read_nor_replaced(old: str, new: str, message: str) -> None:
    embedded = embed(b"int a;\n", [profile()], "x")
    changed = embedded.replace(old.encode(), new.encode())
    assert changed != embedded
    assert message in refusal(take_out, changed, "x")
    assert message in refusal(embed, changed, [profile()], "x")


def test_two_comments_are_refused() -> None:
    twice = embed(b"int a;\n", [profile()], "x") * 2
    assert "expected one comment with embedded profiles, found 2" in refusal(take_out, twice, "x")


@pytest.mark.parametrize(
    "ending", ["", "// last", "// last \\", "// last \\\n", "#define LAST \\", "#define LAST \\\n", "//??/"]
)
def test_an_embedded_source_compiles_and_gives_its_profile(ending: str) -> None:
    options = () if ending.endswith(("\\", "\n", "/")) else ("-Wall", "-Werror")
    out, out_embedded = zeros(64), zeros(64)
    source = KERNEL + ending
    embedded = embed(source.encode(), [profile(note=NASTY)], "x").decode()
    before = characterize(source, 64, 8, ints(64), out, options=options)
    after = characterize(embedded, 64, 8, ints(64), out_embedded, options=options)
    assert after.metrics == before.metrics
    # The kernel stores its line number.
    assert out_embedded.tolist() == out.tolist() != [0] * 64
    assert after.program["sha256"] != before.program["sha256"]
