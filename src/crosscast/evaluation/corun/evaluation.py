"""Evaluate models of co-runs: splits, probes, out-of-fold residuals, scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack, get_args

import numpy as np

from crosscast.arrays import Arrays, Flags, Integers, Reals
from crosscast.data.corun import CoRuns, MeasuredMix
from crosscast.errors import InputError, expect_known
from crosscast.evaluation import JSON_VERSION
from crosscast.evaluation.corun import CoRunFolds
from crosscast.evaluation.keep import digest, fingerprint
from crosscast.evaluation.loop import Fold, FoldTask, RunArguments, check_names, check_seed, run_tasks
from crosscast.prediction.corun import CoRunModel, CoRunPrediction, CoRunResiduals
from crosscast.prediction.corun.features import CoRunnerRows, Traits, applications_of
from crosscast.prediction.corun.models import Process
from crosscast.prediction.corun.probes import OpenMixes
from crosscast.prediction.corun.slowdowns import KernelSizes, SlowdownCovariance
from crosscast.prediction.intervals import check_level
from crosscast.results import Tabular, columns_of


@dataclass(frozen=True, eq=False)
class ScoredValues:
    """Predicted and measured values of a quantity, ``n`` of each."""

    true: Reals  # (n,), measured
    centre: Reals  # (n,), predicted
    low: Reals  # (n,), limits of the interval; NaN where there is none
    high: Reals
    group: Integers  # (n,), number of the fold
    mix_size: Integers  # (n,), co-runners of the mix

    def where(self, chosen: Flags) -> ScoredValues:
        """The values of a mask."""
        return ScoredValues(*(each[chosen] for each in vars(self).values()))


@dataclass(frozen=True, eq=False)
class CoRunResult:
    """Scores of a model for a quantity; ``None`` for scores that do not apply."""

    model: str
    baseline: bool  # Whether others are compared with it
    folds: str  # Their name
    probes: int  # Measured mixes with the held-out application
    mix_size: int | None = None  # Co-runners of the mixes; `None` for all of them
    quantity: str = ""  # One of `QUANTITIES`, or `FITS`
    rows: int = 0  # Number of predicted values
    mape: float | None = None  # Mean absolute relative error, a fraction
    mae: float | None = None  # Mean absolute error in the unit of the quantity
    coverage: float | None = None  # Share of the measured values within their intervals
    width: float | None = None  # Mean width of the intervals, in the unit of the quantity
    log_width: float | None = None  # Of logarithms; `None` where intervals reach to 0
    worst_coverage: float | None = None  # Least coverage of a held-out group, and its name
    worst: str | None = None
    auc: float | None = None  # Area under the receiver's operating curve, of probabilities
    by_group: dict[str, float] | None = None  # Mean absolute relative error of each held-out group
    coverage_by_group: dict[str, float] | None = None  # Of each held-out group
    scored: ScoredValues | None = None  # `None` for probabilities

    def to_dict(self) -> dict[str, object]:
        """All but the values, as an object of JSON; unknown values are null."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in vars(self).items()
            if name != "scored"
        }


def with_scores(result: CoRunResult, scored: ScoredValues, held_out: Sequence[str]) -> CoRunResult:
    """A result with the scores of its values; groups are named by `held_out`.

    Errors are relative to the true value (Equation 1 of Moolchandani et al. 2022).

    >>> true, centre, ones, zeros = np.array([1.0, 2.0]), np.array([1.5, 2.0]), np.ones(2), np.zeros(2, int)
    >>> result = CoRunResult("model", False, "leave-mix-out", 0, None, "time")
    >>> result = with_scores(result, ScoredValues(true, centre, ones, ones, zeros, zeros), ["a"])
    >>> result.mape, result.mae, result.coverage
    (0.25, 0.25, 0.5)
    """
    errors = np.abs(scored.centre - scored.true)
    relative = errors / scored.true
    groups = {number: scored.group == number for number in np.unique(scored.group).tolist()}
    result = replace(
        result,
        rows=len(errors),
        mape=float(relative.mean()),
        mae=float(errors.mean()),
        by_group={held_out[number]: float(relative[mask].mean()) for number, mask in groups.items()},
        scored=scored,
    )
    if not np.isfinite(scored.low).any():
        return result
    inside = (scored.low <= scored.true) & (scored.true <= scored.high)
    covered = np.where(np.isfinite(scored.low), inside, np.nan)
    shares = {held_out[number]: float(covered[mask].mean()) for number, mask in groups.items()}
    known = {name: share for name, share in shares.items() if np.isfinite(share)}
    worst = min(known, key=lambda name: known[name])
    reaches_0 = bool((scored.low <= 0).any())
    return replace(
        result,
        coverage=float(np.nanmean(covered)),
        width=float(np.nanmean(scored.high - scored.low)),
        log_width=None if reaches_0 else float(np.nanmean(np.log(scored.high / scored.low))),
        worst_coverage=known[worst],
        worst=worst,
        coverage_by_group=known,
    )


