"""Which programs are left out at a time: each alone, and those that are nearly the same together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.configuration import Configuration
from crosscast.decide.cases import (
    Cases,
    Numbers,
    Sampler,
    Weighting,
    cases_of,
    check_weighting,
    endings,
    joined,
)
from crosscast.decide.policies import model_of
from crosscast.decide.power_cap import GUARD, Chooser, Method, Settled
from crosscast.decide.samples import sample_numbers, two_samples
from crosscast.decide.scores import (
    REPEATS,
    ChoiceResult,
    Choices,
    Metrics,
    RepeatNoise,
    Repeats,
    repeat_noise,
    results_of,
    simulated_repeats,
    split_half_oracle,
)
from crosscast.errors import InputError
from crosscast.evaluation.cache_folder import (
    cache_key,
    cached_arrays,
    cached_file,
    fingerprint,
    sources_digest,
)
from crosscast.evaluation.confidence import DRAWS, SHARE
from crosscast.evaluation.processes import Progress, check_jobs, check_seed, done_pieces, one_thread, told
from crosscast.predict.configuration.data import Observed, Space, Surfaces, surfaces_digest
from crosscast.tables.whole_file import make_folder

_LEAST = 3
"""Letters that names must at least have in common."""


def duplicates(
    programs: Sequence[str], together: Sequence[Sequence[str]] = ()
) -> tuple[tuple[str, ...], ...]:
    """Programs that are probably variants of each other.

    Names of variants begin alike: with at least 3 letters in common, and at least half of the shorter name
    (``cfd`` and ``cfd_double``; ``busspeeddownload`` and ``busspeedreadback``). Case does not matter. Groups
    that share a program are one.
    """
    pairs = [pair for pair in combinations(sorted(programs), 2) if _begin_alike(*pair)]
    groups: list[set[str]] = []
    for near in [*pairs, *together]:
        joined = set(near) & set(programs)
        apart = [group for group in groups if not group & joined]
        groups = [*apart, joined.union(*(group for group in groups if group & joined))]
    return tuple(sorted(tuple(sorted(group)) for group in groups if len(group) > 1))


def _begin_alike(one: str, other: str) -> bool:
    letters = zip(one.lower(), other.lower(), strict=False)
    common = len(list(takewhile(lambda pair: pair[0] == pair[1], letters)))
    return common >= _LEAST and 2 * common >= min(len(one), len(other))


def folds_together(programs: Sequence[str], groups: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """What is left out at a time when groups are left out together, and all other programs alone."""
    grouped = {name for group in groups for name in group}
    folds = sorted([*((name,) for name in programs if name not in grouped), *map(tuple, groups)])
    if len(folds) < 2:
        raise InputError(f"together: expected programs left to learn from, found all in {'+'.join(folds[0])}")
    return tuple(folds)


@dataclass(frozen=True)
class FoldTask:
    """What to do."""

    held_out: tuple[str, ...]  # Applications that are left out of everything that is learned
    method: Method  # The method
    # The sample configurations, or what chooses them by the training kernels
    samples: tuple[int, ...] | Sampler
    weighting: Weighting  # How the kernels of a program are weighted
    budgets: tuple[int, ...]  # Most changes after the first configuration; the last is that of the table
    seed: int  # Start of all random numbers

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.method.name}, {' and '.join(self.held_out)} held out"

    def cases(self, surfaces: Surfaces, samples: Sequence[int]) -> Cases:
        """The cases of the applications that are held out, with these sample configurations."""
        return cases_of(surfaces, samples, surfaces.rows_of(self.held_out), self.weighting)


@dataclass(frozen=True, eq=False)
class FoldAnswer:
    """What a method chose in the ``m`` cases of a fold."""

    samples: tuple[int, ...]  # The sample configurations
    chosen: Numbers  # `(budgets, m)` The configuration where it settled, and the changes until there
    changes: Numbers
    guarded: Numbers  # `(m,)` Where it settled with the last budget when told a cap lower by `GUARD`


def samples_of_fold(surfaces: Surfaces, task: FoldTask) -> tuple[int, ...]:
    """The sample configurations of a fold: those named, or those that the other applications suggest."""
    if not callable(task.samples):
        return task.samples
    return task.samples(surfaces.take(~surfaces.rows_of(task.held_out)), task.seed)


def answer_fold(surfaces: Surfaces, task: FoldTask, samples: tuple[int, ...]) -> FoldAnswer:
    """Fit the method to the other applications, and let it choose for those that are held out."""
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


_INTEGERS = ("samples", "chosen", "changes", "guarded")
_SOURCES = ("predict", "decide")


@dataclass(frozen=True)
class Kept:
    """A folder of answers, each under a name made of all that it depends on.

    That is the surfaces, the task with the parameters of its method, the source of `crosscast.predict` and
    `crosscast.choose`, and the versions of the libraries. A method that is no dataclass is known by its name
    and class alone, and what chooses the samples by its name.
    """

    folder: Path  # Where; made if it is not there
    surfaces: Surfaces  # What the answers are of

    def __post_init__(self) -> None:
        """Make the folder."""
        make_folder("cache", self.folder)

    def load(self, task: FoldTask) -> FoldAnswer | None:
        """An answer that was kept, or ``None``; a damaged one is as good as none."""
        arrays = cached_arrays(self._path(task), _INTEGERS)
        if not arrays or not self._sound(task, arrays):
            return None
        samples = tuple(arrays["samples"].tolist())
        chosen, changes, guarded = (arrays[name] for name in _INTEGERS[1:])
        return FoldAnswer(samples, chosen, changes, guarded)

    def save(self, task: FoldTask, answer: FoldAnswer) -> None:
        """Keep an answer."""
        path = self._path(task)
        with cached_file(path) as temporary:
            np.savez_compressed(
                temporary,
                samples=np.array(answer.samples, np.int64),
                chosen=answer.chosen,
                changes=answer.changes,
                guarded=answer.guarded,
            )

    def _sound(
        self, task: FoldTask, arrays: Mapping[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]
    ) -> bool:
        """Whether arrays are of the right kinds and shapes, and all numbers are of configurations."""
        if any(arrays[name].dtype != np.int64 for name in _INTEGERS):
            return False
        for name in ("samples", "chosen", "guarded"):
            values = arrays[name].astype(np.int64)
            if ((values < 0) | (values >= len(self.surfaces.space))).any():
                return False
        if arrays["samples"].ndim != 1 or not arrays["samples"].size:
            return False
        count = len(task.cases(self.surfaces, arrays["samples"].astype(np.int64).tolist()))
        shapes = {"chosen": (len(task.budgets), count), "guarded": (count,)}
        shapes["changes"] = shapes["chosen"]
        return all(arrays[name].shape == shape for name, shape in shapes.items())

    def _path(self, task: FoldTask) -> Path:
        sampler = task.samples
        facts = {
            "sources": sources_digest(_SOURCES),
            "surfaces": self._digest,
            "method": [task.method.name, fingerprint(task.method)],
            "held_out": task.held_out,
            "samples": fingerprint(sampler) if callable(sampler) else sampler,
            "weighting": task.weighting,
            "budgets": task.budgets,
            "seed": task.seed,
        }
        return self.folder / f"choices-{cache_key(facts)}.npz"

    @cached_property
    def _digest(self) -> str:
        return surfaces_digest(self.surfaces)


def answer_folds(
    surfaces: Surfaces,
    tasks: Sequence[FoldTask],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[FoldAnswer]:
    """Do all folds that a cache does not know."""
    check_jobs(jobs)
    kept = None if cache is None else Kept(cache, surfaces)
    known = [(place, kept.load(task)) for place, task in enumerate(tasks)] if kept else []
    found = {place: answer for place, answer in known if answer is not None}
    left = {place: task for place, task in enumerate(tasks) if place not in found}
    pieces = _pieces(left)
    done = done_pieces(pieces, _worker, (surfaces,), jobs, "evaluated methods")
    for places, answers in told(done, len(pieces), lambda places: tasks[places[0]].label, progress):
        for place, answer in zip(places, answers, strict=True):
            found[place] = answer
            if kept:
                kept.save(tasks[place], answer)
    return [found[place] for place in range(len(tasks))]


def _pieces(tasks: Mapping[int, FoldTask]) -> dict[tuple[int, ...], list[FoldTask]]:
    """Tasks, put together where they need the same fit."""
    together: dict[tuple[tuple[str, ...], str], list[int]] = {}
    for place, task in tasks.items():
        model = model_of(task.method)
        learned = task.method.name if model is None else fingerprint(model)
        together.setdefault((task.held_out, learned), []).append(place)
    return {tuple(places): [tasks[place] for place in places] for places in together.values()}


@dataclass(frozen=True)
class _Worker:
    """What a process knows throughout: the surfaces, and the samples of folds that it has seen."""

    surfaces: Surfaces
    samples: dict[tuple[str, ...], tuple[int, ...]] = field(default_factory=dict)

    def answers(self, tasks: Sequence[FoldTask]) -> list[FoldAnswer]:
        with one_thread("evaluating methods"):
            return [self.answer(task) for task in tasks]

    def answer(self, task: FoldTask) -> FoldAnswer:
        if task.held_out not in self.samples:
            self.samples[task.held_out] = samples_of_fold(self.surfaces, task)
        return answer_fold(self.surfaces, task, self.samples[task.held_out])


def _worker(surfaces: Surfaces) -> Callable[[Sequence[FoldTask]], list[FoldAnswer]]:
    return _Worker(surfaces).answers


@dataclass(frozen=True, eq=False)
class MachineChoices:
    """How methods did on one machine."""

    surfaces: Surfaces  # What was measured
    cases: Cases  # What was asked
    # Sample configurations of each fold, by the applications that were left out
    samples: dict[tuple[str, ...], tuple[int, ...]]
    groups: tuple[tuple[str, ...], ...]  # Applications that are nearly the same
    noise: RepeatNoise | None  # How much repeats differ; `None` where that cannot be estimated
    split_half: Metrics | None  # The split-half oracle on simulated repeats; `None` without `noise`
    # A result for each method with each application left out; then the same with near-duplicates left out
    # together, if there are any
    results: tuple[ChoiceResult, ...]

    @property
    def machine(self) -> str:
        """Its name: the keys of its devices."""
        return " + ".join(self.surfaces.space.devices)


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


@dataclass(frozen=True, eq=False)
class ChoiceStudy:
    """How methods chose on all machines of a dataset."""

    label: str  # Which dataset
    weighting: str  # How the kernels of a program are weighted
    seed: int  # Start of all random numbers
    machines: tuple[MachineChoices, ...]  # How they did on each machine

    def to_dict(self) -> dict[str, Any]:
        """Everything but cases, as ``--json`` prints it: what is not known is null."""
        return {
            "dataset": self.label,
            "weighting": self.weighting,
            "seed": self.seed,
            "bootstrap": {"over": "programs", "draws": DRAWS, "share": SHARE},
            "machines": [_listed(machine) for machine in self.machines],
            "results": [
                {"machine": machine.machine, **result.to_dict()}
                for machine in self.machines
                for result in machine.results
            ],
        }


def _listed(machine: MachineChoices) -> dict[str, Any]:
    surfaces, cases = machine.surfaces, machine.cases
    return {
        "machine": machine.machine,
        "devices": list(surfaces.space.devices),
        "configurations": len(surfaces.space),
        "kernels_at_a_size": len(set(cases.kernel.tolist())),
        "programs": list(cases.programs),
        "cases": len(cases),
        "left_out": [{"kernel": str(each.kernel), "reason": each.reason} for each in cases.left_out],
        "left_out_together": [list(group) for group in machine.groups],
        "samples": {
            "+".join(fold): [surfaces.space.configurations[number].to_dict() for number in numbers]
            for fold, numbers in machine.samples.items()
        },
        "repeats": _repeats(machine),
    }


def _repeats(machine: MachineChoices) -> dict[str, Any] | None:
    if machine.noise is None or machine.split_half is None:
        return None
    return {
        "simulated": True,
        "note": "the data has no repeats: these are simulated from noise that is estimated by how far "
        "neighbouring configurations are from a line",
        "repeats": REPEATS,
        "noise_log_time": float(np.median(machine.noise.time)),
        "noise_log_power": float(np.median(machine.noise.power)),
        "split_half_oracle": asdict(machine.split_half),
    }


def study_choices(
    label: str,
    machines: Sequence[Surfaces],
    methods: Callable[[Space], Sequence[Method]],
    *,
    samples: Sequence[Configuration] | Sampler = two_samples,
    weighting: Weighting = "time",
    together: Sequence[Sequence[str]] = (),
    budget: int | None = None,
    curve: Sequence[int] = CURVE,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> ChoiceStudy:
    """Compare methods on each machine."""
    if not machines:
        raise InputError(f"{label}: expected at least one machine, found none")
    known = sorted({name for surfaces in machines for name in surfaces.applications})
    for name in (name for group in together for name in group):
        if name not in known:
            raise InputError(f"together: expected one of {', '.join(known)}, found {name!r}")
    found = tuple(
        evaluate_choices(
            surfaces,
            methods(surfaces.space),
            samples=samples,
            weighting=weighting,
            together=together,
            budget=budget,
            curve=curve,
            seed=seed,
            progress=progress,
            cache=cache,
            jobs=jobs,
        )
        for surfaces in machines
    )
    return ChoiceStudy(label, weighting, seed, found)
