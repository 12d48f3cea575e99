"""Splits of bags: what is held out, and what a model may learn from meanwhile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluation.cache_folder import (
    cache_key,
    cached_arrays,
    cached_file,
    fingerprint,
    library_versions,
    sources_digest,
)
from crosscast.evaluation.processes import Progress, check_seed, done_tasks, one_thread
from crosscast.predict.corun.artefact import KNOWN, NEW, CoRunCard, CoRunErrors
from crosscast.predict.corun.features import MemberRows, Traits, distinct
from crosscast.predict.corun.forecast import CoRunModel, CoRunPrediction, CoRunPredictor, LeftOut
from crosscast.predict.corun.process import Process
from crosscast.predict.corun.slowdowns import Sizes, Training
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns
from crosscast.tables.whole_file import make_folder


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows of a quantity that were predicted and measured."""

    # What was measured, what was predicted and the limits of its interval, of shape `(n,)`; limits are not a
    # number where there are none
    true: Reals
    centre: Reals
    low: Reals
    high: Reals
    group: Integers  # Number of the fold of each, of shape `(n,)`
    bag_size: Integers  # Members of the bag of each, of shape `(n,)`

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.true)

    def where(self, chosen: Flags) -> Scored:
        """Some of the rows."""
        return Scored(*(each[chosen] for each in vars(self).values()))

    @property
    def relative_error(self) -> Reals:
        """Absolute error over the true value, of shape ``(n,)`` (Equation 1 of paper 004)."""
        errors: Reals = np.abs(self.centre - self.true) / self.true
        return errors

    @property
    def held(self) -> Reals:
        """Whether each interval holds the true value, as 1 and 0; not a number without an interval."""
        inside = (self.low <= self.true) & (self.true <= self.high)
        return np.where(np.isfinite(self.low), inside, np.nan)


def mean_error(scored: Scored) -> tuple[float, float]:
    """Mean absolute relative error, and mean absolute error in the quantity's own unit.

    >>> ones = np.ones(2)
    >>> places = np.zeros(2, np.int64)
    >>> mean_error(Scored(np.array([1.0, 2.0]), np.array([1.5, 2.0]), ones, ones, places, places))
    (0.25, 0.25)
    """
    return float(scored.relative_error.mean()), float(np.abs(scored.centre - scored.true).mean())


def worst_coverage(scored: Scored) -> tuple[int, float]:
    """The group whose intervals hold least often, and how often they do; one has intervals at least."""
    groups = np.unique(scored.group)
    shares = [float(scored.held[scored.group == group].mean()) for group in groups]
    place = int(np.nanargmin(shares))
    return int(groups[place]), shares[place]


def area_under_curve(true: Reals, probability: Reals) -> float | None:
    """Area under the receiver's operating curve: how often a 1 has a higher probability than a 0.

    Ties count half. ``None`` if all are the same.

    >>> area_under_curve(np.array([0.0, 1.0, 1.0]), np.array([0.2, 0.2, 0.9]))
    0.75
    """
    if not np.isin(true, (0.0, 1.0)).all():
        raise InputError("true: expected 0 and 1, found others")
    ones, zeros = probability[true == 1], np.sort(probability[true == 0])
    if not len(ones) or not len(zeros):
        return None
    below = np.searchsorted(zeros, ones, "left")
    upto = np.searchsorted(zeros, ones, "right")
    return float((below + upto).mean() / 2 / len(zeros))


QUANTITIES = ("slowdown", "speed", "time", "power")
"""Quantities: slowdown and speed (its inverse) of each member, time and power of the bag."""

FITS = "fits"
"""Whether a bag fits on the device, which is a probability."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A value for each member of ``b`` bags, or for each bag."""

    value: Reals  # The values, of shape `(n,)`; not a number where one is not known
    bag: Integers  # Place of the bag of each, of shape `(n,)`


def measured(bags: Sequence[Bag], quantity: str) -> Rows:
    """What was measured; of bags of which a member failed nothing.

    A slowdown, time or power of 0 is none: nothing takes no time, and a sensor that says 0 does not work.
    """
    if quantity in ("slowdown", "speed"):
        found = [None if bag.failed else member.slowdown for bag in bags for member in bag.members]
        return _of_members(_above_0(found), [len(bag.members) for bag in bags], quantity)
    read = _OF_BAGS[quantity]
    found = [None if bag.failed else read(bag) for bag in bags]
    values = np.array(found, dtype=np.float64) if quantity == FITS else _above_0(found)
    return Rows(values, np.arange(len(bags)))


