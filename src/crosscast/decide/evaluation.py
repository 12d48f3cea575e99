"""How well methods choose under power caps, and training: each program left out in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from itertools import combinations, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosscast.arrays import Arrays
from crosscast.configuration import Configuration
from crosscast.data.dataset import Dataset
from crosscast.data.views import configured
from crosscast.decide.cases import Cases, Weighting, cases_of, check_weighting, joined
from crosscast.decide.policies import CONFIDENCE, method_names, methods_of, model_of
from crosscast.decide.power_cap import GUARD, Method, Outcome, Policy, outcomes
from crosscast.decide.samples import Sampler, two_samples
from crosscast.decide.scores import (
    REPEATS,
    ChoiceResult,
    Choices,
    Metrics,
    RepeatNoise,
    repeat_noise,
    results_of,
    simulated_repeats,
    split_half_oracle,
)
from crosscast.errors import InputError
from crosscast.evaluation.keep import digest, fingerprint, library_versions
from crosscast.evaluation.loop import Progress, check_names, check_seed, counted_together, run_tasks
from crosscast.evaluation.resampling import DRAWS, SHARE
from crosscast.predict.configuration.artefact import (
    ConfigurationCard,
    PowerCard,
    TrainedConfigurationModel,
    entries,
)
from crosscast.predict.configuration.bailey2014 import PublishedModel, PublishedPredictor
from crosscast.predict.configuration.data import (
    ConfigurationModel,
    Observed,
    Space,
    Surfaces,
    machines_of,
    power_totals,
    sample_numbers,
)
from crosscast.predict.configuration.models import DEFAULT_MODEL, model_named
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.results import Column

ALONE = "leave-benchmark-out"
"""Protocol that leaves out each application, with all its kernels and sizes."""

TOGETHER = "leave-duplicates-out"
"""The same, with applications that are nearly the same left out together."""

CURVE = tuple(range(9))
"""Numbers of changes of which the curve is made."""

_SOURCES = ("predict", "decide")
_LEAST_COMMON = 3
"""Letters that names of variants must at least have in common."""

_LEAST_PROGRAMS = 3
"""Fewer leave too few to train on when one is held out."""


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
    return common >= _LEAST_COMMON and 2 * common >= min(len(one), len(other))


def folds_together(programs: Sequence[str], groups: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """What is left out at a time when groups are left out together, and all other programs alone."""
    grouped = {name for group in groups for name in group}
    folds = sorted([*((name,) for name in programs if name not in grouped), *map(tuple, groups)])
    if len(folds) < 2:
        raise InputError(f"together: expected programs left to learn from, found all in {'+'.join(folds[0])}")
    return tuple(folds)


@dataclass(frozen=True)
class ChoiceTask:
    """A fold and the methods that learn the same model: one fit, an answer for each method."""

    held_out: tuple[str, ...]  # Applications that are left out of everything that is learned
    methods: tuple[Method, ...]
    samples: tuple[int, ...]  # The sample configurations
    weighting: Weighting  # How the kernels of a program are weighted
    budgets: tuple[int, ...]  # Most changes after the first configuration; the last is that of the table
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.methods[0].name}, {' and '.join(self.held_out)} held out"

    @property
    def asks(self) -> list[object]:
        """What each method's answer depends on; a method that is no dataclass is known by name and class."""
        facts = [list(self.held_out), list(self.samples), self.weighting, list(self.budgets), self.seed]
        return [["choices", method.name, fingerprint(method), *facts] for method in self.methods]

    def run(self, data: Surfaces, asks: Sequence[int]) -> list[Arrays]:
        """Fit the model to the other applications, and let methods choose for those that are held out.

        Returns ``chosen`` and ``changes``, ``(budgets, m)``: the configuration where a method ended in each
        case, and the changes until there; ``guarded`` ``(m,)``: where it ended with the last budget when told
        a cap lower by `GUARD`.
        """
        training = data.take(~data.rows_of(self.held_out))
        model = model_of(self.methods[0])
        fitted = () if model is None else (model.fit(training, self.samples, self.seed),)
        cases = self.cases(data)
        caps = list(zip(cases.kernel.tolist(), cases.power_cap.tolist(), strict=True))
        answers = []
        for method in (self.methods[number] for number in asks):
            ask = _asked(data, method, method.fit(training, self.samples, self.seed, *fitted), self.samples)
            ends = [ask(row, cap, self.budgets) for row, cap in caps]
            guarded = [ask(row, cap * (1 - GUARD), self.budgets[-1:])[0].number for row, cap in caps]
            found = np.array(ends, np.int64).reshape(len(cases), len(self.budgets), 2)
            answers.append(
                {
                    "chosen": found[..., 0].T,
                    "changes": found[..., 1].T,
                    "guarded": np.array(guarded, np.int64),
                }
            )
        return answers

    def cases(self, surfaces: Surfaces) -> Cases:
        """The cases of the applications that are held out."""
        return cases_of(surfaces, self.samples, surfaces.rows_of(self.held_out), self.weighting)

    def sound(self, data: Surfaces, ask: int, arrays: Arrays) -> bool:
        """Whether arrays are of the right kinds and shapes, and all numbers are of configurations."""
        m = len(self.cases(data))
        shapes = {"chosen": (len(self.budgets), m), "changes": (len(self.budgets), m), "guarded": (m,)}
        if set(arrays) != set(shapes):
            return False
        numbers = (arrays["chosen"], arrays["guarded"])
        return all(
            arrays[name].dtype == np.int64 and arrays[name].shape == shape for name, shape in shapes.items()
        ) and all(((each >= 0) & (each < len(data.space))).all() for each in numbers)


