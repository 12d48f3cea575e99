"""Folders for results: what cannot be made is said before the work."""

from pathlib import Path

import pytest

from crosscast.cli.places import cache_folder, check_place
from crosscast.errors import InputError


def test_a_folder_below_a_folder_that_is_there_can_be_made(tmp_path: Path) -> None:
    check_place("--out", tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


def test_a_folder_below_a_file_cannot(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"--out: cannot write into the folder .* \(.*file is no folder\)"):
        check_place("--out", tmp_path / "file" / "a")


def test_a_protected_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is protected from root, who may run this.
    monkeypatch.setattr("os.access", lambda path, mode: not mode)
    with pytest.raises(InputError, match=r"--out: cannot write into the folder .* is not to be written"):
        check_place("--out", tmp_path)


def test_the_named_cache_goes_before_the_users_and_none_before_both(tmp_path: Path) -> None:
    assert cache_folder(tmp_path, none=False) == tmp_path
    assert cache_folder(tmp_path, none=True) is None


def test_a_cache_of_the_users_that_cannot_be_names_the_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"^cannot keep forecasts in .*XDG_CACHE_HOME.*--no-cache$"):
        cache_folder(None, none=False)


def test_a_user_without_a_home_folder_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    with pytest.raises(InputError, match="no home folder to keep forecasts in"):
        cache_folder(None, none=False)