def predicted(prediction: CoRunPrediction, quantity: str) -> Rows:
    """What was predicted, in the same rows."""
    if quantity in ("slowdown", "speed"):
        sizes = [len(each) for each in prediction.slowdown]
        return _of_members(np.concatenate([np.empty(0), *prediction.slowdown]), sizes, quantity)
    by_name = {"time": prediction.time_s, "power": prediction.power_w, FITS: prediction.fits}
    return Rows(by_name[quantity], np.arange(len(prediction.time_s)))


_OF_BAGS: Mapping[str, Callable[[Bag], float | None]] = {
    "time": lambda bag: bag.time_s,
    "power": lambda bag: bag.power_w,
    FITS: lambda bag: None if bag.fits is None else float(bag.fits),
}


def _above_0(found: Sequence[float | None]) -> Reals:
    return np.array([value or np.nan for value in found], dtype=np.float64)


def _of_members(values: Reals, sizes: Sequence[int], quantity: str) -> Rows:
    places = np.repeat(np.arange(len(sizes)), sizes)
    return Rows(1.0 / values if quantity == "speed" else values, places)


@dataclass(frozen=True, eq=False)
class CoRunResult:
    """How good a model is at a quantity; ``None`` for what does not apply."""

    model: str  # Name of the model
    baseline: bool  # Whether others are compared with it
    split: str  # What was held out
    probes: int  # Bags with what was held out that were known
    bag_size: int | None  # Members of the bags; `None` for all of them
    quantity: str  # `slowdown` or `speed` of members, `time` or `power` of bags, or whether a bag `fits`
    rows: int  # How many values were predicted
    mape: float | None = None  # Mean absolute relative error, a fraction
    mae: float | None = None  # Mean absolute error in the unit of the quantity
    coverage: float | None = None  # Share of the intervals that hold what was measured
    width: float | None = None  # Mean width of the intervals, in the unit of the quantity
    worst_coverage: float | None = None  # Least share among what was held out, and its name
    worst: str | None = None
    auc: float | None = None  # Area under the receiver's operating curve, of probabilities
    by_group: dict[str, float] | None = None  # Mean absolute relative error of each group that was held out
    scored: Scored | None = None  # The rows themselves; `None` of probabilities

    def to_dict(self) -> dict[str, Any]:
        """Everything but the rows, as an object of JSON; what is not known is null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "scored"
        }


SPLITS = ("leave-benchmark-out", "leave-bag-out", "random-80-20")
"""Names of the splits: each application in turn; bags in folds; and a fifth of the bags at random."""

BAG_FOLDS = 10
"""Folds where bags are left out."""


@dataclass(frozen=True, eq=False)
class CoRunFold:
    """A part of the bags, to be predicted by a model that was fitted to others."""

    held_out: str  # What is held out, for people
    train: Integers  # Places of the bags
    test: Integers


def folds_of(bags: Sequence[Bag], split: str, seed: int) -> tuple[CoRunFold, ...]:
    """Split bags into folds.

    Where a benchmark is left out, all bags with it are held out, whatever else is in them. Bags in which the
    same applications run at the same sizes are held out together.
    """
    if split not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}, found {split!r}")
    if split == "leave-benchmark-out":
        return _without_benchmarks(bags)
    numbers = _numbers_of_alike(bags)
    count = int(numbers.max(initial=-1)) + 1
    if count < 5:
        raise InputError(f"bags: expected at least 5 different ones to split, found {count}")
    order = np.random.default_rng(seed).permutation(count)
    if split == "random-80-20":
        return (_fold("a fifth at random", np.isin(numbers, order[: count // 5])),)
    parts = np.array_split(order, min(BAG_FOLDS, count))
    return tuple(_fold(f"bags, part {k}", np.isin(numbers, part)) for k, part in enumerate(parts, start=1))


def with_repeats(bags: Sequence[Bag], places: Sequence[int]) -> tuple[int, ...]:
    """Places of some bags, and of all in which the same applications run at the same sizes, ascending."""
    numbers = _numbers_of_alike(bags)
    alike = np.isin(numbers, numbers[np.array(places, dtype=np.int64)])
    return tuple(np.flatnonzero(alike).tolist())


def _fold(held_out: str, tested: Flags) -> CoRunFold:
    return CoRunFold(held_out, np.flatnonzero(~tested), np.flatnonzero(tested))


def _numbers_of_alike(bags: Sequence[Bag]) -> Integers:
    """A number for each bag, equal where the same applications run at the same sizes."""
    order: dict[tuple[tuple[str, str], ...], int] = {}
    found = [
        order.setdefault(tuple(sorted((solo.application, solo.size) for solo in bag.solos)), len(order))
        for bag in bags
    ]
    return np.array(found, dtype=np.int64)


def _without_benchmarks(bags: Sequence[Bag]) -> tuple[CoRunFold, ...]:
    names = sorted({name for bag in bags for name in bag.applications})
    if len(names) < 3:
        raise InputError(f"applications: expected at least 3 to leave one out, found {len(names)}")
    folds = []
    for name in names:
        tested = np.array([name in bag.applications for bag in bags])
        if tested.all():
            raise InputError(f"applications: expected bags without {name} to learn from, found none")
        folds.append(_fold(name, tested))
    return tuple(folds)


def co_runs_digest(co_runs: CoRuns) -> str:
    """A hash of all that models learn from, and are asked for."""
    # Dataclasses of texts and numbers, whose representations tell all.
    return hashlib.sha256(repr((co_runs.solos, co_runs.bags)).encode()).hexdigest()


def chosen_probes(
    bags: Sequence[Bag], of_new: Flags, name: str, count: int, traits: Traits, sizes: Sizes
) -> list[int]:
    """Choose bags of an application, one after the other: each lowers what is left open of all others most.

    What is open of a bag is the variance of a process (`crosscast.predict.corun.process`). Only bags are
    chosen in which nothing else is of the same application.
    """
    solos, places = distinct([bag.solos for bag in bags])
    rows = MemberRows.of([bag.solos for bag in bags], places)
    old = ~of_new[rows.bag]
    covariance = Training(traits.traited(solos), rows).covariance(sizes)
    known, new = np.flatnonzero(old), np.flatnonzero(~old)
    inside = covariance[np.ix_(known, known)] + sizes.noise * np.eye(len(known))
    across = covariance[np.ix_(new, known)]
    left = covariance[np.ix_(new, new)] - across @ np.linalg.solve(inside, across.T)
    inputs = {
        place: [solo.name for solo in bags[place].solos if solo.application == name]
        for place in np.flatnonzero(of_new).tolist()
    }
    open_ = {place: found[0] for place, found in inputs.items() if len(found) == 1}
    return _greedily(left, rows.bag[new], open_, sizes.noise, count)


def _greedily(left: Reals, bag: Integers, inputs: dict[int, str], noise: float, count: int) -> list[int]:
    rows = {place: np.flatnonzero(bag == place) for place in sorted(inputs)}
    room = dict.fromkeys(inputs.values(), count)
    chosen: list[int] = []
    while rows and any(room.values()):
        gains = {place: _gain(left, found, noise) for place, found in rows.items()}
        best = max(gains, key=lambda place: (gains[place], -place))
        found = rows.pop(best)
        chosen.append(best)
        room[inputs[best]] -= 1
        rows = {place: each for place, each in rows.items() if room[inputs[place]]}
        left = left - left[:, found] @ _solved(left, found, noise)
    return chosen


def _solved(left: Reals, found: Integers, noise: float) -> Reals:
    inside = left[np.ix_(found, found)] + noise * np.eye(len(found))
    return np.asarray(np.linalg.solve(inside, left[found]), dtype=np.float64)


def _gain(left: Reals, found: Integers, noise: float) -> float:
    """By how much the sum of variances falls if a bag is measured."""
    return float((left[found] * _solved(left, found, noise)).sum())


@dataclass(frozen=True, eq=False)
class Probing:
    """Chooses bags by what is known of others, whatever model then learns from them."""

    # How applications become numbers, and the sizes of the covariance between these, both of bags without the
    # new application
    traits: Traits
    sizes: Sizes

    def places(self, known: Sequence[Bag], new: Sequence[Bag], name: str, count: int) -> list[int]:
        """Places among the new bags of those to measure; see `chosen_probes`."""
        of_new = np.arange(len(known) + len(new)) >= len(known)
        chosen = chosen_probes([*known, *new], of_new, name, count, self.traits, self.sizes)
        return [place - len(known) for place in chosen]


def probing_of(training: CoRuns, seed: int) -> Probing:
    """What chooses, fitted to bags without the new application."""
    found = Process(trees=False).fit(training, seed).slowdowns
    return Probing(found.traits, found.sizes)


_OF_MEMBERS = ("slowdown", "speed")


@dataclass(frozen=True, eq=False)
class CoRunTask:
    """What to do."""

    model: CoRunModel  # The model
    fold: CoRunFold  # What is held out
    split: str  # How: what is held out within the training bags to learn how wrong the model is
    probes: int  # Bags with each input of what is left out that are known
    level: float | None  # Probability that intervals are to hold; `None` for no intervals
    seed: int  # Start of all random numbers

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a task."""

    # For each quantity what was predicted, in the rows of `crosscast.evaluation.corun`
    values: Mapping[str, Reals]
    # For each quantity how far the interval of each reaches, in logarithms; not a number without
    reach: Mapping[str, Reals]


