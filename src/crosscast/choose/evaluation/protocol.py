"""Honest evaluation of methods: each program is left out of all that they learn, and then chosen for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.choose.evaluation.cases import Cases, Weighting, check_weighting, joined
from crosscast.choose.evaluation.fold import FoldAnswer, FoldTask, Numbers
from crosscast.choose.evaluation.folds import duplicates, folds_together
from crosscast.choose.evaluation.machine import MachineChoices
from crosscast.choose.evaluation.metrics import Metrics
from crosscast.choose.evaluation.repeat_noise import repeat_noise
from crosscast.choose.evaluation.repeats import Repeats, simulated_repeats, split_half_oracle
from crosscast.choose.evaluation.result import ChoiceResult
from crosscast.choose.evaluation.sampler import Sampler
from crosscast.choose.evaluation.scoring import Choices, results_of
from crosscast.choose.evaluation.work import answer_folds
from crosscast.choose.named_samples import sample_numbers
from crosscast.choose.samples import two_samples
from crosscast.choose.walk import Method
from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.seeds import check_seed
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["ALONE", "CURVE", "TOGETHER", "evaluate_choices"]

ALONE = "leave-benchmark-out"
"""Protocol that leaves out each application, with all its kernels and sizes."""

TOGETHER = "leave-duplicates-out"
"""The same, with applications that are nearly the same left out together."""

CURVE = tuple(range(9))
"""Numbers of changes of which the curve is made."""


def evaluate_choices(
    surfaces: Surfaces,
    methods: Sequence[Method],
    *,
    samples: Sequence[Configuration] | Sampler = two_samples,
    weighting: Weighting = "time",
    together: Sequence[Sequence[str]] = (),
    duplicates_too: bool = True,
    budget: int | None = None,
    curve: Sequence[int] = CURVE,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> MachineChoices:
    """Fit methods to all applications but one, let them choose for that one, for each; and score the choices.

    The choice of the sample configurations is part of what is learned.

    Parameters
    ----------
    surfaces
        Times and powers of one machine.
    methods
        The methods; their names differ. One with an attribute ``sees_all`` that is true is told all runs of
        the kernel in place of those at the sample configurations. With ``baseline``, others are compared with
        it; ``confidence`` is the probability with which it means to keep to caps.
    samples
        The sample configurations, or what chooses them by the training kernels.
    weighting
        How the kernels of a program are weighted: see `cases_of`.
    together
        Groups of applications that are left out together, besides those whose names say that they are
        variants: see `duplicates`. Where all names begin alike, that says nothing.
    duplicates_too
        Whether near-duplicates are left out together as well.
    budget
        Most changes after the first configuration, for the results other than the curve; no limit by default.
    curve
        Most changes after the first configuration, for the curve.
    seed
        Start of all random numbers.
    progress
        Called whenever a fit with its choices is done.
    cache
        Folder that keeps what methods chose in finished folds; nothing is kept by default.
    jobs
        Processes that work at the same time; the results are the same.

    Raises
    ------
    InputError
        If there is no method, or two of a name, there are not two applications with cases, a sample
        configuration is not known or named twice, a budget is negative, the seed is negative or too large,
        a method cannot be fitted to so little, or the cache cannot be written.
    """
    check_seed(seed)
    check_weighting(weighting)
    _check(surfaces, methods, [*curve, 0 if budget is None else budget])
    groups = duplicates(surfaces.applications, together) if duplicates_too else ()
    if not together and groups == (surfaces.applications,):
        # Names that all begin alike tell nothing apart.
        groups = ()
    alone = tuple((name,) for name in surfaces.applications)
    grouped = folds_together(surfaces.applications, groups) if groups else ()
    folds = tuple(dict.fromkeys([*alone, *grouped]))
    budgets = (*curve, len(surfaces.space) if budget is None else budget)
    wanted = samples if callable(samples) else sample_numbers(surfaces.space, samples)
    tasks = [FoldTask(fold, each, wanted, weighting, budgets, seed) for fold in folds for each in methods]
    done = answer_folds(surfaces, tasks, progress=progress, cache=cache, jobs=jobs)
    answers = {
        fold: _AllOfFold.of(
            surfaces, tasks[place * len(methods)], done[place * len(methods) :][: len(methods)]
        )
        for place, fold in enumerate(folds)
    }
    noise = repeat_noise(surfaces)
    repeats = None if noise is None else simulated_repeats(surfaces, noise, seed)
    results: list[ChoiceResult] = []
    for protocol, held_out in ((ALONE, alone), (TOGETHER, grouped)):
        if held_out:
            choices = _choices(surfaces, [answers[fold] for fold in held_out], protocol, budget, curve)
            results += results_of(choices, methods, repeats, seed)
    cases = joined([answers[fold].cases for fold in alone])
    return MachineChoices(
        surfaces,
        cases,
        {fold: answer.samples for fold, answer in answers.items()},
        groups,
        noise,
        _split_half(cases, repeats),
        tuple(results),
    )


@dataclass(frozen=True, eq=False)
class _AllOfFold:
    """What all methods chose in a fold: the fields of `FoldAnswer`, with the methods as first axis."""

    samples: tuple[int, ...]
    cases: Cases
    chosen: Numbers
    changes: Numbers
    guarded: Numbers

    @classmethod
    def of(cls, surfaces: Surfaces, task: FoldTask, answers: Sequence[FoldAnswer]) -> _AllOfFold:
        samples = answers[0].samples
        return cls(
            samples,
            task.cases(surfaces, samples),
            np.stack([answer.chosen for answer in answers]),
            np.stack([answer.changes for answer in answers]),
            np.stack([answer.guarded for answer in answers]),
        )


def _check(surfaces: Surfaces, methods: Sequence[Method], budgets: Sequence[int]) -> None:
    names = [method.name for method in methods]
    if not names or len(set(names)) < len(names):
        raise InputError(f"methods: expected at least one, and each once, found {', '.join(names) or 'none'}")
    if len(surfaces.applications) < 2:
        found = ", ".join(surfaces.applications) or "none"
        raise InputError(f"{surfaces.label}: expected at least 2 programs to leave one out, found {found}")
    if min(budgets) < 0:
        raise InputError(f"budget: expected at least 0, found {min(budgets)}")


def _choices(
    surfaces: Surfaces,
    answers: Sequence[_AllOfFold],
    protocol: str,
    budget: int | None,
    curve: Sequence[int],
) -> Choices:
    cases = joined([answer.cases for answer in answers])
    if len(cases.programs) < 2:
        reasons = "; ".join(f"{each.kernel}: {each.reason}" for each in cases.left_out)
        raise InputError(f"{surfaces.label}: expected at least 2 programs under caps ({reasons})")
    return Choices(
        surfaces,
        cases,
        protocol,
        budget,
        tuple(curve),
        np.concatenate([answer.chosen for answer in answers], axis=-1),
        np.concatenate([answer.changes for answer in answers], axis=-1),
        np.concatenate([answer.guarded for answer in answers], axis=-1),
    )


def _split_half(cases: Cases, repeats: Repeats | None) -> Metrics | None:
    return None if repeats is None else split_half_oracle(cases, repeats)