def _asked(
    surfaces: Surfaces, method: Method, policy: Policy, samples: Sequence[int]
) -> Callable[[int, float, Sequence[int]], list[Outcome]]:
    """What asks a method where it ends with a kernel, by its row, under a cap, with each budget."""

    @cache
    def run(row: int, number: int) -> Observed:
        if not np.isfinite(surfaces.time_s[row, number]):
            raise InputError(
                f"{method.name}: {surfaces.kernels[row]}: expected a configuration at which it was run, "
                f"found {surfaces.space.configurations[number]}"
            )
        return surfaces.observed(row, (number,))

    @cache
    def first(row: int) -> Observed:
        # What the policy is given of a kernel is always the same object, whatever the cap.
        sees_all = getattr(method, "sees_all", False)
        return surfaces.observed(row, range(len(surfaces.space)) if sees_all else samples)

    def ask(row: int, cap: float, budgets: Sequence[int]) -> list[Outcome]:
        known = np.isfinite(surfaces.time_s[row])
        ends = outcomes(policy, first(row), cap, known, budgets, partial(run, row))
        for end in ends:
            run(row, end.number)
        return ends

    return ask


@dataclass(frozen=True, eq=False)
class MachineChoices:
    """How methods did on one machine."""

    surfaces: Surfaces  # What was measured
    cases: Cases  # What was asked
    # Sample configurations of each fold, by the applications that were left out
    samples: Mapping[tuple[str, ...], tuple[int, ...]]
    groups: tuple[tuple[str, ...], ...]  # Applications that are nearly the same
    noise: RepeatNoise | None  # How much repeats differ; `None` where that cannot be estimated
    split_half: Metrics | None  # The split-half oracle on simulated repeats; `None` without `noise`
    # A result for each method with each application left out; then the same with near-duplicates left out
    # together, if there are any
    results: tuple[ChoiceResult, ...]
    sampler: Sampler
    seed: int

    @property
    def machine(self) -> str:
        """Its name: the keys of its devices."""
        return " + ".join(self.surfaces.space.devices)

    @cached_property
    def published(self) -> PublishedPredictor:
        """The model of Bailey et al. 2014 on all programs, for people; no score comes from it."""
        return PublishedModel().fit(self.surfaces, self.sampler(self.surfaces, self.seed), self.seed)

    def to_dict(self) -> dict[str, Any]:
        """What was asked, as a JSON object."""
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

    def _repeats(self) -> dict[str, Any] | None:
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
    weighting: Weighting = "time",
    together: Sequence[Sequence[str]] = (),
    duplicates_too: bool = True,
    budget: int | None = None,
    curve: Sequence[int] = CURVE,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int | None = 1,
) -> MachineChoices:
    """Fit methods to all applications but one, let them choose for that one, for each; and score the choices.

    The choice of the sample configurations is part of what is learned.
    """
    check_seed(seed)
    check_weighting(weighting)
    check_names([method.name for method in methods], "methods")
    programs, budgets = surfaces.applications, (*curve, len(surfaces.space) if budget is None else budget)
    if len(programs) < 2:
        found = ", ".join(programs) or "none"
        raise InputError(f"{surfaces.label}: expected at least 2 programs to leave one out, found {found}")
    if min(budgets) < 0:
        raise InputError(f"budget: expected at least 0, found {min(budgets)}")
    groups = duplicates(programs, together) if duplicates_too else ()
    if not together and groups == (programs,):
        # Names that all begin alike tell nothing apart.
        groups = ()
    alone = tuple((name,) for name in programs)
    grouped = folds_together(programs, groups) if groups else ()
    sampler = _sampler(surfaces, samples)
    by_fold = {
        fold: sampler(surfaces.take(~surfaces.rows_of(fold)), seed)
        for fold in dict.fromkeys([*alone, *grouped])
    }
    learners: dict[str, list[Method]] = {}
    for method in methods:
        learners.setdefault(fingerprint(model_of(method) or method), []).append(method)
    tasks = [
        ChoiceTask(fold, tuple(own), numbers, weighting, budgets, seed)
        for fold, numbers in by_fold.items()
        for own in learners.values()
    ]
    done = run_tasks(tasks, surfaces, cache=cache, sources=_SOURCES, progress=progress, jobs=jobs)
    answers: dict[tuple[str, ...], dict[str, Arrays]] = {fold: {} for fold in by_fold}
    for task, of_task in zip(tasks, done, strict=True):
        answers[task.held_out] |= {
            method.name: each for method, each in zip(task.methods, of_task, strict=True)
        }
    cases = {task.held_out: task.cases(surfaces) for task in tasks[:: len(learners)]}

    def choices(protocol: str, folds: Sequence[tuple[str, ...]]) -> Choices:
        of_folds = joined([cases[fold] for fold in folds])
        if len(of_folds.programs) < 2:
            reasons = "; ".join(f"{each.kernel}: {each.reason}" for each in of_folds.left_out)
            raise InputError(f"{surfaces.label}: expected at least 2 programs under caps ({reasons})")
        chosen, changes, guarded = (
            np.concatenate(
                [np.stack([answers[fold][each.name][name] for each in methods]) for fold in folds], -1
            )
            for name in ("chosen", "changes", "guarded")
        )
        return Choices(surfaces, of_folds, protocol, budget, tuple(curve), chosen, changes, guarded)

    noise = repeat_noise(surfaces)
    repeats = None if noise is None else simulated_repeats(surfaces, noise, seed)
    results: list[ChoiceResult] = []
    for protocol, folds in ((ALONE, alone), (TOGETHER, grouped)):
        if folds:
            results += results_of(choices(protocol, folds), methods, repeats, seed)
    whole = joined([cases[fold] for fold in alone])
    split_half = None if repeats is None else split_half_oracle(whole, repeats)
    return MachineChoices(surfaces, whole, by_fold, groups, noise, split_half, tuple(results), sampler, seed)