@runtime_checkable
class _Rehearsed(Protocol):
    """A model that finds out slowly what its fits to parts of the same bags may share."""

    def refit(self, predictor: CoRunPredictor) -> CoRunModel:
        """A quicker form of the model, with what a fitted one found out."""
        ...


def refit_of(model: CoRunModel, predictor: CoRunPredictor) -> CoRunModel:
    """What is fitted to parts of the bags that a model was fitted to: its quicker form if it has one."""
    return model.refit(predictor) if isinstance(model, _Rehearsed) else model


def with_mixes(co_runs: CoRuns, places: Integers) -> CoRuns:
    """The same solo runs with some of the bags."""
    return replace(co_runs, bags=tuple(co_runs.bags[place] for place in places.tolist()))


def answer_of(co_runs: CoRuns, task: CoRunTask) -> Answer:
    """Fit the model to the bags of training alone, and let it predict those that are held out."""
    training = with_mixes(co_runs, task.fold.train)
    tested = [co_runs.bags[place] for place in task.fold.test.tolist()]
    try:
        probing = probing_of(training, task.seed) if task.probes else None
        known, told = _with_probes(training, tested, task.fold.held_out, task.probes, probing)
        predictor = task.model.fit(known, task.seed)
        found = predictor.predict([bag.solos for bag in tested])
        errors = (
            out_of_fold_errors(
                training,
                refit_of(task.model, predictor),
                task.split,
                task.seed,
                probes=task.probes,
                probing=probing,
            )
            if task.level is not None
            else {}
        )
    except InputError as error:
        raise InputError(f"{task.label}: {error}") from error
    values = {name: _untold(predicted(found, name), told) for name in (*QUANTITIES, FITS)}
    return Answer(
        values, {name: _reach(errors.get(name), task.level, values[name], name) for name in QUANTITIES}
    )


