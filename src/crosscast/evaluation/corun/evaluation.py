"""Evaluation and training of models of co-running: splits, probes, out-of-fold residuals, scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from crosscast.arrays import Arrays, Integers, Reals
from crosscast.data.corun import Bag, CoRuns
from crosscast.errors import InputError
from crosscast.evaluation.corun.scores import CoRunResult, ResultFields, ScoredValues, ScoreTable, scores_of
from crosscast.evaluation.keep import digest, fingerprint
from crosscast.evaluation.loop import Fold, FoldTask, RunArguments, check_names, check_seed, run_tasks
from crosscast.prediction.corun.features import CoRunnerRows, Traits, applications_of
from crosscast.prediction.corun.forecast import CoRunModel, CoRunPrediction
from crosscast.prediction.corun.probes import OpenMixes
from crosscast.prediction.corun.process import Process
from crosscast.prediction.corun.residuals import CoRunResiduals
from crosscast.prediction.corun.slowdowns import KernelSizes, SlowdownCovariance
from crosscast.prediction.intervals import check_level

QUANTITIES = ("slowdown", "speed", "time", "power")
"""Quantities: slowdown and speed (its inverse) of each co-runner, time and power of the mix."""

FITS = "fits"
"""Whether a mix fits on the device, which is a probability."""

_OF_CO_RUNNERS = ("slowdown", "speed")
_WITH_ERRORS = ("slowdown", "time", "power")


def mix_of_rows(sizes: Sequence[int], quantity: str) -> Integers:
    """Places of the mixes of a quantity's values: one for each co-runner of each mix, or for each mix."""
    return np.repeat(np.arange(len(sizes)), sizes if quantity in _OF_CO_RUNNERS else 1)


def measured(mixes: Sequence[Bag], quantity: str) -> Reals:
    """What was measured, in the rows of `mix_of_rows`; of mixes of which an application failed nothing.

    A slowdown, time or power of 0 is none: nothing takes no time, and a sensor that says 0 does not work.
    """
    found: list[float | None]
    if quantity in _OF_CO_RUNNERS:
        found = [None if mix.failed else member.slowdown or None for mix in mixes for member in mix.members]
    elif quantity == FITS:
        found = [None if mix.failed else mix.fits for mix in mixes]
    else:
        field = {"time": "time_s", "power": "power_w"}[quantity]
        found = [None if mix.failed else getattr(mix, field) or None for mix in mixes]
    values = np.array(found, dtype=np.float64)
    return 1.0 / values if quantity == "speed" else values


def predicted(prediction: CoRunPrediction, quantity: str) -> Reals:
    """What was predicted, in the same rows."""
    if quantity in _OF_CO_RUNNERS:
        values = np.concatenate([np.empty(0), *prediction.slowdown])
        return 1.0 / values if quantity == "speed" else values
    return {"time": prediction.time_s, "power": prediction.power_w, FITS: prediction.fits}[quantity]


SPLITS = ("leave-benchmark-out", "leave-mix-out", "random-80-20")
"""Names of the splits: each application in turn; mixes in folds; and a fifth of the mixes at random."""

_BAG_FOLDS = 10


