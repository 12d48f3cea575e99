"""Files with profiles take the place of nothing that anyone could miss."""

from pathlib import Path

import pytest
from embedding_examples import profile

from crosscast.characterization.embedding.source import embed
from crosscast.characterization.embedding.writing import Target
from crosscast.errors import InputError

OURS = embed(b"int a;\n", [profile()], "x")


def test_a_new_file_is_written_whole_and_alone(tmp_path: Path) -> None:
    Target.new(tmp_path / "k.profiled.cl").write(OURS)
    assert [path.name for path in tmp_path.iterdir()] == ["k.profiled.cl"]
    assert (tmp_path / "k.profiled.cl").read_bytes() == OURS


def test_a_file_as_it_was_written_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "k.cl"
    path.write_bytes(OURS)
    path.chmod(0o640)
    Target.new(path).write(OURS + b"\n")
    assert path.read_bytes() == OURS + b"\n"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("content", [b"", b"int a;\n", OURS + b"int b;\n", OURS[:-5]])
def test_any_other_file_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k.cl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected no file, or one as crosscast embed wrote it"):
        Target.new(path)
    assert path.read_bytes() == content


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder .* does not exist"):
        Target.new(tmp_path / "none" / "k.cl")
    with pytest.raises(InputError, match="expected no file"):
        Target.new(tmp_path)


def test_the_original_is_not_a_file_beside_itself(tmp_path: Path) -> None:
    (tmp_path / "k.cl").write_bytes(OURS)
    (tmp_path / "link.cl").symlink_to("k.cl")
    with pytest.raises(InputError, match="expected another file than the original"):
        Target.of(tmp_path / "k.cl", OURS, tmp_path / "link.cl", in_place=False)


def test_in_place_follows_a_link_and_keeps_permissions(tmp_path: Path) -> None:
    file, link = tmp_path / "k.cl", tmp_path / "link.cl"
    file.write_bytes(b"int a;\n")
    file.chmod(0o600)
    link.symlink_to("k.cl")
    Target.of(link, b"int a;\n", tmp_path / "unused.cl", in_place=True).write(OURS)
    assert link.is_symlink()
    assert file.read_bytes() == OURS
    assert file.stat().st_mode & 0o777 == 0o600


def test_in_place_refuses_a_file_that_has_changed_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "k.cl"
    path.write_bytes(b"int a;\n")
    target = Target.of(path, b"int a;\n", tmp_path / "unused.cl", in_place=True)
    path.write_bytes(b"int edited;\n")
    with pytest.raises(InputError, match="expected the file as it was read, found a change: run again"):
        target.write(OURS)
    assert path.read_bytes() == b"int edited;\n"


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    target = Target.new(tmp_path / "k.cl")
    (tmp_path / "k.cl").mkdir()
    with pytest.raises(InputError, match="cannot write the file"):
        target.write(OURS)
    assert [path.name for path in tmp_path.iterdir()] == ["k.cl"]
