"""Evaluate methods that choose configurations under power caps, with each program held out in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from itertools import chain, combinations, takewhile
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np

from crosscast.arrays import Arrays
from crosscast.data.configuration import Configuration
from crosscast.decide import (
    GUARD,
    Cases,
    FittedMethod,
    Method,
    Outcome,
    cases_of,
    joined,
    outcomes,
)
from crosscast.decide.policies import methods_of
from crosscast.decide.samples import Sampler, two_samples
from crosscast.errors import InputError, expect_known
from crosscast.evaluation import JSON_VERSION
from crosscast.evaluation.configuration.scores import (
    METRICS,
    REPEATS,
    ChoiceMetrics,
    ChoiceResult,
    Choices,
    RepeatNoise,
    repeat_noise,
    results_of,
    simulated_repeats,
    split_half_oracle,
)
from crosscast.evaluation.keep import fingerprint
from crosscast.evaluation.loop import FoldTask, RunArguments, check_names, check_seed, run_tasks
from crosscast.evaluation.resampling import DRAWS, SHARE
from crosscast.prediction.configuration import (
    ConfigurationSpace,
    Observed,
    Surfaces,
    connected,
    sample_numbers,
)
from crosscast.prediction.configuration.bailey2014 import PublishedModel, PublishedPredictor
from crosscast.results import Tabular, columns_of

if TYPE_CHECKING:
    from crosscast.results import Column

ALONE = "leave-benchmark-out"
"""Protocol that holds out each application, with all its kernels and sizes."""

TOGETHER = "leave-duplicates-out"
"""Protocol that holds out each application together with its near-duplicates."""

CURVE = tuple(range(9))
"""Numbers of changes in the curve."""

SOURCES = ("prediction", "decide")
"""Sources on which answers depend."""

_LEAST_COMMON = 3  # Letters that names of variants begin with in common


def duplicates(
    programs: Sequence[str], together: Sequence[Sequence[str]] = ()
) -> tuple[tuple[str, ...], ...]:
    """Programs that are probably variants of each other; groups that share a program are merged.

    Their names have a common prefix, ignoring case: of 3 letters, and at least half of the shorter name.
    """

    def share_prefix(one: str, other: str) -> bool:
        letters = zip(one.lower(), other.lower(), strict=False)
        common = len(list(takewhile(lambda pair: pair[0] == pair[1], letters)))
        return common >= _LEAST_COMMON and 2 * common >= min(len(one), len(other))

    pairs = (pair for pair in combinations(sorted(programs), 2) if share_prefix(*pair))
    groups = connected({*variants} & {*programs} for variants in (*pairs, *together))
    return tuple(sorted(tuple(sorted(group)) for group in groups if len(group) > 1))


def folds_together(programs: Sequence[str], groups: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Folds in which groups are held out together, and all other programs alone."""
    grouped = {name for group in groups for name in group}
    folds = sorted([*((name,) for name in programs if name not in grouped), *map(tuple, groups)])
    if len(folds) < 2:
        raise InputError.of(
            field="groups", expected="programs left to learn from", found=f"all in {'+'.join(folds[0])}"
        )
    return tuple(folds)


class Programs(NamedTuple):
    """Applications that are not in the training."""

    names: tuple[str, ...]

    @property
    def held_out(self) -> str:
        """The names, for people."""
        return " and ".join(self.names)


