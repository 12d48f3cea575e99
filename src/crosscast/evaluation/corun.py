"""Evaluation and training of models of co-running: splits, probes, out-of-fold residuals, scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from crosscast.arrays import Arrays, Flags, Integers, Reals
from crosscast.data.corun import Bag, CoRuns
from crosscast.errors import InputError
from crosscast.evaluation.keep import digest, fingerprint, library_versions
from crosscast.evaluation.loop import Progress, check_level, check_names, check_seed, one_thread, run_tasks
from crosscast.predict.corun.artefact import KNOWN, NEW, CoRunCard, TrainedCoRunModel
from crosscast.predict.corun.features import CoRunnerRows, Traits, distinct
from crosscast.predict.corun.forecast import CoRunModel, CoRunPrediction, CoRunPredictor
from crosscast.predict.corun.process import Process
from crosscast.predict.corun.slowdowns import Covariance, KernelSizes
from crosscast.predict.intervals import Residuals
from crosscast.results import Tabular


@dataclass(frozen=True, eq=False)
class Scored:
    """``n`` values of a quantity that were predicted and measured."""

    true: Reals  # (n,), measured
    centre: Reals  # (n,), predicted
    low: Reals  # (n,), limits of the interval; not a number where there is none
    high: Reals
    group: Integers  # (n,), number of the fold
    bag_size: Integers  # (n,), co-runners of the mix

    def __len__(self) -> int:
        """Number of values."""
        return len(self.true)

    def where(self, chosen: Flags) -> Scored:
        """Some of the values."""
        return Scored(*(each[chosen] for each in vars(self).values()))

    @property
    def relative_error(self) -> Reals:
        """Absolute error over the true value (Equation 1 of Moolchandani et al. 2022)."""
        errors: Reals = np.abs(self.centre - self.true) / self.true
        return errors

    @property
    def held(self) -> Reals:
        """Whether each interval holds the true value, as 1 and 0; not a number without an interval."""
        inside = (self.low <= self.true) & (self.true <= self.high)
        return np.where(np.isfinite(self.low), inside, np.nan)


def mean_error(scored: Scored) -> tuple[float, float]:
    """Mean absolute relative error, and mean absolute error in the quantity's own unit.

    >>> ones, places = np.ones(2), np.zeros(2, np.int64)
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


QUANTITIES = ("slowdown", "speed", "time", "power")
"""Quantities: slowdown and speed (its inverse) of each co-runner, time and power of the mix."""

FITS = "fits"
"""Whether a mix fits on the device, which is a probability."""

_OF_CO_RUNNERS = ("slowdown", "speed")


@dataclass(frozen=True, eq=False)
class Rows:
    """A value for each co-runner of mixes, or for each mix."""

    value: Reals  # (n,), not a number where one is not known
    bag: Integers  # (n,), place of its mix


def measured(mixes: Sequence[Bag], quantity: str) -> Rows:
    """What was measured; of mixes of which an application failed nothing.

    A slowdown, time or power of 0 is none: nothing takes no time, and a sensor that says 0 does not work.
    """
    if quantity in _OF_CO_RUNNERS:
        slowdowns = [None if mix.failed else member.slowdown for mix in mixes for member in mix.members]
        values = np.array([value or np.nan for value in slowdowns], dtype=np.float64)
        return _of_co_runners(values, [len(mix.members) for mix in mixes], quantity)
    field = {"time": "time_s", "power": "power_w", FITS: FITS}[quantity]
    found = [None if mix.failed else getattr(mix, field) for mix in mixes]
    values = np.array(found if quantity == FITS else [value or np.nan for value in found], dtype=np.float64)
    return Rows(values, np.arange(len(mixes)))


def predicted(prediction: CoRunPrediction, quantity: str) -> Rows:
    """What was predicted, in the same rows."""
    if quantity in _OF_CO_RUNNERS:
        sizes = [len(each) for each in prediction.slowdown]
        return _of_co_runners(np.concatenate([np.empty(0), *prediction.slowdown]), sizes, quantity)
    by_name = {"time": prediction.time_s, "power": prediction.power_w, FITS: prediction.fits}
    return Rows(by_name[quantity], np.arange(len(prediction.time_s)))


def _of_co_runners(values: Reals, sizes: Sequence[int], quantity: str) -> Rows:
    places = np.repeat(np.arange(len(sizes)), sizes)
    return Rows(1.0 / values if quantity == "speed" else values, places)


