"""Databases of HPCToolkit, older and newer, against hatchet where it reads them; profiles of Caliper."""

import importlib.util
import json
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.sources.caliper import read_caliper
from crosscast.data.sources.hpctoolkit import is_hpctoolkit, read_hpctoolkit
from crosscast.errors import InputError
from support.counter_profiles import (
    CALI_HEAD,
    cali_file,
    cali_record,
    caliper_table,
    new_database,
    old_database,
)
from support.examples import examples, one_in
from support.refusals import refusal, refusals


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
    assert "experiment.xml or meta.db, found neither" in refusal(read_hpctoolkit, tmp_path)
    folder = old_database(tmp_path / "db")
    for file in folder.glob("*.metric-db"):
        file.unlink()
    assert "as hpcprof of HPCToolkit up to 2020 makes them with --metric-db yes, found 0" in refusal(
        read_hpctoolkit, folder
    )


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
        assert "experiment.xml: expected" in refusal(read_hpctoolkit, folder)


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
        assert path.name in refusal(read_hpctoolkit, folder)
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
    assert "expected version 4 of the format, found 5.0" in refusal(
        read_hpctoolkit, new_database(tmp_path / "new", version=5)
    )
    folder = old_database(tmp_path / "old", processes=1)
    (path,) = folder.glob("*.metric-db")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"00.10b", b"00.10l"))
    assert "expected big-endian numbers (b), found a version with b'l'" in refusal(read_hpctoolkit, folder)
    path.write_bytes(content.replace(b"metricdb", b"otherdb_"))
    assert "expected metrics of HPCToolkit" in refusal(read_hpctoolkit, folder)
    path.write_bytes(content.replace(struct.pack(">ii", 5, 4), struct.pack(">ii", 5, 3)))
    assert "expected 4 metrics" in refusal(read_hpctoolkit, folder)


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
        assert f"expected {where}" in refusal(read_hpctoolkit, folder)
        path.write_bytes(content)
    path = folder / "profile.db"
    damaged = bytearray(path.read_bytes())
    # The first context of the second thread begins at its last value, so that its values are of all the file.
    (profiles,) = struct.unpack_from("<Q", damaged, struct.unpack_from("<Q", damaged, 24)[0])
    (contexts,) = struct.unpack_from("<Q", damaged, profiles + 48 + 24)
    struct.pack_into("<Q", damaged, contexts + 16, 10**9)
    path.write_bytes(damaged)
    assert "expected values of threads that lie apart" in refusal(read_hpctoolkit, folder)


def test_nodes_outside_of_the_metrics_and_files_without_a_process_are_refused(tmp_path: Path) -> None:
    folder = old_database(tmp_path / "db")
    path = folder / "experiment.xml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('<PF i="2"', '<PF i="999999999"'), encoding="utf-8")
    assert "expected nodes from 1 to 5, found 999999999" in refusal(read_hpctoolkit, folder)
    next(folder.glob("*.metric-db")).rename(folder / "a.metric-db")
    assert "expected a name with process and thread" in refusal(read_hpctoolkit, folder)


MAIN, SOLVE = 30, 31
RECORDS = (
    cali_record(1.0, 10, 100, MAIN),
    cali_record(2.0, 20, 300, SOLVE),
    cali_record(0.5, 1, 5),
    cali_record(5.0, 30, 400, MAIN, rank=1),
    cali_record(4.0, 40, 500, SOLVE, rank=1),
)


def table_file(path: Path, **changed: Any) -> Path:
    """A table, of columns with values alone if these are changed."""
    path = path / "app.json"
    if "columns" in changed and "data" in changed:
        facts = [{"is_value": each != "path"} for each in changed["columns"]]
        changed = {"column_metadata": facts} | changed
    path.write_text(json.dumps(caliper_table(**changed)), encoding="utf-8")
    return path


def test_counters_are_means_over_processes_and_the_time_that_of_the_longest(tmp_path: Path) -> None:
    run = read_caliper(cali_file(tmp_path / "app.cali", *RECORDS))
    assert run.counters == {"papi.PAPI_BR_INS": (31 + 70) / 2, "papi.PAPI_TOT_INS": (405 + 900) / 2}
    assert (run.time_s, run.name, run.kernel) == (9.0, "app", None)


def test_a_table_gives_inclusive_values_of_the_outermost_region(tmp_path: Path) -> None:
    run = read_caliper(table_file(tmp_path))
    assert run.counters == {"rc.count": 400, "cycles": 4e9}
    assert run.time_s == pytest.approx(4.0)
    assert read_caliper(table_file(tmp_path), "solve").counters == {"rc.count": 300, "cycles": 3e9}