@dataclass(frozen=True)
class ChoiceTask(FoldTask[Method, Programs, Surfaces]):
    """A fold, and the methods that share a model: one fit, an answer for each method."""

    methods: tuple[Method, ...]  # The model of the task is the first of them
    samples: tuple[int, ...]  # The sample configurations
    budgets: tuple[int, ...]  # Most changes after the first configuration; the last is for the table

    @property
    def cache_keys(self) -> list[object]:
        """Key of each method's answer; a method that is no dataclass is known by name and class."""
        facts = [list(self.fold.names), list(self.samples), list(self.budgets), self.seed]
        return [["choices", method.name, fingerprint(method), *facts] for method in self.methods]

    def run(self, data: Surfaces, queries: Sequence[int]) -> list[Arrays]:
        """Fit the model to the other applications, and let methods choose for those that are held out.

        Returns ``chosen`` and ``changes``, ``(budgets, m)``: the final configuration in each case, and the
        changes until then; ``guarded`` ``(m,)``: the final one with the last budget under a cap lower by
        `GUARD`.
        """
        training = data.take(~data.rows_of(self.fold.names))
        learner = self.model.learner
        predictor = None if learner is None else learner.fit(training, self.samples, self.seed)
        cases = self.cases(data)
        caps = list(zip(cases.kernel.tolist(), cases.power_cap.tolist(), strict=True))
        answers: list[Arrays] = []
        for method in (self.methods[number] for number in queries):
            policy = method.fit(training, self.samples, self.seed, predictor)
            ends_of = _final_outcomes(data, method, policy, self.samples)
            ends = [ends_of(row, cap, self.budgets) for row, cap in caps]
            guarded = [ends_of(row, cap * (1 - GUARD), self.budgets[-1:])[0].number for row, cap in caps]
            chosen_and_changes = np.array(ends, np.int64).reshape(len(cases), len(self.budgets), 2)
            answer = {"chosen": chosen_and_changes[..., 0].T, "changes": chosen_and_changes[..., 1].T}
            answers.append({**answer, "guarded": np.array(guarded, np.int64)})
        return answers

    def cases(self, surfaces: Surfaces) -> Cases:
        """The cases of the applications that are held out."""
        return cases_of(surfaces, self.samples, surfaces.rows_of(self.fold.names))

    def is_valid(self, data: Surfaces, query: int, arrays: Arrays) -> bool:
        """Whether arrays are of the right kinds and shapes, and all numbers are of configurations."""
        m = len(self.cases(data))
        shapes = {"chosen": (len(self.budgets), m), "changes": (len(self.budgets), m), "guarded": (m,)}
        if {name: each.shape for name, each in arrays.items()} != shapes:
            return False
        numbers = np.concatenate([arrays["chosen"].ravel(), arrays["guarded"]])
        are_integers = all(each.dtype == np.int64 for each in arrays.values())
        return are_integers and bool(((numbers >= 0) & (numbers < len(data.space))).all())


def _final_outcomes(
    surfaces: Surfaces, method: Method, policy: FittedMethod, samples: Sequence[int]
) -> Callable[[int, float, Sequence[int]], list[Outcome]]:
    """Function that returns a method's final outcomes for a kernel, by row, cap, and budgets."""

    @cache
    def run(row: int, number: int) -> Observed:
        if not surfaces.known[row, number]:
            where = f"{method.name}: {surfaces.kernels[row]}"
            found = str(surfaces.space.configurations[number])
            raise InputError.of(where=where, expected="a configuration at which it was run", found=found)
        return surfaces.observed(row, (number,))

    @cache
    def first(row: int) -> Observed:
        # The same object for all caps, as policies may cache by identity.
        return surfaces.observed(row, range(len(surfaces.space)) if method.sees_all else samples)

    def final(row: int, cap: float, budgets: Sequence[int]) -> list[Outcome]:
        known = np.isfinite(surfaces.time_s[row])
        ends = outcomes(policy, first(row), cap, known, budgets, partial(run, row))
        for end in ends:
            run(row, end.number)
        return ends

    return final


