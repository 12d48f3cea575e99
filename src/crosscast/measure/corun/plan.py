"""What a campaign of bags has to do, piece by piece, and which pieces are done."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from crosscast.errors import InputError
from crosscast.measure.corun.combinations import combinations, drawn
from crosscast.measure.corun.settings import CoRunSettings
from crosscast.measure.corun.sharing import sharing
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.plan import DescribePiece, is_described, refuse_unlike_devices
from crosscast.measure.subjects import SuiteProblem, fitted, identity
from crosscast.suite.application import Application
from crosscast.suite.sizes import Caches, working_set
from crosscast.tables.dataset import Dataset
from crosscast.tables.schema import json_text

__all__ = ["BagPiece", "Cell", "CoRunPiece", "CoRunPlan", "SoloPiece", "missing", "origin_of", "pieces"]

_SMALLEST, _LARGEST = 2, 8
"""Applications of a bag."""


@dataclass(frozen=True, order=True)
class Cell:
    """An application at a size.

    Parameters
    ----------
    application
        Name of the application.
    size
        Name of the size.
    found_by
        Name or path that it is found by.
    """

    application: str
    size: str
    found_by: str

    @property
    def label(self) -> str:
        """What it is, for people and in names of bags."""
        return f"{self.application} {self.size}"


@dataclass(frozen=True)
class CoRunPlan:
    """The bags of a campaign, and how to measure them.

    Parameters
    ----------
    applications
        Applications by the name or path that they are found by.
    sizes
        Names of the sizes.
    device
        Where to measure.
    caches
        What the sizes must fit.
    settings
        How to measure.
    bags
        Numbers of applications in a bag.
    most_bags
        Most bags of each such number; ``None`` for all combinations.
    seed
        Start of the lot by which some of more are chosen.
    cpu
        CPU for the features that are of one, where the device is none.
    mix
        Whether to characterize each application, for its instruction mix.
    """

    applications: Mapping[str, type[Application]]
    sizes: tuple[str, ...]
    device: OpenCLDevice
    caches: Caches
    settings: CoRunSettings
    bags: tuple[int, ...] = (2,)
    most_bags: int | None = None
    seed: int = 0
    cpu: OpenCLDevice | None = None
    mix: bool = True

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
        """What runs.

        Raises
        ------
        InputError
            If the application's driver fails to fit the size.
        """
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
    """Pieces that a dataset lacks; what failed before is tried again.

    Raises
    ------
    InputError
        If the dataset holds solo runs of another source or with other parameters or threads, or another
        driver's: these must not be mixed.
    """
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