def _with_probes(
    training: CoRuns, tested: Sequence[Bag], held_out: str, count: int, probing: Probing | None
) -> tuple[CoRuns, tuple[int, ...]]:
    """The training with the probes of what is tested, and the places there of what these tell."""
    if probing is None:
        return training, ()
    probes = probing.places(training.bags, tested, held_out, count)
    # What came of a probe tells what comes of the same bag again.
    return (
        replace(training, bags=(*training.bags, *(tested[place] for place in probes))),
        with_repeats(tested, probes),
    )


def _reach(errors: LeftOut | None, level: float | None, values: Reals, name: str) -> Reals:
    if errors is None or level is None:
        return np.full_like(values, np.nan)
    # A speed is as sure as the slowdown that it is the inverse of.
    logs = -np.log(values) if name == "speed" else np.log(values)
    reach: Reals = errors.reach(level, logs)
    return reach


def _untold(rows: Rows, probes: Sequence[int]) -> Reals:
    """Values without those of bags that were known."""
    return np.where(np.isin(rows.bag, probes), np.nan, rows.value)


def out_of_fold_errors(
    co_runs: CoRuns,
    model: CoRunModel,
    split: str,
    seed: int,
    *,
    probes: int = 0,
    probing: Probing | None = None,
) -> dict[str, LeftOut]:
    """Errors of a model on what it is not fitted to, by quantity, of quantities that it tells."""
    way = "leave-bag-out" if split == "random-80-20" else split
    logs: dict[str, list[Reals]] = {name: [] for name in QUANTITIES}
    values: dict[str, list[Reals]] = {name: [] for name in QUANTITIES}
    numbers: dict[str, list[Integers]] = {name: [] for name in QUANTITIES}
    held_out = []
    before = 0
    for fold in folds_of(co_runs.bags, way, seed):
        training = with_mixes(co_runs, fold.train)
        bags = [co_runs.bags[place] for place in fold.test.tolist()]
        training, told = _with_probes(training, bags, fold.held_out, probes, probing)
        bags = [bag for place, bag in enumerate(bags) if place not in told]
        found = model.fit(training, seed).predict([bag.solos for bag in bags])
        held_out.append(fold.held_out)
        for name in QUANTITIES:
            errors, places, slowdowns = _log_errors(found, bags, name)
            logs[name].append(errors)
            values[name].append(slowdowns)
            numbers[name].append(before + places)
        before += len(bags)
    return {
        name: LeftOut(
            np.concatenate(parts),
            np.repeat(np.arange(len(kept)), [len(part) for part in parts]),
            tuple(held_out[place] for place in kept),
            np.concatenate([numbers[name][place] for place in kept]),
            np.concatenate([values[name][place] for place in kept]) if name in _OF_MEMBERS else None,
        )
        for name, all_parts in logs.items()
        if (kept := [place for place, part in enumerate(all_parts) if len(part)])
        for parts in [[all_parts[place] for place in kept]]
    }