@dataclass(frozen=True, eq=False)
class MachineChoices:
    """Results of methods on one machine."""

    surfaces: Surfaces  # Measured times and powers
    cases: Cases  # Kernels under caps
    # Sample configurations of each fold, by the held-out applications
    samples: Mapping[tuple[str, ...], tuple[int, ...]]
    groups: tuple[tuple[str, ...], ...]  # Near-duplicate applications
    noise: RepeatNoise | None  # `None` where it cannot be estimated
    split_half: ChoiceMetrics | None  # The split-half oracle on simulated repeats; `None` without `noise`
    # Of each method with each application held out; then with near-duplicates held out together, if there are
    # any
    results: tuple[ChoiceResult, ...]
    sampler: Sampler
    seed: int

    @property
    def machine(self) -> str:
        """Name of the machine: the keys of its devices."""
        return " + ".join(self.surfaces.space.devices)

    @cached_property
    def published(self) -> PublishedPredictor:
        """The model of Bailey et al. 2014 on all programs, for people; no score uses it."""
        return PublishedModel().fit(self.surfaces, self.sampler(self.surfaces, self.seed), self.seed)

    def to_dict(self) -> dict[str, object]:
        """The cases, as a JSON object."""
        space, cases = self.surfaces.space, self.cases
        return {
            "machine": self.machine,
            "devices": list(space.devices),
            "configurations": len(space),
            "kernels_at_a_size": len(set(cases.kernel.tolist())),
            "programs": list(cases.programs),
            "cases": len(cases),
            "left_out": [{"kernel": str(each.kernel), "reason": each.reason} for each in cases.left_out],
            "left_out_together": [list(group) for group in self.groups],
            "samples": {
                "+".join(fold): [space.configurations[number].to_dict() for number in numbers]
                for fold, numbers in self.samples.items()
            },
            "repeats": self._repeats(),
            "published_model": self.published.to_dict(),
        }

    def _repeats(self) -> dict[str, object] | None:
        if self.noise is None or self.split_half is None:
            return None
        return {
            "simulated": True,
            "note": "the data has no repeats: these are simulated from noise that is estimated by how far "
            "neighbouring configurations are from a line",
            "repeats": REPEATS,
            "noise_log_time": float(np.median(self.noise.time)),
            "noise_log_power": float(np.median(self.noise.power)),
            "split_half_oracle": asdict(self.split_half),
        }


