"""The choice between a CPU and a GPU for the kernels of Cummins et al. (2017), with several splits.

The published split is of rows at random: other sizes of a test kernel, and copies of it, are in training.
Leaving out kernels, applications or suites tests on unseen ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal, Protocol, Unpack, get_args

import numpy as np

from crosscast.arrays import Arrays, Flags, Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.errors import InputError
from crosscast.evaluation.keep import digest, fingerprint
from crosscast.evaluation.loop import (
    Fold,
    FoldTask,
    RunArguments,
    check_seed,
    folds_by_group,
    one_thread,
    run_tasks,
)
from crosscast.evaluation.resampling import Confidence, Grouped, Scored, confidences
from crosscast.profile import METRICS
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.fields import score_table, scores_of
from crosscast.report.numbers import MARK, named, percent
from crosscast.results import Tabular

COUNTERS = ("comp", "rational", "mem", "localmem", "coalesced", "atomic", "transfer", "wgsize")
"""Counters of a row of the source."""

PUBLISHED_SEED = 204
"""Seed of the published split, in the authors' notebook."""

_SOURCES = ("studies/cummins2017.py",)
_TEXT = "text_"
_IS_COUNT = np.array([metric.unit not in ("1", "bits") for metric in METRICS])
_TREES = 100
_FOLDS = 10
_INNER = 3


@dataclass(frozen=True, eq=False)
class MappingCases:
    """Kernels at sizes, with a time on each of two devices."""

    devices: tuple[str, str]  # Keys of the CPU and of the GPU
    applications: tuple[str, ...]
    kernels: tuple[str, ...]  # Names prefixed with the application
    sizes: tuple[str, ...]
    time_s: Reals  # ``(m, 2)``, as `devices`
    counters: Reals  # ``(m, 8)``, as `COUNTERS`
    text: Reals  # ``(m, t)``, counts in the kernels' sources
    metrics: Reals  # ``(m, k)``, as `METRICS`; NaN where there is none

    def __len__(self) -> int:
        """Number of cases."""
        return len(self.kernels)

    @cached_property
    def suites(self) -> tuple[str, ...]:
        """Suite of each case: the part of its application before the last dash."""
        return tuple(name.rpartition("-")[0] for name in self.applications)

    @cached_property
    def gain(self) -> Reals:
        """Logarithm of the time on the CPU over that on the GPU: positive where the GPU is faster."""
        return np.asarray(np.log(self.time_s[:, 0] / self.time_s[:, 1]))

    @cached_property
    def counted(self) -> Reals:
        """Features from the source's counters, sizes and their ratios; logarithms of all but shares."""
        comp, _, mem, local, coalesced, _, transfer, group = self.counters.T
        shares = [coalesced / mem, local / mem, comp / mem, np.log1p(local / mem * group)]
        return np.column_stack([np.log1p(self.counters), np.log1p(transfer / (comp + mem)), *shares])

    @cached_property
    def static(self) -> Reals:
        """Features `counted`, and the counts in the kernels' sources."""
        return np.column_stack([self.counted, np.log1p(self.text)])

    @cached_property
    def profiled(self) -> Reals:
        """Features `static`, and the metrics of synthetic launches; -1 where there is no profile."""
        metrics = np.where(_IS_COUNT, np.log1p(self.metrics), self.metrics)
        return np.column_stack([self.static, np.nan_to_num(metrics, nan=-1.0)])

    @cached_property
    def grewe_features(self) -> Reals:
        """The four features of Grewe, Wang and O'Boyle (CGO 2013)."""
        comp, _, mem, local, coalesced, _, transfer, group = self.counters.T
        return np.column_stack([transfer / (comp + mem), coalesced / mem, local / mem * group, comp / mem])


Key = tuple[str, str, str]
"""Application, kernel and size."""


