"""Appending to a file that others append to."""

import errno
import fcntl
import os
from pathlib import Path

import pytest
from made_runs import run_of

from crosscast import read_history
from crosscast.measure.regions import file as appending
from crosscast.measure.regions.file import append, to_line
from crosscast.measure.regions.key import RegionKey

KEY = RegionKey("a")
LINE = to_line(run_of(KEY)).encode()


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    append(path, LINE)
    append(path, LINE * 2)
    assert path.read_bytes() == LINE * 3


@pytest.mark.parametrize("end", [1, 20, len(LINE) - 2])
def test_what_was_torn_off_is_removed(end: int, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(LINE + LINE[:end])
    append(path, LINE)
    assert path.read_bytes() == LINE * 2


def test_what_nobody_here_has_written_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(LINE + b"notes of mine")
    append(path, LINE)
    assert path.read_bytes() == LINE + b"notes of mine\n" + LINE


def test_a_whole_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(LINE.rstrip(b"\n"))
    append(path, LINE)
    assert path.read_bytes() == LINE * 2


def test_a_full_disk_leaves_no_half_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    append(path, LINE)
    write = os.write

    def full(file: int, data: bytes) -> int:
        if len(data) < len(LINE):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:7])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        append(path, LINE)
    assert path.read_bytes() == LINE


def test_a_write_of_a_part_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "runs.jsonl", os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    append(path, LINE)
    assert path.read_bytes() == LINE


def test_nobody_waits_for_ever_for_a_process_that_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(LINE)
    monkeypatch.setattr(appending, "_PATIENCE_S", 0.02)
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        append(path, LINE)
    assert len(read_history(path).runs(KEY)) == 2


def test_a_file_system_without_locks_is_appended_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lock(file: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", no_lock)
    path = tmp_path / "runs.jsonl"
    append(path, LINE)
    append(path, LINE)
    assert path.read_bytes() == LINE * 2


def test_no_file_stays_open(tmp_path: Path) -> None:
    def opened() -> int:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())

    before = opened()
    for _ in range(5):
        append(tmp_path / "runs.jsonl", LINE)
    assert opened() == before
