"""Read profiles back from a file: which files are read, and what each mistake is told as."""

from collections.abc import Callable
from pathlib import Path

import pytest
from embedding_examples import module, profile
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.characterization.embedding import reading, source, spirv
from crosscast.characterization.embedding.reading import has_embedded, read_embedded
from crosscast.errors import InputError

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
    with pytest.raises(InputError, match="expected a profile that crosscast embed wrote into it, found none"):
        read_embedded(path)


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
def test_a_file_that_has_changed_since_is_refused(
    write: Writer, name: str, content: bytes, what: str
) -> None:
    path = write(name, content)
    assert has_embedded(path)
    with pytest.raises(InputError, match=f"the {what} has changed since its profile was embedded") as caught:
        read_embedded(path)
    assert str(path) in str(caught.value)
    assert "run crosscast embed again" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("k.cl", SOURCE[:-10], "the embedded profile is damaged (its comment does not end)"),
        ("k.cl", SOURCE.replace(b"profile 1 ", b"profile 7 "), "a newer Crosscast wrote it"),
        ("k.spv", MODULE.replace(b"[256]", b"[255]"), "its checksum does not match"),
    ],
)
def test_a_damaged_profile_is_there_but_not_read(
    write: Writer, name: str, content: bytes, message: str
) -> None:
    path = write(name, content)
    assert has_embedded(path)
    with pytest.raises(InputError) as caught:
        read_embedded(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "content"), [("k.cl", SOURCE), ("k.spv", MODULE)])
def test_any_changed_byte_is_refused_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("changed") / name

    @settings(max_examples=300)
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
        with pytest.raises(InputError, match="expected a whole SPIR-V module"):
            read(write("k.spv", content))


@pytest.mark.parametrize("read", [has_embedded, read_embedded])
def test_files_that_cannot_be_read_are_a_sentence(
    tmp_path: Path, write: Writer, read: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="cannot read the file"):
        read(tmp_path / "none.cl")
    with pytest.raises(InputError, match="cannot read the file"):
        read(tmp_path)
    monkeypatch.setattr(reading, "_MOST_BYTES", 1 << 20)
    with pytest.raises(InputError, match="expected a file of at most 1 MiB, found a larger one"):
        read(Path("/dev/zero"))
    with pytest.raises(InputError, match="expected a file of at most 1 MiB, found a larger one"):
        read(write("large.cl", b" " * ((1 << 20) + 1)))
