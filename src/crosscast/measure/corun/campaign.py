"""The campaign of ``crosscast corun campaign``: applications alone, beside stressors, and in mixes."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import comb
from pathlib import Path
from statistics import median

from crosscast.data.corun import Solo
from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.schema import BAGS, SOLOS, json_text
from crosscast.data.table import notes_of, table_of
from crosscast.errors import CrosscastError, InputError
from crosscast.measure import host_state
from crosscast.measure.campaign import (
    Begin,
    CampaignOutcome,
    CampaignState,
    CampaignTask,
    PartFailure,
    Say,
    TaskRows,
    describe_tasks,
    expect_same,
    origin_of,
    run,
)
from crosscast.measure.corun.profile import (
    StressorCalibration,
    calibrate,
    device_power_w,
    job_time_s,
    profile_of,
)
from crosscast.measure.corun.run import CoRunSettings, Crew, JobWork, MixRun, MixRunner, sharing
from crosscast.measure.inventory import static_facts
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.session import facts_of
from crosscast.measure.subjects import SuiteProblem, fitted, identity
from crosscast.suite.application import Application, Caches, working_set
from crosscast.units import format_count, format_seconds


def combinations(things: int, size: int) -> int:
    """How many mixes of a size there are of so many things.

    >>> combinations(3, 2)
    6
    """
    return comb(things + size - 1, size)


def combination(things: int, size: int, number: int) -> tuple[int, ...]:
    """One of them by its number, in the order of `itertools.combinations_with_replacement`.

    >>> [combination(3, 2, number) for number in range(6)]
    [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    """
    chosen: list[int] = []
    thing = 0
    for left in range(size - 1, -1, -1):
        # So many mixes go on with this thing.
        while number >= (count := combinations(things - thing, left)):
            number -= count
            thing += 1
        chosen.append(thing)
    return tuple(chosen)


def drawn(things: int, size: int, most: int | None, seed: int) -> list[tuple[int, ...]]:
    """All mixes of a size, or so many at random; a larger number begins with what a smaller one gives."""
    total = combinations(things, size)
    if most is None or most >= total:
        return [combination(things, size, number) for number in range(total)]
    # Not `sample`, whose choice of method depends on the number.
    lot = random.Random(f"{seed} {size}")
    numbers: dict[int, None] = {}
    while len(numbers) < most:
        numbers.setdefault(lot.randrange(total))
    return [combination(things, size, number) for number in numbers]


_SMALLEST, _LARGEST = 2, 8
"""Applications of a mix."""
_ISOLATED_S, _MIX_S = 12.0, 3.0


def duration_s(alone: int, mixes: int) -> float:
    """About how long so many isolated runs and mixes take, in seconds."""
    return alone * _ISOLATED_S + mixes * _MIX_S


"""Seconds of a task before one was done."""
_STALE_S = 300.0
"""A time alone that is older is measured again before a mix: machines become slower and faster."""
_DRIFT = 0.1
"""Times alone that changed by so much make slowdowns doubtful."""


@dataclass(frozen=True, order=True)
class Sized:
    """An application at a size."""

    application: str  # Name of the application
    size: str  # Name of the size
    found_by: str  # Name or path that it is found by

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others in tables."""
        return self.application, self.size

    @property
    def label(self) -> str:
        """What it is, for people and in names of mixes."""
        return f"{self.application} {self.size}"


@dataclass(frozen=True)
class CoRunPlan:
    """The mixes of a campaign, and how to measure them."""

    applications: Mapping[str, type[Application]]  # Applications by the name or path that they are found by
    sizes: tuple[str, ...]  # Names of the sizes
    device: OpenCLDevice  # Where to measure
    caches: Caches  # What the sizes must fit
    settings: CoRunSettings  # How to measure
    mixes: tuple[int, ...] = (2,)  # Numbers of applications in a mix
    most_mixes: int | None = None  # Most mixes of each such number; `None` for all combinations
    seed: int = 0  # Start of the lot by which some of more are chosen
    cpu: OpenCLDevice | None = None  # CPU for the features that are of one, where the device is none
    characterize: bool = True  # Whether to characterize each application, for its instruction mix

    def __post_init__(self) -> None:
        for number in self.mixes:
            if not _SMALLEST <= number <= _LARGEST:
                raise InputError.of(
                    field="mixes",
                    expected=f"numbers of applications from {_SMALLEST} to {_LARGEST}",
                    found=f"{number}",
                )
        if self.most_mixes is not None and self.most_mixes < 1:
            raise InputError.of(field="most_mixes", expected="at least 1", found=f"{self.most_mixes}")

    @property
    def sized(self) -> tuple[Sized, ...]:
        """Each application at each size."""
        return tuple(
            Sized(kind.name, size, name)
            for size, (name, kind) in product(self.sizes, self.applications.items())
        )

    def problem(self, sized: Sized) -> SuiteProblem:
        """What runs."""
        nbytes = working_set(sized.size, self.caches)
        parameters = fitted(self.applications[sized.found_by], nbytes)
        return SuiteProblem(sized.found_by, sized.size, parameters, 0, nbytes)

    def chosen(self) -> Iterator[tuple[Sized, ...]]:
        """The mixes that are measured."""
        there = sorted(self.sized)
        for number in dict.fromkeys(self.mixes):
            for places in drawn(len(there), number, self.most_mixes, self.seed):
                yield tuple(there[place] for place in places)

    @property
    def mix_counts(self) -> dict[int, tuple[int, int]]:
        """How many mixes of each number of applications are measured, and how many there are."""
        totals = {number: combinations(len(self.sized), number) for number in dict.fromkeys(self.mixes)}
        return {number: (min(total, self.most_mixes or total), total) for number, total in totals.items()}

    @property
    def text(self) -> str:
        """What there is to measure and about how long that takes."""
        parts = []
        for number, (wanted, total) in self.mix_counts.items():
            chosen = f"{total:,}" if wanted == total else f"{wanted:,} of {total:,} (seed {self.seed})"
            parts.append(f"mixes of {number}: {chosen}")
        alone, mixes = len(self.sized), sum(wanted for wanted, _ in self.mix_counts.values())
        about = f"{1 + alone + mixes:,} tasks, roughly {format_seconds(round(duration_s(alone, mixes)))}"
        return "; ".join([f"applications at sizes: {alone}", *parts, about])


def run_corun_campaign(
    plan: CoRunPlan,
    folder: Path,
    report: Callable[[CampaignState], None] = lambda state: None,
    begin: Begin = lambda tasks, seconds: None,
) -> CampaignOutcome:
    """Do all that a dataset lacks of a plan: applications alone first, then mixes.

    Times alone are measured again and again, five minutes before a mix at most, and once more at the end; how
    much they changed since the first is among the notes. A slowdown is the time of a job in the mix over the
    median of its times alone (see `settled`).
    """
    with ExitStack() as crews:
        measuring = _Measuring(plan, crews)
        return run(measuring.tasks, folder, report, measuring.tell_of_drift, settled, begin)


class _Measuring:
    """The tasks, and the isolated runs that mixes are compared with."""

    def __init__(self, plan: CoRunPlan, crews: ExitStack) -> None:
        self._plan, self._crews = plan, crews
        self._crew: MixRunner
        self._cpu: tuple[OpenCLDevice, MixRunner] | None = None
        self._notes: list[str] = []
        self._calibration: StressorCalibration | None = None
        self._alone: dict[tuple[str, str], Solo] = {}
        self._recent: dict[Sized, tuple[float, float]] = {}
        """Time of a job alone, and when that was measured here, by the clock of `time.monotonic`."""
        self._in_mixes: dict[Sized, None] = {}

    def tasks(self, dataset: Dataset, outcome: CampaignOutcome) -> list[CampaignTask]:
        """All tasks of the plan, in the order in which they are done; what failed before is tried again."""
        plan, self._notes = self._plan, outcome.notes
        found = describe_tasks([plan.device], dataset, plan.settings.timeout_s)
        alone, together = _alone(plan, dataset), _together(plan, dataset)
        self._alone = {key: solo for key, (solo, _) in alone.items()}
        wanted = {sized.key: sized for sized in plan.sized}
        for key, (_, known) in alone.items():
            if key in wanted:
                _refuse_unlike(plan, wanted[key], known, dataset)
        for sized in plan.sized:
            label = f"{sized.label} on {plan.device.id}"
            profile, failed = partial(self._profile, sized), partial(self._not_profiled, sized)
            found.append(CampaignTask("isolated", label, _ISOLATED_S, sized.key in alone, profile, failed))
        for mix in plan.chosen():
            name = " + ".join(sized.label for sized in mix)
            measure = partial(self._measure_mix, name, mix)
            label = f"{name} on {plan.device.id}"
            found.append(CampaignTask("mix", label, _MIX_S, name in together, measure))
        if not all(task.is_done for task in found):
            self._notes += host_state.doubts()
        self._crew = self._crews.enter_context(Crew(plan.device, plan.settings))
        if plan.cpu is not None and any(task.kind == "isolated" and not task.is_done for task in found):
            self._cpu = (plan.cpu, self._crews.enter_context(Crew(plan.cpu, plan.settings)))
        return found

    def _profile(self, sized: Sized, say: Say) -> list[TaskRows]:
        plan = self._plan
        if self._calibration is None:
            facts = static_facts(plan.device)
            self._calibration = calibrate(self._crew, plan.device.id, facts, say)
            self._notes += [self._calibration.sentence, *self._calibration.doubts]
        found = profile_of(
            sized.key,
            plan.problem(sized),
            plan.device,
            self._crew,
            self._calibration,
            characterize=plan.characterize,
            on_cpu=self._cpu,
            note=say,
        )
        self._notes.extend(f"{sized.label}: {note}" for note in found.notes)
        solo = self._alone[sized.key] = found.solo
        self._recent[sized] = solo.time_s or 0.0, time.monotonic()
        return self._isolated_rows(
            sized,
            runs=solo.runs,
            time_s=solo.time_s,
            power_w=solo.power_w,
            memory_bytes=solo.memory_bytes,
            features=json_text(dict(solo.features)),
        )

    def _not_profiled(self, sized: Sized, error: CrosscastError) -> list[TaskRows]:
        if self._calibration is None:
            # Without stressors there is nothing to measure the others beside either.
            raise error
        return self._isolated_rows(sized, features="{}", failure=str(error))

    def _isolated_rows(self, sized: Sized, **cells: object) -> list[TaskRows]:
        plan = self._plan
        known_by = {"application": sized.application, "size": sized.size, "device": plan.device.key}
        facts = {
            **facts_of(plan.device),
            "problem": origin_of(identity(plan.problem(sized))),
            "threads": plan.settings.threads,
            "microbenchmarks": self._calibration and self._calibration.to_dict(),
        }
        row = {**known_by, "configuration": "{}", "environment": json.dumps(facts), **cells}
        return [TaskRows(SOLOS, f"{sized.application}-{sized.size}-{plan.device.key}", [row])]

    def _measure_mix(self, name: str, mix: Sequence[Sized], say: Say) -> list[TaskRows]:
        failing = dict.fromkeys(sized.label for sized in mix if sized.key not in self._alone)
        if failing:
            raise PartFailure(f"left out, as it fails alone: {', '.join(failing)}")
        works = [JobWork(self._plan.problem(sized), self._alone[sized.key].runs) for sized in mix]
        alone_s = [self._time_alone(sized, work) for sized, work in zip(mix, works, strict=True)]
        found = self._crew.run(works)
        self._notes.extend(f"{name}: {note}" for note in found.notes)
        device = self._plan.device.key
        shared = "" if not found.sharing else f"-{json_text(found.sharing)}"
        rows = [TaskRows(BAGS, f"{name}-{device}{shared}", _mix_rows(name, mix, device, found, alone_s))]
        if found.failed:
            reasons = (each.failure for each in found.co_runners if each.failure is not None)
            raise PartFailure("; ".join(dict.fromkeys(reasons)), rows)
        self._in_mixes |= dict.fromkeys(mix)
        return rows

    def _time_alone(self, sized: Sized, work: JobWork) -> float | None:
        """Time of a co-runner's job alone, measured not long ago."""
        known = self._recent.get(sized)
        if known is None or time.monotonic() - known[1] > _STALE_S:
            time_s = job_time_s(self._crew.run([work]).co_runners[0])
            if time_s is None:
                # It fails now: the mix will tell why.
                return self._alone[sized.key].time_s
            known = self._recent[sized] = time_s, time.monotonic()
        return known[0]

    def tell_of_drift(self, say: Say) -> None:
        """Measure the co-runners of the mixes alone once more, and note how much that changed."""
        ratios: dict[str, float] = {}
        for sized in self._in_mixes:
            solo = self._alone[sized.key]
            say(f"{sized.label} alone again")
            (found,) = self._crew.run([JobWork(self._plan.problem(sized), solo.runs)]).co_runners
            time_s = job_time_s(found)
            if time_s is not None and solo.time_s:
                ratios[sized.label] = time_s / solo.time_s
        if not ratios:
            return
        farthest = max(ratios, key=lambda label: abs(ratios[label] - 1))
        middle = median(ratios.values())
        text = (
            f"times alone, measured again at the end: {middle:.3g} times those before (median of "
            f"{format_count(len(ratios))}), {ratios[farthest]:.3g} times for {farthest}"
        )
        if abs(middle - 1) > _DRIFT:
            text += "; the machine changed meanwhile, so times are doubtful"
        self._notes.append(text)


def _alone(plan: CoRunPlan, dataset: Dataset) -> dict[tuple[str, str], tuple[Solo, str]]:
    """What the dataset has of applications alone on the plan's device, and the environment of each."""
    return {
        (row["application"], row["size"]): (
            Solo(row["application"], row["size"], row["device"], row["time_s"], runs=row["runs"]),
            row["environment"] or "{}",
        )
        for row in dataset.solos.to_pylist()
        if row["device"] == plan.device.key and row["failure"] is None
    }


def _refuse_unlike(plan: CoRunPlan, sized: Sized, environment: str, dataset: Dataset) -> None:
    """Check that an isolated run is of the problem and the threads that the plan has."""
    facts = json.loads(environment)
    known = facts if isinstance(facts, dict) else {}
    for before, now in (
        (json_text(known.get("problem")), json_text(origin_of(identity(plan.problem(sized))))),
        (_threads(known.get("threads")), _threads(plan.settings.threads)),
    ):
        expect_same(dataset, sized.label, "", before, now)


def _threads(limit: object) -> str:
    return "all threads" if limit is None else f"threads: {limit}"


def _together(plan: CoRunPlan, dataset: Dataset) -> set[str]:
    """Names of the mixes that the dataset has of the plan's device as it is shared now, where none failed."""
    failures = defaultdict(list)
    now = json_text(sharing(plan.device.id, plan.settings.threads))
    for row in dataset.bags.to_pylist():
        if (row["device"], row["configuration"]) == (plan.device.key, now):
            failures[row["bag"]].append(row["failure"])
    return {name for name, found in failures.items() if not any(found)}


def _mix_rows(
    name: str, mix: Sequence[Sized], device: str, found: MixRun, alone_s: Sequence[float | None]
) -> list[dict[str, object]]:
    """Rows of the table of mixes; what co-runners did beside one that failed is kept."""
    whole = {
        "bag": name,
        "device": device,
        "configuration": json_text(found.sharing),
        "repeat": 0,
        "fits": None if found.failed else 1,
        "bag_time_s": median(found.mix_times_s) if found.mix_times_s else None,
        "overlap": found.overlap,
        "power_w": device_power_w(found),
    }
    rows = []
    for position, (sized, each, own_s) in enumerate(zip(mix, found.co_runners, alone_s, strict=True)):
        time_s = job_time_s(each)
        slowdown = None if time_s is None or not own_s else time_s / own_s
        own = {"position": position, "application": sized.application, "size": sized.size}
        own |= {"time_s": time_s, "slowdown": slowdown, "jobs": len(each.times_s)}
        rows.append({**whole, **own, "failure": each.failure})
    return rows


ALONE = "times_alone_s"
"""Where the environment of an isolated run has all times that were measured of it."""

_SAME = 1e-9

_Key = tuple[str, str, str, str]


def settled(dataset: Dataset) -> Dataset:
    """Compare mixes with the median of all times alone, where single ones were measured before them.

    A time alone that is measured once is off by as much as the machine is disturbed at that moment; in all
    slowdowns over it, the same way. What was measured before a mix is its time in the mix over its slowdown.
    """
    mixes, alone_rows = (list(map(TableRow, each.to_pylist())) for each in (dataset.bags, dataset.solos))
    alone_keys = {_key(row) for row in alone_rows}
    before: defaultdict[_Key, list[float]] = defaultdict(list)
    for row in mixes:
        if row["time_s"] and row["slowdown"]:
            before[_key_alone(row, alone_keys)].append(row.number("time_s") / row.number("slowdown"))
    solos = [_solo(row, before[_key(row)]) for row in alone_rows]
    times = {_key(row): row.number_or_none("time_s") for row in solos}
    for row in mixes:
        alone = times.get(_key_alone(row, alone_keys))
        if row["slowdown"] and row["time_s"] and alone:
            row["slowdown"] = row.number("time_s") / alone
    return replace(
        dataset,
        solos=table_of(SOLOS, solos, notes_of(dataset.solos)),
        bags=table_of(BAGS, mixes, notes_of(dataset.bags)),
    )


def _key(row: TableRow) -> _Key:
    return row.text("application"), row.text("size"), row.text("device"), row.text("configuration")


def _key_alone(row: TableRow, known: Set[_Key]) -> _Key:
    """Key of a co-runner's isolated run: with no setting where there is none with the mix's, such as MPS."""
    key = _key(row)
    return key if key in known else (*key[:3], "{}")


def _solo(row: TableRow, before: list[float]) -> TableRow:
    """The row with the median of its times, all of which go into its environment."""
    settled_s = row.number_or_none("time_s")
    if not settled_s:
        return row
    environment = json.loads(row.text_or_none("environment") or "{}")
    known = [float(time_s) for time_s in environment.get(ALONE, [settled_s])]
    for time_s in sorted(before):
        # Several mixes follow one measurement, and settled ones follow the median.
        if not any(abs(time_s - each) <= _SAME * each for each in (*known, settled_s)):
            known.append(time_s)
    return TableRow({**row, "time_s": median(known), "environment": {**environment, ALONE: known}})
