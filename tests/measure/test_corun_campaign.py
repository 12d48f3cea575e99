"""Campaigns of mixes: what is done is not done again, failures are kept, and drift is told."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
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
from crosscast.errors import CheckFailed, DeviceFault, InputError, MissingExtraError
from crosscast.measure import campaign as engine
from crosscast.measure import host_state
from crosscast.measure.campaign import CampaignState
from crosscast.measure.corun import campaign, profile
from crosscast.measure.corun.campaign import (
    ALONE,
    CoRunPlan,
    combination,
    combinations,
    drawn,
    run_corun_campaign,
    settled,
)
from crosscast.measure.corun.run import CoRunSettings, JobWork, MixRun
from crosscast.measure.inventory import known_row
from crosscast.measure.opencl import OpenCLDevice, devices, find
from crosscast.measure.processes import DescribeJob, InstructionMixJob, Job, label_of
from crosscast.suite.application import TYPICAL
from crosscast.suite.registry import selected
from support.measuring import MadeCrew
from support.refusals import refusal, refusals
from support.tables import Row, dataset, isolated_run, mix

Folder = Callable[..., Path]
CPU = devices()[0]


class Machine:
    """Answers jobs at once, and gives the same crew for every device."""

    def __init__(self) -> None:
        self.crew = MadeCrew({"crc": 0.01, "gem": 0.02}, presses={"crc": 1.5, "gem": 1.2})
        self.devices: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.characterized: list[str] = []

    def job(self, job: Job, timeout_s: float) -> dict[str, Any]:
        if isinstance(job, DescribeJob):
            if "describe" in self.failing:
                raise self.failing["describe"]
            return {"device": known_row(find(job.device)) | {"launch_overhead_s": 1e-5}}
        assert isinstance(job, InstructionMixJob)
        self.characterized.append(label_of(job))
        if "mix" in self.failing:
            raise self.failing["mix"]
        return {"mix": {"mem": 0.25, "alu": 0.5}}

    def crew_of(self, device: OpenCLDevice, settings: CoRunSettings) -> MadeCrew:
        self.devices.append(device.id)
        return self.crew

    def mixes(self) -> list[tuple[str, ...]]:
        """Mixes without stressors, of two or more."""
        levels = {"low", "medium", "high"}
        return [mix for mix in self.crew.mixes if len(mix) > 1 and not levels & set(mix)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    for module in (engine, profile):
        monkeypatch.setattr(module, "run_job", found.job)
    monkeypatch.setattr(host_state, "doubts", list)
    monkeypatch.setattr(campaign, "Crew", found.crew_of)
    return found


def plan(*applications: object, **options: Any) -> CoRunPlan:
    names = [str(name) for name in applications] or ["crc", "gem"]
    settings = options.pop("settings", CoRunSettings(sensor="none"))
    return CoRunPlan(
        selected(names), options.pop("sizes", ("tiny",)), CPU, TYPICAL, settings, **{"mixes": (2,), **options}
    )


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = getattr(read_dataset(folder), table).to_pylist()
    return found


def test_a_campaign_measures_applications_alone_and_all_mixes(machine: Machine, tmp_path: Path) -> None:
    outcome = run_corun_campaign(plan(), tmp_path / "new")
    assert (outcome.done, outcome.kept, outcome.failures) == (6, 0, [])
    assert machine.mixes() == [("crc", "crc"), ("crc", "gem"), ("gem", "gem")]
    found = co_runs(read_dataset(tmp_path / "new"))
    assert [each.name for each in found.isolated_runs] == ["crc tiny", "gem tiny"]
    assert [mix.name for mix in found.mixes] == [
        "crc tiny + crc tiny",
        "crc tiny + gem tiny",
        "gem tiny + gem tiny",
    ]
    mixed = found.mixes[1]
    assert [member.slowdown for member in mixed.members] == pytest.approx([1.2, 1.5])
    assert mixed.isolated_runs == found.isolated_runs
    assert (mixed.overlap, mixed.fits, mixed.power_w) == (0.75, True, None)
    assert mixed.time_s == pytest.approx(1.1 * 4 * 0.02 * 1.5)
    assert parts(tmp_path / "new") == ()
    assert len(rows(tmp_path / "new", "devices")) == 1


def test_what_is_known_of_an_application_is_in_its_row(machine: Machine, tmp_path: Path) -> None:
    machine.crew.powers_w = {"package-0": 20.0}
    run_corun_campaign(plan(), tmp_path)
    crc, _ = rows(tmp_path, "isolated_runs")
    features = json.loads(crc["features"])
    assert (features["mix_mem"], features["slowdown_high"]) == (0.25, 2.0)
    assert features["inflicted_high"] == pytest.approx(1.5)
    assert (crc["runs"], crc["time_s"], crc["power_w"]) == (4, pytest.approx(0.04), 20.0)
    environment = json.loads(crc["environment"])
    assert environment["problem"]["parameters"] == dict(plan().problem(plan().sized[0]).parameters)
    assert set(environment["microbenchmarks"]["levels"]) == {"low", "medium", "high"}
    assert {row["power_w"] for row in rows(tmp_path, "mixes")} == {40.0}


def test_larger_mixes_are_added_without_measuring_isolated_runs(machine: Machine, tmp_path: Path) -> None:
    run_corun_campaign(plan(), tmp_path)
    machine.crew.mixes.clear()
    outcome = run_corun_campaign(plan(mixes=(2, 3), most_mixes=3), tmp_path)
    assert (outcome.done, outcome.kept) == (3, 6)
    assert {len(mix) for mix in machine.mixes()} == {3}
    # Their times alone are old by then, and taken again once; at the end there is the last look for drift.
    alone = [mix for mix in machine.crew.mixes if len(mix) == 1]
    assert sorted(alone) == [("crc",), ("crc",), ("gem",), ("gem",)]


def test_slowdowns_are_over_the_median_of_times_alone_before_and_between_mixes(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "_STALE_S", -1.0)
    whole = machine.crew.run

    def slower_since_the_first_mix(works: list[JobWork]) -> MixRun:
        if len(machine.mixes()) == 1:
            machine.crew.times_s |= {"crc": 0.02, "gem": 0.04}
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", slower_since_the_first_mix)
    run_corun_campaign(plan(), tmp_path)
    found = {(row["mix"], row["position"]): row["slowdown"] for row in rows(tmp_path, "mixes")}
    # Alone, jobs take 0.04 and 0.08 s at first, and twice as long from the second mix on.
    assert [row["time_s"] for row in rows(tmp_path, "isolated_runs")] == pytest.approx([0.06, 0.12])
    assert found["crc tiny + crc tiny", 0] == pytest.approx(1.5 * 0.04 / 0.06)
    assert found["crc tiny + gem tiny", 0] == pytest.approx(1.2 * 0.08 / 0.06)
    assert found["gem tiny + gem tiny", 1] == pytest.approx(1.2 * 0.16 / 0.12)


def test_an_interrupted_campaign_keeps_what_was_finished(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.crew.run

    def until_the_second_mix(works: list[JobWork]) -> MixRun:
        if len(machine.mixes()) == 1:
            raise KeyboardInterrupt
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", until_the_second_mix)
    with pytest.raises(KeyboardInterrupt):
        run_corun_campaign(plan(), tmp_path)
    assert [part.schema.table for part in parts(tmp_path)] == [
        "mixes",
        "isolated_runs",
        "isolated_runs",
        "devices",
    ]
    monkeypatch.setattr(machine.crew, "run", whole)
    outcome = run_corun_campaign(plan(), tmp_path)
    assert (outcome.done, outcome.kept, parts(tmp_path)) == (2, 4, ())
    assert len(rows(tmp_path, "mixes")) == 6


def test_a_mix_with_a_co_runner_that_fails_is_kept_marked_with_what_the_others_did(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.crew.run

    def failing(works: list[JobWork]) -> MixRun:
        machine.crew.failing = {"gem": "gem tiny: it hangs"} if _names(works) == ["crc", "gem"] else {}
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", failing)
    outcome = run_corun_campaign(plan(), tmp_path)
    (failure,) = outcome.failures
    assert (failure.task.label, failure.reason) == (f"crc tiny + gem tiny on {CPU.id}", "gem tiny: it hangs")
    crc, gem = (row for row in rows(tmp_path, "mixes") if row["mix"] == "crc tiny + gem tiny")
    assert (crc["failure"], gem["failure"]) == (None, "gem tiny: it hangs")
    assert crc["slowdown"] == pytest.approx(1.2)
    assert (gem["slowdown"], crc["fits"], gem["mix_time_s"]) == (None, None, None)
    # It is tried again.
    monkeypatch.setattr(machine.crew, "run", whole)
    machine.crew.failing = {}
    outcome = run_corun_campaign(plan(), tmp_path)
    assert (outcome.done, outcome.kept, outcome.failures) == (1, 5, [])


def _names(works: list[JobWork]) -> list[str]:
    return [str(getattr(work.subject, "name", "")) for work in works]


def test_mixes_of_an_application_that_fails_alone_are_left_out(machine: Machine, tmp_path: Path) -> None:
    machine.crew.failing = {"gem": "gem tiny: was killed by SIGSEGV"}
    outcome = run_corun_campaign(plan(), tmp_path)
    assert [failure.reason for failure in outcome.failures] == [
        "gem tiny: was killed by SIGSEGV",
        "left out, as it fails alone: gem tiny",
        "left out, as it fails alone: gem tiny",
    ]
    assert machine.mixes() == [("crc", "crc")]
    crc, gem = rows(tmp_path, "isolated_runs")
    assert (crc["failure"], gem["failure"]) == (None, "gem tiny: was killed by SIGSEGV")
    assert gem["time_s"] is None
    assert len(co_runs(read_dataset(tmp_path)).isolated_runs) == 1


def test_changed_times_are_told(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = machine.crew.run

    def slower_after_mixes(works: list[JobWork]) -> MixRun:
        if len(machine.mixes()) == 3:
            machine.crew.times_s |= {"crc": 0.012, "gem": 0.026}
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", slower_after_mixes)
    *_, note = run_corun_campaign(plan(), tmp_path).notes
    assert note == (
        "times alone, measured again at the end: 1.25 times those before (median of 2), 1.3 times for "
        "gem tiny; the machine changed meanwhile, so times are doubtful"
    )


def test_the_stressors_are_told_of_and_doubted(machine: Machine, tmp_path: Path) -> None:
    machine.crew.times_s["low"] = 5.0e-10
    notes = run_corun_campaign(plan(), tmp_path).notes
    assert notes[0].startswith(f"stressors on {CPU.id}: low 2 GB/s, medium 20 GB/s")
    assert "expected slower reading of images" in notes[1]


def test_an_application_that_cannot_be_characterized_has_no_mix(machine: Machine, tmp_path: Path) -> None:
    machine.failing["mix"] = CheckFailed("sum: it is wrong")
    outcome = run_corun_campaign(plan(), tmp_path)
    assert outcome.failures == []
    assert "crc tiny: no instruction mix: sum: it is wrong" in outcome.notes
    assert not any(
        name.startswith("mix_") for name in json.loads(rows(tmp_path, "isolated_runs")[0]["features"])
    )
    machine.characterized.clear()
    run_corun_campaign(plan(characterize=False), tmp_path / "without")
    assert machine.characterized == []


def test_a_missing_part_or_a_failing_stressor_ends_the_campaign(machine: Machine, tmp_path: Path) -> None:
    machine.failing["mix"] = MissingExtraError("suite", "checking results of the suite")
    with pytest.raises(MissingExtraError):
        run_corun_campaign(plan(), tmp_path)
    machine.crew.failing = {"medium": "out of memory"}
    with pytest.raises(DeviceFault, match="the stressor medium failed"):
        run_corun_campaign(plan(), tmp_path)


def test_applications_of_another_source_are_not_mixed(
    machine: Machine, tmp_path: Path, make_application: Folder
) -> None:
    folder = make_application()
    machine.crew.times_s |= {str(folder): 0.01}
    run_corun_campaign(plan(folder), tmp_path / "set")
    driver = folder / "driver.py"
    driver.write_text(driver.read_text() + "\n# another\n")
    with pytest.raises(InputError, match=r"own tiny was measured with .* and now has .*: choose another"):
        run_corun_campaign(plan(folder), tmp_path / "set")


def test_mixes_that_share_the_device_in_another_way_are_measured_beside(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def until_the_end(state: CampaignState) -> None:
        if state.label.endswith("alone again"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_corun_campaign(plan(), tmp_path, until_the_end)
    whole = machine.crew.run
    monkeypatch.setattr(campaign, "sharing", lambda device, threads: {"sharing": "mps"})
    monkeypatch.setattr(machine.crew, "run", lambda works: replace(whole(works), sharing={"sharing": "mps"}))
    outcome = run_corun_campaign(plan(), tmp_path)
    assert (outcome.done, outcome.kept) == (3, 3)
    found = Counter(row["configuration"] for row in rows(tmp_path, "mixes"))
    assert found == {"{}": 6, '{"sharing": "mps"}': 6}
    assert run_corun_campaign(plan(), tmp_path).kept == 6


def test_applications_with_other_limits_of_threads_are_not_mixed(machine: Machine, tmp_path: Path) -> None:
    run_corun_campaign(plan(), tmp_path)
    limited = plan(settings=CoRunSettings(sensor="none", threads=1))
    assert "crc tiny was measured with all threads, and now has threads: 1: choose another" in refusal(
        run_corun_campaign, limited, tmp_path
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


THINGS, SIZES = st.integers(1, 7), st.integers(1, 5)


@given(things=THINGS, size=SIZES)
def test_all_mixes_are_those_of_itertools_in_its_order(things: int, size: int) -> None:
    expected = list(combinations_with_replacement(range(things), size))
    assert drawn(things, size, None, 0) == expected
    assert combinations(things, size) == len(expected)
    assert [combination(things, size, number) for number in range(len(expected))] == expected


@given(things=THINGS, size=SIZES, most=st.integers(1, 60), seed=st.integers(0, 99))
def test_a_lot_has_each_once_and_more_begin_with_fewer(things: int, size: int, most: int, seed: int) -> None:
    chosen = drawn(things, size, most, seed)
    assert len(set(chosen)) == len(chosen) == min(most, combinations(things, size))
    assert drawn(28, 3, 10, seed) != drawn(28, 3, 10, seed + 1)
    assert set(chosen) <= set(combinations_with_replacement(range(things), size))
    if most + 1 < combinations(things, size):
        assert drawn(things, size, most + 1, seed)[:most] == chosen


def mixes_of(*measured: tuple[str, float, float]) -> list[Row]:
    """Mixes of an application with itself: name, time in the mix, and the time alone before it."""
    return [
        {**row, "time_s": time_s}
        for name, time_s, before in measured
        for row in mix(time_s / before, time_s / before, name=name)
    ]


def made(*measured: tuple[str, float, float]) -> Dataset:
    found: Dataset = dataset(
        isolated_runs=[isolated_run(time_s=1.0, environment={"cores": 2})], mixes=mixes_of(*measured)
    )
    return found


def test_the_time_alone_is_the_median_of_all_and_slowdowns_are_over_it() -> None:
    found = settled(made(("a", 3.0, 1.5), ("b", 4.0, 1.5), ("c", 4.0, 1.2)))
    (row,) = found.isolated_runs.to_pylist()
    assert row["time_s"] == pytest.approx(1.2)
    environment = json.loads(row["environment"])
    assert environment["cores"] == 2
    assert environment[ALONE] == pytest.approx([1.0, 1.2, 1.5])
    slowdowns = {row["mix"]: row["slowdown"] for row in found.mixes.to_pylist()}
    assert slowdowns == pytest.approx({"a": 3.0 / 1.2, "b": 4.0 / 1.2, "c": 4.0 / 1.2})


def test_a_way_of_sharing_is_nothing_that_a_time_alone_has() -> None:
    shared = [
        {**row, "configuration": {"sharing": "mps"}} for row in mixes_of(("a", 3.0, 1.5), ("c", 4.0, 1.2))
    ]
    found = settled(dataset(isolated_runs=[isolated_run(time_s=1.0)], mixes=shared))
    (row,) = found.isolated_runs.to_pylist()
    assert row["time_s"] == pytest.approx(1.2)
    assert found.mixes.column("slowdown").to_pylist() == pytest.approx([3.0 / 1.2] * 2 + [4.0 / 1.2] * 2)


def test_what_is_settled_stays_as_it_is() -> None:
    once = settled(made(("a", 3.0, 1.5), ("c", 4.0, 1.2)))
    twice = settled(once)
    assert twice.isolated_runs == once.isolated_runs
    assert twice.mixes.column("slowdown").to_pylist() == pytest.approx(
        once.mixes.column("slowdown").to_pylist()
    )


def test_mixes_that_are_added_add_their_times_alone() -> None:
    first = settled(made(("a", 3.0, 1.5)))
    both = table_of(MIXES, [*first.mixes.to_pylist(), *mixes_of(("d", 5.0, 2.5))])
    (row,) = settled(replace(first, mixes=both)).isolated_runs.to_pylist()
    assert json.loads(row["environment"])[ALONE] == pytest.approx([1.0, 1.5, 2.5])


def test_mixes_without_times_and_failed_isolated_runs_are_left_alone() -> None:
    failed = dataset(isolated_runs=[isolated_run(time_s=None, failure="it crashed")], mixes=mix(None, None))
    assert settled(failed).isolated_runs == failed.isolated_runs
    assert settled(failed).mixes == failed.mixes