def evaluate_machine(
    surfaces: Surfaces,
    methods: Sequence[Method],
    *,
    samples: Sequence[Configuration] | Sampler = two_samples,
    together: Sequence[Sequence[str]] = (),
    duplicates_too: bool = True,
    held_out: Sequence[str] | None = None,
    budget: int | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> MachineChoices:
    """Fit methods, samples included, without each application in turn, and score their choices on it.

    `held_out` are held out in turn, by default all; the others are always in the training. `run` is as
    in `run_tasks`.
    """
    check_seed(seed)
    names = [method.name for method in methods]
    check_names(names, "methods")
    programs = tuple(held_out or surfaces.applications)
    budgets = (*CURVE, len(surfaces.space) if budget is None else budget)
    if len(programs) < 2:
        expected, found = "at least 2 programs to leave one out", ", ".join(programs) or "none"
        raise InputError.of(where=surfaces.label, expected=expected, found=found)
    if budgets[-1] < 0:
        raise InputError.of(field="max_retunes", expected="at least 0", found=budget)
    groups, folds = _folds(programs, together, duplicates_too)
    sampler = sampler_of(surfaces, samples)
    by_fold = {
        fold: sampler(surfaces.take(~surfaces.rows_of(fold)), seed)
        for fold in dict.fromkeys(chain.from_iterable(folds.values()))
    }
    learners: dict[str, list[Method]] = {}
    for method in methods:
        learners.setdefault(fingerprint(method.learner or method), []).append(method)
    tasks = [
        ChoiceTask(of_learner[0], Programs(fold), seed, tuple(of_learner), numbers, budgets)
        for fold, numbers in by_fold.items()
        for of_learner in learners.values()
    ]
    done = run_tasks(tasks, surfaces, sources=SOURCES, **run)
    answers = {
        (task.fold.names, method.name): answer
        for task, of_task in zip(tasks, done, strict=True)
        for method, answer in zip(task.methods, of_task, strict=True)
    }
    cases = {task.fold.names: task.cases(surfaces) for task in tasks[:: len(learners)]}
    noise = repeat_noise(surfaces)
    repeats = None if noise is None else simulated_repeats(surfaces, noise, seed)
    results: list[ChoiceResult] = []
    for protocol, of_protocol in folds.items():
        of_folds = joined([cases[fold] for fold in of_protocol])
        if len(of_folds.programs) < 2:
            reasons = "; ".join(f"{each.kernel}: {each.reason}" for each in of_folds.left_out)
            raise InputError.of(where=surfaces.label, expected=f"at least 2 programs under caps ({reasons})")
        chosen, changes, guarded = (
            np.concatenate(
                [np.stack([answers[fold, each][name] for each in names]) for fold in of_protocol], -1
            )
            for name in ("chosen", "changes", "guarded")
        )
        choices = Choices(surfaces, of_folds, protocol, budget, CURVE, chosen, changes, guarded)
        results += results_of(choices, methods, repeats, seed)
    all_cases = joined([cases[fold] for fold in folds[ALONE]])
    split_half = None if repeats is None else split_half_oracle(all_cases, repeats)
    return MachineChoices(
        surfaces, all_cases, by_fold, groups, noise, split_half, tuple(results), sampler, seed
    )


Folds = Mapping[str, Sequence[tuple[str, ...]]]
"""Folds by protocol: the programs that each holds out."""


def _folds(
    programs: tuple[str, ...], together: Sequence[Sequence[str]], duplicates_too: bool
) -> tuple[tuple[tuple[str, ...], ...], Folds]:
    """Groups of near-duplicate programs, and the folds."""
    groups = duplicates(programs, together) if duplicates_too else ()
    alone = {ALONE: tuple((name,) for name in programs)}
    # A prefix that all names share is no sign of duplicates.
    if not groups or (not together and groups == (programs,)):
        return (), alone
    return groups, {**alone, TOGETHER: folds_together(programs, groups)}


def sampler_of(surfaces: Surfaces, samples: Sequence[Configuration] | Sampler) -> Sampler:
    """The sampler: the given function, or a constant one of the given configurations."""
    if callable(samples):
        return samples
    numbers = sample_numbers(surfaces.space, samples)
    return lambda _, seed: numbers


@dataclass(frozen=True, eq=False)
class ConfigurationEvaluation(Tabular):
    """Results of methods on all machines of a dataset; as a table, a row for each result."""

    label: str  # Of the dataset
    seed: int  # Of all random numbers
    machines: tuple[MachineChoices, ...]

    def columns(self) -> Mapping[str, Column]:
        """Metrics of each method on each machine, under each protocol."""
        return columns_of(self._results(), ("machine", "method", "folds", "baseline", *METRICS))

    def _results(self) -> list[dict[str, object]]:
        return [
            {"machine": machine.machine, **result.to_dict()}
            for machine in self.machines
            for result in machine.results
        ]

    def to_dict(self) -> dict[str, object]:
        """All but the cases, as ``--json`` prints it; unknown values are null."""
        return {
            "version": JSON_VERSION,
            "dataset": self.label,
            "question": "configuration",
            "folds": ALONE,
            "weighting": "time",
            "seed": self.seed,
            "bootstrap": {"over": "programs", "draws": DRAWS, "share": SHARE},
            "machines": [machine.to_dict() for machine in self.machines],
            "results": self._results(),
        }


def evaluate_configuration(
    machines: Sequence[Surfaces],
    methods: Callable[[ConfigurationSpace], Sequence[Method]] = methods_of,
    *,
    label: str = "surfaces",
    samples: Sequence[Configuration] | Sampler = two_samples,
    together: Sequence[Sequence[str]] = (),
    budget: int | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> ConfigurationEvaluation:
    """Compare the methods of each machine's configurations, as `evaluate_machine` does."""
    if not machines:
        raise InputError.of(where=label, expected="at least one machine", found="none")
    known = sorted({name for surfaces in machines for name in surfaces.applications})
    expect_known(chain.from_iterable(together), known, where="groups")
    evaluated = [
        evaluate_machine(
            each, methods(each.space), samples=samples, together=together, budget=budget, seed=seed, **run
        )
        for each in machines
    ]
    return ConfigurationEvaluation(label, seed, tuple(evaluated))
