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
from crosscast.cluster.swf import read_swf
from crosscast.commands import placements
from support.commands import Output
from support.workshop import MACHINES, write_table, write_trace

RESULT = "jobs makespan_s average_bounded_slowdown mean_wait_s utilisation simulation_s jobs_per_s".split()


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "small.swf"
    write_trace(path)
    return str(path)


@pytest.fixture
def machines(tmp_path: Path) -> str:
    path = tmp_path / "machines.toml"
    path.write_text(MACHINES)
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "jobs.parquet"
    write_table(path)
    return str(path)


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("policies", "missing.swf --machines machines.toml", "missing.swf"),
        ("policies", "small.swf --search carbon", "carbon: expected a budget of power"),
        ("placements", "missing.swf --machines machines.toml", "missing.swf"),
    ],
)
def test_all_is_checked_before_the_simulator_is_compiled(
    command: str, words: str, message: str, trace: str, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    def compiled(*_: object) -> None:
        raise AssertionError("the simulator was loaded for what will be refused")

    for module in ("simulate", "placements"):
        monkeypatch.setattr(f"crosscast.commands.{module}.load_simulator", compiled)
    monkeypatch.chdir(Path(trace).parent)
    assert main(["simulate", command, *words.split()]) == 2
    assert message in capsys.readouterr().err


def run(*words: str) -> int:
    command = "placements" if Path(words[0]).suffix in (".parquet", ".trace") else "policies"
    return main(["simulate", command, *words])


def listed(capsys: Output, *words: str) -> dict[str, Any]:
    assert run(*words, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refusal(capsys: Output, *words: str) -> str:
    assert run(*words) == 2
    captured = capsys.readouterr()
    assert not captured.out
    sentence = captured.err.splitlines()[-1]
    assert sentence.startswith("crosscast: ")
    return sentence.removeprefix("crosscast: ")


def test_json_of_a_trace_has_what_a_check_reads(capsys: Output, trace: str) -> None:
    found = listed(capsys, trace)
    (result,) = found["results"]
    assert set(RESULT) <= set(result)
    assert (result["policy"], result["queue"], result["backfill"]) == ("easy", "fcfs", "fcfs")
    assert (result["jobs"], result["makespan_s"], result["mean_wait_s"]) == (5, 35.0, 4 / 5)
    assert result["utilisation"] == pytest.approx((4 * 3 + 2 * 4 + 3 + 9 + 25) / (5 * 35))
    assert found["trace"]["left_out"] == {"cancelled before the start": 1}
    assert found["trace"]["machines"] == [{"machine": "small", "procs": 5}]
    assert "users" not in result


def test_policies_and_orders_are_compared_in_all_combinations(capsys: Output, trace: str) -> None:
    words = ("--policy", "fcfs,easy", "--backfill", "fcfs,widest", "--priority", "fcfs,shortest")
    found = listed(capsys, trace, *words)
    assert [(each["policy"], each["queue"], each["backfill"]) for each in found["results"]] == [
        ("fcfs", "fcfs", None),
        ("fcfs", "shortest", None),
        ("easy", "fcfs", "fcfs"),
        ("easy", "fcfs", "widest"),
        ("easy", "shortest", "fcfs"),
        ("easy", "shortest", "widest"),
    ]
    waits = [each["mean_wait_s"] for each in found["results"]]
    assert waits[0] > waits[2]


def test_the_best_of_a_grid_is_found_and_listed_first(capsys: Output, trace: str) -> None:
    found = listed(capsys, trace, "--search", "mean-wait")
    waits = [each["mean_wait_s"] for each in found["results"]]
    assert len(waits) == 15
    assert waits == sorted(waits)
    assert found["trace"]["best"]["objective"] == "mean-wait"
    assert found["results"][0]["against"] is None
    assert [
        each["policy"]
        for each in listed(capsys, trace, "--search", "makespan", "--policy", "fcfs")["results"]
    ] == ["fcfs"] * 3
    assert run(trace, "--search", "slowdown", "--policy", "easy", "--backfill", "fcfs") == 0
    assert "Best by slowdown: easy" in capsys.readouterr().out


def test_maintenance_is_of_the_file_of_machines(capsys: Output, trace: str, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    machine = "[[machine]]\nname = 'm'\nprocs = 5\nactive_w = 10\n"
    path.write_text(machine + "[[reservation]]\nname = 'r'\nmachine = 'm'\nstart = 1\nend = '1h'\n")
    (result,) = listed(capsys, trace, "--machines", str(path), "--policy", "conservative")["results"]
    assert result["makespan_s"] > 3600
    assert result["backfill"] is None


def test_files_of_a_schedule_are_written(capsys: Output, trace: str, tmp_path: Path) -> None:
    words = ["--out", str(tmp_path / "s.csv"), "--out", str(tmp_path / "s.swf")]
    words += ["--figures", str(tmp_path / "figures"), "--window", "2s:0.5min", "--users"]
    assert run(trace, *words) == 0
    told = capsys.readouterr().err
    names = ("s.csv", "s.swf", "figures/timeline.png", "figures/queue-length.png")
    assert all(f"wrote {tmp_path / name}" in told for name in names)
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["job", "submit", "start", "end", "machine", "procs"]
    assert [(row["job"], row["start"], row["end"]) for row in rows][:2] == [("1", "0", "4"), ("2", "4", "6")]
    again = read_swf(tmp_path / "s.swf")
    assert again.columns["wait_s"].tolist() == [0, 4, 0, 0, 0]
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {*names, "small.swf"}


def test_a_full_disk_is_no_fault_of_the_command(
    capsys: Output, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert run(trace, "--out", str(tmp_path / "s.csv")) == 1
    assert capsys.readouterr().err.endswith("cannot write the schedule (No space left on device)\n")
    assert [path.name for path in tmp_path.iterdir()] == ["small.swf"]


def test_several_schedules_have_queues_and_no_timeline(
    capsys: Output, trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(trace, "--policy", "fcfs,easy", "--figures", str(tmp_path / "several")) == 0
    assert [path.name for path in (tmp_path / "several").iterdir()] == ["queue-length.png"]
    monkeypatch.setattr("crosscast.report.schedule_figures.MOST_JOBS", 4)
    capsys.readouterr()
    assert run(trace, "--figures", str(tmp_path / "many")) == 0
    assert (
        "timeline: jobs: expected at most 4 from 0 s to 35 s, found 5: draw a part" in capsys.readouterr().err
    )
    assert [path.name for path in (tmp_path / "many").iterdir()] == ["queue-length.png"]


def test_several_machines_need_a_placement_fit_for_a_trace(capsys: Output, trace: str, machines: str) -> None:
    for place in ("round-robin", "random", "completion"):
        Path(machines).write_text(f"placement = '{place}'\nseed = 3\n{MACHINES}")
        found = listed(capsys, trace, "--machines", machines)
        assert sum(machine["jobs"] for machine in found["results"][0]["machines"]) == 5
    assert run(trace, "--machines", machines) == 0
    assert "by machine, easy" in capsys.readouterr().out


def test_json_of_placements_has_what_a_check_reads(capsys: Output, table: str, machines: str) -> None:
    words = ("--placement", "round-robin,random,user,model,exact", "--jobs", "300", "--seed", "1")
    found = listed(capsys, table, "--machines", machines, *words)
    assert [each["placement"] for each in found["results"]] == words[1].split(",")
    for result in found["results"]:
        assert set(RESULT) <= set(result)
        assert result["jobs"] == 300
        assert result["makespan_interval"] is None
        assert sum(machine["jobs"] for machine in result["machines"]) == 300
    by_name = {each["placement"]: each for each in found["results"]}
    assert by_name["model"]["makespan_s"] == by_name["exact"]["makespan_s"]
    against = by_name["model"]["makespan_against"]["user"]["value"]
    assert against == pytest.approx(by_name["model"]["makespan_s"] / by_name["user"]["makespan_s"] - 1)
    assert found["workload"]["submitted"] == "at once"
    assert found["workload"]["least_makespan_s"] <= min(each["makespan_s"] for each in found["results"])


def test_names_of_machines_are_printed_as_they_are(capsys: Output, table: str, machines: str) -> None:
    names = {"cpu": "[bold]", "gpu": "[/]"}
    text = MACHINES
    for device, name in names.items():
        text = text.replace(f'name = "{device}"', f'name = "{name}"\ndevice = "{device}"')
    Path(machines).write_text(text)
    assert run(table, "--machines", machines, "--jobs", "20") == 0
    out = capsys.readouterr().out
    assert "on [bold] (6), [/] (3, GPU)" in out
    assert out.count("[bold]") == 2


def test_the_table_of_placements_says_why_one_is_better(capsys: Output, table: str, machines: str) -> None:
    assert run(table, "--machines", machines, "--jobs", "200", "--seed", "0:1", "--arrivals", "80%") == 0
    out = capsys.readouterr().out
    assert "200 jobs drawn with replacement from 8 types (seeds 0 to 1), submitted" in out
    assert "apart on average (Poisson)" in out
    assert "on cpu (6), gpu (3, GPU); easy with exact estimates" in out
    for name in PLACEMENTS:
        assert out.count(f"\n{name} ") == 2
    for heading in ("vs user, %", "vs exact, %", "fastest", "work", "cpu", "gpu"):
        assert heading in out


def test_fifty_thousand_jobs_are_drawn_unless_said_or_the_rows_have_times(
    capsys: Output, table: str, machines: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PUBLISHED_JOBS == 50_000
    monkeypatch.setattr(placements, "PUBLISHED_JOBS", 500)
    words = ("--machines", machines, "--placement", "user")
    assert listed(capsys, table, *words)["results"][0]["jobs"] == 500
    timed = tmp_path / "timed.parquet"
    write_table(timed, submit_s=np.arange(8.0)[::-1].copy())
    found = listed(capsys, str(timed), *words, "--estimates", "predicted")
    assert found["results"][0]["jobs"] == 8
    assert found["workload"]["submitted"] == "as the trace says"


def test_files_of_a_placement_are_written(capsys: Output, table: str, machines: str, tmp_path: Path) -> None:
    words = (table, "--machines", machines, "--jobs", "50", "--placement", "model", "--arrivals", "0.5")
    assert run(*words, "--out", str(tmp_path / "o.csv"), "--figures", str(tmp_path / "figures")) == 0
    names = ("timeline.png", "queue-length.png", "placements.png")
    assert all((tmp_path / "figures" / name).stat().st_size > 500 for name in names)
    with (tmp_path / "o.csv").open() as file:
        assert {row["machine"] for row in csv.DictReader(file)} == {"cpu", "gpu"}


def test_a_gavel_trace_is_placed_without_predictions(capsys: Output, machines: str, tmp_path: Path) -> None:
    speeds = [f"simulation_throughputs,{kind},net,1,{speed}" for kind, speed in (("cpu", 1), ("gpu", 10))]
    (tmp_path / "speeds.csv").write_text("\n".join(["file,gpu,job,gpus,steps_per_s", *speeds]) + "\n")
    line = "net\tpython3 x\t.\t-n\t{steps}\t{arrival}\t1"
    rows = [line.format(steps=100 + place, arrival=5 * place) for place in range(4)]
    (tmp_path / "jobs.trace").write_text("\n".join(rows) + "\n")
    words = (str(tmp_path / "jobs.trace"), str(tmp_path / "speeds.csv"), "--machines", machines)
    found = listed(capsys, *words)
    placements = "round-robin random user exact exact-near exact-completion"
    assert [each["placement"] for each in found["results"]] == placements.split()
    assert found["workload"]["notes"] == [
        "user: all jobs are for GPUs: users take no machine of the other kind"
    ]
    assert "expected predicted times for placement model" in refusal(capsys, *words, "--placement", "model")
