"""Combinations of applications, of which one may be there several times: all, or some of them by lot."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from math import comb
from pathlib import Path
from statistics import median
from typing import Any

from crosscast import environment
from crosscast.data.corun import Solo
from crosscast.data.dataset import (
    TABLES,
    Dataset,
    merge_parts,
    parts,
    read_dataset,
    write_dataset,
    write_part,
)
from crosscast.data.files import locked
from crosscast.data.schema import BAGS, DEVICES, SOLOS, Schema, json_text
from crosscast.data.table import notes_of, table_of
from crosscast.errors import CrosscastError, InputError, MissingExtraError
from crosscast.measure.campaign import DescribePiece, Pace, State, is_described, refuse_unlike_devices
from crosscast.measure.corun.crew import BagRunner, Crew, Work, sharing
from crosscast.measure.corun.profile import Calibration, calibrate, device_power_w, job_time_s, profile_of
from crosscast.measure.corun.session import BagRun, CoRunSettings
from crosscast.measure.opencl import OpenCLDevice, known_row, static_facts
from crosscast.measure.processes import DescribeJob, MixJob, run_job
from crosscast.measure.subjects import TIMEOUT_S, SuiteProblem, fitted, identity
from crosscast.suite.application import Application, Caches, working_set
from crosscast.units import format_count


def combinations(things: int, size: int) -> int:
    """How many bags of a size there are of so many things.

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
        # So many bags go on with this thing.
        while number >= (count := combinations(things - thing, left)):
            number -= count
            thing += 1
        chosen.append(thing)
    return tuple(chosen)


def drawn(things: int, size: int, most: int | None, seed: int) -> list[tuple[int, ...]]:
    """All bags of a size, or so many of them by lot; a larger number begins with what a smaller one gives."""
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
"""Applications of a bag."""


@dataclass(frozen=True, order=True)
class Cell:
    """An application at a size."""

    application: str  # Name of the application
    size: str  # Name of the size
    found_by: str  # Name or path that it is found by

    @property
    def label(self) -> str:
        """What it is, for people and in names of bags."""
        return f"{self.application} {self.size}"


