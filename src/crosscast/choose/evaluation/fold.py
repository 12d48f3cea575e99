"""One fold: methods learn from all programs but some, and choose for those."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.choose.evaluation.cases import Cases, Weighting, cases_of
from crosscast.choose.evaluation.default_samples import Sampler
from crosscast.choose.evaluation.endings import endings
from crosscast.choose.limit import GUARD
from crosscast.choose.walk import Chooser, Method, Settled
from crosscast.errors import InputError
from crosscast.predict.configuration.surfaces import Observed, Surfaces
from crosscast.predict.grid import Reals

__all__ = ["FoldAnswer", "FoldTask", "Numbers", "answer_fold"]

Numbers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
"""Numbers of configurations or of changes, in an array of any shape."""


@dataclass(frozen=True)
class FoldTask:
    """What to do.

    Parameters
    ----------
    held_out
        Applications that are left out of everything that is learned.
    methods
        The methods.
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
    methods: tuple[Method, ...]
    samples: tuple[int, ...] | Sampler
    weighting: Weighting
    budgets: tuple[int, ...]
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{', '.join(self.held_out)} held out"


@dataclass(frozen=True, eq=False)
class FoldAnswer:
    """What methods chose.

    Parameters
    ----------
    samples
        The sample configurations.
    cases
        The ``m`` cases of the applications that are held out.
    chosen, changes
        ``(methods, budgets, m)`` The configuration where each settled, and the changes until there.
    guarded
        ``(methods, m)`` Where each settled with the last budget when told a cap lower by `GUARD`.
    fit_s, select_s
        ``(methods,)`` Seconds that the fit took, and the first choice for a case: median.
    """

    samples: tuple[int, ...]
    cases: Cases
    chosen: Numbers
    changes: Numbers
    guarded: Numbers
    fit_s: Reals
    select_s: Reals


def answer_fold(surfaces: Surfaces, task: FoldTask) -> FoldAnswer:
    """Fit all methods to the other applications, and let them choose for those that are held out.

    Raises
    ------
    InputError
        If a method cannot be fitted to so little, or takes a configuration at which the kernel did not run.
    """
    test = surfaces.rows_of(task.held_out)
    training = surfaces.take(~test)
    samples = task.samples(training, task.seed) if callable(task.samples) else task.samples
    cases = cases_of(surfaces, samples, test, task.weighting)
    shape = (len(task.methods), len(task.budgets), len(cases))
    chosen, changes = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    guarded = np.zeros((shape[0], shape[2]), np.int64)
    fit_s, select_s = np.zeros(shape[0]), np.zeros(shape[0])
    for place, method in enumerate(task.methods):
        start = time.perf_counter()
        try:
            chooser = method.fit(training, samples, task.seed)
        except InputError as error:
            raise InputError(f"{method.name}, {task.label}: {error}") from error
        fit_s[place] = time.perf_counter() - start
        asked = _Asked(surfaces, method, chooser, samples)
        select_s[place] = np.median([asked.first_s(cases, case) for case in range(len(cases))] or np.nan)
        for case in range(len(cases)):
            ends = asked.settle(cases, case, float(cases.power_cap[case]), task.budgets)
            chosen[place, :, case] = [each.number for each in ends]
            changes[place, :, case] = [each.changes for each in ends]
            lower = float(cases.power_cap[case]) * (1 - GUARD)
            guarded[place, case] = asked.settle(cases, case, lower, task.budgets[-1:])[0].number
    return FoldAnswer(samples, cases, chosen, changes, guarded, fit_s, select_s)


@dataclass(frozen=True)
class _Asked:
    """A method that is asked about cases."""

    surfaces: Surfaces
    method: Method
    chooser: Chooser
    samples: Sequence[int]

    def _observed(self, row: int) -> Observed:
        known = np.flatnonzero(self.surfaces.known[row]).tolist()
        return self.surfaces.observed(row, known if getattr(self.method, "sees_all", False) else self.samples)

    def _run(self, row: int) -> Callable[[int], Observed]:
        def run(number: int) -> Observed:
            self._check(row, number)
            return self.surfaces.observed(row, (number,))

        return run

    def _check(self, row: int, number: int) -> None:
        if not self.surfaces.known[row, number]:
            raise InputError(
                f"{self.method.name}: {self.surfaces.kernels[row]}: expected a configuration at which it was "
                f"run, found {self.surfaces.space.configurations[number]}"
            )

    def settle(self, cases: Cases, case: int, cap: float, budgets: Sequence[int]) -> list[Settled]:
        row = int(cases.kernel[case])
        known = self.surfaces.known[row]
        ends = endings(self.chooser, self._observed(row), cap, known, budgets, self._run(row))
        for end in ends:
            self._check(row, end.number)
        return ends

    def first_s(self, cases: Cases, case: int) -> float:
        """Seconds until the first configuration is chosen."""
        row = int(cases.kernel[case])
        observed, known = self._observed(row), self.surfaces.known[row]
        start = time.perf_counter()
        walk = self.chooser.walk(observed, float(cases.power_cap[case]), known, 0)
        next(walk)
        taken = time.perf_counter() - start
        walk.close()
        return taken