@pytest.mark.parametrize(("unit", "time_s"), [("sec", 4.0), ("usec", 4e-6), ("nsec", 4e-9)])
def test_the_unit_of_a_time_is_that_of_the_profile(tmp_path: Path, unit: str, time_s: float) -> None:
    columns = ["path", "sum#time.duration"]
    facts = [{"is_value": False}, {"is_value": True, "attribute.unit": unit}]
    path = table_file(tmp_path, data=[[0, 1.0], [1, 3.0]], columns=columns, column_metadata=facts)
    assert read_caliper(path).time_s == pytest.approx(time_s)


def test_a_mean_over_processes_is_preferred_and_extremes_are_no_counters(tmp_path: Path) -> None:
    columns = ["path", "max#sum#hits", "sum#sum#hits", "avg#sum#hits", "min#sum#rare"]
    path = table_file(tmp_path, data=[[0, 9, 12, 6, 1]], columns=columns)
    assert read_caliper(path).counters == {"hits": 6}


def test_what_is_outside_of_all_regions_is_added_to_inclusive_values(tmp_path: Path) -> None:
    columns = ["path", "avg#inclusive#sum#time.duration", "any#any#max#Bytes/Rep", "Node order"]
    path = table_file(tmp_path, data=[[None, 8.0, 40, 0], [0, 2.0, 50, 1], [1, 1.5, 30, 2]], columns=columns)
    for region, time_s, reps in ((None, 10.0, 50), ("solve", 1.5, 30)):
        run = read_caliper(path, region)
        assert (run.time_s, run.counters) == (time_s, {"Bytes/Rep": reps})


def test_an_empty_cell_is_missing_and_a_row_without_a_rank_no_process_of_its_own(tmp_path: Path) -> None:
    run = read_caliper(table_file(tmp_path, data=[[0, 1e9, None, 4e9, 0], [None, 1e9, None, None, 0]]))
    assert run.counters == {"cycles": 4e9}
    assert run.time_s == pytest.approx(2.0)
    path = table_file(tmp_path, data=[[None, 0, 20, 0, None], [0, 1, 100, 1, 0], [0, 1, 300, 1, 1]])
    assert read_caliper(path).counters["rc.count"] == (20 + 100 + 300) / 2


@refusals("line")
def test_a_record_that_the_reader_does_not_know_is_refused(tmp_path: Path, line: str) -> None:
    path = cali_file(tmp_path / "app.cali", RECORDS[0], line + "\n", RECORDS[1])
    assert "expected a record of Caliper that the reader knows, found" in refusal(read_caliper, path)


def test_regions_that_go_round_in_a_circle_or_too_deep_are_refused(tmp_path: Path) -> None:
    # Such a file makes the reader by itself walk for ever.
    for lines in (
        ["__rec=node,id=40,attr=13,data=a,parent=40\n", "__rec=node,id=40,attr=13,data=a,parent=40\n"],
        [f"__rec=node,id={40 + n},attr=13,data=a,parent={39 + n if n else 31}\n" for n in range(2000)],
    ):
        path = cali_file(tmp_path / "app.cali", *lines, "__rec=ctx,ref=40,attr=15,data=1\n")
        assert "expected a record of Caliper that the reader knows" in refusal(read_caliper, path)


def test_another_region_a_file_that_is_cut_off_and_another_form_are_refused(tmp_path: Path) -> None:
    path = cali_file(tmp_path / "app.cali", *RECORDS)
    assert "expected a region fft, found main, solve" in refusal(read_caliper, path, "fft")
    path.write_text(path.read_text(encoding="utf-8")[:-4], encoding="utf-8")
    assert "expected a whole record of Caliper, found" in refusal(read_caliper, path)
    attribute = "__rec=node,id=60,attr=10,data=65\n__rec=node,id=61,attr=8,data=odd,parent=60\n"
    path.write_text(CALI_HEAD + attribute, encoding="utf-8")
    assert "expected attributes of Caliper that the reader knows" in refusal(read_caliper, path)
    for text in ("", "{", "[]", '{"data": []}', "[" * 100_000):
        (tmp_path / "app.json").write_text(text, encoding="utf-8")
        assert "app.json: expected" in refusal(read_caliper, tmp_path / "app.json")


def test_a_counter_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = cali_file(tmp_path / "app.cali", RECORDS[0].replace("data=1.0=10", "data=1.0=ten"))
    assert "sum#papi.PAPI_BR_INS: expected a number, found 'ten'" in refusal(read_caliper, path)
    for cell in ("fast", 10**400):
        path = table_file(tmp_path, data=[[0, cell, 100, 4e9, 0]])
        told = refusal(read_caliper, path)
        assert f"data[0]: sum#time.duration.ns: expected a number, found {str(cell)[:60]!r}" in told


@refusals("changed expected")
def test_a_table_that_does_not_fit_is_refused(tmp_path: Path, changed: dict[str, Any], expected: str) -> None:
    assert expected in refusal(read_caliper, table_file(tmp_path, **changed))
