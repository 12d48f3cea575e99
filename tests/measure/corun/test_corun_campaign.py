"""Campaigns of bags: what is done is not done again, failures are kept, and drift is told."""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_crew import MadeCrew

from crosscast.data.corun import co_runs
from crosscast.data.dataset import parts, read_dataset
from crosscast.data.files import locked
from crosscast.errors import CheckFailed, DeviceFault, InputError, MissingExtraError
from crosscast.measure.campaign import State
from crosscast.measure.corun import campaign
from crosscast.measure.corun import campaign as corun_plan
from crosscast.measure.corun import campaign as piece_work
from crosscast.measure.corun.campaign import CoRunOutcome, CoRunPlan, pieces, run_corun_campaign
from crosscast.measure.corun.crew import Work
from crosscast.measure.corun.session import BagRun, CoRunSettings
from crosscast.measure.opencl import OpenCLDevice, devices, find, known_row
from crosscast.measure.processes import DescribeJob, Job, MixJob
from crosscast.suite.application import TYPICAL
from crosscast.suite.registry import selected

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
            return known_row(find(job.device)) | {"launch_overhead_s": 1e-5}
        assert isinstance(job, MixJob)
        self.characterized.append(job.label)
        if "mix" in self.failing:
            raise self.failing["mix"]
        return {"mix": {"mem": 0.25, "alu": 0.5}}

    def crew_of(self, device: OpenCLDevice, settings: CoRunSettings) -> MadeCrew:
        self.devices.append(device.id)
        return self.crew

    def bags(self) -> list[tuple[str, ...]]:
        """Bags without microbenchmarks, of two or more."""
        levels = {"low", "medium", "high"}
        return [bag for bag in self.crew.bags if len(bag) > 1 and not levels & set(bag)]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine()
    monkeypatch.setattr(piece_work, "run_job", found.job)
    monkeypatch.setattr(campaign, "Crew", found.crew_of)
    return found


def plan(*applications: object, **options: Any) -> CoRunPlan:
    names = [str(name) for name in applications] or ["crc", "gem"]
    settings = options.pop("settings", CoRunSettings(sensor="none"))
    return CoRunPlan(
        selected(names), options.pop("sizes", ("tiny",)), CPU, TYPICAL, settings, **{"bags": (2,), **options}
    )


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = getattr(read_dataset(folder), table).to_pylist()
    return found


def test_a_campaign_measures_applications_alone_and_all_bags(machine: Machine, tmp_path: Path) -> None:
    outcome = run_corun_campaign(plan(), tmp_path / "new")
    assert (outcome.done, outcome.kept, outcome.failures) == (6, 0, [])
    assert machine.bags() == [("crc", "crc"), ("crc", "gem"), ("gem", "gem")]
    found = co_runs(read_dataset(tmp_path / "new"))
    assert [solo.name for solo in found.solos] == ["crc tiny", "gem tiny"]
    assert [bag.name for bag in found.bags] == [
        "crc tiny + crc tiny",
        "crc tiny + gem tiny",
        "gem tiny + gem tiny",
    ]
    mixed = found.bags[1]
    assert [member.slowdown for member in mixed.members] == pytest.approx([1.2, 1.5])
    assert mixed.solos == found.solos
    assert (mixed.overlap, mixed.fits, mixed.power_w) == (0.75, True, None)
    assert mixed.time_s == pytest.approx(1.1 * 4 * 0.02 * 1.5)
    assert parts(tmp_path / "new") == ()
    assert len(rows(tmp_path / "new", "devices")) == 1


