"""A campaign of bags: fill a dataset with applications alone and bags of them, piece by piece.

Each finished piece is a part of the dataset on disk, so that a campaign that was stopped in any way
goes on where it was.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from crosscast import environment
from crosscast.errors import CrosscastError, MissingExtraError
from crosscast.measure.campaign import State
from crosscast.measure.child import run_job
from crosscast.measure.corun.bag_run import BagRun
from crosscast.measure.corun.bag_runner import BagRunner
from crosscast.measure.corun.calibration import Calibration, calibrate
from crosscast.measure.corun.crew import Crew
from crosscast.measure.corun.mix import TIMEOUT_S
from crosscast.measure.corun.plan import (
    BagPiece,
    Cell,
    CoRunPiece,
    CoRunPlan,
    SoloPiece,
    missing,
    origin_of,
    pieces,
)
from crosscast.measure.corun.profile import device_power_w, job_time_s, profile_of
from crosscast.measure.corun.work import Work
from crosscast.measure.jobs import DescribeJob, MixJob
from crosscast.measure.opencl.describe import known_row, static_facts
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.pace import Pace
from crosscast.measure.plan import DescribePiece
from crosscast.tables.arrow import table_of
from crosscast.tables.bags import BAGS
from crosscast.tables.corun.solo import Solo
from crosscast.tables.dataset import TABLES, Dataset, locked, merge_parts, parts, read_dataset, write_part
from crosscast.tables.devices import DEVICES
from crosscast.tables.schema import json_text
from crosscast.tables.solos import SOLOS
from crosscast.units import format_count

__all__ = ["CoRunFailure", "CoRunOutcome", "run_corun_campaign"]

_GUESS_S = {"DescribePiece": 4.0, "SoloPiece": 12.0, "BagPiece": 3.0}
"""Seconds of a piece of each kind, before one was done."""
_STALE_S = 300.0
"""A time alone that is older is measured again before a bag: machines become slower and faster."""
_DRIFT = 0.1
"""Times alone that changed by so much make slowdowns doubtful."""

_Key = tuple[str, str]


@dataclass(frozen=True)
class CoRunFailure:
    """A piece that failed.

    Parameters
    ----------
    piece
        Which one.
    reason
        Why, as a sentence.
    """

    piece: CoRunPiece
    reason: str


@dataclass
class CoRunOutcome:
    """What a campaign of bags did.

    Parameters
    ----------
    done
        Pieces that were done now.
    kept
        Pieces that were there already.
    failures
        Pieces that failed.
    notes
        What was found on the way, and what went wrong without failing.
    """

    done: int = 0
    kept: int = 0
    failures: list[CoRunFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run_corun_campaign(
    plan: CoRunPlan, folder: Path, report: Callable[[State], None] = lambda state: None
) -> CoRunOutcome:
    """Do all that a dataset lacks of a plan: applications alone first, then bags.

    A slowdown is the time of a job in the bag over its time alone, measured five minutes before the bag at
    most. Times alone are measured once more at the end; how much they changed since those in the table is
    among the notes.

    Parameters
    ----------
    plan
        What to do.
    folder
        The dataset's folder, which is made if need be.
    report
        Told what is being done.

    Raises
    ------
    InputError
        If the folder is in use, cannot be written, or holds what must not be mixed with the plan, or
        there is no such sensor.
    DeviceFault
        If a microbenchmark fails.
    EnvironmentFault
        If the sensor does not work here.
    MissingExtraError
        If an optional part that the work needs is not installed.
    """
    with locked(folder), ExitStack() as crews:
        dataset = _dataset(folder)
        todo = missing(plan, dataset)
        total = len(pieces(plan))
        outcome = CoRunOutcome(kept=total - len(todo))
        crew = crews.enter_context(Crew(plan.device, plan.settings))
        cpu = None
        if plan.cpu is not None and any(isinstance(piece, SoloPiece) for piece in todo):
            cpu = (plan.cpu, crews.enter_context(Crew(plan.cpu, plan.settings)))
        campaign = _Campaign(plan, crew, cpu, _alone(plan, dataset), outcome)
        pace = Pace(todo, _GUESS_S)
        for number, piece in enumerate(todo):

            def tell(label: str, number: int = number) -> None:
                report(State(outcome.kept + number, total, label, pace.left_s()))

            tell(piece.label)
            start = time.perf_counter()
            for part in campaign.done(piece, tell):
                write_part(folder, part.schema, part.name, table_of(part.schema, part.rows))
            pace.took(piece, time.perf_counter() - start)
        campaign.tell_of_drift(lambda label: report(State(total, total, label, 0.0)))
        merge_parts(folder)
    return outcome


def _dataset(folder: Path) -> Dataset:
    """What the folder holds; an empty dataset if nothing."""
    there = parts(folder) or any((folder / f"{schema.table}.parquet").exists() for schema in TABLES)
    return read_dataset(folder) if there else Dataset(str(folder))


def _alone(plan: CoRunPlan, dataset: Dataset) -> dict[_Key, Solo]:
    """What the dataset has of applications alone on the plan's device, as far as bags need it."""
    return {
        (row["application"], row["size"]): Solo(
            row["application"], row["size"], row["device"], row["time_s"], runs=row["runs"]
        )
        for row in dataset.solos.to_pylist()
        if row["device"] == plan.device.key and row["failure"] is None
    }


