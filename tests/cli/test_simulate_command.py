"""``crosscast simulate``: tables, JSON, files and refusals, on small traces and tables."""

import csv
import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosscast.cli import main
from crosscast.cluster.experiment import PUBLISHED_JOBS
from crosscast.cluster.placements import PLACEMENTS
from crosscast.cluster.trace_files import read_swf
from crosscast.commands import placements
from support.commands import Command, Output
from support.workshop import MACHINES, write_table, write_trace

RESULT = "jobs makespan_s average_bounded_slowdown mean_wait_s utilisation simulation_s jobs_per_s".split()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    write_trace(tmp_path / "small.swf")
    return tmp_path / "small.swf"


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    (tmp_path / "machines.toml").write_text(MACHINES)
    return tmp_path / "machines.toml"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_table(tmp_path / "jobs.parquet")
    return tmp_path / "jobs.parquet"


def test_all_is_checked_before_the_simulator_is_compiled(
    trace: Path, machines: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def compiled(*_: object) -> None:
        raise AssertionError("the simulator was loaded for what will be refused")

    for module in ("simulate", "placements"):
        monkeypatch.setattr(f"crosscast.commands.{module}.load_simulator", compiled)
    for words, message in (
        (("policies", "missing.swf", "--machines", machines), "missing.swf"),
        (("policies", trace, "--search", "carbon"), "carbon: expected a budget of power"),
        (("placements", "missing.swf", "--machines", machines), "missing.swf"),
    ):
        assert message in Command.of("simulate").refusal(capsys, *words)


def run(*words: object) -> int:
    command = "placements" if str(words[0]).endswith((".parquet", ".trace")) else "policies"
    return main(["simulate", command, *map(str, words)])


def listed(capsys: Output, *words: object) -> Any:
    assert run(*words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def written(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_json_of_a_trace_has_what_a_check_reads(capsys: Output, trace: Path) -> None:
    found = listed(capsys, trace)
    (result,) = found["results"]
    assert set(RESULT) <= set(result)
    assert (result["policy"], result["queue"], result["backfill"]) == ("easy", "fcfs", "fcfs")
    assert (result["jobs"], result["makespan_s"], result["mean_wait_s"]) == (5, 35.0, 4 / 5)
    assert result["utilisation"] == pytest.approx((4 * 3 + 2 * 4 + 3 + 9 + 25) / (5 * 35))
    assert found["trace"]["left_out"] == {"cancelled before the start": 1}
    assert found["trace"]["machines"] == [{"machine": "small", "procs": 5}]
    assert "users" not in result


def test_policies_and_orders_are_compared_in_all_combinations(capsys: Output, trace: Path) -> None:
    words = "--policy fcfs,easy --backfill fcfs,widest --priority fcfs,shortest".split()
    found = listed(capsys, trace, *words)["results"]
    first = [("fcfs", queue, None) for queue in ("fcfs", "shortest")]
    then = [("easy", queue, fill) for queue in ("fcfs", "shortest") for fill in ("fcfs", "widest")]
    assert [(each["policy"], each["queue"], each["backfill"]) for each in found] == [*first, *then]
    assert found[0]["mean_wait_s"] > found[2]["mean_wait_s"]


def test_the_best_of_a_grid_is_found_and_listed_first(capsys: Output, trace: Path) -> None:
    found = listed(capsys, trace, "--search", "mean-wait")
    waits = [each["mean_wait_s"] for each in found["results"]]
    assert len(waits) == 15
    assert waits == sorted(waits)
    assert found["trace"]["best"]["objective"] == "mean-wait"
    assert found["results"][0]["against"] is None
    assert run(trace, "--search", "slowdown", "--policy", "fcfs") == 0
    out = capsys.readouterr().out
    assert "Best by slowdown: fcfs" in out and "\neasy" not in out


def test_files_of_a_schedule_are_written(capsys: Output, trace: Path, tmp_path: Path) -> None:
    names = {"s.csv", "s.swf", "figures/timeline.png", "figures/queue-length.png"}
    words = ("--out", tmp_path / "s.csv", "--out", tmp_path / "s.swf", "--figures", tmp_path / "figures")
    assert run(trace, *words, "--window", "2s:0.5min", "--users") == 0
    told = capsys.readouterr().err
    assert all(f"wrote {tmp_path / name}" in told for name in names)
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["job", "submit", "start", "end", "machine", "procs"]
    assert [(row["job"], row["start"], row["end"]) for row in rows][:2] == [("1", "0", "4"), ("2", "4", "6")]
    assert read_swf(tmp_path / "s.swf").columns["wait_s"].tolist() == [0, 4, 0, 0, 0]
    assert written(tmp_path) == {*names, "small.swf"}


def test_a_full_disk_is_no_fault_of_the_command(
    capsys: Output, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert run(trace, "--out", trace.with_name("s.csv")) == 1
    assert capsys.readouterr().err.endswith("cannot write the schedule (No space left on device)\n")
    assert written(trace.parent) == {"small.swf"}


def test_several_schedules_have_queues_and_no_timeline(
    capsys: Output, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(trace, "--policy", "fcfs,easy", "--figures", tmp_path / "several") == 0
    monkeypatch.setattr("crosscast.report.schedule_figures.MOST_JOBS", 4)
    assert run(trace, "--figures", tmp_path / "many") == 0
    told = "timeline: jobs: expected at most 4 from 0 s to 35 s, found 5: draw a part"
    assert told in capsys.readouterr().err
    assert written(tmp_path) == {"small.swf", *(f"{name}/queue-length.png" for name in ("several", "many"))}


def test_several_machines_need_a_placement_fit_for_a_trace(
    capsys: Output, trace: Path, machines: Path
) -> None:
    machines.write_text(f"placement = 'random'\nseed = 3\n{MACHINES}")
    (found,) = listed(capsys, trace, "--machines", machines)["results"]
    assert sum(machine["jobs"] for machine in found["machines"]) == 5
    assert run(trace, "--machines", machines) == 0
    assert "by machine, easy" in capsys.readouterr().out


def test_json_of_placements_has_what_a_check_reads(capsys: Output, table: Path, machines: Path) -> None:
    names = ["round-robin", "random", "user", "model", "exact"]
    words = ("--placement", ",".join(names), "--jobs", "300", "--seed", "1")
    found = listed(capsys, table, "--machines", machines, *words)
    by_name = {each["placement"]: each for each in found["results"]}
    assert list(by_name) == names
    for result in found["results"]:
        assert set(RESULT) <= set(result)
        assert result["jobs"] == sum(machine["jobs"] for machine in result["machines"]) == 300
    times = {name: each["makespan_s"] for name, each in by_name.items()}
    against = by_name["model"]["makespan_against"]["user"]["value"]
    assert against == pytest.approx(times["model"] / times["user"] - 1)
    assert found["workload"]["submitted"] == "at once"


def test_the_table_of_placements_says_why_one_is_better(capsys: Output, table: Path, machines: Path) -> None:
    """Names of machines are printed as they are."""
    text = MACHINES.replace('name = "cpu"', 'name = "[bold]"\ndevice = "cpu"')
    machines.write_text(text.replace('name = "gpu"', 'name = "[/]"\ndevice = "gpu"'))
    assert run(table, "--machines", machines, "--jobs", "200", "--seed", "0:1", "--arrivals", "80%") == 0
    out = capsys.readouterr().out
    assert "200 jobs drawn with replacement from 8 types (seeds 0 to 1), submitted" in out
    assert "apart on average (Poisson)" in out
    assert "on [bold] (6), [/] (3, GPU); easy with exact estimates" in out
    assert all(out.count(f"\n{name} ") == 2 for name in PLACEMENTS)
    assert all(heading in out for heading in ("vs user, %", "vs exact, %", "fastest", "work"))


def test_fifty_thousand_jobs_are_drawn_unless_said_or_the_rows_have_times(
    capsys: Output, table: Path, machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PUBLISHED_JOBS == 50_000
    monkeypatch.setattr(placements, "PUBLISHED_JOBS", 500)
    words = ("--machines", machines, "--placement", "user")
    assert listed(capsys, table, *words)["results"][0]["jobs"] == 500
    write_table(table, submit_s=np.arange(8.0)[::-1].copy())
    found = listed(capsys, table, *words, "--estimates", "predicted")
    assert found["results"][0]["jobs"] == 8
    assert found["workload"]["submitted"] == "as the trace says"


def test_files_of_a_placement_are_written(table: Path, machines: Path, tmp_path: Path) -> None:
    words = ("--machines", machines, "--jobs", "50", "--placement", "model", "--arrivals", "0.5")
    assert run(table, *words, "--out", tmp_path / "o.csv", "--figures", tmp_path / "figures") == 0
    names = ("timeline.png", "queue-length.png", "placements.png")
    assert all((tmp_path / "figures" / name).stat().st_size > 500 for name in names)
    with (tmp_path / "o.csv").open() as file:
        assert {row["machine"] for row in csv.DictReader(file)} == {"cpu", "gpu"}


def test_a_gavel_trace_is_placed_without_predictions(capsys: Output, machines: Path, tmp_path: Path) -> None:
    speeds = [f"simulation_throughputs,{kind},net,1,{speed}" for kind, speed in (("cpu", 1), ("gpu", 10))]
    (tmp_path / "speeds.csv").write_text("\n".join(["file,gpu,job,gpus,steps_per_s", *speeds]) + "\n")
    rows = [f"net\tpython3 x\t.\t-n\t{100 + place}\t{5 * place}\t1\n" for place in range(4)]
    (tmp_path / "jobs.trace").write_text("".join(rows))
    words = (tmp_path / "jobs.trace", tmp_path / "speeds.csv", "--machines", machines)
    found = listed(capsys, *words)
    names = "round-robin random user exact exact-near exact-completion"
    assert [each["placement"] for each in found["results"]] == names.split()
    (note,) = found["workload"]["notes"]
    assert note == "user: all jobs are for GPUs: users take no machine of the other kind"
    told = Command.of("simulate placements").refusal(capsys, *words, "--placement", "model")
    assert "expected predicted times for placement model" in told