def _sampler(surfaces: Surfaces, samples: Sequence[Configuration] | Sampler) -> Sampler:
    if callable(samples):
        return samples
    numbers = sample_numbers(surfaces.space, samples)
    return lambda _, seed: numbers


@dataclass(frozen=True, eq=False)
class ConfigurationEvaluation(Tabular):
    """How methods chose on all machines of a dataset; as a table, a row for each result."""

    label: str  # Which dataset
    weighting: str  # How the kernels of a program are weighted
    seed: int  # Start of all random numbers
    machines: tuple[MachineChoices, ...]

    def columns(self) -> Mapping[str, Column]:
        """Metrics of each method on each machine, under each protocol."""
        rows = [(machine.machine, result) for machine in self.machines for result in machine.results]
        found: dict[str, list[object]] = {
            "machine": [machine for machine, _ in rows],
            "method": [result.method for _, result in rows],
            "protocol": [result.protocol for _, result in rows],
            "baseline": [result.baseline for _, result in rows],
        }
        metrics = [asdict(result.metrics) for _, result in rows]
        return found | {name: [each[name] for each in metrics] for name in Metrics.__dataclass_fields__}

    def to_dict(self) -> dict[str, Any]:
        """Everything but cases, as ``--json`` prints it: what is not known is null."""
        return {
            "protocol": ALONE,
            "dataset": self.label,
            "weighting": self.weighting,
            "seed": self.seed,
            "bootstrap": {"over": "programs", "draws": DRAWS, "share": SHARE},
            "machines": [machine.to_dict() for machine in self.machines],
            "results": [
                {"machine": machine.machine, **result.to_dict()}
                for machine in self.machines
                for result in machine.results
            ],
        }


Methods = Sequence[str] | Callable[[Space], Sequence[Method]]
"""Names of methods, or what makes them for the configurations of a machine."""