def test_what_is_known_of_an_application_is_in_its_row(machine: Machine, tmp_path: Path) -> None:
    machine.crew.powers_w = {"package-0": 20.0}
    run_corun_campaign(plan(), tmp_path)
    crc, _ = rows(tmp_path, "solos")
    features = json.loads(crc["features"])
    assert (features["mix_mem"], features["slowdown_high"], features["inflicted_high"]) == (0.25, 2.0, 1.5)
    assert (crc["runs"], crc["time_s"], crc["power_w"]) == (4, pytest.approx(0.04), 20.0)
    environment = json.loads(crc["environment"])
    assert environment["problem"]["parameters"] == dict(plan().problem(plan().cells[0]).parameters)
    assert set(environment["microbenchmarks"]["levels"]) == {"low", "medium", "high"}
    assert {row["power_w"] for row in rows(tmp_path, "bags")} == {40.0}


def test_a_second_time_there_is_nothing_to_do(machine: Machine, tmp_path: Path) -> None:
    run_corun_campaign(plan(), tmp_path)
    files = {path: path.read_bytes() for path in tmp_path.glob("*.parquet")}
    machine.crew.bags.clear()
    assert run_corun_campaign(plan(), tmp_path) == CoRunOutcome(kept=6)
    assert machine.crew.bags == []
    assert {path: path.read_bytes() for path in tmp_path.glob("*.parquet")} == files


def test_larger_bags_are_added_without_measuring_applications_again(machine: Machine, tmp_path: Path) -> None:
    run_corun_campaign(plan(), tmp_path)
    machine.crew.bags.clear()
    outcome = run_corun_campaign(plan(bags=(2, 3), most_bags=3), tmp_path)
    assert (outcome.done, outcome.kept) == (3, 6)
    assert {len(bag) for bag in machine.bags()} == {3}
    # Their times alone are old by then, and taken again once; at the end there is the last look for drift.
    alone = [bag for bag in machine.crew.bags if len(bag) == 1]
    assert sorted(alone) == [("crc",), ("crc",), ("gem",), ("gem",)]


def test_slowdowns_are_over_the_median_of_times_alone_before_and_between_bags(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piece_work, "_STALE_S", -1.0)
    whole = machine.crew.run

    def slower_since_the_first_bag(works: list[Work]) -> BagRun:
        if len(machine.bags()) == 1:
            machine.crew.times_s |= {"crc": 0.02, "gem": 0.04}
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", slower_since_the_first_bag)
    run_corun_campaign(plan(), tmp_path)
    found = {(row["bag"], row["position"]): row["slowdown"] for row in rows(tmp_path, "bags")}
    # Alone, jobs take 0.04 and 0.08 s at first, and twice as long from the second bag on.
    assert [row["time_s"] for row in rows(tmp_path, "solos")] == pytest.approx([0.06, 0.12])
    assert found["crc tiny + crc tiny", 0] == pytest.approx(1.5 * 0.04 / 0.06)
    assert found["crc tiny + gem tiny", 0] == pytest.approx(1.2 * 0.08 / 0.06)
    assert found["gem tiny + gem tiny", 1] == pytest.approx(1.2 * 0.16 / 0.12)