@dataclass(frozen=True)
class CoRunPlan:
    """The bags of a campaign, and how to measure them."""

    applications: Mapping[str, type[Application]]  # Applications by the name or path that they are found by
    sizes: tuple[str, ...]  # Names of the sizes
    device: OpenCLDevice  # Where to measure
    caches: Caches  # What the sizes must fit
    settings: CoRunSettings  # How to measure
    bags: tuple[int, ...] = (2,)  # Numbers of applications in a bag
    most_bags: int | None = None  # Most bags of each such number; `None` for all combinations
    seed: int = 0  # Start of the lot by which some of more are chosen
    cpu: OpenCLDevice | None = None  # CPU for the features that are of one, where the device is none
    mix: bool = True  # Whether to characterize each application, for its instruction mix

    def __post_init__(self) -> None:
        for number in self.bags:
            if not _SMALLEST <= number <= _LARGEST:
                raise InputError(
                    f"bags: expected numbers of applications from {_SMALLEST} to {_LARGEST}, found {number}"
                )
        if self.most_bags is not None and self.most_bags < 1:
            raise InputError(f"most_bags: expected at least 1, found {self.most_bags}")

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Each application at each size."""
        return tuple(
            Cell(kind.name, size, name)
            for size, (name, kind) in product(self.sizes, self.applications.items())
        )

    def problem(self, cell: Cell) -> SuiteProblem:
        """What runs."""
        nbytes = working_set(cell.size, self.caches)
        parameters = fitted(self.applications[cell.found_by], nbytes)
        return SuiteProblem(cell.found_by, cell.size, parameters, 0, nbytes)

    @property
    def text(self) -> str:
        """How many bags there are of each number of applications, and how many of them are measured."""
        cells = len(self.cells)
        parts = []
        for number in self.bags:
            total = combinations(cells, number)
            wanted = min(total, self.most_bags or total)
            chosen = f"{total:,}" if wanted == total else f"{wanted:,} of {total:,} (seed {self.seed})"
            parts.append(f"bags of {number}: {chosen}")
        return "; ".join([f"applications at sizes: {cells}", *parts])


@dataclass(frozen=True)
class SoloPiece:
    """Profile an application at a size alone and beside the microbenchmarks."""

    cell: Cell
    device: OpenCLDevice

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.cell.label} on {self.device.id}"


@dataclass(frozen=True)
class BagPiece:
    """Measure a bag."""

    cells: tuple[Cell, ...]
    device: OpenCLDevice

    @property
    def name(self) -> str:
        """Name of the bag."""
        return " + ".join(cell.label for cell in self.cells)

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.name} on {self.device.id}"


CoRunPiece = DescribePiece | SoloPiece | BagPiece


def pieces(plan: CoRunPlan) -> list[CoRunPiece]:
    """All pieces of a plan, in the order in which they are done."""
    return [
        DescribePiece(plan.device),
        *(SoloPiece(cell, plan.device) for cell in plan.cells),
        *_bags(plan),
    ]


def _bags(plan: CoRunPlan) -> Iterator[BagPiece]:
    cells = sorted(plan.cells)
    for number in dict.fromkeys(plan.bags):
        for places in drawn(len(cells), number, plan.most_bags, plan.seed):
            yield BagPiece(tuple(cells[place] for place in places), plan.device)


def missing(plan: CoRunPlan, dataset: Dataset) -> list[CoRunPiece]:
    """Pieces that a dataset lacks; what failed before is tried again."""
    refuse_unlike_devices([plan.device], dataset)
    alone = _alone(plan, dataset)
    together = _together(plan, dataset)

    def is_done(piece: CoRunPiece) -> bool:
        if isinstance(piece, DescribePiece):
            return is_described(piece.device, dataset)
        if isinstance(piece, SoloPiece):
            return (piece.cell.application, piece.cell.size) in alone
        return piece.name in together

    return [piece for piece in pieces(plan) if not is_done(piece)]


def origin_of(problem: SuiteProblem) -> dict[str, Any]:
    """What tells a problem from another one of the same name and size."""
    subject = identity(problem)
    return {
        "parameters": dict(subject.parameters),
        "seed": subject.seed,
        "source_sha256": subject.source_sha256,
    }


def _alone(plan: CoRunPlan, dataset: Dataset) -> set[tuple[str, str]]:
    """Applications and sizes that the dataset has alone on the plan's device."""
    wanted = {(cell.application, cell.size): cell for cell in plan.cells}
    found = set()
    for row in dataset.solos.to_pylist():
        key = row["application"], row["size"]
        if row["device"] != plan.device.key or row["failure"] is not None or key not in wanted:
            continue
        found_with = json.loads(row["environment"] or "{}")
        known = found_with if isinstance(found_with, dict) else {}
        for before, now in (
            (_text(known.get("problem")), _text(origin_of(plan.problem(wanted[key])))),
            (_threads(known.get("threads")), _threads(plan.settings.threads)),
        ):
            if before != now:
                raise InputError(
                    f"{dataset.label}: {' '.join(key)} was measured with {before}, and now has {now}: choose "
                    "another folder for it"
                )
        found.add(key)
    return found


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _threads(limit: object) -> str:
    return "all threads" if limit is None else f"threads: {limit}"


def _together(plan: CoRunPlan, dataset: Dataset) -> set[str]:
    """Names of the bags that the dataset has of the plan's device as it is shared now, where none failed."""
    failures = defaultdict(list)
    now = json_text(sharing(plan.device.id, plan.settings.threads))
    for row in dataset.bags.to_pylist():
        if (row["device"], row["configuration"]) == (plan.device.key, now):
            failures[row["bag"]].append(row["failure"])
    return {name for name, found in failures.items() if not any(found)}


@dataclass(frozen=True)
class CoRunFailure:
    """A piece that failed."""

    piece: CoRunPiece  # Which one
    reason: str  # Why, as a sentence


@dataclass
class CoRunOutcome:
    """What a campaign of bags did."""

    done: int = 0  # Pieces that were done now
    kept: int = 0  # Pieces that were there already
    failures: list[CoRunFailure] = field(default_factory=list)  # Pieces that failed
    # What was found on the way, and what went wrong without failing
    notes: list[str] = field(default_factory=list)


ALONE = "times_alone_s"
"""Where the environment of a solo run has all times that were measured of it."""

_SAME = 1e-9

_Key = tuple[str, str, str, str]