def cases_of(dataset: Dataset) -> MappingCases:
    """Make the cases of a dataset that ``crosscast dataset import cgo17`` made."""
    types = {row["device"]: row["type"] for row in dataset.devices.to_pylist()}
    devices = tuple(name for kind in ("cpu", "gpu") for name, type_ in types.items() if type_ == kind)
    if len(types) != 2 or len(devices) != 2:
        raise InputError.of(
            where=f"{dataset.label}: devices", expected="a CPU and a GPU", found=", ".join(types) or "none"
        )
    counters_of: dict[Key, dict[str, float]] = {}
    for row in dataset.sessions.to_pylist():
        counters = json.loads(row["counters"] or "{}")
        if missing := [name for name in COUNTERS if counters.get(name) is None]:
            raise InputError.of(
                where=f"{dataset.label}: sessions",
                field=f"counters of {row['application']}, {row['size']}",
                expected=", ".join(missing),
                found="none: import the dataset with crosscast dataset import cgo17",
            )
        (kernel,) = json.loads(row["kernels"])
        counters_of[row["application"], kernel, row["size"]] = counters
    times: dict[Key, dict[str, float]] = {}
    for row in dataset.records.to_pylist():
        key = row["application"], row["kernel"], row["size"]
        times.setdefault(key, {})[row["device"]] = float(np.mean(row["time_s"]))
    keys = sorted(key for key, by_device in times.items() if len(by_device) == 2)
    profiles = {(row["application"], row["kernel"], row["size"]): row for row in dataset.profiles.to_pylist()}
    text = sorted({name for counters in counters_of.values() for name in counters if name.startswith(_TEXT)})
    metrics = [[profiles.get(key, {}).get(metric.name) for metric in METRICS] for key in keys]
    return MappingCases(
        (devices[0], devices[1]),
        tuple(application for application, _, _ in keys),
        tuple(f"{application}-{kernel}" for application, kernel, _ in keys),
        tuple(size for _, _, size in keys),
        np.array([[times[key][device] for device in devices] for key in keys], np.float64),
        np.array([[counters_of[key][name] for name in COUNTERS] for key in keys], np.float64),
        np.array([[counters_of[key].get(name, 0.0) for name in text] for key in keys], np.float64),
        np.array(metrics, np.float64),
    )


# -- splits


def _published(cases: MappingCases) -> tuple[Fold, ...]:
    """Ten folds of rows, stratified by the faster device, as in Cummins et al. (PACT 2017)."""
    from sklearn.model_selection import StratifiedKFold

    split = StratifiedKFold(_FOLDS, shuffle=True, random_state=PUBLISHED_SEED)
    parts = split.split(cases.counters, cases.gain > 0)
    return tuple(Fold(f"rows {number}", train, test) for number, (train, test) in enumerate(parts, 1))


def _ten_folds(groups: str) -> Callable[[MappingCases], tuple[Fold, ...]]:
    """Return the function that makes ten folds of kernels or applications with all their rows."""

    def folds(cases: MappingCases) -> tuple[Fold, ...]:
        parts = _balanced(getattr(cases, groups), _FOLDS)
        return folds_by_group(groups, groups, [f"{groups} {part + 1}" for part in parts.tolist()], parts)

    return folds


def _balanced(labels: Sequence[str], folds: int) -> Integers:
    """Assign rows to folds of similar size, equal labels to one fold."""
    from sklearn.model_selection import GroupKFold

    fold_of_row = np.zeros(len(labels), np.int64)
    count = min(folds, len(set(labels)))
    for number, (_, test) in enumerate(GroupKFold(count).split(fold_of_row, groups=labels)):
        fold_of_row[test] = number
    return fold_of_row


SPLITS: Mapping[str, Callable[[MappingCases], tuple[Fold, ...]]] = {
    "published": _published,
    "leave-kernel-out": _ten_folds("kernels"),
    "leave-application-out": _ten_folds("applications"),
    "leave-suite-out": lambda cases: folds_by_group("suites", "suites", cases.suites),
}
"""Splits by name, in increasing difficulty."""


def _groups(cases: MappingCases, split: str) -> Sequence[str]:
    """Labels of the rows that a split keeps together."""
    labels = {
        "leave-kernel-out": cases.kernels,
        "leave-application-out": cases.applications,
        "leave-suite-out": cases.suites,
    }
    return labels.get(split, tuple(map(str, range(len(cases)))))


# -- models

Features = Literal["counted", "static", "profiled"]
_FEATURES: tuple[Features, ...] = get_args(Features)


@dataclass(frozen=True)
class OneDevice:
    """Choose the device that is faster in most training rows."""

    name: str = "one-device"

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Return scores of the test rows; positive ones choose the GPU."""
        return np.full(len(test), float(np.mean(cases.gain[train] > 0)) - 0.5)


@dataclass(frozen=True)
class Lookup:
    """Choose the device that is faster at most other sizes of the kernel; for a new kernel as `OneDevice`.

    It uses no features, so that its accuracy with the published split is not that of a prediction.
    """

    name: str = "lookup"

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Return scores of the test rows; positive ones choose the GPU."""
        others = OneDevice().scores(cases, train, test, split, seed)
        same = np.array(cases.kernels)[test, None] == np.array(cases.kernels)[train]
        votes = same @ np.where(cases.gain[train] > 0, 1.0, -1.0)
        return np.where(votes != 0, votes, others)


