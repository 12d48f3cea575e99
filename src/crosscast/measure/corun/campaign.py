"""Campaign of ``crosscast corun campaign``: applications isolated, beside stressors, and in mixes."""

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

from crosscast.data.corun import IsolatedRun
from crosscast.data.dataset import Dataset
from crosscast.data.fields import TableRow
from crosscast.data.schema import ISOLATED_RUNS, MIXES, json_text
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
from crosscast.measure.corun import CoRunSettings, JobWork, MixRun
from crosscast.measure.corun.crew import Crew, MixRunner, sharing
from crosscast.measure.corun.profile import (
    StressorCalibration,
    calibrate_stressors,
    device_power_w,
    job_time_s,
    profile_of,
)
from crosscast.measure.inventory import static_facts
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.session import facts_of
from crosscast.measure.subjects import SuiteProblem, identity, problem_of
from crosscast.suite.application import Application, Caches
from crosscast.units import format_count, format_seconds


def combinations(elements: int, size: int) -> int:
    """Return the number of multisets of a size.

    >>> combinations(3, 2)
    6
    """
    return comb(elements + size - 1, size)


def combination(elements: int, size: int, number: int) -> tuple[int, ...]:
    """Return a multiset by its number, in the order of `itertools.combinations_with_replacement`.

    >>> [combination(3, 2, number) for number in range(6)]
    [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    """
    chosen: list[int] = []
    element = 0
    for remaining in range(size - 1, -1, -1):
        # The number of multisets that continue with this element.
        while number >= (count := combinations(elements - element, remaining)):
            number -= count
            element += 1
        chosen.append(element)
    return tuple(chosen)


def drawn(elements: int, size: int, most: int | None, seed: int) -> list[tuple[int, ...]]:
    """Return all multisets of a size, or `most` at random; a larger sample extends a smaller one."""
    total = combinations(elements, size)
    if most is None or most >= total:
        return [combination(elements, size, number) for number in range(total)]
    # `sample` chooses its method by the number, and would not extend smaller samples.
    generator = random.Random(f"{seed} {size}")
    numbers: dict[int, None] = {}
    while len(numbers) < most:
        numbers.setdefault(generator.randrange(total))
    return [combination(elements, size, number) for number in numbers]


_SMALLEST, _LARGEST = 2, 8
"""Fewest and most applications of a mix."""
_ISOLATED_S, _MIX_S = 12.0, 3.0
"""Estimated seconds of a task."""
_STALE_S = 300.0
"""Isolated times that are older are measured again before a mix, as the speed of machines drifts."""
_DRIFT = 0.1  # Drift of isolated times above which slowdowns are doubtful


def duration_s(alone: int, mixes: int) -> float:
    """Estimate the duration of isolated runs and mixes, in seconds."""
    return alone * _ISOLATED_S + mixes * _MIX_S


@dataclass(frozen=True, order=True)
class Sized:
    """An application at a size."""

    application: str  # Name of the application
    size: str  # Name of the size
    given: str  # Name or path by which it was given

    @property
    def key(self) -> tuple[str, str]:
        """Key in tables."""
        return self.application, self.size

    @property
    def label(self) -> str:
        """Label for people and in names of mixes."""
        return f"{self.application} {self.size}"


@dataclass(frozen=True)
class CoRunPlan:
    """Mixes of a campaign, and settings of their measurements."""

    applications: Mapping[str, type[Application]]  # By the given name or path
    sizes: tuple[str, ...]  # Names of the sizes
    device: OpenCLDevice
    caches: Caches  # Caches that the sizes must fit
    settings: CoRunSettings
    mixes: tuple[int, ...] = (2,)  # Numbers of applications in a mix
    most_mixes: int | None = None  # Most mixes of each such number; `None` for all combinations
    seed: int = 0  # Seed of the random choice of mixes
    cpu: OpenCLDevice | None = None  # CPU for CPU features, if the device is none
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
        """Return the problem of an application at a size."""
        return problem_of(sized.given, self.applications[sized.given], sized.size, self.caches)

    def chosen(self) -> Iterator[tuple[Sized, ...]]:
        """Yield the mixes to measure."""
        candidates = sorted(self.sized)
        for number in dict.fromkeys(self.mixes):
            for indices in drawn(len(candidates), number, self.most_mixes, self.seed):
                yield tuple(candidates[index] for index in indices)

    @property
    def mix_counts(self) -> dict[int, tuple[int, int]]:
        """Mixes to measure and all possible ones, by number of applications."""
        totals = {number: combinations(len(self.sized), number) for number in dict.fromkeys(self.mixes)}
        return {number: (min(total, self.most_mixes or total), total) for number, total in totals.items()}

    @property
    def text(self) -> str:
        """Summary of the work and its estimated duration."""
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
    """Do all tasks of a plan that a dataset lacks: isolated applications first, then mixes.

    Isolated times are measured repeatedly, at most five minutes before a mix, and once more at the end; a
    note states their drift. A slowdown is the time of a job in the mix over the median of its isolated times
    (see `settled`).
    """
    with ExitStack() as crews:
        measuring = _Measuring(plan, crews)
        return run(measuring.tasks, folder, report, measuring.note_drift, settled, begin)


