"""Files of machines, their sites and schedules, and the examples that come along."""

import csv
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crosscast.cluster import COLUMNS, Machine, Schedule, read_machines, texts_of, write_schedule
from crosscast.cluster.configurations import read_power_options
from crosscast.cluster.rules import read_forecasts, read_slowdowns
from crosscast.cluster.simulate import simulate
from crosscast.cluster.site import Partition, Reservation, Site, read_budget, read_site
from crosscast.cluster.trace_files import read_swf
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
def test_a_file_of_machines_that_is_wrong_is_refused(tmp_path: Path, text: str, message: str) -> None:
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


MACHINE = "[[machine]]\nname = 'one'\nprocs = 4\nidle_w = 10\n"
RESERVATION = "[[reservation]]\nname = 'a'\nmachine = 'one'\n"


def site_of(folder: Path, text: str) -> tuple[list[Machine], Site]:
    path = folder / "site.toml"
    path.write_text(MACHINE + text.replace("RESERVATION", RESERVATION))
    return read_site(path)


def test_a_file_says_what_surrounds_machines(tmp_path: Path) -> None:
    (tmp_path / "budget.csv").write_text("start_s,power_w,price_per_kwh\n0,100,0.2\n3600,,0.1\n")
    text = "active_w = 30\nRESERVATION\nstart = '1h'\nend = '2h'\nprocs = 2\n"
    partitions = "[[partition]]\nname = 'day'\n[[partition]]\nname = 'rest'\nnodes = 2\ntier = 0\n"
    machines, site = site_of(tmp_path, f"{text}{partitions}[power]\nbudget = 'budget.csv'\n")
    assert site.rules.partitions == (Partition("day"), Partition("rest", procs=2, tier=0))
    assert machines == [Machine("one", 4, idle_w=10, active_w=30)]
    assert site.reservations == (Reservation("a", "one", 3600, 7200, 2),)
    assert site.budget is not None and site.budget.carbon_g_per_kwh is None
    assert site.budget.power_w.tolist() == [100, math.inf]
    assert np.asarray(site.budget.price_per_kwh).tolist() == [0.2, 0.1]


@refusals("text message")
def test_a_wrong_file_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(site_of, tmp_path, text)