def evaluate_configuration(
    data: Dataset | Sequence[Surfaces],
    methods: Methods | None = None,
    *,
    label: str | None = None,
    devices: Sequence[str] | None = None,
    power_domain: str | None = None,
    samples: Sequence[Configuration] | Sampler = two_samples,
    confidence: float = CONFIDENCE,
    weighting: Weighting = "time",
    together: Sequence[Sequence[str]] = (),
    budget: int | None = None,
    curve: Sequence[int] = CURVE,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int | None = 1,
) -> ConfigurationEvaluation:
    """Compare methods on each machine of a dataset; the main ones unless others are named."""
    if isinstance(data, Dataset):
        label = data.label if label is None else label
        machines: Sequence[Surfaces] = machines_of(configured(data, domain=power_domain), label, devices)
    else:
        label, machines = "surfaces" if label is None else label, data
    if not machines:
        raise InputError(f"{label}: expected at least one machine, found none")
    known = sorted({name for surfaces in machines for name in surfaces.applications})
    for name in (name for group in together for name in group):
        if name not in known:
            raise InputError(f"together: expected one of {', '.join(known)}, found {name!r}")
    found = tuple(
        evaluate_machine(
            surfaces,
            methods(surfaces.space) if callable(methods) else methods_of(surfaces.space, methods, confidence),
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
    return ConfigurationEvaluation(label, weighting, seed, found)


@dataclass(frozen=True)
class ErrorTask:
    """A model fitted to all applications but one, and its errors on the kernels of that one."""

    held_out: str
    model: ConfigurationModel
    samples: tuple[int, ...]
    level: float  # Probability that the intervals are to hold
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.held_out} held out"

    @property
    def asks(self) -> list[object]:
        """What its errors depend on."""
        return [["errors", fingerprint(self.model), self.held_out, list(self.samples), self.level, self.seed]]

    def run(self, data: Surfaces, asks: Sequence[int]) -> list[Arrays]:
        """Logarithms of predicted over true values where it was not measured, and whether intervals held."""
        own = data.rows_of([self.held_out])
        fitted = self.model.fit(data.take(~own), self.samples, self.seed)
        parts: dict[str, list[Any]] = {name: [np.empty(0)] for name in ("time", "power")}
        parts |= {f"{name}_inside": [np.empty(0, np.bool_)] for name in parts}
        for row in np.flatnonzero(own & data.known[:, list(self.samples)].all(axis=1)).tolist():
            forecast = fitted.forecast(data.observed(row, self.samples))
            asked = data.known[row] & ~forecast.measured & np.isfinite(forecast.time.centre)
            for name, quantity, values in (
                ("time", forecast.time, data.time_s[row]),
                ("power", forecast.power, data.power_w[row]),
            ):
                true = values[asked]
                parts[name].append(np.log(quantity.centre[asked] / true))
                if quantity.errors.size:
                    low, high = (quantity.quantile((1 + sign * self.level) / 2)[asked] for sign in (-1, 1))
                    parts[f"{name}_inside"].append((low <= true) & (true <= high))
        return [{name: np.concatenate(each) for name, each in parts.items()}]

    def sound(self, data: Surfaces, ask: int, arrays: Arrays) -> bool:
        """Whether arrays may be errors."""
        return set(arrays) == {"time", "power", "time_inside", "power_inside"}


def errors_left_out(
    surfaces: Surfaces,
    model: ConfigurationModel,
    *,
    samples: Sequence[Configuration] | Sampler = two_samples,
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int | None = 1,
) -> dict[str, Any]:
    """Errors on applications that a model was not fitted to, as a JSON object; what is not known is null.

    Root mean squared errors of logarithms, medians of the absolute errors over the true values, and shares of
    values within the intervals. Applications weigh the same; those that did not run at the samples are left
    out.
    """
    sampler = _sampler(surfaces, samples)
    tasks = [
        ErrorTask(name, model, sampler(surfaces.take(~surfaces.rows_of([name])), seed), level, seed)
        for name in surfaces.applications
    ]
    done = run_tasks(tasks, surfaces, cache=cache, sources=_SOURCES, progress=progress, jobs=jobs)
    found = {task.held_out: each for task, (each,) in zip(tasks, done, strict=True) if len(each["time"])}

    def mean(values: Sequence[float]) -> float | None:
        return float(np.mean(values)) if values else None

    def rmse(name: str, errors: Sequence[Arrays]) -> float | None:
        square = mean([float(np.mean(each[name] ** 2)) for each in errors])
        return None if square is None else float(np.sqrt(square))

    everything: dict[str, Any] = {
        "protocol": "leave-application-out",
        "level": level,
        "programs": len(found),
        "cells": sum(len(each["time"]) for each in found.values()),
    }
    for name in ("time", "power"):
        everything[f"rmse_log_{name}"] = rmse(name, list(found.values()))
        absolute = [float(np.median(np.abs(np.expm1(each[name])))) for each in found.values()]
        inside = [each[f"{name}_inside"] for each in found.values()]
        everything[f"median_ape_{name}"] = mean(absolute)
        everything[f"coverage_{name}"] = mean([float(np.mean(each)) for each in inside if each.size])
    everything["by_program"] = {
        program: {f"rmse_log_{name}": rmse(name, [each]) for name in ("time", "power")}
        for program, each in found.items()
    }
    return everything


def machine_of(
    dataset: Dataset, *, devices: Sequence[str] | None = None, power_domain: str | None = None
) -> Surfaces:
    """The times and powers of the one machine that a dataset, or a part of it, is of."""
    label = Path(dataset.label).name
    machines = machines_of(configured(dataset, domain=power_domain), label, devices)
    if len(machines) > 1:
        listed = "; ".join(", ".join(each.space.devices) for each in machines)
        raise InputError(
            f"device: expected those of one machine, found {len(machines)} machines without a kernel in "
            f"common ({listed}): name the devices of one"
        )
    if len(machines[0].space) < 2:
        raise InputError(f"{label}: expected at least 2 configurations to choose from, found 1")
    return machines[0]


_CARD_METRICS = (
    "method",
    "protocol",
    *Metrics.__dataclass_fields__,
    "confidence",
    "programs_above",
    "intervals",
)


def train_configuration(
    data: Dataset | Surfaces,
    model: str = DEFAULT_MODEL,
    *,
    samples: Sequence[Configuration] | None = None,
    devices: Sequence[str] | None = None,
    power_domain: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int | None = 1,
) -> TrainedConfigurationModel:
    """Fit a model to a machine's kernels, and measure it with each application left out in turn."""
    check_seed(seed)
    made = model_named(model)
    surfaces = (
        data if isinstance(data, Surfaces) else machine_of(data, devices=devices, power_domain=power_domain)
    )
    programs, space = surfaces.applications, surfaces.space
    if len(programs) < _LEAST_PROGRAMS:
        raise InputError(
            f"{surfaces.label}: expected at least {_LEAST_PROGRAMS} applications to train and test a model, "
            f"found {', '.join(programs)}"
        )
    wanted = two_samples if samples is None else samples
    numbers = _sampler(surfaces, wanted)(surfaces, seed)
    # First the model itself: what cannot be learned is said at once.
    predictor = made.fit(surfaces, numbers, seed)
    names = [name for name in (model, f"{model}-strict", f"{model}+fl") if name in method_names(space)]
    rounds: Sequence[Progress | None] = (None, None)
    if progress is not None:
        rounds = counted_together(progress, (len(programs), len(programs) if names else 0))
    errors = errors_left_out(
        surfaces, made, samples=wanted, seed=seed, progress=rounds[0], cache=cache, jobs=jobs
    )
    choices: list[dict[str, Any]] = []
    if names:
        scored = evaluate_machine(
            surfaces,
            methods_of(space, names),
            samples=wanted,
            duplicates_too=False,
            seed=seed,
            progress=rounds[1],
            cache=cache,
            jobs=jobs,
        )
        choices = [{key: each.to_dict()[key] for key in _CARD_METRICS} for each in scored.results]
    card = ConfigurationCard(
        model=model,
        kind=getattr(predictor, "kind", ""),
        seed=seed,
        training={
            "dataset": surfaces.label,
            "cells": int(surfaces.known.sum()),
            "kernels_at_a_size": len(surfaces.kernels),
            "kernels": len({(each.application, each.kernel) for each in surfaces.kernels}),
            "applications": len(programs),
            "configurations": len(space),
            "names": list(programs),
            "sha256": digest(surfaces),
            "libraries": library_versions(),
        },
        samples=entries([space.configurations[number] for number in numbers]),
        power=PowerCard(power_domain, dict(power_totals(surfaces))),
        domains=tuple(sorted(surfaces.domains)),
        counters=tuple(sorted(surfaces.counters)),
        errors={**errors, "choices": choices},
        configurations=entries(space.configurations),
    )
    return TrainedConfigurationModel(card, predictor)