def test_an_interrupted_campaign_keeps_what_was_finished(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.crew.run

    def until_the_second_bag(works: list[Work]) -> BagRun:
        if len(machine.bags()) == 1:
            raise KeyboardInterrupt
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", until_the_second_bag)
    with pytest.raises(KeyboardInterrupt):
        run_corun_campaign(plan(), tmp_path)
    assert [part.schema.table for part in parts(tmp_path)] == ["bags", "solos", "solos", "devices"]
    monkeypatch.setattr(machine.crew, "run", whole)
    outcome = run_corun_campaign(plan(), tmp_path)
    assert (outcome.done, outcome.kept, parts(tmp_path)) == (2, 4, ())
    assert len(rows(tmp_path, "bags")) == 6


def test_a_bag_with_a_member_that_fails_is_kept_marked_with_what_the_others_did(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.crew.run

    def failing(works: list[Work]) -> BagRun:
        machine.crew.failing = {"gem": "gem tiny: it hangs"} if _names(works) == ["crc", "gem"] else {}
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", failing)
    outcome = run_corun_campaign(plan(), tmp_path)
    (failure,) = outcome.failures
    assert (failure.piece.label, failure.reason) == (
        f"crc tiny + gem tiny on {CPU.id}",
        "gem tiny: it hangs",
    )
    crc, gem = (row for row in rows(tmp_path, "bags") if row["bag"] == "crc tiny + gem tiny")
    assert (crc["failure"], gem["failure"]) == (None, "gem tiny: it hangs")
    assert crc["slowdown"] == pytest.approx(1.2)
    assert (gem["slowdown"], crc["fits"], gem["bag_time_s"]) == (None, None, None)
    # It is tried again.
    monkeypatch.setattr(machine.crew, "run", whole)
    machine.crew.failing = {}
    outcome = run_corun_campaign(plan(), tmp_path)
    assert (outcome.done, outcome.kept, outcome.failures) == (1, 5, [])


def _names(works: list[Work]) -> list[str]:
    return [str(getattr(work.subject, "name", "")) for work in works]


def test_bags_of_an_application_that_fails_alone_are_left_out(machine: Machine, tmp_path: Path) -> None:
    machine.crew.failing = {"gem": "gem tiny: was killed by SIGSEGV"}
    outcome = run_corun_campaign(plan(), tmp_path)
    assert [failure.reason for failure in outcome.failures] == [
        "gem tiny: was killed by SIGSEGV",
        "left out, as it fails alone: gem tiny",
        "left out, as it fails alone: gem tiny",
    ]
    assert machine.bags() == [("crc", "crc")]
    crc, gem = rows(tmp_path, "solos")
    assert (crc["failure"], gem["failure"]) == (None, "gem tiny: was killed by SIGSEGV")
    assert gem["time_s"] is None
    assert len(co_runs(read_dataset(tmp_path)).solos) == 1


def test_times_alone_that_change_meanwhile_are_told(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.crew.run

    def slower_after_bags(works: list[Work]) -> BagRun:
        if len(machine.bags()) == 3:
            machine.crew.times_s |= {"crc": 0.012, "gem": 0.026}
        return whole(works)

    monkeypatch.setattr(machine.crew, "run", slower_after_bags)
    *_, note = run_corun_campaign(plan(), tmp_path).notes
    assert note == (
        "times alone, measured again at the end: 1.25 times those before (median of 2), 1.3 times for "
        "gem tiny; the machine changed meanwhile, so times are doubtful"
    )


def test_the_microbenchmarks_are_told_of_and_doubted(machine: Machine, tmp_path: Path) -> None:
    machine.crew.times_s["low"] = 5.0e-10
    notes = run_corun_campaign(plan(), tmp_path).notes
    assert notes[0].startswith(f"microbenchmarks on {CPU.id}: low 2 GB/s, medium 20 GB/s")
    assert "expected slower reading of images" in notes[1]


def test_an_application_that_cannot_be_characterized_has_no_mix(machine: Machine, tmp_path: Path) -> None:
    machine.failing["mix"] = CheckFailed("sum: it is wrong")
    outcome = run_corun_campaign(plan(), tmp_path)
    assert outcome.failures == []
    assert "crc tiny: no instruction mix: sum: it is wrong" in outcome.notes
    assert not any(name.startswith("mix_") for name in json.loads(rows(tmp_path, "solos")[0]["features"]))


def test_without_mixes_nothing_is_characterized(machine: Machine, tmp_path: Path) -> None:
    run_corun_campaign(plan(mix=False), tmp_path)
    assert machine.characterized == []


def test_a_device_that_cannot_be_described_has_a_row_all_the_same(machine: Machine, tmp_path: Path) -> None:
    machine.failing["describe"] = DeviceFault("it is lost")
    outcome = run_corun_campaign(plan(), tmp_path)
    assert [failure.reason for failure in outcome.failures] == ["it is lost"]
    assert rows(tmp_path, "devices")[0]["launch_overhead_s"] is None
    machine.failing.clear()
    assert run_corun_campaign(plan(), tmp_path).done == 1


def test_a_part_that_is_not_installed_ends_the_campaign(machine: Machine, tmp_path: Path) -> None:
    machine.failing["mix"] = MissingExtraError("suite", "checking results of the suite")
    with pytest.raises(MissingExtraError):
        run_corun_campaign(plan(), tmp_path)


def test_a_microbenchmark_that_fails_ends_the_campaign(machine: Machine, tmp_path: Path) -> None:
    machine.crew.failing = {"medium": "out of memory"}
    with pytest.raises(DeviceFault, match="the microbenchmark medium failed"):
        run_corun_campaign(plan(), tmp_path)


def test_applications_of_another_source_are_not_mixed(
    machine: Machine, tmp_path: Path, make_application: Folder
) -> None:
    folder = make_application()
    machine.crew.times_s |= {str(folder): 0.01}
    run_corun_campaign(plan(folder), tmp_path / "set")
    driver = folder / "driver.py"
    driver.write_text(driver.read_text() + "\n# another\n")
    with pytest.raises(
        InputError, match=r"own tiny was measured with .* and now has .*: choose another folder"
    ):
        run_corun_campaign(plan(folder), tmp_path / "set")


def test_bags_that_share_the_device_in_another_way_are_measured_beside(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def until_the_end(state: State) -> None:
        if state.label.endswith("alone again"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_corun_campaign(plan(), tmp_path, until_the_end)
    whole = machine.crew.run
    monkeypatch.setattr(corun_plan, "sharing", lambda device, threads: {"sharing": "mps"})
    monkeypatch.setattr(machine.crew, "run", lambda works: replace(whole(works), sharing={"sharing": "mps"}))
    outcome = run_corun_campaign(plan(), tmp_path)
    assert (outcome.done, outcome.kept) == (3, 3)
    found = Counter(row["configuration"] for row in rows(tmp_path, "bags"))
    assert found == {"{}": 6, '{"sharing": "mps"}': 6}
    assert run_corun_campaign(plan(), tmp_path).kept == 6


def test_applications_with_other_limits_of_threads_are_not_mixed(machine: Machine, tmp_path: Path) -> None:
    run_corun_campaign(plan(), tmp_path)
    limited = plan(settings=CoRunSettings(sensor="none", threads=1))
    with pytest.raises(
        InputError, match="crc tiny was measured with all threads, and now has threads: 1: choose another"
    ):
        run_corun_campaign(limited, tmp_path)


def test_a_folder_in_use_is_refused(machine: Machine, tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(InputError, match=re.escape(str(tmp_path))):
        run_corun_campaign(plan(), tmp_path)


def test_progress_tells_what_is_done_and_how_long_the_rest_takes(machine: Machine, tmp_path: Path) -> None:
    states: list[State] = []
    run_corun_campaign(plan(), tmp_path, states.append)
    assert {state.total for state in states} == {6}
    assert [state.done for state in states] == sorted(state.done for state in states)
    assert all(state.left_s >= 0 for state in states)
    assert states[-1].label == "gem tiny alone again"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bags": (1,)}, "bags: expected numbers of applications from 2 to 8, found 1"),
        ({"bags": (2, 9)}, "found 9"),
        ({"most_bags": 0}, "most_bags: expected at least 1, found 0"),
    ],
)
def test_wrong_numbers_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(**options)


def test_the_plan_says_how_many_bags_there_are_and_how_many_it_takes() -> None:
    found = plan("all", sizes=("tiny", "small"), bags=(2, 3), most_bags=500)
    assert found.text == "applications at sizes: 28; bags of 2: 406; bags of 3: 500 of 4,060 (seed 0)"
    assert len(pieces(found)) == 1 + 28 + 406 + 500
