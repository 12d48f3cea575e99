"""Files of machines and schedules, and the examples that come along."""

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crosscast.cluster.jobs import COLUMNS, Machine, Schedule, read_machines, texts_of, write_schedule
from crosscast.cluster.power import read_forecasts, read_power_options
from crosscast.cluster.sharing import read_slowdowns
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import read_budget
from crosscast.cluster.swf import read_swf
from crosscast.data.sources.aiwc import published_devices
from crosscast.errors import InputError
from support.cluster import jobs_of
from support.refusals import refusal, refusals

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.skipif(not EXAMPLES.exists(), reason="no checkout")
def test_examples_have_machines_with_and_without_gpus_and_synthetic_jobs_that_wait() -> None:
    for name in ("machines.toml", "four-clusters.toml"):
        machines = read_machines(EXAMPLES / name)
        assert {machine.has_gpu for machine in machines} == {False, True}
        assert {machine.device for machine in machines} <= {row["device"] for row in published_devices()}
    trace = read_swf(EXAMPLES / "made-cluster.swf")
    jobs = trace.jobs().jobs
    assert "SYNTHETIC" in trace.header.fields["Note"]
    assert len(trace) == len(jobs) == 200
    assert trace.header.procs is not None
    assert (simulate(jobs, [Machine("made up", trace.header.procs)]).wait_s > 0).mean() > 0.5


def read(folder: Path, text: str) -> list[Machine]:
    path = folder / "machines.toml"
    path.write_text(text, encoding="utf-8")
    return read_machines(path)


def test_machines_have_what_their_tables_say(tmp_path: Path) -> None:
    text = "[[machine]]\nname = 'quartz'\nnodes = 2988\n[[machine]]\nname = 'lassen'\nprocs = 795\n"
    lassen = Machine("lassen", 795, has_gpu=True, device="v100")
    assert read(tmp_path, f"{text}gpu = true\ndevice = 'v100'\n") == [Machine("quartz", 2988), lassen]


@refusals("text message")
def test_a_file_that_is_wrong_is_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path / 'machines.toml'}: ")


def test_a_file_that_is_no_text_or_absent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "machines.toml").write_bytes(b"\xff\xfe")
    assert "expected machines in TOML" in refusal(read_machines, tmp_path / "machines.toml")
    said = refusal(read_machines, tmp_path / "none.toml")
    assert "cannot read the machines (No such file or directory)" in said


TABLES: dict[str, Callable[[Path], object]] = {
    "budget": read_budget,
    "options": read_power_options,
    "slowdowns": read_slowdowns,
    "forecasts": partial(read_forecasts, number=np.arange(2)),
}


@refusals("name text message")
def test_a_wrong_table_is_one_sentence(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / f"{name}.csv"
    path.write_text(text)
    assert message in refusal(TABLES[name], path)


def test_a_table_as_a_spreadsheet_saves_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "budget.csv"
    path.write_bytes(b"\xef\xbb\xbfstart_s,power_w\r\n0,500\r\n60,\r\n\r\n")
    assert read_budget(path).power_w.tolist() == [500, np.inf]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
@example([0.1, 1 / 3, 1e-7, 5e-324, 1e300])
def test_every_number_is_read_back_the_same_and_is_no_longer_than_python_needs(numbers: list[float]) -> None:
    texts = texts_of(np.array(numbers), "?")
    assert list(map(float, texts)) == numbers
    assert all(len(text) <= len(repr(number)) for text, number in zip(texts, numbers, strict=True))
    assert texts_of(np.array([np.nan, 2, -0.0]), "-1") == ["-1", "2", "0"]


def scheduled(name: str = "lassen") -> Schedule:
    jobs, nan = jobs_of((0.0, 4, 10.0), (0.2, 1, 0.1)), np.full(2, np.nan)
    machines, start_s = [Machine("quartz", 8), Machine(name, 4)], np.array([0.0, 10.0])
    return Schedule(jobs, machines, np.array([1, 0]), start_s, start_s + jobs.run_s[:, 0], nan)


@pytest.mark.parametrize("name", ["a,b", 'the "large" one', "two\nlines", "Umeå"])
def test_any_name_of_a_machine_is_read_back(tmp_path: Path, name: str) -> None:
    write_schedule(scheduled(name), tmp_path / "schedule.csv")
    with (tmp_path / "schedule.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert [row["machine"] for row in rows] == [name, "quartz"]


def test_a_file_that_cannot_be_written_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    said = refusal(write_schedule, scheduled(), tmp_path / "none" / "a.csv")
    assert "none/a.csv: cannot write the schedule (No such file" in said
    assert not list(tmp_path.iterdir())
