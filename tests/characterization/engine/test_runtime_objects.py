"""The runtime's object files: compiled in the background, and only once."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosscast.characterization import toolchain
from crosscast.characterization.engine import runtime_objects
from crosscast.errors import EnvironmentFault

FOLDER = Path(runtime_objects.__file__).with_name("runtime")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(toolchain, "_cache_dir", lambda: tmp_path)
    runtime_objects.start.cache_clear()
    yield tmp_path
    runtime_objects.start.cache_clear()


def test_every_unit_is_compiled() -> None:
    assert len(set(runtime_objects.objects())) == len(list(FOLDER.glob("*.c")))


def test_what_is_in_the_cache_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    there = runtime_objects.objects()
    monkeypatch.setattr(toolchain, "clang", pytest.fail)
    assert runtime_objects.objects() == there


def test_what_fails_in_the_background_fails_where_it_is_needed(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> bytes:
        raise EnvironmentFault("no compiler today")

    monkeypatch.setattr(toolchain, "clang", refuse)
    for thread in runtime_objects.start():
        thread.join()
    assert capfd.readouterr() == ("", "")
    with pytest.raises(EnvironmentFault, match="no compiler today"):
        runtime_objects.objects()
    assert not list(empty_cache.iterdir())


def test_a_process_that_needs_no_runtime_does_not_wait_for_it(tmp_path: Path) -> None:
    code = """
import time
from crosscast.characterization.engine import runtime_objects
from crosscast.characterization import toolchain
toolchain.clang = lambda *_: time.sleep(3600)
runtime_objects.start()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == done.stderr == ""
