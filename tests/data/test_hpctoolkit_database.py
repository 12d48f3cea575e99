"""Databases of HPCToolkit, older and newer, against hatchet where it reads them."""

import importlib.util
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.counters.hpctoolkit import is_hpctoolkit, read_hpctoolkit
from crosscast.errors import InputError
from support.counter_profiles import new_database, old_database
from support.examples import examples, one_in
from support.refusals import refusal

refused = partial(refusal, read_hpctoolkit)


def test_statistics_over_threads_are_no_counters(tmp_path: Path) -> None:
    metrics = ("PAPI_BR_INS:Sum (I)", "PAPI_BR_INS:Mean (I)", "PAPI_BR_INS:CfVar (I)")
    assert set(read_hpctoolkit(old_database(tmp_path / "db", metrics)).counters) == {"PAPI_BR_INS"}


# hatchet forks, warns and leaves files open: it is asked in a process of its own.
HATCHET = """
import json, sys
import hatchet
frame = hatchet.GraphFrame.from_hpctoolkit(sys.argv[1]).dataframe.reset_index()
roots = frame[frame["name"] == sys.argv[2]]
print(json.dumps([roots["rank"].tolist(), roots[sys.argv[3]].tolist(), roots[sys.argv[4]].tolist()]))
"""


def as_hatchet_reads(folder: Path, root: str, counter: str, time: str) -> tuple[float, float]:
    """Mean over ranks of a counter's sum, and the longest time."""
    if importlib.util.find_spec("hatchet") is None:
        pytest.skip("hatchet is not installed")
    words = [sys.executable, "-W", "ignore", "-c", HATCHET, str(folder), root, counter, time]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    ranks, counts, times = json.loads(done.stdout)
    return sum(counts) / len(set(ranks)), max(times)


@pytest.mark.parametrize("form", one_in(2, ["newer", "older"]))
def test_hatchet_reads_the_same(tmp_path: Path, form: str) -> None:
    if form == "newer":
        folder = new_database(tmp_path / "db", processes=3, threads=2)
        counter, longest_s = as_hatchet_reads(folder, "main thread", "PAPI_BR_INS (inc)", "time (inc)")
    else:
        # Without statements: with them, hatchet 1.4 stops under pandas 3.
        folder = old_database(tmp_path / "db", processes=3, threads=2, statement="")
        counter, longest_us = as_hatchet_reads(folder, "main", "PAPI_BR_INS (I)", "CPUTIME (usec):Sum (I)")
        longest_s = longest_us / 1e6
    run = read_hpctoolkit(folder)
    assert run.counters["PAPI_BR_INS"] == pytest.approx(counter)
    assert run.time_s == pytest.approx(longest_s)


def test_a_folder_without_a_database_or_metrics_is_refused(tmp_path: Path) -> None:
    assert not is_hpctoolkit(tmp_path)
    assert "experiment.xml or meta.db, found neither" in refused(tmp_path)
    folder = old_database(tmp_path / "db")
    for file in folder.glob("*.metric-db"):
        file.unlink()
    assert "as hpcprof of HPCToolkit up to 2020 makes them with --metric-db yes, found 0" in refused(folder)


def test_xml_that_is_cut_off_anywhere_of_no_database_or_without_end_is_refused(tmp_path: Path) -> None:
    folder = old_database(tmp_path / "db")
    text = (folder / "experiment.xml").read_text(encoding="utf-8")
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 10}">' for n in range(12))
    metric = '<MetricDB i="0" n="&e11;"/>'
    endless = f"<!DOCTYPE a [{entities}]><HPCToolkitExperiment>{metric}</HPCToolkitExperiment>"
    for wrong in (
        *("<a", "<HPCToolkitExperiment/>", "{}", "<a><MetricDB/></a>", endless),
        *(text[:end] for end in range(0, len(text), 37)),
    ):
        (folder / "experiment.xml").write_text(wrong, encoding="utf-8")
        assert "experiment.xml: expected" in refused(folder)


@pytest.mark.parametrize("make", [old_database, new_database])
def test_any_file_that_is_cut_off_is_refused_or_read_whole(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    folder = make(tmp_path / "db")
    whole = read_hpctoolkit(folder)
    names = ("app-000001-000-a8c00170-77-0.metric-db", "meta.db", "profile.db")
    for path in filter(Path.exists, (folder / name for name in names)):
        content = path.read_bytes()
        for end in range(0, len(content), 5):
            path.write_bytes(content[:end])
            try:
                assert read_hpctoolkit(folder) == whole
            except InputError as error:
                assert str(path) in str(error)
        path.write_bytes(content[: len(content) // 2])
        assert path.name in refused(folder)
        path.write_bytes(content)


@examples(150)
@given(data=st.data())
def test_damaged_bytes_give_numbers_or_one_sentence(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = new_database(tmp_path_factory.mktemp("made") / "db")
    path = folder / data.draw(st.sampled_from(["meta.db", "profile.db"]))
    content = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        assert isinstance(read_hpctoolkit(folder).counters, dict)
    except InputError as error:
        assert str(folder) in str(error)


def test_another_version_of_either_form_is_refused(tmp_path: Path) -> None:
    assert "expected version 4 of the format, found 5.0" in refused(new_database(tmp_path / "new", version=5))
    folder = old_database(tmp_path / "old", processes=1)
    (path,) = folder.glob("*.metric-db")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"00.10b", b"00.10l"))
    assert "expected big-endian numbers (b), found a version with b'l'" in refused(folder)
    path.write_bytes(content.replace(b"metricdb", b"otherdb_"))
    assert "expected metrics of HPCToolkit" in refused(folder)
    path.write_bytes(content.replace(struct.pack(">ii", 5, 4), struct.pack(">ii", 5, 3)))
    assert "expected 4 metrics" in refused(folder)


def test_structures_without_a_size_and_values_that_overlap_are_refused(tmp_path: Path) -> None:
    folder = new_database(tmp_path / "db")
    for name, size, where in (
        ("profile.db", 48, "profiles of 44 bytes or more"),
        ("meta.db", 32, "65536 metrics"),
    ):
        path = folder / name
        content = path.read_bytes()
        (start,) = struct.unpack_from("<Q", content, 24 if name == "profile.db" else 56)
        assert content[start + 12] == size
        damaged = bytearray(content)
        damaged[start + 12] = 0
        struct.pack_into("<I", damaged, start + 8, 60_000)
        path.write_bytes(damaged)
        assert f"expected {where}" in refused(folder)
        path.write_bytes(content)
    path = folder / "profile.db"
    damaged = bytearray(path.read_bytes())
    # The first context of the second thread begins at its last value, so that its values are of all the file.
    (profiles,) = struct.unpack_from("<Q", damaged, struct.unpack_from("<Q", damaged, 24)[0])
    (contexts,) = struct.unpack_from("<Q", damaged, profiles + 48 + 24)
    struct.pack_into("<Q", damaged, contexts + 16, 10**9)
    path.write_bytes(damaged)
    assert "expected values of threads that lie apart" in refused(folder)


def test_nodes_outside_of_the_metrics_and_files_without_a_process_are_refused(tmp_path: Path) -> None:
    folder = old_database(tmp_path / "db")
    path = folder / "experiment.xml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('<PF i="2"', '<PF i="999999999"'), encoding="utf-8")
    assert "expected nodes from 1 to 5, found 999999999" in refused(folder)
    next(folder.glob("*.metric-db")).rename(folder / "a.metric-db")
    assert "expected a name with process and thread" in refused(folder)
