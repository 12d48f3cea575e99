from __future__ import annotations

from pathlib import Path

import pytest

from crosscast.cache_home import cache_home


def test_it_is_where_the_standard_says_or_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cache_home() == tmp_path / "other" / "crosscast"
    for unset in ("", None):
        if unset is None:
            monkeypatch.delenv("XDG_CACHE_HOME")
        else:
            monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_home() == tmp_path / ".cache" / "crosscast"
