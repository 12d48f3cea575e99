"""What is compiled is kept, where that can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import pytest

from crosscast.cluster.simulator import queues as compiled
from crosscast.cluster.simulator.queues import is_kept, kept


def twice(number: int) -> int:
    return 2 * number


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_it_is_kept_with_other_things_that_are(cache: Path) -> None:
    first = kept(twice)
    assert not is_kept(first)
    assert first(4) == 8
    assert is_kept(first)
    assert len([*cache.glob("crosscast/simulator/*/*/*.nbi")]) == 1
    # The next process finds it there.
    again = kept(twice)
    assert is_kept(again)
    assert again(4) == 8
    assert not again.stats.cache_misses  # type: ignore[attr-defined]


def test_numbas_own_setting_is_left_alone(cache: Path) -> None:
    kept(twice)
    assert numba.config.CACHE_DIR == ""  # type: ignore[attr-defined]


def test_where_nothing_can_be_written_it_is_compiled_all_the_same(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    njit = numba.njit

    def without_folder(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(compiled._NUMBA, "njit", without_folder)
    function = kept(twice)
    assert not is_kept(function)
    assert function(4) == 8
    assert is_kept(function)


def test_a_user_without_a_home_folder_can_simulate_all_the_same(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", unknown)
    assert kept(twice)(4) == 8