@dataclass(frozen=True, eq=False)
class CoRunResult:
    """How good a model is at a quantity; ``None`` for what does not apply."""

    model: str  # Name of the model
    baseline: bool  # Whether others are compared with it
    split: str  # What was held out
    probes: int  # Mixes with what was held out that were known
    bag_size: int | None  # Co-runners of the mixes; `None` for all of them
    quantity: str  # One of `QUANTITIES`, or `FITS`
    rows: int  # How many values were predicted
    mape: float | None = None  # Mean absolute relative error, a fraction
    mae: float | None = None  # Mean absolute error in the unit of the quantity
    coverage: float | None = None  # Share of the intervals that hold what was measured
    width: float | None = None  # Mean width of the intervals, in the unit of the quantity
    worst_coverage: float | None = None  # Least share among what was held out, and its name
    worst: str | None = None
    auc: float | None = None  # Area under the receiver's operating curve, of probabilities
    by_group: dict[str, float] | None = None  # Mean absolute relative error of each group that was held out
    scored: Scored | None = None  # The values themselves; `None` of probabilities

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values, as an object of JSON; what is not known is null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "scored"
        }


SPLITS = ("leave-benchmark-out", "leave-bag-out", "random-80-20")
"""Names of the splits: each application in turn; mixes in folds; and a fifth of the mixes at random."""

BAG_FOLDS = 10
"""Folds where mixes are left out."""


@dataclass(frozen=True, eq=False)
class CoRunFold:
    """A part of the mixes, to be predicted by a model that was fitted to others."""

    held_out: str  # What is held out, for people
    train: Integers  # Places of the mixes
    test: Integers