QUANTITIES = ("slowdown", "speed", "time", "power")
"""Slowdown and speed (its inverse) of each co-runner, time and power of the mix."""

FITS = "fits"
"""Probability that a mix fits on the device."""

_OF_CO_RUNNERS = ("slowdown", "speed")
_WITH_ERRORS = ("slowdown", "time", "power")


def mix_of_rows(sizes: Sequence[int], quantity: str) -> Integers:
    """Index of the mix of each value of a quantity: one for each co-runner of each mix, or for each mix."""
    return np.repeat(np.arange(len(sizes)), sizes if quantity in _OF_CO_RUNNERS else 1)


def measured(mixes: Sequence[MeasuredMix], quantity: str) -> Reals:
    """Measured values, in the rows of `mix_of_rows`; NaN for mixes in which an application failed.

    A slowdown, time or power of 0 is missing: a sensor that returns 0 does not work.
    """
    column: list[float | None]
    if quantity in _OF_CO_RUNNERS:
        column = [None if mix.failed else member.slowdown or None for mix in mixes for member in mix.members]
    elif quantity == FITS:
        column = [None if mix.failed else mix.fits for mix in mixes]
    else:
        field = {"time": "time_s", "power": "power_w"}[quantity]
        column = [None if mix.failed else getattr(mix, field) or None for mix in mixes]
    values = np.array(column, dtype=np.float64)
    return 1.0 / values if quantity == "speed" else values


def predicted(prediction: CoRunPrediction, quantity: str) -> Reals:
    """Predicted values, in the rows of `mix_of_rows`."""
    if quantity in _OF_CO_RUNNERS:
        values = np.concatenate([np.empty(0), *prediction.slowdown])
        return 1.0 / values if quantity == "speed" else values
    return {"time": prediction.time_s, "power": prediction.power_w, FITS: prediction.fits}[quantity]


SPLITS = get_args(CoRunFolds)
"""Names of the splits: each application in turn; mixes in folds; and a fifth of the mixes at random."""

_MIX_FOLDS = 10