def settled(dataset: Dataset) -> Dataset:
    """Compare bags with the median of all times alone, where single ones were measured before them.

    A time alone that is measured once is off by as much as the machine is disturbed at that moment; in all
    slowdowns over it, the same way. What was measured before a bag is its time in the bag over its slowdown.
    """
    bags, alone_rows = dataset.bags.to_pylist(), dataset.solos.to_pylist()
    alone_keys = {_key(row) for row in alone_rows}
    before: defaultdict[_Key, list[float]] = defaultdict(list)
    for row in bags:
        if row["time_s"] and row["slowdown"]:
            before[_key_alone(row, alone_keys)].append(row["time_s"] / row["slowdown"])
    solos = [_solo(row, before[_key(row)]) for row in alone_rows]
    times = {_key(row): row["time_s"] for row in solos}
    for row in bags:
        alone = times.get(_key_alone(row, alone_keys))
        if row["slowdown"] and row["time_s"] and alone:
            row["slowdown"] = row["time_s"] / alone
    return replace(
        dataset,
        solos=table_of(SOLOS, solos, notes_of(dataset.solos)),
        bags=table_of(BAGS, bags, notes_of(dataset.bags)),
    )


def _key(row: Mapping[str, Any]) -> _Key:
    return row["application"], row["size"], row["device"], row["configuration"]


def _key_alone(row: Mapping[str, Any], known: Set[_Key]) -> _Key:
    """Key of a member's solo run: with no setting where there is none with the bag's, such as MPS."""
    key = _key(row)
    return key if key in known else (*key[:3], "{}")


def _solo(row: dict[str, Any], before: list[float]) -> dict[str, Any]:
    """The row with the median of its times, all of which go into its environment."""
    if not row["time_s"]:
        return row
    environment = json.loads(row["environment"] or "{}")
    known = [float(time_s) for time_s in environment.get(ALONE, [row["time_s"]])]
    for time_s in sorted(before):
        # Several bags follow one measurement, and settled ones follow the median.
        if not any(abs(time_s - each) <= _SAME * each for each in (*known, row["time_s"])):
            known.append(time_s)
    return {**row, "time_s": median(known), "environment": {**environment, ALONE: known}}


_STALE_S = 300.0
"""A time alone that is older is measured again before a bag: machines become slower and faster."""
_DRIFT = 0.1
"""Times alone that changed by so much make slowdowns doubtful."""

_CoRunKey = tuple[str, str]


@dataclass(frozen=True)
class PieceRows:
    """What a piece gives for a table."""

    schema: Schema  # Schema of the table
    name: str  # Name of the piece among those of the table
    rows: list[dict[str, Any]]  # Cells by column


class PieceWork:
    """Does pieces; knows the applications alone that bags are compared with."""

    def __init__(
        self,
        plan: CoRunPlan,
        crew: BagRunner,
        cpu: tuple[OpenCLDevice, BagRunner] | None,
        alone: dict[_CoRunKey, Solo],
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


_GUESS_S = {"DescribePiece": 4.0, "SoloPiece": 12.0, "BagPiece": 3.0}
"""Seconds of a piece of each kind, before one was done."""


def run_corun_campaign(
    plan: CoRunPlan, folder: Path, report: Callable[[State], None] = lambda state: None
) -> CoRunOutcome:
    """Do all that a dataset lacks of a plan: applications alone first, then bags.

    Times alone are measured again and again, five minutes before a bag at most, and once more at the end; how
    much they changed since the first is among the notes. A slowdown is the time of a job in the bag over the
    median of its times alone (see `crosscast.measure.corun.campaign.settled`).
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
        work = PieceWork(plan, crew, cpu, _campaign_alone(plan, dataset), outcome)
        pace = Pace(todo, _GUESS_S)
        for number, piece in enumerate(todo):

            def tell(label: str, number: int = number) -> None:
                report(State(outcome.kept + number, total, label, pace.left_s()))

            tell(piece.label)
            start = time.perf_counter()
            for part in work.done(piece, tell):
                write_part(folder, part.schema, part.name, table_of(part.schema, part.rows))
            pace.took(piece, time.perf_counter() - start)
        work.tell_of_drift(lambda label: report(State(total, total, label, 0.0)))
        merge_parts(folder)
        if outcome.done:
            write_dataset(settled(read_dataset(folder)), folder)
    return outcome


def _dataset(folder: Path) -> Dataset:
    """What the folder holds; an empty dataset if nothing."""
    there = parts(folder) or any((folder / f"{schema.table}.parquet").exists() for schema in TABLES)
    return read_dataset(folder) if there else Dataset(str(folder))


def _campaign_alone(plan: CoRunPlan, dataset: Dataset) -> dict[tuple[str, str], Solo]:
    """What the dataset has of applications alone on the plan's device, as far as bags need it."""
    return {
        (row["application"], row["size"]): Solo(
            row["application"], row["size"], row["device"], row["time_s"], runs=row["runs"]
        )
        for row in dataset.solos.to_pylist()
        if row["device"] == plan.device.key and row["failure"] is None
    }