def folds_of(mixes: Sequence[Bag], split: str, seed: int) -> tuple[CoRunFold, ...]:
    """Split mixes into folds.

    Where a benchmark is left out, all mixes with it are held out, whatever else is in them. Mixes in which
    the same applications run at the same sizes are held out together.
    """
    if split not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}, found {split!r}")
    if split == "leave-benchmark-out":
        return _without_benchmarks(mixes)
    numbers = _numbers_of_alike(mixes)
    count = int(numbers.max(initial=-1)) + 1
    if count < 5:
        raise InputError(f"mixes: expected at least 5 different ones to split, found {count}")
    order = np.random.default_rng(seed).permutation(count)
    if split == "random-80-20":
        return (_fold("a fifth at random", np.isin(numbers, order[: count // 5])),)
    parts = np.array_split(order, min(BAG_FOLDS, count))
    return tuple(_fold(f"mixes, part {k}", np.isin(numbers, part)) for k, part in enumerate(parts, start=1))


def _without_benchmarks(mixes: Sequence[Bag]) -> tuple[CoRunFold, ...]:
    names = sorted({name for mix in mixes for name in mix.applications})
    if len(names) < 3:
        raise InputError(f"applications: expected at least 3 to leave one out, found {len(names)}")
    folds = [_fold(name, np.array([name in mix.applications for mix in mixes])) for name in names]
    for fold in folds:
        if not len(fold.train):
            raise InputError(
                f"applications: expected mixes without {fold.held_out} to learn from, found none"
            )
    return tuple(folds)


def _fold(held_out: str, tested: Flags) -> CoRunFold:
    return CoRunFold(held_out, np.flatnonzero(~tested), np.flatnonzero(tested))


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
        (`crosscast.predict.corun.process`). In each, nothing else is of the same application.
        """
        mixes = [mix.solos for mix in (*known, *new)]
        runs, places = distinct(mixes)
        rows = CoRunnerRows.of(mixes, places)
        covariance = Covariance(self.traits.matrix(runs), rows).matrix(self.sizes)
        old, open_ = np.flatnonzero(rows.mix < len(known)), np.flatnonzero(rows.mix >= len(known))
        inside = covariance[np.ix_(old, old)] + self.sizes.noise * np.eye(len(old))
        across = covariance[np.ix_(open_, old)]
        left = covariance[np.ix_(open_, open_)] - across @ np.linalg.solve(inside, across.T)
        own = [[run.name for run in mix.solos if run.application == name] for mix in new]
        inputs = {place: found[0] for place, found in enumerate(own) if len(found) == 1}
        return self._greedily(left, rows.mix[open_] - len(known), inputs, count)

    def _greedily(self, left: Reals, mix: Integers, inputs: Mapping[int, str], count: int) -> list[int]:
        rows = {place: np.flatnonzero(mix == place) for place in inputs}
        room = dict.fromkeys(inputs.values(), count)
        chosen: list[int] = []
        while rows := {place: each for place, each in rows.items() if room[inputs[place]]}:
            # By how much the sum of variances falls if a mix is measured.
            gains = {
                place: float((left[each] * self._solved(left, each)).sum()) for place, each in rows.items()
            }
            best = max(gains, key=lambda place: (gains[place], -place))
            found = rows.pop(best)
            chosen.append(best)
            room[inputs[best]] -= 1
            left = left - left[:, found] @ self._solved(left, found)
        return chosen

    def _solved(self, left: Reals, found: Integers) -> Reals:
        inside = left[np.ix_(found, found)] + self.sizes.noise * np.eye(len(found))
        return np.asarray(np.linalg.solve(inside, left[found]), dtype=np.float64)


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


@runtime_checkable
class _Refitted(Protocol):
    """A model that finds out slowly what its fits to parts of the same mixes may share."""

    def refit(self, predictor: CoRunPredictor) -> CoRunModel:
        """A quicker form of the model, with what a fitted one found out."""
        ...


def refit_of(model: CoRunModel, predictor: CoRunPredictor) -> CoRunModel:
    """What is fitted to parts of the mixes that a model was fitted to: its quicker form if it has one."""
    return model.refit(predictor) if isinstance(model, _Refitted) else model


_REACH = "reach."
_SOURCES = ("predict", "evaluation/corun.py")


@dataclass(frozen=True, eq=False)
class CoRunTask:
    """A fit without what a fold holds out, and its predictions of that: a task of the evaluation's loop.

    The answer has the values of each quantity, in the rows of `predicted`, and as ``reach.`` and its name how
    far their intervals reach, in logarithms; not a number without.
    """

    model: CoRunModel
    fold: CoRunFold
    split: str  # What is held out within the training, too, to learn how wrong the model is
    probes: int  # Mixes with each input of what is left out that are known
    level: float | None  # Probability that intervals are to hold; `None` for no intervals
    seed: int  # Start of all random numbers

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"

    @property
    def asks(self) -> list[object]:
        """All that its answer depends on besides the data."""
        model = [self.model.name, fingerprint(self.model)]
        return [[*model, digest(self.fold), self.split, self.probes, self.level, self.seed]]

    def run(self, data: CoRuns, asks: Sequence[int] = ()) -> list[Arrays]:
        """Fit the model to the mixes of training alone, and let it predict those that are held out."""
        training = with_mixes(data, self.fold.train)
        tested = [data.bags[place] for place in self.fold.test.tolist()]
        probing = Probing.of(training, self.seed) if self.probes else None
        known, probed = _with_probes(training, tested, self.fold.held_out, self.probes, probing)
        predictor = self.model.fit(known, self.seed)
        found = predictor.predict([mix.solos for mix in tested])
        errors: Mapping[str, Residuals] = {}
        if self.level is not None:
            refit = refit_of(self.model, predictor)
            errors = out_of_fold_errors(
                training, refit, self.split, self.seed, probes=self.probes, probing=probing
            )
        answer: Arrays = {}
        for name in (*QUANTITIES, FITS):
            rows = predicted(found, name)
            # Without those of mixes that were known.
            answer[name] = np.where(np.isin(rows.bag, probed), np.nan, rows.value)
        for name in QUANTITIES:
            # A speed is as sure as the slowdown that it is the inverse of.
            logs = -np.log(answer[name]) if name == "speed" else np.log(answer[name])
            answer[f"{_REACH}{name}"] = (
                errors[name].reach(self.level, logs)
                if self.level is not None and name in errors
                else np.full_like(logs, np.nan)
            )
        return [answer]

    def sound(self, data: CoRuns, ask: int, arrays: Arrays) -> bool:
        """Whether arrays that were kept may be the answer."""
        mixes = [data.bags[place] for place in self.fold.test.tolist()]
        shapes = {name: measured(mixes, name).value.shape for name in (*QUANTITIES, FITS)}
        shapes |= {f"{_REACH}{name}": shapes[name] for name in QUANTITIES}
        return {name: array.shape for name, array in arrays.items() if array.dtype == np.float64} == shapes


def out_of_fold_errors(
    co_runs: CoRuns,
    model: CoRunModel,
    split: str,
    seed: int,
    *,
    probes: int = 0,
    probing: Probing | None = None,
) -> dict[str, Residuals]:
    """Errors of a model on what it is not fitted to, by quantity, of quantities that it tells."""
    parts: dict[str, list[tuple[Reals, Integers, Integers, Reals]]] = {name: [] for name in QUANTITIES}
    held_out: list[str] = []
    before = 0
    for fold in folds_of(co_runs.bags, "leave-bag-out" if split == "random-80-20" else split, seed):
        mixes = [co_runs.bags[place] for place in fold.test.tolist()]
        training, probed = _with_probes(
            with_mixes(co_runs, fold.train), mixes, fold.held_out, probes, probing
        )
        mixes = [mix for place, mix in enumerate(mixes) if place not in probed]
        found = model.fit(training, seed).predict([mix.solos for mix in mixes])
        for name in QUANTITIES:
            true, values = measured(mixes, name), predicted(found, name).value
            with np.errstate(invalid="ignore", divide="ignore"):
                # What is predicted below 0 has no logarithm.
                errors = np.log(values / true.value)
            known = np.isfinite(errors)
            logs = np.log(values[known])
            group = np.full(int(known.sum()), len(held_out))
            logs = -logs if name == "speed" else logs
            parts[name].append((errors[known], group, before + true.bag[known], logs))
        held_out.append(fold.held_out)
        before += len(mixes)
    return {
        name: _residuals(found, held_out, grows=name in _OF_CO_RUNNERS)
        for name, found in parts.items()
        if any(len(each[0]) for each in found)
    }


def _residuals(
    parts: Sequence[tuple[Reals, Integers, Integers, Reals]], held_out: Sequence[str], *, grows: bool
) -> Residuals:
    errors, fold, mix, logs = (np.concatenate(each) for each in zip(*parts, strict=True))
    kept, group = np.unique(fold, return_inverse=True)
    names = tuple(held_out[place] for place in kept.tolist())
    return Residuals(errors, group, names, mix, logs if grows else None)


def answers_of(
    co_runs: CoRuns,
    tasks: Sequence[CoRunTask],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int | None = 1,
) -> list[Arrays]:
    """Do all tasks that a cache does not know; see `CoRunTask` for their answers."""
    found = run_tasks(tasks, co_runs, cache=cache, sources=_SOURCES, progress=progress, jobs=jobs)
    return [answer for (answer,) in found]


@dataclass(frozen=True, eq=False)
class CoRunEvaluation(Tabular):
    """How models did in one split: a row for each result."""

    co_runs: CoRuns  # All isolated runs and mixes
    split: str  # As they were asked for
    probes: tuple[int, ...]
    level: float | None
    seed: int
    folds: tuple[CoRunFold, ...]
    # For each model, number of probes and quantity: of all mixes, and of those of each size
    results: tuple[CoRunResult, ...]

    def columns(self) -> dict[str, list[Any]]:
        """The results but for those by group, by column."""
        rows = [each.to_dict() for each in self.results]
        names = [name for name in rows[0] if name != "by_group"] if rows else []
        return {name: [row[name] for row in rows] for name in names}

    def to_dict(self) -> dict[str, Any]:
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
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int | None = 1,
) -> CoRunEvaluation:
    """Fit models to the mixes that each fold leaves, and score them on those that it holds out.

    Nothing of what is held out is used to scale, tune, select or calibrate: models are given the other mixes
    alone, and the width of intervals comes from groups that are left out within these.
    """
    check_seed(seed)
    check_names([model.name for model in models])
    if level is not None:
        check_level(level)
    if (any(probes) and split != "leave-benchmark-out") or min(probes, default=0) < 0:
        raise InputError(
            f"probes: expected 0 but where benchmarks are left out, and no fewer, found {min(probes)} to "
            f"{max(probes)}"
        )
    probes = tuple(dict.fromkeys(probes))
    folds = folds_of(co_runs.bags, split, seed)
    asked = [(count, model) for count in probes for model in models]
    tasks = [CoRunTask(model, fold, split, count, level, seed) for count, model in asked for fold in folds]
    answers = iter(answers_of(co_runs, tasks, progress=progress, cache=cache, jobs=jobs))
    results = [
        result
        for count, model in asked
        for result in results_of(
            co_runs, model.name, model.name in baselines, split, count, folds, [next(answers) for _ in folds]
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
    answers: Sequence[Mapping[str, Reals]],
) -> Iterator[CoRunResult]:
    """Score what a model predicted of the mixes that folds hold out."""
    result = partial(CoRunResult, model, baseline, split, probes)
    for quantity in QUANTITIES:
        for size, some in _by_size(_scored(co_runs, folds, answers, quantity)):
            mape, mae = mean_error(some)
            has_limits = bool(np.isfinite(some.low).any())
            least = worst_coverage(some) if has_limits else None
            yield result(
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
    for size, some in _by_size(_scored(co_runs, folds, answers, FITS)):
        if len(np.unique(some.true)) == 2:
            from sklearn.metrics import roc_auc_score

            yield result(size, FITS, len(some), auc=float(roc_auc_score(some.true, some.centre)))


def _scored(
    co_runs: CoRuns, folds: Sequence[CoRunFold], answers: Sequence[Mapping[str, Reals]], quantity: str
) -> Scored:
    parts = []
    for number, (fold, answer) in enumerate(zip(folds, answers, strict=True)):
        mixes = [co_runs.bags[place] for place in fold.test.tolist()]
        rows, centre = measured(mixes, quantity), answer[quantity]
        sizes = np.array([len(mix.members) for mix in mixes], dtype=np.int64)
        factor = np.exp(answer.get(f"{_REACH}{quantity}", np.full_like(centre, np.nan)))
        group = np.full(len(centre), number, np.int64)
        part = Scored(rows.value, centre, centre / factor, centre * factor, group, sizes[rows.bag])
        parts.append(part.where(np.isfinite(rows.value) & np.isfinite(centre)))
    return Scored(
        *(np.concatenate(each) for each in zip(*(vars(part).values() for part in parts), strict=True))
    )


def _by_size(scored: Scored) -> Iterator[tuple[int | None, Scored]]:
    """All rows, and those of each size of mixes; nothing where there are none."""
    if len(scored):
        yield None, scored
        for size in np.unique(scored.bag_size).tolist():
            yield size, scored.where(scored.bag_size == size)


_SPLITS = {NEW: "leave-benchmark-out", KNOWN: "leave-bag-out"}


def of_one_device(co_runs: CoRuns, device: str | None = None, configuration: str | None = None) -> CoRuns:
    """The mixes of one device and way of sharing, as no model learns from several."""
    found = [mix for mix in co_runs.bags if device in (None, mix.device)]
    found = [mix for mix in found if configuration in (None, mix.configuration)]
    if not found:
        there = ", ".join(sorted({f"{mix.device} {mix.configuration}" for mix in co_runs.bags})) or "none"
        raise InputError(f"{co_runs.label}: expected mixes on {device or 'a device'}, found those on {there}")
    keys = [(mix.device, mix.configuration) for mix in found]
    chosen = max(sorted(set(keys)), key=keys.count)
    kept = tuple(mix for mix, key in zip(found, keys, strict=True) if key == chosen)
    solos = tuple(run for run in co_runs.solos if run.device == chosen[0])
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
    jobs: int | None = 1,
) -> TrainedCoRunModel:
    """Fit a model to mixes, and measure it with each application, and with mixes, left out in turn."""
    with one_thread("training a model"):
        # First the model itself: what cannot be learned is said at once.
        predictor = model.fit(co_runs, seed)
        refit = refit_of(model, predictor)
        errors = {whose: out_of_fold_errors(co_runs, refit, split, seed) for whose, split in _SPLITS.items()}
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
    sound = replace(co_runs, bags=tuple(mix for mix in co_runs.bags if not mix.failed))
    runs = {run.key: run for mix in sound.bags for run in mix.solos}
    first = co_runs.bags[0]
    card = CoRunCard(
        model=model.name,
        seed=seed,
        device=first.device,
        configuration=first.configuration,
        sizes=tuple(sorted({len(mix.members) for mix in sound.bags})),
        applications=sound.applications,
        memory_bytes=memory_bytes,
        training={
            "dataset": Path(co_runs.label).name,
            "bags": len(co_runs.bags),
            "applications": len(co_runs.applications),
            "inputs": len({run.key for mix in co_runs.bags for run in mix.solos}),
            "failed_bags": sum(mix.failed for mix in co_runs.bags),
            "libraries": library_versions(),
            "sha256": digest((co_runs.solos, co_runs.bags)),
        },
        errors={
            "protocol": evaluation.split,
            "level": evaluation.level,
            "results": [result.to_dict() for result in evaluation.results],
        },
        inputs=tuple(sorted({run.name for run in runs.values()})),
        runs=tuple(runs[key] for key in sorted(runs)),
    )
    return TrainedCoRunModel(card, lambda: (predictor, errors))