@dataclass(frozen=True)
class GreweTree:
    """The tree of Grewe et al. with the four features, fitted as in Cummins et al. (PACT 2017)."""

    name: str = "grewe-tree"

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Return scores of the test rows; positive ones choose the GPU."""
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(max_depth=5, min_samples_leaf=5, random_state=seed)
        tree.fit(cases.grewe_features[train], cases.gain[train] > 0)
        return _margin(tree, cases.grewe_features[test])


@dataclass(frozen=True)
class MappingTrees:
    """Extremely randomized trees (Geurts et al. 2006) on logarithms, of the label or of the gain."""

    name: str
    features: Features  # Name of the features in `MappingCases`
    gain: bool  # Whether the logarithm of the ratio of times is predicted, whose sign decides

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Return scores of the test rows; positive ones choose the GPU."""
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        features: Reals = getattr(cases, self.features)
        if self.gain:
            # The classifier's default, too.
            regressor = ExtraTreesRegressor(_TREES, max_features="sqrt", random_state=seed)
            return np.asarray(regressor.fit(features[train], cases.gain[train]).predict(features[test]))
        trees = ExtraTreesClassifier(_TREES, random_state=seed).fit(features[train], cases.gain[train] > 0)
        return _margin(trees, features[test])


class _Classifier(Protocol):
    classes_: Sequence[object]

    def predict_proba(self, rows: Reals, /) -> Reals:
        """Return the probability of each class for each row."""


def _margin(classifier: _Classifier, features: Reals) -> Reals:
    """Probability of the GPU minus one half."""
    columns = {bool(label): column for column, label in enumerate(classifier.classes_)}
    shares = classifier.predict_proba(features)
    return np.asarray(shares[:, columns[True]] - 0.5 if True in columns else np.full(len(features), -0.5))


CANDIDATES: tuple[OneDevice | MappingTrees, ...] = (
    OneDevice(),
    *(MappingTrees(f"{features}-label", features, gain=False) for features in _FEATURES),
    *(MappingTrees(f"{features}-gain", features, gain=True) for features in _FEATURES[1:]),
)


@dataclass(frozen=True)
class Selected:
    """The candidate with the best accuracy in cross-validation of the training rows with the same split."""

    name: str = "selected"

    def scores(self, cases: MappingCases, train: Integers, test: Integers, split: str, seed: int) -> Reals:
        """Return scores of the test rows; positive ones choose the GPU."""
        groups = np.array(_groups(cases, split))[train]
        if len(set(groups.tolist())) < 2:
            # With two suites, only one is in training.
            groups = np.array(cases.applications)[train]
        part = _balanced(groups.tolist(), _INNER)
        right = np.zeros(len(CANDIDATES))
        for number in range(int(part.max()) + 1):
            inner, validation = train[part != number], train[part == number]
            for index, candidate in enumerate(CANDIDATES):
                chosen = candidate.scores(cases, inner, validation, split, seed) > 0
                right[index] += np.count_nonzero(chosen == (cases.gain[validation] > 0))
        return CANDIDATES[int(np.argmax(right))].scores(cases, train, test, split, seed)


Model = OneDevice | Lookup | GreweTree | MappingTrees | Selected
BASELINES = ("one-device", "lookup", "grewe-tree")
MODELS: tuple[Model, ...] = (OneDevice(), Lookup(), GreweTree(), *CANDIDATES[1:], Selected())


# -- evaluation


@dataclass(frozen=True, eq=False)
class DeviceTask(FoldTask[Model, Fold, MappingCases]):
    """Fit a model to a fold's training rows, and choose devices for its test rows."""

    split: str

    @property
    def cache_keys(self) -> list[object]:
        """Inputs of the result besides the cases."""
        return [[fingerprint(self.model), self.split, digest([self.fold.train, self.fold.test]), self.seed]]

    def run(self, data: MappingCases, queries: Sequence[int]) -> list[Arrays]:
        """Fit and choose."""
        with one_thread("choosing devices"):
            scores = self.model.scores(data, self.fold.train, self.fold.test, self.split, self.seed)
        return [{"gpu": scores > 0} for _ in queries]

    def is_valid(self, data: MappingCases, query: int, arrays: Arrays) -> bool:
        """Whether arrays are choices for the fold's test rows."""
        gpu = arrays.get("gpu")
        return gpu is not None and gpu.shape == self.fold.test.shape and gpu.dtype == np.bool_