def _log_errors(found: CoRunPrediction, bags: list[Bag], name: str) -> tuple[Reals, Integers, Reals]:
    """Errors that there are, the place of the bag of each, and the logarithm of the predicted slowdown."""
    true = measured(bags, name)
    values = predicted(found, name).value
    with np.errstate(invalid="ignore", divide="ignore"):
        # What is predicted below 0 has no logarithm.
        errors = np.log(values / true.value)
    known = np.isfinite(errors)
    logs = np.log(values[known])
    return errors[known], true.bag[known], -logs if name == "speed" else logs


_SOURCES = ("predict", "evaluation/corun.py", "evaluation/corun.py")
_NAMES = (*QUANTITIES, FITS)
_REACH = "reach."
_REACHES = tuple(f"{_REACH}{name}" for name in QUANTITIES)


def answers_of(
    co_runs: CoRuns,
    tasks: Sequence[CoRunTask],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[Answer]:
    """Do all tasks that a cache does not know."""
    kept = None if cache is None else _Kept(cache, co_runs)
    return done_tasks(tasks, kept, _worker, co_runs, what="fitted models", progress=progress, jobs=jobs)


def _worker(co_runs: CoRuns) -> Callable[[CoRunTask], Answer]:
    return partial(_answer, co_runs)


def _answer(co_runs: CoRuns, task: CoRunTask) -> Answer:
    with one_thread("evaluating models"):
        return answer_of(co_runs, task)


@dataclass(frozen=True)
class _Kept:
    """A folder of answers, each under a name made of all that they depend on."""

    folder: Path
    co_runs: CoRuns

    def __post_init__(self) -> None:
        make_folder("cache", self.folder)

    def load(self, task: CoRunTask) -> Answer | None:
        found = cached_arrays(self._path(task), [*_NAMES, *_REACHES])
        if not found or any(array.dtype != np.float64 or array.ndim != 1 for array in found.values()):
            return None
        reach = {name: found[f"{_REACH}{name}"] for name in QUANTITIES}
        if any(len(each) != len(found[name]) for name, each in reach.items()):
            return None
        return Answer({name: found[name] for name in _NAMES}, reach)

    def save(self, task: CoRunTask, answer: Answer) -> None:
        arrays = {**answer.values, **{f"{_REACH}{name}": each for name, each in answer.reach.items()}}
        with cached_file(self._path(task)) as temporary:
            np.savez_compressed(temporary, allow_pickle=False, **arrays)

    def _path(self, task: CoRunTask) -> Path:
        rows = hashlib.sha256(np.asarray(task.fold.train, np.int64).tobytes())
        rows.update(b"test" + np.asarray(task.fold.test, np.int64).tobytes())
        facts = {
            "sources": sources_digest(_SOURCES),
            "co_runs": self._digest,
            "model": [task.model.name, fingerprint(task.model)],
            "rows": rows.hexdigest(),
            "task": [task.split, task.probes, task.level, task.seed],
        }
        return self.folder / f"corun-{cache_key(facts)}.npz"

    @cached_property
    def _digest(self) -> str:
        return co_runs_digest(self.co_runs)


@dataclass(frozen=True, eq=False)
class CoRunEvaluation:
    """How models did in one split."""

    co_runs: CoRuns  # All solo runs and bags
    split: str  # As they were asked for
    probes: tuple[int, ...]
    level: float | None
    seed: int
    folds: dict[int, tuple[CoRunFold, ...]]  # The folds, of each number of probes
    # For each model, number of probes and quantity: of all bags, and of those of each size
    results: tuple[CoRunResult, ...]


def evaluate_corun(
    co_runs: CoRuns,
    models: Sequence[CoRunModel],
    split: str,
    *,
    baselines: Sequence[str] = (),
    probes: Sequence[int] = (0,),
    level: float | None = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> CoRunEvaluation:
    """Fit models to the bags that each fold leaves, and score them on those that it holds out.

    Nothing of what is held out is used to scale, tune, select or calibrate: models are given the other bags
    alone, and the width of intervals comes from groups that are left out within these.
    """
    check_seed(seed)
    names = [model.name for model in models]
    if not names or len(set(names)) < len(names):
        raise InputError(f"models: expected at least one, and each once, found {', '.join(names) or 'none'}")
    if level is not None and not 0 < level < 1:
        raise InputError(f"level: expected a probability between 0 and 1, found {level:g}")
    if (any(probes) and split != "leave-benchmark-out") or min(probes, default=0) < 0:
        raise InputError(
            f"probes: expected 0 but where benchmarks are left out, and no fewer, found {min(probes)} to "
            f"{max(probes)}"
        )
    probes = tuple(dict.fromkeys(probes))
    folds = dict.fromkeys(probes, folds_of(co_runs.bags, split, seed))
    tasks = [
        CoRunTask(model, fold, split, count, level, seed)
        for count in probes
        for model in models
        for fold in folds[count]
    ]
    answers = iter(answers_of(co_runs, tasks, progress=progress, cache=cache, jobs=jobs))
    results = [
        result
        for count in probes
        for model in models
        for result in results_of(
            co_runs,
            model.name,
            model.name in baselines,
            split,
            count,
            folds[count],
            [next(answers) for _ in folds[count]],
        )
    ]
    return CoRunEvaluation(co_runs, split, probes, level, seed, folds, tuple(results))


def results_of(
    co_runs: CoRuns,
    model: str,
    baseline: bool,
    split: str,
    probes: int,
    folds: Sequence[CoRunFold],
    answers: Sequence[Answer],
) -> Iterator[CoRunResult]:
    """Score what a model predicted of the bags that folds hold out."""
    for quantity in QUANTITIES:
        scored = _scored(co_runs, folds, answers, quantity)
        for size, chosen in _by_size(scored):
            some = scored.where(chosen)
            mape, mae = mean_error(some)
            has_limits = bool(np.isfinite(some.low).any())
            least = worst_coverage(some) if has_limits else None
            yield CoRunResult(
                model,
                baseline,
                split,
                probes,
                size,
                quantity,
                len(some),
                mape,
                mae,
                float(np.nanmean(some.held)) if has_limits else None,
                float(np.nanmean(some.high - some.low)) if has_limits else None,
                None if least is None else least[1],
                None if least is None else folds[least[0]].held_out,
                by_group={
                    folds[group].held_out: mean_error(some.where(some.group == group))[0]
                    for group in np.unique(some.group).tolist()
                },
                scored=some,
            )
    fits = _scored(co_runs, folds, answers, FITS)
    for size, chosen in _by_size(fits):
        some = fits.where(chosen)
        auc = area_under_curve(some.true, some.centre)
        if auc is not None:
            yield CoRunResult(model, baseline, split, probes, size, FITS, len(some), auc=auc)


def _scored(co_runs: CoRuns, folds: Sequence[CoRunFold], answers: Sequence[Answer], quantity: str) -> Scored:
    parts = []
    for number, (fold, answer) in enumerate(zip(folds, answers, strict=True)):
        bags = [co_runs.bags[place] for place in fold.test.tolist()]
        rows, centre = measured(bags, quantity), answer.values[quantity]
        known = np.isfinite(rows.value) & np.isfinite(centre)
        sizes = np.array([len(bag.members) for bag in bags], dtype=np.int64)
        factor = np.exp(answer.reach.get(quantity, np.full_like(centre, np.nan)))
        part = Scored(
            rows.value,
            centre,
            centre / factor,
            centre * factor,
            np.full(len(centre), number, np.int64),
            sizes[rows.bag],
        )
        parts.append(part.where(known))
    return Scored(
        *(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True))
    )


def _by_size(scored: Scored) -> Iterator[tuple[int | None, Flags]]:
    """All rows, and those of each size of bags; nothing where there are none."""
    if len(scored):
        yield None, np.ones(len(scored), dtype=np.bool_)
        for size in np.unique(scored.bag_size).tolist():
            yield size, scored.bag_size == size


_SPLITS = {NEW: "leave-benchmark-out", KNOWN: "leave-bag-out"}


@dataclass(frozen=True)
class TrainedCoRun:
    """A fitted model, its errors on what was left out, and its card."""

    predictor: CoRunPredictor
    errors: CoRunErrors
    card: CoRunCard


def of_one_device(co_runs: CoRuns, device: str | None = None, configuration: str | None = None) -> CoRuns:
    """The bags of one device and way of sharing, as no model learns from several."""
    found = [bag for bag in co_runs.bags if device in (None, bag.device)]
    found = [bag for bag in found if configuration in (None, bag.configuration)]
    if not found:
        there = ", ".join(sorted({f"{bag.device} {bag.configuration}" for bag in co_runs.bags})) or "none"
        raise InputError(f"{co_runs.label}: expected bags on {device or 'a device'}, found those on {there}")
    counts: dict[tuple[str, str], int] = {}
    for bag in found:
        key = bag.device, bag.configuration
        counts[key] = counts.get(key, 0) + 1
    chosen = max(sorted(counts), key=lambda key: counts[key])
    kept = tuple(bag for bag in found if (bag.device, bag.configuration) == chosen)
    solos = tuple(solo for solo in co_runs.solos if solo.device == chosen[0])
    return replace(co_runs, solos=solos, bags=kept)


def train_corun(
    co_runs: CoRuns,
    model: CoRunModel,
    *,
    baselines: Sequence[CoRunModel] = (),
    memory_bytes: int | None = None,
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> TrainedCoRun:
    """Fit a model to bags, and measure it with each application left out in turn, and with bags left out."""
    with one_thread("training a model"):
        # First the model itself: what cannot be learned is said at once.
        predictor = model.fit(co_runs, seed)
        rehearsal = refit_of(model, predictor)
        errors = {
            whose: out_of_fold_errors(co_runs, rehearsal, split, seed) for whose, split in _SPLITS.items()
        }
    models = [model, *(each for each in baselines if each.name != model.name)]
    evaluation = evaluate_corun(
        co_runs,
        models,
        _SPLITS[NEW],
        baselines=[each.name for each in baselines],
        level=level,
        seed=seed,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    first = co_runs.bags[0]
    sound = replace(co_runs, bags=tuple(bag for bag in co_runs.bags if not bag.failed))
    card = CoRunCard(
        model=model.name,
        seed=seed,
        device=first.device,
        configuration=first.configuration,
        sizes=tuple(sorted({len(bag.members) for bag in sound.bags})),
        applications=sound.applications,
        memory_bytes=memory_bytes,
        training=_training(co_runs),
        errors=_scores(evaluation),
        inputs=tuple(sorted({solo.name for bag in sound.bags for solo in bag.solos})),
    )
    return TrainedCoRun(predictor, errors, card)


def _training(co_runs: CoRuns) -> dict[str, Any]:
    bags = co_runs.bags
    return {
        "dataset": Path(co_runs.label).name,
        "bags": len(bags),
        "applications": len(co_runs.applications),
        "inputs": len({solo.key for bag in bags for solo in bag.solos}),
        "failed_bags": sum(bag.failed for bag in bags),
        "libraries": library_versions(),
        "sha256": co_runs_digest(co_runs),
    }


def _scores(evaluation: CoRunEvaluation) -> dict[str, Any]:
    return {
        "protocol": evaluation.split,
        "level": evaluation.level,
        "results": [result.to_dict() for result in evaluation.results],
    }
