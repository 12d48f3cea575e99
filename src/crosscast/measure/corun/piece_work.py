"""The pieces of a campaign of bags, done one by one: applications alone, and bags compared with these."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from crosscast import environment
from crosscast.errors import CrosscastError, MissingExtraError
from crosscast.measure.child import run_job
from crosscast.measure.corun.bag_run import BagRun
from crosscast.measure.corun.bag_runner import BagRunner
from crosscast.measure.corun.calibration import Calibration, calibrate
from crosscast.measure.corun.mix import TIMEOUT_S
from crosscast.measure.corun.outcome import CoRunFailure, CoRunOutcome
from crosscast.measure.corun.plan import BagPiece, Cell, CoRunPiece, CoRunPlan, SoloPiece, origin_of
from crosscast.measure.corun.profile import device_power_w, job_time_s, profile_of
from crosscast.measure.corun.work import Work
from crosscast.measure.jobs import DescribeJob, MixJob
from crosscast.measure.opencl.describe import known_row, static_facts
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.plan import DescribePiece
from crosscast.tables.bags import BAGS
from crosscast.tables.corun.solo import Solo
from crosscast.tables.devices import DEVICES
from crosscast.tables.schema import Schema, json_text
from crosscast.tables.solos import SOLOS
from crosscast.units import format_count

__all__ = ["PieceRows", "PieceWork"]

_STALE_S = 300.0
"""A time alone that is older is measured again before a bag: machines become slower and faster."""
_DRIFT = 0.1
"""Times alone that changed by so much make slowdowns doubtful."""

_Key = tuple[str, str]


@dataclass(frozen=True)
class PieceRows:
    """What a piece gives for a table.

    Parameters
    ----------
    schema
        Schema of the table.
    name
        Name of the piece among those of the table.
    rows
        Cells by column.
    """

    schema: Schema
    name: str
    rows: list[dict[str, Any]]


class PieceWork:
    """Does pieces; knows the applications alone that bags are compared with.

    Parameters
    ----------
    plan
        What they are of.
    crew
        What measures on the device.
    cpu
        A CPU and what measures there, for the features that are of one; ``None`` to do without.
    alone
        Applications that are known alone, by name and size; those that are done are added.
    outcome
        Where it is noted what was done.
    """

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

    def done(self, piece: CoRunPiece, tell: Callable[[str], None]) -> Sequence[PieceRows]:
        """Do a piece; return what to write."""
        if isinstance(piece, DescribePiece):
            return self._described(piece)
        if isinstance(piece, SoloPiece):
            return self._profiled(piece, tell)
        return self._bag(piece)

    def _fail(self, piece: CoRunPiece, reason: str) -> None:
        self._outcome.failures.append(CoRunFailure(piece, reason))

    def _described(self, piece: DescribePiece) -> list[PieceRows]:
        # Asked before anything runs: a device that is lost later answers no more.
        row = known_row(piece.device)
        try:
            row = run_job(DescribeJob(piece.device.id), self._plan.settings.timeout_s)
            self._outcome.done += 1
        except MissingExtraError:
            raise
        except CrosscastError as error:
            self._fail(piece, str(error))
        return [PieceRows(DEVICES, piece.device.key, [row])]

    def _profiled(self, piece: SoloPiece, tell: Callable[[str], None]) -> list[PieceRows]:
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
        return [PieceRows(SOLOS, f"{cell.application}-{cell.size}-{plan.device.key}", [row])]

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
                "threads": self._plan.settings.threads,
                "microbenchmarks": calibration.to_dict(),
            }
        )

    def _bag(self, piece: BagPiece) -> list[PieceRows]:
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
        shared = "" if not bag.sharing else f"-{json_text(bag.sharing)}"
        name = f"{piece.name}-{piece.device.key}{shared}"
        return [PieceRows(BAGS, name, _rows(piece, bag, alone_s))]

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