@dataclass(frozen=True)
class DeviceScores:
    """Quality of choices, all rows with equal weight."""

    accuracy: float  # Share in which the faster device was chosen
    speedup: float  # Time on the best single device over that on the chosen one, geometric mean
    regret: float  # Time on the chosen device over that on the faster one, geometric mean
    worst_regret: float  # Largest regret of a row
    mean_speedup: float  # Arithmetic mean of speed-ups, as published


@dataclass(frozen=True, eq=False)
class DeviceResult:
    """Result of a model with a split."""

    model: str
    baseline: bool
    split: str
    scores: DeviceScores
    by_suite: Mapping[str, float]  # Accuracy in each suite
    gpu: Flags  # Whether the GPU was chosen for each case
    confidence: Confidence  # Intervals by resampling of applications

    def to_dict(self) -> dict[str, object]:
        """Return the object of JSON, without choices."""
        facts = {"model": self.model, "baseline": self.baseline, "protocol": self.split}
        return {**facts, **asdict(self.scores), "by_suite": dict(self.by_suite), **self.confidence.to_dict()}


@dataclass(frozen=True, eq=False)
class Cummins2017(Tabular):
    """Results of all models with all splits."""

    label: str
    cases: MappingCases
    seed: int
    results: tuple[DeviceResult, ...]

    @property
    def single(self) -> str:
        """Key of the best single device, by the mean logarithm of times."""
        return self.cases.devices[int(self.cases.gain.mean() > 0)]

    @property
    def profiled(self) -> int:
        """Number of rows with a profile."""
        return int((~np.isnan(self.cases.metrics).all(axis=1)).sum())

    @property
    def facts(self) -> dict[str, float]:
        """Shares of the rows that show how much of the accuracy needs no prediction."""
        cases = self.cases
        _, kernels, counts = np.unique(cases.kernels, return_inverse=True, return_counts=True)
        return {
            "kernel_has_other_sizes": float((counts[kernels] > 1).mean()),
            "right_by_majority_of_kernel": _right_by_majority(cases, cases.kernels),
            "right_by_majority_of_application": _right_by_majority(cases, cases.applications),
            "within_10_percent": float((np.abs(cases.gain) < np.log(1.1)).mean()),
        }

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each model with each split."""
        rows = [result.to_dict() for result in self.results]
        names = ("protocol", "model", "baseline", "accuracy", "speedup", "regret", "worst_regret")
        return {name: [row[name] for row in rows] for name in names}

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints, without choices."""
        return {
            "dataset": self.label,
            "seed": self.seed,
            "rows": len(self.cases),
            "profiled_rows": self.profiled,
            "devices": list(self.cases.devices),
            "best_single_device": self.single,
            "facts": self.facts,
            "results": [result.to_dict() for result in self.results],
        }