@dataclass(frozen=True)
class _Part:
    schema: Any
    name: str
    rows: list[dict[str, Any]]


class _Campaign:
    """Does pieces; knows the applications alone that bags are compared with."""

    def __init__(
        self,
        plan: CoRunPlan,
        crew: BagRunner,
        cpu: tuple[OpenCLDevice, BagRunner] | None,
        alone: dict[_Key, Solo],
        outcome: CoRunOutcome,
    ) -> None:
        self._plan, self._crew, self._cpu = plan, crew, cpu
        self._alone, self._outcome = alone, outcome
        self._calibration: Calibration | None = None
        self._recent: dict[Cell, tuple[float, float]] = {}
        """Time of a job alone, and when that was measured here, by the clock of `time.monotonic`."""
        self._in_bags: dict[Cell, None] = {}

    def done(self, piece: CoRunPiece, tell: Callable[[str], None]) -> Sequence[_Part]:
        """Do a piece; return what to write."""
        if isinstance(piece, DescribePiece):
            return self._described(piece)
        if isinstance(piece, SoloPiece):
            return self._profiled(piece, tell)
        return self._bag(piece)

    def _fail(self, piece: CoRunPiece, reason: str) -> None:
        self._outcome.failures.append(CoRunFailure(piece, reason))

    def _described(self, piece: DescribePiece) -> list[_Part]:
        # Asked before anything runs: a device that is lost later answers no more.
        row = known_row(piece.device)
        try:
            row = run_job(DescribeJob(piece.device.id), self._plan.settings.timeout_s)
            self._outcome.done += 1
        except MissingExtraError:
            raise
        except CrosscastError as error:
            self._fail(piece, str(error))
        return [_Part(DEVICES, piece.device.key, [row])]

    def _profiled(self, piece: SoloPiece, tell: Callable[[str], None]) -> list[_Part]:
        plan, cell = self._plan, piece.cell
        calibration = self._calibrated(tell)
        problem = plan.problem(cell)
        cells = {"application": cell.application, "size": cell.size, "device": plan.device.key}
        row: dict[str, Any] = {
            **cells,
            "configuration": "{}",
            "features": "{}",
            "environment": self._environment(cell, calibration),
        }
        mix = self._mix(cell, tell) if plan.mix else None
        try:
            found = profile_of(
                (cell.application, cell.size),
                problem,
                plan.device,
                self._crew,
                calibration,
                mix=mix,
                on_cpu=self._cpu,
                note=tell,
            )
        except MissingExtraError:
            raise
        except CrosscastError as error:
            self._fail(piece, str(error))
            row["failure"] = str(error)
        else:
            self._outcome.done += 1
            self._outcome.notes.extend(f"{cell.label}: {note}" for note in found.notes)
            solo = self._alone[cell.application, cell.size] = found.solo
            self._recent[cell] = found.solo.time_s or 0.0, time.monotonic()
            row |= {"runs": solo.runs, "time_s": solo.time_s, "power_w": solo.power_w}
            row |= {"memory_bytes": solo.memory_bytes, "features": json_text(dict(solo.features))}
        return [_Part(SOLOS, f"{cell.application}-{cell.size}-{plan.device.key}", [row])]

    def _calibrated(self, tell: Callable[[str], None]) -> Calibration:
        """The microbenchmarks on the device, measured when they are needed for the first time."""
        if self._calibration is None:
            device = self._plan.device
            self._calibration = calibrate(self._crew, device.id, static_facts(device), tell)
            self._outcome.notes += [self._calibration.sentence, *self._calibration.doubts]
        return self._calibration

    def _mix(self, cell: Cell, tell: Callable[[str], None]) -> Mapping[str, float] | None:
        tell(f"characterize {cell.label}")
        try:
            answer = run_job(MixJob(self._plan.problem(cell), TIMEOUT_S), TIMEOUT_S)
        except MissingExtraError:
            raise
        except CrosscastError as error:
            self._outcome.notes.append(f"{cell.label}: no instruction mix: {error}")
            return None
        return dict(answer["mix"])

    def _environment(self, cell: Cell, calibration: Calibration) -> str:
        device = self._plan.device
        return json.dumps(
            {
                **environment.facts(),
                "opencl_platform": device.platform,
                "opencl_driver": device.driver,
                "problem": origin_of(self._plan.problem(cell)),
                "microbenchmarks": calibration.to_dict(),
            }
        )

    def _bag(self, piece: BagPiece) -> list[_Part]:
        solos = [self._alone.get((cell.application, cell.size)) for cell in piece.cells]
        known = [solo for solo in solos if solo is not None]
        if len(known) < len(solos):
            failing = ", ".join(
                dict.fromkeys(
                    cell.label for cell, solo in zip(piece.cells, solos, strict=True) if solo is None
                )
            )
            self._fail(piece, f"left out, as it fails alone: {failing}")
            return []
        works = [
            Work(self._plan.problem(cell), solo.runs) for cell, solo in zip(piece.cells, known, strict=True)
        ]
        alone_s = [self._time_alone(cell, work) for cell, work in zip(piece.cells, works, strict=True)]
        bag = self._crew.run(works)
        if bag.failed:
            reasons = (member.failure for member in bag.members if member.failure is not None)
            self._fail(piece, "; ".join(dict.fromkeys(reasons)))
        else:
            self._outcome.done += 1
            self._in_bags |= dict.fromkeys(piece.cells)
        self._outcome.notes.extend(f"{piece.name}: {note}" for note in bag.notes)
        name = f"{piece.name}-{piece.device.key}"
        return [_Part(BAGS, name, _rows(piece, bag, alone_s))]

    def _time_alone(self, cell: Cell, work: Work) -> float | None:
        """Time of a member's job alone, measured not long ago."""
        known = self._recent.get(cell)
        if known is None or time.monotonic() - known[1] > _STALE_S:
            time_s = job_time_s(self._crew.run([work]).members[0])
            if time_s is None:
                # It fails now: the bag will tell why.
                return self._alone[cell.application, cell.size].time_s
            known = self._recent[cell] = time_s, time.monotonic()
        return known[0]

    def tell_of_drift(self, tell: Callable[[str], None]) -> None:
        """Measure the members of the bags alone once more, and note how much that changed."""
        ratios: dict[str, float] = {}
        for cell in self._in_bags:
            solo = self._alone[cell.application, cell.size]
            tell(f"{cell.label} alone again")
            (member,) = self._crew.run([Work(self._plan.problem(cell), solo.runs)]).members
            time_s = job_time_s(member)
            if time_s is not None and solo.time_s:
                ratios[cell.label] = time_s / solo.time_s
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
        self._outcome.notes.append(text)


def _rows(piece: BagPiece, bag: BagRun, alone_s: Sequence[float | None]) -> list[dict[str, Any]]:
    """Rows of the table of bags; what members did beside one that failed is kept."""
    whole = {
        "bag": piece.name,
        "device": piece.device.key,
        "configuration": json_text(bag.sharing),
        "repeat": 0,
        "fits": None if bag.failed else 1,
        "bag_time_s": median(bag.bag_times_s) if bag.bag_times_s else None,
        "overlap": bag.overlap,
        "power_w": device_power_w(bag),
    }
    rows = []
    for position, (cell, member, own_s) in enumerate(zip(piece.cells, bag.members, alone_s, strict=True)):
        time_s = job_time_s(member)
        slowdown = None if time_s is None or not own_s else time_s / own_s
        own = {"position": position, "application": cell.application, "size": cell.size}
        own |= {"time_s": time_s, "slowdown": slowdown, "jobs": len(member.times_s)}
        rows.append({**whole, **own, "failure": member.failure})
    return rows
