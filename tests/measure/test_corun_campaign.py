"""Campaigns of mixes: what is done is not done again, failures are kept, and drift is told."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.corun import co_runs
from crosscast.data.dataset import Dataset, parts, read_dataset
from crosscast.data.schema import MIXES
from crosscast.data.table import table_of
from crosscast.errors import CheckFailed, InputError, MissingExtraError
from crosscast.measure import host_state, inventory
from crosscast.measure.campaign import CampaignState
from crosscast.measure.corun import CoRunSettings, JobWork, MixRun, campaign, profile
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import devices, find
from crosscast.measure.processes import DescribeJob, InstructionMixJob, Job, label_of
from crosscast.suite.application import TYPICAL, selected
from support.measuring import MadeCrew, name_of
from support.refusals import refusal, refusals
from support.tables import dataset, isolated_run, mix

CPU = devices()[0]


class Machine:
    """Answers jobs at once, and gives the same crew for every device."""

    def __init__(self) -> None:
        self.crew = MadeCrew({"crc": 0.01, "gem": 0.02}, presses={"crc": 1.5, "gem": 1.2})
        self.failing: dict[str, Exception] = {}
        self.characterized: list[str] = []

    def job(self, job: Job, timeout_s: float) -> dict[str, Any]:
        if isinstance(job, DescribeJob):
            return {"device": known_row(find(job.device)) | {"launch_overhead_s": 1e-5}}
        assert isinstance(job, InstructionMixJob)
        self.characterized.append(label_of(job))
        if "mix" in self.failing:
            raise self.failing["mix"]
        return {"mix": {"mem": 0.25, "alu": 0.5}}

    def before(self, mixes: int, change: Callable[[], object]) -> Callable[[list[JobWork]], MixRun]:
        """Do something before each run after so many mixes."""
        whole = self.crew.run

        def run(works: list[JobWork]) -> MixRun:
            if len(self.mixes()) == mixes:
                change()
            return whole(works)

        return run

    def mixes(self) -> list[tuple[str, ...]]:
        """Mixes without stressors, of two or more."""
        levels = {"low", "medium", "high"}
        return [mix for mix in self.crew.mixes if len(mix) > 1 and not levels & set(mix)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    for module in (inventory, profile):
        monkeypatch.setattr(module, "run_job", found.job)
    monkeypatch.setattr(host_state, "doubts", list)
    monkeypatch.setattr(campaign, "Crew", lambda device, settings: found.crew)
    return found


def plan(*applications: object, **options: Any) -> campaign.CoRunPlan:
    names = [str(name) for name in applications] or ["crc", "gem"]
    settings = options.pop("settings", CoRunSettings(sensor="none"))
    return campaign.CoRunPlan(
        selected(names), options.pop("sizes", ("tiny",)), CPU, TYPICAL, settings, **{"mixes": (2,), **options}
    )


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = getattr(read_dataset(folder), table).to_pylist()
    return found


def test_a_campaign_measures_applications_alone_and_all_mixes(machine: Machine, tmp_path: Path) -> None:
    machine.crew.powers_w = {"package-0": 20.0}
    outcome = campaign.run_corun_campaign(plan(), tmp_path / "new")
    assert (outcome.done, outcome.kept, outcome.failures) == (6, 0, [])
    assert outcome.notes[0].startswith(f"stressors on {CPU.id}: low 100 GB/s, medium 20 GB/s")
    assert machine.mixes() == [("crc", "crc"), ("crc", "gem"), ("gem", "gem")]
    found = co_runs(read_dataset(tmp_path / "new"))
    assert [each.name for each in found.isolated_runs] == ["crc tiny", "gem tiny"]
    mixed = found.mixes[1]
    assert (mixed.name, len(found.mixes)) == ("crc tiny + gem tiny", 3)
    assert [member.slowdown for member in mixed.members] == pytest.approx([1.2, 1.5])
    assert mixed.isolated_runs == found.isolated_runs
    assert (mixed.overlap, mixed.fits, mixed.power_w) == (0.75, True, 40.0)
    assert mixed.time_s == pytest.approx(1.1 * 4 * 0.02 * 1.5)
    assert parts(tmp_path / "new") == ()
    assert len(rows(tmp_path / "new", "devices")) == 1
    crc, _ = rows(tmp_path / "new", "isolated_runs")
    features = json.loads(crc["features"])
    assert (features["mix_mem"], features["slowdown_high"]) == (0.25, 2.0)
    assert features["inflicted_high"] == pytest.approx(1.5)
    assert (crc["runs"], crc["time_s"], crc["power_w"]) == (4, pytest.approx(0.04), 20.0)
    environment = json.loads(crc["environment"])
    assert environment["problem"]["parameters"] == dict(plan().problem(plan().sized[0]).parameters)
    assert set(environment["microbenchmarks"]["levels"]) == {"low", "medium", "high"}


def test_larger_mixes_are_added_without_measuring_isolated_runs(machine: Machine, tmp_path: Path) -> None:
    campaign.run_corun_campaign(plan(), tmp_path)
    machine.crew.mixes.clear()
    outcome = campaign.run_corun_campaign(plan(mixes=(2, 3), most_mixes=3), tmp_path)
    assert (outcome.done, outcome.kept) == (3, 6)
    assert {len(mix) for mix in machine.mixes()} == {3}
    # Their times alone are old by then, and taken again once; at the end there is the last look for drift.
    alone = [mix for mix in machine.crew.mixes if len(mix) == 1]
    assert sorted(alone) == [("crc",), ("crc",), ("gem",), ("gem",)]


def test_slowdowns_are_over_the_median_time_alone(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "_STALE_S", -1.0)
    slower = partial(machine.crew.times_s.update, {"crc": 0.02, "gem": 0.04})
    monkeypatch.setattr(machine.crew, "run", machine.before(1, slower))
    campaign.run_corun_campaign(plan(), tmp_path)
    found = {(row["mix"], row["position"]): row["slowdown"] for row in rows(tmp_path, "mixes")}
    # Alone, jobs take 0.04 and 0.08 s at first, and twice as long from the second mix on.
    assert [row["time_s"] for row in rows(tmp_path, "isolated_runs")] == pytest.approx([0.06, 0.12])
    assert found["crc tiny + crc tiny", 0] == pytest.approx(1.5 * 0.04 / 0.06)
    assert found["crc tiny + gem tiny", 0] == pytest.approx(1.2 * 0.08 / 0.06)
    assert found["gem tiny + gem tiny", 1] == pytest.approx(1.2 * 0.16 / 0.12)


def test_a_mix_with_one_that_fails_is_kept(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.crew.run

    def failing(works: list[JobWork]) -> MixRun:
        names = [name_of(work.subject) for work in works]
        machine.crew.failing = {"gem": "gem tiny: it hangs"} if names == ["crc", "gem"] else {}
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", failing)
    outcome = campaign.run_corun_campaign(plan(), tmp_path)
    (failure,) = outcome.failures
    assert (failure.task.label, failure.reason) == (f"crc tiny + gem tiny on {CPU.id}", "gem tiny: it hangs")
    crc, gem = (row for row in rows(tmp_path, "mixes") if row["mix"] == "crc tiny + gem tiny")
    assert (crc["failure"], gem["failure"]) == (None, "gem tiny: it hangs")
    assert crc["slowdown"] == pytest.approx(1.2)
    assert (gem["slowdown"], crc["fits"], gem["mix_time_s"]) == (None, None, None)
    # It is tried again.
    monkeypatch.setattr(machine.crew, "run", whole)
    machine.crew.failing = {}
    outcome = campaign.run_corun_campaign(plan(), tmp_path)
    assert (outcome.done, outcome.kept, outcome.failures) == (1, 5, [])


def test_mixes_of_an_application_that_fails_alone_are_left_out(machine: Machine, tmp_path: Path) -> None:
    machine.crew.failing = {"gem": "gem tiny: was killed by SIGSEGV"}
    reasons = [failure.reason for failure in campaign.run_corun_campaign(plan(), tmp_path).failures]
    assert reasons == ["gem tiny: was killed by SIGSEGV", *["left out, as it fails alone: gem tiny"] * 2]
    assert machine.mixes() == [("crc", "crc")]
    crc, gem = rows(tmp_path, "isolated_runs")
    assert (crc["failure"], gem["failure"], gem["time_s"]) == (None, reasons[0], None)
    assert len(co_runs(read_dataset(tmp_path)).isolated_runs) == 1


def test_changed_times_are_told(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slower = partial(machine.crew.times_s.update, {"crc": 0.012, "gem": 0.026})
    monkeypatch.setattr(machine.crew, "run", machine.before(3, slower))
    *_, note = campaign.run_corun_campaign(plan(), tmp_path).notes
    assert note == (
        "times alone, measured again at the end: 1.25 times those before (median of 2), 1.3 times for "
        "gem tiny; the machine changed meanwhile, so times are doubtful"
    )


def test_an_application_that_cannot_be_characterized_has_no_mix(machine: Machine, tmp_path: Path) -> None:
    machine.failing["mix"] = CheckFailed("sum: it is wrong")
    outcome = campaign.run_corun_campaign(plan(), tmp_path)
    assert outcome.failures == []
    assert "crc tiny: no instruction mix: sum: it is wrong" in outcome.notes
    assert "mix_" not in rows(tmp_path, "isolated_runs")[0]["features"]
    machine.characterized.clear()
    campaign.run_corun_campaign(plan(characterize=False), tmp_path / "without")
    assert machine.characterized == []
    machine.failing["mix"] = MissingExtraError("suite", "checking results of the suite")
    with pytest.raises(MissingExtraError):
        campaign.run_corun_campaign(plan(), tmp_path / "lacking")


def test_other_ways_of_sharing_are_measured(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def until_the_end(state: CampaignState) -> None:
        if state.label.endswith("alone again"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        campaign.run_corun_campaign(plan(), tmp_path, until_the_end)
    whole = machine.crew.run
    monkeypatch.setattr(campaign, "sharing", lambda device, threads: {"sharing": "mps"})
    monkeypatch.setattr(machine.crew, "run", lambda works: replace(whole(works), sharing={"sharing": "mps"}))
    outcome = campaign.run_corun_campaign(plan(), tmp_path)
    assert (outcome.done, outcome.kept) == (3, 3)
    found = Counter(row["configuration"] for row in rows(tmp_path, "mixes"))
    assert found == {"{}": 6, '{"sharing": "mps"}': 6}
    assert campaign.run_corun_campaign(plan(), tmp_path).kept == 6


def test_applications_with_other_limits_of_threads_are_not_mixed(machine: Machine, tmp_path: Path) -> None:
    campaign.run_corun_campaign(plan(), tmp_path)
    limited = plan(settings=CoRunSettings(sensor="none", threads=1))
    assert "crc tiny was measured with all threads, and now has threads: 1: choose another" in refusal(
        campaign.run_corun_campaign, limited, tmp_path
    )


@refusals("options message")
def test_wrong_numbers_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(**options)


def test_the_plan_says_how_many_mixes_there_are_and_how_many_it_takes() -> None:
    found = plan("all", sizes=("tiny", "small"), mixes=(2, 3), most_mixes=500)
    assert found.text == (
        "applications at sizes: 28; mixes of 2: 406; mixes of 3: 500 of 4,060 (seed 0); 935 tasks, roughly "
        "50 min 54 s"
    )
    assert len(list(found.chosen())) == 406 + 500


@given(things=st.integers(1, 7), size=st.integers(1, 5), most=st.integers(1, 60), seed=st.integers(0, 99))
def test_mixes_are_those_of_itertools_and_lots_have_some(
    things: int, size: int, most: int, seed: int
) -> None:
    expected = list(combinations_with_replacement(range(things), size))
    assert campaign.drawn(things, size, None, 0) == expected
    assert campaign.combinations(things, size) == len(expected)
    assert [campaign.combination(things, size, number) for number in range(len(expected))] == expected
    chosen = campaign.drawn(things, size, most, seed)
    assert len(set(chosen)) == len(chosen) == min(most, len(expected))
    assert campaign.drawn(28, 3, 10, seed) != campaign.drawn(28, 3, 10, seed + 1)
    assert set(chosen) <= set(expected)
    if most + 1 < len(expected):
        assert campaign.drawn(things, size, most + 1, seed)[:most] == chosen


def made(*measured: tuple[str, float, float], **cells: object) -> Dataset:
    """Mixes of an application with itself: name, time in the mix, and the time alone before it."""
    mixes = [
        {**row, "time_s": time_s, **cells}
        for name, time_s, before in measured
        for row in mix(time_s / before, time_s / before, name=name)
    ]
    alone = isolated_run(time_s=1.0, environment={"cores": 2})
    found: Dataset = dataset(isolated_runs=[alone], mixes=mixes)
    return found


def test_a_way_of_sharing_is_nothing_that_a_time_alone_has() -> None:
    found = campaign.settled(made(("a", 3.0, 1.5), ("c", 4.0, 1.2), configuration={"sharing": "mps"}))
    (row,) = found.isolated_runs.to_pylist()
    assert row["time_s"] == pytest.approx(1.2)
    assert found.mixes.column("slowdown").to_pylist() == pytest.approx([3.0 / 1.2] * 2 + [4.0 / 1.2] * 2)


def test_mixes_that_are_added_add_their_times_alone() -> None:
    first = campaign.settled(made(("a", 3.0, 1.5)))
    both = table_of(MIXES, [*first.mixes.to_pylist(), *made(("d", 5.0, 2.5)).mixes.to_pylist()])
    (row,) = campaign.settled(replace(first, mixes=both)).isolated_runs.to_pylist()
    environment = json.loads(row["environment"])
    assert (environment["cores"], environment[campaign.ALONE]) == (2, pytest.approx([1.0, 1.5, 2.5]))


def test_mixes_without_times_and_failed_isolated_runs_are_left_alone() -> None:
    failed = dataset(isolated_runs=[isolated_run(time_s=None, failure="it crashed")], mixes=mix(None, None))
    assert campaign.settled(failed).isolated_runs == failed.isolated_runs
    assert campaign.settled(failed).mixes == failed.mixes