class _Measuring:
    """Tasks, and the isolated runs that mixes are compared with."""

    def __init__(self, plan: CoRunPlan, crews: ExitStack) -> None:
        self._plan, self._crews = plan, crews
        self._crew: MixRunner
        self._cpu: tuple[OpenCLDevice, MixRunner] | None = None
        self._notes: list[str] = []
        self._calibration: StressorCalibration | None = None
        self._alone: dict[tuple[str, str], IsolatedRun] = {}
        self._recent: dict[Sized, tuple[float, float]] = {}
        """Isolated time of a job, and the time of its measurement by `time.monotonic`."""
        self._in_mixes: dict[Sized, None] = {}

    def tasks(self, dataset: Dataset, outcome: CampaignOutcome) -> list[CampaignTask]:
        """Return all tasks of the plan in order; those that failed before are repeated."""
        plan, self._notes = self._plan, outcome.notes
        all_tasks = describe_tasks([plan.device], dataset, plan.settings.timeout_s)
        alone, measured_mixes = _alone(plan, dataset), _measured_mixes(plan, dataset)
        self._alone = {key: isolated_run for key, (isolated_run, _) in alone.items()}
        planned = {sized.key: sized for sized in plan.sized}
        for key, (_, environment) in alone.items():
            if key in planned:
                _refuse_unlike(plan, planned[key], environment, dataset)
        for sized in plan.sized:
            label = f"{sized.label} on {plan.device.id}"
            profile, failed = partial(self._profile, sized), partial(self._not_profiled, sized)
            all_tasks.append(
                CampaignTask("isolated", label, _ISOLATED_S, sized.key in alone, profile, failed)
            )
        for mix in plan.chosen():
            name = " + ".join(sized.label for sized in mix)
            measure = partial(self._measure_mix, name, mix)
            label = f"{name} on {plan.device.id}"
            all_tasks.append(CampaignTask("mix", label, _MIX_S, name in measured_mixes, measure))
        if not all(task.is_done for task in all_tasks):
            self._notes += host_state.doubts()
        self._crew = self._crews.enter_context(Crew(plan.device, plan.settings))
        if plan.cpu is not None and any(task.kind == "isolated" and not task.is_done for task in all_tasks):
            self._cpu = (plan.cpu, self._crews.enter_context(Crew(plan.cpu, plan.settings)))
        return all_tasks

    def _profile(self, sized: Sized, say: Say) -> list[TaskRows]:
        plan = self._plan
        if self._calibration is None:
            facts = static_facts(plan.device)
            self._calibration = calibrate_stressors(self._crew, plan.device.id, facts, say)
            self._notes += [self._calibration.sentence, *self._calibration.doubts]
        profiled = profile_of(
            sized.key,
            plan.problem(sized),
            plan.device,
            self._crew,
            self._calibration,
            characterize=plan.characterize,
            on_cpu=self._cpu,
            note=say,
        )
        self._notes.extend(f"{sized.label}: {note}" for note in profiled.notes)
        isolated_run = self._alone[sized.key] = profiled.isolated_run
        self._recent[sized] = isolated_run.time_s or 0.0, time.monotonic()
        return self._isolated_rows(
            sized,
            runs=isolated_run.runs,
            time_s=isolated_run.time_s,
            power_w=isolated_run.power_w,
            memory_bytes=isolated_run.memory_bytes,
            features=json_text(dict(isolated_run.features)),
        )

    def _not_profiled(self, sized: Sized, error: CrosscastError) -> list[TaskRows]:
        if self._calibration is None:
            # Every application needs the stressors.
            raise error
        return self._isolated_rows(sized, features="{}", failure=str(error))

    def _isolated_rows(self, sized: Sized, **cells: object) -> list[TaskRows]:
        plan = self._plan
        key = {"application": sized.application, "size": sized.size, "device": plan.device.key}
        facts = {
            **facts_of(plan.device),
            "problem": origin_of(identity(plan.problem(sized))),
            "threads": plan.settings.threads,
            "microbenchmarks": self._calibration and self._calibration.to_dict(),
        }
        row = {**key, "configuration": "{}", "environment": json.dumps(facts), **cells}
        return [TaskRows(ISOLATED_RUNS, f"{sized.application}-{sized.size}-{plan.device.key}", [row])]

    def _measure_mix(self, name: str, mix: Sequence[Sized], say: Say) -> list[TaskRows]:
        failed = dict.fromkeys(sized.label for sized in mix if sized.key not in self._alone)
        if failed:
            raise PartFailure(f"left out, as it fails alone: {', '.join(failed)}")
        works = [JobWork(self._plan.problem(sized), self._alone[sized.key].runs) for sized in mix]
        alone_s = [self._time_alone(sized, work) for sized, work in zip(mix, works, strict=True)]
        result = self._crew.run(works)
        self._notes.extend(f"{name}: {note}" for note in result.notes)
        device = self._plan.device.key
        shared = "" if not result.sharing else f"-{json_text(result.sharing)}"
        rows = [TaskRows(MIXES, f"{name}-{device}{shared}", _mix_rows(name, mix, device, result, alone_s))]
        if result.failed:
            reasons = (run.failure for run in result.co_runners if run.failure is not None)
            raise PartFailure("; ".join(dict.fromkeys(reasons)), rows)
        self._in_mixes |= dict.fromkeys(mix)
        return rows

    def _time_alone(self, sized: Sized, work: JobWork) -> float | None:
        """Return a recent isolated time of a co-runner's job."""
        recent = self._recent.get(sized)
        if recent is None or time.monotonic() - recent[1] > _STALE_S:
            time_s = job_time_s(self._crew.run([work]).co_runners[0])
            if time_s is None:
                # It fails now, for a reason that the mix will show.
                return self._alone[sized.key].time_s
            recent = self._recent[sized] = time_s, time.monotonic()
        return recent[0]

    def note_drift(self, say: Say) -> None:
        """Measure the co-runners of the mixes isolated once more, and note the drift."""
        ratios: dict[str, float] = {}
        for sized in self._in_mixes:
            isolated_run = self._alone[sized.key]
            say(f"{sized.label} alone again")
            (isolated,) = self._crew.run([JobWork(self._plan.problem(sized), isolated_run.runs)]).co_runners
            time_s = job_time_s(isolated)
            if time_s is not None and isolated_run.time_s:
                ratios[sized.label] = time_s / isolated_run.time_s
        if not ratios:
            return
        farthest = max(ratios, key=lambda label: abs(ratios[label] - 1))
        median_ratio = median(ratios.values())
        text = (
            f"times alone, measured again at the end: {median_ratio:.3g} times those before (median of "
            f"{format_count(len(ratios))}), {ratios[farthest]:.3g} times for {farthest}"
        )
        if abs(median_ratio - 1) > _DRIFT:
            text += "; the machine changed meanwhile, so times are doubtful"
        self._notes.append(text)