def folds_of(mixes: Sequence[MeasuredMix], split: str, seed: int) -> tuple[Fold, ...]:
    """Split mixes into folds.

    Where a benchmark is held out, so are all mixes with it. Mixes in which the same applications run at the
    same sizes are held out together.
    """
    expect_known(split, SPLITS, where="folds")
    if split == "leave-benchmark-out":
        names = sorted({name for mix in mixes for name in mix.applications})
        if len(names) < 3:
            expected = "at least 3 to leave one out"
            raise InputError.of(where="applications", expected=expected, found=len(names))
        tested = {name: np.array([name in mix.applications for mix in mixes]) for name in names}
    else:
        numbers = _repeat_groups(mixes)
        count = int(numbers.max(initial=-1)) + 1
        if count < 5:
            raise InputError.of(where="mixes", expected="at least 5 different ones to split", found=count)
        order = np.random.default_rng(seed).permutation(count)
        parts = np.array_split(order, min(_MIX_FOLDS, count))
        groups = {f"mixes, part {k}": part for k, part in enumerate(parts, start=1)}
        if split == "random-80-20":
            groups = {"a fifth at random": order[: count // 5]}
        tested = {name: np.isin(numbers, part) for name, part in groups.items()}
    for name, each in tested.items():
        if each.all():
            expected = f"mixes without {name} to learn from"
            raise InputError.of(where="applications", expected=expected, found="none")
    return tuple(Fold.of(name, each) for name, each in tested.items())


def _repeat_groups(mixes: Sequence[MeasuredMix]) -> Integers:
    """Number of each mix, equal where the same applications run at the same sizes."""
    order: dict[tuple[tuple[str, str], ...], int] = {}
    keys = [tuple(sorted((run.application, run.size) for run in mix.isolated_runs)) for mix in mixes]
    return np.array([order.setdefault(key, len(order)) for key in keys], dtype=np.int64)


def with_mixes(co_runs: CoRuns, indices: Integers) -> CoRuns:
    """The isolated runs with some of the mixes."""
    return replace(co_runs, mixes=tuple(co_runs.mixes[index] for index in indices.tolist()))


@dataclass(frozen=True, eq=False)
class Probing:
    """Chooses mixes to measure, given others, by traits and covariances fitted without the application."""

    traits: Traits
    sizes: KernelSizes

    @classmethod
    def of(cls, training: CoRuns, seed: int) -> Probing:
        """Fit to mixes without the new application."""
        fitted = Process(trees=False).fit(training, seed).slowdowns
        return cls(fitted.traits, fitted.sizes)

    def choose(
        self, known: Sequence[MeasuredMix], new: Sequence[MeasuredMix], name: str, count: int
    ) -> list[int]:
        """Indices of the new mixes to measure: `count` for each size of the application.

        Greedily, each reduces the total variance of all others most. Candidates have a single run of it.
        """
        runs, mixes = applications_of([mix.isolated_runs for mix in (*known, *new)])
        covariance = SlowdownCovariance(self.traits.matrix(runs), CoRunnerRows.of(mixes, len(runs)))
        open_ = OpenMixes.of(covariance, self.sizes, len(known))
        of_application = [[run.name for run in mix.isolated_runs if run.application == name] for mix in new]
        inputs = {index: names[0] for index, names in enumerate(of_application) if len(names) == 1}
        remaining = dict.fromkeys(inputs.values(), count)
        chosen: list[int] = []
        while candidates := [k for k in inputs if k not in chosen and remaining[inputs[k]]]:
            chosen.append(max(candidates, key=lambda index: (open_.gain(index), -index)))
            remaining[inputs[chosen[-1]]] -= 1
            open_ = open_.given(chosen[-1])
        return chosen


def _with_probes(
    training: CoRuns, tested: Sequence[MeasuredMix], held_out: str, count: int, probing: Probing | None
) -> tuple[CoRuns, Integers]:
    """The training with probes among the tested mixes, and the indices of tested mixes that these reveal."""
    if probing is None:
        return training, np.empty(0, dtype=np.int64)
    probes = probing.choose(training.mixes, tested, held_out, count)
    # A probe also reveals the repeats of its mix.
    numbers = _repeat_groups(tested)
    known = np.flatnonzero(np.isin(numbers, numbers[probes]))
    return replace(training, mixes=(*training.mixes, *(tested[index] for index in probes))), known


_LOW, _HIGH = "low.", "high."
_SOURCES = ("prediction", "evaluation/corun/evaluation.py")


@dataclass(frozen=True, eq=False)
class CoRunTask(FoldTask[CoRunModel, Fold, CoRuns]):
    """A fit to the training mixes of a fold, and predictions of the test mixes.

    The answer has the values of each quantity, in the rows of `mix_of_rows`, and the limits of their
    intervals as ``low.`` and ``high.`` with its name; NaN without.
    """

    split: str  # Also of the out-of-fold residuals within the training
    probes: int  # Measured mixes with each input of the held-out application
    level: float | None  # Probability that intervals are to hold; `None` for no intervals

    @property
    def cache_keys(self) -> list[object]:
        """Key of the answer: all that it depends on besides the data."""
        model = [self.model.name, fingerprint(self.model)]
        return [[*model, digest(self.fold), self.split, self.probes, self.level, self.seed]]

    def run(self, data: CoRuns, queries: Sequence[int] = ()) -> list[Arrays]:
        """Fit the model to the training mixes, and predict the held-out ones."""
        training, tested = with_mixes(data, self.fold.train), with_mixes(data, self.fold.test).mixes
        probing = Probing.of(training, self.seed) if self.probes else None
        known, probed = _with_probes(training, tested, self.fold.held_out, self.probes, probing)
        predictor = self.model.fit(known, self.seed)
        prediction = predictor.predict([mix.isolated_runs for mix in tested])
        errors: Mapping[str, CoRunResiduals] = {}
        if self.level is not None:
            refit, how = self.model.refit(predictor), (self.split, self.seed)
            errors = out_of_fold_errors(training, refit, *how, probes=self.probes, probing=probing)
        answer: dict[str, Reals] = {}
        sizes = [len(mix.members) for mix in tested]
        for name in (*QUANTITIES, FITS):
            # Mixes with probes are not scored.
            hidden = np.isin(mix_of_rows(sizes, name), probed)
            answer[name] = values = np.where(hidden, np.nan, predicted(prediction, name))
            if name == FITS:
                continue
            low = high = np.full_like(values, np.nan)
            if name == "speed":
                # The inverse of the slowdown's interval.
                low, high = 1 / answer[f"{_HIGH}slowdown"], 1 / answer[f"{_LOW}slowdown"]
            elif name in errors and self.level is not None:
                low, high = errors[name].limits(self.level, values)
            answer |= {f"{_LOW}{name}": low, f"{_HIGH}{name}": high}
        return [{**answer}]

    def is_valid(self, data: CoRuns, query: int, arrays: Arrays) -> bool:
        """Whether cached arrays may be the answer."""
        sizes = [len(data.mixes[index].members) for index in self.fold.test.tolist()]
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
    """Out-of-fold residuals of a model, by quantity."""
    parts: dict[str, list[tuple[Reals, Integers, Integers, Reals]]] = {name: [] for name in _WITH_ERRORS}
    held_out: list[str] = []
    before = 0
    for fold in folds_of(co_runs.mixes, "leave-mix-out" if split == "random-80-20" else split, seed):
        tested = with_mixes(co_runs, fold.test).mixes
        rest = with_mixes(co_runs, fold.train)
        training, probed = _with_probes(rest, tested, fold.held_out, probes, probing)
        mixes = [mix for index, mix in enumerate(tested) if index not in probed]
        prediction = model.fit(training, seed).predict([mix.isolated_runs for mix in mixes])
        for name in _WITH_ERRORS:
            true, values = measured(mixes, name), predicted(prediction, name)
            with np.errstate(invalid="ignore", divide="ignore"):
                # Predictions below 0 have no logarithm.
                errors = np.log(values / true)
            known = np.isfinite(errors)
            logs = np.log(values[known])
            group = np.full(len(logs), len(held_out))
            mix = before + mix_of_rows([len(mix.members) for mix in mixes], name)[known]
            parts[name].append((errors[known], group, mix, logs))
        held_out.append(fold.held_out)
        before += len(mixes)
    by_quantity = {}
    for name, of_folds in parts.items():
        errors, number, mix, logs = (np.concatenate(each) for each in zip(*of_folds, strict=True))
        if len(errors):
            present, group = np.unique(number, return_inverse=True)
            names = tuple(held_out[fold] for fold in present.tolist())
            # Errors of larger slowdowns are larger.
            of_slowdown = logs if name == "slowdown" else None
            by_quantity[name] = CoRunResiduals(errors, group, names, mix, of_slowdown)
    return by_quantity


def answers_of(
    co_runs: CoRuns, tasks: Sequence[CoRunTask], **run: Unpack[RunArguments]
) -> list[dict[str, Reals]]:
    """Answers of all tasks, with `run` as in `run_tasks`; see `CoRunTask`."""
    return [
        {name: np.asarray(values, np.float64) for name, values in answer.items()}
        for (answer,) in run_tasks(tasks, co_runs, sources=_SOURCES, **run)
    ]


@dataclass(frozen=True, eq=False)
class CoRunEvaluation(Tabular):
    """Results of models in one split: a row for each result."""

    co_runs: CoRuns  # All isolated runs and mixes
    split: str
    probes: tuple[int, ...]
    level: float | None
    seed: int
    folds: tuple[Fold, ...]
    # For each model, number of probes and quantity: of all mixes, and of the mixes of each size
    results: tuple[CoRunResult, ...]

    def columns(self) -> dict[str, list[object]]:
        """The results without those by group, by column."""
        rows = [each.to_dict() for each in self.results]
        return {name: each for name, each in columns_of(rows).items() if not name.endswith("by_group")}

    def to_dict(self) -> dict[str, object]:
        """The evaluation, as ``--json`` prints it."""
        mixes = self.co_runs.mixes
        return {
            "version": JSON_VERSION,
            "dataset": self.co_runs.label,
            "question": "corun",
            "folds": self.split,
            "seed": self.seed,
            "level": self.level,
            "device": mixes[0].device,
            "configuration": mixes[0].configuration,
            "mixes": len(mixes),
            "failed_mixes": sum(mix.failed for mix in mixes),
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
    """Fit models to the training mixes of each fold, and score them on the test mixes.

    All that is fitted uses training mixes only: widths of intervals are from groups held out within these.
    """
    check_seed(seed)
    check_names([model.name for model in models])
    if level is not None:
        check_level(level)
    if (any(probes) and split != "leave-benchmark-out") or min(probes, default=0) < 0:
        expected = "0, or with leave-benchmark-out at least 0"
        raise InputError.of(where="probes", expected=expected, found=", ".join(map(str, probes)))
    probes = tuple(dict.fromkeys(probes))
    folds = folds_of(co_runs.mixes, split, seed)
    pairs = [(count, model) for count in probes for model in models]
    tasks = [CoRunTask(model, fold, seed, split, count, level) for count, model in pairs for fold in folds]
    answers, results = iter(answers_of(co_runs, tasks, **run)), list[CoRunResult]()
    for count, model in pairs:
        empty = CoRunResult(model.name, model.name in baselines, split, count)
        results += results_of(co_runs, folds, [next(answers) for _ in folds], empty)
    return CoRunEvaluation(co_runs, split, probes, level, seed, folds, tuple(results))


def results_of(
    co_runs: CoRuns, folds: Sequence[Fold], answers: Sequence[Mapping[str, Reals]], empty: CoRunResult
) -> Iterator[CoRunResult]:
    """An empty result with the scores of the mixes that folds hold out, by quantity and size."""
    mixes = [mix for fold in folds for mix in with_mixes(co_runs, fold.test).mixes]
    fold_of = np.repeat(np.arange(len(folds)), [len(fold.test) for fold in folds])
    sizes = np.array([len(mix.members) for mix in mixes], dtype=np.int64)
    for quantity in (*QUANTITIES, FITS):
        true, mix = measured(mixes, quantity), mix_of_rows(sizes.tolist(), quantity)
        centre, low, high = (
            np.concatenate([answer.get(f"{end}{quantity}", answer[quantity] * np.nan) for answer in answers])
            for end in ("", _LOW, _HIGH)
        )
        values = ScoredValues(true, centre, low, high, fold_of[mix], sizes[mix])
        values = values.where(np.isfinite(true) & np.isfinite(centre))
        for size in (None, *np.unique(values.mix_size).tolist()) if len(values.true) else ():
            of_size = values if size is None else values.where(values.mix_size == size)
            result = replace(empty, mix_size=size, quantity=quantity)
            if quantity != FITS:
                yield with_scores(result, of_size, [fold.held_out for fold in folds])
            elif len(np.unique(of_size.true)) == 2:
                from sklearn.metrics import roc_auc_score

                auc = float(roc_auc_score(of_size.true, of_size.centre))
                yield replace(result, rows=len(of_size.true), auc=auc)


def of_one_device(co_runs: CoRuns, device: str | None = None) -> CoRuns:
    """The mixes of one device and configuration of sharing, as models are fitted to one."""
    mixes = [mix for mix in co_runs.mixes if device in (None, mix.device)]
    if not mixes:
        devices = {f"{mix.device} {mix.configuration}".removesuffix(" {}") for mix in co_runs.mixes}
        found = f"those on {', '.join(sorted(devices)) or 'none'}"
        raise InputError.of(where=co_runs.label, expected=f"mixes on {device or 'a device'}", found=found)
    keys = [(mix.device, mix.configuration) for mix in mixes]
    chosen = max(sorted(set(keys)), key=keys.count)
    of_one = tuple(mix for mix, key in zip(mixes, keys, strict=True) if key == chosen)
    isolated_runs = tuple(run for run in co_runs.isolated_runs if run.device == chosen[0])
    return replace(co_runs, isolated_runs=isolated_runs, mixes=of_one)
