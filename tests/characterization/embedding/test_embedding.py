"""Files with profiles take the place of nothing that anyone could miss."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crosscast.characterization.embedding import files as reading
from crosscast.characterization.embedding import source, spirv
from crosscast.characterization.embedding.files import EmbeddingTarget, has_embedded, read_embedded
from crosscast.characterization.embedding.payload import Payload, decode, digest, encode
from crosscast.characterization.embedding.source import embed, holds, take_out
from crosscast.errors import InputError
from crosscast.profile import Profile
from support.embedding_examples import NASTY, module, profile, profiles, sources
from support.examples import examples
from support.launching import ints, zeros
from support.launching import launch as characterize
from support.refusals import refusal

OURS = embed(b"int a;\n", [profile()], "x")


def test_a_file_as_it_was_written_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "k.cl"
    path.write_bytes(OURS)
    path.chmod(0o640)
    EmbeddingTarget.new(path).write(OURS + b"\n")
    assert path.read_bytes() == OURS + b"\n"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("content", [b"", b"int a;\n", OURS + b"int b;\n", OURS[:-5]])
def test_any_other_file_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k.cl"
    path.write_bytes(content)
    assert "expected no file, or one as crosscast embed wrote it" in refusal(EmbeddingTarget.new, path)
    assert path.read_bytes() == content


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        EmbeddingTarget.new(tmp_path / "none" / "k.cl")
    assert "expected no file" in refusal(EmbeddingTarget.new, tmp_path)


def test_the_original_is_not_a_file_beside_itself(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_bytes(OURS)
    (tmp_path / "link.cl").symlink_to("k.cl")
    with pytest.raises(InputError, match="expected another file than the original"):
        EmbeddingTarget.of(tmp_path / "k.cl", OURS, tmp_path / "link.cl", in_place=False)


def test_in_place_follows_a_link_and_keeps_permissions(tmp_path: Path) -> None:
    file, link = tmp_path / "k.cl", tmp_path / "link.cl"
    file.write_bytes(b"int a;\n")
    file.chmod(0o600)
    link.symlink_to("k.cl")
    EmbeddingTarget.of(link, b"int a;\n", tmp_path / "unused.cl", in_place=True).write(OURS)
    assert link.is_symlink()
    assert file.read_bytes() == OURS
    assert file.stat().st_mode & 0o777 == 0o600


def test_in_place_refuses_a_file_that_has_changed_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "k.cl"
    path.write_bytes(b"int a;\n")
    target = EmbeddingTarget.of(path, b"int a;\n", tmp_path / "unused.cl", in_place=True)
    path.write_bytes(b"int edited;\n")
    assert "expected the file as it was read, found a change: run again" in refusal(target.write, OURS)
    assert path.read_bytes() == b"int edited;\n"


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    target = EmbeddingTarget.new(tmp_path / "k.cl")
    (tmp_path / "k.cl").mkdir()
    assert "cannot write the file" in refusal(target.write, OURS)
    assert [path.name for path in tmp_path.iterdir()] == ["k.cl"]


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


def test_package_compiler_and_hash_are_named() -> None:
    value = json.loads(encode(Payload((profile(),), "cd" * 32)).split("\n")[1])
    assert value["made_by"].startswith("crosscast ")
    assert value["compiler"] == "clang 22"
    assert value["sha256"] == "cd" * 32


def test_times_printed_text_and_folders_stay_out() -> None:
    made = profile(note=NASTY)
    made = replace(
        made, timing_s={"run": 1.0}, printed="x", program={**made.program, "path": "/home/someone/k.cl"}
    )
    (back,) = decode(encode(Payload((made,), "")), "x").profiles
    assert (back.timing_s, back.printed, back.program["path"]) == ({}, "", "k.cl")
    assert back.launch == made.launch


def test_a_number_that_is_not_finite_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(Payload((profile(share=float("nan")),), ""))


def test_any_changed_character_is_found() -> None:
    text = encode(Payload((profile(),), "ab"))
    for place in range(text.index("\n") + 1, len(text), 97):
        changed = text[:place] + ("1" if text[place] != "1" else "2") + text[place + 1 :]
        assert "checksum does not match" in refusal(decode, changed, "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("crosscast-profile 2 abc\n{}", "version 1 or older, found version 2: a newer Crosscast wrote it"),
        ("crosscast-profile 999999999 abc\n{}", "a newer Crosscast wrote it"),
        (f"crosscast-profile {'9' * 5000} abc\n{{}}", "is damaged"),
        ("crosscast-profile one abc\n{}", "it begins with 'crosscast-profile one abc'"),
        ("crosscast-profile 1\n{}", "is damaged"),
        ("", "is damaged"),
        ("crosscast-profile 1 abc\n{}", "checksum"),
    ],
)
def test_another_header_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=r"^k\.cl: ") as caught:
        decode(text, "k.cl")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(sha256=3), "sha256: expected a text, found 3"),
        (lambda v: v.update(profiles=[]), "profiles: expected a list of length >= 1, found []"),
        (lambda v: v["profiles"].append(3), "profiles[1]: expected an object"),
        (lambda v: v["profiles"][0].pop("kernel"), "profiles[0].kernel: expected a value, found none"),
        (lambda v: v["profiles"][0].update(invocation=-1), "invocation: expected a whole number"),
        (lambda v: v["profiles"][0]["metrics"].pop("opcode"), "metrics.opcode: expected a value, found none"),
        (
            lambda v: v["profiles"][0]["metrics"].update(speed=1),
            "metrics.speed: expected no such field, found 1",
        ),
        (lambda v: v["profiles"][0]["metrics"].update(opcode=1.5), "opcode: expected a whole number"),
        (
            lambda v: v["profiles"][0]["metrics"].update(granularity=-0.5),
            "granularity: expected a number >= 0.0, found -0.5",
        ),
        (lambda v: v["profiles"][0]["launch"].update(share=float("inf")), "JSON"),
    ],
)
def test_other_fields_than_ours_are_refused(change: Callable[[dict[str, Any]], object], message: str) -> None:
    with pytest.raises(InputError, match="the embedded profile is damaged") as caught:
        decode(rewritten(change), "k.cl")
    assert message in str(caught.value)


@pytest.mark.parametrize("body", ["[1]", "3", "{", "[" * 100_000, '{"sha256": 1e999}', "9" * 5000])
def test_json_of_other_shapes_is_refused(body: str) -> None:
    with pytest.raises(InputError, match="the embedded profile is damaged"):
        decode(f"crosscast-profile 1 {digest(body.encode())}\n{body}", "k.cl")


def test_fields_of_later_writers_are_passed_over() -> None:
    assert decode(rewritten(lambda value: value.update(note="new")), "x").profiles == (profile(),)


Writer = Callable[[str, bytes], Path]

SOURCE = source.embed(b"kernel void k() {}\n", [profile(), profile(invocation=1)], "x")
MODULE = spirv.embed(module(), [profile(), profile(invocation=1)], "x")


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Writes a file of the given name."""

    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize(
    ("name", "content"), [("k.cl", SOURCE), ("k.spv", MODULE), ("source", SOURCE), ("module.bin", MODULE)]
)
def test_all_profiles_are_read_in_order_from_either_form(write: Writer, name: str, content: bytes) -> None:
    path = write(name, content)
    assert has_embedded(path)
    assert read_embedded(path) == (profile(), profile(invocation=1))
    assert read_embedded(str(path)) == read_embedded(path)