def _alone(plan: CoRunPlan, dataset: Dataset) -> dict[tuple[str, str], tuple[IsolatedRun, str]]:
    """Return the dataset's isolated runs on the plan's device, and the environment of each."""
    return {
        (row["application"], row["size"]): (
            IsolatedRun(row["application"], row["size"], row["device"], row["time_s"], runs=row["runs"]),
            row["environment"] or "{}",
        )
        for row in dataset.isolated_runs.to_pylist()
        if row["device"] == plan.device.key and row["failure"] is None
    }


def _refuse_unlike(plan: CoRunPlan, sized: Sized, environment: str, dataset: Dataset) -> None:
    """Check that an isolated run has the plan's problem and threads."""
    facts = json.loads(environment)
    recorded = facts if isinstance(facts, dict) else {}
    for before, now in (
        (json_text(recorded.get("problem")), json_text(origin_of(identity(plan.problem(sized))))),
        (_threads(recorded.get("threads")), _threads(plan.settings.threads)),
    ):
        expect_same(dataset, sized.label, "", before, now)


def _threads(limit: object) -> str:
    return "all threads" if limit is None else f"threads: {limit}"


def _measured_mixes(plan: CoRunPlan, dataset: Dataset) -> set[str]:
    """Return the dataset's mixes without failures for the plan's device and its sharing."""
    failures = defaultdict(list)
    configuration = json_text(sharing(plan.device.id, plan.settings.threads))
    for row in dataset.mixes.to_pylist():
        if (row["device"], row["configuration"]) == (plan.device.key, configuration):
            failures[row["mix"]].append(row["failure"])
    return {name for name, reasons in failures.items() if not any(reasons)}


