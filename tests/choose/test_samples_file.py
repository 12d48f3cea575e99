"""Runs read from files: what comes back, what is averaged, and every bad line refused in one sentence."""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.configuration import Configuration
from crosscast.decide.samples import SampleFile, read_samples, template_columns, write_template
from crosscast.errors import InputError
from crosscast.measure.regions.history import History
from crosscast.measure.regions.key import RegionKey
from crosscast.measure.regions.run import RegionRun
from crosscast.measure.regions.samples import write_samples
from kept_chooser import fitted_chooser

CARD = fitted_chooser()[1]
HIGH = {"cpu_cap_w": 100, "gpu_cap_w": 250}
LOW = {"cpu_cap_w": 60, "gpu_cap_w": 100}


def written(path: Path, *rows: dict[str, Any]) -> Path:
    """A CSV file with the columns of all rows."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_samples(path, CARD)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(path))
    return text


def test_two_runs_are_read(path: Path) -> None:
    written(
        path,
        {**HIGH, "time_s": 2, "power_w": 150, "cpu_w": 60, "gpu_w": 90, "stalls": 0.5},
        {**LOW, "time_s": 3, "power_w": 100, "cpu_w": 40, "gpu_w": 60, "stalls": 0.5},
    )
    found = read_samples(path, CARD)
    assert found.notes == ()
    (kernel,) = found.kernels
    assert (kernel.name, kernel.runs) == ("runs", (1, 1))
    assert kernel.configurations(CARD) == (Configuration("node", LOW), Configuration("node", HIGH))
    assert kernel.observed.time_s.tolist() == [3, 2]
    assert kernel.observed.power_w.tolist() == [100, 150]
    assert kernel.observed.domains["gpu"].tolist() == [60, 90]
    assert kernel.observed.counters["stalls"].tolist() == [0.5, 0.5]


rows = st.lists(
    st.tuples(
        st.sampled_from(range(len(CARD.space))),
        st.floats(1e-9, 1e6),
        st.floats(0.1, 1e4),
        st.floats(0.1, 1e4),
        st.floats(-1e6, 1e6),
    ),
    unique_by=lambda row: row[0],
    max_size=8,
)


@given(rows)
def test_what_is_written_is_what_is_read(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    values = {0: (0, 1.0, 2.0, 3.0, 4.0), len(CARD.space) - 1: (len(CARD.space) - 1, 1.0, 2.0, 3.0, 4.0)}
    values |= {row[0]: row for row in drawn}
    lines = []
    for number, time_s, cpu_w, gpu_w, stalls in values.values():
        settings = CARD.space.configurations[number].settings
        lines.append({**settings, "runtime_s": time_s, "cpu_w": cpu_w, "gpu_w": gpu_w, "stalls": stalls})
    path = written(tmp_path_factory.getbasetemp() / "drawn.csv", *lines)
    (kernel,) = read_samples(path, CARD).kernels
    expected = [values[number] for number in sorted(values)]
    assert kernel.observed.numbers.tolist() == sorted(values)
    np.testing.assert_array_equal(kernel.observed.time_s, [row[1] for row in expected])
    np.testing.assert_allclose(kernel.observed.power_w, [row[2] + row[3] for row in expected], rtol=1e-12)
    np.testing.assert_array_equal(kernel.observed.domains["cpu"], [row[2] for row in expected])
    np.testing.assert_array_equal(kernel.observed.counters["stalls"], [row[4] for row in expected])


@given(st.binary(max_size=300))
def test_no_bytes_bring_anything_but_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.csv"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_samples(path, CARD)


@given(st.text(st.sampled_from('6012,.x"\n-e'), max_size=80))
def test_no_cells_bring_anything_but_a_sentence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "cells.csv"
    path.write_text(f"cpu_cap_w,gpu_cap_w,time_s,power_w\n{text}")
    with pytest.raises(InputError):
        read_samples(path, CARD)


def test_a_run_elsewhere_is_welcome_and_repeats_are_averaged(path: Path) -> None:
    middle = {"cpu_cap_w": 80, "gpu_cap_w": 150}
    written(
        path,
        {**HIGH, "time_s": 1, "power_w": 150},
        {**HIGH, "time_s": 3, "power_w": 170},
        {**LOW, "time_s": 3, "power_w": 100},
        {**middle, "time_s": 2, "power_w": 120},
    )
    (kernel,) = read_samples(path, CARD).kernels
    assert kernel.runs == (1, 1, 2)
    assert kernel.observed.time_s.tolist() == [3, 2, 2]
    assert kernel.observed.power_w[2] == (150 + 3 * 170) / 4


def test_several_kernels_are_told_apart(path: Path) -> None:
    names = [
        {"application": "cfd", "kernel": "flux", "size": "big"},
        {"application": "cfd", "kernel": "step", "size": "big"},
    ]
    rows = [{**name, **at, "time_s": 1, "power_w": 90} for name in names for at in (HIGH, LOW)]
    found = read_samples(written(path, *rows), CARD)
    assert [each.name for each in found.kernels] == ["cfd/flux big", "cfd/step big"]
    assert found.kernels[0].names == ("cfd/flux big", "flux", "cfd")
    assert "cfd/step big: expected a run at node: cpu_cap_w 60" in refusal(written(path, *rows[:3]))


def test_unknown_columns_and_missing_powers_are_noted_once(path: Path) -> None:
    extra = {"time_s": 1, "power_w": 90, "host": "a", "room_c": 20}
    found = read_samples(written(path, {**HIGH, **extra}, {**LOW, **extra}), CARD)
    assert found.notes == (
        f"{path}: columns that the model does not know: host, room_c",
        f"{path}: powers that the model has learned from are not in every row, so it is less sure: cpu, gpu",
        f"{path}: counters that the model has learned from are not in every row, so it is less sure: stalls",
    )
    assert np.isnan(found.kernels[0].observed.domains["cpu"]).all()


RUN = {"time_s": 1.0, "power_w": 90.0}


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([{**HIGH, **RUN}], "expected a run at node: cpu_cap_w 60, gpu_cap_w 100, which the model needs"),
        ([{**HIGH, **RUN}, {**LOW, **RUN, "gpu_cap_w": 99}], "line 3: expected one of the 12 configurations"),
        ([{**HIGH, **RUN, "time_s": 0}, {**LOW, **RUN}], "line 2: time_s: expected seconds above 0, found 0"),
        ([{**HIGH, **RUN, "time_s": "2 s"}, {**LOW, **RUN}], "time_s: expected seconds above 0, found 2 s"),
        (
            [{**HIGH, **RUN, "time_s": ""}, {**LOW, **RUN}],
            "line 2: time_s: expected seconds above 0, found no",
        ),
        ([{**HIGH, **RUN, "time_s": "nan"}, {**LOW, **RUN}], "time_s: expected seconds above 0, found nan"),
        ([{**HIGH, **RUN, "time_s": "1e999"}, {**LOW, **RUN}], "expected seconds above 0, found 1e999"),
        (
            [{**HIGH, **RUN}, {**LOW, **RUN, "power_w": -3}],
            "line 3: power_w: expected watts above 0, found -3",
        ),
        (
            [{**HIGH, **RUN}, {**LOW, **RUN, "power_w": ""}],
            "line 3: power_w: .* (or cpu_w and gpu_w), found no",
        ),
        ([{**HIGH, **RUN, "cpu_w": -1}, {**LOW, **RUN}], "cpu_w: expected watts of at least 0, found -1"),
        ([{**HIGH, **RUN, "stalls": "x"}, {**LOW, **RUN}], "stalls: expected a number, found x"),
        ([{**HIGH, "time_s": 1, "cpu_w": 0, "gpu_w": 0}, {**LOW, **RUN}], "above 0, found a sum of 0"),
        (
            [{**HIGH, **RUN, "cpu_cap_w": ""}, {**LOW, **RUN}],
            "line 2: cpu_cap_w: expected what it was set to",
        ),
        ([{**HIGH, **RUN, "cpu_cap_w": "x"}, {**LOW, **RUN}], "cpu_cap_w: expected a number such as 60"),
        ([{**HIGH, **RUN, "device": "card"}], "line 2: device: expected one of node, found card"),
    ],
)
def test_a_bad_line_is_refused(path: Path, lines: list[dict[str, Any]], reason: str) -> None:
    found = refusal(written(path, *lines))
    assert all(part in found for part in reason.split(" .* "))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "expected columns such as time_s and power_w, found an empty file"),
        (b"\n\n", "found an empty file"),
        (b"cpu_cap_w,gpu_cap_w,time_s,power_w\n", "expected a row for each run, found none"),
        (
            b"cpu_cap_w;gpu_cap_w;time_s;power_w\n60;100;1;9\n",
            "expected a column cpu_cap_w, found cpu_cap_w;",
        ),
        (b"cpu_cap_w,gpu_cap_w,power_w\n60,100,9\n", "expected a column time_s, found cpu_cap_w"),
        (b"time_s,time_s\n", "line 1: expected each column once, found 'time_s' twice"),
        (b"cpu_cap_w,gpu_cap_w,time_s\n1,2\n", "line 2: expected 3 cells, found 2"),
        (b"cpu_cap_w,gpu_cap_w,time_s\n\xff,2,3\n", "expected UTF-8, found another byte at place 27"),
        (b'a,"b\n', "expected CSV, found something else"),
        (b"{}", "line 1"),
    ],
)
def test_what_is_no_table_of_runs_is_refused(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    assert reason in refusal(path)


def test_a_file_that_is_not_there_or_too_large_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cannot read the samples (No such file or directory)" in refusal(path)
    written(path, {**HIGH, **RUN}, {**LOW, **RUN})
    monkeypatch.setattr("crosscast.decide.samples._MOST_BYTES", 20)
    assert "expected samples of at most 0 MiB, found more" in refusal(path)


def filled(path: Path) -> SampleFile:
    """The template with a time and powers in each row."""
    text = path.read_text()
    lines = text.splitlines()
    path.write_text("\n".join([lines[0], *(line.rstrip(",") + ",2,150,60,90,0.5" for line in lines[1:])]))
    return read_samples(path, CARD)


def test_the_template_has_a_row_for_each_sample_and_is_read_when_filled_in(path: Path) -> None:
    write_template(path, CARD)
    assert template_columns(CARD) == ("time_s", "power_w", "cpu_w", "gpu_w", "stalls")
    assert list(csv.reader(io.StringIO(path.read_text()))) == [
        ["device", "cpu_cap_w", "gpu_cap_w", "time_s", "power_w", "cpu_w", "gpu_w", "stalls"],
        ["node", "100", "250", "", "", "", "", ""],
        ["node", "60", "100", "", "", "", "", ""],
    ]
    assert "line 2: time_s: expected seconds above 0, found nothing" in refusal(path)
    found = filled(path)
    assert found.notes == ()
    assert found.kernels[0].observed.power_w.tolist() == [150, 150]


def test_a_template_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write the template \(No such file or directory\)"):
        write_template(tmp_path / "no" / "runs.csv", CARD)


def test_a_template_does_not_take_the_place_of_what_was_filled_in(path: Path) -> None:
    path.write_text("device,time_s\nnode,2\n")
    with pytest.raises(InputError, match="expected no such file, as it may have been filled in; found one"):
        write_template(path, CARD)
    assert path.read_text() == "device,time_s\nnode,2\n"


def runs(key: RegionKey) -> list[RegionRun]:
    powers = {"cpu": 60.0, "gpu": 90.0}
    return [
        RegionRun(key, Configuration("node", settings), 0.0, 2.0, 2.0, {}, powers, 150.0)
        for settings in (HIGH, LOW, LOW)
    ]


def test_a_history_of_a_program_is_read_as_well(path: Path, tmp_path: Path) -> None:
    keys = [RegionKey("step", ("8",)), RegionKey("step", ("9",))]
    file = tmp_path / "runs.jsonl"
    history = History(file)
    for key in keys:
        for run in runs(key):
            history.record(run)
    history.flush()
    found = read_samples(file, CARD)
    assert [each.name for each in found.kernels] == ["step(8)", "step(9)"]
    write_samples(runs(keys[0]), path)
    for kernel in (*found.kernels, *read_samples(path, CARD).kernels):
        assert kernel.runs == (2, 1)
        assert kernel.observed.power_w.tolist() == [150, 150]
        assert kernel.observed.domains["cpu"].tolist() == [60, 60]
