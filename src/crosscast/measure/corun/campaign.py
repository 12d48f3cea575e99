"""A campaign of bags: fill a dataset with applications alone and bags of them, piece by piece.

Each finished piece is a part of the dataset on disk, so that a campaign that was stopped in any way
goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from crosscast.measure.campaign import State
from crosscast.measure.corun.crew import Crew
from crosscast.measure.corun.outcome import CoRunOutcome
from crosscast.measure.corun.piece_work import PieceWork
from crosscast.measure.corun.plan import CoRunPlan, SoloPiece, missing, pieces
from crosscast.measure.corun.settling import settled
from crosscast.measure.pace import Pace
from crosscast.tables.arrow import table_of
from crosscast.tables.corun.solo import Solo
from crosscast.tables.dataset import (
    TABLES,
    Dataset,
    locked,
    merge_parts,
    parts,
    read_dataset,
    write_dataset,
    write_part,
)

__all__ = ["run_corun_campaign"]

_GUESS_S = {"DescribePiece": 4.0, "SoloPiece": 12.0, "BagPiece": 3.0}
"""Seconds of a piece of each kind, before one was done."""


def run_corun_campaign(
    plan: CoRunPlan, folder: Path, report: Callable[[State], None] = lambda state: None
) -> CoRunOutcome:
    """Do all that a dataset lacks of a plan: applications alone first, then bags.

    Times alone are measured again and again, five minutes before a bag at most, and once more at the end; how
    much they changed since the first is among the notes. A slowdown is the time of a job in the bag over the
    median of its times alone (see `crosscast.measure.corun.settling.settled`).

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
        work = PieceWork(plan, crew, cpu, _alone(plan, dataset), outcome)
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


def _alone(plan: CoRunPlan, dataset: Dataset) -> dict[tuple[str, str], Solo]:
    """What the dataset has of applications alone on the plan's device, as far as bags need it."""
    return {
        (row["application"], row["size"]): Solo(
            row["application"], row["size"], row["device"], row["time_s"], runs=row["runs"]
        )
        for row in dataset.solos.to_pylist()
        if row["device"] == plan.device.key and row["failure"] is None
    }