def reproduce(
    dataset: Dataset,
    *,
    splits: Sequence[str] = tuple(SPLITS),
    models: Sequence[Model] = MODELS,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> Cummins2017:
    """Evaluate each model with each split; `run` are arguments of `run_tasks`."""
    check_seed(seed)
    cases = cases_of(dataset)
    folds = {split: SPLITS[split](cases) for split in splits}
    tasks = [
        DeviceTask(model, fold, seed, split) for split in splits for model in models for fold in folds[split]
    ]
    answers = iter(run_tasks(tasks, cases, sources=_SOURCES, **run))
    results = []
    for split in splits:
        chosen = {}
        for model in models:
            gpu = np.zeros(len(cases), np.bool_)
            for fold in folds[split]:
                gpu[fold.test] = next(answers)[0]["gpu"]
            chosen[model.name] = gpu
        results += _results(cases, split, chosen, seed)
    return Cummins2017(dataset.label, cases, seed, tuple(results))


def _results(cases: MappingCases, split: str, chosen: Mapping[str, Flags], seed: int) -> list[DeviceResult]:
    _, groups = np.unique(cases.applications, return_inverse=True)
    count = int(groups.max()) + 1
    scored, by_name = [], {}
    for name, gpu in chosen.items():
        quantities = _by_row(cases, gpu)
        means = {score: Grouped(values, groups, count) for score, values in quantities.items()}

        def drawn(weights: Reals, means: Mapping[str, Grouped] = means) -> Mapping[str, Reals]:
            return {score: _shown(score, grouped.mean(weights)) for score, grouped in means.items()}

        observed = {score: float(values[0]) for score, values in drawn(np.ones((1, count))).items()}
        scored.append(Scored(name, name in BASELINES, observed, drawn))
        worst = float(np.exp(quantities["regret"].max()))
        mean = float(np.exp(quantities["speedup"]).mean())
        by_name[name] = DeviceScores(**observed, worst_regret=worst, mean_speedup=mean)
    intervals = confidences(scored, count, {"accuracy": 1, "speedup": 1, "regret": -1}, seed)
    suites = np.array(cases.suites)
    return [
        DeviceResult(
            name,
            name in BASELINES,
            split,
            by_name[name],
            {
                suite: float((gpu == (cases.gain > 0))[suites == suite].mean())
                for suite in sorted(set(cases.suites))
            },
            gpu,
            confidence,
        )
        for (name, gpu), confidence in zip(chosen.items(), intervals, strict=True)
    ]


def _right_by_majority(cases: MappingCases, labels: Sequence[str]) -> float:
    """Accuracy if the device that is faster in most rows of each label were known."""
    _, groups = np.unique(labels, return_inverse=True)
    share = np.bincount(groups, cases.gain > 0) / np.bincount(groups)
    return float(np.maximum(share, 1 - share)[groups].mean())


def _by_row(cases: MappingCases, gpu: Flags) -> dict[str, Reals]:
    """Values of each row, of which the scores are means; logarithms of speed-ups and regrets."""
    times = np.log(cases.time_s)
    chosen = np.where(gpu, times[:, 1], times[:, 0])
    single = times[:, int(cases.gain.mean() > 0)]
    right = (gpu == (cases.gain > 0)).astype(np.float64)
    return {"accuracy": right, "speedup": single - chosen, "regret": chosen - times.min(axis=1)}


def _shown(name: str, values: Reals) -> Reals:
    return values if name == "accuracy" else np.asarray(np.exp(values))


_HELD_OUT = {
    "published": "As published: ten folds of rows at random; other sizes of most kernels are known.",
    "leave-kernel-out": "Ten folds of kernels, each with all its sizes; others of its program are known.",
    "leave-application-out": "Ten folds of programs, each with all its kernels: the honest figure.",
    "leave-suite-out": "Each suite held out with all its programs.",
}
_SCORES = scores_of("accuracy± speedup mean_speedup regret worst_regret")


def study_report(study: Cummins2017) -> Report:
    """Make tables of accuracy, speed-up and regret, and of the accuracy in each suite."""
    cases, suites = study.cases, sorted(set(study.cases.suites))
    parts: list[Part] = [
        Heading(
            f"{study.label}: {len(cases):,} rows of {len(set(cases.kernels)):,} kernels of "
            f"{len(set(cases.applications))} programs of {len(suites)} suites, on {cases.devices[0]} and "
            f"{cases.devices[1]}; {study.profiled:,} rows with a profile; seed {study.seed}",
            1,
        )
    ]
    for split in dict.fromkeys(result.split for result in study.results):
        results = [result for result in study.results if result.split == split]
        parts += ["", Heading(split), _HELD_OUT[split], "", _table(results)]
        models = (result for result in results if not result.baseline)
        best = max(models, key=lambda result: result.scores.accuracy)
        if split in ("leave-application-out", "leave-suite-out"):
            rows = [[suite, percent(share)] for suite, share in best.by_suite.items()]
            parts += ["", Table(["suite", "accuracy"], rows, f"{best.model} by suite")]
    facts = {name: percent(share, 1) for name, share in study.facts.items()}
    return Report(
        [
            *parts,
            "",
            f"{facts['kernel_has_other_sizes']} of the rows are of kernels with several sizes; the devices "
            f"differ by less than 10 % in {facts['within_10_percent']}. If the majority of each kernel were "
            f"known, {facts['right_by_majority_of_kernel']} would be right; of each program, "
            f"{facts['right_by_majority_of_application']}.",
            f"Speed-up: over {study.single}, the best single device. Regret: time over that on the faster "
            "one. Both are geometric means; mean is the arithmetic one of speed-ups, as published; "
            "worst is the largest regret.",
            f"In brackets, 95 % of draws of programs; {MARK}: better than the best baseline in 95 % of them.",
            "Exact definitions: docs/choosing-results.md, CPU or GPU.",
        ]
    )


def _table(results: list[DeviceResult]) -> Table:
    rows = [([named(result.model, result.baseline)], result.scores, result.confidence) for result in results]
    return score_table(["model"], rows, _SCORES)