@pytest.mark.parametrize(("name", "content"), [("k.cl", b"kernel void k() {}"), ("k.spv", module())])
def test_a_file_without_profiles_says_so(write: Writer, name: str, content: bytes) -> None:
    path = write(name, content)
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
def test_a_file_that_changed_since_is_refused(write: Writer, name: str, content: bytes, what: str) -> None:
    path = write(name, content)
    assert has_embedded(path)
    with pytest.raises(InputError, match=f"the {what} has changed since its profile was embedded") as caught:
        read_embedded(path)
    assert str(path) in str(caught.value)
    assert "run crosscast embed again" in str(caught.value)


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
def test_what_is_no_module_is_refused(write: Writer, read: Callable[[Path], object]) -> None:
    for content in (b"", b"kernel void k() {}", MODULE[:100], MODULE[:-4]):
        assert "expected a whole SPIR-V module" in refusal(read, write("k.spv", content))


@pytest.mark.parametrize("read", [has_embedded, read_embedded])
def test_files_that_cannot_be_read_are_a_sentence(
    tmp_path: Path, write: Writer, read: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cannot read the file" in refusal(read, tmp_path / "none.cl")
    assert "cannot read the file" in refusal(read, tmp_path)
    monkeypatch.setattr(reading, "_MOST_BYTES", 1 << 20)
    assert "expected a file of at most 1 MiB, found a larger one" in refusal(read, Path("/dev/zero"))
    with pytest.raises(InputError, match="expected a file of at most 1 MiB, found a larger one"):
        read(write("large.cl", b" " * ((1 << 20) + 1)))


KERNEL = """
#define TWICE(x) (2 * (x))
kernel void k(global const int *in, global int *out)
{
    if (in[get_global_id(0)] % 3 == 0)
        out[get_global_id(0)] = TWICE(in[get_global_id(0)]) + __LINE__;
}
"""


@given(sources, profiles, profiles)
def test_what_is_embedded_is_taken_out_or_replaced_and_the_source_stays(
    source: bytes, first: list[Profile], second: list[Profile]
) -> None:
    assume(not holds(source))
    embedded = embed(source, first, "x")
    assert embedded.startswith(source)
    assert holds(embedded)
    bare, payload = take_out(embedded, "x")
    assert bare == source
    assert payload is not None
    assert payload.profiles == tuple(first)
    assert embed(embedded, second, "x") == embed(source, second, "x")


def test_a_source_without_profiles_stays_as_it_is() -> None:
    source = b'char *s = "/* crosscast-profile 1 */";'
    assert take_out(source, "x") == (source, None)
    assert not holds(source)


def test_what_is_written_behind_the_comment_stays() -> None:
    embedded = embed(b"/* a */ int a;\n", [profile()], "x") + b"int b;\n"
    assert take_out(embedded, "x")[0] == b"/* a */ int a;\nint b;\n"


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
def test_an_embedded_source_compiles_and_gives_its_profile(ending: str, options: tuple[str, ...]) -> None:
    out, out_embedded = zeros(64), zeros(64)
    source = KERNEL + ending
    embedded = embed(source.encode(), [profile(note=NASTY)], "x").decode()
    before = characterize(source, 64, 8, ints(64), out, options=options)
    after = characterize(embedded, 64, 8, ints(64), out_embedded, options=options)
    assert after.metrics == before.metrics
    # The kernel stores its line number.
    assert out_embedded.tolist() == out.tolist() != [0] * 64
    assert after.program["sha256"] != before.program["sha256"]
