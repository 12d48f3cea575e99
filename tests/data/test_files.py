"""CSV of people: rows with their places, and a sentence for whatever else there is."""

import csv
import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.files import atomic_file, cache_home, csv_rows, locked
from crosscast.errors import InputError
from support.refusals import refusal

CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=10).map(str.strip)


@given(st.lists(st.tuples(CELLS, CELLS).filter(any), min_size=1, max_size=5))
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("one", "two"), *drawn])
    _, header, rows = csv_rows(path, "runs", "time_s", 10_000)
    assert (header, [tuple(cells.values()) for _, cells in rows]) == (["one", "two"], drawn)


def test_bad_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for content, found in {
        b"": ": expected columns such as time_s, found an empty file",
        b"a,a\n": ", line 1: expected each column once, found 'a' twice",
        b"a,b\n1\n": ", line 2: expected 2 cells, found 1",
        b"a,b\n1,2,3\n": ", line 2: expected 2 cells, found 3",
        b"a\n\xff\n": ": expected UTF-8, found another byte at place 2",
        b'a\n"b\n': ", line 2: expected CSV, found something else",
        b"a\n" * 501: ": expected a file of at most 0 MiB, found a larger one",
    }.items():
        path.write_bytes(content)
        told = refusal(lambda: list(csv_rows(path, "runs", "time_s", 1000)[2]))
        assert told.startswith(f"{path}{found}")


HOLD = """
import sys, time
from pathlib import Path
from crosscast.data.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_until_the_first_has_gone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="another process is writing this dataset"), locked(tmp_path):
            pass
        other.kill()
    with locked(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_lock_whose_file_the_last_holder_removed_meanwhile_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock, taken = tmp_path / ".lock", fcntl.flock, list[int]()

    def raced(lock: int, how: int) -> None:
        flock(lock, how)
        if not taken:
            path.unlink()
        taken.append(lock)

    monkeypatch.setattr(fcntl, "flock", raced)
    with locked(tmp_path):
        assert path.exists()
    assert len(taken) == 2


def test_the_cache_is_where_the_standard_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for said, folder in ((str(tmp_path / "other"), "other"), ("", ".cache"), (None, ".cache")):
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        if said is not None:
            monkeypatch.setenv("XDG_CACHE_HOME", said)
        assert cache_home() == tmp_path / folder / "crosscast"


def test_threads_that_write_one_file_leave_a_whole_one_at_any_time(tmp_path: Path) -> None:
    path = tmp_path / "results.txt"
    contents = [letter * 20_000 for letter in "abcd"]

    def write(content: str) -> None:
        for _ in range(50):
            with atomic_file(path) as temporary, temporary.open("w") as file:
                for start in range(0, len(content), 5_000):
                    file.write(content[start : start + 5_000])
                    file.flush()

    with ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(write, content) for content in contents]
        seen = set()
        while not all(each.done() for each in writing):
            seen |= {path.read_text()} if path.exists() else set()
        for each in writing:
            each.result()
    assert {path.read_text(), *seen} <= set(contents)
    assert [entry.name for entry in tmp_path.iterdir()] == ["results.txt"]


def test_content_is_on_the_disk_before_its_name_and_the_name_before_writing_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, order = tmp_path / "results.txt", []
    sync, replace = os.fsync, Path.replace

    def fsync(opened: int) -> None:
        is_folder = os.path.samestat(os.fstat(opened), tmp_path.stat())
        order.append("sync folder" if is_folder else f"sync {os.fstat(opened).st_size} bytes")
        sync(opened)

    def rename(self: Path, target: Path) -> Path:
        order.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", rename)
    with atomic_file(path) as temporary:
        temporary.write_text("four")
    assert order == ["sync 4 bytes", "rename", "sync folder"]


def test_a_path_below_a_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    assert refusal(lambda: locked(file).__enter__()).startswith(f"{file}: cannot make the folder")
    with (
        pytest.raises(InputError, match=r"file/table: cannot write the table \(Not a directory\)$"),
        atomic_file(file / "table", "table") as temporary,
    ):
        temporary.write_text("y")
