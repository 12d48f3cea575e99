"""Campaigns: failures are recorded and the rest goes on; what is done is not done again."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.dataset import Dataset, parts, read_dataset, write_part
from crosscast.data.description import describe
from crosscast.data.profiles import PROFILES
from crosscast.data.schema import DEVICES, SESSIONS, Schema
from crosscast.data.table import table_of
from crosscast.errors import CheckFailed, DeviceFault, EnvironmentFault, InputError, MissingExtraError
from crosscast.measure import campaign, inventory
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import devices, find
from crosscast.measure.processes import CharacterizeJob, DescribeJob, InstructionMixJob, Job
from crosscast.measure.session import session_row
from crosscast.measure.subjects import Settings, SuiteProblem, identity
from crosscast.suite.application import TYPICAL, selected
from support.examples import one_in
from support.refusals import refusals

Row = dict[str, Any]


class Machine:
    """Rows of jobs at once, instead of a process that measures; those of some names fail."""

    def __init__(self) -> None:
        self.failing: dict[str, Exception] = {}
        self.done: list[Job] = []
        self.energy_j: float | None = 1.0

    def __call__(self, job: Job, timeout_s: float) -> Row:
        assert not isinstance(job, InstructionMixJob)
        self.done.append(job)
        if isinstance(job, DescribeJob):
            self.fail(job.device)
            return {"device": known_row(find(job.device)) | {"launch_overhead_s": 1e-5}}
        assert isinstance(job.subject, SuiteProblem)
        subject = identity(job.subject)
        if isinstance(job, CharacterizeJob):
            self.fail(job.subject.name)
            made_for = {"parameters": dict(subject.parameters), "seed": subject.seed}
            row = {"application": subject.name, "size": subject.size, "invocation": 0}
            row |= {"program": json.dumps({"sha256": subject.program.sha256})}
            row |= {"launch": json.dumps({"problem": made_for})}
            return {"profiles": [{**row, "kernel": kernel} for kernel in subject.kernels]}
        self.fail(f"{job.subject.name} on {job.device}")
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

    def fail(self, name: str) -> None:
        if name in self.failing:
            raise self.failing[name]

    def kinds(self) -> list[str]:
        """Kinds of the jobs since the last time."""
        found = [type(job).__name__ for job in self.done]
        self.done.clear()
        return found


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(inventory, "run_job", found)
    return found


def plan(*applications: object, **options: Any) -> campaign.CampaignPlan:
    names = [str(name) for name in applications] or ["crc", "gem"]
    settings = options.pop("settings", Settings(min_runs=2, min_time_s=0.0, sensor="none"))
    return campaign.CampaignPlan(selected(names), ("tiny",), (devices()[0],), TYPICAL, settings, **options)


ONE = plan("crc", repeats=2)
Left = Callable[..., list[str]]
Interrupt = Callable[..., None]


def failed(dataset: Dataset) -> dict[str, str]:
    return {failure.application: failure.reason for failure in describe(dataset).failed}


def test_a_campaign_fills_all_tables_and_can_be_added_to(machine: Machine, tmp_path: Path) -> None:
    outcome = campaign.build(plan("crc"), tmp_path / "new")
    assert (outcome.done, outcome.kept, outcome.failures) == (3, 0, [])
    assert outcome.notes == [f"measure crc tiny on {devices()[0].id}: it was warm"]
    assert machine.kinds() == ["DescribeJob", "CharacterizeJob", "SessionJob"]
    outcome = campaign.build(plan("crc", "gem", repeats=2), tmp_path / "new")
    assert machine.kinds() == ["CharacterizeJob", *["SessionJob"] * 3]
    assert (outcome.done, outcome.kept) == (4, 3)
    dataset = read_dataset(tmp_path / "new")
    assert (dataset.devices.num_rows, dataset.profiles.num_rows) == (1, 2)
    assert dataset.records.num_rows == dataset.energy.num_rows == dataset.sessions.num_rows == 4
    assert (parts(tmp_path / "new"), describe(dataset).missing) == ((), ())


def test_a_failed_task_is_recorded_and_tried_again(machine: Machine, tmp_path: Path) -> None:
    device = devices()[0].id
    machine.failing |= {
        f"crc on {device}": CheckFailed("1 of 1 values are wrong"),
        "gem": InputError("gem: no"),
    }
    one, other = campaign.build(plan(), tmp_path).failures
    assert (one.task.label, other.task.label) == ("characterize gem tiny", f"measure crc tiny on {device}")
    dataset = read_dataset(tmp_path)
    assert failed(dataset) == {"crc": other.reason} == {"crc": "1 of 1 values are wrong"}
    assert "profile" in [missing.lacks for missing in describe(dataset).missing]
    assert dataset.records.column("application").to_pylist() == ["gem"]
    machine.failing.clear()
    machine.kinds()
    assert campaign.build(plan(), tmp_path).failures == []
    assert machine.kinds() == ["CharacterizeJob", "SessionJob"]
    assert failed(read_dataset(tmp_path)) == {}
    assert describe(read_dataset(tmp_path)).missing == ()


def test_a_device_that_is_lost_leaves_a_dataset_that_can_be_read(machine: Machine, tmp_path: Path) -> None:
    device = devices()[0].id
    for name in (device, f"crc on {device}", f"gem on {device}"):
        machine.failing[name] = DeviceFault("the device failed or was lost")
    outcome = campaign.build(plan(), tmp_path)
    assert [failure.task.kind for failure in outcome.failures] == ["describe", "measure", "measure"]
    dataset = read_dataset(tmp_path)
    assert failed(dataset).keys() == {"crc", "gem"}
    assert dataset.devices.column("launch_overhead_s").to_pylist() == [None]
    machine.failing.clear()
    assert campaign.build(plan(), tmp_path).done == 3
    assert read_dataset(tmp_path).devices.column("launch_overhead_s").to_pylist() == [1e-5]


def test_a_part_not_installed_ends_the_campaign_and_is_not_recorded(machine: Machine, tmp_path: Path) -> None:
    machine.failing[f"crc on {devices()[0].id}"] = MissingExtraError("suite", "checking")
    with pytest.raises(MissingExtraError, match=r"crosscast\[suite\]"):
        campaign.build(plan(), tmp_path)
    assert read_dataset(tmp_path).sessions.num_rows == 0
    machine.failing.clear()
    assert campaign.build(plan(), tmp_path).failures == []


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """A build into a folder that ends when a part of a table is written for the n-th time, from 0."""

    def build_until(folder: Path, table: str, number: int) -> None:
        count = iter(range(100))

        def fail(folder: Path, schema: Schema, name: str, rows: Any) -> Path:
            if schema.table == table and next(count) == number:
                raise KeyboardInterrupt
            return write_part(folder, schema, name, rows)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(campaign, "write_part", fail)
            campaign.build(plan(), folder)

    return build_until


def test_energy_of_a_try_that_was_killed_is_not_kept(
    machine: Machine, tmp_path: Path, interrupt: Interrupt
) -> None:
    interrupt(tmp_path, "sessions", 0)
    assert read_dataset(tmp_path).energy.num_rows == 1
    machine.energy_j = None
    campaign.build(plan(), tmp_path)
    dataset = read_dataset(tmp_path)
    assert (dataset.energy.num_rows, dataset.records.num_rows) == (0, 2)


@pytest.mark.parametrize("table", one_in(3, ["devices", "profiles", "records", "sessions"]))
def test_a_campaign_goes_on_where_it_was(
    machine: Machine, tmp_path: Path, interrupt: Interrupt, table: str
) -> None:
    interrupt(tmp_path / "a", table, 0 if table == "devices" else 1)
    campaign.build(plan(), tmp_path / "a")
    # Only the piece in progress is done again.
    assert len(machine.done) == 5 + 1
    campaign.build(plan(), tmp_path / "b")
    one, other = read_dataset(tmp_path / "a"), read_dataset(tmp_path / "b")
    assert describe(one).noise == describe(other).noise
    assert (tmp_path / "a/profiles.parquet").read_bytes() == (tmp_path / "b/profiles.parquet").read_bytes()


@pytest.mark.parametrize("sensor", ["magic", "replay:none.csv", "nvml"])
def test_a_sensor_that_does_not_work_is_refused_at_the_start(
    machine: Machine, tmp_path: Path, sensor: str
) -> None:
    kind = EnvironmentFault if sensor == "nvml" else InputError
    with pytest.raises(kind, match=r"sensor: expected one of|cannot read the recording|^nvml"):
        campaign.build(plan(settings=Settings(sensor=sensor)), tmp_path / "new")
    assert (machine.done, (tmp_path / "new").exists()) == ([], False)


def test_sessions_kept_with_less_than_is_wanted_now_are_a_note(machine: Machine, tmp_path: Path) -> None:
    campaign.build(plan("crc"), tmp_path)
    less = "kept that {} fewer than {} runs or less than {} s; measure them again in another folder"
    longer = campaign.build(plan(settings=Settings(2, 1.5, sensor="none")), tmp_path)
    assert longer.notes[0] == "1 session " + less.format("has", 2, 1.5)
    more = campaign.build(plan(settings=Settings(50, 0.0, sensor="none")), tmp_path)
    assert more.notes == ["2 sessions " + less.format("have", 50, 0)]
    assert campaign.build(plan("gem", settings=Settings(2, 1.5, sensor="none")), tmp_path).notes == []


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """What is to be done of the plan after its build, where the first row of a table has other cells then."""
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inventory, "run_job", Machine())
        campaign.build(ONE, folder)
    built = read_dataset(folder)

    def todo(schema: Schema = SESSIONS, plan: campaign.CampaignPlan = ONE, **cells: object) -> list[str]:
        first, *rest = getattr(built, schema.table).to_pylist()
        changed = replace(built, **{schema.table: table_of(schema, [first | cells, *rest])})
        return [
            task.label
            for task in campaign.tasks(plan, changed, campaign.CampaignOutcome())
            if not task.is_done
        ]

    return todo


@refusals("cells message")
def test_what_was_measured_otherwise_is_not_mixed(left: Left, cells: Row, message: str) -> None:
    schema = {"driver": DEVICES, "platform": DEVICES, "launch": PROFILES}.get(next(iter(cells)), SESSIONS)
    # On another device too: the profiles are for all.
    elsewhere = {"device": "elsewhere"} if schema is SESSIONS else {}
    with pytest.raises(InputError, match=message):
        left(schema, **cells, **elsewhere)


def test_failed_sessions_of_other_problems_are_done_again_and_others_do_not_matter(left: Left) -> None:
    (again,) = left(failure="wrong", source_sha256="ab")
    assert again.startswith("measure crc tiny")
    assert left(plan=replace(ONE, sizes=("small",)))[0] == "characterize crc small"
    # Profiles of another source are made again.
    assert left(PROFILES, program='{"sha256": "ab"}') == ["characterize crc tiny"]


@refusals("cells message")
def test_plans_that_cannot_be_are_refused(cells: Row, message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(ONE, **cells)