def _mix_rows(
    name: str, mix: Sequence[Sized], device: str, result: MixRun, alone_s: Sequence[float | None]
) -> list[dict[str, object]]:
    """Return rows of the table of mixes; jobs beside a co-runner that failed are kept."""
    shared = {
        "mix": name,
        "device": device,
        "configuration": json_text(result.sharing),
        "repeat": 0,
        "fits": None if result.failed else 1,
        "mix_time_s": median(result.mix_times_s) if result.mix_times_s else None,
        "overlap": result.overlap,
        "power_w": device_power_w(result),
    }
    rows = []
    for position, (sized, co_runner, isolated_s) in enumerate(
        zip(mix, result.co_runners, alone_s, strict=True)
    ):
        time_s = job_time_s(co_runner)
        slowdown = None if time_s is None or not isolated_s else time_s / isolated_s
        cells = {"position": position, "application": sized.application, "size": sized.size}
        cells |= {"time_s": time_s, "slowdown": slowdown, "jobs": len(co_runner.times_s)}
        rows.append({**shared, **cells, "failure": co_runner.failure})
    return rows


ALONE = "times_alone_s"
"""Key of all measured times in the environment of an isolated run."""

_SAME = 1e-9

_Key = tuple[str, str, str, str]


def settled(dataset: Dataset) -> Dataset:
    """Compare mixes with the median of all isolated times, instead of the single ones before them.

    A disturbance of a single isolated time would shift all slowdowns over it in the same way. The isolated
    time before a mix is the time in the mix over the slowdown.
    """
    mixes, alone_rows = (
        list(map(TableRow, table.to_pylist())) for table in (dataset.mixes, dataset.isolated_runs)
    )
    alone_keys = {_key(row) for row in alone_rows}
    before: defaultdict[_Key, list[float]] = defaultdict(list)
    for row in mixes:
        if row["time_s"] and row["slowdown"]:
            before[_key_alone(row, alone_keys)].append(row.number("time_s") / row.number("slowdown"))
    isolated_runs = [_isolated_run(row, before[_key(row)]) for row in alone_rows]
    times = {_key(row): row.number_or_none("time_s") for row in isolated_runs}
    for row in mixes:
        alone = times.get(_key_alone(row, alone_keys))
        if row["slowdown"] and row["time_s"] and alone:
            row["slowdown"] = row.number("time_s") / alone
    return replace(
        dataset,
        isolated_runs=table_of(ISOLATED_RUNS, isolated_runs, notes_of(dataset.isolated_runs)),
        mixes=table_of(MIXES, mixes, notes_of(dataset.mixes)),
    )


def _key(row: TableRow) -> _Key:
    return row.text("application"), row.text("size"), row.text("device"), row.text("configuration")


def _key_alone(row: TableRow, known: Set[_Key]) -> _Key:
    """Return the key of a co-runner's isolated run, with the mix's settings if there is one, else without."""
    key = _key(row)
    return key if key in known else (*key[:3], "{}")


def _isolated_run(row: TableRow, before: list[float]) -> TableRow:
    """Return the row with the median of its times, and all times in its environment."""
    settled_s = row.number_or_none("time_s")
    if not settled_s:
        return row
    environment = json.loads(row.text_or_none("environment") or "{}")
    times = [float(time_s) for time_s in environment.get(ALONE, [settled_s])]
    for time_s in sorted(before):
        # Several mixes share one measurement, and settled mixes share the median.
        if not any(abs(time_s - known_s) <= _SAME * known_s for known_s in (*times, settled_s)):
            times.append(time_s)
    return TableRow({**row, "time_s": median(times), "environment": {**environment, ALONE: times}})
