"""Campaigns: failures are recorded and the rest goes on; what is done is not done again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.dataset import Dataset, parts, read_dataset, write_part
from crosscast.data.description import describe
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, SESSIONS
from crosscast.data.table import table_of
from crosscast.errors import CheckFailed, DeviceFault, EnvironmentFault, InputError, MissingExtraError
from crosscast.measure import campaign
from crosscast.measure.campaign import (
    CampaignOutcome,
    CampaignPlan,
    CampaignState,
    build,
    tasks,
)
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import devices, find
from crosscast.measure.processes import CharacterizeJob, DescribeJob, InstructionMixJob, Job, SessionJob
from crosscast.measure.session import session_row
from crosscast.measure.subjects import Settings, SuiteProblem, identity
from crosscast.suite.application import TYPICAL, Caches
from crosscast.suite.registry import selected
from support.examples import one_in
from support.refusals import refusal, refusals

Row = dict[str, Any]


class Machine:
    """Rows jobs at once, instead of a process that measures; some fail.

    Parameters
    ----------
    failing
        For each application or device that fails, what is raised.
    """

    def __init__(self) -> None:
        self.failing: dict[str, Exception] = {}
        self.done: list[Job] = []
        self.energy_j: float | None = 1.0

    def __call__(self, job: Job, timeout_s: float) -> Row:
        assert not isinstance(job, InstructionMixJob)
        self.done.append(job)
        name = job.device if isinstance(job, DescribeJob) else self._name(job)
        if name in self.failing:
            raise self.failing[name]
        if isinstance(job, DescribeJob):
            return {"device": known_row(find(job.device)) | {"launch_overhead_s": 1e-5}}
        subject = identity(self._problem(job))
        if isinstance(job, CharacterizeJob):
            made_for = {"parameters": dict(subject.parameters), "seed": subject.seed}
            row = {"application": subject.name, "size": subject.size, "invocation": 0}
            row |= {"program": json.dumps({"sha256": subject.program.sha256})}
            row |= {"launch": json.dumps({"problem": made_for})}
            return {"profiles": [{**row, "kernel": kernel} for kernel in subject.kernels]}
        session = session_row(subject, find(job.device), job.settings, job.repeat)
        cell = {n: session[n] for n in ("application", "size", "device", "configuration", "repeat")}
        record = {**cell, "run": 0, "invocations": 1, "time_s": [1e-3]}
        energy = {**cell, "sensor": "fake", "domain": "all", "energy_j": self.energy_j, "runs": 1}
        return {
            "session": session | {"runs": job.settings.min_runs, "loop_s": job.settings.min_time_s},
            "records": [{**record, "kernel": kernel} for kernel in subject.kernels],
            "energy": [] if self.energy_j is None else [energy],
            "notes": ["it was warm"],
        }

    def kinds(self) -> list[str]:
        return [type(job).__name__ for job in self.done]

    def _name(self, job: SessionJob | CharacterizeJob) -> str:
        name = self._problem(job).name
        return name if isinstance(job, CharacterizeJob) else f"{name} on {job.device}"

    def _problem(self, job: SessionJob | CharacterizeJob) -> SuiteProblem:
        assert isinstance(job.subject, SuiteProblem)
        return job.subject


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(campaign, "run_job", found)
    return found


def plan(*applications: object, **options: Any) -> CampaignPlan:
    names = [str(name) for name in applications] or ["crc", "gem"]
    settings = options.pop("settings", Settings(min_runs=2, min_time_s=0.0, sensor="none"))
    return CampaignPlan(selected(names), ("tiny",), (devices()[0],), TYPICAL, settings, **options)


def failed(dataset: Dataset) -> dict[str, str]:
    return {failure.application: failure.reason for failure in describe(dataset).failed}


def test_a_campaign_fills_all_tables_and_leaves_no_parts(machine: Machine, tmp_path: Path) -> None:
    outcome = build(plan(repeats=2), tmp_path / "new")
    dataset = read_dataset(tmp_path / "new")
    assert (outcome.done, outcome.kept, outcome.failures) == (7, 0, [])
    assert dataset.devices.num_rows == 1
    assert dataset.profiles.num_rows == 2
    assert dataset.records.num_rows == dataset.energy.num_rows == dataset.sessions.num_rows == 4
    assert (parts(tmp_path / "new"), describe(dataset).missing) == ((), ())
    assert outcome.notes[0] == f"measure crc tiny on {devices()[0].id}: it was warm"


def test_more_can_be_added(machine: Machine, tmp_path: Path) -> None:
    build(plan("crc"), tmp_path)
    machine.done.clear()
    outcome = build(plan("crc", "gem", repeats=2), tmp_path)
    assert machine.kinds() == ["CharacterizeJob", *["SessionJob"] * 3]
    assert (outcome.done, outcome.kept) == (4, 3)
    assert describe(read_dataset(tmp_path)).missing == ()


def test_a_failed_session_is_recorded_and_tried_again(machine: Machine, tmp_path: Path) -> None:
    device = devices()[0].id
    machine.failing[f"crc on {device}"] = CheckFailed("CRC-32: 1 of 1 values are wrong")
    outcome = build(plan(), tmp_path)
    ((label, reason),) = [(failure.task.label, failure.reason) for failure in outcome.failures]
    assert (label, reason) == (f"measure crc tiny on {device}", "CRC-32: 1 of 1 values are wrong")
    dataset = read_dataset(tmp_path)
    assert failed(dataset) == {"crc": reason}
    assert dataset.records.column("application").to_pylist() == ["gem"]
    machine.failing.clear()
    machine.done.clear()
    assert build(plan(), tmp_path).failures == []
    assert machine.kinds() == ["SessionJob"]
    assert failed(read_dataset(tmp_path)) == {}
    assert describe(read_dataset(tmp_path)).missing == ()


def test_a_failed_characterization_is_told_and_tried_again(machine: Machine, tmp_path: Path) -> None:
    machine.failing["crc"] = InputError("crc: no")
    outcome = build(plan(), tmp_path)
    assert [failure.task.label for failure in outcome.failures] == ["characterize crc tiny"]
    assert [missing.lacks for missing in describe(read_dataset(tmp_path)).missing] == ["profile"]
    machine.failing.clear()
    machine.done.clear()
    build(plan(), tmp_path)
    assert machine.kinds() == ["CharacterizeJob"]


def test_a_device_that_is_lost_leaves_a_dataset_that_can_be_read(machine: Machine, tmp_path: Path) -> None:
    device = devices()[0].id
    for name in (device, f"crc on {device}", f"gem on {device}"):
        machine.failing[name] = DeviceFault("the device failed or was lost")
    outcome = build(plan(), tmp_path)
    assert [failure.task.kind for failure in outcome.failures] == ["describe", "measure", "measure"]
    dataset = read_dataset(tmp_path)
    assert failed(dataset).keys() == {"crc", "gem"}
    assert dataset.devices.column("launch_overhead_s").to_pylist() == [None]
    machine.failing.clear()
    assert build(plan(), tmp_path).done == 3
    assert read_dataset(tmp_path).devices.column("launch_overhead_s").to_pylist() == [1e-5]


def test_a_part_not_installed_ends_the_campaign_and_is_not_recorded(machine: Machine, tmp_path: Path) -> None:
    machine.failing[f"crc on {devices()[0].id}"] = MissingExtraError("suite", "checking")
    with pytest.raises(MissingExtraError, match=r"crosscast\[suite\]"):
        build(plan(), tmp_path)
    assert read_dataset(tmp_path).sessions.num_rows == 0
    machine.failing.clear()
    assert build(plan(), tmp_path).failures == []


def interrupt_at(monkeypatch: pytest.MonkeyPatch, table: str, number: int, error: BaseException) -> None:
    """Let writing a part of a table fail at its n-th time, from 0."""
    count = iter(range(100))

    def fail(folder: Path, schema: Any, name: str, rows: Any) -> Path:
        if schema.table == table and next(count) == number:
            raise error
        return write_part(folder, schema, name, rows)

    monkeypatch.setattr(campaign, "write_part", fail)


def test_energy_of_a_try_that_was_killed_is_not_kept(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(patch, "sessions", 0, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            build(plan(), tmp_path)
    assert read_dataset(tmp_path).energy.num_rows == 1
    machine.energy_j = None
    build(plan(), tmp_path)
    dataset = read_dataset(tmp_path)
    assert (dataset.energy.num_rows, dataset.records.num_rows) == (0, 2)


@pytest.mark.parametrize("table", one_in(3, ["devices", "profiles", "records", "sessions"]))
def test_a_campaign_goes_on_where_it_was(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    number = 0 if table == "devices" else 1
    with monkeypatch.context() as patch:
        interrupt_at(patch, table, number, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            build(plan(), tmp_path / "a")
    before = len(machine.done)
    build(plan(), tmp_path / "a")
    # Only the piece in progress is done again.
    assert len(machine.done) == 5 + 1
    assert before + len(machine.done[before:]) == 6
    build(plan(), tmp_path / "b")
    one, other = read_dataset(tmp_path / "a"), read_dataset(tmp_path / "b")
    assert describe(one).noise == describe(other).noise
    assert (tmp_path / "a/profiles.parquet").read_bytes() == (tmp_path / "b/profiles.parquet").read_bytes()


@pytest.mark.parametrize(
    ("sensor", "kind", "message"),
    [
        ("magic", InputError, "sensor: expected one of"),
        ("replay:none.csv", InputError, "none.csv: cannot read the recording"),
        ("nvml", EnvironmentFault, "nvml"),
    ],
)
def test_a_sensor_that_does_not_work_is_refused_at_the_start(
    machine: Machine, tmp_path: Path, sensor: str, kind: type[Exception], message: str
) -> None:
    if devices()[0].type != "cpu":
        pytest.skip("the first device is no CPU")
    with pytest.raises(kind, match=message):
        build(plan(settings=Settings(sensor=sensor)), tmp_path / "new")
    assert (machine.done, (tmp_path / "new").exists()) == ([], False)


def test_sessions_kept_with_less_than_is_wanted_now_are_a_note(machine: Machine, tmp_path: Path) -> None:
    build(plan("crc"), tmp_path)
    less = "kept that {} fewer than {} runs or less than {} s; measure them again in another folder"
    longer = build(plan(settings=Settings(2, 1.5, sensor="none")), tmp_path)
    assert longer.notes[0] == "1 session " + less.format("has", 2, 1.5)
    more = build(plan(settings=Settings(50, 0.0, sensor="none")), tmp_path)
    assert more.notes == ["2 sessions " + less.format("have", 50, 0)]
    assert build(plan("gem", settings=Settings(2, 1.5, sensor="none")), tmp_path).notes == []


def test_the_time_left_is_guessed_with_the_least_time_of_runs_and_follows_from_what_was_done(
    machine: Machine, tmp_path: Path
) -> None:
    def told(min_time_s: float) -> list[CampaignState]:
        states: list[CampaignState] = []
        settings = Settings(2, min_time_s, sensor="none")
        build(plan(settings=settings), tmp_path / str(min_time_s), states.append)
        return states

    states = told(0.0)
    assert told(30.0)[0].left_s - states[0].left_s == pytest.approx(2 * 30)
    assert [(state.done, state.total) for state in states] == [(number, 5) for number in range(5)]
    # Both were quick, so the second of its kind is no longer a guess.
    assert states[-1].left_s < 1 < states[0].left_s


@pytest.fixture
def one() -> CampaignPlan:
    """One application at one size on one device, in two processes."""
    return CampaignPlan(selected(["crc"]), ("tiny",), (devices()[0],), TYPICAL, Settings(), repeats=2)


def rows(one: CampaignPlan) -> tuple[Row, Row, list[Row]]:
    """What a finished build of the plan holds: device, profile, sessions."""
    subject, device = identity(one.problem("crc", "tiny")), one.devices[0]
    where = {"application": "crc", "size": "tiny"}
    origin = {"parameters": dict(subject.parameters), "seed": subject.seed}
    described = {
        "device": device.key,
        "name": device.name,
        "type": device.type,
        "platform": device.platform,
        "driver": device.driver,
        "launch_overhead_s": 1e-5,
        "sources": "{}",
    }
    profile = {
        **where,
        "kernel": "crc32_slice8",
        "invocation": 0,
        "launch": json.dumps({"problem": origin}),
        "program": json.dumps({"sha256": subject.program.sha256}),
    }
    session = {
        **where,
        "device": device.key,
        "configuration": "{}",
        "kernels": "[]",
        "parameters": json.dumps(origin["parameters"]),
        "seed": 0,
        "source_sha256": subject.program.sha256,
    }
    return described, profile, [{**session, "repeat": repeat} for repeat in range(2)]


def dataset(described: Row, profile: Row, sessions: list[Row]) -> Dataset:
    return Dataset(
        "mine",
        devices=table_of(DEVICES, [described]),
        profiles=table_of(PROFILES, [profile]),
        sessions=table_of(SESSIONS, sessions),
    )


def missing(one: CampaignPlan, dataset: Dataset) -> list[str]:
    """What is to be done of a plan."""
    return [task.label for task in tasks(one, dataset, CampaignOutcome()) if not task.is_done]


def test_tasks_are_devices_then_profiles_then_sessions(one: CampaignPlan) -> None:
    one = replace(one, applications=selected(["crc", "gem"]), sizes=("tiny", "small"))
    found = tasks(one, Dataset("new"), CampaignOutcome())
    assert [task.kind for task in found] == ["describe", *["characterize"] * 4, *["measure"] * 8]
    assert [task.label for task in found[:2]] == [f"describe {one.devices[0].id}", "characterize crc tiny"]
    assert found[5].label == f"measure crc tiny on {one.devices[0].id}"


@refusals("cells message")
def test_sessions_of_other_problems_are_not_mixed(one: CampaignPlan, cells: Row, message: str) -> None:
    described, profile, sessions = rows(one)
    # On another device too: the profiles are for all.
    sessions[0] |= {"device": "elsewhere", **cells}
    with pytest.raises(InputError, match=message):
        missing(one, dataset(described, profile, sessions))


def test_failed_sessions_of_other_problems_are_done_again(one: CampaignPlan) -> None:
    described, profile, sessions = rows(one)
    sessions[0] |= {"failure": "wrong", "source_sha256": "ab"}
    assert len(missing(one, dataset(described, profile, sessions))) == 1


@pytest.mark.parametrize("column", ["driver", "platform"])
def test_devices_with_another_driver_are_not_mixed(one: CampaignPlan, column: str) -> None:
    described, profile, sessions = rows(one)
    described[column] = "old"
    with pytest.raises(InputError, match=f"was measured with the OpenCL {column} 'old'"):
        missing(one, dataset(described, profile, sessions))


def test_profiles_of_another_source_are_made_again(one: CampaignPlan) -> None:
    described, profile, sessions = rows(one)
    for session in sessions:
        session["failure"] = "wrong"
    profile["program"] = '{"sha256": "ab"}'
    todo = missing(one, dataset(described, profile, sessions))
    assert "characterize crc tiny" in todo


def test_profiles_from_elsewhere_are_not_mixed(one: CampaignPlan) -> None:
    described, profile, sessions = rows(one)
    profile["launch"] = "{}"
    with pytest.raises(InputError, match="mine: the profiles of crc tiny come from elsewhere"):
        missing(one, dataset(described, profile, sessions))


def test_what_is_not_in_the_plan_does_not_matter(one: CampaignPlan) -> None:
    described, profile, sessions = rows(one)
    assert missing(replace(one, sizes=("small",)), dataset(described, profile, sessions))[0] == (
        "characterize crc small"
    )


def test_sizes_are_measured_by_the_caches_of_the_plan(one: CampaignPlan) -> None:
    larger = replace(one, caches=Caches(64 << 10, 1 << 20, 1 << 24))
    assert larger.problem("crc", "tiny").parameters["bytes"] > one.problem("crc", "tiny").parameters["bytes"]


def test_a_plan_measures_once_at_least(one: CampaignPlan) -> None:
    assert "repeats: expected at least 1, found 0" in refusal(replace, one, repeats=0)
    for seed in (-1, 1 << 63):
        with pytest.raises(InputError, match=f"seed: expected a number from 0 to .*, found {seed}"):
            replace(one, seed=seed)