def folds_of(mixes: Sequence[Bag], split: str, seed: int) -> tuple[Fold, ...]:
    """Split mixes into folds.

    Where a benchmark is left out, all mixes with it are held out, whatever else is in them. Mixes in which
    the same applications run at the same sizes are held out together.
    """
    if split not in SPLITS:
        raise InputError.of(where="folds", expected=f"one of {', '.join(SPLITS)}", found=repr(split))
    if split == "leave-benchmark-out":
        names = sorted({name for mix in mixes for name in mix.applications})
        if len(names) < 3:
            expected = "at least 3 to leave one out"
            raise InputError.of(where="applications", expected=expected, found=len(names))
        tested = {name: np.array([name in mix.applications for mix in mixes]) for name in names}
    else:
        numbers = _numbers_of_alike(mixes)
        count = int(numbers.max(initial=-1)) + 1
        if count < 5:
            raise InputError.of(where="mixes", expected="at least 5 different ones to split", found=count)
        order = np.random.default_rng(seed).permutation(count)
        parts = np.array_split(order, min(_BAG_FOLDS, count))
        groups = {f"mixes, part {k}": part for k, part in enumerate(parts, start=1)}
        if split == "random-80-20":
            groups = {"a fifth at random": order[: count // 5]}
        tested = {name: np.isin(numbers, part) for name, part in groups.items()}
    for name, each in tested.items():
        if each.all():
            expected = f"mixes without {name} to learn from"
            raise InputError.of(where="applications", expected=expected, found="none")
    return tuple(Fold.of(name, each) for name, each in tested.items())


def _numbers_of_alike(mixes: Sequence[Bag]) -> Integers:
    """A number for each mix, equal where the same applications run at the same sizes."""
    order: dict[tuple[tuple[str, str], ...], int] = {}
    keys = [tuple(sorted((run.application, run.size) for run in mix.solos)) for mix in mixes]
    return np.array([order.setdefault(key, len(order)) for key in keys], dtype=np.int64)


def with_mixes(co_runs: CoRuns, places: Integers) -> CoRuns:
    """The same isolated runs with some of the mixes."""
    return replace(co_runs, bags=tuple(co_runs.bags[place] for place in places.tolist()))


@dataclass(frozen=True, eq=False)
class Probing:
    """Chooses mixes by what is known of others, whatever model then learns from them."""

    # How applications become numbers, and the sizes of the covariance between these, both of mixes without
    # the new application
    traits: Traits
    sizes: KernelSizes

    @classmethod
    def of(cls, training: CoRuns, seed: int) -> Probing:
        """Fit it to mixes without the new application."""
        found = Process(trees=False).fit(training, seed).slowdowns
        return cls(found.traits, found.sizes)

    def places(self, known: Sequence[Bag], new: Sequence[Bag], name: str, count: int) -> list[int]:
        """Places among the new mixes of those to measure: `count` for each size of the application.

        One after the other, each lowers most what is left open of all others: the variance of a process
        (`crosscast.prediction.corun.process`). In each, nothing else is of the same application.
        """
        runs, mixes = applications_of([mix.solos for mix in (*known, *new)])
        covariance = SlowdownCovariance(self.traits.matrix(runs), CoRunnerRows.of(mixes, len(runs)))
        open_ = OpenMixes.of(covariance, self.sizes, len(known))
        own = [[run.name for run in mix.solos if run.application == name] for mix in new]
        inputs = {place: found[0] for place, found in enumerate(own) if len(found) == 1}
        room = dict.fromkeys(inputs.values(), count)
        chosen: list[int] = []
        while left := [place for place in inputs if place not in chosen and room[inputs[place]]]:
            chosen.append(max(left, key=lambda place: (open_.gain(place), -place)))
            room[inputs[chosen[-1]]] -= 1
            open_ = open_.given(chosen[-1])
        return chosen


def _with_probes(
    training: CoRuns, tested: Sequence[Bag], held_out: str, count: int, probing: Probing | None
) -> tuple[CoRuns, Integers]:
    """The training with the probes of what is tested, and the places there of what these tell."""
    if probing is None:
        return training, np.empty(0, dtype=np.int64)
    probes = probing.places(training.bags, tested, held_out, count)
    # What came of a probe tells what comes of the same mix again.
    numbers = _numbers_of_alike(tested)
    known = np.flatnonzero(np.isin(numbers, numbers[probes]))
    return replace(training, bags=(*training.bags, *(tested[place] for place in probes))), known


_LOW, _HIGH = "low.", "high."
_SOURCES = ("prediction", "evaluation/corun/evaluation.py", "evaluation/corun/scores.py")


@dataclass(frozen=True, eq=False)
class CoRunTask(FoldTask[CoRunModel, Fold, CoRuns]):
    """A fit without what a fold holds out, and its predictions of that: a task of the evaluation's loop.

    The answer has the values of each quantity, in the rows of `mix_of_rows`, and as ``low.`` and ``high.``
    with its name the limits of their intervals; NaN without.
    """

    split: str  # What is held out within the training, too, to learn how wrong the model is
    probes: int  # Mixes with each input of what is left out that are known
    level: float | None  # Probability that intervals are to hold; `None` for no intervals

    @property
    def cache_keys(self) -> list[object]:
        """All that its answer depends on besides the data."""
        model = [self.model.name, fingerprint(self.model)]
        return [[*model, digest(self.fold), self.split, self.probes, self.level, self.seed]]

    def run(self, data: CoRuns, asks: Sequence[int] = ()) -> list[Arrays]:
        """Fit the model to the mixes of training alone, and let it predict those that are held out."""
        training, tested = with_mixes(data, self.fold.train), with_mixes(data, self.fold.test).bags
        probing = Probing.of(training, self.seed) if self.probes else None
        known, probed = _with_probes(training, tested, self.fold.held_out, self.probes, probing)
        predictor = self.model.fit(known, self.seed)
        found = predictor.predict([mix.solos for mix in tested])
        errors: Mapping[str, CoRunResiduals] = {}
        if self.level is not None:
            refit, how = self.model.refit(predictor), (self.split, self.seed)
            errors = out_of_fold_errors(training, refit, *how, probes=self.probes, probing=probing)
        answer: dict[str, Reals] = {}
        sizes = [len(mix.members) for mix in tested]
        for name in (*QUANTITIES, FITS):
            # Without those of mixes that were known.
            hidden = np.isin(mix_of_rows(sizes, name), probed)
            answer[name] = values = np.where(hidden, np.nan, predicted(found, name))
            if name == FITS:
                continue
            low = high = np.full_like(values, np.nan)
            if name == "speed":
                # As sure as the slowdown that it is the inverse of.
                low, high = 1 / answer[f"{_HIGH}slowdown"], 1 / answer[f"{_LOW}slowdown"]
            elif name in errors and self.level is not None:
                low, high = errors[name].limits(self.level, values)
            answer |= {f"{_LOW}{name}": low, f"{_HIGH}{name}": high}
        return [{**answer}]

    def is_valid(self, data: CoRuns, ask: int, arrays: Arrays) -> bool:
        """Whether arrays that were kept may be the answer."""
        sizes = [len(data.bags[place].members) for place in self.fold.test.tolist()]
        shapes = {name: mix_of_rows(sizes, name).shape for name in (*QUANTITIES, FITS)}
        shapes |= {f"{end}{name}": shapes[name] for name in QUANTITIES for end in (_LOW, _HIGH)}
        return {name: array.shape for name, array in arrays.items() if array.dtype == np.float64} == shapes


def out_of_fold_errors(
    co_runs: CoRuns,
    model: CoRunModel,
    split: str,
    seed: int,
    *,
    probes: int = 0,
    probing: Probing | None = None,
) -> dict[str, CoRunResiduals]:
    """Errors of a model on what it is not fitted to, by quantity, of quantities that it tells."""
    parts: dict[str, list[tuple[Reals, Integers, Integers, Reals]]] = {name: [] for name in _WITH_ERRORS}
    held_out: list[str] = []
    before = 0
    for fold in folds_of(co_runs.bags, "leave-mix-out" if split == "random-80-20" else split, seed):
        tested = with_mixes(co_runs, fold.test).bags
        training, probed = _with_probes(
            with_mixes(co_runs, fold.train), tested, fold.held_out, probes, probing
        )
        mixes = [mix for place, mix in enumerate(tested) if place not in probed]
        found = model.fit(training, seed).predict([mix.solos for mix in mixes])
        for name in _WITH_ERRORS:
            true, values = measured(mixes, name), predicted(found, name)
            with np.errstate(invalid="ignore", divide="ignore"):
                # What is predicted below 0 has no logarithm.
                errors = np.log(values / true)
            known = np.isfinite(errors)
            logs = np.log(values[known])
            group = np.full(len(logs), len(held_out))
            mix = before + mix_of_rows([len(mix.members) for mix in mixes], name)[known]
            parts[name].append((errors[known], group, mix, logs))
        held_out.append(fold.held_out)
        before += len(mixes)
    found_errors = {}
    for name, every in parts.items():
        errors, number, mix, logs = (np.concatenate(each) for each in zip(*every, strict=True))
        if len(errors):
            kept, group = np.unique(number, return_inverse=True)
            names = tuple(held_out[place] for place in kept.tolist())
            # The more an application is slowed down, the less sure it is by how much.
            log_value = logs if name == "slowdown" else None
            found_errors[name] = CoRunResiduals(errors, group, names, mix, log_value)
    return found_errors


def answers_of(
    co_runs: CoRuns, tasks: Sequence[CoRunTask], **run: Unpack[RunArguments]
) -> list[dict[str, Reals]]:
    """Do all tasks that a cache does not know, as `run_tasks` has it; see `CoRunTask` for their answers."""
    return [
        {name: np.asarray(values, np.float64) for name, values in answer.items()}
        for (answer,) in run_tasks(tasks, co_runs, sources=_SOURCES, **run)
    ]


@dataclass(frozen=True, eq=False)
class CoRunEvaluation(ScoreTable):
    """How models did in one split: a row for each result."""

    co_runs: CoRuns  # All isolated runs and mixes
    split: str  # As they were asked for
    probes: tuple[int, ...]
    level: float | None
    seed: int
    folds: tuple[Fold, ...]
    # For each model, number of probes and quantity: of all mixes, and of those of each size
    results: tuple[CoRunResult, ...]

    def to_dict(self) -> dict[str, object]:
        """Everything, as ``--json`` prints it."""
        mixes = self.co_runs.bags
        return {
            "dataset": self.co_runs.label,
            "target": "corun",
            "protocol": self.split,
            "seed": self.seed,
            "level": self.level,
            "device": mixes[0].device,
            "configuration": mixes[0].configuration,
            "bags": len(mixes),
            "failed_bags": sum(mix.failed for mix in mixes),
            "applications": list(self.co_runs.applications),
            "results": [each.to_dict() for each in self.results],
        }


def evaluate_corun(
    co_runs: CoRuns,
    models: Sequence[CoRunModel],
    split: str = "leave-benchmark-out",
    *,
    baselines: Sequence[str] = (),
    probes: Sequence[int] = (0,),
    level: float | None = 0.9,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> CoRunEvaluation:
    """Fit models to the mixes that each fold leaves, and score them on those that it holds out.

    Nothing of what is held out is used to scale, tune, select or calibrate: models are given the other mixes
    alone, and the width of intervals comes from groups that are left out within these. The rest is as
    `answers_of` has it.
    """
    check_seed(seed)
    check_names([model.name for model in models])
    if level is not None:
        check_level(level)
    if (any(probes) and split != "leave-benchmark-out") or min(probes, default=0) < 0:
        expected = "0 but where benchmarks are left out, and no fewer"
        found = f"{min(probes)} to {max(probes)}"
        raise InputError.of(where="probes", expected=expected, found=found)
    probes = tuple(dict.fromkeys(probes))
    folds = folds_of(co_runs.bags, split, seed)
    asked = [(count, model) for count in probes for model in models]
    tasks = [CoRunTask(model, fold, seed, split, count, level) for count, model in asked for fold in folds]
    answers = iter(answers_of(co_runs, tasks, **run))
    results = tuple(
        CoRunResult(model.name, model.name in baselines, split, count, **values)
        for count, model in asked
        for values in results_of(co_runs, folds, [next(answers) for _ in folds])
    )
    return CoRunEvaluation(co_runs, split, probes, level, seed, folds, results)


def results_of(
    co_runs: CoRuns, folds: Sequence[Fold], answers: Sequence[Mapping[str, Reals]]
) -> Iterator[ResultFields]:
    """Fields of results: what a model predicted of the mixes that folds hold out, by quantity and size."""
    mixes = [mix for fold in folds for mix in with_mixes(co_runs, fold.test).bags]
    fold_of = np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds])
    sizes = np.array([len(mix.members) for mix in mixes], dtype=np.int64)
    for quantity in (*QUANTITIES, FITS):
        true, mix = measured(mixes, quantity), mix_of_rows(sizes.tolist(), quantity)
        centre, low, high = (
            np.concatenate([answer.get(f"{end}{quantity}", answer[quantity] * np.nan) for answer in answers])
            for end in ("", _LOW, _HIGH)
        )
        every = ScoredValues(true, centre, low, high, fold_of[mix], sizes[mix])
        every = every.where(np.isfinite(true) & np.isfinite(centre))
        for size in (None, *np.unique(every.bag_size).tolist()) if len(every.true) else ():
            some = every if size is None else every.where(every.bag_size == size)
            if quantity != FITS:
                scores = scores_of(some, [fold.held_out for fold in folds])
                yield {"bag_size": size, "quantity": quantity, **scores}
            elif len(np.unique(some.true)) == 2:
                from sklearn.metrics import roc_auc_score

                auc = float(roc_auc_score(some.true, some.centre))
                yield {"bag_size": size, "quantity": FITS, "rows": len(some.true), "auc": auc}


def of_one_device(co_runs: CoRuns, device: str | None = None, configuration: str | None = None) -> CoRuns:
    """The mixes of one device and way of sharing, as no model learns from several."""
    found = [mix for mix in co_runs.bags if device in (None, mix.device)]
    found = [mix for mix in found if configuration in (None, mix.configuration)]
    if not found:
        there = ", ".join(sorted({f"{mix.device} {mix.configuration}" for mix in co_runs.bags})) or "none"
        expected = f"mixes on {device or 'a device'}"
        raise InputError.of(where=co_runs.label, expected=expected, found=f"those on {there}")
    keys = [(mix.device, mix.configuration) for mix in found]
    chosen = max(sorted(set(keys)), key=keys.count)
    kept = tuple(mix for mix, key in zip(found, keys, strict=True) if key == chosen)
    solos = tuple(run for run in co_runs.solos if run.device == chosen[0])
    return replace(co_runs, solos=solos, bags=kept)
