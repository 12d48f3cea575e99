"""Reading histories."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import RUNS, run_of

from crosscast import read_history
from crosscast.errors import InputError
from crosscast.measure.regions.file import MOST_BYTES, check_history, to_line
from crosscast.measure.regions.key import RegionKey, RegionRun

LINE = to_line(run_of(RegionKey("a")))


@given(st.lists(RUNS, min_size=1, max_size=4), st.data())
@settings(deadline=None)
def test_cut_anywhere_a_file_loses_its_last_line_only(runs: list[RegionRun], data: st.DataObject) -> None:
    lines = [to_line(run).encode() for run in runs]
    whole = b"".join(lines)
    end = data.draw(st.integers(0, len(whole)))
    left, ends = [], 0
    for run, line in zip(runs, lines, strict=True):
        ends += len(line)
        # Cut just before its end, a line is whole.
        if ends - 1 <= end:
            left.append(run)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.jsonl"
        path.write_bytes(whole[:end])
        found = read_history(path)
    for key in {run.key for run in runs}:
        assert list(found.runs(key, failed=True)) == [run for run in left if run.key == key]
    assert len(found) == len(left)


def test_a_broken_line_in_between_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(LINE + LINE[:20] + "\n" + LINE)
    with pytest.raises(InputError, match=r"runs.jsonl, line 2: expected a JSON object, found"):
        read_history(path)


def test_a_last_line_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text(LINE + "It was a dark night")
    with pytest.raises(InputError, match=r"thesis.txt, line 2: expected a JSON object, found 'It was"):
        read_history(path)


def test_a_line_without_an_end_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"version":1,"region":"' + "a" * MOST_BYTES)
    with pytest.raises(InputError, match="line 1: expected 1048576 bytes at most"):
        read_history(path)


def test_a_file_of_many_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    with pytest.raises(InputError, match="expected 1073741824 bytes at most, found 1073741825"):
        read_history(path)


@pytest.mark.parametrize("read", [read_history, check_history])
def test_what_is_no_file_is_refused(read: object, tmp_path: Path) -> None:
    assert callable(read)
    with pytest.raises(InputError, match="expected a file of runs, found something else"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"(No such file|there is no folder)"):
        read(tmp_path / "there" / "runs.jsonl")


@pytest.mark.parametrize("text", ["thesis\n", "thesis", "{}\n", "[1]"])
def test_nothing_is_appended_to_what_is_no_history(text: str, tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"thesis.txt, line 1: "):
        check_history(path)


@pytest.mark.parametrize("text", ["", LINE, LINE[:10], LINE * 2])
def test_histories_may_be_appended_to(text: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    check_history(path)
    path.write_text(text)
    check_history(path)
