"""One fold: a method learns from all programs but some, and chooses for those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from crosscast.choose.evaluation.cases import Cases, Weighting, cases_of
from crosscast.choose.evaluation.endings import endings
from crosscast.choose.evaluation.sampler import Sampler
from crosscast.choose.limit import GUARD
from crosscast.choose.walk import Chooser, Method, Settled
from crosscast.errors import InputError
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["FoldAnswer", "FoldTask", "Numbers", "answer_fold", "samples_of_fold"]

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""Numbers of configurations or of changes, in an array of any shape."""


@dataclass(frozen=True)
class FoldTask:
    """What to do.

    Parameters
    ----------
    held_out
        Applications that are left out of everything that is learned.
    method
        The method.
    samples
        The sample configurations, or what chooses them by the training kernels.
    weighting
        How the kernels of a program are weighted.
    budgets
        Most changes after the first configuration; the last is that of the table.
    seed
        Start of all random numbers.
    """

    held_out: tuple[str, ...]
    method: Method
    samples: tuple[int, ...] | Sampler
    weighting: Weighting
    budgets: tuple[int, ...]
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.method.name}, {' and '.join(self.held_out)} held out"

    def cases(self, surfaces: Surfaces, samples: Sequence[int]) -> Cases:
        """The cases of the applications that are held out, with these sample configurations."""
        return cases_of(surfaces, samples, surfaces.rows_of(self.held_out), self.weighting)


@dataclass(frozen=True, eq=False)
class FoldAnswer:
    """What a method chose in the ``m`` cases of a fold.

    Parameters
    ----------
    samples
        The sample configurations.
    chosen, changes
        ``(budgets, m)`` The configuration where it settled, and the changes until there.
    guarded
        ``(m,)`` Where it settled with the last budget when told a cap lower by `GUARD`.
    """

    samples: tuple[int, ...]
    chosen: Numbers
    changes: Numbers
    guarded: Numbers


def samples_of_fold(surfaces: Surfaces, task: FoldTask) -> tuple[int, ...]:
    """The sample configurations of a fold: those named, or those that the other applications suggest."""
    if not callable(task.samples):
        return task.samples
    return task.samples(surfaces.take(~surfaces.rows_of(task.held_out)), task.seed)


def answer_fold(surfaces: Surfaces, task: FoldTask, samples: tuple[int, ...]) -> FoldAnswer:
    """Fit the method to the other applications, and let it choose for those that are held out.

    Raises
    ------
    InputError
        If the method cannot be fitted to so little, or takes a configuration at which the kernel did not
        run.
    """
    training = surfaces.take(~surfaces.rows_of(task.held_out))
    try:
        chooser = task.method.fit(training, samples, task.seed)
    except InputError as error:
        raise InputError(f"{task.label}: {error}") from error
    cases = task.cases(surfaces, samples)
    asked = _Asked(surfaces, task.method, chooser, samples)
    caps = list(zip(cases.kernel.tolist(), cases.power_cap.tolist(), strict=True))
    ends = [asked.settle(row, cap, task.budgets) for row, cap in caps]
    guarded = [asked.settle(row, cap * (1 - GUARD), task.budgets[-1:])[0].number for row, cap in caps]
    shape = (len(task.budgets), len(cases))
    return FoldAnswer(
        samples,
        np.array([[each.number for each in of_case] for of_case in ends], np.int64).T.reshape(shape),
        np.array([[each.changes for each in of_case] for of_case in ends], np.int64).T.reshape(shape),
        np.array(guarded, np.int64),
    )


@dataclass(frozen=True)
class _Asked:
    """A method that is asked about kernels under caps."""

    surfaces: Surfaces
    method: Method
    chooser: Chooser
    samples: Sequence[int]
    told: dict[int, Observed] = field(default_factory=dict)
    runs: dict[tuple[int, int], Observed] = field(default_factory=dict)

    def observed(self, row: int) -> Observed:
        """What the method is told of a kernel: always the same object, whatever the cap."""
        if row not in self.told:
            everything = np.flatnonzero(self.surfaces.known[row]).tolist()
            numbers = everything if getattr(self.method, "sees_all", False) else self.samples
            self.told[row] = self.surfaces.observed(row, numbers)
        return self.told[row]

    def run(self, row: int) -> Callable[[int], Observed]:
        def run(number: int) -> Observed:
            if (row, number) not in self.runs:
                self.check(row, number)
                self.runs[row, number] = self.surfaces.observed(row, (number,))
            return self.runs[row, number]

        return run

    def check(self, row: int, number: int) -> None:
        if not np.isfinite(self.surfaces.time_s[row, number]):
            raise InputError(
                f"{self.method.name}: {self.surfaces.kernels[row]}: expected a configuration at which it was "
                f"run, found {self.surfaces.space.configurations[number]}"
            )

    def settle(self, row: int, cap: float, budgets: Sequence[int]) -> list[Settled]:
        known = np.isfinite(self.surfaces.time_s[row])
        ends = endings(self.chooser, self.observed(row), cap, known, budgets, self.run(row))
        for end in ends:
            self.check(row, end.number)
        return ends
